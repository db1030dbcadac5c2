"""The obvious wider degrees that no legal strategy has, each with the rule that forbids it: "why not TP 8?".

It asks about the TP of a whole node and, for a model with experts, the EP of a node and of all the hardware. Degrees
that some legal strategy has are left to the search, which weighs them. It proposes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...tools.errors import InputError
from ...tools.language.said import StatedDegrees, StatedStrategy
from ...tools.plan.describe import describe
from ...tools.plan.placement import StageDegrees
from ...tools.search.candidate import SearchRequest
from ...tools.search.space import stage_degrees
from ..results import Alternative
from ..stated.strategy import read_strategy

# Rules that may forbid a degree as such. An engine cuts attention and FFN alike, so its rules bound TP too; what they
# or the memory say of the layout around a wide EP is no answer.
_FAMILIES = {"tp": ("TP", "EN"), "ep": ("EP",)}
# Nobody asks for more than any published EP group has.
_MAX_WIDTH = 512


def too_wide(request: SearchRequest) -> tuple[Alternative, ...]:
    """The widest TP, and the widest EP of a model with experts, where no legal strategy on the hardware has it.

    At most one of each. `request` is the one that was searched; `reason` has the numbers that forbid the degree.
    """
    alternatives: list[Alternative] = []
    for name, widths in _asked(request):
        illegal = (alternative for width in widths if (alternative := _judged(request, name, width)) is not None)
        alternatives.extend(list(illegal)[:1])
    return tuple(alternatives)


def _asked(request: SearchRequest) -> Iterator[tuple[str, tuple[int, ...]]]:
    every = request.facts.gpus
    node = min(request.hardware.gpus_per_node, every)
    if node > 1:
        yield "tp", (node,)
    if request.architecture.is_moe and every > 1:
        yield "ep", tuple(width for width in dict.fromkeys((node, every)) if width <= _MAX_WIDTH)


def _judged(request: SearchRequest, name: str, width: int) -> Alternative | None:
    """What forbids degree `name` of this width; `None` if a legal strategy has it, or no rule on it does."""
    legal = stage_degrees(request.space, width, "decode")
    if any(getattr(degrees, name) == width for degrees in legal):
        return None
    stated = StatedDegrees.model_validate({name: width})
    try:
        strategy = read_strategy(
            StatedStrategy(dp=1, prefill=stated, decode=stated), request.architecture, request.hardware
        )
    except InputError:
        return None  # too large to be laid out: nobody asks for it
    # An assumed engine's missing setting is no reason: that engine was not asked for.
    judge = replace(request.space, engine=request.named_engine).judge
    for rule, fault in judge.faults(StageDegrees.of(strategy.decode, "decode")):
        if fault.severity == "error" and rule.id.startswith(_FAMILIES[name]):
            return Alternative(
                strategy=strategy,
                summary=describe(strategy),
                reason=f"{rule.id}: {fault.message}",
                rule=rule.id,
                gpus=strategy.gpu_count,
            )
    return None
