"""The performance claims of a plan: figures paired with computed ones, what is left out, and how to mend it.

Reads the `performance` block of any JSON and pairs its numbers with the estimate's, place by place. Nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from ...errors import InputError
from ...plan.schema import pointer
from ...plan.view import PhaseView, PlanView, as_list, as_mapping
from ..base import Violation
from ..evaluation import evaluation_of
from ..findings import Change

# A claimed figure matches within this share of the computed one.
TOLERANCE = 0.05
# Half a unit of the second decimal: readable tables round to it; 5 us of a step's time.
_ROUNDING = 0.005
# The field that identifies the items of a list.
_KEYS = {
    "per_device": "device", "prefill": "node", "decode": "node", "resources": "resource", "largest": "what",
    "remedies": "what",
}  # fmt: skip
METRICS = ("latency", "throughput", "memory")
# Block of a claimed latency, by phase.
PARTS_OF = {"prefill": "prefill", "decode": "decode_step"}
TOTAL_OF = {"prefill": "prefill_ms", "decode": "decode_ms"}


class Figure(Struct, frozen=True):
    """A claimed number: its path below `/performance`, its value, and the computed value."""

    place: tuple[str, ...]
    claimed: float
    computed: float

    @property
    def path(self) -> str:
        """JSON Pointer in the document."""
        return pointer(("performance", *self.place))

    @property
    def name(self) -> str:
        """The path of the field, joined by points."""
        return ".".join(self.place)

    @property
    def is_off(self) -> bool:
        """Whether the claimed value does not match the computed one."""
        return not near(self.claimed, self.computed)

    @property
    def factor(self) -> float:
        """Claimed over computed."""
        return self.claimed / self.computed if self.computed else float("inf")


class Fault(Struct, frozen=True):
    """A claimed figure that is off, the rule that reports it, why it may be off, and others that are off alike."""

    rule: str
    path: str
    name: str
    claimed: float
    computed: float
    why: str = ""
    also: tuple[Figure, ...] = ()


def near(claimed: float, computed: float) -> bool:
    """Whether two values match: within `TOLERANCE`, or to two decimals."""
    return abs(claimed - computed) <= max(TOLERANCE * abs(computed), _ROUNDING) + 1e-9


def claim_of(view: PlanView) -> Mapping[str, Any]:
    """The `performance` block; empty if there is none."""
    return as_mapping(view.raw.get("performance"))


def fields_of(block: object) -> Mapping[str, Any]:
    """The fields of a block of a claim that are not `null`."""
    return {name: value for name, value in as_mapping(block).items() if value is not None}


def number_of(value: object) -> float | None:
    """`value` as a comparable number; `None` if it is none (or negative: ST001)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return float("inf")
    return number if number >= 0.0 else None


def figures(view: PlanView) -> tuple[Figure, ...]:
    """Every claimed figure that the tools compute too; empty if nothing can be computed."""
    paired = view.once(figures, lambda: tuple(_figures(view)))
    return paired if view.is_sound else ()


def _figures(view: PlanView) -> Iterator[Figure]:
    claim = claim_of(view)
    evaluation = evaluation_of(view) if claim else None
    if evaluation is None:
        return
    computed = evaluation.estimate.model_dump(mode="python")
    if not _has_same_price(claim.get("cost"), computed["cost"]):
        computed["cost"] = None
    yield from _paired(claim, computed, ())


def _has_same_price(claimed: object, computed: Mapping[str, Any] | None) -> bool:
    """Whether two costs have the same unit and price: a price is an input, not a figure of the plan."""
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
    """Whether the first branch of the phase runs on several devices, so that something communicates."""
    return any(
        len(stage.devices) > 1 or len(branch.stages) > 1
        for branch in phases_of(view, phase)[:1]
        for stage in branch.stages
    )


def stages_in(view: PlanView, phase: str) -> int:
    """Pipeline stages of the first branch of the phase."""
    return max((len(branch.stages) for branch in phases_of(view, phase)[:1]), default=1)


def is_evaluated(view: PlanView, metric: str) -> bool:
    """Whether the plan has to give `metric`: it claims a part of it, or all other metrics of 004 §2."""
    claim = claim_of(view)
    return bool(fields_of(claim.get(metric))) or all(
        fields_of(claim.get(other)) for other in METRICS if other != metric
    )


THROUGHPUTS = ("single_request_tokens_per_s", "batched_tokens_per_s", "dp_scaled_tokens_per_s")
# With one of these a latency is claimed as a whole; else only what users see (TTFT, TPOT) or parts of a phase.
_WHOLE = frozenset({"end_to_end_ms", "prefill_ms", "decode_ms"})


def lacking_latency(view: PlanView) -> tuple[str, ...]:
    """The fields that a claimed latency lacks to be prefill + decode, each with its parts (PE001).

    A decode step of FLOPs alone is PE005's. A phase on one device has no communication to give.
    """
    if not is_evaluated(view, "latency"):
        return ()
    latency = fields_of(claim_of(view).get("latency"))
    is_whole = not latency or not _WHOLE.isdisjoint(latency)
    lacking = [total for total in TOTAL_OF.values() if is_whole and total not in latency]
    for phase, block in PARTS_OF.items():
        parts = fields_of(latency.get(block))
        if not parts:
            lacking += [block] * is_whole
            continue
        wanted = ["compute_ms", "memory_ms", *["communication_ms"] * is_on_several_devices(view, phase)]
        if block == "decode_step" and lacking_memory_term(view):
            wanted = ["compute_ms"]
        lacking += [f"{block}.{name}" for name in wanted if name not in parts]
    return tuple(lacking)


def lacking_memory_term(view: PlanView) -> tuple[str, ...]:
    """The memory term, if a claimed decode step has parts without it (PE005)."""
    parts = fields_of(fields_of(claim_of(view).get("latency")).get("decode_step"))
    return ("memory_ms",) if parts and "memory_ms" not in parts else ()


def lacking_cache(view: PlanView) -> tuple[str, ...]:
    """The fields of the KV cache per token and per device that a claimed memory lacks (PE002)."""
    if not is_evaluated(view, "memory"):
        return ()
    memory = fields_of(claim_of(view).get("memory"))
    devices = [fields_of(item) for item in as_list(memory.get("per_device"))]
    lacking = [] if "kv_cache_bytes_per_token" in memory else ["kv_cache_bytes_per_token"]
    if not devices or any("kv_cache_bytes" not in device for device in devices):
        lacking.append("per_device.kv_cache_bytes")
    return tuple(lacking)


def lacking_throughput(view: PlanView) -> tuple[str, ...]:
    """Those of the three throughputs that a claim lacks (PE003)."""
    if not is_evaluated(view, "throughput"):
        return ()
    throughput = fields_of(claim_of(view).get("throughput"))
    return tuple(name for name in THROUGHPUTS if name not in throughput)


def recomputed(view: PlanView, violation: Violation) -> Iterator[Change]:
    """The change that replaces the claim by the plan's estimate; none if the plan cannot be estimated (yet)."""
    del violation
    yield from view.once(recomputed, lambda: tuple(_recomputed(view)))


def _recomputed(view: PlanView) -> Iterator[Change]:
    # Imported only if a claim is off.
    from ...performance.estimate import estimate

    try:
        figures = estimate(dict(view.raw)).model_dump(mode="json", exclude_none=True)
    except InputError:
        return
    yield Change("set", ("performance",), figures)
