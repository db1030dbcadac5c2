"""The entry point for every kernel: it caches times, notes stand-ins, and is quick."""

from __future__ import annotations

import time

from shardwright.tools.calibration.kernel_times import KernelTimes, matmul_variant
from shardwright.tools.calibration.profile import MEASURED, KernelProfile, Origin
from shardwright.tools.calibration.shapes import Attention, Collective, Elementwise, ExpertExchange, Gemm, GroupedGemm

from .chips import times_of


def test_a_kernel_asked_for_twice_is_computed_once() -> None:
    times = times_of("h100-sxm")
    first = times.seconds(Gemm(8, 8192, 8192, "bf16", "bf16"))
    assert times.seconds(Gemm(8, 8192, 8192, "bf16", "bf16")) is first


def test_a_time_says_where_its_constants_come_from() -> None:
    kernel = Gemm(8, 8192, 8192, "bf16", "bf16")
    assert times_of("h100-sxm").seconds(kernel).origin == MEASURED
    assert times_of("mi300x").seconds(kernel).origin == Origin("carried", "the median of other cards")


def test_what_binds_is_what_the_roofline_says() -> None:
    times = times_of("h100-sxm")
    assert times.seconds(Gemm(1, 8192, 8192, "bf16", "bf16")).bound == "memory"
    assert times.seconds(Gemm(8192, 8192, 8192, "bf16", "bf16")).bound == "compute"
    assert times.seconds(Attention(64, 1, 8192, 8, 1, 128, "bf16")).bound == "memory"
    assert times.seconds(Attention(1, 8192, 0, 8, 1, 128, "bf16")).bound == "compute"
    assert times.seconds(Collective("all_reduce", 1e6, 8, 1)).bound == "communication"
    assert times.seconds(ExpertExchange("dispatch", 128, 7392, 8, 8, 1, low_latency=True)).bound == "communication"


def test_the_fixed_part_is_a_part() -> None:
    times = times_of("b200-sxm", "trtllm")
    experts = GroupedGemm(64, 512, 100, 256, 7168, 2048, True, "fp8", "fp8", True)
    for kernel in (
        Gemm(8, 8192, 8192, "fp8", "fp8"),
        experts,
        Elementwise(1e6, "norm"),
        Collective("all_reduce", 0.0, 8, 1),
    ):
        taken = times.seconds(kernel)
        assert 0.0 <= taken.fixed_s <= taken.seconds


def test_formats_go_to_the_kernels_that_run_them() -> None:
    assert matmul_variant(Gemm(1, 1, 1, "fp8", "fp8", blockwise=True)) == "fp8_block"
    assert matmul_variant(Gemm(1, 1, 1, "int4", "bf16")) == "int4_wo"
    assert matmul_variant(Gemm(1, 1, 1, "fp8", "bf16")) == "int8_wo"
    assert matmul_variant(Gemm(1, 1, 1, "mxfp4", "bf16")) == "mxfp4_wo"
    assert matmul_variant(Gemm(1, 1, 1, "mxfp4", "mxfp8")) == "mxfp4"
    assert matmul_variant(Gemm(1, 1, 1, "bf16", "fp8")) == "fp8"


def test_a_matmul_takes_well_under_a_tenth_of_a_millisecond_to_estimate() -> None:
    times: KernelTimes = times_of("h100-sxm")
    best = 1.0
    for run in range(20):
        kernels = [Gemm(1 + run * 100 + i, 8192, 8192, "bf16", "bf16") for i in range(100)]
        started = time.process_time()
        for kernel in kernels:
            times.seconds(kernel)
        best = min(best, (time.process_time() - started) / len(kernels))
    assert best < 100e-6


def test_an_engine_never_takes_a_matmul_that_is_slower_than_another_stack_offers() -> None:
    sglang, trtllm = times_of("b200-sxm", "sglang"), times_of("b200-sxm", "trtllm")
    for rows in (1, 64, 4096):
        kernel = Gemm(rows, 7168, 2048, "fp8", "fp8", blockwise=True)
        assert sglang.seconds(kernel).seconds == trtllm.seconds(kernel).seconds


def test_without_kernels_of_its_own_an_engine_reduces_as_nccl_does() -> None:
    engine_times = times_of("h100-sxm", "trtllm")
    plain = KernelTimes(engine_times.chip, engine_times.profile, own_reduction_ranks=frozenset())
    kernel = Collective("all_reduce", 64 * 1024, 8, 1)
    nccl = KernelTimes(
        engine_times.chip, KernelProfile("h100-sxm", None, engine_times.profile.files, engine_times.profile.link_files)
    )
    assert engine_times.seconds(kernel).seconds < plain.seconds(kernel).seconds == nccl.seconds(kernel).seconds
