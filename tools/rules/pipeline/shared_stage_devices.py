"""PP006: the stages of one phase share no device.

Counts the devices that a stage computes on and those that its exchanges reach. A device may serve prefill and decode.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from ...plan.view import NodeView, PhaseView, PlanView, StageView
from ..base import MAX_NAMES, Edit, Example, Finding, Rule
from ..reading import COMPUTE_TYPES, is_on_too_many, label
from ..sharding import HOLDERS, names, tensor_degree
from ..stage_chain import StageChain, stage_chain

_USES = frozenset({*COMPUTE_TYPES, "AllToAllNode", "EmbeddingNode", "LMHeadNode"})


class _Home(Struct):
    """The devices of a stage: the operators on each, and a node that names it."""

    operators: dict[str, dict[int, NodeView]] = field(default_factory=dict[str, dict[int, NodeView]])
    witness: dict[str, NodeView] = field(default_factory=dict[str, NodeView])


def _home(view: PlanView, stage: StageView, chain: StageChain) -> _Home:
    home = _Home()
    ends = {"EmbeddingNode": chain.stages[0], "LMHeadNode": chain.stages[-1]}
    for node in stage.nodes:
        # An embedding or LM head in another stage than its own is one fault, PP007's.
        if node.type not in _USES or ends.get(node.type, stage) is not stage or is_on_too_many(view, node):
            continue
        grouped = node.type in ("ShardNode", "AllToAllNode")
        operator = node.parent if grouped and node.parent is not None else node
        for device in node.devices:
            home.operators.setdefault(device, {})[operator.position] = operator
            home.witness.setdefault(device, node)
    return home


def _strays(home: _Home, device: str, foreign: _Home) -> bool:
    """Whether only one TP group uses `device`, and has its other shards at home: TP004's fault."""
    operators = list(home.operators[device].values())
    if len(operators) != 1 or operators[0].type not in HOLDERS or tensor_degree(operators[0]) < 2:
        return False
    shards = operators[0].children_of_type("ShardNode")
    return any(at_home not in foreign.operators for shard in shards for at_home in shard.devices)


def decide(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    """Yield each pair of stages of one phase with a device in common."""
    if len(phase.stages) < 2:
        return
    chain = stage_chain(phase)
    homes = [_home(view, stage, chain) for stage in phase.stages]
    first: dict[str, int] = {}
    shared: dict[tuple[int, int], list[str]] = {}
    for place, home in enumerate(homes):
        for device in home.operators:
            owner = first.setdefault(device, place)
            if owner == place or _strays(home, device, homes[owner]) or _strays(homes[owner], device, home):
                continue
            shared.setdefault((owner, place), []).append(device)
    for (owner, place), devices in shared.items():
        stages = (phase.stages[owner].node, phase.stages[place].node)
        nodes = [homes[side].witness[device] for device in devices[:MAX_NAMES] for side in (owner, place)]
        yield Finding(
            "shared-device",
            f"stages {label(stages[0])} and {label(stages[1])} share {', '.join(devices[:MAX_NAMES])}: {names(nodes)}",
            where=stages[1],
            nodes=(*stages, *nodes),
            value=sorted(devices),
            expected=[],
        )


_STAGE = "r0.decode.s1.b0"
_DEVICES = ["n0.g0"]

RULE = Rule(
    id="PP006",
    name="shared stage devices",
    requirement="Stages of one phase share no device; PP replicates neither TP nor EP groups.",
    rationale=(
        "Stages work at the same time on different requests: a device in two of them would do both shares, and hold "
        "the weights of both."
    ),
    source="003 §5",
    fix="re-plan",
    remedy="give each stage devices of its own",
    visits="phase",
    decide=decide,
    bad=Example(
        "dense-pp4",
        tuple(Edit("set", f"{_STAGE}.{leaf}", "devices", _DEVICES) for leaf in ("attn.shard", "attn.kv", "ffn.shard")),
    ),
)
