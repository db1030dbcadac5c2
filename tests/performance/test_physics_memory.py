"""Memory obeys physics for every deployment: what is cut gets no larger, what is cached grows with its tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from shardwright.tools.catalog.architecture import Architecture
from shardwright.tools.performance.memory import device_memory
from shardwright.tools.performance.request_memory import all_layers, request_bytes
from shardwright.tools.plan.document import PhaseStrategy
from shardwright.tools.rules.tensor_parallel.uneven_split import divides

from ..examples import examples
from .physics_space import Deployment, deployments

quick = examples(
    80, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)  # fmt: skip


def heaviest(deployment: Deployment) -> int:
    """Bytes of weights on the device that holds most of them."""
    return max(device.weights_bytes for device in device_memory(deployment.layout()).per_device)


def twice_as_parallel(degrees: PhaseStrategy, architecture: Architecture) -> dict[str, Any]:
    """Twice the tensor ranks in attention and FFN and, in step with them, twice the expert groups."""
    experts = {layer.moe.experts for layer in architecture.layers if layer.moe is not None}
    changed = {"tp": 2 * degrees.tp}
    if architecture.has_split_ffn:
        changed["tp_ffn"] = 2 * degrees.tp_ffn
        assume(divides(architecture, "tp_ffn", 2 * degrees.tp_ffn))
    if experts:
        changed["ep"] = 2 * degrees.ep
        assume(all(count % (2 * degrees.ep) == 0 for count in experts))
    assume(divides(architecture, "tp", 2 * degrees.tp * degrees.sp * (degrees.kv_sp or 1)))
    return changed


@quick
@given(deployments(apart=False))
def test_weights_per_device_never_grow_with_tensor_parallelism(deployment: Deployment) -> None:
    strategy = deployment.strategy
    assume(strategy.prefill == strategy.decode)
    changed = twice_as_parallel(strategy.prefill, deployment.architecture)
    wider = deployment.with_degrees(changed).with_(nodes=4 * deployment.nodes)
    assume(wider.fits_on_nodes)
    assert heaviest(wider) <= heaviest(deployment)


@quick
@given(deployments(apart=False))
def test_weights_per_device_never_grow_with_pipeline_stages(deployment: Deployment) -> None:
    stages = deployment.strategy.prefill.pp
    assume(2 * stages <= deployment.architecture.num_layers)
    staged = deployment.with_degrees({"pp": 2 * stages}).with_(nodes=4 * deployment.nodes)
    assume(staged.fits_on_nodes)
    assert heaviest(staged) <= heaviest(deployment)


@quick
@given(deployments())
def test_the_terms_of_every_device_add_up_and_none_is_negative(deployment: Deployment) -> None:
    layout = deployment.layout()
    memory = device_memory(layout)
    devices = [device.device for device in memory.per_device]
    assert len(devices) == len(set(devices)) == deployment.strategy.gpu_count
    lonely = {replica.devices[0] for replica in layout.replicas if len(replica.devices) == 1}
    for device in memory.per_device:
        terms = (
            device.weights_bytes, device.kv_cache_bytes, device.activation_bytes, device.communication_bytes,
        )  # fmt: skip
        assert sum(terms) == device.total_bytes
        assert device.weights_bytes > 0 and min(terms) >= 0
        assert (device.communication_bytes == 0) == (device.device in lonely)


@quick
@given(deployments(), st.integers(1, 60_000), st.integers(1, 5))
def test_the_cache_is_linear_in_tokens_but_for_windows_and_constant_states(
    deployment: Deployment, tokens: int, times: int
) -> None:
    setting, architecture = deployment.layout().setting, deployment.architecture
    layers, degrees = all_layers(setting), deployment.strategy.decode

    def cache_bytes(count: int, tp: int = 1, parts: int = 1) -> float:
        return request_bytes(setting, layers, count, tp, parts)

    state = cache_bytes(0)
    attentions = [layer.attention for layer in architecture.layers if layer.attention is not None]
    if all(attention.window_tokens is None for attention in attentions):
        assert cache_bytes(times * tokens) - state == pytest.approx(times * (cache_bytes(tokens) - state))
    assert state <= cache_bytes(tokens) <= cache_bytes(times * tokens) <= times * cache_bytes(tokens)
    # No device holds more than the whole, and all together hold at least the whole.
    tp, parts = degrees.tp, degrees.kv_sp or 1
    share = cache_bytes(tokens, tp, parts)
    assert cache_bytes(tokens) / (tp * parts) * (1 - 1e-9) <= share <= cache_bytes(tokens) * (1 + 1e-9)


@quick
@given(deployments(), st.sampled_from([1, 3, 100]))
def test_more_requests_or_longer_ones_never_need_less_memory(deployment: Deployment, more: int) -> None:
    limit = deployment.architecture.max_position_embeddings - deployment.workload.output_tokens
    longer = deployment.with_(input_tokens=min(deployment.workload.input_tokens + more, limit))
    crowded = deployment.with_(concurrency=deployment.workload.concurrency + more)
    before, after, beside = (device_memory(variant.layout()).per_device for variant in (deployment, longer, crowded))
    assert all(small.total_bytes <= large.total_bytes for small, large in zip(before, beside, strict=True))
    # A pass of longer prompts finishes fewer of them and has fewer logits: only the cache is sure to grow.
    assert all(small.kv_cache_bytes <= large.kv_cache_bytes for small, large in zip(before, after, strict=True))
