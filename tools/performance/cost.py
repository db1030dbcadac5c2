"""What the output tokens of a plan cost, and the price of a GPU-hour behind that."""

from __future__ import annotations

from msgspec import Struct

from ..catalog.accelerators import Accelerator
from ..plan.performance import CostEstimate
from .layout import LoadedLayout
from .limits import served_tokens_per_s
from .serving.load import ServingTimes


class Price(Struct, frozen=True):
    """The lowest and the highest USD per GPU-hour, and their source."""

    low: float
    high: float
    source: str


def price_of(accelerator: Accelerator, stated: float | None) -> Price | None:
    """The price of an hour of `accelerator`, `stated` first; `None` if none is known."""
    if stated is not None:
        return Price(stated, stated, f"stated price ({stated:g} USD per GPU-hour)")
    if accelerator.on_demand_usd_per_hour is None:
        return None
    low, high = accelerator.on_demand_usd_per_hour
    middle = (low + high) / 2
    source = f"middle of {low:g}-{high:g} USD per GPU-hour, {accelerator.price_source or 'catalogue'}"
    return Price(low, high, f"{source} ({middle:g} USD per GPU-hour)")


def cost_of_run(layout: LoadedLayout, times: ServingTimes) -> CostEstimate | None:
    """What the run `times` of `layout` costs; `None` if it serves nothing."""
    served = served_tokens_per_s(layout.setting.workload, times.output_tokens_per_s, saturated=times.saturated)
    setting = layout.setting
    return cost_of(layout.billed_gpus, served, price_of(setting.hardware.accelerator, setting.usd_per_gpu_hour))


def cost_of(billed: int, served_tokens_per_s: float, price: Price | None) -> CostEstimate | None:
    """Cost of a million output tokens on `billed` GPUs at `price`, else in GPU-seconds; `None` if none is served."""
    if served_tokens_per_s <= 0.0:
        return None
    gpu_seconds = billed * 1e6 / served_tokens_per_s
    if price is None:
        return CostEstimate(per_million_output_tokens=gpu_seconds, unit="gpu_seconds", billed_gpus=billed)
    gpu_hours, low, high = gpu_seconds / 3600, price.low, price.high
    return CostEstimate(
        per_million_output_tokens=gpu_hours * (low + high) / 2,
        unit="usd",
        price_source=price.source,
        per_million_output_tokens_range=(gpu_hours * low, gpu_hours * high) if low < high else None,
        billed_gpus=billed,
        usd_per_gpu_hour=(low, high),
    )
