"""Applies the limits of rules on degrees (`legality.py`) to a graph: each operator is judged by the degrees it shows.

Degrees that an operator does not show itself are the usual ones of its phase. If the graph does not show all degrees
that a limit reads, another rule reports the fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from msgspec import Struct

from ..catalog.architecture import LayerSpec
from ..catalog.dtypes import DType
from ..engines.release import release_of
from ..plan.branches import once_per_phase, with_shared
from ..plan.degrees import phase_degrees
from ..plan.document import TWO_BATCH
from ..plan.placement import StageDegrees
from ..plan.view import NodeView, PhaseView, PlanView, as_int, as_str
from .findings import Finding
from .layer_specs import operator_specs
from .legality import SPLIT_BY, Case, Conditions, DegreeLimit, Fault
from .reading import named_engine
from .sharding import SEQUENCE_ROLES, misranked_dimension, tensor_degree


def conditions_of(view: PlanView) -> Conditions | None:
    """The conditions for judging the degrees of a plan; `None` if its model cannot be read."""
    if view.structure is None:
        return None
    weights = view.precision.get("weights")
    return Conditions(
        view.structure,
        named_engine(view),
        release_of(as_str(view.serving.get("engine_version"))),
        view.relaxations,
        as_int(view.workload.get("input_tokens")),
        cast("DType", weights) if weights in get_args(DType) else None,
        view.serving.get("overlap") in TWO_BATCH,
    )


class _Shown(Struct, frozen=True):
    """An operator, its kinds of layers, the degrees that it shows itself, and all degrees with those of its phase."""

    operator: NodeView
    layers: Sequence[LayerSpec]
    own: Mapping[str, int]
    values: Mapping[str, Any]

    def shows(self, limit: DegreeLimit) -> bool:
        """Whether it shows the limited degree, and its phase all others that the limit reads."""
        is_shown = all(self.values[name] is not None for name in limit.reads if name in SPLIT_BY)
        return is_shown and limit.reads[0] in self.own


@once_per_phase
def _shown(view: PlanView, phase: PhaseView) -> tuple[_Shown, ...]:
    """Every operator of `phase` that shows a degree and whose layers are known."""
    degrees = phase_degrees(view, phase)
    usual = {name: degrees.usual(name) for name in SPLIT_BY}
    own_degrees: dict[int, dict[str, int]] = {}
    # How experts are split is read from each expert group.
    for name in SPLIT_BY.keys() - {"tp_expert"}:
        for reading in degrees.readings.get(name, ()):
            own_degrees.setdefault(reading.operator.position, {})[name] = reading.value
    layers = {operator.position: [layer for _, layer in specs] for operator, specs in operator_specs(view, phase)}
    operators_shown: list[_Shown] = []
    for stage in phase.stages:
        devices = len(stage.settled_devices)
        for operator in stage.operators:
            for part, shown in _parts(operator, own_degrees):
                stage_values = {"sp_kind": _exchange(part), "phase": phase.phase or "", "devices": devices}
                values = {**usual, **shown, **stage_values}
                its_layers = [layer for layer in layers.get(operator.position, ()) if _has_part(layer, part)]
                operators_shown.append(_Shown(part, its_layers, shown, values))
    return tuple(operators_shown)


def _parts(operator: NodeView, own_degrees: Mapping[int, dict[str, int]]) -> Iterator[tuple[NodeView, dict[str, int]]]:
    """The operator and the split nodes inside it, with the degrees that each shows."""
    for node in with_shared(operator):
        if node.position in own_degrees:
            yield node, own_degrees[node.position]
    for group in operator.children_of_type("ExpertNode"):
        if group.children_of_type("ShardNode") and misranked_dimension(group) is None:
            yield group, {"tp_expert": tensor_degree(group)}


def _has_part(layer: LayerSpec, part: NodeView) -> bool:
    """Whether a layer of the model has the operator `part`; a dense FFN of a MoE operator is its shared expert."""
    is_shared = part.parent is not None and part.parent.type == "MoENode"
    specs = {"AttentionNode": layer.attention, "FFNNode": layer.shared if is_shared else layer.ffn}
    return specs.get(part.type, layer.moe) is not None


def _exchange(operator: NodeView) -> str | None:
    """How an operator exchanges its sequence shards, if that is limited."""
    exchanges = operator.children_of_type("AllToAllNode") if operator.type == "AttentionNode" else ()
    return "ulysses" if any(node.role in SEQUENCE_ROLES for node in exchanges) else None


def shown_faults(view: PlanView, limits: Sequence[DegreeLimit]) -> Iterator[Finding]:
    """Yield each fault of a phase once, with the operators that have it."""
    by_message: dict[tuple[str, str], tuple[Fault, dict[int, NodeView]]] = {}
    for phase, operator, fault in _faults(view, limits):
        by_message.setdefault((phase, fault.message), (fault, {}))[1][operator.position] = operator
    for (phase, _), (fault, operators) in by_message.items():
        yield shown_at(list(operators.values()), fault, f"{phase}: ")


def shown_at(operators: Sequence[NodeView], fault: Fault, before: str = "") -> Finding:
    """`fault` as a finding on the operators that show it; `before` is put in front of its message."""
    return Finding(
        fault.message_id,
        before + fault.message,
        where=operators,
        value=fault.value,
        expected=fault.expected,
        severity=fault.severity,
        lacks=fault.lacks,
    )


def _faults(view: PlanView, limits: Sequence[DegreeLimit]) -> Iterator[tuple[str, NodeView, Fault]]:
    """Yield each fault with a severity, with the name of its phase and the operator that has it."""
    conditions = conditions_of(view)
    if conditions is None:
        return
    judged: dict[Any, tuple[Fault, ...]] = {}
    for phase in view.phases:
        for shown in _shown(view, phase):
            for limit in filter(shown.shows, limits):
                values = {name: shown.values[name] for name in limit.reads}
                for layer in shown.layers:
                    key = id(limit), id(layer), *values.values()
                    if key not in judged:
                        case = Case(conditions, StageDegrees()._replace(**values), layer)
                        judged[key] = tuple(fault for fault in limit.faults(case) if fault.severity is not None)
                    yield from ((phase.phase or "", shown.operator, fault) for fault in judged[key])
