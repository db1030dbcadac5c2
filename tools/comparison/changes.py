"""What differs between two plans: the question, the decisions, and the figures with ratio and better side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic import BaseModel

from ..errors import InputError
from ..performance.layout import layout_from_view
from ..plan.canonical import content_hash
from ..plan.document import PHASES, Phase, PhaseStrategy
from ..plan.lengths import Arrivals, RequestLengths
from ..plan.performance import PerformanceEstimate
from ..plan.prefixes import SharedPrefixes
from ..plan.reader import ReadDocument
from .result import BranchShape, Change, ComparedFigure, Plain, Side, Unit
from .side import Judged

_DEGREES = {
    "replicas": "replicas",
    "pp": "PP",
    "sp": "SP",
    "attention_dp": "attention DP",
    "kv_sp": "KV SP",
    "tp": "TP",
    "tp_ffn": "TP of the FFN",
    "ep": "EP",
    "tp_expert": "TP in experts",
    "sp_kind": "kind of SP",
}


_SETTINGS = {
    "max_batch": "requests that a scheduler runs at once",
    "step_tokens": "tokens of a step",
    "memory_utilization": "share of a GPU's memory",
    "overlap": "overlap of two batches",
    "microbatches": "microbatches",
    "kv_offload": "host memory",
    "flags": "flags that a plan does not say",
}
# What may differ between two engines though nobody stated it.
OF_ENGINES = frozenset(("engine", "engine version", "relaxations"))
ENGINE_DEFAULTS = frozenset((_SETTINGS["max_batch"], _SETTINGS["step_tokens"]))


def questions(a: Side, b: Side) -> Iterator[Change]:
    """Yield where the two plans were asked different things: model, hardware, engine, workload, precision."""
    pairs: list[tuple[str, Plain, Plain]] = [
        ("model", a.model, b.model),
        ("accelerator", a.accelerator, b.accelerator),
        ("nodes", a.nodes, b.nodes),
        ("GPUs per node", a.gpus_per_node, b.gpus_per_node),
        ("engine", a.engine, b.engine),
        ("engine version", a.engine_version, b.engine_version),
        ("relaxations", ", ".join(a.relaxations) or None, ", ".join(b.relaxations) or None),
        ("constraints", "; ".join(a.constraints) or None, "; ".join(b.constraints) or None),
    ]
    for block in ("workload", "precision"):
        stated_a, stated_b = (_stated(getattr(side, block)) for side in (a, b))
        pairs += [
            (f"{block} {name}", _plain(stated_a.get(name)), _plain(stated_b.get(name)))
            for name in dict.fromkeys((*stated_a, *stated_b))
        ]
    yield from _differing(pairs)


def _differing(pairs: Iterable[tuple[str, Plain, Plain]]) -> Iterator[Change]:
    return (Change(what=what, a=left, b=right) for what, left, right in pairs if left != right)


def _stated(block: BaseModel) -> dict[str, Any]:
    """The fields of a block as in JSON, but lengths, prefixes and arrivals as objects; no concurrency beside a rate."""
    unserialized = {name: getattr(block, name, None) for name in ("lengths", "prefixes", "arrivals")}
    derived = {"concurrency"} if getattr(block, "request_rate", None) is not None else set[str]()
    stated = block.model_dump(mode="json", exclude=derived)
    return stated | {name: value for name, value in unserialized.items() if value is not None}


def _plain(value: Any) -> Plain:
    if isinstance(value, RequestLengths | SharedPrefixes | Arrivals):
        return str(value)
    return " to ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else value


def changes(a: Side, b: Side) -> Iterator[Change]:
    """Yield what was decided differently: replicas and GPUs, degrees of each phase, stages, experts, settings."""
    pairs: list[tuple[str, Plain, Plain]] = [("DP", a.strategy.dp, b.strategy.dp), ("GPUs", a.gpus, b.gpus)]
    for phase in PHASES:
        pairs += _phase_pairs(phase, getattr(a.strategy, phase), getattr(b.strategy, phase))
        shapes = [next((shape for shape in side.layout if shape.phase == phase), None) for side in (a, b)]
        for what, name in (
            ("stages", "stages"),
            ("layers of each stage", "layers_per_stage"),
            ("GPUs of each stage", "gpus_per_stage"),
            ("experts on a GPU", "experts_per_gpu"),
        ):
            left, right = (_shape_value(shape, name) for shape in shapes)
            pairs.append((f"{phase}: {what}", left, right))
    settings_a, settings_b = (side.settings.model_dump() for side in (a, b))
    # Where nothing is stated each of two engines has its default: the difference is then the engine's.
    pairs += [(title, settings_a.get(name), settings_b.get(name)) for name, title in _SETTINGS.items()]
    yield from _differing(pairs)


def differ_unlisted(first: ReadDocument, second: ReadDocument) -> bool:
    """Whether two plans differ in what `changes` does not list: operators on GPUs, the model's config, links.

    Graphs are compared by what they place, not by how they are written: a vocabulary that the engine splits by itself
    may be shown split or whole.
    """
    plans = first.plan, second.plan
    if plans[0] is None or plans[1] is None:
        return True
    if (plans[0].model.config, plans[0].hardware) != (plans[1].model.config, plans[1].hardware):
        return True
    try:
        layouts = [layout_from_view(read.view) for read in (first, second)]
    except InputError:
        return content_hash(plans[0]) != content_hash(plans[1])
    return layouts[0].replicas != layouts[1].replicas


def _phase_pairs(phase: Phase, a: PhaseStrategy, b: PhaseStrategy) -> list[tuple[str, Plain, Plain]]:
    pairs: list[tuple[str, Plain, Plain]] = []
    for name, title in _DEGREES.items():
        # An unstated degree counts as 1; unstated replicas and kinds of SP as `None`.
        absent = None if name in ("replicas", "sp_kind") else 1
        left, right = (getattr(strategy, name) for strategy in (a, b))
        pairs.append((f"{phase}: {title}", absent if left is None else left, absent if right is None else right))
    return pairs


def _shape_value(shape: BranchShape | None, name: str) -> Plain:
    if shape is None:
        return None
    if name == "stages":
        return len(shape.layers_per_stage)
    value: int | tuple[int, ...] = getattr(shape, name)
    if isinstance(value, int):
        return value
    return value[0] if len(set(value)) == 1 else "/".join(map(str, value))


# Figures within this relative difference count as the same, as candidates of a search within it are a tie.
SAME_SHARE = 0.005

# Title, unit, and whether more is better (`None`: neither).
_FIGURES: dict[str, tuple[str, Unit, bool | None]] = {
    "ttft_ms": ("TTFT", "ms", False),
    "tpot_ms": ("TPOT", "ms", False),
    "end_to_end_ms": ("end to end", "ms", False),
    "ttft_p99_ms": ("TTFT, p99", "ms", False),
    "tpot_p99_ms": ("TPOT, p99", "ms", False),
    "output_tokens_per_s": ("output tokens/s", "tokens/s", True),
    "output_tokens_per_s_per_gpu": ("output tokens/s per GPU", "tokens/s", True),
    "weights_bytes": ("weights, fullest GPU", "bytes", False),
    "kv_cache_bytes": ("KV cache, fullest GPU", "bytes", None),
    "memory_bytes": ("memory in all, fullest GPU", "bytes", False),
    "usable_bytes": ("memory that may be used, of that GPU", "bytes", None),
    "max_concurrency": ("requests that fit beside its terms", "requests", True),
    "held_requests": ("requests that the engine's cache holds", "requests", True),
}


def figures(first: Judged, second: Judged) -> Iterator[ComparedFigure]:
    """Yield every figure that at least one of the two plans has."""
    yield _compared("gpus", "GPUs used", "GPUs", (first.side.gpus, second.side.gpus), more_is_better=False)
    a, b = (dict(_named_figures(judged.estimate)) for judged in (first, second))
    for name, (title, unit, more_is_better) in _FIGURES.items():
        if a.get(name) is not None or b.get(name) is not None:
            yield _compared(name, title, unit, (a.get(name), b.get(name)), more_is_better=more_is_better)
    costs = [None if judged.estimate is None else judged.estimate.cost for judged in (first, second)]
    billed_a, billed_b = (None if cost is None else cost.billed_gpus for cost in costs)
    # Shown where a cost bills GPUs that are not used.
    if (billed_a or 0) > first.side.gpus or (billed_b or 0) > second.side.gpus:
        yield _compared("billed_gpus", "GPUs billed", "GPUs", (billed_a, billed_b), more_is_better=False)
    units = {cost.unit for cost in costs if cost is not None}
    # Money and GPU-seconds cannot be compared.
    if len(units) == 1:
        unit: Unit = "USD" if units == {"usd"} else "GPU-seconds"
        left, right = (None if cost is None else cost.per_million_output_tokens for cost in costs)
        title = "cost of a million output tokens"
        yield _compared("cost_per_million_output_tokens", title, unit, (left, right), more_is_better=False)


def _named_figures(estimate: PerformanceEstimate | None) -> Iterator[tuple[str, float | None]]:
    if estimate is None:
        return
    latency, rates, memory = estimate.latency, estimate.throughput, estimate.memory
    percentiles = latency.percentiles
    yield from (("tpot_ms", latency.tpot_ms), ("tpot_p99_ms", percentiles.tpot_ms.p99))
    if not estimate.load.saturated:  # else they only grow with the length of the run
        yield from (("ttft_ms", latency.ttft_ms), ("end_to_end_ms", latency.end_to_end_ms))
        yield "ttft_p99_ms", percentiles.ttft_ms.p99
    yield "output_tokens_per_s", rates.dp_scaled_tokens_per_s
    yield "output_tokens_per_s_per_gpu", rates.output_tokens_per_s_per_gpu
    yield from (("max_concurrency", memory.max_concurrency), ("held_requests", memory.kv_cache_capacity_requests))
    if memory.per_device:
        fullest = max(memory.per_device, key=lambda device: device.total_bytes)
        yield from (("weights_bytes", fullest.weights_bytes), ("kv_cache_bytes", fullest.kv_cache_bytes))
        yield from (("memory_bytes", fullest.total_bytes), ("usable_bytes", fullest.usable_bytes))


def _compared(
    name: str, title: str, unit: Unit, pair: tuple[float | None, float | None], *, more_is_better: bool | None
) -> ComparedFigure:
    a, b = pair
    ratio = None if a is None or b is None or a <= 0 else b / a
    better = None
    if a is not None and b is not None and more_is_better is not None:
        same = abs(b - a) <= SAME_SHARE * max(abs(a), abs(b))
        better = "same" if same else "b" if (b > a) == more_is_better else "a"
    return ComparedFigure(name=name, title=title, unit=unit, a=a, b=b, ratio=ratio, better=better)
