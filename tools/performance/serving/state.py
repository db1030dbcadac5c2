"""The state of a simulated replica: attention groups, the batches of each, and what all of them share.

Classes and functions of the simulation use the subset of Python that numba compiles (`tools/fidelity/compiled.py`):
attributes are annotated, and an empty list is written as `[value] * 0` to give its type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappush

from .records import PREFILL_FIRST, Requests, Rules, Seen
from .step_table import StepTable

# Later than any event; a heap that holds it is never empty.
NO_EVENT = 1 << 62
# The kinds of events in the order in which they take effect: a context outgrows the window, the output is whole.
OUTGROWN, DONE = 0, 1


class Batch:
    """Requests that decode together, with chunks of prompts: one of the batches in a group's pipeline.

    `tick` counts its decode steps; its requests advance together, so events are due at ticks.
    `events`: a heap of (tick, kind, request); `entered`: requests in order of admission, some of them gone.
    `running` requests have `context` tokens in the cache, of which `windowed` are inside the window; `growing` of them
    have not outgrown it.
    Next step: `decoding` requests and `chunks` of prompts, `tokens` in all; `first_s` is its time for this batch alone,
    `growth_s` what each further step adds; `out_s` after its start the batch is out of the last stage.
    `ready`: prompts that it completes, each with the number of earlier batches that hold a part of it.
    `settled`: it decodes and had no event since, so that only the time of the step changes.
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
        self.tick = self.running = self.context = self.windowed = self.growing = 0
        self.events = [(NO_EVENT, 0, -1)]
        self.entered = [0] * 0
        self.decoding = self.chunks = self.tokens = 0
        self.first_s = self.growth_s = self.out_s = 0.0
        self.ready = [(0, 0)] * 0
        self.settled = False


class GivenPrefixes:
    """A group's prefix cache with a fixed number of cached tokens per prompt, none of them in use by others.

    `PrefixCache` has the same methods, and more, for prompts whose shared beginnings are known.
    """

    cached: Sequence[int]

    def __init__(self, cached: Sequence[int]) -> None:
        """A cache that has `cached` tokens of each prompt."""
        self.cached = cached

    def found(self, request: int, goal: int, used: int) -> int:
        """Cached tokens among the first `goal` of a request, when requests use `used` tokens of the cache."""
        return self.cached[request]

    def load_s(self, request: int) -> float:
        """Seconds to load the blocks that the last call of `found` had in host memory."""
        return 0.0

    def in_use(self, request: int, goal: int) -> int:
        """Tokens of the first `goal` that other requests already use, so that they take no more room."""
        return 0

    def take(self, request: int, goal: int) -> None:
        """Admit a request with `goal` tokens to prefill."""

    def give_back(self, request: int, size: int, computed: int, used: int) -> int:
        """Release a request of `size` tokens, `computed` of them in the cache; returns how many fewer are in use."""
        return size

    def forget(self, request: int) -> None:
        """Record that a released request is done."""

    def filled(self, used: int) -> float:
        """The share of the cache that is filled when requests use `used` tokens; not known here."""
        return 0.0


class Group:
    """An attention group: its scheduler, its cache, and its prompt in progress.

    `batches` are in the order of their numbers, `turn` has them in the order in which they are filled.
    `line`: its requests in order; those from `admitted` on wait. A preempted request takes the place just before them,
    which an admitted one has left.
    `prefixes`: its prefix cache.
    `present`: waiting or admitted requests; `running`: those that decode, in all batches; `joining`: those whose prompt
    is completed in this step. `cached`: cache tokens in use or reserved.
    `prompt`: the request with the prompt in progress, -1 if none; `prefilled` of its `goal` tokens are done, and
    `parts` batches hold a chunk of it in this step.
    `loading`: admitted requests whose blocks are loaded from host memory, with their cached tokens, in the order of
    `ready_s`, the times when they are loaded.
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
    """Seconds by number of requests, filled in when first needed (-1 until then).

    `decode_s`: attention without cached tokens, which add `per_token_s` each and `per_window_token_s` inside the
    window; `beside_…`: the same beside chunks of prompts; `pass_s`: as many tokens through the model; `head_s`: as many
    rows through the head.
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
        """Empty prices for up to `most` requests."""
        self.decode_s = [-1.0] * (most + 1)
        self.per_token_s = [0.0] * (most + 1)
        self.per_window_token_s = [0.0] * (most + 1)
        self.beside_s = [0.0] * (most + 1)
        self.beside_per_token_s = [0.0] * (most + 1)
        self.beside_per_window_token_s = [0.0] * (most + 1)
        self.pass_s = [0.0] * (most + 1)
        self.head_s = [-1.0] * (most + 1)


class Replica:
    """The whole state of a run: inputs, results (`seen`), and progress; times in s.

    At most `slots` requests run in a group. `pending` is a heap of future arrival times, infinity the last; each of the
    first `followed` requests to finish brings another one.
    By request: tokens `made` before its current prefill, and the tick at which it is `due` to be done.
    Under `group_wait`: groups `asking` for a prompt, whether prompts are `held` back, and steps `waited` so far.
    Next step: `tokens` and `chunks` in all batches, whether these are only prompts (`alone`), and the time of the batch
    that sets the pace, as in `Batch`; `first_s` adds what groups do together. `left_s`: how long after the last step
    its last prompt left the pipeline.
    Fields of `Totals`: so far.
    """

    step: StepTable
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

    def __init__(self, step: StepTable, rules: Rules, load: Requests, seen: Seen) -> None:
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
