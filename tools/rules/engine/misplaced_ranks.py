"""EN013: each node of a replica starts equally many ranks, consecutive in the order of the engine.

It needs a plan that names its engine, and reads only the devices of the stages and of attention.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from ...engines.engine import Engine
from ...plan.degrees import phase_degrees
from ...plan.devices import in_rank_order, node_shares
from ...plan.stage_reading import read_stage
from ...plan.view import NodeView, PhaseView, PlanView, places_of
from ..base import Example, Finding, Rule, served_by
from ..legality import Conditions, Fault, Pipeline
from ..reading import named_engine

_MAX_COUNTS = 16


def check(view: PlanView) -> Iterator[Finding]:
    """Yield replicas whose ranks the engine cannot start as the plan places them, once for like replicas."""
    engine = named_engine(view)
    if engine is None:
        return
    by_message: dict[str, list[Finding]] = {}
    for served in view.served.values():
        phases = list(chain(*served.values()))
        names = frozenset[str]().union(*(stage.settled_devices for phase in phases for stage in phase.stages))
        counts = Counter(node for node, _ in places_of(names))
        if len(set(counts.values())) > 1:
            where = phases[0].replica or phases[0].node
            misplaced = [_uneven(where, [counts[node] for node in sorted(counts)], engine)]
        else:
            misplaced = [_out_of_order(view, phase, engine) for phase in phases] if len(counts) > 1 else []
        for finding in filter(None, misplaced):
            by_message.setdefault(finding.message, []).append(finding)
    for alike in by_message.values():
        yield replace(alike[0], where=[finding.where for finding in alike if isinstance(finding.where, NodeView)])


def _uneven(replica: NodeView, counts: list[int], engine: Engine) -> Finding:
    return Finding(
        "uneven-nodes",
        f"a replica has {_listed(counts)} devices on its {len(counts)} nodes; {engine.title} starts as many processes "
        "on each",
        where=replica,
        value=counts[:_MAX_COUNTS],
        expected="as many devices on each node",
    )


def _out_of_order(view: PlanView, phase: PhaseView, engine: Engine) -> Finding | None:
    """Why an engine cannot start the ranks of a phase on several nodes with equal numbers; `None` if it can."""
    groups = phase_degrees(view, phase).usual("attention_dp")
    stages = [read_stage(stage).attention.devices or stage.ordered_devices for stage in phase.stages]
    if groups is None or any(len(stage) % groups for stage in stages):
        return None
    shares = node_shares(in_rank_order(stages, groups, engine.rank_order))
    nodes = [share.node for share in shares]
    if len(nodes) > len(set(nodes)):
        return Finding(
            "scattered-ranks",
            f"{phase.phase}: {_scattered(engine, len(phase.stages), groups)}",
            where=phase.node,
            value=nodes[:_MAX_COUNTS],
            expected="ranks that follow each other on each node",
        )
    lists = list(dict.fromkeys(share.gpus for share in shares))
    if engine.names_gpus_once and len(lists) > 1:
        return Finding(
            "unlike-gpus",
            f"{phase.phase}: ranks are on GPUs {_listed(lists[0])} of one node and {_listed(lists[1])} of another; "
            f"{engine.title} hands all nodes one list",
            where=phase.node,
            value=[list(gpus) for gpus in lists[:_MAX_COUNTS]],
            expected="the same GPUs of each node",
        )
    return None


def _scattered(engine: Engine, stages: int, groups: int) -> str:
    order = "stage by stage" if engine.rank_order == "stages" else "attention group by group, in each stage by stage"
    return (
        f"the ranks of {groups} attention groups in {stages} stages, which {engine.title} starts {order}, do not "
        "follow each other on their nodes"
    )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:_MAX_COUNTS]))


def _misplaced(conditions: Conditions, pipeline: Pipeline) -> Iterator[Fault]:
    """Faults of a pipeline as `place` lays it out: stages inside a node if they fit, others on whole nodes."""
    engine, stages, node = conditions.engine, pipeline.stages, pipeline.gpus_per_node
    if engine is None or stages * pipeline.devices <= node:
        return
    per_node = node // pipeline.devices
    if per_node >= 2 and stages % per_node:
        message = f"{stages} stages, {per_node} to a node, leave the last node with fewer"
        yield Fault("uneven-nodes", message, stages, f"a multiple of {per_node}")
    is_mixed = engine.rank_order == "groups" and stages > 1 and pipeline.groups > 1
    if is_mixed and pipeline.devices // pipeline.groups % node:
        yield Fault("scattered-ranks", _scattered(engine, stages, pipeline.groups), stages, 1)


RULE = Rule(
    id="EN013",
    name="misplaced ranks",
    requirement=(
        "In a plan that names its engine, a replica on several nodes has as many devices on each of them, and the "
        "ranks of each node follow each other: stage by stage, in vLLM attention group by group and in each so. "
        "In TensorRT-LLM they are the same GPUs of each node."
    ),
    rationale=(
        "Engines divide the ranks of a replica by the number of nodes and start that many processes on each, in the "
        "order of the ranks: three stages over two nodes are refused at the start, and where the product divides, "
        "other devices are used than the plan names. vLLM's data parallelism is the outermost rank, so that stages of "
        "several attention groups stand node by node only where each group's part of a stage is whole nodes. "
        "TensorRT-LLM's ranks are started by mpirun, with one list of GPUs for all nodes."
    ),
    source=(
        "SGLang arg_groups/validation_hook.py ((tp x pp) % nnodes == 0); vLLM engine/arg_utils.py (nnodes), "
        "distributed/parallel_state.py; TensorRT-LLM mapping.py (gpus_per_node)"
    ),
    fix="re-plan",
    remedy=(
        "choose a number of stages that its nodes divide, one stage or one attention group, or keep the replica on one "
        "node"
    ),
    check=check,
    pipeline_faults=_misplaced,
    bad=Example("dense-pp3-two-nodes", (served_by("sglang"),)),
)
