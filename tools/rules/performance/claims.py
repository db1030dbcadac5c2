"""The figures that a plan claims of its performance, beside those that the tools compute.

Reads the `performance` block of any JSON and pairs its numbers with the estimate's, place by place. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...plan.schema import pointer
from ...plan.view import PhaseView, PlanView, as_list, as_mapping
from ..evaluation import evaluation_of

# A claimed figure matches within this share of the computed one.
TOLERANCE = 0.05
# Half a unit of two decimals: a readable table rounds to that, 5 us of a step's time.
_ROUNDING = 0.005
# What tells the items of a list apart.
_KEYS = {
    "per_device": "device", "prefill": "node", "decode": "node", "resources": "resource", "largest": "what",
    "remedies": "what",
}  # fmt: skip
METRICS = ("latency", "throughput", "memory")
# Block of a claimed latency, by phase.
PARTS_OF = {"prefill": "prefill", "decode": "decode_step"}
TOTAL_OF = {"prefill": "prefill_ms", "decode": "decode_ms"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One claimed number: its JSON Pointer below `/performance`, what it is, and what the tools compute."""

    place: tuple[str, ...]
    claimed: float
    computed: float

    @property
    def path(self) -> str:
        """JSON Pointer in the document."""
        return pointer(("performance", *self.place))

    @property
    def name(self) -> str:
        """The field, with those above it."""
        return ".".join(self.place)

    @property
    def is_off(self) -> bool:
        """Whether it does not match."""
        return not near(self.claimed, self.computed)

    @property
    def factor(self) -> float:
        """Claimed over computed."""
        return self.claimed / self.computed if self.computed else float("inf")


def near(claimed: float, computed: float) -> bool:
    """Whether the two match: within `TOLERANCE`, or as far as two decimals go."""
    return abs(claimed - computed) <= max(TOLERANCE * abs(computed), _ROUNDING) + 1e-9


def claim_of(view: PlanView) -> Mapping[str, Any]:
    """The `performance` block; empty where there is none."""
    return as_mapping(view.raw.get("performance"))


def given(block: object) -> Mapping[str, Any]:
    """The fields of a block of a claim that say something: `null` is as good as absent."""
    return {name: value for name, value in as_mapping(block).items() if value is not None}


def number_of(value: object) -> float | None:
    """`value` as a number that can be compared; `None` where it is none (or negative: ST001)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return float("inf")
    return number if number >= 0.0 else None


def figures(view: PlanView) -> tuple[Figure, ...]:
    """Every claimed figure that the tools compute too; none where nothing can be computed."""
    found = view.once(figures, lambda: tuple(_figures(view)))
    return found if view.is_sound else ()


def _figures(view: PlanView) -> Iterator[Figure]:
    claim = claim_of(view)
    estimate = evaluation_of(view).estimate if claim else None
    if estimate is None:
        return
    computed = estimate.model_dump(mode="python")
    if not _has_same_price(claim.get("cost"), computed["cost"]):
        computed["cost"] = None
    yield from _paired(claim, computed, ())


def _has_same_price(claimed: object, computed: Mapping[str, Any] | None) -> bool:
    """Whether two costs are of one unit and one price: a price is an input, not a figure of the plan."""
    block = as_mapping(claimed)
    return computed is not None and all(block.get(name) == computed[name] for name in ("unit", "price_source"))


def _paired(claimed: object, computed: object, place: tuple[str, ...]) -> Iterator[Figure]:
    if isinstance(computed, dict):
        known = as_mapping(cast("object", computed))
        for name, value in as_mapping(claimed).items():
            if name in known:
                yield from _paired(value, known[name], (*place, name))
    elif isinstance(computed, tuple) and place and place[-1] in _KEYS:
        key = _KEYS[place[-1]]
        waiting: dict[object, list[object]] = {}
        for item in cast("tuple[object, ...]", computed):
            waiting.setdefault(as_mapping(item).get(key), []).append(item)
        for position, item in enumerate(as_list(claimed)):
            name = as_mapping(item).get(key)
            same = waiting.get(name) if isinstance(name, str) else None
            if same:
                yield from _paired(item, same.pop(0), (*place, str(position)))
    elif isinstance(computed, int | float) and not isinstance(computed, bool):
        number = number_of(claimed)
        if number is not None:
            yield Figure(place, number, float(computed))


def phases_of(view: PlanView, phase: str) -> list[PhaseView]:
    """The branches of one phase inside replicas."""
    return [branch for branch in view.phases if branch.phase == phase and branch.replica is not None]


def is_on_several_devices(view: PlanView, phase: str) -> bool:
    """Whether a branch of the phase runs on more than one device: then something communicates."""
    return any(
        len(stage.devices) > 1 or len(branch.stages) > 1
        for branch in phases_of(view, phase)[:1]
        for stage in branch.stages
    )


def stages_in(view: PlanView, phase: str) -> int:
    """Pipeline stages of the first branch of the phase."""
    return max((len(branch.stages) for branch in phases_of(view, phase)[:1]), default=1)


def is_evaluated(view: PlanView, metric: str) -> bool:
    """Whether the plan is to give `metric`: it claims something of it, or gives all the other metrics of 004 §2."""
    claim = claim_of(view)
    return bool(given(claim.get(metric))) or all(given(claim.get(other)) for other in METRICS if other != metric)
