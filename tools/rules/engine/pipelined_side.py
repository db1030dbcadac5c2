"""EN012: vLLM, and early versions of SGLang, do not run the replicas of one phase as pipelines.

It needs a plan that names the engine; without a version the newest is assumed. How connectors of vLLM other than NIXL's
do is not known here: of a plan that keeps one nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...engines.release import release_of
from ...plan.degrees import phase_degrees
from ...plan.document import PHASES, Phase
from ...plan.view import NodeView, PlanView, as_str
from ..base import Example, Finding, Rule, served_by
from ..legality import Conditions, Fault, Pipeline
from ..reading import named_engine


def check(view: PlanView) -> Iterator[Finding]:
    """Yield phases whose stages the version of the engine cannot run, once for like replicas."""
    engine, version = named_engine(view), as_str(view.serving.get("engine_version"))
    flags = str(view.serving.get("flags"))
    if engine is None or ("kv_connector" in flags and "Nixl" not in flags):
        return
    branches: dict[Phase, list[NodeView]] = {}
    stages: dict[Phase, int] = {}
    for phase in view.phases:
        name = phase.phase
        if name not in PHASES or phase.replica is None or engine.pipelines_side(release_of(version), name):
            continue
        count = phase_degrees(view, phase).pp
        if count is not None and count > 1 and len(view.served[phase.replica.position]) == 1:
            branches.setdefault(name, []).append(phase.node)
            stages[name] = count
    for name, nodes in branches.items():
        first = ".".join(map(str, engine.first_pipelined[name] or ()))
        since, remedy = f", in several only from {first} on", f"state a version from {first} on, or give {name} pp 1"
        release = f"{engine.title} {version or ''}".rstrip()
        yield Finding(
            "several-stages",
            f"{name} replicas of {stages[name]} stages; {release} runs a server of {name} alone in one "
            f"stage{since if first else ''}",
            where=nodes,
            value=stages[name],
            expected=1,
            remedy=remedy if first else f"give {name} pp 1",
        )


def _stages(conditions: Conditions, pipeline: Pipeline) -> Iterator[Fault]:
    engine, phase = conditions.engine, pipeline.phase
    if engine is None or not pipeline.is_alone or pipeline.stages == 1:
        return
    if not engine.pipelines_side(conditions.release, phase):
        message = f"{engine.title} of that version runs replicas of {phase} alone in one stage"
        yield Fault("several-stages", message, pipeline.stages, 1)


RULE = Rule(
    id="EN012",
    name="pipelined side",
    requirement=(
        "In a plan that names vLLM, or SGLang before 0.5.7, replicas that only decode have pp 1; in one that names "
        "SGLang before 0.5.1, also those that only prefill."
    ),
    rationale=(
        "A server of one phase waits for caches between its steps, which each stage has to do in step with the others. "
        "SGLang has an event loop for that in prefill servers since 0.5.1 and in decode servers since 0.5.7; before, "
        "such a server does not start. vLLM's NIXL connector counts what has come for each rank of a decode server, "
        "and refuses stages there."
    ),
    source=(
        "sgl-project/sglang pull requests 8846 and 14945; managers/scheduler.py of 0.4.8, 0.5.1, 0.5.6 and 0.5.7; "
        "vllm/distributed/kv_transfer/kv_connector/v1/nixl/base_worker.py of vLLM 0.33.0"
    ),
    fix="re-plan",
    remedy="state a newer version, or give these replicas pp 1",
    check=check,
    pipeline_faults=_stages,
    good=Example(edits=(served_by("sglang", engine_version="0.5.7"),)),
    bad=Example("disaggregated-pp2", (served_by("sglang", engine_version="0.4.8"),)),
)
