"""Cached times of one plan of a deployment serve the next, and change none of its figures."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from shardwright.tools.caches import Caches, Recent, entries
from shardwright.tools.performance.estimate import estimate_layout

from .conftest import LayoutOf

DENSE = "Llama-3.1-8B"
# Consecutive questions about one deployment: degrees, and options of the layout.
ASKED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"tp": 2, "tp_ffn": 2}, {"concurrency": 4}),
    ({"tp": 2, "tp_ffn": 2}, {"concurrency": 16}),
    ({"tp": 2, "tp_ffn": 2}, {"concurrency": 4, "prefix_cache_hit_rate": 0.5}),
    ({"tp": 2, "tp_ffn": 2}, {"concurrency": 4, "serving": {"prefill_chunk_tokens": 512}}),
    ({"tp": 2, "tp_ffn": 2}, {"concurrency": 4, "request_rate": 2.0}),
    ({"pp": 2}, {"concurrency": 4}),
    ({"tp": 2, "tp_ffn": 2}, {"concurrency": 4, "dp": 2}),
    ({"tp": 2, "tp_ffn": 2}, {"concurrency": 4, "dp": 2, "decode": {"tp": 2, "tp_ffn": 2, "replicas": 1}}),
]


def test_figures_are_those_of_a_setting_that_nothing_was_asked_of(layout_of: LayoutOf) -> None:
    for degrees, asked in ASKED:
        if "decode" in asked:
            degrees = {**degrees, "replicas": 1}
        layout = layout_of(DENSE, degrees, layers=2, **asked)
        alone = layout.with_setting(replace(layout.setting, caches={}))
        assert estimate_layout(layout) == estimate_layout(alone)


@pytest.mark.parametrize(
    "more", [{}, {"concurrency": 9}, {"ttft_ms_max": 500.0, "objective": "throughput"}], ids=["same", "load", "limits"]
)
def test_the_number_of_requests_and_the_limits_change_nothing_of_what_is_kept(
    layout_of: LayoutOf, more: dict[str, Any]
) -> None:
    assert layout_of(DENSE, layers=3).setting.caches is layout_of(DENSE, layers=3, **more).setting.caches


@pytest.mark.parametrize(
    "more",
    [
        {"layers": 4}, {"accelerator": "h200-sxm"}, {"nodes": 2}, {"weights": "fp8"}, {"kv_cache": "fp8"},
        {"input_tokens": 1024}, {"prefix_cache_hit_rate": 0.5}, {"expert_imbalance": 1.5}, {"request_rate": 1.0},
        {"relaxations": ("vocab_parallel",)}, {"memory_utilization": 0.8}, {"serving": {"engine": "vllm"}},
    ],
    ids=lambda more: next(iter(more)),
)  # fmt: skip
def test_nothing_is_kept_of_another_deployment(layout_of: LayoutOf, more: dict[str, Any]) -> None:
    setting = layout_of(DENSE, layers=3).setting
    assert setting.caches is not layout_of(DENSE, **{"layers": 3, **more}).setting.caches


def test_only_the_last_settings_are_kept_and_few_that_are_full() -> None:
    recent = Recent[Caches](3, 10, entries)
    cached: list[Caches] = [{} for _ in range(4)]
    for caches in cached:
        assert recent.like(caches, lambda first, second: first is second) is caches

    def keeps(caches: Caches) -> bool:
        return recent.like({}, lambda first, _: first is caches) is caches

    assert not keeps(cached[0]) and keeps(cached[3])
    cached[3]["full"] = dict.fromkeys(range(11))  # type: ignore[index]
    assert keeps(cached[3])
    assert not keeps(cached[2])
