"""When two readings of a request say the same, and when a model's reading may answer what the rules refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...tools.catalog.models import find_model
from ...tools.errors import InputError
from ...tools.language.errors import RequestError
from ...tools.language.said import Said, StatedStrategy
from ...tools.plan.constraints import Constraint, bound_both_sides
from ...tools.plan.prefixes import SharedPrefixes
from .answer import DEGREES, MODEL_FIELDS
from .found import Verified
from .spread import is_spread

COUNTS = ("nodes", "gpus_per_node", "gpus")
# How far apart two roundings of one figure may lie (2k as 2,000 and as 2,048).
_ROUNDING = 0.05
# The least share of the rules' fields that a reading of the whole text has.
_WHOLE = 2 / 3
_FOURS = frozenset({"fp4", "nvfp4", "mxfp4"})
# Refusals for good: no reading of other words makes the request possible.
_FOR_GOOD = re.compile(r"not planned by this tool(?!: mixed accelerators \()|characters|relaxation", re.I)
# The field that a refusal is about, where it does not say so itself.
_ABOUT = (
    ("model", re.compile(r"\bmodels?\b", re.IGNORECASE)),
    ("accelerator", re.compile(r"accelerator|\bcards?\b", re.IGNORECASE)),
    ("objective", re.compile(r"objective", re.IGNORECASE)),
    ("weights", re.compile(r"format|precision|weights", re.IGNORECASE)),
    ("gpus", re.compile(r"GPUs?\b|nodes", re.IGNORECASE)),
)
_UNKNOWN = re.compile(r"unknown|not recognised|mixed", re.IGNORECASE)


def agree(name: str, by_rules: Any, by_model: Any) -> bool:
    """Whether the rules' value of a field and the model's are the same."""
    if name == "model":
        return _model_name(by_rules) == _model_name(by_model) or _is_checkpoint_of(by_rules, by_model)
    if isinstance(by_rules, StatedStrategy) and isinstance(by_model, StatedStrategy):
        return _holds(by_rules.model_dump(), by_model.model_dump()) and not _is_of_both_phases(by_rules, by_model)
    if name == "compared":
        return set(by_rules) == set(by_model)
    if isinstance(by_rules, SharedPrefixes) and isinstance(by_model, SharedPrefixes):
        parts = ((getattr(by_rules, part), getattr(by_model, part)) for part in ("system_tokens", "turns"))
        return all(second is None or (first is not None and _near(first, second)) for first, second in parts)
    if isinstance(by_rules, tuple) and isinstance(by_model, tuple):
        return all(_near(first, second) for first, second in zip(by_rules, by_model, strict=True))
    if isinstance(by_rules, int | float) and isinstance(by_model, int | float) and not isinstance(by_model, bool):
        return _near(by_rules, by_model)
    return by_rules == by_model or (by_rules in _FOURS and by_model in _FOURS)


def agree_on_counts(by_rules: Mapping[str, int], by_model: Mapping[str, int]) -> bool:
    """Whether counts of nodes and GPUs can both be true; GPUs may be those of a node, where the model counts nodes."""
    if len(by_rules) == len(COUNTS) and by_rules["nodes"] * by_rules["gpus_per_node"] != by_rules["gpus"]:
        return False
    if by_rules.get("gpus") == by_model.get("gpus_per_node") and "nodes" in by_model and "nodes" not in by_rules:
        by_rules = {name: value for name, value in by_rules.items() if name != "gpus"}
    if any(by_rules[name] != by_model[name] for name in COUNTS if name in by_rules and name in by_model):
        return bool(total(by_rules)) and total(by_rules) == total(by_model)
    both = {**by_rules, **by_model}
    by_nodes = both["nodes"] * both["gpus_per_node"] if {"nodes", "gpus_per_node"} <= both.keys() else None
    return by_nodes is None or both.get("gpus", by_nodes) == by_nodes


def total(counts: Mapping[str, int]) -> int | None:
    """GPUs in all, where they are counted."""
    by_nodes = counts["nodes"] * counts["gpus_per_node"] if {"nodes", "gpus_per_node"} <= counts.keys() else None
    return counts.get("gpus", by_nodes)


def is_left_alone(base: Said, name: str, value: Any) -> bool:
    """Whether what the rules read beside a field says it already, or better."""
    if name == "accelerator":
        return base.accelerator_object is not None
    if name == "model":
        return base.model_config_object is not None
    if name == "weights":
        # A format that the model reads as one of several to choose from leaves the choice open; one that nobody named
        # ends it.
        return base.precisions is not None and (
            not base.precisions.is_open
            or (len(base.precisions.named) > 1 and any(choice.weights == value for choice in base.precisions.named))
        )
    if is_spread(base, name):
        return True
    span = getattr(base, f"{name}_range", None)
    return span is not None and getattr(base, name) is not None and span[0] <= value <= span[1]


def same_constraint(constraint: Constraint, other: Constraint, *, is_about: bool = False) -> bool:
    """Whether two constraints demand the same, or (`is_about`) speak of the same thing."""
    if constraint.kind != other.kind or getattr(constraint, "phase", None) != getattr(other, "phase", None):
        return False
    if is_about and bound_both_sides(constraint, other):
        return False
    if constraint.kind == "degree" and other.kind == "degree" and is_about:
        return constraint.value.name == other.value.name
    if constraint.kind in ("within_node", "across_nodes"):
        return constraint.value == other.value
    relations = (getattr(constraint, "relation", None), getattr(other, "relation", None))
    return is_about or (constraint.value == other.value and relations[0] == relations[1])


def is_final(refusal: RequestError) -> bool:
    """Whether no reading of other words makes what is refused possible."""
    return _FOR_GOOD.search(refusal.reason) is not None


def is_whole(base: Said, reading: Verified) -> bool:
    """Whether a model read most of what the rules read, so that what it leaves out is probably not meant."""
    theirs = base.words.keys() & MODEL_FIELDS
    return len(theirs & reading.read) >= _WHOLE * len(theirs)


def answers(reading: Verified, refusal: RequestError, understood: Said) -> bool:
    """Whether a model's reading may stand although the rules refused: it read what they found contradictory.

    A name that the rules do not know is answered only by one that stands in the words; what the model does not state
    only by a reading of the whole of what they `understood`.
    """
    about = refusal.field or next((name for name, words in _ABOUT if words.search(refusal.reason)), None)
    names = COUNTS if about in COUNTS else (about, f"{about}_range")
    stated = [reading.fields[name] for name in names if name in reading.fields]
    if about == "strategy":  # a degree and a bound that rules it out: no degree of the model's may be beyond its bounds
        is_told = "compared" in reading.fields or any(constraint.kind == "degree" for constraint in reading.constraints)
        return is_told and not _breaks_its_bounds(reading)
    if about == "accelerator" and any(constraint.kind == "accelerators" for constraint in reading.constraints):
        return True
    if _UNKNOWN.search(refusal.reason) or about == "model":
        return bool(stated) and (about == "model" or stated[0].reason is None)
    if refusal.reason.startswith("impossible") and about in reading.read and not stated:
        return False  # the model reads that field too, and its figure does not hold either
    return bool(stated) or ("model" in reading.fields and is_whole(understood, reading))


def _breaks_its_bounds(reading: Verified) -> bool:
    """Whether a degree that a model reads as demanded is ruled out by a constraint that it reads."""
    strategy = reading.fields.get("strategy")
    if strategy is None:
        return False
    for phase in ("prefill", "decode"):
        for constraint in (bound for bound in reading.constraints if bound.kind == "degree"):
            degree = getattr(getattr(strategy.value, phase), constraint.value.name)
            most = 1 if constraint.value.relation == "forbidden" else constraint.value.degree
            if degree is not None and constraint.phase in (None, phase) and degree > most:
                return True
    return False


def _near(first: float, second: float) -> bool:
    return abs(first - second) <= _ROUNDING * max(abs(first), abs(second))


def _holds(by_rules: Mapping[str, Any], by_model: Mapping[str, Any]) -> bool:
    """Whether every degree that the model states is as the rules have it."""
    return all(
        _holds(by_rules[name], value) if isinstance(value, Mapping) else value is None or by_rules[name] == value
        for name, value in by_model.items()
    )


def _is_of_both_phases(by_rules: StatedStrategy, by_model: StatedStrategy) -> bool:
    """Whether the rules have a degree in both phases that the model reads in one of them."""
    return any(
        (getattr(by_model.prefill, name) is None) != (getattr(by_model.decode, name) is None)
        and getattr(by_rules.prefill, name) == getattr(by_rules.decode, name)
        for name in DEGREES
    )


def _is_checkpoint_of(by_rules: str, by_model: str) -> bool:
    """Whether the rules name a checkpoint of the model that the model names ("Llama-3.1-405B-FP8")."""
    try:
        return find_model(by_rules).base == find_model(by_model).name
    except InputError:
        return False


def _model_name(name: str) -> str:
    try:
        return find_model(name).name
    except InputError:
        return name
