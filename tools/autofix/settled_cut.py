"""Settles the layers that the stages of a phase are meant to have if the declaration and the graph differ.

Layers are as most branches have them, else as stated; if nothing is stated, the other phase's branches in the same
replicas count too. Stages that cover the model except for an offset of all layers are counted from their first layer.
If no branch covers the model, the cut is the even one, unless most remains of the graph suggest another. Legality is
not checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..plan.branches import PhaseView, StageView
from ..plan.degrees import PhaseDegrees
from ..plan.elements import as_int, as_list
from ..plan.placement import even_cut
from .settled import PhaseClaims

Cut = tuple[int, ...]


def settled_cut(claims: PhaseClaims, other: PhaseClaims, total: int) -> Cut | None:
    """Layers of each stage, with `other` the other phase; `None` if nothing gives a cut of all `total` layers.

    Between cuts of equally many branches the declaration decides, then the phase itself, then the even cut.
    """
    cuts, others = _whole_cuts(claims, total), _whole_cuts(other, total)
    stated = stage_sizes(claims.block.get("stage_layers"))
    stated = stated if stated is not None and sum(stated) == total else None
    declared_pp = claims.declared("pp")
    if claims.keep_strategy and declared_pp is not None and declared_pp <= total:
        cuts = Counter({cut: votes for cut, votes in cuts.items() if len(cut) == declared_pp})
        if stated is not None or not cuts:
            return stated if stated is not None else even_cut(total, declared_pp)
    if cuts:
        votes = cuts.copy()
        if stated is None and _of_one_replica(claims, other):
            votes.update({cut: others[cut] for cut in others if len(cut) in set(map(len, cuts))})
        return min(
            votes,
            key=lambda cut: (
                -votes[cut], cut != stated, len(cut) != declared_pp, -cuts[cut], -others[cut],
                cut != even_cut(total, len(cut)), cut,
            ),
        )  # fmt: skip
    return stated if stated is not None else _suggested(claims, others, total)


def stage_sizes(value: object) -> Cut | None:
    """Layers of each stage as a document lists them; `None` if that is no list of positive integers."""
    sizes = [as_int(size) for size in as_list(value)]
    whole = [size for size in sizes if size is not None and size >= 1]
    return tuple(whole) if whole and len(whole) == len(sizes) else None


def numbered_stages(branch: PhaseView) -> list[tuple[int, StageView]]:
    """The stages of a branch, numbered by their layers if these run on, else by their indices or places."""
    by_layers = sorted(branch.stages, key=lambda stage: stage.layers or (-1, -1))
    if _run_on(by_layers):
        return list(enumerate(by_layers))
    indices = [-1 if stage.index is None else stage.index for stage in branch.stages]
    whole = 0 in indices and min(indices) == 0 and len(set(indices)) == len(indices)
    return [(index if whole else place, branch.stages[place]) for place, index in enumerate(indices)]


def _run_on(stages: Sequence[StageView]) -> Cut | None:
    """Layers of each stage if each begins right after the one before; `None` otherwise."""
    spans = [stage.layers for stage in stages if stage.layers is not None]
    runs_on = all(after[0] == before[1] + 1 for before, after in pairwise(spans))
    if not spans or len(spans) < len(stages) or not runs_on:
        return None
    return tuple(last - first + 1 for first, last in spans)


def _whole_cuts(claims: PhaseClaims, total: int) -> Counter[Cut]:
    """The cuts of the whole model that branches show, with their counts; only where the blocks agree."""
    cuts = (
        (_run_on([stage for _, stage in numbered_stages(branch.phase)]), _of_blocks(branch))
        for branch in claims.branches
    )
    return Counter(
        cut for cut, of_blocks in cuts if cut and sum(cut) == total and min(cut) >= 1 and of_blocks in (None, cut)
    )


def _of_blocks(branch: PhaseDegrees) -> Cut | None:
    """The cut that the blocks of a branch show; `None` if layers between two stages are missing or overlap."""
    spans = [_span(stage) for _, stage in numbered_stages(branch.phase)]
    whole = [span for span in spans if span is not None]
    begins = [0, *(last + 1 for _, last in whole)]
    if len(whole) < len(spans) or [first for first, _ in whole] != begins[:-1]:
        return None
    return tuple(after - before for before, after in pairwise(begins))


def _of_one_replica(claims: PhaseClaims, other: PhaseClaims) -> bool:
    """Whether replicas serve both phases."""
    replicas, others = ({id(branch.phase.replica) for branch in either.branches} for either in (claims, other))
    return not replicas.isdisjoint(others)


def _suggested(claims: PhaseClaims, others: Counter[Cut], total: int) -> Cut | None:
    """The cut that most remains of the graph suggest, else the even cut with as many stages as the most frequent."""
    declared_pp = claims.declared("pp")
    votes = Counter(cut for branch in claims.branches for cut in _shared_out(claims.branches, branch, total))
    votes = votes or Counter(cut for branch in claims.branches for cut in _pieced(branch, total))
    votes.update(others)
    fitting = {cut: count for cut, count in votes.items() if declared_pp in (None, len(cut))}
    if not fitting or not claims.branches:
        return None
    usual = min(fitting, key=lambda cut: (-fitting[cut], cut != even_cut(total, len(cut)), cut))
    return usual if 2 * fitting[usual] > sum(fitting.values()) else even_cut(total, len(usual))


def _shared_out(branches: Sequence[PhaseDegrees], branch: PhaseDegrees, total: int) -> Iterator[Cut]:
    """The cut of a branch scaled to the whole model, if the branches divide its layers among them (rule DP003)."""
    spans = [[stage.layers for _, stage in numbered_stages(sibling.phase)] for sibling in branches]
    flat = sorted(span for stages in spans for span in stages if span is not None)
    whole = len(flat) == sum(map(len, spans)) and flat and flat[0][0] == 0 and flat[-1][1] == total - 1
    if len(spans) < 2 or not whole or any(after[0] != before[1] + 1 for before, after in pairwise(flat)):
        return
    sizes = [span[1] - span[0] + 1 for _, stage in numbered_stages(branch.phase) if (span := stage.layers) is not None]
    if all(size > 0 and size * total % sum(sizes) == 0 for size in sizes):
        yield tuple(size * total // sum(sizes) for size in sizes)


def _pieced(branch: PhaseDegrees, total: int) -> Iterator[Cut]:
    """The cuts that the first, or the last, layers of stages and of their blocks suggest."""
    stages = [stage for _, stage in numbered_stages(branch.phase)]
    for spans in ([_span(stage) for stage in stages], [stage.layers for stage in stages]):
        whole = [span for span in spans if span is not None]
        if not stages or len(whole) < len(stages):
            continue
        firsts = [0, *(first for first, _ in whole[1:]), total]
        ends = [0, *(last + 1 for _, last in whole[:-1]), total]
        for bounds in (firsts, ends):
            sizes = tuple(after - before for before, after in pairwise(bounds))
            if all(size >= 1 for size in sizes):
                yield sizes


def _span(stage: StageView) -> tuple[int, int] | None:
    """First and last layer of the stage's blocks."""
    known = [span for block in stage.blocks if (span := block.layers) is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None
