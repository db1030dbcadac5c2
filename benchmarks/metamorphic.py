"""Searches what must not get better or worse: with twice the nodes, and under a limit that the best plan misses.

    python benchmarks/metamorphic.py [--count 100] [--seed 1] [--gpus 8]

Models, hardware, loads, limits, relaxations and engines are drawn. Twice the nodes can leave half of them idle, so the
best plan on them is no worse; a limit on TTFT below that of the best plan only takes plans away, so the best that is
left is no better. Figures within half a percent are the same. The exit status is 1 where one of this did not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import islice

from msgspec.structs import replace

from shardwright.tests.search.questions import Question, drawn_questions
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError
from shardwright.tools.performance.layout import facts_of
from shardwright.tools.plan.document import Objective
from shardwright.tools.search.candidate import Candidate, SearchRequest
from shardwright.tools.search.search import search

_SAME = 0.005
_TIGHTER = 0.8


def cost(plan: Candidate, objective: Objective) -> float:
    """What the objective wants small, of a plan that has figures."""
    if objective == "latency":
        return plan.end_to_end_ms or 0.0
    rate = plan.output_tokens_per_s or 0.0
    gpus = 1 if objective == "throughput" else plan.billed_gpus or plan.gpus
    return -rate / gpus


def on_twice_the_nodes(request: SearchRequest) -> SearchRequest:
    """The same question for twice the nodes."""
    hardware = request.hardware.model_copy(update={"nodes": 2 * request.hardware.nodes})
    assert isinstance(hardware.accelerator, str)
    return replace(request, hardware=hardware, facts=facts_of(hardware, find_accelerator(hardware.accelerator)))


def under_tighter_limit(request: SearchRequest, best: Candidate) -> SearchRequest | None:
    """The same question with a mean TTFT that `best` misses; `None` where TTFT has a limit, or no figure."""
    if best.ttft_ms is None or request.workload.ttft_ms_max is not None:
        return None
    workload = request.workload.model_copy(update={"ttft_ms_max": _TIGHTER * best.ttft_ms})
    return replace(request, workload=workload)


def faults_of(question: Question) -> list[str]:
    """What did not hold of a question that has a plan; empty where all did."""
    request, objective = question.search, question.search.workload.objective
    best = search(request).best
    if best is None or not best.is_sound:
        return []
    faults: list[str] = []
    least, margin = cost(best, objective), _SAME * abs(cost(best, objective))
    more = search(on_twice_the_nodes(request)).best
    if more is None or cost(more, objective) > least + margin:
        faults.append(f"twice the nodes: {least:.6g} before, {more and cost(more, objective)} now")
    tighter = under_tighter_limit(request, best)
    tightened = None if tighter is None else search(tighter).best
    if tightened is not None and cost(tightened, objective) < least - margin:
        faults.append(f"a tighter limit: {least:.6g} before, {cost(tightened, objective):.6g} now")
    return faults


def main() -> int:
    """Print what did not hold; 1 where anything did not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=8)
    arguments = parser.parse_args()
    tally = Counter[str]()
    for question in islice(drawn_questions(arguments.seed, arguments.gpus), arguments.count):
        try:
            faults = faults_of(question)
        except InputError:
            tally["refused"] += 1
            continue
        tally["held" if not faults else "did not hold"] += 1
        for fault in faults:
            print(f"{question.name}, {question.search.workload.objective}: {fault}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in sorted(tally.items())))
    return 1 if tally["did not hold"] else 0


if __name__ == "__main__":
    sys.exit(main())
