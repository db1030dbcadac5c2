"""PP001: the stages of a phase form one chain in index order, each joined to the next by a pipeline edge.

Reports a missing edge, an edge that runs against the order, and indices that do not count the chain from 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PhaseView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..stage_chain import StageChain, stage_chain


def _misnumbered(chain: StageChain) -> Iterator[Finding]:
    indices = [stage.index for stage in chain.stages]
    wrong = [stage.node for place, stage in enumerate(chain.stages) if stage.index not in (place, None)]
    if wrong:
        yield Finding(
            "misnumbered",
            f"the stages of {label(chain.phase.node)} are numbered {indices} along the chain; they count 0, 1, 2, …",
            where=wrong,
            value=indices,
            expected=list(range(len(indices))),
            remedy="number the stages from 0 in the order of their layers",
            lacks=("PipelineStageNode",),
        )


def _unjoined(chain: StageChain) -> Iterator[Finding]:
    for gap in chain.gaps():
        before, after = gap.before.node, gap.after.node
        link = f"{label(before)} → {label(after)}"
        if gap.turned is not None:
            message = f"the pipeline edge between {label(before)} and {label(after)} runs against the order of stages"
        else:
            message = f"no pipeline edge {link}: the chain of stages is broken there"
        yield Finding(
            "no-edge" if gap.turned is None else "turned-edge",
            message,
            where=gap.turned or after,
            nodes=(before, after),
            value=None if gap.turned is None else [after.id, before.id],
            expected={"source": before.id, "target": after.id, "type": "pipeline"},
            remedy=f"join {link} by a pipeline edge",
            lacks=("PipelineStageNode",),
            unlinked=[(before, after)],
        )


def _backward(chain: StageChain) -> Iterator[Finding]:
    """Edges back over more than one place, if the chain is open between their ends (else they close a cycle)."""
    open_before = [0]
    broken = {chain.place[gap.after.node.position] for gap in chain.gaps()}
    for place in range(1, len(chain.stages)):
        open_before.append(open_before[-1] + (place in broken))
    for edge, source, target in chain.links:
        later, earlier = chain.place[source.position], chain.place[target.position]
        if later > earlier + 1 and open_before[later] > open_before[earlier]:
            yield Finding(
                "backward-edge",
                f"the edge {label(source)} → {label(target)} runs against the order of stages",
                where=edge,
                value=[edge.source_id, edge.target_id],
                remedy="drop the edge",
            )


def decide(_: PlanView, phase: PhaseView) -> Iterator[Finding]:
    """Yield every place where the stages of a phase do not follow one another."""
    chain = stage_chain(phase)
    if chain.lacks_stages():
        return
    if not chain.parallel_positions():
        yield from _misnumbered(chain)
    yield from _unjoined(chain)
    yield from _backward(chain)


RULE = Rule(
    id="PP001",
    name="broken chain of stages",
    requirement=(
        "The stages of a phase form one chain: each has at most one predecessor and one successor, in index order, "
        "joined by explicit pipeline edges."
    ),
    rationale=(
        "A stage computes on the activations of the one before it. Without the edge nothing says that they are sent, "
        "and no time is charged for sending them."
    ),
    source="000 §3.3, 002 §3.2",
    remedy="join each stage to the next by one pipeline edge",
    visits="phase",
    decide=decide,
    bad=Example(
        "dense-pp2-tp2",
        (Edit("remove_edge", value={"source": "r0.decode.s0", "target": "r0.decode.s1", "type": "pipeline"}),),
    ),
)
