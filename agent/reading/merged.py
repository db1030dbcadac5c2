"""Merges a model's verified reading of a text with that of the rules.

The model reads the whole text, the rules know words: what both say stands as the rules have it; what the model alone
says is noted. Where they differ the model's words count, unless those of the rules say it more plainly: then the person
is asked. What the rules alone read counts where no field of the model's says it, or plain words do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace
from pydantic import ValidationError

from ...tools.language.errors import RequestError
from ...tools.language.merge import refusal as refused
from ...tools.language.merge import stated_fields
from ...tools.language.said import Said
from ...tools.plan.constraints import chosen_kinds
from ...tools.plan.document import Relaxation
from .agreement import (
    COUNTS,
    agree,
    agree_on_counts,
    answers,
    is_final,
    is_left_alone,
    is_whole,
    total,
)
from .answer import MODEL_FIELDS, RANGES
from .both_constraints import constraints_of_both
from .found import Found, Verified
from .merge import AmbiguousError, Merge
from .spread import is_spread, with_other_side
from .wording import shown, stands_in, unread, worded

# Fields whose absence is refused or filled by assumption: never left to what a model forgets.
_NAMES = frozenset({"model", "accelerator"})


def merged(rules: Said | RequestError, reading: Verified, text: str, read_on: Said | None = None) -> Said:
    """What both readings of `text` say; `read_on` is what the rules read all the same of a text that they refused.

    Raises:
        RequestError: the rules refused the text and the model has no answer to it, or (`AmbiguousError`) something is
            to be settled before anything can be planned, or stated otherwise by words that are as good.
    """
    base = read_on or (_understood(rules) if isinstance(rules, RequestError) else rules)
    if isinstance(rules, RequestError) and (
        is_final(rules) or (not reading.asks and not answers(reading, rules, base))
    ):
        raise rules
    if reading.asks:
        understood = rules.understood if isinstance(rules, RequestError) else refused(rules, "").understood
        raise AmbiguousError(" ".join(reading.asks), understood)
    is_refused = isinstance(rules, RequestError) and read_on is None
    merge = Merge(base, is_refused, is_whole(base, reading), text, stated_fields(base), dict(base.words))
    if isinstance(rules, RequestError):
        merge.notes.append(f"the rules refused it, the model read on: {rules.reason[:300]}")
    _leave_what_the_model_leaves(merge, reading)
    _take_counts(merge, reading.fields)
    if (lengths := reading.fields.get("lengths")) is not None:
        reading.fields["lengths"] = replace(lengths, value=with_other_side(lengths.value, base.lengths, reading))
    for name, found in reading.fields.items():
        is_choice = name == "accelerator" and found.value in chosen_kinds(base.constraints) and not merge.is_whole
        if name in COUNTS or is_choice or is_left_alone(base, name, found.value):
            continue
        if name == "weights":
            merge.drop("precisions")
        if name not in merge.values:
            merge.take(name, found)
        elif not agree(name, merge.values[name], found.value):
            merge.settle(name, found)
    if "gpus_open" in merge.values and any(name in merge.values for name in COUNTS):
        _as_cost(merge)
    _refuse_what_cannot_be(merge, rules, reading)
    constraints = constraints_of_both(merge, reading)
    if merge.clashes:
        error = refused(base, "; ".join(merge.clashes))
        raise AmbiguousError(error.reason, error.understood)
    merge.notes += _of_rules_alone(merge, reading)
    merge.notes += [f"not taken from the model's reading: {line}" for line in reading.dropped]
    allowed: set[Relaxation] = {*base.relaxations, *(reading.relaxations if merge.is_refused else ())}
    return Said(
        **merge.values,
        relaxations=tuple(sorted(allowed)),
        constraints=constraints,
        words=merge.words,
        assumed={**{name: note for name, note in base.assumed.items() if name in merge.words}, **merge.assumed},
        unread=(*unread(base, reading.quotes, reading.not_understood, is_whole=merge.is_whole), *merge.doubts),
        readings=(*base.readings, *dict.fromkeys(merge.notes)),
    )


def _leave_what_the_model_leaves(merge: Merge, reading: Verified) -> None:
    """Drop what the rules alone read if the model has a field for it and states no fact.

    What words say plainly becomes a doubt, and stays where the model left out a good part of what the rules read.
    Degrees are left where the model reads them as strategies to be weighed, lengths where it reads the end of a range,
    figures and formats whose words the model read for something else, and all of a text that the rules refused.
    """
    read = reading.read | {*COUNTS} | {span for span in RANGES if _is_around(span, merge, reading)}
    for name in sorted((merge.values.keys() & MODEL_FIELDS) - read - _NAMES):
        is_told = _is_told_otherwise(name, merge, reading)
        is_plain = merge.is_plain(name) and not merge.is_refused and not is_told
        if is_plain and not merge.is_whole:
            continue
        words = f"{worded(name, merge.values[name])} from {merge.words.get(name, '')[:160]!r}"
        if is_plain:
            merge.doubts.append(f"{words}: read by the rules, not by the model")
        else:
            merge.notes.append(f"left out, which the rules alone read: {words}")
        merge.drop(name)


def _is_around(span: str, merge: Merge, reading: Verified) -> bool:
    """Whether the usual length that the model reads lies in the range that the rules read."""
    usual, ends = reading.fields.get(RANGES[span]), merge.values.get(span)
    return usual is not None and ends is not None and ends[0] < usual.value < ends[1]


def _is_told_otherwise(name: str, merge: Merge, reading: Verified) -> bool:
    """Whether the model reads the words of a field of the rules as something else."""
    value, words = merge.values[name], merge.words.get(name, "")
    if name == "strategy":
        return "compared" in reading.fields
    if (lengths := reading.fields.get("lengths")) is not None and is_spread(Said(lengths=lengths.value), name):
        return True
    span = reading.fields.get(f"{name}_range")
    if span is not None and value in span.value:
        return True
    quotes = [found.quote for found in reading.fields.values() if found.value == value and not isinstance(value, bool)]
    quotes += [constraint.words for constraint in reading.constraints if constraint.value == value]
    return any(stands_in(words, quote) or stands_in(quote, words) for quote in quotes)


def _refuse_what_cannot_be(merge: Merge, rules: Said | RequestError, reading: Verified) -> None:
    """Refuse counts that contradict each other, and a model or an accelerator that is named and not known.

    Raises:
        RequestError: as the rules refused it, where they did.
    """
    counts = {name: merge.values[name] for name in COUNTS if name in merge.values}
    if len(counts) == len(COUNTS) and counts["nodes"] * counts["gpus_per_node"] != counts["gpus"]:
        words = "; ".join(merge.words.get(name, "") for name in COUNTS)
        raise rules if isinstance(rules, RequestError) else refused(merge.base, f"the GPU counts differ: {words!r}")
    is_named = {"accelerator", "accelerator_object"} & merge.values.keys() or chosen_kinds(merge.base.constraints)
    if reading.unknown_part is not None and not is_named:
        raise refused(merge.base, reading.unknown_part)
    if reading.unknown_model is not None and not {"model", "model_config_object"} & merge.values.keys():
        raise refused(merge.base, reading.unknown_model)


def _as_cost(merge: Merge) -> None:
    """Read "as few as do" of a stated number of GPUs as the objective cost, by which they are ranked."""
    words = merge.words.pop("gpus_open", "")
    del merge.values["gpus_open"]
    if "objective" not in merge.values:
        merge.values["objective"], merge.words["objective"] = "cost", words
        merge.notes.append(f"{words[:160]!r} read as the objective cost: as few of the GPUs as do")


def _take_counts(merge: Merge, fields: Mapping[str, Found]) -> None:
    """Take nodes, GPUs per node and GPUs together: those of one reading, or of both if they agree."""
    by_model = {name: fields[name] for name in COUNTS if name in fields}
    by_rules = {name: merge.values[name] for name in COUNTS if name in merge.values}
    values = {name: found.value for name, found in by_model.items()}
    if agree_on_counts(by_rules, values):
        for name, found in by_model.items():
            if name not in by_rules and not (total(by_rules) and total(by_rules) == total(values)):
                merge.take(name, found)
        both = {**by_rules, **values}
        # Where the rules took the GPUs of each of several nodes for all of them.
        if "gpus" not in values and values.get("nodes", 1) > 1 and both.get("gpus") == both.get("gpus_per_node"):
            merge.drop("gpus")
        return
    counted = "; ".join(found.quote for found in by_model.values())
    words = ", ".join(merge.words.get(name, "") for name in by_rules)
    if not by_rules or any(merge.holds(name, found) for name in by_rules for found in by_model.values()):
        for name in by_rules:
            merge.drop(name)
        for name, found in by_model.items():
            merge.take(name, found, f" (the rules read {by_rules} in {words[:80]!r})")
    else:
        merge.clashes.append(
            f"the GPUs may be {shown(by_rules)} ({words[:80]!r}) or {shown(values)} ({counted[:80]!r}); "
            "say which is meant"
        )


def _of_rules_alone(merge: Merge, reading: Verified) -> Iterator[str]:
    """Notes on what the rules alone read."""
    if merge.is_refused:
        return
    counts = COUNTS if any(name in reading.fields for name in COUNTS) else ()
    for name, value in stated_fields(merge.base).items():
        words = merge.words.get(name)
        single = name.removesuffix("_range")
        if words and name not in reading.fields and single not in reading.fields and name not in counts:
            yield f"read by the rules alone: {worded(name, value)} from {words[:160]!r}"


def _understood(refusal: RequestError) -> Said:
    """What the rules understood before they refused, without the field that they refused."""
    fields: dict[str, Any] = {}
    words: dict[str, str] = {}
    for part in refusal.understood:
        if part.field in Said.model_fields and part.field not in (refusal.field, "words", "unread", "readings"):
            try:
                fields[part.field] = getattr(Said.model_validate({part.field: part.value}), part.field)
            except ValidationError:
                continue
            words[part.field] = part.words or ""
    return Said(**fields, words={name: text for name, text in words.items() if text})
