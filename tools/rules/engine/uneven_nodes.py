"""EN013: vLLM and SGLang start as many processes of a replica on each of its nodes.

It needs a plan that names one of them and reads the devices of the stages alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...plan.elements import parse_device
from ...plan.view import NodeView, PlanView
from ..base import MAX_NODES, Edit, Example, Finding, Rule
from ..legality import Conditions, Fault, Pipeline
from ..reading import named_engine, stage_devices

_MAX_COUNTS = 16


def check(view: PlanView) -> Iterator[Finding]:
    """Yield, once for like replicas, those that have more devices on one of their nodes than on another."""
    engine = named_engine(view)
    if engine is None or not engine.fills_nodes_alike:
        return
    devices: dict[int, set[str]] = {}
    replicas: dict[int, NodeView] = {}
    for phase in view.phases:
        if phase.replica is not None:
            replicas[phase.replica.position] = phase.replica
            of_replica = devices.setdefault(phase.replica.position, set())
            of_replica.update(device for stage in phase.stages for device in stage_devices(stage))
    by_counts: dict[tuple[int, ...], list[NodeView]] = {}
    for position, names in devices.items():
        places = map(parse_device, names)
        counts = Counter(place[0] for place in places if place is not None)
        if len(set(counts.values())) > 1:
            by_counts.setdefault(tuple(counts[node] for node in sorted(counts)), []).append(replicas[position])
    for counts, nodes in by_counts.items():
        yield Finding(
            "uneven-nodes",
            f"a replica has {', '.join(map(str, counts[:_MAX_COUNTS]))} devices on its {len(counts)} nodes; "
            f"{engine.title} starts as many processes on each",
            where=nodes[0],
            nodes=nodes[:MAX_NODES],
            value=list(counts[:_MAX_COUNTS]),
            expected="as many devices on each node",
        )


def _uneven(conditions: Conditions, pipeline: Pipeline) -> Iterator[Fault]:
    engine, stages, per_node = conditions.engine, pipeline.stages, pipeline.gpus_per_node // pipeline.devices
    if engine is None or not engine.fills_nodes_alike:
        return
    # Stages that fit into a node are placed inside one.
    if stages > per_node >= 2 and stages % per_node:
        message = f"{stages} stages, {per_node} to a node, leave the last node with fewer"
        yield Fault("uneven-nodes", message, stages, f"a multiple of {per_node}")


_BASE = "dense-pp3-two-nodes"

RULE = Rule(
    id="EN013",
    name="uneven nodes",
    requirement="In a plan that names vLLM or SGLang, a replica on several nodes has as many devices on each of them.",
    rationale=(
        "They divide the ranks of a replica by the number of nodes and start that many processes on each: three stages "
        "over two nodes are refused at the start, and where the product divides, other devices are used than the plan "
        "names."
    ),
    source="SGLang arg_groups/validation_hook.py ((tp x pp) % nnodes == 0); vLLM engine/arg_utils.py (nnodes)",
    fix="re-plan",
    remedy="choose a number of stages that its nodes divide, or keep the replica on one node",
    check=check,
    pipeline_faults=_uneven,
    good=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "trtllm"}),)),
    bad=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "sglang"}),)),
)
