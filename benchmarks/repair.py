"""Repairs corrupted plans and foreign proposals, and prints how it went: what ended valid, what was kept, how long.

    python benchmarks/repair.py [--piled 1000] [--seed 10000] [--pairs]

Single corruptions are the rows of tests/cases/rules, piled ones 2 to 20 of them at random over all base plans, foreign
proposals those of tests/cases/foreign. A repair counts as right only if the patches, replayed by the JSON Patch library
alone, lead to its plan, and validation agrees with its verdict. The exit status is 1 where one does not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from shardwright.benchmarks.foreign import DEFAULTS, strategy_text
from shardwright.tests.autofix.corrupted import ROWS, is_local, piled, replayed, touches_strategy, untouched
from shardwright.tests.autofix.foreign.proposals import differences, proposals
from shardwright.tests.autofix.pairs import agree, broken_by_both, conflicts, in_both_orders, pairs
from shardwright.tests.rules.corruptions import Corruption
from shardwright.tools.autofix.autofix import FixResult, autofix
from shardwright.tools.autofix.foreign.reader import read_proposal
from shardwright.tools.autofix.intent import PlanDefaults
from shardwright.tools.rules.examples import apply
from shardwright.tools.rules.registry import find_rule
from shardwright.tools.validate import validate


class Repair(Struct, frozen=True):
    """One repair: its result, its seconds, and whether the claims of the result hold."""

    result: FixResult
    seconds: float
    is_right: bool


def repaired(document: dict[str, Any] | str, request: PlanDefaults | None = None) -> Repair:
    """Repair `document` and check the claims of the result."""
    start = time.perf_counter()
    result = autofix(document, request=request)
    seconds = time.perf_counter() - start
    says = result.document is not None and validate(json.loads(json.dumps(result.document))).valid
    ends = result.valid or bool(result.remaining and (result.infeasible or result.unfixed or result.notes))
    return Repair(result, seconds, says == result.valid and replayed(result) == result.document and ends)


def spread(values: Sequence[float], unit: str = "") -> str:
    """Median and worst."""
    return f"median {statistics.median(values):.3g}{unit}, worst {max(values):.3g}{unit}" if values else "none"


def single() -> Iterator[bool]:
    """Every row of the tables by itself."""
    for kind, rows in (("local", [row for row in ROWS if is_local(row)]),
                       ("others", [row for row in ROWS if not is_local(row)])):  # fmt: skip
        kept_shares: list[float] = []
        times: list[float] = []
        moved: Counter[str] = Counter()
        distances: list[float] = []
        invalid: list[str] = []
        for row in rows:
            document = apply(row.example)
            run = repaired(document)
            times.append(run.seconds)
            yield run.is_right
            result = run.result
            if find_rule(row.rule).severity == "error" and not result.valid:
                why = result.infeasible.rule if result.infeasible is not None else "; ".join(result.unfixed)[:60]
                invalid.append(f"{row}: {why}")
            if result.replanned is not None:
                distances.append(result.replanned.distance)
            kept_shares.append(share_kept(row, document, result))
            if kind == "local" and (result.document or {}).get("strategy") != document["strategy"]:
                moved["declared by the row itself" if touches_strategy(row) else str(row)] += 1
        print(f"single corruptions, {kind}: {len(rows)} rows, {len(rows) - len(invalid)} valid; {spread(times, ' s')}")
        print(f"  untouched nodes kept byte for byte: at least 95% in {sum(share >= 0.95 for share in kept_shares)}, "
              f"median {statistics.median(kept_shares):.1%}, least {min(kept_shares):.1%}")  # fmt: skip
        if distances:
            print(f"  re-planned {len(distances)}, distance {spread(distances)}")
        for name, times_moved in moved.items():
            print(f"  strategy changed: {times_moved} {name}")
        for name in invalid:
            print(f"  not valid: {name}")


def share_kept(row: Corruption, document: dict[str, Any], result: FixResult) -> float:
    """The share of nodes, touched by neither the row nor a violation, that are as the author wrote them."""
    named = {name for violation in validate(document).violations for name in violation.nodes}
    intact = {name: node for name, node in untouched(row, document).items() if name not in named}
    after = {node["id"]: node for node in (result.document or {}).get("nodes", ())}
    return sum(after.get(name) == node for name, node in intact.items()) / len(intact) if intact else 1.0


def piles(count: int, seed: int) -> Iterator[bool]:
    """Many corruptions at once."""
    times: list[float] = []
    rounds: list[float] = []
    ended: Counter[str] = Counter()
    for number in range(seed, seed + count):
        run = repaired(piled(number))
        times.append(run.seconds)
        rounds.append(run.result.rounds)
        ended["valid" if run.result.valid else "none exists" if run.result.infeasible else f"open (seed {number})"] += 1
        yield run.is_right
    print(f"piled corruptions: {count} plans, {dict(ended)}; rounds {spread(rounds)}; {spread(times, ' s')}")


def foreign() -> Iterator[bool]:
    """Proposals by authors who do not know the format; `foreign.py` shows what was read, kept and changed of each."""
    totals: Counter[str] = Counter()
    for proposal in proposals():
        misread = differences(read_proposal(proposal.text), proposal.expected)
        run = repaired(proposal.text, DEFAULTS)
        yield run.is_right
        totals["read"] += not misread
        totals["valid"] += run.result.valid
        if misread or not run.result.valid:
            print(f"  {proposal.name}: {'; '.join(misread) or 'read as said'}; {strategy_text(run.result)}")
    print(f"foreign proposals: {len(proposals())}, read as said {totals['read']}, valid {totals['valid']}")


def orders() -> Iterator[bool]:
    """Every two rules, over a plan that breaks both, mended in both orders."""
    ended: Counter[str] = Counter()
    for pair in pairs():
        document = broken_by_both(pair)
        if document is None:
            ended["no plan of the tables breaks both"] += 1
            continue
        same = agree(in_both_orders(document, pair))
        ended["same plan" if same else "declared in conflict" if pair in conflicts() else "DIFFERENT"] += 1
        if not same and pair not in conflicts():
            print(f"  not the same plan: {pair}")
        yield same or pair in conflicts()
    print(f"pairs of rules in both orders: {dict(ended)}")


def main() -> int:
    """Print the tables; 1 where the claims of a repair do not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--piled", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=10_000)
    parser.add_argument("--pairs", action="store_true", help="every two rules in both orders as well (minutes)")
    arguments = parser.parse_args()
    wrong = 0
    parts = [single(), foreign(), piles(arguments.piled, arguments.seed), *([orders()] if arguments.pairs else [])]
    for part in parts:
        wrong += sum(not is_right for is_right in part)
    print(f"repairs whose own word does not hold: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
