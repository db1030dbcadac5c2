"""GP002: the product dp × tp × pp × ep × sp is no GPU count where the dimensions share devices.

Reports a declared count that is such a product, if the graph uses another number of devices. If no dimensions share
devices, the product is the count.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from msgspec import Struct

from ...plan.degrees import declared_degree
from ...plan.view import PHASES, PlanView, as_int, as_mapping
from ..base import Example, Finding, Rule, set_top
from .counting import wrong_count


class _Counts(Struct, frozen=True):
    """Device counts of one phase: `products` of all degrees (in each way), and the right one, `mapped`."""

    products: frozenset[int]
    mapped: int


def _counts(view: PlanView, phase: str, replicas: int) -> _Counts | None:
    names = ("pp", "sp", "ep", "tp", "tp_ffn", "attention_dp", "tp_expert", "kv_sp")
    degrees = [declared_degree(view, phase, name) for name in names]
    pp, sp, ep, tp, tp_ffn, attention_dp, tp_expert, kv_sp = (degree or 0 for degree in degrees)
    if None in degrees:
        return None
    relaxed = attention_dp * tp_expert * kv_sp
    products = {replicas * prod((pp, sp, ep, width, extra)) for width in (tp, tp_ffn) for extra in (1, relaxed)}
    width = max(attention_dp * sp * kv_sp * tp, tp_ffn, ep * tp_expert)
    return _Counts(frozenset(products), replicas * pp * width)


def is_degree_product(view: PlanView, declared: int) -> bool:
    """Whether `declared` is a product of declared degrees that share devices."""
    dp = as_int(view.strategy.get("dp"))
    replicas = [as_int(as_mapping(view.strategy.get(phase)).get("replicas")) for phase in PHASES]
    counts: list[_Counts] = []
    for phase, stated in zip(PHASES, replicas, strict=True):
        count_of_phase = None if dp is None else _counts(view, phase, dp if stated is None else stated)
        if count_of_phase is not None:
            counts.append(count_of_phase)
    if any(declared in count.products and declared != count.mapped for count in counts):
        return True
    if None in replicas or len(counts) != 2:
        return False
    # Disaggregated: each kind of replica has its own devices.
    prefill, decode = counts
    sums = {first + second for first in prefill.products for second in decode.products}
    return declared in sums and declared != prefill.mapped + decode.mapped


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the declared count if it is a product of degrees and the graph uses another number."""
    counts = wrong_count(view)
    if counts is not None and is_degree_product(view, counts[0]):
        declared, used = counts
        yield Finding(
            "degrees-multiplied",
            f"strategy.gpu_count is {declared}, the degrees multiplied; the graph uses {used} devices, since "
            "dimensions of different operators share them",
            where="/strategy/gpu_count",
            value=declared,
            expected=used,
            remedy=f"set gpu_count to {used}: only what is simultaneous in one operator multiplies",
        )


RULE = Rule(
    id="GP002",
    name="degree product as GPU count",
    requirement=(
        "The mechanical product dp × tp × pp × ep × sp is not a GPU count where the dimensions share devices; a plan "
        "that declares it is rejected."
    ),
    rationale="Attention (sp × tp) and experts (ep) take turns on the same devices, so their degrees do not multiply.",
    source="003 §1, §7",
    remedy="count the devices of the graph",
    check=check,
    bad=Example("mla-tp2-ep2-pp2", (set_top("/strategy/gpu_count", 8),)),
)
