"""The state of a simulated replica: attention groups, the batches of each, and what all of them share.

Classes and functions of the simulation are in the subset of Python that numba compiles (`tools/fidelity/compiled.py`
does): attributes are annotated, and an empty list is a multiple of one that says of what it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappush

from .costs import StepColumns
from .records import PREFILL_FIRST, Requests, Rules, Seen

# Later than any event; a heap that holds it is never empty.
NO_EVENT = 1 << 62
# The kinds of events in the order in which they take effect: a context outgrows the window, the output is whole.
OUTGROWN, DONE = 0, 1


class Batch:
    """Requests that decode together, with chunks of prompts: one of those that a group's pipeline has at work.

    `tick` counts its decode steps: all its requests advance together, so that what happens to one is due at a tick.
    `events`: a heap of (tick, kind, request); `entered`: requests in order of admission, some of them gone.
    `running` requests have `context` tokens in the cache, of which `windowed` are inside the window; `growing` of them
    have not outgrown it.
    Of its next step: `decoding` requests and `chunks` of prompts, `tokens` in all; `first_s` is what it takes this
    batch by itself, `growth_s` what each further one adds; `out_s` after its start it is out of the last stage.
    `ready`: prompts that get whole in it, each with the number of batches before that hold a part of it.
    `settled`: it decodes and had no event since, so that nothing of the step changes but the time.
    """

    tick: int
    events: list[tuple[int, int, int]]
    entered: list[int]
    running: int
    context: int
    windowed: int
    growing: int
    decoding: int
    chunks: int
    tokens: int
    first_s: float
    growth_s: float
    out_s: float
    ready: list[tuple[int, int]]
    settled: bool

    def __init__(self) -> None:
        """Nothing runs."""
        self.tick = self.running = self.context = self.windowed = self.growing = 0
        self.events = [(NO_EVENT, 0, -1)]
        self.entered = [0] * 0
        self.decoding = self.chunks = self.tokens = 0
        self.first_s = self.growth_s = self.out_s = 0.0
        self.ready = [(0, 0)] * 0
        self.settled = False


class GivenPrefixes:
    """What a group's cache has of prompts where that is given: nothing that another request has in use.

    `PrefixCache` has the same methods, and more, for prompts of which is known what they share.
    """

    cached: Sequence[int]

    def __init__(self, cached: Sequence[int]) -> None:
        """So many tokens of each prompt are `cached`."""
        self.cached = cached

    def found(self, request: int, goal: int, used: int) -> int:
        """Tokens of the first `goal` of a request that need not be computed, where requests use `used` of the cache."""
        return self.cached[request]

    def load_s(self, request: int) -> float:
        """Seconds in which what was just found of a request comes from memory of the host."""
        return 0.0

    def in_use(self, request: int, goal: int) -> int:
        """Tokens of these that others hold already, so that they take no more room."""
        return 0

    def take(self, request: int, goal: int) -> None:
        """Let a request in that has `goal` tokens to prefill."""

    def give_back(self, request: int, size: int, computed: int, used: int) -> int:
        """Let a request go that has `size` tokens, `computed` of them in the cache; by how many fewer are in use."""
        return size

    def forget(self, request: int) -> None:
        """A request that was let go is done for good."""

    def filled(self, used: int) -> float:
        """The share of the cache that holds something where requests use so many tokens: not known."""
        return 0.0


class Group:
    """An attention group: its scheduler, its cache, and the prompt it is in the middle of.

    `batches` are in the order of their numbers, in `turn` in that in which they are filled.
    `line`: its requests in order, of which those from `admitted` on wait. Who is put back takes the last place before
    them, which someone let in has left.
    `prefixes`: what its cache has of prompts before they are computed.
    `present`: requests that wait or are let in; `running`: those that decode, in all batches; `joining`: those whose
    prompt gets whole in this step. `cached`: tokens that the cache holds or has set aside.
    `prompt`: the request whose prompt is cut, -1 where none is; `prefilled` of its `goal` tokens are done, and
    `parts` batches hold a chunk of it in this step.
    `loading`: requests that are let in while blocks of theirs come from memory of the host, with the tokens found, in
    the order of `ready_s`, when these are there.
    """

    batches: list[Batch]
    turn: list[Batch]
    prefixes: GivenPrefixes
    line: list[int]
    admitted: int
    present: int
    running: int
    joining: int
    cached: int
    prompt: int
    prefilled: int
    goal: int
    parts: int
    loading: list[tuple[int, int]]
    ready_s: list[float]

    def __init__(self, batches: int, prefixes: GivenPrefixes) -> None:
        """Nobody is there."""
        self.prefixes = prefixes
        self.batches = [Batch() for _ in range(batches)]
        self.turn = self.batches.copy()
        self.line = [0] * 0
        self.admitted = self.present = self.running = self.joining = self.cached = 0
        self.prompt = -1
        self.prefilled = self.goal = self.parts = 0
        self.loading = [(0, 0)] * 0
        self.ready_s = [0.0] * 0


class Prices:
    """Seconds by number of requests, filled in when first met (-1 until then).

    `decode_s`: attention but for cached tokens, which add `per_token_s` each and `per_window_token_s` inside the
    window, and the same `beside` chunks of prompts; `pass_s`: as many tokens through the model; `head_s`: as many rows
    through the head.
    """

    decode_s: list[float]
    per_token_s: list[float]
    per_window_token_s: list[float]
    beside_s: list[float]
    beside_per_token_s: list[float]
    beside_per_window_token_s: list[float]
    pass_s: list[float]
    head_s: list[float]

    def __init__(self, most: int) -> None:
        """None is known of up to so many requests."""
        self.decode_s = [-1.0] * (most + 1)
        self.per_token_s = [0.0] * (most + 1)
        self.per_window_token_s = [0.0] * (most + 1)
        self.beside_s = [0.0] * (most + 1)
        self.beside_per_token_s = [0.0] * (most + 1)
        self.beside_per_window_token_s = [0.0] * (most + 1)
        self.pass_s = [0.0] * (most + 1)
        self.head_s = [-1.0] * (most + 1)


class Replica:
    """All of a run: what it is given, what it fills in (`seen`), and its state; times in s.

    `slots` requests run in a group at most. `pending` is a heap of the times of arrivals to come, infinity the last;
    the end of each of the first `followed` requests that are done brings another one.
    By request: tokens `made` before its present prefill, and the tick at which it is `due` to be done.
    Under `group_wait`: groups `asking` for a prompt, whether prompts are `held` back, and steps `waited` for.
    Of the next step: its `tokens` and `chunks` in all batches, whether these are prompts `alone`, and the time of the
    one that sets the pace, as `Batch` has it; `first_s` is that with what groups do together. `left_s`: how long after
    the last step its last prompt was out of the pipeline.
    What `Totals` has: so far.
    """

    step: StepColumns
    rules: Rules
    window: int
    inputs: Sequence[int]
    outputs: Sequence[int]
    pauses: Sequence[float]
    seen: Seen
    slots: int
    pending: list[float]
    followed: int
    groups: list[Group]
    prices: Prices
    made: list[int]
    due: list[int]
    asking: int
    held: bool
    waited: int
    tokens: int
    chunks: int
    alone: bool
    pace_s: float
    growth_s: float
    first_s: float
    left_s: float
    now: float
    prefill_s: float
    decoding_s: float
    arrived: int
    finished: int
    preemptions: int

    def __init__(self, step: StepColumns, rules: Rules, load: Requests, seen: Seen) -> None:
        """Before the first arrival."""
        self.step = step
        self.rules = rules
        self.window = step.window_tokens
        self.inputs = load.inputs
        self.outputs = load.outputs
        self.pauses = load.pauses
        self.seen = seen
        requests = len(load.inputs)
        self.slots = min(rules.max_sequences, requests)
        if rules.mode != PREFILL_FIRST:
            self.slots = min(self.slots, rules.token_budget)
        self.pending = [math.inf]
        for time in load.arrivals:
            heappush(self.pending, time)
        self.followed = requests - len(load.arrivals)
        self.groups = [Group(rules.batches, GivenPrefixes(load.cached)) for _ in range(rules.groups)]
        self.prices = Prices(self.slots)
        self.made = [0] * requests
        self.due = [0] * requests
        self.asking = self.waited = self.tokens = self.chunks = 0
        self.held = self.alone = False
        self.pace_s = self.growth_s = self.first_s = self.left_s = 0.0
        self.now = self.prefill_s = self.decoding_s = 0.0
        self.arrived = self.finished = self.preemptions = 0
