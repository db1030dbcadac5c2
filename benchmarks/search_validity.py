"""Builds what searches call feasible and checks every document: how many there were, how many broke a rule, and which.

    python benchmarks/search_validity.py [--count 5000] [--seed 1] [--gpus 16]

Models, hardware, loads, relaxations and engines are drawn; of each search up to 25 candidates are built, the best and
the ends of the front among them. The exit status is 1 where one of them broke a rule.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from shardwright.tests.search.questions import drawn_questions
from shardwright.tests.search.test_feasible_is_valid import broken_rules, feasible_ones
from shardwright.tools.errors import InputError
from shardwright.tools.search.search import search

OF_EACH = 25
SHOWN = 20


def main() -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=5000, help="documents to check")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=16, help="the largest cluster")
    arguments = parser.parse_args()
    draw, start = random.Random(arguments.seed), time.perf_counter()
    searches = checked = failed = 0
    rules: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    models: set[str] = set()
    for question in drawn_questions(arguments.seed, arguments.gpus):
        try:
            result = search(question.search)
        except InputError as error:
            refused[str(error)] += 1
            continue
        searches += 1
        for candidate in feasible_ones(result, draw, OF_EACH):
            broken = broken_rules(question, candidate)
            checked += 1
            models.add(question.entry.name)
            if broken:
                failed += 1
                rules.update({message.partition(":")[0] for message in broken})
                if failed <= SHOWN:
                    print(f"{question.name}: {candidate.strategy} at {candidate.concurrency}: {broken[0]}", flush=True)
        if checked >= arguments.count:
            break
    seconds = time.perf_counter() - start
    print(f"{checked:,} documents of {searches:,} searches and {len(models)} models in {seconds:.0f} s")
    print(f"{failed:,} broke a rule{': ' if rules else ''}{', '.join(f'{rule} {n}' for rule, n in rules.items())}")
    for message, times in refused.most_common():
        print(f"{times} searches were refused: {message}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
