"""The constraints of both readings of a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...tools.language.constraint_words import merged_constraints
from ...tools.plan.constraints import Constraint, chosen_kinds
from .agreement import same_constraint
from .found import Verified
from .merge import Merge
from .wording import stands_in


def constraints_of_both(merge: Merge, found: Verified) -> tuple[Constraint, ...]:
    """The constraints of both; one that differs from the rules' own about the same thing is settled by the words."""
    own, words = found.constraints, [one.words for one in found.constraints] + found.not_understood
    kept = [one for one in merge.base.constraints if _stays(merge, one, own, words)]
    for one in own:
        alike = [other for other in kept if same_constraint(other, one, is_about=True)]
        if any(same_constraint(other, one) for other in alike) or _is_in_strategy(merge, one):
            continue
        if one.kind == "accelerators" and chosen_kinds(kept):
            continue
        if one.kind == "accelerators" and (card := merge.values.get("accelerator")) in one.value:
            if not merge.is_whole or "accelerator" in found.fields:
                continue
            merge.notes.append(f"{card} is one of a choice to the model, which the rules read alone")
            merge.drop("accelerator")
        if alike and not (
            merge.is_refused or stands_in(alike[0].words, one.words) or merge.takes_back(alike[0].words, one.words)
        ):
            both = f"{alike[0].words[:80]!r} and {one.words[:80]!r} demand two things"
            if not merge.is_whole:
                merge.clashes.append(f"{both}; say which holds")
                continue
            merge.doubts.append(f"{both}: the model's reading counts")
        kept = [other for other in kept if other not in alike]
        kept.append(one)
        value = one.value.model_dump() if hasattr(one.value, "model_dump") else one.value  # pyright: ignore[reportAttributeAccessIssue]
        merge.notes.append(f"read by the model: the constraint {one.kind} {value} from {one.words[:160]!r}")
    return merged_constraints(tuple(kept)) if kept else ()


def _stays(merge: Merge, one: Constraint, own: Sequence[Constraint], words: Iterable[str]) -> bool:
    """Whether a constraint of the rules counts; one that a model which read the whole does not state is a doubt."""
    if one.kind == "accelerators" and merge.values.get("accelerator") in one.value:
        merge.doubts.append(f"{one.words[:160]!r}: the model reads {merge.values['accelerator']} alone")
        return False
    is_read = any(stands_in(one.words, other) or stands_in(other, one.words) for other in words)
    is_told_otherwise = any(one.kind != other.kind and stands_in(other.words, one.words) for other in own)
    if not merge.is_whole or any(same_constraint(one, other, is_about=True) for other in own):
        return True
    if is_told_otherwise:
        merge.notes.append(f"left out, which the rules alone read: the constraint {one.kind} from {one.words[:160]!r}")
        return False
    if is_read:
        return True
    merge.doubts.append(f"the constraint {one.kind} from {one.words[:160]!r}: read by the rules, not by the model")
    return False


def _is_in_strategy(merge: Merge, one: Constraint) -> bool:
    """Whether a degree that is pinned is stated as a degree of the strategy already."""
    strategy = merge.values.get("strategy")
    if strategy is None or one.kind != "degree" or one.value.relation != "=":
        return False
    phases = (one.phase,) if one.phase is not None else ("prefill", "decode")
    return all(getattr(getattr(strategy, phase), one.value.name) == one.value.degree for phase in phases)
