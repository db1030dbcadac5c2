"""Times `estimate` of a 64-GPU mixture-of-experts plan in this process, cold and warm, beside reading its document.

    python benchmarks/estimation.py [--runs 5]

Cold is the first estimate of a fresh process (imports and profiles included), warm the best of the later ones. What the
figures are compared with, in the same run, is reading and indexing the same document.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import shardwright
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.plan.reader import read_document

REQUEST = (
    "Serve DeepSeek-R1 on 8 nodes of 8 H200, 4k in, 1k out, 1024 concurrent requests, allow attention DP, "
    "best throughput"
)


def best_ms(run: Callable[[], Any], runs: int) -> float:
    """Milliseconds of the quickest of `runs` calls."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = max(1, parser.parse_args().runs)
    plan = shardwright.plan(REQUEST).plan
    if plan is None:
        raise SystemExit("the request has no plan")
    document = plan.model_dump(mode="json")
    start = time.perf_counter()
    shardwright.estimate(document)
    first = (time.perf_counter() - start) * 1e3
    reading = best_ms(lambda: read_document(document).view, runs)
    whole = best_ms(lambda: shardwright.estimate(document), runs)
    view = read_document(document).view
    figures = best_ms(lambda: estimate_layout(layout_from_view(view)), runs)
    bare = best_ms(lambda: estimate_layout(layout_from_view(view), ()), runs)
    print(f"{plan.strategy.gpu_count} GPUs, {len(document['nodes']):,} nodes in the document, best of {runs}")
    for name, value in (
        ("reading and indexing the document", reading),
        ("estimate of the document, first", first),
        ("estimate of the document, warm", whole),
        ("estimate of what was read, warm", figures),
        ("the same without explanation and simulated load", bare),
    ):
        print(f"  {name:50} {value:8.1f} ms  {value / reading:6.1f} x reading")


if __name__ == "__main__":
    main()
