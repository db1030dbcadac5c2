"""A replica that only decodes: requests come with their caches, join between two steps, and leave when done."""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush

from .costs import hidden_time, pass_time, position, rate_at
from .pace import steps_to_reach
from .policy import Policy
from .records import Requests
from .state import DONE, NO_EVENT, OUTGROWN
from .step_table import StepTable

# By number of sequences in a decode step: seconds of the pass, and per token of context in full and in windowed layers.
Rates = dict[int, tuple[float, float, float]]


class DecodeServer:
    """One replica, advanced by the caller's clock, never past it; times in s.

    A request is admitted when its prompt and whole output fit in the cache, so none is preempted.
    """

    def __init__(self, step: StepTable, policy: Policy, requests: Requests, rates: Rates) -> None:
        """An idle server at time 0 for some of `requests`; like servers share `rates`, empty at first."""
        self._step = step
        self._rates = rates
        self._policy = policy
        self._requests = requests
        self._waiting: deque[int] = deque()
        # Heap of events by decode step: (step, kind, request).
        self._events: list[tuple[int, int, int]] = []
        self._now = 0.0
        self._tick = 0
        # Steps planned from here on.
        self._steps = 0
        self._running = self._context = self._windowed = self._growing = self._held = 0
        self._first_s = self._growth_s = 0.0
        # Requests here, waiting ones included; the time of the next event if no other request comes.
        self.load = 0
        self.due_s = math.inf
        self.decoding_s = 0.0
        # Finished requests and when, for the caller to read and clear.
        self.done: list[tuple[int, float]] = []

    @property
    def waiting(self) -> int:
        """Number of requests here that are not admitted yet."""
        return len(self._waiting)

    def receive(self, request: int, now: float) -> None:
        """Take a request with its first token and cache at `now`; it joins when the current step ends."""
        self._waiting.append(request)
        self.load += 1
        if not self._running or self._now == now:
            self._now = now
            self._begin()
        elif self._fits(self._waiting[0]):
            self._plan(min(self._steps, steps_to_reach(now - self._now, self._first_s, self._growth_s)))

    def advance(self) -> None:
        """Decode up to `due_s`; then finished requests leave, and waiting ones that fit join."""
        self._decode(self._steps)
        self._begin()

    def _begin(self) -> None:
        """Admit requests that fit, and plan the steps until the next event."""
        while self._waiting and self._fits(self._waiting[0]):
            self._join(self._waiting.popleft())
        if self._running:
            self._price()
            self._plan(min(self._events[0][0] - self._tick, self._hide_behind_host()))
        else:
            self.due_s = math.inf

    def _plan(self, steps: int) -> None:
        self._steps = steps
        self.due_s = self._now + self._duration(steps)

    def _fits(self, request: int) -> bool:
        need = self._requests.inputs[request] + self._requests.outputs[request]
        return self._running < self._policy.max_sequences and self._held + need <= self._policy.kv_tokens

    def _price(self) -> None:
        """Set the seconds of the next step, and by how much each later one takes longer."""
        n = self._running
        if n not in self._rates:
            place, step = position(self._step.sequences, n), self._step
            rates = rate_at(step.decode_per_token_s, place), rate_at(step.decode_per_window_token_s, place)
            self._rates[n] = pass_time(step, n, n, n, n), *rates
        pass_s, per_token, per_window_token = self._rates[n]
        self._first_s = pass_s + per_token * self._context + per_window_token * self._windowed
        self._growth_s = per_token * n + per_window_token * self._growing

    def _hide_behind_host(self) -> int:
        """Let a step last at least as long as the host works; returns the steps until it does anyway."""
        spare_s = hidden_time(self._step, self._running) - self._first_s
        if spare_s <= 0.0:
            return NO_EVENT
        steps = math.ceil(spare_s / self._growth_s) if self._growth_s > 0.0 else NO_EVENT
        self._first_s, self._growth_s = self._first_s + spare_s, 0.0
        return steps

    def _duration(self, steps: int) -> float:
        return steps * (self._first_s + 0.5 * self._growth_s * (steps - 1))

    def _decode(self, steps: int) -> None:
        elapsed_s = self._duration(steps)
        self._now += elapsed_s
        self._tick += steps
        self._context += steps * self._running
        self._windowed += steps * self._growing
        self.decoding_s += elapsed_s * self._running
        while self._events and self._events[0][0] <= self._tick:
            _, kind, request = heappop(self._events)
            if kind == OUTGROWN:
                self._growing -= 1
            else:
                self._leave(request)

    def _join(self, request: int) -> None:
        inputs, outputs = self._requests.inputs[request], self._requests.outputs[request]
        window = self._step.window_tokens
        size = inputs + 1
        done = self._tick + outputs - 1
        self._running += 1
        self._held += inputs + outputs
        self._context += size
        self._windowed += min(size, window)
        if size < window:
            self._growing += 1
            if self._tick + window - size <= done:
                heappush(self._events, (self._tick + window - size, OUTGROWN, request))
        heappush(self._events, (done, DONE, request))

    def _leave(self, request: int) -> None:
        size = self._requests.inputs[request] + self._requests.outputs[request]
        self._running -= 1
        self.load -= 1
        self._held -= size
        self._context -= size
        self._windowed -= min(size, self._step.window_tokens)
        self._growing -= size < self._step.window_tokens
        self.done.append((request, self._now))
