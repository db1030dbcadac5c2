"""Host memory for blocks of a scheduler's prefix cache beyond what the GPUs have room for.

Depending on the engine it gets a copy of what is computed (vLLM's `OffloadingConnector`, SGLang's HiCache under
`write_through`), or what the GPU evicts (TensorRT-LLM's secondary blocks, "when a block is evicted from primary
memory"). Here too the longest unused blocks go first, within a prompt the end before the start.
"""

from __future__ import annotations

from collections import OrderedDict

from .policy import HostMemory, Policy


class HostTier:
    """The part of one scheduler's cache in `memory`; `spans` has the blocks of each node as (start, end).

    The oldest node comes first. `used` of `room` blocks are taken. `loaded`: tokens that came back, by request.
    Callers report blocks that are `computed`, or, if it takes evicted ones, those that are `evicted` or `come_back`.
    """

    def __init__(self, memory: HostMemory, block_tokens: int, loaded: list[int]) -> None:
        self.memory, self.loaded = memory, loaded
        self.room, self.used = memory.tokens // block_tokens, 0
        self.spans: OrderedDict[int, tuple[int, int]] = OrderedDict()

    def beyond(self, node: int, on_gpu: int) -> int:
        """Blocks of a node here that directly follow its first `on_gpu` blocks, which the GPU has."""
        start, end = self.spans.get(node, (0, 0))
        return max(0, end - on_gpu) if start <= on_gpu else 0

    def come_back(self, node: int) -> None:
        """Drop a node that is on the GPU again, since a request that uses it is admitted."""
        start, end = self.spans.pop(node, (0, 0))
        self.used -= end - start

    def computed(self, node: int, blocks: int) -> None:
        """Copy the first `blocks` of a node, which are computed, when the last request that used it is done."""
        self._put(node, 0, blocks)

    def evicted(self, node: int, start: int, end: int) -> None:
        """Take the blocks of a node that the GPU evicts."""
        self._put(node, start, max(end, self.spans.get(node, (0, 0))[1]))

    def _put(self, node: int, start: int, end: int) -> None:
        before = self.spans.get(node)
        if before is not None:
            self.spans.move_to_end(node)
            first, last = before
            if first == start and last == end:
                return
            self.used -= last - first
        self.spans[node] = start, end
        self.used += end - start
        while self.used > self.room:
            oldest, (first, last) = next(iter(self.spans.items()))
            dropped = min(last - first, self.used - self.room)
            self.used -= dropped
            if dropped == last - first:
                del self.spans[oldest]
            else:
                self.spans[oldest] = first, last - dropped


def host_tier(policy: Policy, loaded: list[int]) -> HostTier | None:
    """An empty tier for a scheduler of `policy`; `None` if it has no host memory."""
    memory = policy.host_memory
    return None if memory is None else HostTier(memory, policy.prefix_block_tokens, loaded)
