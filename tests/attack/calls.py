"""Public calls of every kind, small and quick: from many threads at once, and many in one process."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import threading
from collections.abc import Callable
from functools import cache

import shardwright
from shardwright.tools.draw.svg import svg

from .mutations import document_case
from .probe import Case, FailedError, Probe, innermost_frame
from .seeds import seed_plan, seed_text
from .sentences import sentence
from .watched import memory_bytes

THREADS = 8
NAMES = ("validate", "estimate", "autofix", "compare", "draw", "explain", "plan", "search")
# Limits on the growth of resident memory from the first quarter, when everything is loaded, to the end.
MOST_GROWTH, MOST_GROWTH_MB = 1.1, 50
_REQUEST = "Serve Llama-3.1-8B on {} H100, 2k in / 256 out, lowest latency"


def _call(kind: int, number: int) -> str:
    """The answer of a call of `kind` to input `number`, as text that is equal for equal answers."""
    small = ("dense-tp2", "moe-ep2", "dense-pp2-tp2", "dense-1")[number % 4]
    request = _REQUEST.format((1, 2, 4, 8)[number % 4])
    broken = json.dumps({**seed_plan(small), "construction": ["dp_fan_out"]})
    calls: tuple[Callable[[], str], ...] = (
        lambda: shardwright.validate(seed_text(small)).model_dump_json(),
        lambda: shardwright.estimate(seed_text(small)).model_dump_json(),
        lambda: shardwright.autofix(broken).model_dump_json(),
        lambda: shardwright.compare(seed_text(small), seed_text("dense-tp4")).model_dump_json(),
        lambda: svg(seed_plan(small)),
        lambda: shardwright.explain(
            ("PP003", "pipeline bubble", "流水线气泡", "KV cache")[number % 4]
        ).model_dump_json(),
        lambda: shardwright.plan(request).model_dump_json(),
        lambda: shardwright.search(request, top=2).model_copy(update={"seconds": 0.0}).model_dump_json(),
    )
    return calls[kind]()


@cache
def _alone(kind: int, number: int) -> str:
    return _call(kind, number)


def thread_case(seed: int, number: int) -> Case:
    """A round of calls, shuffled."""
    return Case("threads", f"{seed}:{number}")


def check_threads(case: Case, probe: Probe) -> None:
    """Make the same calls from one thread and from eight at once; each answer must be the same."""
    rng = random.Random(f"threads:{case.text}")
    # In the first round of a process the threads load everything; in the second it is loaded.
    rounds = [
        [(kind, rng.randrange(4)) for _ in range(2) for kind in rng.sample(range(len(NAMES)), len(NAMES))]
        for _ in range(THREADS)
    ]
    wrong: list[tuple[int, str, str]] = []
    answers: list[tuple[int, int, str]] = []
    barrier = threading.Barrier(THREADS)

    def work(jobs: list[tuple[int, int]]) -> None:
        barrier.wait()
        for kind, number in jobs:
            try:
                answers.append((kind, number, _call(kind, number)))
            except Exception as error:  # noqa: BLE001 - what escapes is what is looked for
                wrong.append((kind, f"{type(error).__name__} at {innermost_frame(error)}", str(error)))

    def all_at_once() -> None:
        threads = [threading.Thread(target=work, args=(jobs,), daemon=True) for jobs in rounds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    probe.call("threads", all_at_once)
    for kind, cause, detail in wrong:
        probe.wrong(NAMES[kind], f"fails in a thread: {cause}", detail)
    for kind, number, text in answers:
        with contextlib.suppress(FailedError):
            alone = probe.call(f"{NAMES[kind]} after threads", lambda kind=kind, number=number: _alone(kind, number))
            if text != alone:
                probe.wrong(NAMES[kind], "says something else in a thread", hashlib.sha256(text.encode()).hexdigest())


def memory_case(seed: int, number: int, calls: int) -> Case:
    """`calls` mixed calls in one process."""
    return Case("memory", f"{seed}:{number}:{calls}")


def check_memory(case: Case, probe: Probe) -> None:
    """Make mixed calls on ever new inputs; resident memory may not keep growing."""
    seed, number, calls = (int(part) for part in case.text.split(":"))
    marks: list[int] = []
    for at in range(calls):
        _mixed_call(seed * 1_000_003 + number * 100_003 + at, probe)
        if (at + 1) % max(1, calls // 4) == 0:
            marks.append(memory_bytes() >> 20)
    progress = " → ".join(f"{mark} MB" for mark in marks)
    probe.notes.append(f"resident after each quarter of {calls} calls: {progress}")
    if len(marks) >= 4 and marks[-1] > marks[0] * MOST_GROWTH + MOST_GROWTH_MB:
        probe.wrong("memory", "goes on growing", f"after each quarter of {calls} calls: {progress}")


def _mixed_call(number: int, probe: Probe) -> None:
    rng = random.Random(number)
    text = document_case(number, 0, in_full=True).text
    with contextlib.suppress(FailedError):
        if number % 3 == 0:
            probe.call("plan", lambda: shardwright.plan(sentence(rng)))
        elif number % 3 == 1:
            probe.call("validate", lambda: shardwright.validate(text))
            probe.call("estimate", lambda: shardwright.estimate(text))
        else:
            probe.call("autofix", lambda: shardwright.autofix(text))
