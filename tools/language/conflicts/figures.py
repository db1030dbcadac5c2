"""The figures that a request may state: what each is called, and what it cannot be."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...input import bounds
from ...input.bounds import Bounds

# Ranges by the field that they are of.
RANGES = {"input_tokens_range": "input_tokens", "output_tokens_range": "output_tokens"}


class _Figure(Struct, frozen=True):
    label: str
    bounds: Bounds
    whole: bool = False


# The widest figures that the plan document can hold; what lies outside is impossible, not unlikely.
_FIGURES: dict[str, _Figure] = {
    "nodes": _Figure("number of nodes", bounds.DEGREE, whole=True),
    "gpus_per_node": _Figure("GPUs per node", bounds.DEGREE, whole=True),
    "gpus": _Figure("number of GPUs", bounds.DEGREE, whole=True),
    "input_tokens": _Figure("input length in tokens", bounds.TOKENS, whole=True),
    "output_tokens": _Figure("output length in tokens", bounds.TOKENS, whole=True),
    "max_batch": _Figure("most requests of a step", bounds.REQUESTS, whole=True),
    "prefill_chunk_tokens": _Figure("most tokens of a step", bounds.TOKENS, whole=True),
    "concurrency": _Figure("concurrency", bounds.REQUESTS, whole=True),
    "request_rate": _Figure("request rate", bounds.REQUESTS_PER_S),
    "min_tokens_per_second": _Figure("throughput in tokens/s", bounds.TOKENS_PER_S),
    "prefix_cache_hit_rate": _Figure("prefix cache hit rate as a share", bounds.SHARE),
    "expert_imbalance": _Figure("load of the busiest experts over the mean", bounds.IMBALANCE),
    "ttft_ms_max": _Figure("TTFT in ms", bounds.LATENCY_MS),
    "tpot_ms_max": _Figure("TPOT in ms", bounds.LATENCY_MS),
    "end_to_end_ms_max": _Figure("end-to-end time in ms", bounds.LATENCY_MS),
    "memory_utilization": _Figure("share of memory to use", bounds.USABLE_SHARE),
    "usd_per_gpu_hour": _Figure("price per GPU hour", bounds.USD),
    "intra_node_bw_gb_s": _Figure("intra-node bandwidth in GB/s", bounds.BANDWIDTH_GB_S),
    "inter_node_bw_gb_s": _Figure("inter-node bandwidth in GB/s", bounds.BANDWIDTH_GB_S),
    "degree": _Figure("parallel degree", bounds.DEGREE, whole=True),
}


def impossible(name: str, value: Any, words: str) -> str | None:
    """Why a field cannot have the value that `words` state; `None` where it can."""
    if name in RANGES:
        ends = (impossible(RANGES[name], end, words) for end in value)
        return next((reason for reason in ends if reason is not None), None)
    figure = _FIGURES.get(name)
    if figure is None or (figure.bounds.hold(value) and not (figure.whole and value != int(value))):
        return None
    least, most = figure.bounds
    kind = "a whole number" if figure.whole else "a number"
    return (
        f"impossible {figure.label}: {words!r} says {plain(value)}; "
        f"it must be {kind} from {plain(least)} to {plain(most)}"
    )


def typed(name: str, value: Any) -> Any:
    """The value of a field as the type that the field has."""
    if name in RANGES:
        return tuple(typed(RANGES[name], end) for end in value)
    figure = _FIGURES.get(name)
    return value if figure is None else int(value) if figure.whole else float(value)


def label(name: str) -> str:
    """A field of `Said` in words."""
    if name.startswith("strategy."):
        _, phase, degree = name.split(".")
        return f"{degree} of {'prefill and decode' if phase == 'both' else phase}"
    return _FIGURES[name].label if name in _FIGURES else name.replace("_", " ")


def plain(value: Any) -> str:
    """A value as messages show it."""
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value)
