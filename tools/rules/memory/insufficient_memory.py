"""ME001: on every device weights, KV cache, activations and communication buffers fit into what is usable.

One finding for each set of devices with equal figures. An unreadable plan is left to the rule that reports its fault;
an unknown model or accelerator is reported here, since it is then unknown whether the plan fits. A request of more
tokens than the model has positions is an error of the request, which no repair changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...errors import InputError, MissingFieldError, UnknownNameError
from ...performance.layout import layout_from_view, read_block
from ...performance.memory import device_memory, fits, where_shared_once
from ...plan.document import WorkloadBlock
from ...plan.load import beyond_positions
from ...plan.performance import DeviceMemory
from ...plan.view import NodeView, PlanView
from ..base import MAX_NODES, Example, Finding, Rule, set_top

# Bound on the expert ids that are expanded to compute memory; the largest deployments list fewer.
_MAX_LISTED_EXPERTS = 5_000_000
_TERMS = {
    "weights_bytes": "weights",
    "kv_cache_bytes": "KV cache",
    "activation_bytes": "activations",
    "communication_bytes": "communication buffers",
}


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.2f} GB"


def _device_names(devices: list[DeviceMemory]) -> str:
    names = [memory.device for memory in devices]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _stages_of(view: PlanView, devices: list[DeviceMemory]) -> list[NodeView]:
    wanted = {memory.device for memory in devices}
    return [stage.node for stage in view.stages if not wanted.isdisjoint(stage.devices)]


def _shortfall(view: PlanView, devices: list[DeviceMemory], usable_from: str) -> Finding:
    memory = devices[0]
    terms = {name: getattr(memory, name) for name in _TERMS}
    parts = " + ".join(f"{what} {_gb(terms[name])}" for name, what in _TERMS.items())
    short = memory.total_bytes - memory.usable_bytes
    largest = max(_TERMS, key=lambda name: terms[name])
    return Finding(
        "short-of-memory",
        f"{_device_names(devices)}: {parts} = {_gb(memory.total_bytes)} of {_gb(memory.usable_bytes)} usable "
        f"({usable_from}): {_gb(short)} short",
        where=(_stages_of(view, devices) or [""])[0],
        nodes=_stages_of(view, devices)[:MAX_NODES],
        value={
            "devices": [memory.device for memory in devices[:MAX_NODES]],
            **terms,
            "total_bytes": memory.total_bytes,
            "shortfall_bytes": short,
        },
        expected=memory.usable_bytes,
        remedy=f"the largest term is {_TERMS[largest]}: {_ADVICE[largest]}",
    )


_ADVICE = {
    "weights_bytes": "split the weights over more devices (tp, pp, ep) or use a narrower number format",
    "kv_cache_bytes": "serve fewer requests at once, add replicas or devices, or use a narrower KV format",
    "activation_bytes": "prefill in smaller chunks (serving.prefill_chunk_tokens)",
    "communication_bytes": "use fewer devices a replica",
}


def _unknown(view: PlanView) -> Iterator[Finding]:
    """A config that cannot be read (a missing one is ST001's)."""
    if view.architecture is None and isinstance(view.model.get("config"), dict):
        yield Finding(
            "unknown-model",
            f"memory cannot be computed: {view.architecture_error}",
            where="/model/config",
            value=view.model.get("name"),
            remedy="give the config fields that it names",
        )


def _too_long(view: PlanView, positions: int) -> Iterator[Finding]:
    try:
        workload = read_block(WorkloadBlock, view.workload, "workload")
    except InputError:  # lengths that cannot be read are ST001's
        return
    beyond = beyond_positions(workload, positions)
    if beyond is not None:
        tokens, message = beyond
        remedy = f"shorten input or output by {tokens - positions:,} tokens, or take a model with a longer context"
        yield Finding(
            "request-too-long",
            message,
            where="/workload/input_tokens",
            value=tokens,
            expected=positions,
            remedy=remedy,
            fix="report",
        )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield a request that is too long for the model, and every set of equal devices that are short of memory."""
    if view.architecture is None:
        yield from _unknown(view)
        return
    yield from _too_long(view, view.architecture.max_position_embeddings)
    listed = sum(last - first + 1 for e in view.of_type("ExpertNode") for first, last in e.expert_ranges or ())
    if listed > _MAX_LISTED_EXPERTS:
        yield Finding(
            "too-many-experts",
            f"memory cannot be computed: the ExpertNodes list {listed:,} experts, more than {_MAX_LISTED_EXPERTS:,}",
            where="/nodes", value=listed, expected=_MAX_LISTED_EXPERTS, remedy="list each expert of a layer once",
        )  # fmt: skip
        return
    try:
        layout = layout_from_view(view)
    except (MissingFieldError, UnknownNameError) as error:
        yield Finding(
            "unknown-hardware", f"memory cannot be computed: {error}", where="/hardware/accelerator",
            value=view.hardware.get("accelerator"), remedy="name hardware of the catalogue, or give its fields in full",
        )  # fmt: skip
        return
    if fits(layout):
        return
    estimate = device_memory(layout)
    groups: dict[tuple[int, ...], list[DeviceMemory]] = {}
    for memory in estimate.per_device:
        if memory.total_bytes > memory.usable_bytes:
            groups.setdefault(tuple(getattr(memory, name) for name in _TERMS), []).append(memory)
    shared = where_shared_once(layout)
    more = "" if shared is None else f"; {shared}"
    for devices in groups.values():
        finding = _shortfall(view, devices, estimate.usable_from or "")
        yield replace(finding, message=finding.message + more)


RULE = Rule(
    id="ME001",
    name="insufficient memory",
    requirement=(
        "On every device weights + KV cache + activations + communication buffers ≤ usable memory (memory × "
        "memory_utilization), and a request has no more tokens than the model has positions."
    ),
    rationale=(
        "What does not fit does not run. Weights and cache are counted with what replication repeats: norms, routers, "
        "KV heads beyond their number, the vocabulary on every device. Where lengths spread the cache is a pool: "
        "requests in flight count with the mean lengths, and the longest one must fit by itself."
    ),
    source="004 §7",
    fix="re-plan",
    remedy="split over more devices, serve fewer requests at once, or use a narrower number format",
    check=check,
    bad=Example("dense-1", (set_top("/workload/concurrency", 1_000_000),)),
)
