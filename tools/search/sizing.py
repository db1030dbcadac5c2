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
from .columns import TIE_SHARE
from .search import base_setting, search

# Clusters beyond this many accelerators are not tried.
MAX_GPUS = 256
_NODE_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


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
    """The smallest cluster of the request's accelerator with a plan within all limits, or `None` up to `at_most`.

    Where cost is the objective, the cheapest per token among the parts of a node that do; more nodes only repeat it.
    """
    tried = _Tried(request)
    found: Sized | None = None
    below = more_than // usual_node
    for nodes, gpus_per_node in cluster_sizes(usual_node, more_than=more_than, at_most=at_most):
        if found is not None and nodes > 1:
            break
        sized = tried.size(nodes, gpus_per_node)
        if sized is None:
            below = nodes
            continue
        if request.workload.objective != "cost" or nodes > 1:
            found = sized
            break
        if found is None or _rate_per_gpu(sized) > _rate_per_gpu(found) * (1 + TIE_SHARE):
            found = sized
    return found if found is None or found.result is None else _fewer_nodes(tried, found, below)


def _fewer_nodes(tried: _Tried, found: Sized, below: int) -> Sized:
    """The fewest nodes between those that do not do (`below`) and those that do, by halving."""
    low, high = below, found.request.hardware.nodes
    while high - low > 1:
        middle = (low + high) // 2
        sized = tried.size(middle, found.request.hardware.gpus_per_node)
        if sized is None:
            low = middle
        else:
            found, high = sized, middle
    return found


class _Tried:
    """Clusters of one request; what a replica does is computed once for all that have nodes alike."""

    def __init__(self, request: SearchRequest) -> None:
        self.request = request
        self.need_bytes = weights_bytes(request)
        self.usable_bytes = request.facts.memory_bytes * request.policy.memory_utilization
        # Nothing that was timed depends on the number of nodes.
        self.setting = base_setting(request)

    def size(self, nodes: int, gpus_per_node: int) -> Sized | None:
        """A plan on that cluster, or `None` where there is none within the limits."""
        if nodes * gpus_per_node * self.usable_bytes < self.need_bytes:
            return None
        sized = resized(self.request, nodes, gpus_per_node)
        try:
            result = search(sized, replace(self.setting, hardware=sized.facts))
        except MissingFieldError as error:
            return Sized(sized, None, str(error))
        return Sized(sized, result) if result.best is not None else None


def _rate_per_gpu(sized: Sized) -> float:
    best = sized.result.best if sized.result is not None else None
    return 0.0 if best is None else best.output_tokens_per_s_per_gpu or 0.0
