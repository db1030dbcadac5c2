"""Memory of the host that keeps blocks of a scheduler's prefix cache beyond what the GPUs have room for.

It gets what engines give it: a copy of what is computed (vLLM's `OffloadingConnector`, SGLang's HiCache under
`write_through`), or what the GPU lets go of (TensorRT-LLM's secondary blocks, "when a block is evicted from primary
memory"). The blocks that were unused for longest go first here too, of a prompt the end before the start.
"""

from __future__ import annotations

from collections import OrderedDict

from .policy import HostMemory, Policy


class HostTier:
    """What of one scheduler's cache is in `memory`: of each node the blocks of `spans`, from one to before another.

    The oldest node comes first. `used` blocks of `room` are taken. `loaded`: tokens that came back, by request. It is
    told of what is `computed`, or, where it takes that, of what is `evicted` and of what does `come_back`.
    """

    def __init__(self, memory: HostMemory, block_tokens: int, loaded: list[int]) -> None:
        """Nothing is in it."""
        self.memory, self.loaded = memory, loaded
        self.room, self.used = memory.tokens // block_tokens, 0
        self.spans: OrderedDict[int, tuple[int, int]] = OrderedDict()

    def beyond(self, node: int, here: int) -> int:
        """Blocks of a node that follow right on the first ones that are `here`, on the GPU."""
        start, end = self.spans.get(node, (0, 0))
        return max(0, end - here) if start <= here else 0

    def come_back(self, node: int) -> None:
        """A request is let in that has all of a node on the GPU: what the GPU had let go of is there again."""
        start, end = self.spans.pop(node, (0, 0))
        self.used -= end - start

    def computed(self, node: int, blocks: int) -> None:
        """The last request that used a node is done: the first of its blocks are computed."""
        self._put(node, 0, blocks)

    def evicted(self, node: int, start: int, end: int) -> None:
        """The GPU lets go of these blocks of a node."""
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
            gone = min(last - first, self.used - self.room)
            self.used -= gone
            if gone == last - first:
                del self.spans[oldest]
            else:
                self.spans[oldest] = first, last - gone


def host_tier(policy: Policy, loaded: list[int]) -> HostTier | None:
    """An empty one for a scheduler of `policy`; `None` where it has no memory of the host."""
    memory = policy.host_memory
    return None if memory is None else HostTier(memory, policy.prefix_block_tokens, loaded)
