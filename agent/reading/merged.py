"""A model's verified reading of a text and the rules' one together.

The model reads the whole text, the rules know words: what both say stands as the rules have it; what the model alone
says is told. Where they differ the model's words count, unless those of the rules say it more plainly: then the person
is asked. What the rules alone read counts where no field of the model's says it, or plain words do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ...tools.language.constraint_words import merged_constraints
from ...tools.language.errors import RequestError
from ...tools.language.evidence import Grade, grade
from ...tools.language.merge import refusal as refused
from ...tools.language.merge import stated_fields
from ...tools.language.said import Said
from ...tools.plan.constraints import Constraint, chosen_kinds
from ...tools.plan.document import Relaxation
from .agreement import (
    COUNTS,
    agree,
    agree_on_counts,
    answers,
    is_final,
    is_left_alone,
    is_whole,
    same_constraint,
    total,
)
from .answer import MODEL_FIELDS
from .found import Found, Verified
from .wording import APART, shown, spaced, stands_in, unread, worded

# Words that set a statement against one before it.
_CONTRAST = re.compile(
    r"(?<![a-z])(?:but|however|originally|previously|was|were|used\sto|now|instead|only|rather|no\slonger|changed?|replaced|at\smost|"
    r"correct(?:ed|ion)?|mistake|up\sto|sorry|scratch|actually|wait|make\s(?:it|that))(?![a-z])|之前|原来|改|但|只|不是|最多|按|换成|不对|应该",
    re.IGNORECASE,
)


# What is refused, or supposed, where nothing says it: never left to what a model forgets.
_NAMES = frozenset({"model", "accelerator"})


class AmbiguousError(RequestError):
    """What the text leaves open, or is read in two ways: the person has to say which is meant."""


@dataclass
class _Merge:
    """The reading as it comes together. `base` is the rules', `is_refused` that they refused the whole of `text`,
    `is_whole` that the model read most of what they read.
    """

    base: Said
    is_refused: bool
    text: str
    values: dict[str, Any]
    words: dict[str, str]
    assumed: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    clashes: list[str] = field(default_factory=list[str])
    taken: list[str] = field(default_factory=list[str])
    is_whole: bool = False
    doubts: list[str] = field(default_factory=list[str])

    def take(self, name: str, one: Found, instead: str = "") -> None:
        """Let the model's value stand; `instead` says what of the rules it takes the place of."""
        self.values[name] = one.value
        self.taken.append(one.quote)
        if one.reason is None:
            self.words[name] = one.quote
            self.notes.append(f"read by the model: {worded(name, one.value)} from {one.quote[:160]!r}{instead}")
            return
        self.words.pop(name, None)
        self.assumed[name] = f"read by the model from {one.quote[:160]!r}: {one.reason[:200]}"
        if instead:
            self.notes.append(f"assumed by the model: {worded(name, one.value)}{instead}")

    def drop(self, name: str) -> None:
        """Let nothing be said of a field."""
        self.values.pop(name, None)
        self.words.pop(name, None)

    def is_plain(self, name: str) -> bool:
        """Whether the rules' words say plainly what their value is of."""
        return grade(name, self.values[name], self.words.get(name, "")) is Grade.PLAIN

    def holds(self, name: str, one: Found) -> bool:
        """Whether the model's words win over the rules': they say it as plainly, hold these, or take them back."""
        own = self.words.get(name, "")
        if self.is_refused or not self.is_plain(name) or stands_in(own, one.quote):
            return True
        is_plain = one.is_worked or grade(name, one.value, one.quote) is Grade.PLAIN
        return is_plain or self.takes_back(own, one.quote)

    def takes_back(self, own: str, quote: str) -> bool:
        """Whether the words quoted take back those of the rules, which stand before them."""
        text, first = spaced(self.text).lower(), next(iter(re.split(r"[;,]\s", own)), "")
        last = spaced(APART.split(quote)[-1]).lower()
        theirs, later = text.find(spaced(first).lower()), text.rfind(last)
        around = text[max(0, theirs - 40) : later + len(last) + 20]
        return 0 <= theirs <= later + len(last) and _CONTRAST.search(around) is not None

    def settle(self, name: str, one: Found) -> None:
        """Both state `name`, and otherwise: an assumption gives way, the plainer words hold, else it is a question."""
        own = self.words.get(name, "")
        if one.reason is not None:
            self.notes.append(f"not taken from the model's reading: {worded(name, one.value)}, which it only assumes")
        elif self.holds(name, one):
            self.take(name, one, f" (the rules read {worded(name, self.values[name])} in {own[:80]!r})")
        else:
            self.clashes.append(
                f"{name.replace('_', ' ')} may be {shown(self.values[name])} ({own[:80]!r}) or {shown(one.value)} "
                f"({one.quote[:80]!r}); say which is meant"
            )


def merged(rules: Said | RequestError, found: Verified, text: str, read_on: Said | None = None) -> Said:
    """What both readings of `text` say; `read_on` is what the rules read all the same of a text that they refused.

    Raises:
        RequestError: the rules refused the text and the model has no answer to it, or (`AmbiguousError`) something is
            to be settled before anything can be planned, or stated otherwise by words that are as good.
    """
    base = read_on or (_understood(rules) if isinstance(rules, RequestError) else rules)
    if isinstance(rules, RequestError) and (is_final(rules) or (not found.asks and not answers(found, rules, base))):
        raise rules
    if found.asks:
        understood = rules.understood if isinstance(rules, RequestError) else refused(rules, "").understood
        raise AmbiguousError(" ".join(found.asks), understood)
    is_refused = isinstance(rules, RequestError) and read_on is None
    merge = _Merge(base, is_refused, text, stated_fields(base), dict(base.words))
    if isinstance(rules, RequestError):
        merge.notes.append(f"the rules refused it, the model read on: {rules.reason[:300]}")
    merge.is_whole = is_whole(base, found)
    _leave_what_the_model_leaves(merge, found)
    _take_counts(merge, found.fields)
    for name, one in found.fields.items():
        if name in COUNTS or is_left_alone(base, name, one.value):
            continue
        if name not in merge.values:
            merge.take(name, one)
        elif not agree(name, merge.values[name], one.value):
            merge.settle(name, one)
    if "gpus_open" in merge.values and any(name in merge.values for name in COUNTS):
        _as_cost(merge)
    _refuse_what_cannot_be(merge, rules, found)
    constraints = _constraints(merge, found)
    if merge.clashes:
        error = refused(base, "; ".join(merge.clashes))
        raise AmbiguousError(error.reason, error.understood)
    merge.notes += _of_rules_alone(merge, found)
    merge.notes += [f"not taken from the model's reading: {line}" for line in found.dropped]
    allowed: set[Relaxation] = {*base.relaxations, *(found.relaxations if merge.is_refused else ())}
    return Said(
        **merge.values,
        relaxations=tuple(sorted(allowed)),
        constraints=constraints,
        words=merge.words,
        assumed={**{name: note for name, note in base.assumed.items() if name in merge.words}, **merge.assumed},
        unread=(*unread(base, merge.taken, found.not_understood), *merge.doubts),
        readings=(*base.readings, *dict.fromkeys(merge.notes)),
    )


def _leave_what_the_model_leaves(merge: _Merge, found: Verified) -> None:
    """Leave what the rules alone read, where the model has a field for it, and no fact.

    What words say plainly is a doubt then, and stays where the model left out a good part of what the rules read.
    Degrees are left where the model reads them as strategies to be weighed, lengths where it reads the end of a range,
    figures and formats whose words the model read for something else, and all of a text that the rules refused.
    """
    read = found.read | {*COUNTS}
    for name in sorted((merge.values.keys() & MODEL_FIELDS) - read - _NAMES):
        is_told = _is_told_otherwise(name, merge, found)
        is_plain = merge.is_plain(name) and not merge.is_refused and not is_told
        if is_plain and not merge.is_whole:
            continue
        words = f"{worded(name, merge.values[name])} from {merge.words.get(name, '')[:160]!r}"
        if is_plain:
            merge.doubts.append(f"{words}: read by the rules, not by the model")
        else:
            merge.notes.append(f"left out, which the rules alone read: {words}")
        merge.drop(name)


def _is_told_otherwise(name: str, merge: _Merge, found: Verified) -> bool:
    """Whether the model reads something else of what the rules read as a field."""
    value, words = merge.values[name], merge.words.get(name, "")
    if name == "strategy":
        return "compared" in found.fields
    span = found.fields.get(f"{name}_range")
    if span is not None and value in span.value:
        return True
    quotes = [one.quote for one in found.fields.values() if one.value == value and not isinstance(value, bool)]
    quotes += [one.words for one in found.constraints if one.value == value]
    return any(stands_in(words, quote) or stands_in(quote, words) for quote in quotes)


def _refuse_what_cannot_be(merge: _Merge, rules: Said | RequestError, found: Verified) -> None:
    """Refuse counts that contradict each other, and a model or an accelerator that is named and not known.

    Raises:
        RequestError: as the rules refused it, where they did.
    """
    counts = {name: merge.values[name] for name in COUNTS if name in merge.values}
    if len(counts) == len(COUNTS) and counts["nodes"] * counts["gpus_per_node"] != counts["gpus"]:
        said = "; ".join(merge.words.get(name, "") for name in COUNTS)
        raise rules if isinstance(rules, RequestError) else refused(merge.base, f"the GPU counts differ: {said!r}")
    is_named = {"accelerator", "accelerator_object"} & merge.values.keys() or chosen_kinds(merge.base.constraints)
    if found.unknown_part is not None and not is_named:
        raise refused(merge.base, found.unknown_part)
    if found.unknown_model is not None and not {"model", "model_config_object"} & merge.values.keys():
        raise refused(merge.base, found.unknown_model)


def _as_cost(merge: _Merge) -> None:
    """As few as do of the GPUs that are counted: of cost, which is how they are ranked."""
    words = merge.words.pop("gpus_open", "")
    del merge.values["gpus_open"]
    if "objective" not in merge.values:
        merge.values["objective"], merge.words["objective"] = "cost", words
        merge.notes.append(f"{words[:160]!r} read as the objective cost: as few of the GPUs as do")


def _take_counts(merge: _Merge, fields: Mapping[str, Found]) -> None:
    """Nodes, GPUs of a node and GPUs, which are stated together: all of them of one reading, or both where they fit."""
    own = {name: fields[name] for name in COUNTS if name in fields}
    theirs = {name: merge.values[name] for name in COUNTS if name in merge.values}
    values = {name: one.value for name, one in own.items()}
    if agree_on_counts(theirs, values):
        for name, one in own.items():
            if name not in theirs and not (total(theirs) and total(theirs) == total(values)):
                merge.take(name, one)
        both = {**theirs, **values}
        # Where the rules took the GPUs of each of several nodes for all of them.
        if "gpus" not in values and values.get("nodes", 1) > 1 and both.get("gpus") == both.get("gpus_per_node"):
            merge.drop("gpus")
        return
    counted = "; ".join(one.quote for one in own.values())
    said = ", ".join(merge.words.get(name, "") for name in theirs)
    if not theirs or any(merge.holds(name, one) for name in theirs for one in own.values()):
        for name in theirs:
            merge.drop(name)
        for name, one in own.items():
            merge.take(name, one, f" (the rules read {theirs} in {said[:80]!r})")
    else:
        merge.clashes.append(
            f"the GPUs may be {shown(theirs)} ({said[:80]!r}) or {shown(values)} ({counted[:80]!r}); say which is meant"
        )


def _stays(merge: _Merge, one: Constraint, own: Sequence[Constraint], words: Iterable[str]) -> bool:
    """Whether a constraint of the rules counts; one that a model which read the whole does not state is a doubt."""
    is_read = any(stands_in(one.words, other) or stands_in(other, one.words) for other in words)
    if not merge.is_whole or is_read or any(same_constraint(one, other, is_about=True) for other in own):
        return True
    merge.doubts.append(f"the constraint {one.kind} from {one.words[:160]!r}: read by the rules, not by the model")
    return False


def _constraints(merge: _Merge, found: Verified) -> tuple[Constraint, ...]:
    """The constraints of both; one that differs from the rules' own about the same thing is settled by the words."""
    own, words = found.constraints, [one.words for one in found.constraints] + found.not_understood
    kept = [one for one in merge.base.constraints if _stays(merge, one, own, words)]
    for one in own:
        alike = [other for other in kept if same_constraint(other, one, is_about=True)]
        if any(same_constraint(other, one) for other in alike) or _is_in_strategy(merge, one):
            continue
        if one.kind == "accelerators" and (merge.values.get("accelerator") in one.value or chosen_kinds(kept)):
            continue
        if alike and not (
            merge.is_refused or stands_in(alike[0].words, one.words) or merge.takes_back(alike[0].words, one.words)
        ):
            merge.clashes.append(f"{alike[0].words[:80]!r} and {one.words[:80]!r} demand two things; say which holds")
            continue
        kept = [other for other in kept if other not in alike]
        kept.append(one)
        merge.taken.append(one.words)
        value = one.value.model_dump() if hasattr(one.value, "model_dump") else one.value  # pyright: ignore[reportAttributeAccessIssue]
        merge.notes.append(f"read by the model: the constraint {one.kind} {value} from {one.words[:160]!r}")
    return merged_constraints(tuple(kept)) if kept else ()


def _is_in_strategy(merge: _Merge, one: Constraint) -> bool:
    """Whether a degree that is pinned is stated as a degree of the strategy already."""
    strategy = merge.values.get("strategy")
    if strategy is None or one.kind != "degree" or one.value.relation != "=":
        return False
    phases = (one.phase,) if one.phase is not None else ("prefill", "decode")
    return all(getattr(getattr(strategy, phase), one.value.name) == one.value.degree for phase in phases)


def _of_rules_alone(merge: _Merge, found: Verified) -> Iterator[str]:
    """What the rules alone read."""
    if merge.is_refused:
        return
    counts = COUNTS if any(name in found.fields for name in COUNTS) else ()
    for name, value in stated_fields(merge.base).items():
        words = merge.words.get(name)
        single = name.removesuffix("_range")
        if words and name not in found.fields and single not in found.fields and name not in counts:
            yield f"read by the rules alone: {worded(name, value)} from {words[:160]!r}"


def _understood(refusal: RequestError) -> Said:
    """What the rules had understood before they refused, less the field that they refused."""
    kept: dict[str, Any] = {}
    words: dict[str, str] = {}
    for one in refusal.understood:
        if one.field in Said.model_fields and one.field not in (refusal.field, "words", "unread", "readings"):
            try:
                kept[one.field] = getattr(Said.model_validate({one.field: one.value}), one.field)
            except ValidationError:
                continue
            words[one.field] = one.words or ""
    return Said(**kept, words={name: said for name, said in words.items() if said})
