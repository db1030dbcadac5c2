"""TP005: the degrees divide what they split: query and KV heads, the heads of linear attention, FFN widths.

MLA has one latent for all heads, so its cache sets no bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.architecture import Architecture
from ...plan.placement import StageDegrees
from ..base import Example, Rule, set_top
from ..legality import Case, Conditions, DegreeLimit, Fault


def _fault(message_id: str, degree: str, parts: int, size: int, what: str) -> Fault:
    return Fault(
        message_id,
        f"{degree} {parts} does not divide the {size} {what}",
        value={degree: parts, what: size},
        expected=f"a divisor of {size}" + (" or a multiple of it" if what.startswith("KV") else ""),
        lacks=("ShardNode",),
    )


def _heads(case: Case) -> Iterator[Fault]:
    spec, tp = case.attention, case.degrees.tp
    for heads in spec.split_sizes():
        if heads.size % tp and not (heads.may_repeat and tp % heads.size == 0):
            yield _fault("heads", "tp", tp, heads.size, f"{heads.what} of {spec.kind} attention")
            return


def _exchanged_heads(case: Case) -> Iterator[Fault]:
    spec, ranks = case.attention, case.degrees.sp * case.degrees.tp
    exchanges = case.degrees.sp_kind == "ulysses" and case.degrees.sp > 1 and not spec.is_recurrent
    if exchanges and spec.query_heads % ranks and not any(True for _ in _heads(case)):
        yield _fault("exchanged-heads", "sp × tp", ranks, spec.query_heads, f"query heads of {spec.kind} attention")


def _columns(case: Case) -> Iterator[Fault]:
    if case.ffn.width % case.degrees.tp_ffn:
        yield _fault("columns", "tp_ffn", case.degrees.tp_ffn, case.ffn.width, f"columns of {case.ffn_name}")


def _expert_columns(case: Case) -> Iterator[Fault]:
    parts = case.degrees.tp_expert
    # Without `tp_in_expert` a split expert is TP006's.
    if "tp_in_expert" in case.conditions.relaxations and case.moe.width % parts:
        yield _fault("expert-columns", "tp_expert", parts, case.moe.width, "columns of an expert")


_LIMITS = (
    DegreeLimit(("tp",), _heads),
    DegreeLimit(("tp", "sp", "sp_kind"), _exchanged_heads),
    DegreeLimit(("tp_ffn",), _columns),
    DegreeLimit(("tp_expert",), _expert_columns),
)


def divides(architecture: Architecture, name: str, degree: int) -> bool:
    """Whether the value `degree` of `name` (`tp` or `tp_ffn`) divides everything that it splits in a model."""
    conditions, degrees = Conditions(architecture), StageDegrees()._replace(**{name: degree})
    limits = (limit for limit in _LIMITS if limit.reads == (name,))
    return not any(True for limit in limits for _ in limit.of(conditions, degrees))


RULE = Rule(
    id="TP005",
    name="uneven split",
    requirement=(
        "tp divides the query heads of each attention kind; its KV heads are divisible by tp, or tp by them (not MLA); "
        "for linear attention tp divides its key and value heads; tp_ffn divides the width of each FFN that it splits; "
        "with AllToAll SP, sp × tp divides the query heads."
    ),
    rationale=(
        "A head or a column is computed on one device. A degree that does not divide them leaves shards of unequal "
        "shape, which no collective and no kernel takes."
    ),
    source="003 §2.2",
    fix="re-plan",
    remedy="choose a degree that divides the size",
    limits=_LIMITS,
    bad=Example("dense-tp4", (set_top("/model/config/intermediate_size", 1022),)),
)
