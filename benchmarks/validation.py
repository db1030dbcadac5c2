"""Times the validator on large plans against `json.loads` of the same text, and how both grow with the plan.

    python benchmarks/validation.py [1000 10000 100000] [--shape replicas|unrolled|disaggregated] [--runs 5]

Plans are valid ones of a small MoE model on expert groups of eight devices, in three shapes: many replicas (eight
layers in one block each), every layer written out as a block of its own, and prefill apart from decode (an edge for
each pair of replicas). Prints for each size the CPU seconds of the first call and of the best of the runs after it,
their ratios to `json.loads` in the same process, and the exponent of the validator's time against size (the slope of a
straight line through the logarithms). The very first call of the process also imports what validating needs: whole
processes are `whole_process.py`.

`json.loads` is timed twice: as a caller meets it, with Python's garbage collector on, and with the collector paused,
as it is for the validator. On large texts the collector takes more time than the parsing, so that the second is the
stricter yardstick: the ratios are to that one, `as met` to the other.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from shardwright import validate
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import gpu_count
from shardwright.tools.plan.reader import collector_paused

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
MODEL: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 1024,
    "moe_intermediate_size": 256,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "vocab_size": 1024,
    "max_position_embeddings": 65536,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
# Nodes of one phase of a replica: its fixed part, and each written-out block of layers.
NODES_OF_PHASE, NODES_OF_BLOCK = 4, 25
LAYERS_UNROLLED = 64


def built(layers: int, replicas: int, *, apart: bool = False) -> dict[str, Any]:
    """A plan of `replicas` replicas of eight devices; `apart`: half of them prefill, the other half decode."""
    phase = PhaseStrategy(tp=8, ep=8, replicas=replicas // 2 if apart else None)
    strategy = Strategy(dp=replicas, gpu_count=1, prefill=phase, decode=phase)
    strategy = strategy.model_copy(update={"gpu_count": gpu_count(strategy)})
    request = BuildRequest(
        model=ModelBlock(name="small", config={**MODEL, "num_hidden_layers": layers}),
        hardware=HardwareBlock(accelerator="h100-sxm", nodes=replicas, gpus_per_node=8),
        workload=WorkloadBlock(input_tokens=2048, output_tokens=64, concurrency=replicas),
        precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
        strategy=strategy,
    )
    return build_plan(request).model_dump(mode="json")


def unrolled(document: dict[str, Any]) -> dict[str, Any]:
    """`document` (one block a stage) with a block of its own for every layer."""
    parents = {node["id"]: node["parent"] for node in document["nodes"]}
    spans = {node["id"]: node["layers"] for node in document["nodes"] if node["type"] == "LayerBlockNode"}
    block_of: dict[str, str] = {block: block for block in spans}
    for node in document["nodes"]:
        walked = [node["id"]]
        while walked[-1] not in block_of and parents[walked[-1]] is not None:
            walked.append(parents[walked[-1]])
        if walked[-1] in block_of:
            block_of.update(dict.fromkeys(walked, block_of[walked[-1]]))

    def at(name: str, layer: int) -> str:
        return f"{name}@{layer}" if name in block_of else name

    nodes: list[dict[str, Any]] = []
    for node in document["nodes"]:
        block = block_of.get(node["id"])
        if block is None:
            nodes.append(node)
            continue
        for layer in range(spans[block][0], spans[block][1] + 1):
            span = {"layers": [layer, layer]} if node["id"] == block else {}
            nodes.append({**node, "id": at(node["id"], layer), "parent": at(node["parent"], layer), **span})
    edges: list[dict[str, Any]] = []
    for edge in document["edges"]:
        source, target = block_of.get(edge["source"]), block_of.get(edge["target"])
        inside = spans[source or target or ""] if source or target else [0, 0]
        # An edge into a block from outside leads to its first layer, one out of it comes from its last.
        first, last = inside
        layers = range(first, last + 1) if source and target else [last if source else first]
        edges += [{**edge, "source": at(edge["source"], at_), "target": at(edge["target"], at_)} for at_ in layers]
    for block, (first, last) in spans.items():
        edges += [
            {"source": at(block, layer), "target": at(block, layer + 1), "type": "data"} for layer in range(first, last)
        ]
    return {**document, "nodes": nodes, "edges": edges}


def with_replicas(nodes: int) -> dict[str, Any]:
    """About `nodes` nodes in replicas of eight layers in one block."""
    return built(8, max(2, round(nodes / (2 * (NODES_OF_PHASE + NODES_OF_BLOCK)))))


def with_layers(nodes: int) -> dict[str, Any]:
    """About `nodes` nodes in replicas whose layers are written out one by one."""
    layers = min(LAYERS_UNROLLED, max(1, round(nodes / (2 * NODES_OF_BLOCK))))
    return unrolled(built(layers, max(1, round(nodes / (2 * layers * NODES_OF_BLOCK)))))


def with_phases_apart(nodes: int) -> dict[str, Any]:
    """About `nodes` nodes in replicas of one phase each: the edges grow with the square of the replicas."""
    return built(8, 2 * max(1, round(nodes / (2 * (NODES_OF_PHASE + NODES_OF_BLOCK)))), apart=True)


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "replicas": with_replicas,
    "unrolled": with_layers,
    "disaggregated": with_phases_apart,
}
# Above this many nodes the edges between the phases pass the format's bound.
LARGEST_APART = 30_000


def time_s(work: Callable[[], object]) -> float:
    """CPU seconds of `work`, which waits for nothing: other load on the machine does not count."""
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


class Times(Struct, frozen=True):
    """CPU seconds for one text: the first validation, and the best of the runs of each."""

    first: float
    validate: float
    loads_collecting: float
    loads_paused: float


def times_of(text: str, runs: int) -> Times:
    """The times of `text`, those that are compared taken in turns."""
    first = time_s(lambda: validate(text))
    rows: list[tuple[float, float, float]] = []
    for _ in range(runs):
        with collector_paused():
            paused = time_s(lambda: json.loads(text))
        rows.append((time_s(lambda: validate(text)), time_s(lambda: json.loads(text)), paused))
    return Times(first, *(min(row[place] for row in rows) for place in range(3)))


def slope(sizes: list[int], times_s: list[float]) -> float:
    """The exponent of time against size: least squares over the logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(time_s) for time_s in times_s]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread if spread else math.nan


def measure(shape: str, sizes: list[int], runs: int) -> None:
    """Print the table of one shape.

    Raises:
        SystemExit: a plan of the benchmark is not valid (a time of something that failed says nothing).
    """
    columns = ("nodes", "edges", "MB", "json.loads", "first call", "best", "ratio", "first", "as met")
    print(f"\n{shape}\n" + " ".join(f"{column:>10}" for column in columns))
    counts: list[int] = []
    times_s: list[float] = []
    for size in sizes:
        document = SHAPES[shape](size)
        nodes, edges, text = len(document["nodes"]), len(document["edges"]), json.dumps(document)
        del document
        times = times_of(text, runs)
        report = validate(text)
        if not report.valid:
            raise SystemExit(f"the {shape} plan of {nodes} nodes is not valid: {report.violations[0].message}")
        figures = (f"{times.loads_paused:.4f} s", f"{times.first:.3f} s", f"{times.validate:.3f} s")
        ratios = (times.validate / times.loads_paused, times.first / times.loads_paused,
                  times.validate / times.loads_collecting)  # fmt: skip
        cells = (str(nodes), str(edges), f"{len(text) / 1e6:.1f}", *figures, *(f"{ratio:.1f}" for ratio in ratios))
        print(" ".join(f"{cell:>10}" for cell in cells), flush=True)
        # Where edges outgrow nodes, the size is what is read: both.
        counts.append(nodes + edges)
        times_s.append(times.validate)
    if len(counts) > 1:
        print(f"time grows as size to the power of {slope(counts, times_s):.2f} (size: nodes + edges)")


def main() -> None:
    """Print one table for each shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("sizes", type=int, nargs="*", help=f"nodes of each plan ({' '.join(map(str, SIZES))})")
    parser.add_argument("--shape", choices=SHAPES, help="one shape only")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each")
    arguments = parser.parse_args()
    sizes = sorted(arguments.sizes or SIZES)
    print(f"Python {platform.python_version()}, best of {max(1, arguments.runs)}")
    for shape in [arguments.shape] if arguments.shape else SHAPES:
        bounded = [size for size in sizes if shape != "disaggregated" or size <= LARGEST_APART]
        measure(shape, bounded, max(1, arguments.runs))


if __name__ == "__main__":
    main()
