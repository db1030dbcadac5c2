"""A slow, plain simulation of the same engine: every step by itself, every request an object, every sum taken anew.

It shares nothing with the simulator but the step table, so that the two agree only where both do what is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shardwright.tools.performance.serving.inputs import Inputs
from shardwright.tools.performance.serving.policy import Policy
from shardwright.tools.performance.serving.step_table import StepTable


@dataclass
class Request:
    number: int
    prompt: int
    output: int
    hit: int
    arrived: float = 0.0
    computed: int = 0
    made: int = 0
    first: float | None = None
    done: float | None = None
    admitted: bool = False

    @property
    def to_prefill(self) -> int:
        """Tokens that must be in the cache before the next one can be made by decoding."""
        return self.prompt + self.made

    @property
    def size(self) -> int:
        return self.prompt + self.made


def read(grid: Sequence[float], column: Sequence[float], x: float, is_rate: bool) -> float:
    """The column at `x`: straight lines between points, level below the first, and beyond the last for rates."""
    if x <= grid[0]:
        return column[0]
    if x > grid[-1] and is_rate:
        return column[-1]
    right = next((i for i, point in enumerate(grid) if point >= x), len(grid) - 1)
    slope = (column[right] - column[right - 1]) / (grid[right] - grid[right - 1])
    return column[right] + slope * (x - grid[right])


def decode_seconds(table: StepTable, sizes: Sequence[int]) -> float:
    """One step that only decodes requests with so many cached tokens each."""
    return cost(table, sizes, [], len(sizes))


def cost(table: StepTable, sizes: Sequence[int], chunks: Sequence[tuple[int, int]], rows: int) -> float:
    """One step: decoding requests by cached tokens, chunks as (prefix, tokens), and sequences that yield a token."""
    n, window = len(sizes), table.window_tokens
    seconds = read(table.tokens, table.linear_s, n + sum(tokens for _, tokens in chunks), False)
    seconds += table.host_fixed_s + table.host_per_sequence_s * (n + len(chunks))
    if rows:
        seconds += read(table.sequences, table.head_s, rows, False)
    if n:
        seconds += read(table.sequences, table.decode_base_s, n, False)
        seconds += read(table.sequences, table.decode_per_token_s, n, True) * sum(sizes)
        if window:
            rate = read(table.sequences, table.decode_per_window_token_s, n, True)
            seconds += rate * sum(min(size, window) for size in sizes)
    for prefix, tokens in chunks:
        seen = [prefix + j for j in range(1, tokens + 1)]
        seconds += read(table.chunk_tokens, table.prefill_fixed_s, tokens, False)
        seconds += read(table.chunk_tokens, table.prefill_per_pair_s, tokens, True) * sum(seen)
        if window:
            rate = read(table.chunk_tokens, table.prefill_per_window_pair_s, tokens, True)
            seconds += rate * sum(min(tokens_seen, window) for tokens_seen in seen)
    return seconds + (table.host_per_prefill_s if chunks else 0.0)


@dataclass
class OneByOne:
    table: StepTable
    policy: Policy
    inputs: Inputs
    now: float = 0.0
    waiting: list[Request] = field(default_factory=list)
    running: list[Request] = field(default_factory=list)
    prefilling: list[Request] = field(default_factory=list)
    preemptions: int = 0
    steps: int = 0

    def serve(self) -> list[Request]:
        load = self.inputs.requests
        all_requests = [
            Request(i, *numbers) for i, numbers in enumerate(zip(load.inputs, load.outputs, load.cached, strict=True))
        ]
        unborn = list(all_requests)
        coming = sorted(load.arrivals)
        to_launch = len(all_requests) - len(coming)
        while any(request.done is None for request in all_requests):
            while coming and coming[0] <= self.now:
                request = unborn.pop(0)
                request.arrived = coming.pop(0)
                self.waiting.append(request)
            finished, worked = self.step()
            if not worked:
                self.now = coming[0]
            for request in finished:
                if to_launch:
                    to_launch -= 1
                    coming.append(self.now + load.pauses[request.number])
            coming.sort()
        return all_requests

    def held(self) -> int:
        if self.policy.reserve == "full":
            return sum(request.prompt + request.output for request in (*self.running, *self.prefilling))
        return sum(r.size for r in self.running) + sum(r.to_prefill + 1 for r in self.prefilling)

    def preempt(self) -> bool:
        if self.policy.reserve == "full":
            return False
        any_put_back = False
        while self.running and self.held() + len(self.running) > self.policy.kv_tokens:
            victim = self.prefilling.pop() if self.prefilling else self.running.pop()
            victim.computed = 0
            self.waiting.insert(0, victim)
            self.preemptions += 1
            any_put_back = True
        return any_put_back

    def slots(self) -> int:
        most, budget = self.policy.max_sequences, self.policy.token_budget
        return most if self.policy.mode == "prefill_first" else min(most, budget)

    def may_enter(self, request: Request, ready: int, room: int) -> bool:
        full = self.policy.reserve == "full"
        need = request.prompt + request.output if full else request.to_prefill + 1
        growth = 0 if full else len(self.running)
        taken = self.held() + sum(r.to_prefill + 1 for r in self.just_ready if not full)
        taken += sum(r.prompt + r.output for r in self.just_ready if full)
        if len(self.running) + ready >= self.slots() or taken + growth + need > self.policy.kv_tokens:
            return False
        left = request.to_prefill - request.hit
        return self.policy.mode != "whole" or left <= room or left > self.policy.token_budget

    def gather(self) -> list[tuple[int, int]]:
        """Chunks of this step as (prefix, tokens); requests whose prompt is whole then are in `just_ready`."""
        chunks: list[tuple[int, int]] = []
        self.just_ready: list[Request] = []
        room = self.policy.token_budget - (0 if self.policy.mode == "prefill_first" else len(self.running))
        while room > 0:
            if not self.prefilling:
                if not self.waiting or not self.may_enter(self.waiting[0], len(self.just_ready), room):
                    break
                self.prefilling.append(self.waiting.pop(0))
                self.prefilling[0].computed = self.prefilling[0].hit
            request = self.prefilling[0]
            take = min(room, request.to_prefill - request.computed)
            chunks.append((request.computed, take))
            request.computed += take
            room -= take
            if request.computed == request.to_prefill:
                self.just_ready.append(self.prefilling.pop())
        return chunks

    def step(self) -> tuple[list[Request], bool]:
        gave_way = self.preempt()
        self.just_ready = []
        chunks = [] if gave_way else self.gather()
        decoding = list(self.running) if not chunks or self.policy.mode != "prefill_first" else []
        if not chunks and not decoding:
            return [], False
        sizes = [request.size for request in decoding]
        self.now += cost(self.table, sizes, chunks, len(sizes) + len(self.just_ready))
        self.steps += 1
        self.running += self.just_ready
        finished: list[Request] = []
        for request in (*decoding, *self.just_ready):
            request.made += 1
            if request.made == min(self.policy.response_interval_steps, request.output):
                request.first = self.now
            if request.made == request.output:
                request.done = self.now
                finished.append(request)
        self.running = [request for request in self.running if request.done is None]
        return finished, True
