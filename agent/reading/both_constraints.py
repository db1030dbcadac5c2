"""The constraints of both readings of a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...tools.language.constraints.words import merged_constraints
from ...tools.plan.constraints import Constraint, chosen_kinds
from .agreement import same_constraint
from .found import Verified
from .merge import Merge
from .wording import stands_in


def constraints_of_both(merge: Merge, reading: Verified) -> tuple[Constraint, ...]:
    """The constraints of both readings; where they differ about the same thing, the words decide."""
    by_model, words = reading.constraints, [demand.words for demand in reading.constraints] + reading.not_understood
    constraints = [demand for demand in merge.base.constraints if _stays(merge, demand, by_model, words)]
    for demand in by_model:
        alike = [other for other in constraints if same_constraint(other, demand, is_about=True)]
        if any(same_constraint(other, demand) for other in alike) or _is_in_strategy(merge, demand):
            continue
        if demand.kind == "accelerators" and chosen_kinds(constraints):
            continue
        if demand.kind == "accelerators" and (card := merge.values.get("accelerator")) in demand.value:
            if not merge.is_whole or "accelerator" in reading.fields:
                continue
            merge.notes.append(f"{card} is one of a choice to the model, which the rules read alone")
            merge.drop("accelerator")
        if alike and not (
            merge.is_refused
            or stands_in(alike[0].words, demand.words)
            or merge.takes_back(alike[0].words, demand.words)
        ):
            both = f"{alike[0].words[:80]!r} and {demand.words[:80]!r} demand two things"
            if not merge.is_whole:
                merge.clashes.append(f"{both}; say which holds")
                continue
            merge.doubts.append(f"{both}: the model's reading counts")
        constraints = [other for other in constraints if other not in alike]
        constraints.append(demand)
        value = demand.value.model_dump() if hasattr(demand.value, "model_dump") else demand.value  # pyright: ignore[reportAttributeAccessIssue]
        merge.notes.append(f"read by the model: the constraint {demand.kind} {value} from {demand.words[:160]!r}")
    return merged_constraints(tuple(constraints)) if constraints else ()


def _stays(merge: Merge, demand: Constraint, by_model: Sequence[Constraint], words: Iterable[str]) -> bool:
    """Whether a constraint of the rules counts; one that a reading of the whole text does not state is a doubt."""
    if demand.kind == "accelerators" and merge.values.get("accelerator") in demand.value:
        merge.doubts.append(f"{demand.words[:160]!r}: the model reads {merge.values['accelerator']} alone")
        return False
    is_read = any(stands_in(demand.words, other) or stands_in(other, demand.words) for other in words)
    is_told_otherwise = any(demand.kind != other.kind and stands_in(other.words, demand.words) for other in by_model)
    if not merge.is_whole or any(same_constraint(demand, other, is_about=True) for other in by_model):
        return True
    if is_told_otherwise:
        merge.notes.append(
            f"left out, which the rules alone read: the constraint {demand.kind} from {demand.words[:160]!r}"
        )
        return False
    if is_read:
        return True
    merge.doubts.append(
        f"the constraint {demand.kind} from {demand.words[:160]!r}: read by the rules, not by the model"
    )
    return False


def _is_in_strategy(merge: Merge, demand: Constraint) -> bool:
    """Whether a pinned degree is a degree of the strategy already."""
    strategy = merge.values.get("strategy")
    if strategy is None or demand.kind != "degree" or demand.value.relation != "=":
        return False
    phases = (demand.phase,) if demand.phase is not None else ("prefill", "decode")
    return all(getattr(getattr(strategy, phase), demand.value.name) == demand.value.degree for phase in phases)
