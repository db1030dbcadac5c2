"""PP007: the embedding sits in the first stage only, the LM head in the last only.

Reports one that is missing, doubled or in another stage.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PhaseView, PlanView, StageView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..stage_chain import StageChain, stage_chain

_NAMES = {"EmbeddingNode": "embedding", "LMHeadNode": "LM head"}


def _faults(chain: StageChain, node_type: str, home: StageView, end: str) -> Iterator[Finding]:
    name = _NAMES[node_type]
    parallel = chain.parallel_positions()
    if home.node.position in parallel:
        # If stages run in parallel (PP002), the end is open: take the stage that has the node.
        branches = [stage for stage in chain.stages if stage.node.position in parallel]
        home = next((stage for stage in branches if stage.node.children_of_type(node_type)), home)
    at_home = home.node.children_of_type(node_type)
    elsewhere = [node for stage in chain.stages if stage is not home for node in stage.node.children_of_type(node_type)]
    for node in elsewhere:
        stage = node.parent
        assert stage is not None
        yield Finding(
            "wrong-stage",
            f"{name} {label(node)} sits in stage {label(stage)}; its place is the {end} stage, {label(home.node)}",
            where=node,
            value=stage.id,
            expected=home.node.id,
        )
    for node in at_home[1:]:
        yield Finding(
            "second",
            f"stage {label(home.node)} has a second {name}, {label(node)}",
            where=node,
            nodes=(at_home[0],),
            value=len(at_home),
            expected=1,
        )
    # A node elsewhere below the phase is misplaced (ST003).
    if not at_home and not elsewhere and all(node.type != node_type for node in chain.phase.node.descendants()):
        yield Finding(
            "missing",
            f"the {end} stage, {label(home.node)}, has no {name}", where=home.node, value=0, expected=node_type,
            lacks=(node_type, "PipelineStageNode"),
        )  # fmt: skip


def _is_at_the_end(view: PlanView, home: StageView, end: str) -> bool:
    """Whether the model begins or ends with this stage's layers; if not, the stage of the end is missing (PP004)."""
    if home.layers is None:
        return True
    if end == "first":
        return home.layers[0] <= 0
    return view.num_layers is None or home.layers[1] >= view.num_layers - 1


def decide(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    """Yield every embedding and LM head that is not where activations enter and leave the phase."""
    chain = stage_chain(phase)
    if not chain.stages:
        return
    first, last = chain.stages[0], chain.stages[-1]
    for node_type, home, end in (("EmbeddingNode", first, "first"), ("LMHeadNode", last, "last")):
        if _is_at_the_end(view, home, end):
            yield from _faults(chain, node_type, home, end)


_SECOND = {"id": "again", "type": "EmbeddingNode", "parent": "r0.decode.s1", "devices": ["n0.g1"]}

RULE = Rule(
    id="PP007",
    name="misplaced embedding or LM head",
    requirement="The embedding sits in the first stage only, the LM head in the last only.",
    rationale="Tokens enter at the first layer and logits leave after the last; a second table is memory for nothing.",
    source="001 §05",
    remedy="keep one embedding in the first stage and one LM head in the last",
    visits="phase",
    decide=decide,
    bad=Example(
        "dense-pp4",
        (
            Edit("add_node", value=_SECOND),
            Edit("add_edge", value={"source": "again", "target": "r0.decode.s1.b0", "type": "data"}),
        ),
    ),
)
