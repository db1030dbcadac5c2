"""Bytes that no strategy can do without: weights, the caches of the requests in flight, buffers between devices."""

from __future__ import annotations

from ..performance.budget import communication_buffer_bytes
from ..performance.kv_cache import all_layers, request_bytes
from ..performance.setting import Setting
from .candidate import SearchRequest


def weights_bytes(setting: Setting) -> float:
    """Bytes of all weights in the formats of `setting`."""
    architecture = setting.architecture
    vocabulary = (architecture.embedding_tensors, architecture.lm_head_tensors, architecture.final_norm_tensors)
    total = sum(setting.tensor_bytes(tensors).total for tensors in vocabulary)
    for run in setting.runs(*all_layers(setting)):
        dense, moe = [run.spec.attention, run.spec.ffn], run.spec.moe
        if moe is not None:
            dense.append(moe.shared)
            total += run.count * moe.experts * setting.tensor_bytes(moe.expert_tensors).total
            total += run.count * setting.tensor_bytes(moe.router_tensors).total
        total += run.count * sum(setting.tensor_bytes(part.tensors).total for part in dense if part is not None)
    return total


def least_bytes(request: SearchRequest, setting: Setting) -> float:
    """Bytes on all devices together, however they are spread: weights, and caches of all requests in flight.

    One request where their number is open.
    """
    requests = 1 if request.concurrency_open else request.workload.concurrency
    return weights_bytes(setting) + requests * request_bytes(setting, all_layers(setting), setting.request_tokens)


def may_hold(request: SearchRequest, setting: Setting) -> bool:
    """Whether the devices of `request` could hold what it asks for, were it spread over them perfectly.

    A replica is one device that holds the weights and a prompt, or several with the buffers of their communication.
    """
    usable = setting.hardware.memory_bytes * setting.memory_utilization
    alone = weights_bytes(setting) + request_bytes(setting, all_layers(setting), setting.prompt_tokens)
    beside = 0 if alone <= usable else communication_buffer_bytes(2)
    return request.facts.gpus * (usable - beside) >= least_bytes(request, setting)
