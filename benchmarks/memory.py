"""Shows that the memory of a process stays flat over many mixed library calls.

    python benchmarks/memory.py [10000] [--every 500] [--seed 1]

Each call takes its model, hardware, load and document at random: checks, repairs, estimates, comparisons, searches,
plans and questions, of sound, damaged and hostile documents. Prints the resident memory as it goes, then the growth
from a quarter of the calls to the end and the most that was ever held.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shardwright
from shardwright.tools.rules.examples import DENSE, MLA, MOE, base_plan

CONFIGS = (DENSE, MOE, MLA)
BASES = ("moe-ep2", "dense-tp2")
NAMED = ("Llama-3.1-8B", "Llama-3.1-70B", "Qwen3-30B-A3B", "Mixtral-8x7B")
ACCELERATORS = ("h100-sxm", "a100-sxm-80gb", "h200", "b200")
WRONG: tuple[Any, ...] = (None, -1, 0, 2, 10**9, "x", "TP8", "n0.g1", [], {}, True, 1.5)
MIB = 2**20


def config(rng: random.Random) -> dict[str, Any]:
    """A tiny model unlike those before it."""
    heads = rng.choice((4, 8, 16))
    chosen = copy.deepcopy(rng.choice(CONFIGS))
    return chosen | {
        "num_hidden_layers": rng.randint(2, 24),
        "hidden_size": 64 * rng.randint(4, 64),
        "num_attention_heads": heads,
        "vocab_size": 1024 * rng.randint(1, 99),
    }


def load(rng: random.Random) -> dict[str, Any]:
    """Tokens in and out, and requests in flight."""
    return {
        "input_tokens": rng.randint(1, 8000),
        "output_tokens": rng.randint(1, 500),
        "concurrency": rng.randint(1, 64),
    }


def document(rng: random.Random) -> dict[str, Any]:
    """A good plan, under another load or model, and three times out of four damaged."""
    plan = base_plan(rng.choice(BASES))
    if rng.random() < 0.5:
        plan["workload"] |= load(rng)
        plan["hardware"] |= {"accelerator": rng.choice(ACCELERATORS), "intra_node_bw_gb_s": rng.randint(50, 900)}
    if rng.random() < 0.3:
        plan["model"]["config"] = config(rng)
    if rng.random() < 0.3:
        plan = json.loads(json.dumps(plan).replace("r0", f"r{rng.randint(1, 10**6)}"))
    for _ in range(rng.randint(0, 3)):
        damage(plan, rng)
    return plan


def damage(plan: dict[str, Any], rng: random.Random) -> None:
    """Change `plan` at one place: a field of the header, of a node or of an edge, or a node lost, or copied often."""
    kind = rng.randrange(5)
    if kind == 0:
        block = plan[rng.choice(("model", "hardware", "workload", "precision", "strategy"))]
        if isinstance(block, dict) and block:
            block[rng.choice(list(block))] = rng.choice(WRONG)
    elif kind == 1:
        node = rng.choice(plan["nodes"])
        node[rng.choice(list(node))] = rng.choice(WRONG)
    elif kind == 2:
        edge = rng.choice(plan["edges"])
        edge[rng.choice(list(edge))] = rng.choice(WRONG)
    elif kind == 3:
        plan["nodes"].pop(rng.randrange(len(plan["nodes"])))
    else:
        node = rng.choice(plan["nodes"])
        plan["nodes"].append(node | {"id": f"{node['id']}{{i}}", "repeat": rng.randint(1, 400)})


def hardware(rng: random.Random) -> dict[str, Any]:
    """A cluster with links of its own."""
    return {
        "accelerator": rng.choice(ACCELERATORS),
        "nodes": rng.randint(1, 2),
        "gpus_per_node": rng.choice((1, 2, 4, 8)),
        "intra_node_bw_gb_s": rng.randint(50, 900),
    }


def searched(rng: random.Random) -> object:
    """A search for a tiny model."""
    return shardwright.search(model=config(rng), hardware=hardware(rng), workload=load(rng), top=5)


def planned(rng: random.Random) -> object:
    """A plan for a request in words."""
    asked = load(rng)
    return shardwright.plan(
        f"Serve {rng.choice(NAMED)} on {rng.randint(1, 8)} H100, {asked['input_tokens']} in / "
        f"{asked['output_tokens']} out, {asked['concurrency']} at once"
    )


def worded(rng: random.Random) -> object:
    """A repair of a proposal in words."""
    return shardwright.autofix(
        f"{rng.choice(NAMED)}, TP{rng.choice((1, 2, 4, 8))}, PP{rng.choice((1, 2))} on node {rng.randint(0, 10**6)} of "
        f"8 H100, {rng.randint(1, 4000)} in, {rng.randint(1, 400)} out\n"
    )


CALLS: tuple[tuple[int, Callable[[random.Random], object]], ...] = (
    (30, lambda rng: shardwright.validate(document(rng))),
    (20, lambda rng: shardwright.autofix(document(rng))),
    (15, lambda rng: shardwright.estimate(document(rng))),
    (5, lambda rng: shardwright.compare(document(rng), document(rng))),
    (5, searched),
    (2, planned),
    (3, worded),
    (
        5,
        lambda rng: shardwright.explain(f"why {rng.choice(('PP003', 'EP'))} with {rng.randint(0, 10**6)} GPUs?"),
    ),
)


def call(rng: random.Random) -> None:
    """Make one call; an error that its input deserves is ignored."""
    chosen = rng.choices([work for _, work in CALLS], [weight for weight, _ in CALLS])[0]
    with contextlib.suppress(shardwright.ShardwrightError):
        chosen(rng)


def resident_mib() -> float:
    """Memory that the process holds now."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize() / MIB


def main() -> None:
    """Make the calls and print what the process holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", type=int, nargs="?", default=10_000)
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, started, resident = random.Random(options.seed), time.perf_counter(), [resident_mib()]
    for number in range(1, options.calls + 1):
        call(rng)
        if number % options.every == 0:
            resident.append(resident_mib())
            print(f"{number:7,} calls {resident[-1]:8.1f} MiB {time.perf_counter() - started:8.1f} s", flush=True)
    warm = resident[max(1, len(resident) // 4)] if len(resident) > 1 else resident[0]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
    print(f"from a quarter of the calls to the end {resident[-1] - warm:+.1f} MiB; {most:.1f} MiB at most")


if __name__ == "__main__":
    main()
