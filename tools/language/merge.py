"""Several statements as one: the last one to say a field wins, and each override is reported as a reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..plan.constraints import Constraint
from ..plan.lengths import RequestLengths, Side
from ..plan.prefixes import SharedPrefixes
from .conflicts.figures import label
from .constraints.words import merged_constraints
from .errors import RequestError
from .said import Said, Understood

_SIDES: dict[Side, frozenset[str]] = {
    "input": frozenset({"input_tokens", "input_tokens_range"}),
    "output": frozenset({"output_tokens", "output_tokens_range"}),
}
# Fields that are stated together: a later statement of one of them replaces them all.
_GROUPS: tuple[frozenset[str], ...] = (
    frozenset({"model", "model_config_object"}),
    frozenset({"accelerator", "accelerator_object"}),
    frozenset({"nodes", "gpus", "gpus_open"}),
    *_SIDES.values(),
    frozenset({"weights", "precisions"}),
    frozenset({"strategy", "compared"}),
)
_COLLECTED = frozenset({"words", "assumed", "unread", "readings", "relaxations", "constraints"})


def merge_said(said: Sequence[Said]) -> Said:
    """All statements as one; words, readings and what was not understood are collected, relaxations add up."""
    if len(said) == 1:
        return said[0]
    values: dict[str, Any] = {}
    words: dict[str, str] = {}
    assumed: dict[str, str] = {}
    readings: list[str] = []
    constraints: list[Constraint] = []
    unread = [note for statement in said for note in statement.unread]
    for statement in said:
        stated = stated_fields(statement)
        unread += _beside_trace(values, words) if "trace" in stated else ()
        # "As few as do" keeps the number of GPUs that was stated before.
        changed = [group for group in _GROUPS if group & (stated.keys() - {"gpus_open"})]
        dropped = {name for group in changed for name in group - stated.keys()}
        dropped |= _outdated_lengths(values, stated)
        dropped |= _outdated_prefixes(values, stated, dropped)
        card = values.get("accelerator")
        if stated.get("gpus_per_node") and stated.get("accelerator", card) != card:
            dropped |= {"gpus"} - stated.keys()  # of the former card
        if values.get("gpus_per_node") and not _fits(values, stated):
            dropped.add("gpus_per_node")
        if "engine" in stated and stated["engine"] != values.get("engine"):
            dropped.add("engine_version")  # the version of another engine
        for name in dropped:
            values.pop(name, None)
            words.pop(name, None)
        chosen = stated.get("accelerator")  # among those that were weighed before
        constraints = [each for each in constraints if each.kind != "accelerators" or chosen not in each.value]
        constraints += statement.constraints
        for name, value in stated.items():
            if name in values and values[name] != value:
                readings.append(
                    f"{label(name)}: {_shown(value)} replaces {_shown(values[name])}, which was said before"
                )
            values[name] = value
            words.pop(name, None)
            assumed.pop(name, None)
        words |= statement.words
        assumed |= statement.assumed
    return Said(
        **values,
        relaxations=tuple(sorted({name for statement in said for name in statement.relaxations})),
        constraints=merged_constraints(tuple(constraints)),
        words=words,
        assumed={name: reason for name, reason in assumed.items() if name in values},
        unread=tuple(dict.fromkeys(unread)),
        readings=(*dict.fromkeys(note for statement in said for note in statement.readings), *readings),
    )


def refusal(said: Said, reason: str) -> RequestError:
    """The error that refuses a request for `reason`, with what was understood of it."""
    stated = said.model_dump(
        exclude_defaults=True,
        exclude={"words", "assumed", "unread", "readings", "model_config_object", "accelerator_object", "trace"},
    )
    named = ("lengths", "prefixes", "arrivals", "rate_curve")
    stated |= {name: str(getattr(said, name)) for name in named if name in stated}
    understood = tuple(
        Understood(field=name, value=value, words=said.words.get(name)) for name, value in stated.items()
    )
    return RequestError(reason, understood)


def _beside_trace(values: dict[str, Any], words: dict[str, str]) -> Iterator[str]:
    """Notes on lengths that were stated before a trace, which has its own."""
    if "trace" in values:
        return
    for name in dict.fromkeys(name for names in _SIDES.values() for name in (*sorted(names), "lengths")):
        if name in values:
            yield f"{words.get(name, label(name))!r}: the trace has its own lengths; plan without it for these"


def _outdated_prefixes(values: dict[str, Any], stated: dict[str, Any], dropped: set[str]) -> set[str]:
    """Prefix fields that `stated` replaces; recorded requests go with the lengths that they belong to."""
    prefixes: SharedPrefixes | None = values.get("prefixes")
    is_of_lengths = prefixes is not None and prefixes.replay is not None and bool({"lengths"} & {*dropped, *stated})
    outdated = {"prefixes"} if "prefix_cache_hit_rate" in stated or is_of_lengths else set[str]()
    if "prefixes" in stated:
        outdated.add("prefix_cache_hit_rate")
    return outdated - stated.keys()


def _outdated_lengths(values: dict[str, Any], stated: dict[str, Any]) -> set[str]:
    """Length fields of `values` that `stated` replaces; in `values`, lengths of the other side stay."""
    outdated: set[str] = set()
    for side, names in _SIDES.items():
        now: RequestLengths | None = stated.get("lengths")
        before: RequestLengths | None = values.get("lengths")
        if now is not None and now.covers(side):
            outdated |= names - stated.keys()
        elif before is not None and before.covers(side) and names & stated.keys():
            other_side = before.without(side)
            if other_side is None:
                outdated.add("lengths")
            else:
                values["lengths"] = other_side
    return outdated


def _fits(values: dict[str, Any], stated: dict[str, Any]) -> bool:
    """Whether what is stated now leaves the size of a node as it was: the card is the same, the GPUs fill nodes."""
    card = stated.get("accelerator", values.get("accelerator"))
    gpus = stated.get("gpus", values["gpus_per_node"])
    return (
        card == values.get("accelerator") and "accelerator_object" not in stated and not gpus % values["gpus_per_node"]
    )


def stated_fields(said: Said) -> dict[str, Any]:
    """The fields that differ from their defaults, with their values as objects."""
    defaults = Said()
    return {
        name: getattr(said, name)
        for name in Said.model_fields
        if name not in _COLLECTED and getattr(said, name) != getattr(defaults, name)
    }


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
