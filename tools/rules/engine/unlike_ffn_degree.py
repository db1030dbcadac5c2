"""EN009: vLLM and SGLang split a dense FFN by a degree that follows from attention's.

It needs a plan that names one of them. TensorRT-LLM lowers the degree of an FFN by itself; how vLLM runs a shared
expert under attention DP depends on the transport of its experts and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...engines.engine import Engine
from ...plan.view import NodeView, PhaseView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..degrees import Reading, phase_degrees
from ..engines import named_engine
from ..reading import Enclosing, stage_devices

_MAX_NAMED = 64
_Legal = tuple[int, ...]


class _Attention:
    """Ranks of one attention group of a phase, groups left out."""

    def __init__(self, view: PlanView, phase: PhaseView) -> None:
        degrees = phase_degrees(view, phase)
        self.ffn: list[Reading] = list(degrees.readings.get("tp_ffn", ()))
        sizes = [degrees.usual(name) or 1 for name in ("tp", "sp", "kv_sp")]
        self.ranks = sizes[0] * sizes[1] * sizes[2] if degrees.usual("tp") is not None else None
        self.groups = degrees.usual("attention_dp") or 1


def _legal(engine: Engine, node: NodeView, attention: _Attention, width: int, *, is_moe: bool) -> _Legal | None:
    """The degrees that `engine` gives the FFN `node` of a stage of `width` devices; `None` where that is not known."""
    shared = node.parent is not None and node.parent.type == "MoENode"
    # What runs a shared expert beside groups is not known.
    ranks = None if shared and attention.groups > 1 else attention.ranks
    return engine.ffn_degrees(width, ranks, is_moe=is_moe)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield, for each phase, the degrees of dense FFNs that the engine has no setting for."""
    engine = named_engine(view)
    if engine is None or view.architecture is None:
        return
    enclosing = Enclosing("PipelineStageNode")
    widths = {stage.node.position: len(stage_devices(stage)) for stage in view.stages}
    for phase in view.phases:
        attention = _Attention(view, phase)
        found: dict[tuple[int, tuple[int, ...]], list[NodeView]] = {}
        for reading in attention.ffn:
            stage = enclosing.of(reading.operator)
            width = widths.get(stage.position, 0) if stage is not None else 0
            legal = _legal(engine, reading.operator, attention, width, is_moe=view.architecture.is_moe)
            if legal is not None and reading.value not in legal:
                found.setdefault((reading.value, legal), []).append(reading.operator)
        for (degree, legal), nodes in found.items():
            yield Finding(
                f"{phase.phase}: tp_ffn {degree}, where {engine.title} would run the FFN on "
                f"{' or '.join(map(str, legal))} ranks",
                where=nodes[0],
                nodes=nodes[:_MAX_NAMED],
                value=degree,
                expected=list(legal),
            )


_BASE = "relaxed-attention-dp2-ep4"

RULE = Rule(
    id="EN009",
    name="unlike FFN degree",
    severity="error",
    requirement=(
        "In a plan that names vLLM, tp_ffn is the ranks of an attention group (sp × kv_sp × tp); in one that names "
        "SGLang, all devices of the stage, or 1 in a model with experts."
    ),
    rationale=(
        "One number sets the tensor parallelism of all of vLLM's layers. SGLang runs a dense FFN over the whole tensor "
        "group or, with --moe-dense-tp-size 1, whole on each rank."
    ),
    source="vLLM 0.33.0 config/parallel.py; SGLang 0.5.23 arg_groups/validation_hook.py (moe_dense_tp)",
    fix="re-plan",
    remedy="set tp_ffn to one of the degrees that the engine has",
    check=check,
    good=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "vllm"}),)),
    bad=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "sglang"}),)),
)
