"""Times of dispatch and combine of experts: properties of every group, and DeepEP's published numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.calibration.forms.exchange import distinct_destinations, leaving_bytes
from shardwright.tools.calibration.kernel_times import KernelTimes
from shardwright.tools.calibration.shapes import ExpertExchange

from .chips import faster, speedups, times_of
from .test_collective import networked

PUBLISHED = json.loads((Path(__file__).parents[1] / "cases" / "published_kernels.json").read_text(encoding="utf-8"))
HIDDEN, TOP_K = 7168, 8
COPY_BYTES = {"dispatch": HIDDEN * (1 + 4 / 128), "combine": HIDDEN * 2.0}


@st.composite
def exchanges(draw: st.DrawFn) -> ExpertExchange:
    """Any exchange over 1 to 32 domains of 2 to 8 ranks."""
    nodes = draw(st.integers(1, 32))
    return ExpertExchange(
        phase=draw(st.sampled_from(("dispatch", "combine"))),
        tokens=draw(st.floats(0.0, 32768.0)),
        copy_bytes=draw(st.floats(100.0, 40000.0)),
        top_k=draw(st.integers(1, 16)),
        ranks=nodes * draw(st.integers(2, 8)),
        nodes=nodes,
        low_latency=draw(st.booleans()),
        most_nodes=draw(st.integers(0, 8)),
    )


@given(networked, exchanges())
def test_no_exchange_beats_its_links(name: str, kernel: ExpertExchange) -> None:
    times = times_of(name)
    inside, outside = leaving_bytes(kernel)
    assert times.chip.link_bytes_s is not None and times.chip.nic_bytes_s is not None
    least = max(inside / times.chip.link_bytes_s, outside / times.chip.nic_bytes_s)
    assert times.seconds(kernel).seconds >= least


@given(networked, exchanges(), speedups, st.floats(1.0, 10.0))
def test_faster_links_never_slow_and_more_tokens_never_speed_an_exchange(
    name: str, kernel: ExpertExchange, links: float, more: float
) -> None:
    times = times_of(name)
    taken = times.seconds(kernel).seconds
    better = KernelTimes(faster(times.chip, links=links), times.profile)
    assert better.seconds(kernel).seconds <= taken * (1 + 1e-9)
    assert times.seconds(replace(kernel, tokens=kernel.tokens * more)).seconds >= taken * (1 - 1e-9)


@pytest.mark.parametrize("row", PUBLISHED["low_latency"], ids=lambda row: f"{row['phase']}-{row['ranks']}")
def test_published_low_latency_times_on_h800_are_met_within_30_percent(row: dict[str, float | str]) -> None:
    ranks, phase = int(row["ranks"]), str(row["phase"])
    kernel = ExpertExchange(phase, 128, COPY_BYTES[phase], TOP_K, ranks, ranks // 8, low_latency=True)  # type: ignore[arg-type]  # read from a table
    assert times_of("h800", "sglang").seconds(kernel).seconds * 1e6 == pytest.approx(float(row["us"]), rel=0.30)


@pytest.mark.parametrize("row", PUBLISHED["normal"], ids=lambda row: f"{row['phase']}-{row['ranks']}")
def test_published_throughput_rates_on_h800_are_met_within_25_percent(row: dict[str, float | str]) -> None:
    ranks, phase = int(row["ranks"]), str(row["phase"])
    nodes = ranks // 8
    kernel = ExpertExchange(phase, 4096, COPY_BYTES[phase], TOP_K, ranks, nodes, low_latency=False, most_nodes=4)  # type: ignore[arg-type]  # read from a table
    places = float(nodes if nodes > 1 else ranks)
    # The publication counts the bytes to every place, the own one included.
    counted = 4096 * COPY_BYTES[phase] * min(distinct_destinations(places, TOP_K), 4.0 if nodes > 1 else places)
    rate = counted / times_of("h800", "sglang").seconds(kernel).seconds / 1e9
    assert rate == pytest.approx(float(row["gb_s"]), rel=0.25)


def test_routing_that_is_held_to_few_nodes_sends_less_between_them() -> None:
    anywhere = ExpertExchange("dispatch", 4096, 7392, 8, 64, 8, low_latency=False)
    limited = replace(anywhere, most_nodes=4)
    times = times_of("h100-sxm")
    assert leaving_bytes(limited)[1] < leaving_bytes(anywhere)[1]
    assert times.seconds(limited).seconds < times.seconds(anywhere).seconds
