"""The prefix cache of a scheduler: which blocks of prompts it holds, which are in use, and which give way first.

Prompts are paths in a tree whose nodes are stretches of blocks that are always asked for together, so that a node has
one age and all that is said of blocks is said of nodes. As vLLM's `BlockPool` keeps them: what a request has computed
stays when it is gone, until another one needs the room; the oldest goes first, of one request the end before the start.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from .host_tier import HostTier
from .state import GivenPrefixes


class PrefixTree:
    """Beginnings of prompts in blocks of `block_tokens`: a node has those from `starts` to `ends` behind its parent."""

    def __init__(self, block_tokens: int) -> None:
        """No prompt yet."""
        self.block_tokens = block_tokens
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.parents: list[int] = []
        # The path that was asked for last: all caches are asked for that of a request that comes.
        self._asked: tuple[int, list[int]] = (-1, [])

    def add(self, other: int, shared_tokens: int, tokens: int) -> int:
        """The node of a request of `tokens`, of which the first `shared_tokens` are those of the path to `other`.

        Only whole blocks are shared. Where the path goes on beyond them, the node that does is cut in two.
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
        """As `add`, for the one request that follows the one of `leaf`, which is over, and asks for all that it had."""
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
    """What one scheduler's cache of `kv_tokens` holds of the prompts of a run.

    `leaves`: the node of each request; `hits`: tokens that it found when it was let in first, -1 before;
    `ended`: those that are done, in order. `held`: blocks of a node that are there, from its start on; `pins`: running
    requests that use it; `free`: nodes that none does, the oldest first. `host`: memory beside it that keeps more.
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
        """An empty cache."""
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
        """Whole blocks of the first `goal` tokens that are there, in tokens; the last token is always computed."""
        self.give_way(used)
        most = (goal - 1) // self._block
        blocks, loaded = self._there(self._path(request), most)
        if blocks > most:
            loaded = max(0, loaded - (blocks - most))
            blocks = most
        self._last_found, self._last_loaded = blocks * self._block, loaded * self._block
        return self._last_found

    def _there(self, path: Sequence[int], most: int) -> tuple[int, int]:
        """Blocks from the first on that are here or in the host's memory, `most` or a node's more; those of the host.

        What is there alone lies behind what is here, for the end of a prompt gives way before its start.
        """
        ends, held = self._ends, self.held
        spans: Mapping[int, tuple[int, int]] = {} if self.host is None else self.host.spans
        blocks = loaded = 0
        for node in path:
            here = held.get(node, 0)
            blocks += here
            if self.host is not None and blocks < ends[node] and node in spans:
                more = self.host.beyond(node, here)
                loaded += more
                blocks += more
            if blocks < ends[node] or blocks >= most:
                break
        return blocks, loaded

    def load_s(self, request: int) -> float:
        """Seconds in which what was just found of a request comes from memory of the host."""
        return 0.0 if self.host is None else self._last_loaded * self.host.memory.s_per_token

    def in_use(self, request: int, goal: int) -> int:
        """Tokens of the request's prompt that running requests hold."""
        blocks = 0
        for node in self._path(request):
            if node not in self.pins:
                break
            blocks = self._ends[node]
        return blocks * self._block

    def take(self, request: int, goal: int) -> None:
        """Let a request in whose first `goal` tokens are in the cache before another one is let in."""
        starts, ends, held, pins = self._starts, self._ends, self.held, self.pins
        host = self._takes_evicted
        filled = goal // self._block
        for node in self._path(request):
            if node in pins:
                pins[node] += 1
                continue
            pins[node] = 1
            here = held.get(node, 0)
            if here > 0:
                del self.free[node]
                self.free_blocks -= here
            held[node] = max(here, min(ends[node], filled) - starts[node])
            if host is not None:
                host.come_back(node)
        if self._hits[request] < 0:
            self._hits[request] = self._last_found
            if self.host is not None:
                self.host.loaded[request] = self._last_loaded

    def give_back(self, request: int, size: int, computed: int, used: int) -> int:
        """Let a request go: what it has `computed` stays, and is the last to give way, of it the end first."""
        self.give_way(used)
        starts, ends, pins, host = self._starts, self._ends, self.pins, self._takes_computed
        filled = computed // self._block
        kept = 0
        for node in reversed(self._path(request)):
            start, end = starts[node], ends[node]
            if pins[node] > 1:
                pins[node] -= 1
                kept += end - start
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
        return size - kept * self._block

    def filled(self, used: int) -> float:
        """The share of the cache that holds something where running requests use so many tokens."""
        return min(1.0, (used + self.free_blocks * self._block) / self._kv_tokens)

    def forget(self, request: int) -> None:
        """The request is done."""
        del self._paths[request]
        self._ended.append(request)

    def path_of(self, request: int) -> Sequence[int]:
        """The nodes of a request's prompt and answer, the same in all caches of a run."""
        return self._tree.path(self._leaves[request])

    def holds(self, node: int) -> bool:
        """Whether blocks of a node are here, but for what gives way when there is no room."""
        return node in self.held or (self.host is not None and node in self.host.spans)

    def start_of(self, node: int) -> int:
        """Tokens of a path before a node."""
        return self._starts[node] * self._block

    def match(self, path: Sequence[int], used: int) -> int:
        """Tokens of whole blocks on a path that are here."""
        if self.free_blocks * self._block > self._kv_tokens - used:
            self.give_way(used)
        ends, held, host = self._ends, self.held, self.host
        blocks = 0
        # `_there` without its limit, written out: each cache is asked for the prompt of every request.
        for node in path:
            here = held.get(node, 0)
            blocks += here
            if blocks < ends[node]:
                if host is None or node not in host.spans:
                    break
                blocks += host.beyond(node, here)
                if blocks < ends[node]:
                    break
        return blocks * self._block

    def give_way(self, used: int) -> None:
        """Let go, the oldest first, of what there is no room for where running requests use so many tokens."""
        if self.free_blocks * self._block <= self._kv_tokens - used:
            return
        room = max(0, self._kv_tokens - used) // self._block
        host = self._takes_evicted
        while self.free_blocks > room:
            node = next(iter(self.free))
            blocks = self.held[node]
            gone = min(blocks, self.free_blocks - room)
            self.free_blocks -= gone
            if host is not None:
                host.evicted(node, blocks - gone, blocks)
            if gone < blocks:
                self.held[node] = blocks - gone
            else:
                del self.free[node], self.held[node]

    def _path(self, request: int) -> list[int]:
        path = self._paths.get(request)
        if path is None:
            path = self._paths[request] = self._tree.path(self._leaves[request])
        return path
