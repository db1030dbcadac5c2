"""The routed experts of one layer on one device: choice of experts, permutation, grouped matmuls, weighted sum.

The matmuls are PyTorch's `grouped_mm` if it has one for the device, else a loop over the experts; the row's `kernel`
says which. Routing is balanced, and each call uses other experts, so that their weights come from memory. Only bf16,
all experts on one device, no dispatch and combine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from msgspec import Struct

from .machine import Call, Effort, Machine, Subject, timed_row
from .table import KernelRow, Skipped


class Experts(Struct, frozen=True):
    """Widths and numbers of a model's routed experts."""

    hidden: int
    inner: int
    chosen: int
    count: int

    @property
    def expert_bytes(self) -> float:
        """Bytes of the three matrices of one expert in bf16."""
        return 3.0 * 2.0 * self.hidden * self.inner


# Mixtral-8x7B, Qwen3-30B-A3B, gpt-oss-20b, Qwen3-235B-A22B: their public model configurations.
_MODELS = (
    Experts(4096, 14336, 2, 8), Experts(2048, 768, 8, 128), Experts(2880, 2880, 4, 32), Experts(4096, 1536, 8, 128),
)  # fmt: skip
_TOKENS = (1, 4, 16, 64, 256, 512, 1024, 2048, 4096, 8192)
_QUICK_TOKENS = (1, 16, 64, 256, 1024, 4096, 8192)
_HOST_MODELS = (Experts(256, 128, 2, 8),)
_HOST_TOKENS = (1, 16, 64)

GroupedMatmul = Callable[[Any, Any, "Routing"], Any]


class Routing(Struct, frozen=True):
    """Where token copies go: `order` has their tokens sorted by expert, `ends` the end of each expert's share.

    `order` and `ends` are on the device; `counts` has the copies of each expert, on the host.
    """

    order: Any
    ends: Any
    counts: tuple[int, ...]


def grid(machine: Machine, effort: Effort) -> list[tuple[Experts, int]]:
    """Models and numbers of tokens to time."""
    models = machine.grid(effort, _MODELS, _MODELS[:2], _HOST_MODELS)
    return list(product(models, machine.grid(effort, _TOKENS, _QUICK_TOKENS, _HOST_TOKENS)))


def measure_moe(machine: Machine, effort: Effort) -> Iterator[KernelRow | Skipped]:
    """A row for each model and number of tokens."""
    name, multiply = _grouped_matmul(machine)
    for model, count in grid(machine, effort):
        copies = count * model.chosen
        cells = {
            "kernel": name, "dtype": "bf16", "dist": "balanced", "tokens": str(count), "hidden": str(model.hidden),
            "inter": str(model.inner), "topk": str(model.chosen), "experts": str(model.count), "tp": "1", "ep": "1",
        }  # fmt: skip
        operand_bytes = model.count * model.expert_bytes + 2.0 * copies * (2 * model.hidden + 3 * model.inner)
        yield timed_row(
            machine, effort, Subject("moe", cells, operand_bytes), partial(_calls, machine, model, count, multiply)
        )


def _calls(machine: Machine, model: Experts, tokens: int, multiply: GroupedMatmul, copies: int) -> list[Call]:
    """Calls that use one set of experts after another; `copies` is ignored, since sets are parts of one layer."""
    del copies
    torch = machine.torch
    inputs, scores = machine.random(tokens, model.hidden), machine.random(tokens, model.count)
    up = machine.random(model.count, model.hidden, 2 * model.inner)
    down = machine.random(model.count, model.inner, model.hidden)
    touched = min(model.count, tokens * model.chosen)
    sets = min(model.count // touched, machine.copies(touched * model.expert_bytes))

    def call_with(routing: Routing) -> Call:
        def call() -> object:
            weights = torch.softmax(scores.topk(model.chosen).values, dim=-1).reshape(-1, 1)
            gate, value = multiply(inputs[routing.order], up, routing).chunk(2, dim=-1)
            outputs = multiply(torch.nn.functional.silu(gate) * value, down, routing)
            return torch.zeros_like(inputs).index_add_(0, routing.order, outputs * weights)

        return call

    return [call_with(_balanced(machine, model, tokens, index * touched)) for index in range(max(1, sets))]


def _balanced(machine: Machine, model: Experts, tokens: int, first: int) -> Routing:
    """Routing with copies dealt out in turn from expert `first` on, so that shares differ by at most one copy."""
    torch, copies = machine.torch, tokens * model.chosen
    # With fewer copies than experts, only as many experts as copies get one.
    counts = [0] * model.count
    for place in range(model.count):
        counts[(first + place) % model.count] = math.ceil(max(0, copies - place) / model.count)
    order = torch.arange(copies, device=machine.kind) // model.chosen
    ends = torch.tensor(counts, device=machine.kind).cumsum(0).to(torch.int32)
    return Routing(order[torch.randperm(copies, device=machine.kind)], ends, tuple(counts))


def _grouped_matmul(machine: Machine) -> tuple[str, GroupedMatmul]:
    """The name and function of PyTorch's grouped matmul if it runs on the device, else of a loop over the experts."""
    torch = machine.torch
    grouped = getattr(torch.nn.functional, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)
    if grouped is not None:

        def multiply(inputs: Any, weights: Any, routing: Routing) -> Any:
            return grouped(inputs, weights, offs=routing.ends)

        try:
            probe = _balanced(machine, _HOST_MODELS[0], 8, 0)
            multiply(machine.random(16, 256), machine.random(8, 256, 128), probe)
            machine.synchronize()
            return "torch-grouped_mm", multiply
        except RuntimeError:  # no such kernel for this architecture
            machine.synchronize()
    return "torch-loop", lambda inputs, weights, routing: _loop(torch, inputs, weights, routing)


def _loop(torch: Any, inputs: Any, weights: Any, routing: Routing) -> Any:
    parts = inputs.split(list(routing.counts))
    return torch.cat([part @ weights[expert] for expert, part in enumerate(parts) if routing.counts[expert]])
