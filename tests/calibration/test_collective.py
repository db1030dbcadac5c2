"""Times of collectives: properties of every group, and figures of the tables that they were fitted to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.calibration.kernel_times import KernelTimes
from shardwright.tools.calibration.shapes import Collective, CollectiveOp
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import MissingFieldError

from .chips import CARRIED, MEASURED, faster, frameworks, speedups, times_of

OPS: tuple[CollectiveOp, ...] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
NETWORKED = tuple(
    name for name in (*MEASURED, *CARRIED) if find_accelerator(name).typical_nic_gb_s_unidirectional_per_accelerator
)
networked = st.sampled_from(NETWORKED)
MIB = 2.0**20


@st.composite
def collectives(draw: st.DrawFn, least_nodes: int = 1, most_nodes: int = 64) -> Collective:
    """Any operation over domains of 1 to 8 ranks, or a message inside a domain or between two."""
    size = draw(st.floats(0.0, 1e11))
    nodes = draw(st.integers(least_nodes, most_nodes))
    if draw(st.booleans()):
        return Collective("send_recv", size, 2, min(nodes, 2))
    local = draw(st.integers(2 if nodes == 1 else 1, 8))
    return Collective(draw(st.sampled_from(OPS)), size, nodes * local, nodes)


def least_sent_bytes(kernel: Collective) -> float:
    """Bytes that each rank must send in any algorithm; a switch may do the sums."""
    share = (kernel.ranks - 1) / kernel.ranks
    return kernel.size_bytes * (1.0 if kernel.op in ("all_reduce", "send_recv") else share)


@given(networked, frameworks, collectives(1, 1))
def test_inside_a_domain_no_collective_beats_the_link(name: str, framework: str | None, kernel: Collective) -> None:
    times = times_of(name, framework)
    assert times.chip.link_bytes_s is not None
    assert times.seconds(kernel).seconds >= least_sent_bytes(kernel) / times.chip.link_bytes_s


@given(networked, collectives(2))
def test_between_domains_no_collective_beats_the_nics(name: str, kernel: Collective) -> None:
    times = times_of(name)
    local = kernel.ranks / kernel.nodes
    out = (kernel.nodes - 1) / kernel.nodes
    leaving = {"send_recv": 1.0, "all_reduce": 1.0 / local, "all_to_all": out}.get(kernel.op, out / local)
    assert times.chip.nic_bytes_s is not None
    assert times.seconds(kernel).seconds >= leaving * kernel.size_bytes / times.chip.nic_bytes_s * (1 - 1e-9)


@given(networked, collectives(), speedups)
def test_faster_links_never_slow_a_collective(name: str, kernel: Collective, links: float) -> None:
    times = times_of(name)
    better = KernelTimes(faster(times.chip, links=links), times.profile)
    assert better.seconds(kernel).seconds <= times.seconds(kernel).seconds * (1 + 1e-9)


@given(networked, collectives(), st.floats(1.0, 100.0))
def test_more_bytes_never_take_less_time(name: str, kernel: Collective, more: float) -> None:
    times = times_of(name)
    larger = replace(kernel, size_bytes=kernel.size_bytes * more)
    assert times.seconds(larger).seconds >= times.seconds(kernel).seconds * (1 - 1e-9)


@given(networked, st.sampled_from(OPS), st.integers(3, 7), st.floats(0.0, 1e10))
def test_group_sizes_that_nobody_measured_lie_between_those_that_were(
    name: str, op: CollectiveOp, ranks: int, size: float
) -> None:
    # No engine: its own all-reduce serves some sizes of group only.
    times = times_of(name, None)
    below, mid, above = (times.seconds(Collective(op, size, n, 1)).seconds for n in (2 if ranks < 4 else 4, ranks, 8))
    assert 0.5 * min(below, above) <= mid <= 2.0 * max(below, above)


@pytest.mark.parametrize(
    ("accelerator", "framework", "ranks", "size", "measured_us"),
    [
        # ai-dynamo/aiconfigurator @ 095f58a5: custom all-reduce of the engine, and NCCL above its range.
        ("h100-sxm", "vllm", 8, 4096, 5.554),
        ("h100-sxm", "vllm", 8, MIB, 14.97),
        ("h100-sxm", "vllm", 8, 256 * MIB, 1091.0),
        ("h100-sxm", "trtllm", 8, 4096, 3.528),
        ("b200-sxm", "vllm", 8, 4096, 7.791),
        ("b200-sxm", "trtllm", 8, MIB, 17.78),
        ("a100-80gb-sxm", "trtllm", 8, 4096, 6.062),
        ("a100-80gb-sxm", "vllm", 8, 256 * MIB, 2170.0),
    ],
)
def test_all_reduce_meets_its_tables_within_a_fifth(
    accelerator: str, framework: str, ranks: int, size: float, measured_us: float
) -> None:
    seconds = times_of(accelerator, framework).seconds(Collective("all_reduce", size, ranks, 1)).seconds
    assert seconds * 1e6 == pytest.approx(measured_us, rel=0.2)


def test_an_engine_takes_the_faster_of_its_own_all_reduce_and_nccl() -> None:
    kernel = Collective("all_reduce", 64 * 1024, 8, 1)
    assert times_of("h100-sxm", "vllm").seconds(kernel).seconds < times_of("h100-sxm", None).seconds(kernel).seconds


def test_a_pcie_part_takes_the_constants_of_a_pcie_host_not_of_nvlink() -> None:
    time = times_of("a100-80gb-pcie").seconds(Collective("all_reduce", MIB, 8, 1))
    assert time.origin.kind == "carried" and time.origin.of.startswith("rtx-pro-6000")


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_cards_without_peer_access_send_4_to_6_gb_a_second_however_many_they_are(ranks: int) -> None:
    direct = times_of("l40s")
    staged = KernelTimes(direct.chip, direct.profile, staged_links=True)
    kernel = Collective("all_reduce", 16 * MIB, ranks, 1)
    seconds = staged.seconds(kernel).seconds
    assert 4e9 < 2 * (ranks - 1) / ranks * 16 * MIB / seconds < 6e9
    assert seconds > 1.5 * direct.seconds(kernel).seconds


def test_nobody_to_talk_to_costs_nothing_and_a_missing_nic_is_named() -> None:
    times = times_of("rtx-4090")
    assert times.seconds(Collective("all_reduce", MIB, 1, 1)).seconds == 0.0
    with pytest.raises(MissingFieldError, match="inter_node_bw_gb_s"):
        times.seconds(Collective("all_reduce", MIB, 16, 2))
