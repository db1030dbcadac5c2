"""`look_up_accelerator`: what the catalogue knows of an accelerator: memory, bandwidths, rates, links."""

from __future__ import annotations

from pydantic import Field

from ...tools.catalog.hardware import find_accelerator
from .tool import Answer, Arguments, Bench, Tool


class AcceleratorArguments(Arguments):
    """Which accelerator."""

    name: str = Field(description="name of an accelerator, such as H100 SXM")


# Where a figure comes from, and what no split depends on.
_LEFT_OUT = {
    "source", "price_source", "notes", "confidence", "tdp_w", "multiprocessors", "l2_bytes", "ridge_flop_per_byte",
    "host_pcie_gb_s_unidirectional", "memory_type", "form_factor", "names", "brands", "kernels_like",
    "kernels_like_reason",
}  # fmt: skip


def _run(bench: Bench, arguments: AcceleratorArguments) -> Answer:
    del bench
    found = find_accelerator(arguments.name)
    return Answer(found.model_dump(mode="json", exclude_none=True, exclude=_LEFT_OUT))


LOOK_UP_ACCELERATOR = Tool(
    name="look_up_accelerator",
    description="Facts of an accelerator of the catalogue: memory, bandwidths, FLOP rates, links, price.",
    arguments=AcceleratorArguments,
    run=_run,
)
