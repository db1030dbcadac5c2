"""Traces in three public formats, drawn with a seed: `python -m shardwright.benchmarks.traces FOLDER`, then searched.

Their lengths and rates are those that the papers print, the draws are ours: Mooncake's conversations (Qin et al., 2024:
12,031 requests in an hour, prompts of 7,590 tokens on average, answers of 182, blocks of 512 tokens of which half come
again), Azure's coding (Patel et al., Splitwise, 2024: 8,819 requests in an hour, prompts of 2,048 on average with a
median of 1,500, answers of 28 with a median of 13) and BurstGPT (Wang et al., 2024: gaps with a gamma distribution,
prompts and answers with long tails, failures without an answer). What each search chooses is printed beside what it
chooses for the means alone, and what that would have cost in p99.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from ..agent.pipeline import plan
from ..agent.search_api import search
from ..tools.performance.estimate import estimate
from ..tools.plan.document import Strategy
from ..tools.traffic.trace import Trace, read_trace

SEED = 7


def _length(draw: Random, median: float, mean: float, most: int) -> int:
    """Log-normal with this median and mean, cut off."""
    sigma = math.sqrt(2 * math.log(mean / median))
    return max(1, min(most, round(draw.lognormvariate(math.log(median), sigma))))


def mooncake_lines(requests: int = 12_031, seed: int = SEED) -> Iterator[str]:
    """Mooncake's JSON Lines: conversations that go on, so that a prompt begins with the blocks of one before it."""
    draw, now, fresh = Random(seed), 0.0, 0
    talks: list[list[int]] = []
    for _ in range(requests):
        now += draw.expovariate(requests / 3600)
        prompt, answer = _length(draw, 5_000, 7_590, 120_000), _length(draw, 120, 182, 2_000)
        blocks = -(-prompt // 512)
        known = talks[draw.randrange(len(talks))] if talks and draw.random() < 0.7 else []
        hashes = known[: round(0.8 * blocks)]
        more = blocks - len(hashes)
        hashes = [*hashes, *range(fresh, fresh + more)]
        fresh += more
        talks = [*talks[-200:], hashes]
        yield json.dumps(
            {"timestamp": round(now * 1e3), "input_length": prompt, "output_length": answer, "hash_ids": hashes}
        )


def azure_lines(requests: int = 8_819, seed: int = SEED) -> Iterator[str]:
    """Azure's table of 2023: dates with ticks of 100 ns."""
    draw, now = Random(seed), datetime(2023, 11, 16, 18, 15, tzinfo=UTC)
    yield "TIMESTAMP,ContextTokens,GeneratedTokens"
    for _ in range(requests):
        now += timedelta(seconds=draw.gammavariate(0.4, 3600 / requests / 0.4))
        written = f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond:06d}0"
        yield f"{written},{_length(draw, 1_500, 2_048, 7_437)},{_length(draw, 13, 28, 1_899)}"


def burstgpt_lines(requests: int = 20_000, seed: int = SEED) -> Iterator[str]:
    """BurstGPT's table: whole seconds, and failures without an answer."""
    draw, now = Random(seed), 0.0
    yield "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
    for _ in range(requests):
        now += draw.gammavariate(0.3, 0.5 / 0.3)
        prompt = _length(draw, 260, 620, 16_000)
        answer = 0 if draw.random() < 0.02 else _length(draw, 190, 260, 4_000)
        yield f"{int(now)},ChatGPT,{prompt},{answer},{prompt + answer},Conversation log"


WRITERS: dict[str, Callable[[], Iterator[str]]] = {
    "mooncake.jsonl": mooncake_lines, "azure.csv": azure_lines, "burstgpt.csv": burstgpt_lines
}  # fmt: skip
_LIMIT = {"mooncake.jsonl": 15_000.0, "azure.csv": 800.0, "burstgpt.csv": 1500.0}


def compare(name: str, trace: Trace) -> None:
    """Print what is chosen for a trace, for its means, and what the latter would have cost."""
    asked: dict[str, Any] = {"model": "llama-3.1-70b", "hardware": "2x8:h100-sxm", "objective": "latency"}
    limits: dict[str, Any] = {"ttft_ms": _LIMIT[name], "ttft_statistic": "p99"}
    begun = process_time()
    searched = search(**asked, **limits, trace=trace)
    print(f"{name}: {trace.describe()}\n  searched in {process_time() - begun:.1f} s")
    prompt, answer = (max(1, round(mean)) for mean in trace.lengths.spread(1, 1).means)
    rate = trace.planned_rate_per_s
    if rate is None:
        return
    by_means = plan(**asked, **limits, input_tokens=prompt, output_tokens=answer, request_rate=rate)
    best = searched.candidates[0]
    print(f"  for the trace: {_layout(best.strategy)}; {best.limited_ms}; holds: {best.feasible}")
    if by_means.plan is not None:
        expected, real = estimate(by_means.plan), estimate(by_means.plan, trace=trace)
        shown = (figures.latency.percentiles.ttft_ms.p99 for figures in (expected, real))
        print(f"  for its means: {_layout(by_means.plan.strategy)}")
        print("  its TTFT p99: {:,.0f} ms by the means, {:,.0f} ms under the trace".format(*shown))


def _layout(strategy: Strategy) -> str:
    sides = ((phase.replicas, phase.pp, phase.tp) for phase in (strategy.prefill, strategy.decode))
    words = [f"{replicas or strategy.dp} x pp{pp} tp{tp}" for replicas, pp, tp in sides]
    return words[0] if strategy.prefill.replicas is None else " + ".join(words)


def main(folder: Path) -> None:
    """Write the traces, and search for each."""
    folder.mkdir(exist_ok=True)
    for name, lines in WRITERS.items():
        path = folder / name
        path.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
        compare(name, read_trace(path))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
