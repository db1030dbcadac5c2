"""How much hardware does it take: the smallest cluster of a kind on which a request has a plan.

Clusters are tried from the smallest up, parts of a node first. What cannot hold the weights even when they are spread
perfectly is skipped by that bound and needs no search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..catalog.accelerators import Accelerator
from ..catalog.hardware import HardwareFacts, hardware_facts
from ..errors import MissingFieldError
from ..performance.setting import make_setting
from ..plan.document import HardwareBlock
from .candidate import SearchRequest, SearchResult
from .search import fits_somehow, search

# Clusters beyond this many accelerators are not tried.
MAX_GPUS = 512
_NODE_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True, slots=True)
class Sized:
    """The smallest cluster that does, and the search on it.

    `result` is `None` where a link that the times need is not known: then only memory was looked at, and
    `unknown` names what is missing.
    """

    request: SearchRequest
    result: SearchResult | None
    unknown: str | None = None


def cluster_sizes(gpus_per_node: int, *, more_than: int = 0, at_most: int = MAX_GPUS) -> Iterator[tuple[int, int]]:
    """(nodes, GPUs per node) in ascending number of GPUs: every part of a node, then whole nodes."""
    for part in range(max(1, more_than + 1), gpus_per_node + 1):
        yield 1, part
    for nodes in _NODE_COUNTS[1:]:
        if more_than < nodes * gpus_per_node <= at_most:
            yield nodes, gpus_per_node


def resized(request: SearchRequest, nodes: int, gpus_per_node: int) -> SearchRequest:
    """The same request on another number of the same accelerators."""
    hardware = request.hardware.model_copy(update={"nodes": nodes, "gpus_per_node": gpus_per_node})
    return replace(request, hardware=hardware, facts=facts_of(hardware, request.facts.accelerator))


def facts_of(hardware: HardwareBlock, accelerator: Accelerator) -> HardwareFacts:
    """Hardware facts of a hardware block whose accelerator has been looked up."""
    return hardware_facts(
        accelerator,
        hardware.nodes,
        hardware.gpus_per_node,
        intra_node_bw_gb_s=hardware.intra_node_bw_gb_s,
        inter_node_bw_gb_s=hardware.inter_node_bw_gb_s,
    )


def weights_bytes(request: SearchRequest) -> float:
    """Bytes of all weights, each held once: what no cluster can do without."""
    setting = make_setting(
        request.architecture, request.facts, request.workload, request.precision, request.policy, request.serving
    )
    architecture = request.architecture
    total = sum(
        setting.tensor_bytes(tensors).total
        for tensors in (architecture.embedding_tensors, architecture.lm_head_tensors, architecture.final_norm_tensors)
    )
    for run in setting.runs(0, architecture.num_layers - 1):
        parts: list[float] = []
        if run.spec.attention is not None:
            parts.append(setting.tensor_bytes(run.spec.attention.tensors).total)
        if run.spec.ffn is not None:
            parts.append(setting.tensor_bytes(run.spec.ffn.tensors).total)
        if run.spec.moe is not None:
            moe = run.spec.moe
            parts.append(moe.experts * setting.tensor_bytes(moe.expert_tensors).total)
            parts.append(setting.tensor_bytes(moe.router_tensors).total)
            if moe.shared is not None:
                parts.append(setting.tensor_bytes(moe.shared.tensors).total)
        total += run.count * sum(parts)
    return total


def fewest_gpus(
    request: SearchRequest, usual_node: int, *, more_than: int = 0, at_most: int = MAX_GPUS
) -> Sized | None:
    """The smallest cluster of the request's accelerator with a plan within all limits, or `None` up to `at_most`."""
    need = weights_bytes(request)
    usable = request.facts.memory_bytes * request.policy.memory_utilization
    for nodes, gpus_per_node in cluster_sizes(usual_node, more_than=more_than, at_most=at_most):
        if nodes * gpus_per_node * usable < need:
            continue
        sized = resized(request, nodes, gpus_per_node)
        if not fits_somehow(sized):
            continue
        try:
            result = search(sized)
        except MissingFieldError as error:
            return Sized(sized, None, str(error))
        if result.best is not None:
            return Sized(sized, result)
    return None
