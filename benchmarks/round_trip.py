"""Exports plans of all kinds to every target, imports what was written, and holds the content hashes together.

    python benchmarks/round_trip.py

Ten models on one GPU to sixteen, each planned for three engines, with phases apart and with attention groups. A target
gives back the same plan, or refuses it and says why. The exit status is 1 where a plan comes back as another, or where
the engine that it names refuses it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import shardwright
from shardwright.tools.errors import InputError
from shardwright.tools.export.export import TARGETS
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.document import Plan

ENGINES = ("vllm", "sglang", "trtllm")
DEPLOYMENTS = (
    ("meta-llama/Llama-3.1-8B", "1x1:h100-sxm"),
    ("meta-llama/Llama-3.1-8B", "1x4:l40s"),
    ("meta-llama/Llama-3.1-70B", "1x8:h100-sxm"),
    ("meta-llama/Llama-3.1-70B", "2x8:a100-80gb-sxm"),
    ("meta-llama/Llama-3.1-405B", "2x8:h100-sxm"),
    ("Qwen/Qwen3-32B", "1x4:h100-sxm"),
    ("mistralai/Mixtral-8x7B-v0.1", "1x8:h100-sxm"),
    ("deepseek-ai/DeepSeek-V3", "2x8:h200-sxm"),
    ("openai/gpt-oss-120b", "1x4:h100-sxm"),
    ("Qwen/Qwen3-235B-A22B", "2x8:h100-sxm"),
)
WAYS: tuple[dict[str, Any], ...] = (
    *({"engine": engine} for engine in ENGINES),
    {"engine": "vllm", "disaggregated": True},
    {"engine": "sglang", "relaxations": ["attention_dp"]},
)


def plans() -> Iterator[tuple[str, Plan]]:
    """Plans with the engine that each names."""
    for (model, hardware), way in product(DEPLOYMENTS, WAYS):
        asked: dict[str, Any] = {"input_tokens": 2048, "output_tokens": 256, "concurrency": 32, **way}
        try:
            planned = shardwright.plan(model=model, hardware=hardware, objective="throughput", **asked).plan
        except InputError as error:
            print(f"{model} on {hardware}, {way}: {error}")
            continue
        if planned is not None:
            yield way["engine"], planned


def comes_back(plan: Plan, target: str) -> str:
    """What a target makes of a plan: `same`, `refused`, or what is wrong."""
    exported = shardwright.export(plan, target)
    if exported.text is None:
        return "refused"
    try:
        back = shardwright.import_plan(exported.text)
    except InputError as error:
        return f"not read: {error}"
    return "same" if content_hash(back.plan) == content_hash(plan) else "another"


def main() -> int:
    """Print how many plans each target gave back."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong = 0
    number = 0
    for engine, plan in plans():
        number += 1
        for target in TARGETS:
            if target == "chakra" or (target in ENGINES and target != engine):
                continue
            came = comes_back(plan, target)
            counts[target, came] += 1
            wrong += came not in ("same", "refused") or (came == "refused" and target == engine)
    print(f"{number} plans")
    for (target, came), count in sorted(counts.items()):
        print(f"  {target:16}{came}: {count}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
