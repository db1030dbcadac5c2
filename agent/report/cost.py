"""The cost of a plan: by the token, by the hour, and in energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tools.plan.describe import billed_text
from .text import count_text, figure

if TYPE_CHECKING:
    from ...tools.plan.performance import CostEstimate, EnergyEstimate, Interval


def cost_lines(cost: CostEstimate, used_gpus: int) -> list[str]:
    """The cost of tokens, and that of time where a price is known."""
    lines = [f"Cost of a million output tokens: {cost_text(cost, used_gpus)}"]
    if cost.usd_per_gpu_hour is not None and cost.billed_gpus is not None:
        low, high = (cost.billed_gpus * price for price in cost.usd_per_gpu_hour)
        between = f" (${low:,.2f}–${high:,.2f})" if low < high else ""
        hour = (low + high) / 2
        lines.append(
            f"Cost of time: ${hour:,.2f} an hour{between}, ${24 * hour:,.0f} a day, "
            f"for {count_text(cost.billed_gpus, 'GPU')} billed"
        )
    return lines


def cost_text(cost: CostEstimate, used_gpus: int) -> str:
    """The cost with its range, its price and, where a node is not used whole, the GPUs that are billed."""
    amount = figure(cost.per_million_output_tokens)
    text = f"${amount}" if cost.unit == "usd" else f"{amount} GPU-seconds"
    if cost.per_million_output_tokens_range is not None:
        low, high = cost.per_million_output_tokens_range
        text += f" (${figure(low)}–{figure(high)})"
    if cost.billed_gpus is not None and cost.billed_gpus > used_gpus:
        text += f", {billed_text(cost.billed_gpus)}"
    return text + (f"; price: {cost.price_source}" if cost.price_source else "")


def energy_text(energy: EnergyEstimate, gpus: int) -> str:
    """The energy that an output token takes, and the power that all boards draw."""

    def span(ends: Interval) -> str:
        return "–".join(figure(end) for end in ends)

    return (
        f"Energy of an output token: {span(energy.joules_per_output_token)} J "
        f"({span(energy.kwh_per_million_output_tokens)} kWh a million); {span(energy.watts)} W on average, "
        f"{count_text(gpus, 'board')} of {figure(energy.board_watts_per_gpu)} W, {energy.idle_share_pct:.0f}% of the "
        "time without a request"
    )
