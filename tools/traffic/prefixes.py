"""Which prompts of a trace begin as earlier ones do, from the hashes of their blocks, in bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

# Different blocks of prompts that are remembered, and earlier requests that are named for all of them together.
_MOST_BLOCKS = 1 << 20


class Prefixes:
    """Which share of the blocks of prompts had come before, and with which requests each prompt shares its beginning.

    A block's hash stands for all of its prompt up to it (Mooncake's `hash_ids`). Who asked for a block last asked for
    those before it too, maybe not last: so along a prompt the last owners of its blocks are ever earlier requests, and
    those at which the owner changes are all that a prompt can share most with, wherever the record is begun.
    """

    def __init__(self) -> None:
        """No prompt yet."""
        self._last: dict[int, int] = {}
        self._blocks = self._shared = 0
        # Of each request: where its owners begin; owners with the number of blocks that are shared with each.
        self._starts, self._owners, self._depths = array("q"), array("q"), array("q")
        # Between these the tokens of a block lie, as lengths and numbers of blocks tell.
        self._least_tokens, self._most_tokens = 1, 1 << 62
        self.is_whole = True

    def add(self, tokens: int, blocks: Sequence[int]) -> None:
        """One more prompt; once so many blocks are remembered as can be, no more are looked at."""
        if not self.is_whole:
            return
        request, last = len(self._starts), self._last
        self._starts.append(len(self._owners))
        shared = 0
        for block in blocks:
            owner = last.get(block)
            if owner is None:
                break
            shared += 1
            if len(self._owners) > self._starts[-1] and self._owners[-1] == owner:
                self._depths[-1] = shared
            else:
                self._owners.append(owner)
                self._depths.append(shared)
        last.update(dict.fromkeys(blocks, request))
        self._blocks += len(blocks)
        self._shared += shared
        if blocks:
            self._least_tokens = max(self._least_tokens, -(-tokens // len(blocks)))
        if len(blocks) > 1:
            self._most_tokens = min(self._most_tokens, (tokens - 1) // (len(blocks) - 1))
        self.is_whole = max(len(last), len(self._owners)) < _MOST_BLOCKS

    def share(self) -> float | None:
        """The share; `None` where no blocks are told."""
        return self._shared / self._blocks if self._blocks else None

    def replay(self, places: Sequence[int], prompts: Sequence[int]) -> tuple[tuple[int, int], ...] | None:
        """Of requests in a row, by their places and the tokens of their `prompts`: with which of them each shares most.

        `None` where none shares anything, or lengths and blocks do not agree. What was shared with requests before the
        first is left out.
        """
        if not self.is_whole or self._least_tokens > self._most_tokens:
            return None
        first, found = places[0], list[tuple[int, int]]()
        for place, prompt in zip(places, prompts, strict=True):
            end = self._starts[place + 1] if place + 1 < len(self._starts) else len(self._owners)
            within = [at for at in range(self._starts[place], end) if self._owners[at] >= first]
            if not within:
                found.append((0, 0))
                continue
            earlier = self._owners[within[-1]] - first
            found.append((earlier, min(self._depths[within[-1]] * self._least_tokens, prompt, prompts[earlier])))
        return tuple(found) if any(tokens for _, tokens in found) else None
