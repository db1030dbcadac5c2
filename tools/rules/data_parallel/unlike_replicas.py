"""DP005: replicas are alike: the same stages and degrees, phase by phase that they serve.

Compares what each replica shows as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...plan.degrees import DEGREE_NAMES, PhaseDegrees, declared_degree, phase_degrees, root_replicas
from ...plan.view import PHASES, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label, unlike_phases

_Shape = dict[str, int | tuple[int, ...]]


def _shape(view: PlanView, branch: PhaseDegrees) -> _Shape:
    """The compared values: stages, layers of each, and the usual value of each degree, as far as readable."""
    shape: _Shape = {}
    if branch.cut is not None:
        shape["pp"] = len(branch.cut)
        shape["layers of the stages"] = branch.cut
    name = branch.phase.phase or ""
    for degree in DEGREE_NAMES:
        usual = branch.usual(degree, declared_degree(view, name, degree))
        if usual is not None:
            shape[degree] = usual
    return shape


def _common(shapes: list[_Shape], declared: Mapping[str, int | None]) -> _Shape:
    """The most frequent value of each item; in a draw the declared one, else the first."""
    common: _Shape = {}
    for key in dict.fromkeys(key for shape in shapes for key in shape):
        counts = Counter(shape[key] for shape in shapes if key in shape)
        common[key] = max(counts, key=lambda value: (counts[value], value == declared.get(key)))
    return common


def _differences(shape: _Shape, common: _Shape) -> dict[str, tuple[object, object]]:
    unlike: dict[str, tuple[object, object]] = {
        key: (value, common[key]) for key, value in shape.items() if value != common[key]
    }
    if "pp" in unlike:
        unlike.pop("layers of the stages", None)
    return unlike


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every replica that differs from the others that serve the same phase."""
    counted = {replica.position for replica in root_replicas(view)}
    if len(counted) < 2 or not {phase.phase for phase in view.phases}.issuperset(PHASES):
        # A phase that nobody serves was given the name of the other (PH001).
        return
    for name in PHASES:
        phases = [
            phase
            for phase in view.phases
            if phase.phase == name and phase.stages and phase.replica is not None and phase.replica.position in counted
        ]
        if len(unlike_phases(view, phases)) < 2:
            continue
        branches = [phase_degrees(view, phase) for phase in phases]
        shapes = [_shape(view, branch) for branch in branches]
        common = _common(shapes, {degree: declared_degree(view, name, degree) for degree in ("pp", *DEGREE_NAMES)})
        for branch, shape in zip(branches, shapes, strict=True):
            odd = _differences(shape, common)
            replica = branch.phase.replica
            if odd and replica is not None:
                what = ", ".join(f"{key} {value} (the others: {usual})" for key, (value, usual) in odd.items())
                yield Finding(
                    "unlike",
                    f"replica {label(replica)} is unlike the others in {name}: {what}",
                    where=replica,
                    nodes=(branch.phase.node,),
                    value={key: value for key, (value, _) in odd.items()},
                    expected={key: usual for key, (_, usual) in odd.items()},
                    lacks=("ShardNode", "ExpertNode", "PipelineStageNode"),
                )


_STAGES = (("s0", [0, 4]), ("s0.b0", [0, 4]), ("s1", [5, 7]), ("s1.b0", [5, 7]))
_CACHE = {"source": "r1.prefill.s0.b0.attn.kv", "target": "r1.decode.s1.b0.attn", "type": "data", "carries": "kv_cache"}

RULE = Rule(
    id="DP005",
    name="unlike replicas",
    requirement="Replicas are alike: the same phases, stages and degrees (per phase that they serve).",
    rationale=(
        "dp is one number, and throughput is that number times one replica. Replicas that differ answer the same "
        "request in different times, and no single strategy describes them."
    ),
    source="002 §3.1",
    fix="re-plan",
    remedy="build every replica by the same strategy",
    check=check,
    bad=Example(
        "dense-dp2-pp2",
        (
            *(Edit("set", f"r1.prefill.{name}", "layers", layers) for name, layers in _STAGES),
            Edit("add_edge", value=_CACHE),
        ),
    ),
)
