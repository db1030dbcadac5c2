"""Every strategy of a tiny setting, judged by building its plan and asking every rule: an independent answer.

It shares nothing with re-planning but the builder and the rules: degrees are enumerated as numbers, legal or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from msgspec.structs import replace

from shardwright.tools.autofix.intent import PlanIntent
from shardwright.tools.errors import InputError
from shardwright.tools.plan.builder import build_plan
from shardwright.tools.plan.document import PhaseStrategy, Strategy
from shardwright.tools.plan.placement import gpu_count
from shardwright.tools.validate import validate


def valid_strategies(intent: PlanIntent) -> list[Strategy]:
    """All strategies whose plans pass every rule on the hardware of `intent`, in the builder's own placement."""
    return [strategy for strategy in _all_strategies(intent) if _is_valid(intent, strategy)]


def _all_strategies(intent: PlanIntent) -> Iterator[Strategy]:
    hardware = intent.hardware
    assert hardware is not None
    gpus = hardware.nodes * hardware.gpus_per_node
    prefills = list(_phases(intent, gpus, prefill=True))
    decodes = list(_phases(intent, gpus, prefill=False))
    numbers = range(1, gpus + 1)
    for prefill, decode in product(prefills, decodes):
        for dp in numbers:
            yield from _counted(Strategy(dp=dp, gpu_count=1, prefill=prefill, decode=decode), gpus)
        for x, y in product(numbers, numbers):
            sides = prefill.model_copy(update={"replicas": x}), decode.model_copy(update={"replicas": y})
            yield from _counted(Strategy(dp=x + y, gpu_count=1, prefill=sides[0], decode=sides[1]), gpus)


def _counted(strategy: Strategy, gpus: int) -> Iterator[Strategy]:
    count = gpu_count(strategy)
    if count <= gpus:
        yield strategy.model_copy(update={"gpu_count": count})


def _phases(intent: PlanIntent, gpus: int, *, prefill: bool) -> Iterator[PhaseStrategy]:
    architecture = intent.architecture
    assert architecture is not None
    degree_range, only_1 = range(1, gpus + 1), (1,)
    degrees = product(
        degree_range,
        degree_range if prefill else only_1,
        degree_range if architecture.is_moe else only_1,
        degree_range,
        degree_range if architecture.has_split_ffn else only_1,
    )
    for pp, sp, ep, tp, tp_ffn in degrees:
        if pp * max(sp * tp, ep, tp_ffn) <= gpus:
            yield PhaseStrategy(pp=pp, sp=sp, ep=ep, tp=tp, tp_ffn=tp_ffn)


def _is_valid(intent: PlanIntent, strategy: Strategy) -> bool:
    request = replace(intent, devices=()).request_for(strategy, intent.redundant_experts)
    if request is None:
        return False
    try:
        return validate(build_plan(request)).valid
    except InputError:
        return False
