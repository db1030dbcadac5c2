"""Layouts of catalogue models on catalogue hardware, made as search makes them: no graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shardwright.tools.catalog.accelerators import Accelerator
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.hardware import find_accelerator, hardware_facts
from shardwright.tools.catalog.models import find_model
from shardwright.tools.performance.layout import LoadedLayout, make_layout, make_setting
from shardwright.tools.plan.document import (
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import gpu_count

LayoutOf = Callable[..., LoadedLayout]


def strategy_of(degrees: dict[str, Any], decode: dict[str, Any] | None, dp: int) -> Strategy:
    """The strategy with `degrees` in both phases, or with `decode` apart; `gpu_count` follows from it."""
    prefill = PhaseStrategy(**degrees)
    draft = Strategy(dp=dp, gpu_count=1, prefill=prefill, decode=PhaseStrategy(**decode) if decode else prefill)
    return draft.model_copy(update={"gpu_count": gpu_count(draft)})


def make(model: str, degrees: dict[str, Any] | None = None, **options: Any) -> LoadedLayout:
    """A layout of `degrees` in both phases.

    Options: layers (the model cut to its first ones), accelerator, nodes, gpus_per_node, weights, activations,
    kv_cache, relaxations, memory_utilization, serving, decode (its degrees), dp, and any field of the workload.
    """
    config = find_model(model).config
    if (layers := options.pop("layers", None)) is not None:
        config = {**config, "num_hidden_layers": layers}
    accelerator: Accelerator | str = options.pop("accelerator", "h100-sxm")
    nodes, gpus_per_node = options.pop("nodes", 1), options.pop("gpus_per_node", 8)
    weights = options.pop("weights", "bf16")
    precision = PrecisionBlock(
        weights=weights, kv_cache=options.pop("kv_cache", "bf16"), activations=options.pop("activations", "bf16")
    )
    policy = PolicyBlock(
        relaxations=options.pop("relaxations", ()), memory_utilization=options.pop("memory_utilization", 0.9)
    )
    strategy = strategy_of(degrees or {}, options.pop("decode", None), options.pop("dp", 1))
    serving = ServingBlock(**options.pop("serving", {}))
    workload = WorkloadBlock(**{"input_tokens": 2048, "output_tokens": 256, **options})
    part = find_accelerator(accelerator) if isinstance(accelerator, str) else accelerator
    architecture = read_architecture(config)
    facts = hardware_facts(part, nodes, gpus_per_node)
    return make_layout(make_setting(architecture, facts, workload, precision, policy, serving), strategy)


@pytest.fixture(scope="session")
def layout_of() -> LayoutOf:
    """The factory `make`."""
    return make
