"""A cluster's facts: memory, bandwidths, domains, and the peak that each format computes at."""

import pytest

from shardwright.tools.catalog.accelerators import Accelerator, DensePeakTFLOPS
from shardwright.tools.catalog.dtypes import DTYPES, DType
from shardwright.tools.catalog.hardware import HardwareFacts, all_accelerators, hardware_facts
from shardwright.tools.errors import InputError, MissingFieldError
from shardwright.tools.performance.collectives import domains_of


def card(**figures: float) -> Accelerator:
    return Accelerator(
        id="own", memory_bandwidth_gb_s=1000, dense_peak_tflops=DensePeakTFLOPS(bf16=100),
        **{"memory_gb_marketing": 64, **figures},
    )  # fmt: skip


def test_links_are_one_way_and_in_bytes() -> None:
    facts = hardware_facts("H100", 2, 8)
    assert (facts.intra_bw_bytes_s, facts.inter_bw_bytes_s) == (450e9, 50e9)
    assert facts.memory_bandwidth_bytes_s == facts.accelerator.memory_bandwidth_gb_s * 1e9
    assert facts.gpus == 16


def test_stated_links_win_over_the_catalogues() -> None:
    facts = hardware_facts("h100-sxm", 2, 8, intra_node_bw_gb_s=300, inter_node_bw_gb_s=12.5)
    assert (facts.intra_bw_bytes_s, facts.inter_bw_bytes_s) == (300e9, 12.5e9)


def test_a_link_that_nobody_states_is_an_error_that_names_it() -> None:
    facts = hardware_facts("rtx-4090", 2, 8)
    with pytest.raises(MissingFieldError, match="inter_node_bw_gb_s"):
        _ = facts.inter_bw_bytes_s
    with pytest.raises(MissingFieldError, match="intra_node_bw_gb_s"):
        _ = hardware_facts(card(), 1, 8).intra_bw_bytes_s


def test_a_two_way_figure_counts_half() -> None:
    facts = hardware_facts(card(intra_node_bw_gb_s_bidirectional_per_accelerator=400), 1, 8)
    assert facts.intra_bw_bytes_s == 200e9


def test_memory_says_which_figure_it_is() -> None:
    facts = hardware_facts("H100", 1, 8)
    assert facts.memory_bytes == 81559 * 2**20 and "driver" in facts.memory_provenance
    custom = hardware_facts(card(), 1, 8)
    assert custom.memory_bytes == round(64 * 2**30 * 0.995) and "marketing" in custom.memory_provenance


def test_memory_that_nobody_states_is_an_error() -> None:
    with pytest.raises(MissingFieldError, match="memory"):
        hardware_facts(Accelerator(id="x", memory_bandwidth_gb_s=1, dense_peak_tflops=DensePeakTFLOPS()), 1, 1)


@pytest.mark.parametrize(
    ("name", "dtype", "tflops"),
    [
        ("H100", "bf16", 989), ("H100", "fp8", 1979), ("H100", "fp4", 1979), ("H100", "int4", 1979),
        ("A100", "fp8", 312), ("A100", "mxfp4", 312), ("A100", "int8", 624), ("V100", "bf16", 125),
        ("V100", "int8", 125), ("B200", "nvfp4", 9000), ("MI300X", "fp4", 2615), ("MI355X", "fp4", 10100),
    ],
)  # fmt: skip
def test_a_format_without_units_computes_in_the_next_wider_one(name: str, dtype: DType, tflops: float) -> None:
    assert hardware_facts(name, 1, 8).peak_flops(dtype) == tflops * 1e12


def test_every_part_computes_every_16_bit_and_narrower_format() -> None:
    for part in all_accelerators():
        facts = hardware_facts(part, 1, 1)
        assert all(facts.peak_flops(dtype) > 0 for dtype in DTYPES if dtype != "fp32"), part.id


def test_a_peak_that_nothing_stands_in_for_is_an_error() -> None:
    with pytest.raises(MissingFieldError, match="fp32"):
        hardware_facts(card(), 1, 1).peak_flops("fp32")


def is_inside_domain(facts: HardwareFacts, devices: tuple[str, ...]) -> bool:
    return len(domains_of(devices, facts)) == 1


def test_a_node_is_a_domain_and_two_nodes_are_two() -> None:
    facts = hardware_facts("H100", 2, 8)
    assert facts.nodes_per_domain == 1
    assert is_inside_domain(facts, ("n0.g0", "n0.g7"))
    assert not is_inside_domain(facts, ("n0.g7", "n1.g0"))


def test_a_rack_scale_domain_spans_eighteen_nodes_of_four() -> None:
    facts = hardware_facts("GB200 NVL72", 36, 4)
    assert (facts.nodes_per_domain, facts.gpus_per_node) == (18, 4)
    assert is_inside_domain(facts, ("n0.g0", "n17.g3"))
    assert not is_inside_domain(facts, ("n17.g3", "n18.g0"))


def test_a_part_without_links_still_shares_its_node() -> None:
    facts = hardware_facts("L40S", 2, 4)
    assert facts.nodes_per_domain == 1 and is_inside_domain(facts, ("n1.g0", "n1.g3"))


def test_impossible_clusters_are_refused() -> None:
    with pytest.raises(InputError):
        hardware_facts("H100", 0, 8)


def test_every_entry_says_where_its_figures_come_from_and_no_id_is_there_twice() -> None:
    cards = all_accelerators()
    assert [card.id for card in cards if not card.source] == []
    assert len({card.id for card in cards}) == len(cards)
