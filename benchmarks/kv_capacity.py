"""KV-cache capacity as the product predicts it, against what engines logged at start-up.

    python benchmarks/kv_capacity.py kv_logs.csv [--worst 12] [--left-out]

One row of the table is one quantity of one start of an engine. Every start whose model and accelerator the catalogues
know is laid out as the engine ran it, and its KV tokens, KV bytes and weights are predicted by the code that plans go
by; batched tokens and sequences that a row's notes state are the plan's. Rows marked SUSPECT, and those
that do not state the format of their cache, are left out. With `--left-out` the engine's constants that such logs tell
(bytes per logit, memory outside torch) are those of the starts of every other model and accelerator.
"""

from __future__ import annotations

import argparse
import csv
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from shardwright.tools.catalog.accelerators import Accelerator, DensePeakTFLOPS
from shardwright.tools.catalog.architecture import Architecture
from shardwright.tools.catalog.dtypes import DType
from shardwright.tools.catalog.hardware import find_accelerator, hardware_facts
from shardwright.tools.catalog.models import find_model
from shardwright.tools.engines.engine import MemoryUse
from shardwright.tools.engines.names import engine_name
from shardwright.tools.errors import InputError
from shardwright.tools.fidelity.situation import activations_of, dtype_of
from shardwright.tools.performance.budget import DeviceTerms, layout_terms
from shardwright.tools.performance.capacity import logged_tokens, room_bytes
from shardwright.tools.performance.layout import LoadedLayout, make_layout, make_setting
from shardwright.tools.plan.document import (
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    Relaxation,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import gpu_count

GIB = 2**30
CLOSE = 0.12
QUANTITIES = ("kv_tokens", "kv_gib", "weights_gib")
LIBRARY_TERMS = ("activation_gib", "non_torch_gib")
# Formats that tables name by their method, and caches whose rows name none.
WEIGHTS: dict[str, DType] = {"bnb": "int4", "awq": "int4"}


class Start(Struct, frozen=True):
    """One start of an engine: the table's columns, and what was logged."""

    columns: dict[str, str]
    logged: dict[str, float]

    @property
    def name(self) -> str:
        """For people: the model on its GPUs under the engine."""
        row = self.columns
        degrees = " ".join(f"{key}{row[key]}" for key in ("tp", "pp", "ep", "dp") if row[key] != "1")
        return f"{row['id']} {row['model']} {row['gpu']} {degrees} {row['engine']} {row['engine_version']}"

    def noted(self, words: str) -> int | None:
        """The number that stands behind `words` in the notes."""
        match = re.search(rf"{words} (\d+)", self.row["notes"])
        return None if match is None else int(match[1])


def starts_of(path: Path) -> list[Start]:
    """The starts of the table, SUSPECT rows left out."""
    by_name: dict[str, Start] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["notes"].startswith("SUSPECT") or row["quantity"] not in (*QUANTITIES, *LIBRARY_TERMS):
                continue
            name = row["id"].rpartition("-")[0]
            start = by_name.setdefault(name, Start(row | {"id": name}, {}))
            start.logged[row["quantity"]] = float(row["value"])
    return [
        start
        for start in by_name.values()
        if start.columns["memory_utilization"] and start.columns["kv_dtype"] != "not stated"
    ]


def accelerator_of(start: Start) -> Accelerator:
    """The accelerator of a start; one that the log does not name has the memory that it prints, and no class."""
    written = start.columns["gpu"]
    if written.startswith("unnamed"):
        total = re.search(r"([\d.]+) Gi?B", written)
        if total is None:
            raise InputError(f"{written}: no memory is stated")
        peaks = DensePeakTFLOPS(bf16=1.0, fp16=1.0)
        return Accelerator(
            id="unnamed", memory_gib_to_processes=float(total[1]), memory_gib_reported=float(total[1]),
            scale_up_domain_accelerators=1, dense_peak_tflops=peaks,
        )  # fmt: skip
    return find_accelerator(re.sub(r"\s*(?:Blackwell-|class|\().*", "", written).replace("MI35x", "MI355X"))


def precision_of(start: Start, accelerator: Accelerator, architecture: Architecture) -> PrecisionBlock:
    """The number formats of a start; a cache that is not stated has the 16 bits of the activations."""
    written = start.columns["weights_dtype"].lower()
    prefix = re.split(r"[-\s/(]", written)[0]
    weights = WEIGHTS.get(prefix) or dtype_of(written) or architecture.native_precision
    if "mixed" in written or "experts" in written:
        weights = architecture.native_precision
    cache = start.columns["kv_dtype"].replace("int8_per_token_head", "int8").replace("_", " ")
    wide: DType = "fp16" if weights == "fp16" else "bf16"
    return PrecisionBlock(
        weights=weights, kv_cache=dtype_of(cache) or wide, activations=activations_of(weights, accelerator)
    )  # fmt: skip


def strategy_of(start: Start, architecture: Architecture) -> Strategy:
    """The degrees of a start: `dp` with experts is attention in groups, without them replicas; one replica is asked."""
    tp, pp, ep, dp = (int(start.columns[key]) for key in ("tp", "pp", "ep", "dp"))
    grouped = dp > 1 and architecture.is_moe
    width = tp * dp if grouped else tp
    degrees = PhaseStrategy(
        pp=pp,
        tp=tp,
        ep=ep if architecture.is_moe else 1,
        tp_ffn=tp if architecture.has_split_ffn else 1,
        attention_dp=dp if grouped else None,
        tp_expert=width // ep if architecture.is_moe and width > ep else None,
    )
    draft = Strategy(dp=1, gpu_count=1, prefill=degrees, decode=degrees)
    return draft.model_copy(update={"gpu_count": gpu_count(draft)})


def layout_of(start: Start) -> LoadedLayout:
    """The layout of a start, for one request of the longest length that it serves.

    Raises:
        InputError: a name or a fact is not known.
    """
    part = accelerator_of(start)
    architecture = find_model(re.sub(r"\s*\(.*", "", start.columns["model"])).architecture()
    strategy = strategy_of(start, architecture)
    node = min(8, strategy.gpu_count)
    facts = hardware_facts(part, -(-strategy.gpu_count // node), node)
    length = int(start.columns["max_model_len"] or min(architecture.max_position_embeddings, 131_072))
    relaxations: tuple[Relaxation, ...] = ("vocab_parallel", "tp_in_expert", "attention_dp")
    serving = ServingBlock(
        engine=start.columns["engine"],
        engine_version=start.columns["engine_version"],
        prefill_chunk_tokens=start.noted("batched tokens") or start.noted("chunked prefill"),
        max_batch=start.noted("seqs") or start.noted("max_running(?:_requests)?"),
    )
    setting = make_setting(
        replace(architecture, max_position_embeddings=max(architecture.max_position_embeddings, length)),
        facts,
        WorkloadBlock(input_tokens=max(1, length - 1), output_tokens=1),
        precision_of(start, part, architecture),
        PolicyBlock(
            relaxations=relaxations, memory_utilization=float(start.columns["memory_utilization"])
        ),
        serving,
    )  # fmt: skip
    return make_layout(setting, strategy)


def terms_of(layout: LoadedLayout) -> list[DeviceTerms]:
    """The terms of each kind of device."""
    return [device_terms for _, terms in layout_terms(layout) for device_terms in terms]


def predicted(layout: LoadedLayout, use: MemoryUse) -> dict[str, float]:
    """The predicted value of each quantity, with `use` as the engine's constants."""
    room, other_room = (
        min(room_bytes(layout.setting, terms, memory_use) for terms in terms_of(layout)) for memory_use in (None, use)
    )  # fmt: skip
    return {
        "kv_tokens": (logged_tokens(layout) or 0) * max(0.0, other_room) / max(1.0, room),
        "kv_gib": other_room / GIB,
        "weights_gib": max(terms.weights for terms in terms_of(layout)) / GIB,
    }


class LeftOut:
    """The engine's constants by what every other pair of model and accelerator logged: medians, where there are any."""

    def __init__(self, starts: Iterable[tuple[Start, LoadedLayout]]) -> None:
        self.logged: dict[tuple[str, float], list[tuple[tuple[str, str], float]]] = defaultdict(list)
        for start, layout in starts:
            use, ranks = layout.setting.memory_use, len(layout.devices)
            terms = max(terms_of(layout), key=lambda device_terms: device_terms.stages[0].has_head)
            batch = layout.setting.batch_of(use)
            architecture = layout.setting.architecture
            if (activation := start.logged.get("activation_gib")) is not None and use.logit_bytes:
                token = 2 * architecture.hidden_size * layout.setting.activation_bytes
                passes = (float(terms.stages[0].bytes_per_token) if architecture.is_moe else token) * batch.tokens
                logit = (activation * GIB - passes) / (batch.sequences * architecture.vocab_size)
                self.logged["logit_bytes", use.logit_bytes].append((self.pair(start), logit))
            if (outside := start.logged.get("non_torch_gib")) is not None:
                field = self.field(layout, ranks)
                self.logged[field, getattr(use, field)].append((self.pair(start), outside * GIB))

    @staticmethod
    def pair(start: Start) -> tuple[str, str]:
        """The pair of model and accelerator, which is left out as a whole."""
        return start.columns["model"].rpartition("/")[2].lower(), start.columns["gpu"]

    @staticmethod
    def field(layout: LoadedLayout, ranks: int) -> str:
        """The name of the constant for memory outside torch."""
        if ranks == 1:
            return "alone_bytes"
        linked = layout.setting.hardware.accelerator.scale_up_domain_accelerators != 1
        return "linked_bytes" if linked else "group_bytes"

    def use(self, start: Start, layout: LoadedLayout) -> MemoryUse:
        """The constants that `start` is predicted with."""
        use = layout.setting.memory_use
        changed: dict[str, float] = {}
        for field in ("logit_bytes", self.field(layout, len(layout.devices))):
            logged = self.logged.get((field, getattr(use, field)), [])
            others = [value for pair, value in logged if pair != self.pair(start)]
            if others:
                changed[field] = statistics.median(others)
        return replace(use, **changed)


def kinds_of(start: Start, layout: LoadedLayout) -> Iterator[str]:
    """The classes that a start is shown under: its engine and generation, the kind of model, its weights."""
    engine = engine_name(start.columns["engine"])
    yield f"{engine} {layout.setting.engine.entry.generation}"
    attention = [layer.attention for layer in layout.setting.architecture.layers if layer.attention is not None]
    if any(spec.state_elements for spec in attention):
        yield "linear or compressed layers"
    elif any(spec.window_tokens for spec in attention):
        yield "sliding windows"
    elif any(spec.latent for spec in attention):
        yield "latent attention"
    else:
        yield "plain attention"
    yield "16-bit weights" if layout.setting.precision.weights in ("bf16", "fp16") else "quantised weights"
    yield "two ranks or more" if len(layout.devices) > 1 else "one rank"


def summary(name: str, ratios: Iterable[float]) -> str:
    """One line: how many, median of predicted over logged, and the share that is close."""
    ranked = sorted(ratios)
    near = sum(abs(ratio - 1) <= CLOSE for ratio in ranked) / len(ranked)
    spread = f"{ranked[len(ranked) // 10]:.2f} to {ranked[-1 - len(ranked) // 10]:.2f}"
    return f"{name:34} {len(ranked):4} {statistics.median(ranked):7.3f} {near:6.0%}   {spread}"


def laid_out(starts: Iterable[Start], unknown: Counter[str]) -> list[tuple[Start, LoadedLayout]]:
    """The starts that the catalogues know, and in `unknown` why the others are not laid out."""
    layouts: list[tuple[Start, LoadedLayout]] = []
    for start in starts:
        try:
            layouts.append((start, layout_of(start)))
        except InputError as error:
            unknown[str(error).split(";")[0]] += 1
    return layouts


def report(starts: Iterable[Start], worst: int, *, is_left_out: bool) -> None:
    """Print the table."""
    ratios: dict[str, dict[str, list[float]]] = {quantity: defaultdict(list) for quantity in QUANTITIES}
    listed: list[tuple[float, str]] = []
    unknown: Counter[str] = Counter()
    layouts = laid_out(starts, unknown)
    left_out = LeftOut(layouts)
    for start, layout in layouts:
        expected = predicted(layout, left_out.use(start, layout) if is_left_out else layout.setting.memory_use)
        for quantity in QUANTITIES:
            if quantity not in start.logged:
                continue
            ratio = expected[quantity] / start.logged[quantity]
            for kind in ("all", *kinds_of(start, layout)):
                ratios[quantity][kind].append(ratio)
            if quantity == "kv_tokens":
                listed.append((ratio, f"{ratio:6.2f}  {start.name}"))
    for quantity, by_kind in ratios.items():
        print(f"{quantity + ', predicted / logged':34} rows  median within  80% lie in")
        for kind in sorted(by_kind, key=lambda name: (name != "all", name)):
            print(summary(kind, by_kind[kind]))
        print()
    listed.sort(key=lambda entry: -abs(entry[0] - 1))
    print("furthest off (KV tokens)", *(line for _, line in listed[:worst]), sep="\n")
    print(f"\nnot predicted: {sum(unknown.values())} starts", *unknown, sep="\n  ")


def main() -> None:
    """Read the table and print how near the predictions are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--worst", type=int, default=12)
    parser.add_argument("--left-out", action="store_true")
    options = parser.parse_args()
    report(starts_of(options.table), options.worst, is_left_out=options.left_out)


if __name__ == "__main__":
    main()
