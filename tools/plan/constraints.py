"""Constraints that a person demands of a plan beside its limits, as data, each with its original words.

This is only the format (ruling R17); `tools/rules/constraints.py` judges whether a plan meets a constraint.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from ..catalog.accelerators import Accelerator, AcceleratorName, Count
from ..errors import MissingFieldError
from ..frozen import Frozen, Sparse
from ..input import bounds
from .elements import as_list

MOST_WORDS_CHARS = 500
MOST_CONSTRAINTS = 64
Words = Annotated[str, Field(max_length=MOST_WORDS_CHARS)]
DegreeName = Literal["tp", "tp_ffn", "pp", "ep", "sp", "attention_dp"]
# A primitive whose groups of devices may be constrained to one node.
Primitive = Literal["tp", "pp", "ep", "sp"]
ConstrainedPhase = Literal["prefill", "decode"]


class DegreeBound(Frozen):
    """A degree that is pinned, or the most that it may be."""

    name: DegreeName
    relation: Literal["=", "<="]
    degree: Count


class ForbiddenDegree(Frozen):
    """A degree that may not be above 1."""

    name: DegreeName
    relation: Literal["forbidden"]


class DegreeConstraint(Sparse):
    """A parallel degree pinned, bounded or forbidden, in both phases or in one."""

    kind: Literal["degree"]
    value: DegreeBound | ForbiddenDegree
    phase: ConstrainedPhase | None = None
    words: Words


class ReplicasConstraint(Sparse):
    """How many replicas the plan has, of both kinds together or of one phase: exactly, at least or at most so many."""

    kind: Literal["replicas"]
    value: Count
    relation: Literal[">=", "<="] | None = None
    phase: ConstrainedPhase | None = None
    words: Words


class ReservedConstraint(Sparse):
    """GPUs, or whole nodes, that are there and that the plan must not use."""

    kind: Literal["reserved_gpus", "reserved_nodes"]
    value: Count
    words: Words


class FreeMemoryConstraint(Sparse):
    """Bytes that stay free on every GPU."""

    kind: Literal["free_bytes_per_gpu"]
    value: Annotated[int, bounds.MEMORY_BYTES.whole()]
    words: Words


class PlacementConstraint(Sparse):
    """A primitive whose groups of devices may not leave a node, or must not stay inside one."""

    kind: Literal["within_node", "across_nodes"]
    value: Primitive
    words: Words


class BudgetConstraint(Sparse):
    """What all nodes that the plan uses may cost an hour, in USD; at the catalogue's price where none is stated."""

    kind: Literal["usd_per_hour"]
    value: Annotated[float, bounds.USD.real()]
    usd_per_gpu_hour: Annotated[float, bounds.USD.real()] | None = None
    words: Words


class AcceleratorsConstraint(Sparse):
    """The kinds of accelerator to choose from."""

    kind: Literal["accelerators"]
    value: Annotated[tuple[AcceleratorName, ...], Field(min_length=1, max_length=64)]
    words: Words


Constraint = Annotated[
    DegreeConstraint
    | ReplicasConstraint
    | ReservedConstraint
    | FreeMemoryConstraint
    | PlacementConstraint
    | BudgetConstraint
    | AcceleratorsConstraint,
    Field(discriminator="kind"),
]

Constraints = Sequence[Constraint]
_CONSTRAINT: TypeAdapter[Constraint] = TypeAdapter(Constraint, config=ConfigDict(defer_build=True))


def each_read(stated: object) -> Iterator[Constraint | None]:
    """Each constraint of a list by itself; `None` for one that breaks the format (rule ST001 names it)."""
    for constraint in as_list(stated)[:MOST_CONSTRAINTS]:
        try:
            yield _CONSTRAINT.validate_python(constraint)
        except ValidationError:
            yield None


def reserved(constraints: Constraints, kind: Literal["reserved_gpus", "reserved_nodes"]) -> int:
    """GPUs, or nodes, that the constraints of this kind reserve."""
    return max(
        (
            constraint.value
            for constraint in constraints
            if isinstance(constraint, ReservedConstraint) and constraint.kind == kind
        ),
        default=0,
    )


def chosen_kinds(constraints: Constraints) -> tuple[str, ...]:
    """The accelerators that all constraints on them allow, in the order of the first; empty without constraints."""
    choices = [constraint.value for constraint in constraints if isinstance(constraint, AcceleratorsConstraint)]
    return tuple(kind for kind in choices[0] if all(kind in choice for choice in choices)) if choices else ()


def hourly_price(budget: BudgetConstraint, accelerator: Accelerator) -> float:
    """USD per GPU hour that a budget is checked against: the stated price, else the middle of the known ones.

    Raises MissingFieldError: no price is stated, and none is known of the accelerator.
    """
    price = budget.usd_per_gpu_hour or accelerator.usd_per_hour
    if price is None:
        raise MissingFieldError(
            "on_demand_usd_per_hour", f"accelerator {accelerator.id}", "a budget per hour pays for a number of them"
        )
    return price


def affordable_gpus(constraints: Constraints, accelerator: Accelerator, gpus_per_node: int) -> int | None:
    """GPUs of whole nodes that every budget pays for; `None` without a budget.

    Raises MissingFieldError: as `hourly_price`.
    """
    budgets = (constraint for constraint in constraints if isinstance(constraint, BudgetConstraint))
    most = (int(budget.value / hourly_price(budget, accelerator) * (1.0 + 1e-9)) for budget in budgets)
    return min((gpus // gpus_per_node * gpus_per_node for gpus in most), default=None)


def free_bytes(constraints: Constraints) -> int:
    """Bytes of each GPU that the constraints keep free."""
    return max(
        (constraint.value for constraint in constraints if isinstance(constraint, FreeMemoryConstraint)), default=0
    )


def bound_both_sides(constraint: Constraint, other: Constraint) -> bool:
    """Whether one of two constraints is a least number of replicas and the other a most that leaves room for it."""
    if not isinstance(constraint, ReplicasConstraint) or not isinstance(other, ReplicasConstraint):
        return False
    bounds = {bound.relation: bound.value for bound in (constraint, other)}
    return bounds.keys() == {">=", "<="} and bounds[">="] <= bounds["<="]


def demanded_replicas(constraints: Constraints) -> tuple[int, ...]:
    """The numbers of replicas that constraints demand."""
    return tuple(constraint.value for constraint in constraints if isinstance(constraint, ReplicasConstraint))
