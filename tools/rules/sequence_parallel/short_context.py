"""SP004 (warning): sequence parallelism is for long prompts.

Below the stated length a prompt's attention is usually too small a part of prefill to pay for the exchange of K and V.
There is no finding if the estimated prefill is clearly shorter than with the same devices as TP; in a faulty graph the
length decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...catalog.architecture import Architecture
from ...performance.layout import LoadedLayout, layout_from_view
from ...plan.layout import PhaseLayout, StageLayout
from ...plan.view import NodeView, PlanView, as_int
from ..base import Example, Finding, Rule, set_top
from ..legality import Case, DegreeLimit, Fault
from ..performance.claims import TOLERANCE
from ..sharding import sequence_degree

LONG_PROMPT_TOKENS = 8192


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the prefill attention operators with SP if prompts are short."""
    tokens = as_int(view.workload.get("input_tokens"))
    if tokens is None or tokens >= LONG_PROMPT_TOKENS:
        return
    split: list[NodeView] = [
        node
        for phase in view.phases
        if phase.phase == "prefill"
        for stage in phase.stages
        for node in stage.operators
        if node.type == "AttentionNode" and sequence_degree(node) > 1
    ]
    if split and not _beats_tp(view):
        yield Finding(
            "short-prompts",
            f"prefill uses SP {sequence_degree(split[0])} for prompts of {tokens} tokens; it is for "
            f"{LONG_PROMPT_TOKENS} and more",
            where=split,
            value=tokens,
            expected=LONG_PROMPT_TOKENS,
        )


def _beats_tp(view: PlanView) -> bool:
    """Whether the estimated prefill is shorter than on the same devices as TP, by more than the tolerance."""
    if not view.is_sound:
        return False
    layout = layout_from_view(view)
    phase = layout.phase("prefill")
    tp = _widest_tp(layout.setting.architecture, phase.degrees.sp * phase.degrees.tp)
    instead = phase.degrees.model_copy(update={"tp": tp, "sp": 1, "sp_kind": None})
    other = replace(phase, degrees=instead, stages=tuple(_on_first(phase, tp)))
    return _prefill_seconds(layout, phase) < _prefill_seconds(layout, other) * (1 - TOLERANCE)


def _on_first(phase: PhaseLayout, tp: int) -> Iterator[StageLayout]:
    """The stages with attention on as many of its devices as `tp` can use."""
    width = tp * phase.attention_groups
    return (replace(stage, attention_devices=stage.attention_devices[:width]) for stage in phase.stages)


def _widest_tp(architecture: Architecture, most: int) -> int:
    """The largest TP that divides `most` devices and the query heads."""
    specs = [layer.attention for layer in architecture.layers if layer.attention is not None]
    heads = {spec.query_heads for spec in specs}
    return max(tp for tp in range(1, most + 1) if most % tp == 0 and all(count % tp == 0 for count in heads))


def _prefill_seconds(layout: LoadedLayout, phase: PhaseLayout) -> float:
    """Seconds of one prompt."""
    # The performance model is needed only if short prompts are split.
    from ...performance.pass_loads import prefill_loads
    from ...performance.schedule import PhaseTimer

    return PhaseTimer(layout.setting, phase).prefill(prefill_loads(layout.setting, 1)).seconds


def _short(case: Case) -> Iterator[Fault]:
    tokens = case.conditions.input_tokens
    if case.degrees.phase == "prefill" and case.degrees.sp > 1 and tokens is not None and tokens < LONG_PROMPT_TOKENS:
        message = f"sp {case.degrees.sp} for prompts of {tokens} tokens; it is for {LONG_PROMPT_TOKENS} and more"
        yield Fault("short-prompts", message, tokens, LONG_PROMPT_TOKENS, severity="warning")


RULE = Rule(
    id="SP004",
    name="SP for short prompts",
    severity="warning",
    requirement=(
        "SP only for long context: below 8,192 input tokens it is not worth its communication unless the estimate "
        "beats the same devices used as TP."
    ),
    rationale=(
        "The work that SP splits and TP does not grows with the square of the prompt, the exchange of K and V with its "
        "length; below some thousand tokens the same devices do more as TP."
    ),
    source="004 §4.5",
    fix="re-plan",
    remedy="use the devices as tp",
    check=check,
    limits=(DegreeLimit(("sp", "phase"), _short),),
    bad=Example("dense-sp2-tp2", (set_top("/workload/input_tokens", 2048),)),
    rests_on_estimate=True,
)
