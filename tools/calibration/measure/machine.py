"""The accelerator that is measured, reached through PyTorch, and how everything is timed on it.

Kernels are replayed as a CUDA graph if they can be captured, timed with CUDA events, on buffers that rotate through
more than twice the last-level cache, so that weights and cached keys come from memory as in serving; the figure is the
median of several replays. Without an accelerator the host's cores are timed, to try it out. PyTorch is required.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from statistics import median
from typing import Any, TypeVar

from msgspec import Struct

from ...catalog.hardware import find_accelerator
from ...errors import InputError
from .table import KernelRow, Mode, Skipped, TableName

Call = Callable[[], object]

_WARM_UP_CALLS = 3
# One timed replay lasts at least this long: an event's clock ticks in half microseconds.
_REPLAY_S = 500e-6
_MOST_CALLS = 4096
# Size of all rotating buffers over the cache, so that a copy is evicted before its next use.
_CACHES = 2.0
# Hosts are only timed to try things out: operands beyond the cache of a core are cold enough.
_HOST_CACHE_BYTES = 4e6
# The largest last-level cache of any accelerator (MI300's Infinity Cache, which ROCm's figure of the L2 leaves out).
_LARGEST_CACHE_BYTES = 256e6
_MEMORY_SHARE = 0.4
_HOST_MEMORY_BYTES = 2e9
_NO_TORCH = "measure needs PyTorch: pip install 'shardwright[measure]'"


def load_torch() -> Any:
    """The module `torch`. Raises InputError: it is not installed (names the extra), or cannot be loaded."""
    try:
        return import_module("torch")
    except ImportError:
        raise InputError(_NO_TORCH) from None
    except OSError as error:  # a library of the device's that PyTorch was built for
        raise InputError(f"PyTorch cannot be loaded: {str(error).splitlines()[0]}") from None


class Effort(Struct, frozen=True):
    """How much is measured: `replays` of each shape, and whether the short grids are used."""

    replays: int
    is_quick: bool


FULL = Effort(replays=15, is_quick=False)
QUICK = Effort(replays=5, is_quick=True)
_Grid = TypeVar("_Grid")


class Machine(Struct, frozen=True, dict=True):
    """A PyTorch device (`kind`: `cuda`, also for ROCm, or `cpu`), and its name in rows (`gpu`)."""

    torch: Any
    kind: str
    device_name: str
    gpu: str
    count: int

    @property
    def is_host(self) -> bool:
        """Whether it is the host, not an accelerator."""
        return self.kind == "cpu"

    @property
    def src(self) -> str:
        """What ran the kernels, for the tables' column `src`."""
        return f"torch-{self.torch.__version__}"

    @cached_property
    def cache_bytes(self) -> float:
        """Bytes of the last-level cache."""
        if self.is_host:
            return _HOST_CACHE_BYTES
        stated = float(getattr(self.torch.cuda.get_device_properties(0), "L2_cache_size", 0))
        return _LARGEST_CACHE_BYTES if self.is_rocm else stated or _LARGEST_CACHE_BYTES

    @property
    def is_rocm(self) -> bool:
        """Whether PyTorch reaches the device through ROCm."""
        return self.torch.version.hip is not None

    @property
    def free_bytes(self) -> float:
        """Bytes that the operands of one shape may take."""
        if self.is_host:
            return _HOST_MEMORY_BYTES
        # Memory that PyTorch caches counts as taken until it is released.
        self.torch.cuda.empty_cache()
        return _MEMORY_SHARE * float(self.torch.cuda.mem_get_info()[0])

    @cached_property
    def has_fp8_units(self) -> bool:
        """Whether it multiplies FP8 in PyTorch's format `float8_e4m3fn` (Ada, Hopper and later)."""
        if self.is_host or self.is_rocm:
            return False
        return tuple(self.torch.cuda.get_device_capability(0)) >= (8, 9)

    def copies(self, operand_bytes: float) -> int:
        """The number of sets of operands to rotate through; 0 if they do not fit into memory."""
        free_bytes = self.free_bytes
        wanted = max(1, math.ceil(_CACHES * self.cache_bytes / max(1.0, operand_bytes)))
        return int(min(wanted, _MOST_CALLS, free_bytes // max(1.0, operand_bytes)))

    def grid(self, effort: Effort, full: _Grid, quick: _Grid, host: _Grid) -> _Grid:
        """The grid to measure with `effort`; on a host always `host`."""
        return host if self.is_host else quick if effort.is_quick else full

    def random(self, *shape: int) -> Any:
        """A tensor of normal random numbers in bf16 on the device."""
        return self.torch.randn(*shape, device=self.kind, dtype=self.torch.bfloat16)

    def synchronize(self) -> None:
        """Wait until the device is idle."""
        if not self.is_host:
            self.torch.cuda.synchronize()


def find_machine(gpu: str | None = None) -> Machine:
    """The accelerator of this machine, or its host if there is none; `gpu` overrides the accelerator's name.

    Raises InputError: PyTorch is missing, or `gpu` is not in the catalogue.
    """
    torch = load_torch()
    stated = None if gpu is None else find_accelerator(gpu).id
    if not torch.cuda.is_available():
        return Machine(torch, "cpu", "host", "cpu", 1)
    name = str(torch.cuda.get_device_name(0))
    return Machine(torch, "cuda", name, stated or _catalogue_id(name), int(torch.cuda.device_count()))


def _catalogue_id(device_name: str) -> str:
    """The catalogue's id of a device; its own name if it is not in the catalogue."""
    try:
        return find_accelerator(device_name).id
    except InputError:
        return device_name


class Timed(Struct, frozen=True):
    """Microseconds of one call (median), and how it was launched."""

    us: float
    mode: Mode


class Subject(Struct, frozen=True):
    """A row to measure: its table and shape, and the bytes of one set of operands."""

    table: TableName
    shape: Mapping[str, str]
    operand_bytes: float


def timed_row(
    machine: Machine, effort: Effort, subject: Subject, make_calls: Callable[[int], Sequence[Call]]
) -> KernelRow | Skipped:
    """The measured row of `subject`, or why there is none; `make_calls(copies)` makes calls on as many operand sets."""
    try:
        copies = machine.copies(subject.operand_bytes)
        if copies == 0:
            return Skipped(subject.table, "operands that do not fit into memory")
        timed = time_calls(machine, make_calls(copies), effort)
    except RuntimeError as error:  # how PyTorch says that a kernel refuses its operands, or that memory is out
        return Skipped(subject.table, line_of(error))
    return KernelRow(subject.table, machine.gpu, machine.src, subject.shape, timed.us, timed.mode)


def line_of(error: Exception, place: int = 0) -> str:
    """A line of an error's text (-1: the last, below a traceback), of bounded length."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[place][:200] if lines else type(error).__name__


def time_calls(machine: Machine, calls: Sequence[Call], effort: Effort) -> Timed:
    """The time of one of `calls`, which do the same work on different operands, one after another.

    Raises RuntimeError: the kernel refuses the operands (as PyTorch raises it).
    """
    for call in calls[:_WARM_UP_CALLS]:
        call()
    machine.synchronize()
    rounds = _rounds(machine, calls)
    if machine.is_host:
        return Timed(_median_us(lambda: _host_s(calls, rounds), len(calls) * rounds, effort), "host")
    replay = _captured(machine, calls, rounds)
    mode: Mode = "eager" if replay is None else "graph"
    run = replay or (lambda: _run(calls, rounds))
    run()
    return Timed(_median_us(lambda: _device_s(machine, run), len(calls) * rounds, effort), mode)


def _median_us(replay_s: Callable[[], float], calls: int, effort: Effort) -> float:
    return median(replay_s() for _ in range(effort.replays)) / calls * 1e6


def _run(calls: Sequence[Call], rounds: int) -> None:
    for _ in range(rounds):
        for call in calls:
            call()


def _host_s(calls: Sequence[Call], rounds: int) -> float:
    start = time.perf_counter()
    _run(calls, rounds)
    return time.perf_counter() - start


def _rounds(machine: Machine, calls: Sequence[Call]) -> int:
    """How often all calls are repeated in one timed replay, so that it lasts at least `_REPLAY_S`."""
    start = time.perf_counter()
    _run(calls, 1)
    machine.synchronize()
    seconds = max(1e-7, time.perf_counter() - start)
    return max(1, min(math.ceil(_REPLAY_S / seconds), _MOST_CALLS // len(calls)))


def _captured(machine: Machine, calls: Sequence[Call], rounds: int) -> Call | None:
    """A replay of the calls as one CUDA graph; `None` if they cannot be captured."""
    torch = machine.torch
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            _run(calls, rounds)
    except RuntimeError:
        machine.synchronize()
        return None
    return graph.replay


def _device_s(machine: Machine, run: Call) -> float:
    torch = machine.torch
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    machine.synchronize()
    return float(start.elapsed_time(end)) * 1e-3
