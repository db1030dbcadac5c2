"""PE006: a claimed figure matches the critical path of the graph, and the `bytes` of an edge what it carries.

Figures that another rule names more exactly are left to it, and so is what follows from these. A latency that was
divided by degrees instead of computed is named as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule, Violation
from ..evaluation import evaluation_of
from ..findings import Change, steps_of
from .attribution import faults_of, finding_of
from .claims import claim_of, recomputed
from .edge_payloads import misfits


def _has_sized_edge(view: PlanView) -> bool:
    examples = view.elements.examples()
    edges = chain(edge.raw for edge in view.whole.edges) if examples is None else iter(examples[1])
    return any(edge.get("bytes") is not None for edge in edges)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield claimed figures that are off, and edges that are said to carry what they do not."""
    has_sizes = _has_sized_edge(view)
    if not (claim_of(view) or has_sizes):
        return
    evaluation = evaluation_of(view)
    for fault in faults_of(view, "PE006"):
        profile = "" if evaluation.estimate is None else f" (profile {evaluation.estimate.calibration.profile})"
        says = f"it is {fault.why}" if fault.why else "that is not what the graph takes"
        yield finding_of("divided-by-degrees" if fault.why else "figure-off", fault, f"{says}{profile}")
    if has_sizes and evaluation.layout is not None:
        for misfit in misfits(view, evaluation.layout):
            yield Finding(
                "edge-bytes",
                f"the edge is said to carry {misfit.claimed:,} bytes; what travels there is not that much or little, "
                f"the nearest reading is {misfit.nearest:,}",
                where=misfit.edge,
                value=misfit.claimed,
                expected=misfit.nearest,
                remedy="leave bytes out, or give those of a pass of the phase",
            )


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """The figures computed again, or left out where they cannot be; for an edge the nearest size that it may carry."""
    if violation.edges:
        steps = steps_of(violation.path, view.raw) or ()
        if len(steps) >= 2 and isinstance(violation.expected, int):
            yield Change("set", (*steps[:2], "bytes"), violation.expected, edges=violation.edges)
    elif violation.path == "/performance":
        yield Change("remove", ("performance",))
    else:
        yield from recomputed(view, violation)


RULE = Rule(
    id="PE006",
    name="figure off the critical path",
    requirement=(
        "A claimed figure matches what is computed on the critical path of the graph, within 5%; latency is not scaled "
        "by a product of degrees. `bytes` on an edge is a claim too."
    ),
    rationale=(
        "latency ≠ time on one device / (tp × pp × ep): what is replicated is not divided, collectives come on top, "
        "stages follow one another, and the slowest expert group sets the pace. Only the longest path counts all of it."
    ),
    source="004 §5, §8",
    remedy="replace the value by what `estimate` computes on the graph, or leave the field out",
    check=check,
    good=Example("dense-pp2-tp2", (Edit("evaluate"), Edit("scale", field="/performance/latency/ttft_ms", value=1.03))),
    bad=Example("dense-tp4", (Edit("evaluate"), Edit("scale", field="/performance/latency/ttft_ms", value=0.25))),
    rests_on_estimate=True,
    mend=mend,
)
