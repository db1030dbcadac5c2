"""EN004 (warning): stages with another cut than the engine's default need its override.

The three engines put the remainder of layers / stages in three different places. The plan stays legal: the finding
names the setting that makes the engine run it. A plan without an engine has no default to differ from.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.degrees import phase_degrees
from ...plan.view import NodeView, PlanView
from ..base import Example, Finding, Rule, served_by
from ..reading import named_engine


def check(view: PlanView) -> Iterator[Finding]:
    """Yield phases whose stages are not the engine's default, once for like replicas."""
    engine = named_engine(view)
    if engine is None:
        return
    by_cut: dict[tuple[str, tuple[int, ...]], list[NodeView]] = {}
    for phase in view.phases:
        cut = phase_degrees(view, phase).cut
        if cut is not None and len(cut) > 1 and cut != engine.default_cut(sum(cut), len(cut)):
            by_cut.setdefault((phase.phase or "", cut), []).append(phase.node)
    for (phase_name, cut), nodes in by_cut.items():
        default = engine.default_cut(sum(cut), len(cut))
        yield Finding(
            "other-cut",
            f"{phase_name}: stages of {', '.join(map(str, cut))} layers, which {engine.title} would cut into "
            f"{', '.join(map(str, default))} by itself",
            where=nodes,
            value=list(cut),
            expected=list(default),
            remedy=f"start the engine with {engine.cut_setting(cut)}, or cut as it does",
        )


RULE = Rule(
    id="EN004",
    name="unusual stage cut",
    severity="warning",
    requirement="Stages are cut as the named engine cuts them by itself, or its override is set.",
    rationale=(
        "Where the layers do not divide by the stages, vLLM gives one more to the stages from the last but one "
        "backwards, SGLang to the last, TensorRT-LLM to the first: without an override the engine runs, and fills "
        "memory by, another plan than this one."
    ),
    source="vLLM 0.33.0 distributed/utils.py; SGLang 0.5.23 distributed/utils.py; TensorRT-LLM mapping.py",
    fix="none",
    remedy="set the engine's override, or cut as it does",
    check=check,
    good=Example(edits=(served_by("vllm"),)),
    bad=Example("dense-pp3", (served_by("sglang"),)),
)
