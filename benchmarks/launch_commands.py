"""Imports launch commands as people published them, and lists what each runs and what was not understood.

    python benchmarks/launch_commands.py [CASES]

CASES is JSON: rows with `source`, `text` and, where the text leaves it open, `model` (default: the rows of the tests,
commands in normal form with the source of each). Nothing says on which GPUs they run: H200 nodes of eight are taken.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import shardwright
from shardwright.agent.importing.api import Imported
from shardwright.tools.errors import InputError
from shardwright.tools.plan.describe import describe

CASES = Path(__file__).parents[1] / "tests" / "cases" / "public_launches.json"
_NODES = (1, 2, 4, 8, 16, 32)


def imported(row: dict[str, Any]) -> Imported:
    """The row on as many nodes as it uses.

    Raises:
        InputError: it cannot be imported.
    """
    stated = {"model": row["model"]} if "model" in row else {}
    first = shardwright.import_plan(row["text"], hardware="1x8:h200-sxm", **stated)
    used = first.plan.strategy.gpu_count
    if used <= 8:
        return first
    nodes = next(count for count in _NODES if count * 8 >= used)
    return shardwright.import_plan(row["text"], hardware=f"{nodes}x8:h200-sxm", **stated)


def main() -> None:
    """Print a line a row, and how many there are of each kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="?", type=Path, default=CASES)
    rows = json.loads(parser.parse_args().cases.read_text(encoding="utf-8"))
    valid, refused, unknown = 0, 0, 0
    for row in rows:
        print(row["source"])
        try:
            result = imported(row)
        except InputError as error:
            refused += 1
            print(f"  not imported: {error}")
            continue
        valid += result.valid
        unknown += bool(result.not_understood)
        plan, figures = result.plan, result.estimate
        times = "not estimated" if figures is None else (
            f"TTFT {figures.latency.ttft_ms:,.0f} ms, TPOT {figures.latency.tpot_ms:.1f} ms"
        )  # fmt: skip
        rules = sorted({finding.rule for finding in result.findings if finding.severity == "error"})
        print(f"  {describe(plan.strategy)} of {plan.model.name}, {plan.strategy.gpu_count} GPUs: {times}")
        if rules:
            print(f"  breaks {', '.join(rules)}")
        if result.not_understood or result.unplanned:
            print(f"  not understood: {', '.join((*result.not_understood, *result.unplanned))}")
    print(
        f"{len(rows)} deployments: {len(rows) - refused} imported, {valid} valid on H200; {unknown} with unknown flags"
    )


if __name__ == "__main__":
    main()
