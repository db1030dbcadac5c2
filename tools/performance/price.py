"""What an hour of a GPU costs: as stated, else between the catalogue's prices."""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog.accelerators import Accelerator


@dataclass(frozen=True, slots=True)
class Price:
    """The lowest and the highest USD per GPU-hour, and whose they are."""

    low: float
    high: float
    source: str


def price_of(part: Accelerator, stated: float | None) -> Price | None:
    """The price of an hour of `part`, the `stated` one first; `None` where none is known."""
    if stated is not None:
        return Price(stated, stated, f"stated price ({stated:g} USD per GPU-hour)")
    if part.on_demand_usd_per_hour is None:
        return None
    low, high = part.on_demand_usd_per_hour
    middle = (low + high) / 2
    source = f"middle of {low:g}-{high:g} USD per GPU-hour, {part.price_source or 'catalogue'}"
    return Price(low, high, f"{source} ({middle:g} USD per GPU-hour)")
