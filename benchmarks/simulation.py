"""Times the serving simulation by itself: requests that share nothing, and those of which caches have a part.

    python benchmarks/simulation.py [--requests 10000] [--replicas 8] [--runs 3]

The server is about a dense 70B model in FP8 on two H100 (the tests' step table) with 300,000 tokens of cache; requests
of 4,000 tokens in and 300 out come at 5/s for each replica, or from 32 users of each. Without shared prefixes one
replica stands for all, with them all are simulated. CPU time of the quickest run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from time import process_time

from msgspec.structs import replace

from shardwright.tests.performance.serving.engines import ENGINE, ROOMY
from shardwright.tools.performance.serving.load import ClosedLoop, Lengths, OpenLoop, ServingTimes
from shardwright.tools.performance.serving.policy import HostMemory, Policy
from shardwright.tools.performance.serving.replicas import simulate_replicas
from shardwright.tools.plan.prefixes import SharedPrefixes

POLICY = replace(ROOMY, kv_tokens=300_000)
TOKENS = 4000, 300


# Twice the GPUs' cache: 160 kB of a token on each come back at 64 GB/s.
HOST = replace(POLICY, host_memory=HostMemory(600_000, 2.5e-6, takes_evicted=False))


def loads() -> Iterator[tuple[str, SharedPrefixes | None]]:
    """What is shared, by name."""
    yield "nothing, one replica stands for all", None
    yield "nothing that a block holds", SharedPrefixes(system_tokens=1)
    yield "a system prompt of 1,600", SharedPrefixes(system_tokens=1600)
    yield "100 of them, by match", SharedPrefixes(system_tokens=1600, system_prompts=100, routing="prefix_aware")
    yield "5 turns, least loaded", SharedPrefixes(system_tokens=1600, turns=5)
    yield "5 turns, by match", SharedPrefixes(system_tokens=1600, turns=5, routing="prefix_aware")


def timed(
    prefixes: SharedPrefixes | None, requests: int, replicas: int, policy: Policy, *, is_open: bool
) -> tuple[float, ServingTimes]:
    """Seconds of CPU, and what users see."""
    turns = None if prefixes is None else prefixes.turn_lengths(*TOKENS)
    lengths = Lengths(*TOKENS, stated=turns, prefixes=prefixes)
    load = OpenLoop(5.0 * replicas, requests, think_s=10.0) if is_open else ClosedLoop(32 * replicas, requests)
    start = process_time()
    times = simulate_replicas(ENGINE, policy, load, lengths, replicas)
    return process_time() - start, times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{arguments.requests:,} requests on {arguments.replicas} replicas, best of {max(1, arguments.runs)}")
    offloaded = [
        (f"{name}, host", prefixes, HOST) for name, prefixes in loads() if prefixes is not None and prefixes.turns
    ]
    for name, prefixes, policy in (*((name, prefixes, POLICY) for name, prefixes in loads()), *offloaded):
        for is_open in (True, False):
            timings = [
                timed(prefixes, arguments.requests, arguments.replicas, policy, is_open=is_open)
                for _ in range(max(1, arguments.runs))
            ]
            seconds, times = min(timings, key=lambda timing: timing[0])
            arrive = "at a rate" if is_open else "users"
            hits = "" if times.prefix_hit_share is None else f", found {times.prefix_hit_share:.1%}"
            hits += f", {times.host_hit_share:.1%} in host memory" if policy.host_memory else ""
            print(f"{name:36} {arrive:9} {seconds:6.2f} s, TTFT {times.ttft.mean:.3f} s{hits}")


if __name__ == "__main__":
    main()
