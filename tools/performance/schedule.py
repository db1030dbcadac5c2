"""From stage passes to the time of a phase, with pipelined chunks, microbatches and bubbles.

The parts of a phase are averages over its stages: compute, memory, communication, and the bubble in which a stage waits
for the others. One stage has no bubble. Host time between passes counts as compute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce

from msgspec import Struct

from ..calibration.forms.elementary import Number, larger
from ..checkpoint import checkpoint
from ..plan.document import Phase
from ..plan.layout import PhaseLayout
from ..plan.performance import ConstantsOrigin, PathStep, TimeParts
from .layout import LoadedLayout
from .operation import Kind, Resource, TokenLoad
from .pass_loads import dealt_out, microbatches, prompts_of_pass
from .setting import Setting
from .stage_shape import KINDS, Piece, kind_seconds, pieces_seconds
from .timing import StageTimer


class Pass(Struct, frozen=True):
    """One pass through one stage: its pieces, and its wait for the host (in some engines only in the first stage)."""

    pieces: tuple[Piece, ...]
    host_seconds: Number

    @property
    def seconds(self) -> Number:
        """Seconds of the pass."""
        return pieces_seconds(self.pieces) + self.host_seconds

    def kind_seconds(self, kind: Kind) -> float:
        """Seconds of one kind; host time counts as compute."""
        return kind_seconds(self.pieces, kind) + (float(self.host_seconds) if kind == "compute" else 0.0)


class PhaseTime(Struct, frozen=True):
    """Time of one phase in seconds: in all, by kind, and the passes on the critical path.

    `waiting_seconds` end the path where a step waits for the other microbatches. `loads` are the timed loads: one for
    each chunk, or one that stands for each of `microbatches`.
    """

    phase: Phase
    seconds: float
    kinds: dict[Kind, float]
    cells: tuple[tuple[int, Pass], ...]
    waiting_seconds: float = 0.0
    loads: tuple[TokenLoad, ...] = ()
    microbatches: int = 1

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """The critical path, each operation of each kind of layer once."""
        steps = _steps(self.phase, self.cells)
        if self.waiting_seconds > 0.0:
            wait_ms = self.waiting_seconds * 1e3
            steps = (*steps, PathStep(node=f"{self.phase}.wait", ms=wait_ms, kind="bubble", resource="pipeline"))
        return steps

    @property
    def host_seconds(self) -> float:
        """Host time on the critical path."""
        return sum(float(cell.host_seconds) for _, cell in self.cells)

    @property
    def parts(self) -> TimeParts:
        """Compute, memory, communication and bubble in ms; they add up to `seconds`."""
        bubble = self.seconds - sum(self.kinds.values())
        return TimeParts(
            compute_ms=self.kinds["compute"] * 1e3,
            memory_ms=self.kinds["memory"] * 1e3,
            communication_ms=self.kinds["communication"] * 1e3,
            # A remainder from rounding is not a bubble.
            bubble_ms=bubble * 1e3 if bubble > 1e-9 * self.seconds else 0.0,
        )


def host_seconds(setting: Setting, load: TokenLoad, devices_s: Number) -> Number:
    """Seconds of scheduling, sampling and output handling that a pass of `devices_s` does not hide.

    Fitted to end-to-end results of the engine. Each attention group has its own scheduler.
    """
    constants = setting.engine.entry.constants
    prefill_s = constants.host_prefill_ms * 1e-3 if load.new_tokens > 1 else 0.0
    step_s = constants.host_step_ms * 1e-3 + constants.host_sequence_us * 1e-6 * load.sequences
    return prefill_s + (larger(0.0, step_s - devices_s) if setting.hides_host else step_s)


def passes_of_host(setting: Setting, stages: int) -> int:
    """In how many of the `stages` a pass waits for the host: all, or only the first."""
    return stages if setting.engine.entry.scheduler.host_per_stage and not setting.hides_host else 1


class PhaseTimer:
    """Times a phase of one replica."""

    def __init__(self, setting: Setting, phase: PhaseLayout, stages: tuple[StageTimer, ...] | None = None) -> None:
        self.setting = setting
        self.phase = phase
        self.stages = stages or tuple(StageTimer(setting, phase, stage) for stage in phase.stages)

    def under(self, setting: Setting, free: str | None = None) -> PhaseTimer:
        """A timer of the same devices under `setting`, with the operation named `free` at no cost."""
        stages = (StageTimer(setting, timer.phase, timer.stage, shape=timer.shape, free=free) for timer in self.stages)
        return PhaseTimer(setting, self.phase, tuple(stages))

    def stage_pass(self, index: int, load: TokenLoad, *, with_head: bool = True) -> Pass:
        """The pass of `load` through stage `index`, the transfer to the next one included."""
        checkpoint()
        following = self.stages[index + 1] if index + 1 < len(self.stages) else None
        pieces = self.stages[index].pass_pieces(load, following, with_head=with_head)
        is_prepared = index < passes_of_host(self.setting, len(self.stages))
        return Pass(pieces, host_seconds(self.setting, load, pieces_seconds(pieces)) if is_prepared else 0.0)

    def prefill(self, loads: Sequence[TokenLoad]) -> PhaseTime:
        """One prompt (or several side by side) in the chunks `loads`: chunk n of a stage follows its chunk n-1.

        Chunks of one prompt pipeline over the stages; the makespan counts fill and drain.
        """
        count = len(self.stages)
        passes = [
            [self.stage_pass(stage, load, with_head=load is loads[-1]) for load in loads] for stage in range(count)
        ]
        seconds = [[float(cell.seconds) for cell in row] for row in passes]
        chain = list(_critical_cells(seconds))
        total = sum(seconds[stage][chunk] for stage, chunk in chain)
        cells = tuple((stage, passes[stage][chunk]) for stage, chunk in chain)
        kinds: dict[Kind, float] = {
            kind: sum(cell.kind_seconds(kind) for row in passes for cell in row) / count for kind in KINDS
        }
        return PhaseTime("prefill", total, kinds, cells, loads=tuple(loads))

    def decode(self, load: TokenLoad, microbatches: int) -> PhaseTime:
        """One decode step in which `microbatches` batches of `load` go round the stages.

        A batch's next token needs its last one, so a step takes the sum of the stages, or longer where the batches keep
        the slowest stage busy. A single batch gains nothing from stages.
        """
        count = len(self.stages)
        passes = [self.stage_pass(stage, load) for stage in range(count)]
        stages = [float(cell.seconds) for cell in passes]
        seconds = float(step_seconds(stages, microbatches))
        kinds: dict[Kind, float] = {
            kind: microbatches * sum(cell.kind_seconds(kind) for cell in passes) / count for kind in KINDS
        }
        cells = tuple(enumerate(passes))
        waiting = seconds - sum(stages)
        return PhaseTime("decode", seconds, kinds, cells, waiting, (load,), microbatches)

    def decode_seconds(self, load: TokenLoad, microbatches: Number) -> Number:
        """Only the seconds of `decode`, for one load or an array of loads."""
        return step_seconds(pass_seconds(self, load), microbatches)

    def prefill_seconds(self, loads: Sequence[TokenLoad]) -> float:
        """Only the seconds of `prefill`."""
        passes = [pass_seconds(self, load, with_head=load is loads[-1]) for load in loads]
        rows = list(zip(*passes, strict=True))
        return sum(rows[stage][chunk] for stage, chunk in _critical_cells(rows))

    def seconds_again(self, time: PhaseTime) -> float:
        """Seconds of the passes of `time` under this timer."""
        if time.phase == "prefill":
            return self.prefill_seconds(time.loads)
        return float(self.decode_seconds(time.loads[0], time.microbatches))


def pass_seconds(timer: PhaseTimer, load: TokenLoad, *, with_head: bool = True) -> list[Number]:
    """Seconds of a pass of `load` in each stage; like stages are timed once."""
    known: dict[object, Number] = {}
    seconds: list[Number] = []
    for index, stage in enumerate(timer.stages):
        following = timer.stages[index + 1] if index + 1 < len(timer.stages) else None
        same = (index == 0, id(stage), id(following))
        if same not in known:
            # The first and the last stage are like no other, and few pipelines have more.
            alike = (index == 0, stage.likeness(following)) if len(timer.stages) > 3 else same
            if alike not in known:
                known[alike] = timer.stage_pass(index, load, with_head=with_head).seconds
            known[same] = known[alike]
        seconds.append(known[same])
    return seconds


def step_seconds(stages: Sequence[Number], microbatches: Number) -> Number:
    """Seconds until each of `microbatches` batches has passed all stages once; `stages` has the seconds of each."""
    return larger(sum(stages), microbatches * reduce(larger, stages))


def _critical_cells(seconds: Sequence[Sequence[float]]) -> Iterator[tuple[int, int]]:
    """The critical path through stages x chunks, where a cell waits for the one above and the one to its left."""
    stages, chunks = len(seconds), len(seconds[0])
    finish = [[0.0] * chunks for _ in range(stages)]
    for stage in range(stages):
        for chunk in range(chunks):
            above = finish[stage - 1][chunk] if stage else 0.0
            left = finish[stage][chunk - 1] if chunk else 0.0
            finish[stage][chunk] = max(above, left) + seconds[stage][chunk]
    cells: list[tuple[int, int]] = []
    stage, chunk = stages - 1, chunks - 1
    while True:
        cells.append((stage, chunk))
        if stage == 0 and chunk == 0:
            break
        above = finish[stage - 1][chunk] if stage else -1.0
        left = finish[stage][chunk - 1] if chunk else -1.0
        stage, chunk = (stage - 1, chunk) if above >= left else (stage, chunk - 1)
    return reversed(cells)


def _steps(phase: str, cells: Sequence[tuple[int, Pass]]) -> tuple[PathStep, ...]:
    """The critical path: each operation of each kind of layer once, with the time of all its repetitions."""
    seconds: dict[str, float] = {}
    kinds: dict[str, tuple[Kind, Resource, ConstantsOrigin | None]] = {}
    for stage, cell in cells:
        host = f"{phase}.s{stage}.host"
        if cell.host_seconds:
            seconds[host] = seconds.get(host, 0.0) + float(cell.host_seconds)
            kinds[host] = "compute", "host", None
        for piece in cell.pieces:
            prefix = f"{phase}.s{stage}.{piece.name}."
            for operation in piece.path.operations:
                name = prefix + operation.name
                seconds[name] = seconds.get(name, 0.0) + float(operation.seconds) * piece.count
                kinds[name] = operation.kind, operation.resource, operation.origin.kind
    return tuple(
        PathStep(node=name, ms=total * 1e3, kind=kind, resource=resource, constants=constants)
        for name, total in seconds.items()
        if total > 0.0
        for kind, resource, constants in (kinds[name],)
    )


def decode_load(layout: LoadedLayout, timer: PhaseTimer, requests: int) -> tuple[TokenLoad, int]:
    """The load of one microbatch of a decode step with `requests` on the replica, and the number of microbatches.

    Attention groups share the requests; by default there are as many microbatches as stages. In disaggregated plans
    prompts reach a decode replica one by one. Contexts have the mean length of a request over its decode steps.
    """
    setting = layout.setting
    groups = min(timer.phase.attention_groups, requests)
    together = 1 if layout.is_disaggregated else prompts_of_pass(setting, timer.phase.attention_groups)
    batch = math.ceil(requests / groups)
    sequences, among = dealt_out(batch, microbatches(setting, len(timer.stages)), together)
    return TokenLoad(sequences, 1, setting.mean_decode_context, groups), int(among)


def decode_time(layout: LoadedLayout, timer: PhaseTimer, requests: int) -> PhaseTime:
    """One decode step of a replica with `requests` in flight."""
    return timer.decode(*decode_load(layout, timer, requests))
