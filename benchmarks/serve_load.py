"""How a server holds out: many clients validate and plan at once; errors, times and memory.

    python benchmarks/serve_load.py [--validates 200] [--plans 20] [--rounds 3] [--url URL]

Without --url a server is started for it. All requests of a round are sent at the same moment. A table says for each
round how many requests failed, the median and the 99th percentile of their seconds, and what memory the server holds
after it. The exit status is 1 where a request failed.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2
from msgspec import Struct

SMALL = {"model": "Llama-3.1-8B", "hardware": "1x2:h100-sxm", "input_tokens": 512, "output_tokens": 64}
_MEMORY = re.compile(r"^process_resident_memory_bytes (\S+)$", re.MULTILINE)


class Round(Struct, frozen=True):
    """One round: seconds of requests by kind, those that failed, and memory after it."""

    seconds: dict[str, list[float]]
    failed: list[str]
    memory_bytes: float

    def at(self, asked: str, share: float) -> float:
        """The quantile of the seconds of one kind of request."""
        ranked = sorted(self.seconds[asked])
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


def load(url: str, *, validates: int, plans: int, rounds: int) -> list[Round]:
    """Rounds of so many requests at once of the server at `url`."""
    plan = httpx2.post(f"{url}api/v1/plan", json=SMALL, timeout=120).raise_for_status().json()["plan"]
    asked = [("validate", {"plan": plan})] * validates + [("plan", SMALL)] * plans
    return [asyncio.run(_round(url, asked)) for _ in range(rounds)]


async def _round(url: str, asked: Sequence[tuple[str, dict[str, Any]]]) -> Round:
    seconds: dict[str, list[float]] = {name: [] for name, _ in asked}
    failed: list[str] = []
    limits = httpx2.Limits(max_connections=len(asked))
    async with httpx2.AsyncClient(base_url=url, timeout=300, limits=limits) as client:

        async def ask(name: str, fields: dict[str, Any]) -> None:
            begin = time.monotonic()
            try:
                answer = await client.post(f"api/v1/{name}", json=fields)
                if answer.status_code != 200 or answer.json().get("valid") is not True:
                    failed.append(f"{name}: {answer.status_code} {answer.text[:200]}")
            except httpx2.HTTPError as error:
                failed.append(f"{name}: {type(error).__name__} {error}")
            seconds[name].append(time.monotonic() - begin)

        await asyncio.gather(*(ask(*call) for call in asked))
        memory = _MEMORY.search((await client.get("metrics")).text)
    return Round(seconds, failed, float(memory[1]) if memory else 0.0)


@contextmanager
def started() -> Iterator[str]:
    """Start a server and yield its URL."""
    command = [sys.executable, "-m", "shardwright", "serve", "--port", "0", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            match = re.search(r"http://\S+", line)
            if match is None:
                raise SystemExit(f"the server did not start: {line}")
            yield match[0]
        finally:
            process.terminate()


def main() -> int:
    """Run the rounds and print the table; 1 where a request failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validates", type=int, default=200)
    parser.add_argument("--plans", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url")
    options = parser.parse_args()
    counts = {"validates": options.validates, "plans": options.plans, "rounds": options.rounds}
    if options.url:
        results = load(options.url.rstrip("/") + "/", **counts)
    else:
        with started() as url:
            results = load(url, **counts)
    print(f"{'round':>5} {'asked':<9} {'count':>5} {'failed':>6} {'p50 s':>7} {'p99 s':>7} {'memory MiB':>10}")
    for place, result in enumerate(results, 1):
        for name, times in result.seconds.items():
            failed = sum(line.startswith(name) for line in result.failed)
            figures = f"{result.at(name, 0.5):>7.2f} {result.at(name, 0.99):>7.2f} {result.memory_bytes / 2**20:>10.0f}"
            print(f"{place:>5} {name:<9} {len(times):>5} {failed:>6} {figures}")
    for line in sorted({line for result in results for line in result.failed})[:10]:
        print(line)
    return int(any(result.failed for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
