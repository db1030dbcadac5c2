"""The card of a brief: a catalogue card, one with figures that the brief changes, or one that only the brief describes.

Memory in GB is a marketing figure, read as rule ME001 reads it (GiB less 0.5%); GiB, MiB and bytes are taken as
reported. A figure that a card outside the catalogue needs and the brief lacks is an error that names it.
"""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from ...catalog.accelerators import Accelerator, DensePeakTFLOPS
from ...catalog.hardware import find_accelerator
from ...errors import InputError
from ..errors import BriefError
from ..patterns.gated import Gated
from .facts import Fact, Facts, only, show

_FORMATS = (
    ("bf16", r"bf16|bfloat16"), ("fp16", r"fp16|float16|half|16 ?bit"), ("fp8", r"fp8|e4m3|float8"), ("int8", r"int8"),
    ("fp4", r"(?:nv|mx)?fp4"), ("int4", r"int4"), ("fp32", r"fp32|float32|single"),
)  # fmt: skip
_FORMAT = Gated("|".join(rf"(?P<{name}>(?<![a-z0-9])(?:{words})(?![a-z0-9]))" for name, words in _FORMATS))
_SPARSE = re.compile(r"(?<!no )(?<!without )(?<!non )(?<!w/o )spars\w+|(?<!非)稀疏")
_DENSE = re.compile(r"\bdense\b|no spars|without spars|w/o spars|non spars|稠密|非稀疏")
# A figure this near to the catalogue's is the catalogue's, rounded.
_SAME = 0.03
_NEEDED = "memory_bytes", "memory_bandwidth", "tflops"
_MEMORY = ("memory_gb_marketing", "memory_gib_reported", "memory_bytes_reported")


class Card(Struct, frozen=True):
    """The card: its id in the catalogue, or an object. `base` is the catalogue entry that it is or departs from."""

    accelerator: str | None = None
    accelerator_object: Accelerator | None = None
    base: Accelerator | None = None


def read_card(facts: Facts, names: list[Fact]) -> Card:
    """The card that `names` (of catalogue cards, `value` an `Accelerator`, or unknown words) and the figures describe.

    Raises:
        BriefError: two cards, two values for a figure, or a card outside the catalogue that lacks a needed figure.
    """
    known = [fact for fact in names if isinstance(fact.value, Accelerator)]
    unknown = [fact for fact in names if not isinstance(fact.value, Accelerator)]
    stated = _stated(facts)
    if known:
        base = _one_card(known, stated)
        changes = _departures(facts, base, stated)
        if not changes:
            return Card(accelerator=base.id, base=base)
        return Card(
            accelerator_object=_build({**base.model_dump(), **changes, "id": f"{base.id}-as-stated"}), base=base
        )
    own_figures = [name for name in _NEEDED if facts.of(f"card.{name}")]
    if not own_figures:
        return Card() if not unknown else _refuse_unknown(unknown[0])
    missing = [name for name in _NEEDED if name not in own_figures]
    if missing and not unknown and len(own_figures) == 1:
        fact = facts.of(f"card.{own_figures[0]}")[0]
        facts.leave_unread(f"{fact.words}: no card is named that this could be a figure of")
        return Card()
    if missing:
        words = {"memory_bytes": "its memory", "memory_bandwidth": "its memory bandwidth", "tflops": "its TFLOPS"}
        fact = facts.of(f"card.{own_figures[0]}")[0]
        raise BriefError(
            f"the card of {fact.where} lacks {' and '.join(words[name] for name in missing)}; state it, or name a card "
            "that the catalogue has (`shardwright hardware`)"
        )
    if "memory_gb_marketing" in stated:
        words = facts.of("card.memory_bytes")[0].words
        facts.reading(f"{words}: memory in GB read as the card's marketing figure, GiB less 0.5% (rule ME001)")
    name = unknown[0].value if unknown else "custom"
    return Card(accelerator_object=_build({"id": str(name)[:200], **stated, "source": ("stated in the brief",)}))


def _refuse_unknown(name: Fact) -> Card:
    try:
        find_accelerator(str(name.value))
    except InputError as error:
        raise BriefError(f"{name.where}: {error}") from error
    return Card()


def _one_card(known: list[Fact], stated: dict[str, Any]) -> Accelerator:
    """The card that all mentions agree on: "A100" beside "A100 80GB" is the latter."""
    cards: dict[str, Fact] = {}
    for fact in known:
        cards.setdefault(fact.value.id, fact)
    if len(cards) > 1:
        exact = {
            i: fact for i, fact in cards.items() if any(c.isdigit() and "GB" in fact.words.upper() for c in fact.words)
        }
        families = {str(fact.value.id).split("-")[0] for fact in cards.values()}
        if len(families) > 1 or len(exact) != 1:
            first, second = list(cards.values())[:2]
            raise BriefError(
                f"two accelerators are named: {first.value.id} at {first.where} and {second.value.id} at "
                f"{second.where}; plan each by itself (mixed accelerators are not supported)"
            )
        cards = exact
    base = next(iter(cards.values())).value
    memory_gb = stated.get("memory_gb_marketing")
    if memory_gb is not None and not _close(memory_gb, base.memory_gb_marketing):
        try:
            other = find_accelerator(f"{next(iter(cards.values())).context} {memory_gb:g}GB")
        except InputError:
            return base
        return other if _close(memory_gb, other.memory_gb_marketing) else base
    return base


def _departures(facts: Facts, base: Accelerator, stated: dict[str, Any]) -> dict[str, Any]:
    """The fields whose stated figure differs from the catalogue's; a reading notes each."""
    changes: dict[str, Any] = {}
    size, name = base.memory_bytes()[0], next((name for name in _MEMORY if name in stated), None)
    if name is not None:
        figure = stated[name] / 2**30 if name == "memory_bytes_reported" else stated[name]
        known = (base.memory_gb_marketing, base.memory_gib_reported, size / 1e9, size / 2**30)
        if not any(_close(figure, other) for other in known):
            cleared = (*_MEMORY, "driver_memory_mib_from_memory_unverified")
            changes |= dict.fromkeys(cleared) | {name: stated[name]}
            _note_departure(facts, f"memory of {figure:g} GB", f"{base.memory_gb_marketing} GB")
    bandwidth = stated.get("memory_bandwidth_gb_s")
    if bandwidth is not None and not _close(bandwidth, base.memory_bandwidth_gb_s):
        changes["memory_bandwidth_gb_s"] = bandwidth
        _note_departure(facts, f"memory bandwidth of {bandwidth:g} GB/s", show(base.memory_bandwidth_gb_s))
    peaks = _peak_departures(facts, base, stated.get("dense_peak_tflops", {}))
    if peaks:
        changes["dense_peak_tflops"] = {**base.dense_peak_tflops.model_dump(), **peaks}
    extra = ("compute_efficiency", "memory_efficiency", "scale_up_domain_accelerators")
    changes |= {name: stated[name] for name in extra if name in stated and stated[name] != getattr(base, name)}
    return changes


def _peak_departures(facts: Facts, base: Accelerator, peaks: dict[str, float]) -> dict[str, float]:
    changes: dict[str, float] = {}
    for name, value in peaks.items():
        known: float | None = getattr(base.dense_peak_tflops, name)
        if _close(value, known):
            continue
        if known is not None and _close(value, 2 * known):
            facts.reading(
                f"{value:g} {name} TFLOPS is {base.id}'s figure with sparsity: its dense peak of {known:g} is used"
            )
            continue
        changes[name] = value
        _note_departure(facts, f"{name} peak of {value:g} TFLOPS", show(known))
    return changes


def _note_departure(facts: Facts, stated: str, known: str) -> None:
    facts.reading(f"{stated} stands in the brief, {known} in the catalogue: the brief's is used")


def _stated(facts: Facts) -> dict[str, Any]:
    """The fields of `Accelerator` that the brief states."""
    stated: dict[str, Any] = {}
    if (memory := _memory(facts)) is not None:
        stated[memory[0]] = memory[1]
    if (bandwidth := _bandwidth(facts)) is not None:
        stated["memory_bandwidth_gb_s"] = bandwidth
    if peaks := _peaks(facts):
        stated["dense_peak_tflops"] = peaks
    for name in ("compute_efficiency", "memory_efficiency"):
        if (fact := facts.agreed(f"card.{name}")) is not None:
            stated[name] = share(fact)
    if (fact := facts.agreed("card.scale_up_domain_accelerators")) is not None:
        stated["scale_up_domain_accelerators"] = int(fact.value)
    if (fact := facts.agreed("gpus_per_node")) is not None:
        stated["typical_node_accelerators"] = int(fact.value)
    return stated


def _memory(facts: Facts) -> tuple[str, float | int] | None:
    fact = facts.agreed("card.memory_bytes")
    if fact is None or fact.quantity is None:
        return None
    spelled = fact.quantity.spelled.lower()
    if fact.quantity.unit == "count":
        facts.reading(f"{fact.words}: memory without a unit read as GB")
        return "memory_gb_marketing", fact.value
    if spelled.startswith("gib"):
        return "memory_gib_reported", fact.value / 2**30
    if spelled.startswith(("g", "t")):
        return "memory_gb_marketing", round(fact.value / 1e9, 6)
    return "memory_bytes_reported", round(fact.value * (2**20 / 1e6 if spelled.startswith("mb") else 1))


def _bandwidth(facts: Facts) -> float | None:
    fact = facts.agreed("card.memory_bandwidth")
    if fact is None or fact.quantity is None:
        return None
    value = gigabytes(fact)
    if fact.quantity.unit == "count":
        unit = "TB/s" if value < 50 else "GB/s"
        facts.reading(f"{fact.words}: memory bandwidth without a unit read as {unit}")
        value *= 1000 if value < 50 else 1
    return value


def _peaks(facts: Facts) -> dict[str, float]:
    by_format: dict[str, list[Fact]] = {}
    for fact in facts.of("card.tflops"):
        value = fact.quantity.decimal_value if fact.quantity else fact.value
        near = fact.near
        if "tf32" in near:
            continue
        names = _formats(near) or _formats(fact.context)
        if _SPARSE.search(fact.context) and not _DENSE.search(fact.context):
            facts.reading(f"{fact.words}: a peak with sparsity; half of it is the dense peak")
            value /= 2
        if not names:
            facts.reading(f"{fact.words}: TFLOPS without a number format read as BF16, dense")
            names = ["bf16"]
        for name in names:
            by_format.setdefault(name, []).append(replace(fact, value=value))
    return {name: peak.value for name, stated in by_format.items() if (peak := only(f"{name} TFLOPS", stated))}


def _formats(words: str) -> list[str]:
    return list(dict.fromkeys(str(match.lastgroup) for match in _FORMAT.finditer(words)))


def share(fact: Fact) -> float:
    """A figure as a share of 1: `55%`, `0.55` and a bare `55` are the same; what is no share is refused."""
    is_percent = fact.quantity is not None and fact.quantity.unit == "count" and fact.value > 1
    value = fact.value / 100 if is_percent else fact.value
    if not 0 < value <= 1:
        raise BriefError(f"{fact.where}: {fact.words!r} is no share; write it as 0 to 100%")
    return round(value, 12)


def gigabytes(fact: Fact) -> float:
    """A rate in 10^9 bytes/s; a bare figure as it stands (`k` is 1000 here)."""
    return fact.value if fact.quantity is None else fact.quantity.decimal_value


def _close(value: float, known: float | None) -> bool:
    return known is not None and math.isclose(value, known, rel_tol=_SAME)


def _build(fields: dict[str, Any]) -> Accelerator:
    try:
        peaks: Any = DensePeakTFLOPS(**fields["dense_peak_tflops"])
        return Accelerator(**{**fields, "dense_peak_tflops": peaks})
    except ValidationError as error:
        first = error.errors()[0]
        raise BriefError(
            f"the card's {'.'.join(str(part) for part in first['loc'])} is impossible: {first['msg']} (stated: "
            f"{str(first['input'])[:40]})"
        ) from error
