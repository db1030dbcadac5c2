"""Limits on degrees, as rules state them before there is a graph, for graphs and searches alike.

A rule on degrees lists its limits in its `RULE`. Over a graph they become findings (`shown_faults.py`); the search, the
repair and the answers to requests apply them to degrees alone (`judge.py`). No limit is defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from ..catalog.architecture import Architecture, AttentionSpec, FFNSpec, LayerSpec, MoESpec
from ..catalog.dtypes import DType
from ..engines.engine import Engine
from ..engines.release import Release
from ..plan.document import Phase, PhaseStrategy, Relaxation
from ..plan.placement import StageDegrees

OperatorKind = Literal["attention", "ffn", "experts"]
# What each degree of a stage splits; a shared expert is split like a dense FFN.
SPLIT_BY: Mapping[str, OperatorKind] = {
    "tp": "attention",
    "sp": "attention",
    "attention_dp": "attention",
    "kv_sp": "attention",
    "tp_ffn": "ffn",
    "ep": "experts",
    "tp_expert": "experts",
}
# The relaxation without which a degree stays 1.
RELAXATION_OF: Mapping[str, Relaxation] = {
    "attention_dp": "attention_dp",
    "kv_sp": "kv_sequence_decode",
    "tp_expert": "tp_in_expert",
}


class Conditions(Struct, frozen=True):
    """The conditions for judging degrees, beside the devices; without an engine, for a plan on paper.

    `weights` is the number format that the weights run in; `overlaps`: two halves of a batch overlap.
    """

    architecture: Architecture
    engine: Engine | None = None
    release: Release | None = None
    relaxations: frozenset[str] = frozenset()
    input_tokens: int | None = None
    weights: DType | None = None
    overlaps: bool = False

    @property
    def engine_title(self) -> str:
        """The engine as its makers write it; `an engine` if none is named."""
        return "an engine" if self.engine is None else self.engine.title


class Fault(Struct, frozen=True):
    """A limit that degrees break: the message, the value and what would pass; `message_id` and `lacks` as in `Finding`.

    `severity`: an error; a warning; or `None`, legal as far as is known and no finding. Degrees without an error may be
    stated, but a search proposes them only if the fault `is_proposed`, after all degrees without warnings.
    """

    message_id: str
    message: str
    value: Any
    expected: Any
    severity: Literal["error", "warning"] | None = "error"
    is_proposed: bool = False
    lacks: Sequence[str] = ()


class Case(NamedTuple):
    """One operator of `layer` in a stage, under the degrees of its phase."""

    conditions: Conditions
    degrees: StageDegrees
    layer: LayerSpec

    @property
    def attention(self) -> AttentionSpec:
        """The attention spec, for a limit on attention's degrees."""
        assert self.layer.attention is not None
        return self.layer.attention

    @property
    def ffn(self) -> FFNSpec:
        """The spec of the dense FFN or shared expert, for a limit on `tp_ffn`."""
        assert self.layer.split_ffn is not None
        return self.layer.split_ffn

    @property
    def ffn_name(self) -> str:
        """Which of the two it is, for a message."""
        return "the FFN" if self.layer.ffn is not None else "the shared expert"

    @property
    def moe(self) -> MoESpec:
        """The spec of the experts, for a limit on their degrees."""
        assert self.layer.moe is not None
        return self.layer.moe


class DegreeLimit(Struct, frozen=True):
    """The demand of one operator on degrees. `reads` are the degrees that it depends on, first the one that it limits.

    It sees nothing else of a stage, so that each verdict is computed once; `phase`, `devices` and `sp_kind` have to be
    listed too. `faults` is called for each kind of layer that has the operator.
    """

    reads: tuple[str, ...]
    faults: Callable[[Case], Iterable[Fault]]

    @property
    def operator(self) -> OperatorKind:
        """The operator that the limit is on."""
        return SPLIT_BY[self.reads[0]]

    def reduced(self, degrees: StageDegrees) -> StageDegrees:
        """`degrees` with only the fields that it reads, all others at their defaults."""
        return StageDegrees()._replace(**{name: getattr(degrees, name) for name in self.reads})

    def of(self, conditions: Conditions, degrees: StageDegrees) -> Iterator[Fault]:
        """The faults of a stage, over all kinds of layers."""
        read = self.reduced(degrees)
        for layer in conditions.architecture.layer_kinds:
            if has_operator(layer, self.operator):
                yield from self.faults(Case(conditions, read, layer))


class Pipeline(Struct, frozen=True):
    """The stages of one phase of a replica, on nodes of `gpus_per_node`; `is_alone`: it serves no other phase.

    Each has `devices` in `groups` attention groups.
    """

    phase: Phase
    stages: int
    devices: int
    gpus_per_node: int
    is_alone: bool
    groups: int = 1


PipelineFaults = Callable[[Conditions, Pipeline], Iterable[Fault]]
PairFaults = Callable[[Conditions, PhaseStrategy, PhaseStrategy], Iterable[Fault]]


def has_operator(layer: LayerSpec, operator: OperatorKind) -> bool:
    """Whether a layer has the operator."""
    if operator == "attention":
        return layer.attention is not None
    return (layer.split_ffn if operator == "ffn" else layer.moe) is not None


def splits(architecture: Architecture, name: str) -> bool:
    """Whether the model has the operator that the degree splits; else the degree stays 1."""
    return any(has_operator(layer, SPLIT_BY[name]) for layer in architecture.layer_kinds)
