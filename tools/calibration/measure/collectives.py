"""Collectives between the accelerators of this machine: one process each, NCCL (RCCL), and Gloo between host processes.

Every operation is timed call by call over a run of them, behind a barrier; the slowest rank counts. Bytes are those of
nccl-tests: the buffer of a rank for all_reduce, the whole buffer (ranks x shard) for all_gather, reduce_scatter and
all_to_all, the message for send_recv. It measures one node.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from msgspec import Struct

from .machine import Effort, Machine, line_of, load_torch
from .table import KernelRow, Skipped

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
_SIZES = tuple(2**power for power in range(10, 29))
_QUICK_SIZES = tuple(4**power for power in range(5, 15))
_HOST_SIZES = (4096, 65536)
_CALLS = 20
_ELEMENT_BYTES = 2
_TIMEOUT = timedelta(seconds=120)


class _Task(Struct, frozen=True):
    """The arguments of each process."""

    ranks: int
    sizes: tuple[int, ...]
    replays: int
    is_host: bool
    folder: str


def grid(machine: Machine, effort: Effort) -> tuple[int, ...]:
    """Sizes in bytes to time for each operation."""
    return machine.grid(effort, _SIZES, _QUICK_SIZES, _HOST_SIZES)


def measure_collectives(machine: Machine, effort: Effort) -> Iterator[KernelRow | Skipped]:
    """A row for each operation, size and number of ranks (powers of two up to all accelerators)."""
    most, sizes, ranks = 2 if machine.is_host else machine.count, grid(machine, effort), 2
    impl = "gloo" if machine.is_host else "rccl" if machine.is_rocm else "nccl"
    while ranks <= most:
        with tempfile.TemporaryDirectory(prefix="shardwright-") as folder:
            task = _Task(ranks, sizes, effort.replays, machine.is_host, folder)
            processes = machine.torch.multiprocessing
            try:
                processes.spawn(_process, args=(task,), nprocs=ranks, join=True)
            except (processes.ProcessException, RuntimeError) as error:
                yield Skipped("collectives", f"{ranks} ranks: {line_of(error, -1)}")
                return
            times: list[tuple[str, int, float]] = json.loads(Path(folder, "times.json").read_text(encoding="utf-8"))
        for op, size, us in times:
            shape = {"impl": impl, "op": op, "ranks": str(ranks), "nodes": "1", "bytes": str(size)}
            yield KernelRow("collectives", machine.gpu, machine.src, shape, us, "host" if machine.is_host else "eager")
        ranks *= 2


def _process(rank: int, task: _Task) -> None:
    """Run one rank, which times everything in step with the others; rank 0 writes the times to a file."""
    torch = load_torch()
    distributed = torch.distributed
    if not task.is_host:
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        "gloo" if task.is_host else "nccl",
        init_method=Path(task.folder, "meeting").resolve().as_uri(),
        rank=rank,
        world_size=task.ranks,
        timeout=_TIMEOUT,
    )
    times: list[tuple[str, int, float]] = []
    # A message passes between two ranks, so it is only timed with two.
    for op in OPERATIONS if task.ranks == 2 else OPERATIONS[:-1]:
        for size in task.sizes:
            call = _operation(torch, op, size, rank, task)
            times.append((op, size, _slowest_us(torch, call, task)))
    if rank == 0:
        Path(task.folder, "times.json").write_text(json.dumps(times), encoding="utf-8")
    distributed.barrier()
    distributed.destroy_process_group()


def _operation(torch: Any, op: str, size: int, rank: int, task: _Task) -> Callable[[], object]:
    """One call of `op` on buffers of `size` bytes."""
    distributed, device = torch.distributed, "cpu" if task.is_host else f"cuda:{rank}"
    elements = max(task.ranks, size // _ELEMENT_BYTES // task.ranks * task.ranks)
    whole = torch.ones(elements, device=device, dtype=torch.bfloat16)
    part = torch.ones(elements // task.ranks, device=device, dtype=torch.bfloat16)
    if op == "all_reduce":
        return lambda: distributed.all_reduce(whole)
    if op == "all_gather":
        gather = _either(distributed, "all_gather_single", "all_gather_into_tensor")
        return lambda: gather(whole, part)
    if op == "reduce_scatter":
        scatter = _either(distributed, "reduce_scatter_single", "reduce_scatter_tensor")
        return lambda: scatter(part, whole)
    if op == "all_to_all":
        received = torch.empty_like(whole)
        return lambda: distributed.all_to_all_single(received, whole)
    return (lambda: distributed.send(whole, 1)) if rank == 0 else (lambda: distributed.recv(whole, 0))


def _either(distributed: Any, new: str, old: str) -> Any:
    """A function under its current name, or its name before version 2.13."""
    return getattr(distributed, new, None) or getattr(distributed, old)


def _slowest_us(torch: Any, call: Callable[[], object], task: _Task) -> float:
    """Microseconds of one call on the slowest rank: median over replays of runs of calls."""
    for _ in range(3):
        call()
    runs_s: list[float] = []
    for _ in range(task.replays):
        torch.distributed.barrier()
        seconds = torch.tensor([_run_s(torch, call, task.is_host)], device="cpu" if task.is_host else "cuda")
        torch.distributed.all_reduce(seconds, op=torch.distributed.ReduceOp.MAX)
        runs_s.append(float(seconds.item()))
    return median(runs_s) / _CALLS * 1e6


def _run_s(torch: Any, call: Callable[[], object], is_host: bool) -> float:
    if is_host:
        start = perf_counter()
        for _ in range(_CALLS):
            call()
        return perf_counter() - start
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(_CALLS):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3
