"""What is wrong with a strategy, said of the strategy: all faults of its degrees at once, before there is a graph.

The rules themselves judge (`tools/rules/judge.py`), as the search does. Where degrees have faults, findings of the
graph that was built of them would only say the same of its nodes.
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

# Degrees that are offered in place of an illegal one.
_OFFERED = (*range(1, 33), 48, 64, 72, 96, 128, 144, 256)


class StrategyFault(Struct, frozen=True):
    """One fault: the rule, the field of the strategy, what there is, what would pass, in words and as values."""

    rule: str
    field: str
    message: str
    value: Any = None
    expected: Any = None

    def told(self) -> dict[str, Any]:
        """The fault as a finding is told."""
        told = {"rule": self.rule, "field": self.field, "message": self.message, "value": self.value}
        return {name: value for name, value in (*told.items(), ("expected", self.expected)) if value is not None}


def strategy_faults(question: Question, block: Mapping[str, Any], strategy: Strategy) -> tuple[StrategyFault, ...]:
    """The faults of what a proposal states, `block`, and of the strategy that it was read as."""
    found = [*_names("", block, Strategy.model_fields.keys())]
    for phase in PHASES:
        found += _names(f"{phase}.", as_mapping(block.get(phase)), PhaseStrategy.model_fields.keys())
        found += _degrees(question, getattr(strategy, phase), phase)
    found += _pair(question, strategy)
    found += _gpus(question, block, strategy)
    return tuple(_merged(found))


def _merged(faults: Iterable[StrategyFault]) -> Iterator[StrategyFault]:
    """Each fault once; the same one of prefill and of decode as one of both."""
    held = list(faults)
    for at, one in enumerate(held):
        _, dot, name = one.field.partition(".")
        alike = [other for other in held if replace(other, field=name) == replace(one, field=name)] if dot else []
        if len(alike) > 1 and one is alike[0]:
            yield replace(one, field=f"prefill.{name}, decode.{name}")
        elif len(alike) <= 1 and one not in held[:at]:
            yield one


def _names(place: str, block: Mapping[str, Any], known: Any) -> Iterator[StrategyFault]:
    """Fields that no strategy has: dimensions by other names, and what means nothing."""
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
    """What one operator or another demands of the degrees of a phase."""
    architecture = question.request.architecture
    judge, stage = question.request.space.judge, StageDegrees.of(degrees, phase)
    for name in SPLIT_BY:
        value = getattr(stage, name)
        if value > 1 and not splits(architecture, name):
            what = (
                f"the model has no {SPLIT_BY[name]}" if SPLIT_BY[name] != "experts" else "a dense model has no experts"
            )
            yield StrategyFault("CO002", f"{phase}.{name}", f"{what}: {name} must be 1", value, 1)
    if degrees.pp > architecture.num_layers:
        message = f"{degrees.pp} stages for {architecture.num_layers} layers"
        yield StrategyFault("PP005", f"{phase}.pp", message, degrees.pp, f"at most {architecture.num_layers}")
    if degrees.stage_layers is not None and sum(degrees.stage_layers) != architecture.num_layers:
        message = f"the stages have {sum(degrees.stage_layers)} layers, the model {architecture.num_layers}"
        yield StrategyFault("PP004", f"{phase}.stage_layers", message, list(degrees.stage_layers))
    for name, rule, fault in judge.faults_by_degree(stage):
        if fault.severity != "error":
            continue
        legal = judge.legal(name, (one for one in _OFFERED if one <= question.request.facts.gpus), stage)
        expected = list(legal) if legal and getattr(stage, name) not in legal else fault.expected
        yield StrategyFault(rule.id, f"{phase}.{name}", fault.message, getattr(stage, name), expected)


def _pair(question: Question, strategy: Strategy) -> Iterator[StrategyFault]:
    """What an engine demands of the phases of a replica that serves both."""
    if is_disaggregated(strategy):
        return
    conditions = question.request.space.conditions
    for rule in all_rules():
        for fault in rule.pair_faults(conditions, strategy.prefill, strategy.decode) if rule.pair_faults else ():
            yield StrategyFault(rule.id, "decode", fault.message, fault.value, fault.expected)


def _gpus(question: Question, block: Mapping[str, Any], strategy: Strategy) -> Iterator[StrategyFault]:
    """GPUs that there are not, and a stated number that the degrees do not make."""
    needed, there = gpu_count(strategy), question.request.facts.gpus
    stated = as_int(block.get("gpu_count"))
    if stated is not None and stated != needed:
        message = f"gpu_count {stated} and degrees for {needed} GPUs: state which is meant, by dp or by other degrees"
        yield StrategyFault("GP001", "gpu_count", message, stated, needed)
    if needed > there:
        each = needed // max(1, strategy.dp)
        most = f"; at {each} GPUs a replica, dp at most {there // each}" if each <= there else ""
        yield StrategyFault("GP004", "dp", f"{needed} GPUs are needed, there are {there}{most}", needed, there)


# Degrees that stand beside the phases, for both of them.
_BOTH_PHASES = PhaseStrategy.model_fields.keys() | {"gpus"}
