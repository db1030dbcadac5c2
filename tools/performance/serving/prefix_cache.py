"""The prefix cache of a scheduler: which blocks of prompts it holds, which are in use, and which are evicted first.

Prompts are paths in a tree whose nodes are stretches of blocks that are always requested together, so that a node has
one age, and blocks are tracked by node. As in vLLM's `BlockPool`, the blocks of a finished request stay until another
needs the room; the oldest go first, within a request the end before the start.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from .host_tier import HostTier
from .state import GivenPrefixes


class PrefixTree:
    """Beginnings of prompts in blocks of `block_tokens`: a node has blocks `starts` to `ends` behind its parent."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.parents: list[int] = []
        # The last requested path, since all caches are asked for the path of each request.
        self._asked: tuple[int, list[int]] = (-1, [])

    def add(self, other: int, shared_tokens: int, tokens: int) -> int:
        """Add a request of `tokens`, whose first `shared_tokens` are those of the path to `other`; returns its node.

        Only whole blocks are shared. A node that extends beyond them is cut in two.
        """
        shared = 0 if other < 0 else min(shared_tokens // self.block_tokens, self.ends[other])
        node = other
        while node >= 0 and self.starts[node] >= shared:
            node = self.parents[node]
        if node >= 0 and self.ends[node] > shared:
            first = self._append(self.parents[node], self.starts[node], shared)
            self.starts[node], self.parents[node] = shared, first
            node = first
        return self._append(node, shared, max(shared, tokens // self.block_tokens))

    def go_on(self, leaf: int, shared_tokens: int, tokens: int) -> int:
        """As `add`, for the only request that continues the finished one of `leaf` and repeats all of it."""
        if shared_tokens // self.block_tokens < self.ends[leaf]:
            return self.add(leaf, shared_tokens, tokens)
        self.ends[leaf] = max(self.ends[leaf], tokens // self.block_tokens)
        return leaf

    def _append(self, parent: int, start: int, end: int) -> int:
        self._asked = (-1, [])
        self.parents.append(parent)
        self.starts.append(start)
        self.ends.append(end)
        return len(self.starts) - 1

    def path(self, leaf: int) -> list[int]:
        """The nodes from the first to `leaf`."""
        if self._asked[0] == leaf:
            return self._asked[1]
        asked, nodes = leaf, list[int]()
        while leaf >= 0:
            nodes.append(leaf)
            leaf = self.parents[leaf]
        nodes.reverse()
        self._asked = asked, nodes
        return nodes


class PrefixCache(GivenPrefixes):
    """The prompts of a run in one scheduler's cache of `kv_tokens`.

    By request: `leaves` has its node, `hits` the tokens cached when it was first admitted (-1 before). `ended`:
    finished requests in order. By node: `held` has its cached blocks, from its start on, `pins` the running requests
    that use it. `free`: nodes that none uses, the oldest first. `host`: host memory for more blocks.
    """

    def __init__(
        self,
        tree: PrefixTree,
        kv_tokens: int,
        leaves: Sequence[int],
        hits: list[int],
        ended: list[int],
        host: HostTier | None = None,
    ) -> None:
        super().__init__(())
        self._tree, self._kv_tokens, self._block = tree, kv_tokens, tree.block_tokens
        self._starts, self._ends = tree.starts, tree.ends
        self._leaves, self._hits, self._ended = leaves, hits, ended
        self._paths: dict[int, list[int]] = {}
        self._last_found = self._last_loaded = 0
        self.host = host
        takes_evicted = host is not None and host.memory.takes_evicted
        self._takes_evicted = host if takes_evicted else None
        self._takes_computed = None if takes_evicted else host
        self.held: dict[int, int] = {}
        self.pins: dict[int, int] = {}
        self.free: OrderedDict[int, None] = OrderedDict()
        self.free_blocks = 0

    def found(self, request: int, goal: int, used: int) -> int:
        """Tokens in whole cached blocks of the first `goal` tokens; the last token is always computed."""
        self.give_way(used)
        most = (goal - 1) // self._block
        blocks, loaded = self._cached_blocks(self._path(request), most)
        if blocks > most:
            loaded = max(0, loaded - (blocks - most))
            blocks = most
        self._last_found, self._last_loaded = blocks * self._block, loaded * self._block
        return self._last_found

    def _cached_blocks(self, path: Sequence[int], most: int) -> tuple[int, int]:
        """Number of leading blocks on the GPU or in host memory (search stops at `most`), and of those from the host.

        Blocks in host memory alone follow those on the GPU, since the end of a prompt is evicted before its start.
        """
        ends, held = self._ends, self.held
        spans: Mapping[int, tuple[int, int]] = {} if self.host is None else self.host.spans
        blocks = loaded = 0
        for node in path:
            on_gpu = held.get(node, 0)
            blocks += on_gpu
            if self.host is not None and blocks < ends[node] and node in spans:
                more = self.host.beyond(node, on_gpu)
                loaded += more
                blocks += more
            if blocks < ends[node] or blocks >= most:
                break
        return blocks, loaded

    def load_s(self, request: int) -> float:
        """Seconds to load the blocks that the last call of `found` had in host memory."""
        return 0.0 if self.host is None else self._last_loaded * self.host.memory.s_per_token

    def in_use(self, request: int, goal: int) -> int:
        """Tokens of the request's prompt that running requests already use."""
        blocks = 0
        for node in self._path(request):
            if node not in self.pins:
                break
            blocks = self._ends[node]
        return blocks * self._block

    def take(self, request: int, goal: int) -> None:
        """Admit a request whose first `goal` tokens are in the cache before another is admitted."""
        starts, ends, held, pins = self._starts, self._ends, self.held, self.pins
        host = self._takes_evicted
        filled = goal // self._block
        for node in self._path(request):
            if node in pins:
                pins[node] += 1
                continue
            pins[node] = 1
            on_gpu = held.get(node, 0)
            if on_gpu > 0:
                del self.free[node]
                self.free_blocks -= on_gpu
            held[node] = max(on_gpu, min(ends[node], filled) - starts[node])
            if host is not None:
                host.come_back(node)
        if self._hits[request] < 0:
            self._hits[request] = self._last_found
            if self.host is not None:
                self.host.loaded[request] = self._last_loaded

    def give_back(self, request: int, size: int, computed: int, used: int) -> int:
        """Release a request: what it has `computed` stays and is evicted last, the end first; returns freed tokens."""
        self.give_way(used)
        starts, ends, pins, host = self._starts, self._ends, self.pins, self._takes_computed
        filled = computed // self._block
        shared = 0
        for node in reversed(self._path(request)):
            start, end = starts[node], ends[node]
            if pins[node] > 1:
                pins[node] -= 1
                shared += end - start
                continue
            del pins[node]
            blocks = min(end, filled) - start
            if blocks > 0:
                self.held[node] = blocks
                self.free[node] = None
                self.free_blocks += blocks
                if host is not None:
                    host.computed(node, blocks)
            else:
                del self.held[node]
        return size - shared * self._block

    def filled(self, used: int) -> float:
        """The share of the cache that is filled when running requests use `used` tokens."""
        return min(1.0, (used + self.free_blocks * self._block) / self._kv_tokens)

    def forget(self, request: int) -> None:
        """Record that the request is done."""
        del self._paths[request]
        self._ended.append(request)

    def path_of(self, request: int) -> Sequence[int]:
        """The nodes of a request's prompt and answer, the same in all caches of a run."""
        return self._tree.path(self._leaves[request])

    def holds(self, node: int) -> bool:
        """Whether blocks of a node are cached, not counting pending evictions."""
        return node in self.held or (self.host is not None and node in self.host.spans)

    def start_of(self, node: int) -> int:
        """Tokens of the path before a node."""
        return self._starts[node] * self._block

    def match(self, path: Sequence[int], used: int) -> int:
        """Tokens in leading cached blocks of a path."""
        if self.free_blocks * self._block > self._kv_tokens - used:
            self.give_way(used)
        ends, held, host = self._ends, self.held, self.host
        blocks = 0
        # `_cached_blocks` without its limit, inlined for speed: each cache is asked for every request.
        for node in path:
            on_gpu = held.get(node, 0)
            blocks += on_gpu
            if blocks < ends[node]:
                if host is None or node not in host.spans:
                    break
                blocks += host.beyond(node, on_gpu)
                if blocks < ends[node]:
                    break
        return blocks * self._block

    def give_way(self, used: int) -> None:
        """Evict, oldest first, what there is no room for when running requests use `used` tokens."""
        if self.free_blocks * self._block <= self._kv_tokens - used:
            return
        room = max(0, self._kv_tokens - used) // self._block
        host = self._takes_evicted
        while self.free_blocks > room:
            node = next(iter(self.free))
            blocks = self.held[node]
            dropped = min(blocks, self.free_blocks - room)
            self.free_blocks -= dropped
            if host is not None:
                host.evicted(node, blocks - dropped, blocks)
            if dropped < blocks:
                self.held[node] = blocks - dropped
            else:
                del self.free[node], self.held[node]

    def _path(self, request: int) -> list[int]:
        path = self._paths.get(request)
        if path is None:
            path = self._paths[request] = self._tree.path(self._leaves[request])
        return path
