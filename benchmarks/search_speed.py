"""Times searches of whole spaces, each in a process of its own on one core, with how many strategies there were.

    python benchmarks/search_speed.py [--only TEXT] [--profile]

Cold is the first search of the process with its imports and data files, warm the best of two more of the same question
(nothing that was timed is carried over), core the seconds of a core that this took: what counts on a machine that does
other work beside. Strategies are all legal ones, those that a bound prunes included; evaluated are those that were
given figures or found too large. With `--profile` the functions that a warm search spends most time in are listed.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardwright.tools.search.candidate import SearchRequest

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WARM_RUNS = 2
# A name, and the request in words.
QUESTIONS = {
    "Llama-3.1-70B, 8 H100": "Llama-3.1-70B on 8 H100, 2k in, 256 out, concurrency 64, best throughput",
    "the same, load open": "Llama-3.1-70B on 8 H100, 2k in, 256 out, TPOT 40 ms, best throughput",
    "the same, disaggregated": "Llama-3.1-70B on 8 H100, 2k in, 256 out, concurrency 64, best throughput, "
    "disaggregated prefill and decode",
    "Llama-3.1-405B, 64 H100": "Llama-3.1-405B on 64 H100, 4k in, 512 out, concurrency 256, best throughput",
    "405B, 64 H100, disaggregated": "Llama-3.1-405B on 64 H100, 4k in, 512 out, concurrency 256, best throughput, "
    "disaggregated prefill and decode",
    "DeepSeek-V3, 128 H100": "DeepSeek-V3 on 128 H100, 4k in, 512 out, concurrency 2048, best throughput, "
    "allow attention DP",
    "V3, 128 H100, disaggregated": "DeepSeek-V3 on 128 H100, 4k in, 512 out, concurrency 2048, best throughput, "
    "allow attention DP, disaggregated prefill and decode",
}


def asked(words: str) -> SearchRequest:
    """The search that a request in words asks for."""
    from shardwright.agent.stated.request import intent_of
    from shardwright.agent.stated.search_request import hardware_block, search_request
    from shardwright.tools.catalog.config import read_architecture

    intent = intent_of(words)
    if intent.hardware is None or intent.hardware.nodes is None:
        raise SystemExit(f"no hardware was understood: {words}")
    return search_request(
        intent, read_architecture(intent.model.config), hardware_block(intent.hardware, intent.hardware.nodes)
    )


def measured(words: str, start: float) -> dict[str, float]:
    """Seconds and counts of one question; `start` is when the process began."""
    from shardwright.tools.search.search import search_anew

    request = asked(words)
    result = search_anew(request)
    cold = time.perf_counter() - start
    warm: list[float] = []
    busy: list[float] = []
    for _ in range(WARM_RUNS):
        begun, worked = time.perf_counter(), time.process_time()
        search_anew(request)
        warm.append(time.perf_counter() - begun)
        busy.append(time.process_time() - worked)
    legal = result.evaluated + sum(result.pruned.values())
    return {
        "cold": cold, "warm": min(warm), "busy": min(busy), "legal": legal, "evaluated": result.evaluated,
        "apart": bool(request.disaggregated), "front": len(result.pareto),
    }  # fmt: skip


def profiled(words: str) -> None:
    """Print where a warm search spends its time."""
    from shardwright.tools.search.search import search_anew

    request = asked(words)
    search_anew(request)
    profile = cProfile.Profile()
    profile.runcall(search_anew, request)
    pstats.Stats(profile).sort_stats("tottime").print_stats(20)


def main() -> None:
    """Print the table."""
    start = time.perf_counter()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="questions with this in their name")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--question", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.question:
        print(json.dumps(measured(QUESTIONS[arguments.question], start)))
        return
    if not arguments.profile:
        columns = f"{'cold':>8} {'warm':>8} {'core':>8} {'strategies':>12} {'evaluated':>11} {'strategies/s':>13}"
        print(f"{'question':30} {columns} front")
    for name, words in QUESTIONS.items():
        if arguments.only not in name:
            continue
        if arguments.profile:
            print(name)
            profiled(words)
            continue
        command = [sys.executable, __file__, "--question", name]
        done = subprocess.run(command, env={**os.environ, **ONE_CORE}, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout)
        print(
            f"{name:30} {row['cold']:6.2f} s {row['warm']:6.2f} s {row['busy']:6.2f} s {row['legal']:12,} "
            f"{row['evaluated']:11,} {row['legal'] / row['busy']:13,.0f} {row['front']:5}",
            flush=True,
        )


if __name__ == "__main__":
    main()
