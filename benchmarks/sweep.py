"""Sweeps models of the catalogue on clusters of the catalogue under five workloads, and compares ways of running it.

    python benchmarks/sweep.py [--models 50] [--clusters 10] [--workloads 5] [--cores 1 2] [--ray local] [--folder DIR]

Every way must give the same table, byte for byte; the benchmark fails where one does not. Prints the seconds of each.
With --folder the file and the tables are kept, and what was finished there before is not run again.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from shardwright.tools.catalog.hardware import all_accelerators
from shardwright.tools.catalog.models import all_models

WORKLOADS: tuple[dict[str, Any], ...] = (
    {"name": "chat", "input_tokens": 1024, "output_tokens": 256, "objective": "latency"},
    {"name": "batch", "input_tokens": 1024, "output_tokens": 512, "objective": "throughput"},
    {"name": "retrieval", "input_tokens": 3072, "output_tokens": 256, "objective": "cost", "ttft_ms_max": 2000},
    {"name": "agents", "input_tokens": 2048, "output_tokens": 512, "objective": "throughput", "tpot_ms_max": 40},
    {"name": "stated", "input_tokens": 2048, "output_tokens": 1024, "objective": "latency", "concurrency": 64},
)
# Larger nodes take far longer than they tell of how a sweep is run.
MOST_IN_A_NODE = 8
Item = TypeVar("Item")


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """`count` of the items, evenly spread over all of them.

    Raises:
        SystemExit: there are fewer.
    """
    if not 1 <= count <= len(items):
        raise SystemExit(f"{count} of {len(items)} cannot be taken")
    return [items[place * len(items) // count] for place in range(count)]


def sweep_file(models: int, clusters: int, workloads: int) -> str:
    """The file of the sweep: every second cluster has two nodes."""
    hardware: list[str] = []
    for place, accelerator in enumerate(spread(all_accelerators(), clusters)):
        node = min(MOST_IN_A_NODE, accelerator.typical_node_accelerators or 1)
        hardware.append(f"{1 + place % 2}x{node}:{accelerator.id}")
    names = [entry.name for entry in spread(all_models(), models)]
    content = {"models": names, "hardware": hardware, "workloads": spread(WORKLOADS, workloads)}
    return json.dumps(content, indent=1) + "\n"


def run_s(arguments: list[str]) -> float:
    """Seconds of one `shardwright sweep`.

    Raises:
        SystemExit: it ended with neither 0 nor 1 (no case has a plan).
    """
    program = Path(sys.executable).parent / "shardwright"
    started = time.perf_counter()
    done = subprocess.run([str(program), "sweep", *arguments], stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"sweep {' '.join(arguments)}: exit {done.returncode}")
    return time.perf_counter() - started


def tally(table: Path) -> str:
    """How many cases have a plan, how many have none by which rule, how many could not be evaluated."""
    with table.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    counts = Counter("error" if row["error"] else "plan" if row["feasible"] == "true" else row["rule"] for row in rows)
    return ", ".join(f"{what} {count:,}" for what, count in counts.most_common())


def main() -> None:
    """Make the file, run it each way, compare the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--workloads", type=int, default=5)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2], help="numbers of local processes")
    parser.add_argument("--ray", metavar="ADDRESS", help="also on this Ray cluster; 'local' starts one")
    parser.add_argument("--folder", type=Path, help="keep the file and the tables here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        asked = folder / "sweep.json"
        asked.write_text(sweep_file(chosen.models, chosen.clusters, chosen.workloads), encoding="utf-8")
        ways = {f"{count} process(es)": ["--jobs", str(count)] for count in chosen.cores}
        if chosen.ray:
            ways[f"Ray at {chosen.ray}"] = ["--ray", chosen.ray]
        digests: dict[str, str] = {}
        print(f"{chosen.models} models x {chosen.clusters} clusters x {chosen.workloads} workloads", flush=True)
        for place, (name, options) in enumerate(ways.items()):
            table = folder / f"table-{place}.csv"
            seconds = run_s([str(asked), "-o", str(table), *options])
            digests[name] = hashlib.sha256(table.read_bytes()).hexdigest()
            print(f"  {name:24} {seconds:9.1f} s  {digests[name][:16]}  {tally(table)}", flush=True)
    if len(set(digests.values())) != 1:
        raise SystemExit("the tables differ")
    print("one table, however it was run")


if __name__ == "__main__":
    main()
