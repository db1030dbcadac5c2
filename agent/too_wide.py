"""The obvious wider degrees that no legal strategy has, each with the rule that forbids it: "why not TP 8?".

Asked are the TP of a whole node and, of a model with experts, the EP of a node and of all the hardware. A degree that
some legal strategy has is no matter of this module: the search has weighed it. It proposes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..tools.errors import InputError
from ..tools.plan.builder import BuildRequest
from ..tools.plan.document import ModelBlock
from ..tools.rules.base import Violation
from ..tools.search.candidate import SearchRequest
from ..tools.search.describe import describe
from ..tools.search.space import stage_options
from ..tools.validate import validate
from .intent.intent import StatedDegrees, StatedStrategy
from .results import Alternative
from .stated import build_stated, read_strategy

# Rules that may forbid a degree as such. An engine cuts attention and FFN alike, so its rules bound TP too; what they
# or the memory say of the layout around a wide EP is no answer.
_FAMILIES = {"tp": ("TP", "EN"), "ep": ("EP",)}
# Wider than any published EP group is asked for by nobody.
_MAX_WIDTH = 512


def too_wide(request: SearchRequest, model: ModelBlock) -> tuple[Alternative, ...]:
    """The widest TP, and the widest EP of a model with experts, where no legal strategy on the hardware has it.

    At most one of each. `request` is the one that was searched; `reason` has the numbers that forbid the degree.
    """
    found: list[Alternative] = []
    for name, widths in _asked(request):
        illegal = (one for width in widths if (one := _judged(request, model, name, width)) is not None)
        found.extend(list(illegal)[:1])
    return tuple(found)


def _asked(request: SearchRequest) -> Iterator[tuple[str, tuple[int, ...]]]:
    every = request.facts.gpus
    node = min(request.hardware.gpus_per_node, every)
    if node > 1:
        yield "tp", (node,)
    if request.architecture.is_moe and every > 1:
        yield "ep", tuple(width for width in dict.fromkeys((node, every)) if width <= _MAX_WIDTH)


def _judged(request: SearchRequest, model: ModelBlock, name: str, width: int) -> Alternative | None:
    """What forbids `name` of this width; `None` where a legal strategy has it, or where no rule on that degree does."""
    legal = stage_options(request.space, width, prefill=False)
    if any(getattr(degrees, name) == width for degrees in legal):
        return None
    degrees = StatedDegrees.model_validate({name: width})
    try:
        strategy = read_strategy(
            StatedStrategy(dp=1, prefill=degrees, decode=degrees), request.architecture, request.hardware
        )
        build = BuildRequest(
            model=model,
            hardware=request.hardware,
            workload=request.workload,
            precision=request.precision,
            strategy=strategy,
            policy=request.policy,
            serving=request.serving,
        )
        report = validate(build_stated(build, request.architecture))
    except InputError:
        return None  # too large to be laid out: nobody asks for it
    finding = _first(report.violations, _FAMILIES[name])
    if finding is None:
        return None
    return Alternative(
        strategy=strategy,
        summary=describe(strategy),
        reason=f"{finding.rule}: {_in_short(request, finding, width)}",
        rule=finding.rule,
        gpus=strategy.gpu_count,
    )


def _first(findings: Sequence[Violation], families: tuple[str, ...]) -> Violation | None:
    """The first error of a rule of these families."""
    return next((one for one in findings if one.severity == "error" and one.rule.startswith(families)), None)


def _in_short(request: SearchRequest, finding: Violation, width: int) -> str:
    """The message without the phase, since both have the degree; empty expert groups are counted, not listed."""
    if finding.rule == "EP004":
        layers = request.architecture.layers
        experts = min(layer.moe.experts for layer in layers if layer.moe is not None)
        return f"{width} expert groups for {experts} experts leave {width - experts} without any"
    phase, _, message = finding.message.partition(": ")
    return message if phase in ("prefill", "decode") else finding.message
