"""Runs the agent with a model that works against it, and checks every plan that it returns.

    python benchmarks/hostile_model.py [--runs 1000] [--seed 1] [--requests 40] [--gpus 64]

What the model says is drawn: documents that keep to the schema and to nothing else, plans that were tampered with,
other models' plans, relaxations that nobody allowed, degrees beyond all hardware, instructions for ids; by text, as
documents, as strategies, by handles, many at once. Every plan is judged by a fresh process of `shardwright validate`
and against the request. The exit status is 1 where one is not valid or answers another question, a run ends in an
exception, or goes beyond its bounds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from shardwright.agent.loop.question import Question, ask
from shardwright.agent.stated.request import intent_of
from shardwright.tests.agent.loop.hostile_runs import HostileRun, hostile_run, refused_afresh
from shardwright.tools.errors import InputError

REQUESTS = Path(__file__).parents[1] / "tests" / "cases" / "requests.json"
# Plans that one fresh process judges.
BATCH = 250


def questions(count: int, seed: int, most_gpus: int) -> list[tuple[str, Question]]:
    """So many requests of the tests' table that have a plan on at most so many GPUs, drawn."""
    rows = json.loads(REQUESTS.read_text(encoding="utf-8"))
    askable = _askable(random.Random(seed).sample(rows, len(rows)))
    return list(islice((pair for pair in askable if pair[1].request.facts.gpus <= most_gpus), count))


def _askable(rows: list[dict[str, str]]) -> Iterator[tuple[str, Question]]:
    for row in rows:
        try:
            question = ask(intent_of(row["text"]))
        except InputError:  # the table has requests that are refused
            continue
        if isinstance(question, Question):
            yield row["id"], question


def share_lines(title: str, counted: Counter[str]) -> Iterator[str]:
    """Each count with its share, the largest first."""
    total = counted.total()
    yield f"{title}: {total:,}"
    for name, count in counted.most_common():
        yield f"  {name:32} {count:6,}  {count / total:6.1%}"


def wrong_of(runs: list[tuple[str, HostileRun]]) -> Iterator[str]:
    """What did not hold, run by run."""
    for request, run in runs:
        yield from (f"{run.name}, {request}: {fault}" for fault in run.faults)
    for start in range(0, len(runs), BATCH):
        batch = runs[start : start + BATCH]
        for place in refused_afresh([run.plan for _, run in batch]):
            request, run = batch[place]
            yield f"{run.name}, {request}: {run.status}, but validate refuses the plan"


def main() -> int:
    """Print the shares; 1 where anything did not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next run has the next")
    parser.add_argument("--requests", type=int, default=40, help="how many different requests")
    parser.add_argument("--gpus", type=int, default=64, help="the largest hardware of a request")
    arguments = parser.parse_args()
    drawn = questions(arguments.requests, arguments.seed, arguments.gpus)
    runs: list[tuple[str, HostileRun]] = []
    wrong: list[str] = []
    started = time.monotonic()
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        request, question = drawn[seed % len(drawn)]
        try:
            runs.append((request, hostile_run(seed, question)))
        except Exception:  # noqa: BLE001 - that nothing a model says raises is what is looked at
            wrong.append(f"seed {seed}, {request}: {traceback.format_exc()}")
    wrong += wrong_of(runs)
    ended = Counter(run.status for _, run in runs)
    print("\n".join(share_lines("runs, by whose plan was returned", Counter(run.share for _, run in runs))))
    print("\n".join(share_lines("runs, by how they ended", Counter(ended))))
    print("\n".join(share_lines("proposals", Counter(name for _, run in runs for name in run.verdicts))))
    times = [run.seconds for _, run in runs]
    print(f"{len(drawn)} requests, {time.monotonic() - started:.0f} s; a run takes {statistics.median(times):.2f} s "
          f"of the processor (median), {max(times):.1f} s (longest)")  # fmt: skip
    print(f"{len(wrong)} of {arguments.runs:,} runs went wrong")
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
