"""Faults of a strategy: all faults of its degrees at once, before there is a graph.

The rules themselves judge (`tools/rules/judge.py`), as in the search. If degrees have faults, findings of their graph
would only repeat them for its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...tools.plan.document import PHASES, Phase, PhaseStrategy, Strategy
from ...tools.plan.placement import StageDegrees, gpu_count, is_disaggregated
from ...tools.plan.view import as_int, as_mapping
from ...tools.rules.combination.dimension_names import read_dimension
from ...tools.rules.legality import SPLIT_BY, splits
from ...tools.rules.registry import all_rules
from .question import Question
from .shorten import short_text

# Degrees offered in place of an illegal one.
_OFFERED = (*range(1, 33), 48, 64, 72, 96, 128, 144, 256)


class StrategyFault(Struct, frozen=True):
    """One fault: the rule, the field of the strategy, its value, and what would pass, in words and as values."""

    rule: str
    field: str
    message: str
    value: Any = None
    expected: Any = None

    def told(self) -> dict[str, Any]:
        """The fault in the form of a finding."""
        fields = {"rule": self.rule, "field": self.field, "message": self.message, "value": self.value}
        return {name: value for name, value in (*fields.items(), ("expected", self.expected)) if value is not None}


def strategy_faults(question: Question, block: Mapping[str, Any], strategy: Strategy) -> tuple[StrategyFault, ...]:
    """The faults of what a proposal states, `block`, and of the strategy that it was read as."""
    faults = [*_names("", block, Strategy.model_fields.keys())]
    for phase in PHASES:
        faults += _names(f"{phase}.", as_mapping(block.get(phase)), PhaseStrategy.model_fields.keys())
        faults += _degrees(question, getattr(strategy, phase), phase)
    faults += _pair(question, strategy)
    faults += _gpus(question, block, strategy)
    return tuple(_merged(faults))


def _merged(faults: Iterable[StrategyFault]) -> Iterator[StrategyFault]:
    """Each fault once; an equal one of prefill and decode as one of both."""
    listed = list(faults)
    for at, fault in enumerate(listed):
        _, dot, name = fault.field.partition(".")
        alike = [other for other in listed if replace(other, field=name) == replace(fault, field=name)] if dot else []
        if len(alike) > 1 and fault is alike[0]:
            yield replace(fault, field=f"prefill.{name}, decode.{name}")
        elif len(alike) <= 1 and fault not in listed[:at]:
            yield fault


def _names(place: str, block: Mapping[str, Any], known: Any) -> Iterator[StrategyFault]:
    """Fields that no strategy has: dimensions under other names, and unknown ones."""
    for name in block:
        if name in known or name in _BOTH_PHASES:
            continue
        shown, dimension = short_text(str(name), 60), read_dimension(str(name))
        if dimension is None:
            yield StrategyFault("ST001", f"{place}{shown}", f"a strategy has no `{shown}`: it was dropped")
        elif dimension.degree is None:
            yield StrategyFault(
                "CO001", f"{place}{shown}", f"`{shown}` is no dimension here: use pp, tp, ep, sp and dp"
            )
        else:
            words = f"a strategy has no `{shown}`: write `{dimension.degree}`"
            yield StrategyFault("CO001", f"{place}{shown}", words, expected=dimension.degree)


def _degrees(question: Question, degrees: PhaseStrategy, phase: Phase) -> Iterator[StrategyFault]:
    """Faults of a phase's degrees against its operators."""
    architecture = question.request.architecture
    judge, stage = question.request.space.judge, StageDegrees.of(degrees, phase)
    for name in SPLIT_BY:
        value = getattr(stage, name)
        if value > 1 and not splits(architecture, name):
            reason = (
                f"the model has no {SPLIT_BY[name]}" if SPLIT_BY[name] != "experts" else "a dense model has no experts"
            )
            yield StrategyFault("CO002", f"{phase}.{name}", f"{reason}: {name} must be 1", value, 1)
    if degrees.pp > architecture.num_layers:
        message = f"{degrees.pp} stages for {architecture.num_layers} layers"
        yield StrategyFault("PP005", f"{phase}.pp", message, degrees.pp, f"at most {architecture.num_layers}")
    if degrees.stage_layers is not None and sum(degrees.stage_layers) != architecture.num_layers:
        message = f"the stages have {sum(degrees.stage_layers)} layers, the model {architecture.num_layers}"
        yield StrategyFault("PP004", f"{phase}.stage_layers", message, list(degrees.stage_layers))
    for name, rule, fault in judge.faults_by_degree(stage):
        if fault.severity != "error":
            continue
        legal = judge.legal(name, (degree for degree in _OFFERED if degree <= question.request.facts.gpus), stage)
        expected = list(legal) if legal and getattr(stage, name) not in legal else fault.expected
        yield StrategyFault(rule.id, f"{phase}.{name}", fault.message, getattr(stage, name), expected)


def _pair(question: Question, strategy: Strategy) -> Iterator[StrategyFault]:
    """Faults of a replica's prefill and decode together, if it serves both."""
    if is_disaggregated(strategy):
        return
    conditions = question.request.space.conditions
    for rule in all_rules():
        for fault in rule.pair_faults(conditions, strategy.prefill, strategy.decode) if rule.pair_faults else ():
            yield StrategyFault(rule.id, "decode", fault.message, fault.value, fault.expected)


def _gpus(question: Question, block: Mapping[str, Any], strategy: Strategy) -> Iterator[StrategyFault]:
    """More GPUs than the hardware has, and a stated number that differs from the degrees'."""
    needed, there = gpu_count(strategy), question.request.facts.gpus
    stated = as_int(block.get("gpu_count"))
    if stated is not None and stated != needed:
        message = f"gpu_count {stated} and degrees for {needed} GPUs: state which is meant, by dp or by other degrees"
        yield StrategyFault("GP001", "gpu_count", message, stated, needed)
    if needed > there:
        each = needed // max(1, strategy.dp)
        most = f"; at {each} GPUs a replica, dp at most {there // each}" if each <= there else ""
        yield StrategyFault("GP004", "dp", f"{needed} GPUs are needed, there are {there}{most}", needed, there)


# Degrees that may stand beside the phases, for both.
_BOTH_PHASES = PhaseStrategy.model_fields.keys() | {"gpus"}
