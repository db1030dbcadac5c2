"""What an engine changes in the times of kernels: factors, and kernels that it runs in another way."""

from __future__ import annotations

import pytest

from shardwright.tools.calibration.engine_profile import EngineProfile, engine_profile
from shardwright.tools.calibration.shapes import Attention, Collective, Gemm
from shardwright.tools.catalog.dtypes import DType, element_bytes
from shardwright.tools.catalog.hardware import hardware_facts
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.performance.clock import Clock
from shardwright.tools.performance.programs.attention_core import attention_core, recurrence
from shardwright.tools.performance.programs.work import Work, aggregate, routing, weigh

HOPPER = hardware_facts("h100-sxm", nodes=1, gpus_per_node=8)


def profile_of(engine: str, version: str, **changes: float) -> EngineProfile:
    profile = engine_profile(engine, version, HOPPER.accelerator)
    constants = profile.entry.constants.model_copy(update=changes)
    return profile.model_copy(update={"entry": profile.entry.model_copy(update={"constants": constants})})


def profile_with(**changes: float) -> EngineProfile:
    return profile_of("vllm", "0.11", **changes)


def attention(query_heads: int, kv_heads: int, new_tokens: int = 1, sequences: int = 64, kv: DType = "bf16") -> Work:
    kernel = Attention(sequences, new_tokens, 4096, query_heads, kv_heads, 128, kv)
    cached = 2 * sequences * 4096 * kv_heads * 128 * element_bytes(kv)
    return attention_core(kernel, sequences * 4096.0 * new_tokens, 256, cached, 0.0)


def seconds(work: Work, **changes: float) -> float:
    return Clock(HOPPER, profile_with(**changes)).time(work).seconds


def one_block_a_head_s(work: Work, nanoseconds: float) -> float:
    return Clock(HOPPER, profile_of("nim", "1.0", head_token_ns=nanoseconds)).time(work).seconds


def test_a_kernel_with_one_block_a_head_takes_as_long_as_its_blocks_need_one_after_the_other() -> None:
    # 4,097 tokens at 100 ns; a block runs on each of 132 multiprocessors.
    for heads, sequences, waves in ((32, 1, 1.0), (32, 64, 32 * 64 / 132)):
        taken_s = one_block_a_head_s(attention(heads, 32, sequences=sequences), 100.0)
        assert taken_s == pytest.approx(100e-9 * 4097 * waves)


def test_such_a_kernel_takes_as_long_however_few_bytes_a_cached_element_has() -> None:
    assert one_block_a_head_s(attention(32, 8, kv="fp8"), 100.0) == one_block_a_head_s(attention(32, 8), 100.0)


def test_query_heads_share_a_read_only_in_groups_that_such_a_kernel_knows() -> None:
    alone = one_block_a_head_s(attention(64, 64), 100.0)
    assert one_block_a_head_s(attention(64, 16), 100.0) == pytest.approx(alone)
    assert one_block_a_head_s(attention(64, 8), 100.0) == pytest.approx(alone / 8)


def test_it_is_never_faster_than_a_read_of_the_cache() -> None:
    work = attention(32, 32)
    assert one_block_a_head_s(work, 1e-3) == one_block_a_head_s(work, 0.0) > 0.0


def test_prompts_and_engines_whose_blocks_share_a_sequence_know_nothing_of_it() -> None:
    prompt = attention(32, 8, new_tokens=512)
    assert one_block_a_head_s(prompt, 100.0) == one_block_a_head_s(prompt, 0.0)
    assert seconds(attention(32, 8), head_token_ns=100.0) == seconds(attention(32, 8), head_token_ns=0.0)


def test_the_first_kernels_of_vllm_on_amd_read_a_cached_head_once_for_each_query_head() -> None:
    cdna = hardware_facts("mi300x", nodes=1, gpus_per_node=8)

    def on_cdna(work: Work, version: str) -> float:
        return Clock(cdna, engine_profile("vllm", version, cdna.accelerator)).time(work).seconds

    assert on_cdna(attention(32, 8), "0.6.0") == pytest.approx(on_cdna(attention(32, 32), "0.6.0"))
    assert on_cdna(attention(32, 8), "0.11") < 0.5 * on_cdna(attention(32, 32), "0.11")


def on_mi300x(generation: str) -> Clock:
    """vLLM with the constants of its first generation, and the kernels of `generation`."""
    cdna = hardware_facts("mi300x", nodes=1, gpus_per_node=8)
    profile = engine_profile("vllm", "0.6.0", cdna.accelerator)
    entry = profile.entry.model_copy(update={"generation": generation})
    return Clock(cdna, profile.model_copy(update={"entry": entry}))


def test_matmuls_in_16_bits_of_vllms_first_releases_find_little_of_an_mi300xs_arithmetic() -> None:
    def slower(rows: int, dtype: DType) -> float:
        clocks = on_mi300x("v0"), on_mi300x("v0.6")
        early_s, late_s = (
            clock.kernels.seconds(Gemm(rows, 8192, 8192, dtype, dtype)).seconds for clock in clocks if clock.kernels
        )
        return float(early_s / late_s)

    assert slower(4096, "bf16") > 8.0
    assert slower(1, "bf16") < 1.5
    assert slower(4096, "fp8") == 1.0


def test_what_a_measured_moe_layer_holds_costs_no_more_than_the_datasheet_asks_for() -> None:
    for work in (routing(4096, 128, 8), weigh(4096, 8, 4096, 2.0)):
        assert seconds(work) == pytest.approx(work.moved_bytes / HOPPER.memory_bandwidth_bytes_s)
    # A sum that ends no MoE kernel is a separate kernel.
    work = aggregate(64, 2, 4096, 2.0)
    assert seconds(work) > 2 * work.moved_bytes / HOPPER.memory_bandwidth_bytes_s


def test_the_small_kernels_of_a_recurrent_layer_take_a_time_of_their_own_in_each_pass() -> None:
    for tokens in (4, 8192):
        work = recurrence(tokens, 4, 64 * 128 * 128 / 8, 4.0, tokens * 4096.0)
        plain = seconds(work, recurrent_layer_us=0.0)
        assert plain == pytest.approx(Clock(HOPPER, profile_with()).roofline.time(work).seconds)
        assert seconds(work, recurrent_layer_us=50.0) == pytest.approx(plain + 50e-6)
    assert seconds(attention(32, 8), recurrent_layer_us=50.0) == seconds(attention(32, 8), recurrent_layer_us=0.0)


def reduction_s(accelerator: str, engine: str, ranks: int) -> float:
    """Seconds of an all-reduce of 16 MiB over GPUs of one node."""
    facts = hardware_facts(accelerator, nodes=1, gpus_per_node=8)
    timed = Clock(facts, engine_profile(engine, None, facts.accelerator)).collective(
        Collective("all_reduce", 2**24, ranks, 1)
    )
    assert timed is not None
    return timed.seconds


@pytest.mark.parametrize("engine", [*JUDGED])
@pytest.mark.parametrize("accelerator", ["l4", "a10g", "rtx-4090"])
def test_cards_that_do_not_reach_each_others_memory_reduce_slower_than_others(accelerator: str, engine: str) -> None:
    assert reduction_s(accelerator, engine, 8) > 2 * reduction_s("l40s", engine, 8)


def test_over_more_than_two_pcie_cards_vllm_reduces_as_nccl_does_and_tensorrt_llm_by_itself() -> None:
    facts = hardware_facts("l40s", nodes=1, gpus_per_node=8)
    ranks = {
        engine: kernels.own_reduction_ranks
        for engine in JUDGED
        if (kernels := Clock(facts, engine_profile(engine, None, facts.accelerator)).kernels) is not None
    }
    assert ranks["vllm"] == ranks["sglang"] == {2} and {2, 4, 8} <= ranks["trtllm"]
