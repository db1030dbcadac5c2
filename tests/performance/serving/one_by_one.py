"""A slow, plain simulation of the same engine: step by step, every request an object, every sum recomputed.

It shares only the step table with the simulator, so the two agree only if both follow the specification.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from shardwright.tools.performance.serving.policy import Policy
from shardwright.tools.performance.serving.records import Requests
from shardwright.tools.performance.serving.step_table import StepTable


class Request(Struct):
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
    """Seconds of a step that only decodes; `sizes`: cached tokens of each request."""
    return cost(table, sizes, [], len(sizes))


def cost(table: StepTable, sizes: Sequence[int], chunks: Sequence[tuple[int, int]], rows: int) -> float:
    """Seconds of a step; `sizes`: cached tokens of each decode, `chunks`: (prefix, tokens), `rows`: tokens out."""
    n, window = len(sizes), table.window_tokens
    seconds = read(table.tokens, table.linear_s, n + sum(tokens for _, tokens in chunks), False)
    seconds += table.host_fixed_s + table.host_per_sequence_s * (n + len(chunks))
    if rows:
        seconds += read(table.sequences, table.head_s, rows, False)
    if n:
        base, per_token, inside = table.decode_base_s, table.decode_per_token_s, table.decode_per_window_token_s
        if chunks and table.beside_base_s:
            base, per_token, inside = table.beside_base_s, table.beside_per_token_s, table.beside_per_window_token_s
        seconds += read(table.sequences, base, n, False)
        seconds += read(table.sequences, per_token, n, True) * sum(sizes)
        if window:
            rate = read(table.sequences, inside, n, True)
            seconds += rate * sum(min(size, window) for size in sizes)
    for prefix, tokens in chunks:
        seen = [prefix + j for j in range(1, tokens + 1)]
        seconds += read(table.chunk_tokens, table.prefill_fixed_s, tokens, False)
        seconds += read(table.chunk_tokens, table.prefill_per_pair_s, tokens, True) * sum(seen)
        if window:
            rate = read(table.chunk_tokens, table.prefill_per_window_pair_s, tokens, True)
            seconds += rate * sum(min(tokens_seen, window) for tokens_seen in seen)
    return seconds + (table.host_per_prefill_s if chunks else 0.0)


class Group(Struct):
    """The scheduler of one attention group, and its work in the present step."""

    policy: Policy
    waiting: list[Request] = field(default_factory=list)
    running: list[Request] = field(default_factory=list)
    prefilling: list[Request] = field(default_factory=list)
    just_ready: list[Request] = field(default_factory=list)
    decoding: list[Request] = field(default_factory=list)
    chunks: list[tuple[int, int]] = field(default_factory=list)
    preemptions: int = 0

    def present(self) -> int:
        return len(self.waiting) + len(self.prefilling) + len(self.running)

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

    def fits(self, request: Request, ready: int) -> bool:
        full = self.policy.reserve == "full"
        need = request.prompt + request.output if full else request.to_prefill + 1
        growth = 0 if full else len(self.running)
        taken = self.held() + sum(r.to_prefill + 1 for r in self.just_ready if not full)
        taken += sum(r.prompt + r.output for r in self.just_ready if full)
        return len(self.running) + ready < self.slots() and taken + growth + need <= self.policy.kv_tokens

    def may_enter(self, request: Request, ready: int, room: int) -> bool:
        remaining = request.to_prefill - request.hit
        return self.fits(request, ready) and (
            self.policy.mode != "whole" or remaining <= room or remaining > self.policy.token_budget
        )

    def asks(self) -> bool:
        """Whether a prompt could continue, or begin, now."""
        return bool(self.prefilling) or (bool(self.waiting) and self.fits(self.waiting[0], 0))

    def gather(self) -> list[tuple[int, int]]:
        """Chunks of this step as (prefix, tokens); requests whose prompt is whole then are in `just_ready`."""
        chunks: list[tuple[int, int]] = []
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

    def plan(self, gave_way: bool, held_back: bool) -> None:
        self.just_ready = []
        self.chunks = [] if gave_way or held_back else self.gather()
        self.decoding = list(self.running) if not self.chunks or self.policy.mode != "prefill_first" else []

    def tokens(self) -> int:
        return len(self.decoding) + sum(tokens for _, tokens in self.chunks)

    def seconds(self, table: StepTable) -> float:
        sizes = [request.size for request in self.decoding]
        return cost(table, sizes, self.chunks, len(sizes) + len(self.just_ready)) if self.tokens() else 0.0

    def advance(self, now: float) -> list[Request]:
        self.running += self.just_ready
        finished: list[Request] = []
        for request in (*self.decoding, *self.just_ready):
            request.made += 1
            if request.made == 1:
                request.first = now
            if request.made == request.output:
                request.done = now
                finished.append(request)
        self.running = [request for request in self.running if request.done is None]
        return finished


class OneByOne(Struct):
    table: StepTable
    policy: Policy
    load: Requests
    now: float = 0.0
    steps: int = 0
    held_steps: int = 0
    groups: list[Group] = field(default_factory=list)

    @property
    def preemptions(self) -> int:
        return sum(group.preemptions for group in self.groups)

    def serve(self) -> list[Request]:
        load = self.load
        all_requests = [
            Request(i, *numbers) for i, numbers in enumerate(zip(load.inputs, load.outputs, load.cached, strict=True))
        ]
        self.groups = [Group(self.policy) for _ in range(self.policy.groups)]
        unborn = list(all_requests)
        coming = sorted(load.arrivals)
        to_launch = len(all_requests) - len(coming)
        while any(request.done is None for request in all_requests):
            while coming and coming[0] <= self.now:
                request = unborn.pop(0)
                request.arrived = coming.pop(0)
                min(self.groups, key=Group.present).waiting.append(request)
            finished, worked = self.step()
            if not worked:
                self.now = coming[0]
            for request in finished:
                if to_launch:
                    to_launch -= 1
                    coming.append(self.now + load.pauses[request.number])
            coming.sort()
        return all_requests

    def hold_back(self) -> bool:
        """Whether prompts wait until all groups have one."""
        asking = [group.asks() for group in self.groups]
        if self.policy.groups == 1 or self.policy.group_wait_steps == 0:
            return False
        if all(asking) or not all(group.running for group in self.groups):
            self.held_steps = 0
            return False
        self.held_steps += 1
        if self.held_steps < self.policy.group_wait_steps:
            return True
        self.held_steps = 0
        return False

    def step(self) -> tuple[list[Request], bool]:
        gave_way = [group.preempt() for group in self.groups]
        for group in self.groups:
            group.just_ready = []
        held_back = self.hold_back()
        for group, gave in zip(self.groups, gave_way, strict=True):
            group.plan(gave, held_back)
        tokens = sum(group.tokens() for group in self.groups)
        if not tokens:
            return [], False
        seconds = max(group.seconds(self.table) for group in self.groups)
        if self.table.met_s:
            seconds += read(self.table.met_tokens, self.table.met_s, tokens, False)
        busiest = max(len(group.decoding) + len(group.chunks) for group in self.groups)
        self.now += max(seconds, self.table.hidden_fixed_s + self.table.hidden_per_sequence_s * busiest)
        self.steps += 1
        return [request for group in self.groups for request in group.advance(self.now)], True
