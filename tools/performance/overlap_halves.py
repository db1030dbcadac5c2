"""The two halves of a batch that overlap: what each runs in a layer, and what simultaneous communication costs it.

A half runs the same operations as the whole batch, timed at its own number of tokens. Here they are cut where the half
must wait for a collective; `overlap.py` schedules them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..calibration.chip import ASSUMED_MULTIPROCESSORS
from ..plan.document import TWO_BATCH, Phase
from .clock import Roofline
from .operation import COLLECTIVES, Operation, TokenLoad
from .programs.work import Work
from .setting import Setting

# Multiprocessors that engines keep for collectives beside the kernels of a prefill: 20 of an H800's 132 saturate its
# links (arXiv 2412.19437, section 3.2.2; also the default of DeepEP's normal kernels). Decode keeps none for them, but
# posts and collects the copies of an exchange in kernels (deepseek-ai/DeepEP, README of v1.2.1: low-latency kernels).
COMMUNICATION_MULTIPROCESSORS = 20
# A wait for the end of the layer before.
BEFORE = -1


def is_two_batch(setting: Setting) -> bool:
    """Whether the plan chooses two-batch overlap."""
    return setting.serving.overlap in TWO_BATCH


def split_load(load: TokenLoad) -> tuple[TokenLoad, TokenLoad] | None:
    """The two halves of a pass, by sequences, else by new tokens of its only one; `None` if it cannot be halved."""
    if load.sequences > 1:
        second = load.sequences // 2
        return replace(load, sequences=load.sequences - second), replace(load, sequences=second)
    if load.new_tokens > 1:
        second = load.new_tokens // 2
        first = load.new_tokens - second
        return replace(load, new_tokens=first), replace(load, new_tokens=second, context=load.context + first)
    return None


def overlaps_from_tokens(setting: Setting, phase: Phase) -> int:
    """Tokens per rank from which on the engine halves a pass; 0 (every pass) if the plan names no engine."""
    serving = setting.serving
    if serving.engine is None:
        return 0
    words = () if serving.flags is None else (*serving.flags.of("both"), *serving.flags.of(phase))
    return setting.engine.facts.overlaps_from_tokens(words, is_decode=phase == "decode")


def halves_of(setting: Setting, load: TokenLoad) -> tuple[TokenLoad, TokenLoad] | None:
    """The overlapping halves of a pass; `None` if the plan or the engine does not halve it."""
    phase: Phase = "prefill" if load.new_tokens > 1 else "decode"
    if not is_two_batch(setting) or load.sequences * load.new_tokens < overlaps_from_tokens(setting, phase):
        return None
    return split_load(load)


class Contention(Struct, frozen=True):
    """What simultaneous communication costs the kernels of a pass.

    `share` of the multiprocessors is reserved for collectives: kernels get the rest of the arithmetic, and the whole
    memory bandwidth, which fewer multiprocessors also saturate. If `unpacks`, an exchange of experts has its own
    kernels on the compute stream. The choice depends on the phase, not on which collective is faster: a faster link
    must not change it.
    """

    share: float
    unpacks: bool
    roofline: Roofline

    def applied(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """`operations` of one half, timed beside collectives, with the kernels of expert exchanges added."""
        return tuple(self._unpacked(operations)) if self.unpacks else operations

    def _unpacked(self, operations: Sequence[Operation]) -> Iterator[Operation]:
        """Wrap each exchange in the kernels that post and collect its copies: only the transfer between can be hidden.

        They read and write what is sent once on either side, and count as communication, though not on the links.
        """
        renamed: dict[str, str] = {}
        for original in operations:
            operation = original._replace(inputs=tuple(renamed.get(name, name) for name in original.inputs))
            if operation.op != "AllToAll" or operation.owner != "moe" or operation.seconds <= 0.0:
                yield operation
                continue
            moved_bytes = 2.0 * operation.sent_bytes
            work = self.roofline.time(Work(0.0, moved_bytes, 0.0, operation.dtype)).seconds
            seconds = min(work, operation.seconds / 3.0)
            send, receive = f"{operation.name}.send", f"{operation.name}.receive"
            kernel = operation._replace(
                op="Routing", where="stage", seconds=seconds, moved_bytes=moved_bytes,
                sent_bytes=0.0,
            )  # fmt: skip
            yield kernel._replace(name=send, output_shape=operation.input_shape)
            yield operation._replace(inputs=(send,), seconds=operation.seconds - 2.0 * seconds)
            yield kernel._replace(name=receive, input_shape=operation.output_shape, inputs=(operation.name,))
            renamed[operation.name] = receive


def contention(setting: Setting, load: TokenLoad) -> Contention:
    """How communication and computation slow each other in a pass of `load`."""
    is_prefill = load.new_tokens > 1
    multiprocessors = setting.hardware.accelerator.multiprocessors or ASSUMED_MULTIPROCESSORS
    share = min(0.5, COMMUNICATION_MULTIPROCESSORS / multiprocessors) if is_prefill else 0.0
    return Contention(share, unpacks=not is_prefill, roofline=setting.clock.roofline)


class Run(Struct, frozen=True):
    """Consecutive operations of one half on one resource. `waits`: runs of the same half and layer, or `BEFORE`."""

    operations: tuple[Operation, ...]
    seconds: float
    on_links: bool
    waits: tuple[int, ...]


class HalfLayer(Struct, frozen=True):
    """One layer of one half. A beat is the runs up to a wait for a collective; `ends` are its last runs."""

    runs: tuple[Run, ...]
    beats: tuple[tuple[int, ...], ...]
    ends: tuple[int, ...]

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Its operations in order."""
        return tuple(operation for run in self.runs for operation in run.operations)

    @property
    def ends_on_links(self) -> bool:
        """Whether the next layer has a collective to wait for."""
        return any(self.runs[end].on_links for end in self.ends)


class HalvedLayer(Struct, frozen=True):
    """One layer of both halves."""

    halves: tuple[HalfLayer, HalfLayer]


def collectives_of(operations: Iterable[Operation]) -> frozenset[str]:
    """The names of the operations that keep the links busy."""
    return frozenset(o.name for o in operations if o.op in COLLECTIVES and o.seconds > 0.0)


def halve_layer(first: Sequence[Operation], second: Sequence[Operation], contention: Contention) -> HalvedLayer:
    """A layer from the operations of its halves, with the compute-stream kernels of expert exchanges."""
    links = collectives_of((*first, *second))
    if not links:
        return HalvedLayer((_half_layer(first, links), _half_layer(second, links)))
    return HalvedLayer((_half_layer(contention.applied(first), links), _half_layer(contention.applied(second), links)))


def _half_layer(operations: Sequence[Operation], links: frozenset[str]) -> HalfLayer:
    sent = {name for operation in operations if operation.name in links for name in operation.inputs}
    read = {name for operation in operations for name in operation.inputs}
    runs: list[list[Operation]] = []
    waits: list[set[int]] = []
    beats: list[list[int]] = [[]]
    run_of: dict[str, int] = {}
    on_links: list[bool] = []
    is_open = False
    for operation in operations:
        is_link = operation.name in links
        needs = {run_of[name] for name in operation.inputs} or {BEFORE}
        if not is_link and beats[-1] and any(need != BEFORE and on_links[need] for need in needs):
            beats.append([])
            is_open = False
        if is_link or not is_open:
            beats[-1].append(len(runs))
            runs.append([])
            waits.append(set())
            on_links.append(is_link)
            # A collective is sent while the compute stream goes on with a run of its own.
            is_open = not is_link
        number = len(runs) - 1
        runs[number].append(operation)
        run_of[operation.name] = number
        # On the compute stream the order of runs implies the other waits.
        waits[number] |= {n for n in needs if n != number and (is_link or n == BEFORE or on_links[n])}
        is_open = is_open and operation.name not in sent
    timed_runs = tuple(
        Run(tuple(run), sum(float(o.seconds) for o in run), on_link, tuple(sorted(wait)))
        for run, on_link, wait in zip(runs, on_links, waits, strict=True)
    )
    ends = {run_of[operation.name] for operation in operations if operation.name not in read}
    return HalfLayer(timed_runs, tuple(tuple(beat) for beat in beats), tuple(sorted(ends)))
