"""Replicas that only prefill: prompts in line for them, the passes that can begin, and their prefix caches."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from .costs import chunk_time, pass_time
from .records import Requests
from .state import GivenPrefixes
from .step_table import StepTable

# Seconds by the prompts, each (cached, to compute), that go through passes together.
PassTimes = dict[tuple[tuple[int, int], ...], float]


class Pass(Struct, frozen=True):
    """Prompts that go through a prefill replica together, and the seconds that this takes."""

    server: PrefillServer
    batch: list[int]
    seconds: float


class PrefillServer:
    """A replica with passes of up to `budget` tokens, of which `free` more can begin, and its cache.

    `cached`: cache tokens that prompts in a pass use. Like servers share `pass_times`, empty at first.
    """

    def __init__(
        self,
        step: StepTable,
        budget: int,
        requests: Requests,
        cache: GivenPrefixes,
        passes: int,
        pass_times: PassTimes,
    ) -> None:
        self._step, self._budget, self._requests, self._pass_times = step, budget, requests, pass_times
        self.cache, self.free, self.cached = cache, passes, 0

    def begin(self, line: deque[int], most: int) -> Pass:
        """Begin a pass with at most `most` prompts of `line`, as far as the budget goes.

        Its time includes loading their blocks from host memory.
        """
        batch: list[int] = []
        prompts: list[tuple[int, int]] = []
        room, load_s = self._budget, 0.0
        while line and len(batch) < most:
            request = line[0]
            tokens = self._requests.inputs[request]
            hit_tokens = self.cache.found(request, tokens, self.cached)
            if batch and tokens - hit_tokens > room:
                break
            room -= tokens - hit_tokens
            batch.append(line.popleft())
            prompts.append((hit_tokens, tokens - hit_tokens))
            load_s += self.cache.load_s(request)
            self.cached += tokens - self.cache.in_use(request, tokens)
            self.cache.take(request, tokens)
        self.free -= 1
        key = tuple(prompts)
        pass_s = self._pass_times.get(key)
        if pass_s is None:
            pass_s = self._pass_times[key] = _seconds(self._step, prompts, self._budget)
        return Pass(self, batch, load_s + pass_s)

    def end(self, batch: Sequence[int]) -> None:
        """End a pass: its prompts leave, and their computed blocks stay for others."""
        self.free += 1
        for request in batch:
            tokens = self._requests.inputs[request]
            self.cached -= self.cache.give_back(request, tokens, tokens, self.cached)
            self.cache.forget(request)


class PrefillLine:
    """Prompts that wait for any of `servers` that can begin a pass, taken in turn.

    `present`: requests that wait or are in a pass.
    """

    def __init__(self, servers: Sequence[PrefillServer]) -> None:
        self._servers, self._next = servers, 0
        self.waiting: deque[int] = deque()
        self.free = sum(server.free for server in servers)
        self.present = 0

    @property
    def cached(self) -> int:
        """Tokens of all caches that prompts in a pass use."""
        return sum(server.cached for server in self._servers)

    def receive(self, request: int) -> None:
        """Put a request in line."""
        self.waiting.append(request)
        self.present += 1

    def begin(self) -> Pass | None:
        """Begin the next pass; `None` if no request waits or no pass can begin."""
        if not self.free or not self.waiting:
            return None
        while not self._servers[self._next].free:
            self._next = (self._next + 1) % len(self._servers)
        # Passes that can begin share the waiting prompts: none takes what another could begin now.
        begun = self._servers[self._next].begin(self.waiting, -(-len(self.waiting) // self.free))
        self._next = (self._next + 1) % len(self._servers)
        self.free -= 1
        return begun

    def end(self, done: Pass) -> None:
        """End a pass of one of the servers."""
        done.server.end(done.batch)
        self.free += 1
        self.present -= len(done.batch)


def _seconds(step: StepTable, prompts: Sequence[tuple[int, int]], budget: int) -> float:
    """Seconds in which prompts, each (cached, to compute), go through passes of `budget` tokens, in order."""
    seconds = 0.0
    room, chunks, rows, tokens = budget, 0, 0, 0
    for cached, compute in prompts:
        prefix, remaining = cached, compute
        while remaining:
            take = min(remaining, room)
            seconds += chunk_time(step, prefix, take)
            prefix, remaining = prefix + take, remaining - take
            room, chunks, tokens = room - take, chunks + 1, tokens + take
            rows += remaining == 0
            if not room:
                seconds += pass_time(step, 0, rows, tokens, chunks) + step.host_per_prefill_s
                room, chunks, rows, tokens = budget, 0, 0, 0
    if chunks:
        seconds += pass_time(step, 0, rows, tokens, chunks) + step.host_per_prefill_s
    return seconds
