"""Multi-head latent attention: the promises of a form, and FlashMLA's published figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.calibration.chip import Chip, chip_of
from shardwright.tools.calibration.forms.mla import (
    MlaDecodeConstants,
    MlaPrefillConstants,
    absorbed_bytes,
    absorbed_flops,
    naive_bytes,
    naive_flops,
)
from shardwright.tools.calibration.shapes import LatentAttention
from shardwright.tools.catalog.hardware import find_accelerator

from .chips import mla_decode_s, mla_prefill_s, times_of
from .form_properties import (
    Seconds,
    assert_above_roof,
    assert_faster_chip_is_no_slower,
    assert_grows,
    assert_same_for_arrays,
    chips,
    constants_of,
)

FORMS = ((MlaPrefillConstants, mla_prefill_s), (MlaDecodeConstants, mla_decode_s))


@st.composite
def shapes(draw: st.DrawFn, *, decode: bool) -> LatentAttention:
    return LatentAttention(
        sequences=draw(st.integers(1, 512)),
        new_tokens=1 if decode else draw(st.integers(1, 65536)),
        context=draw(st.integers(0, 200_000)),
        heads=draw(st.integers(1, 128)),
        latent=512,
        rope=64,
        nope=128,
        value=128,
        kv=draw(st.sampled_from(["bf16", "fp8"])),
    )


@given(constants=constants_of(MlaPrefillConstants), chip=chips(), kernel=shapes(decode=False))
def test_the_naive_form_is_never_under_the_roofline(
    constants: MlaPrefillConstants, chip: Chip, kernel: LatentAttention
) -> None:
    time = mla_prefill_s(constants, chip, kernel)
    assert_above_roof(time, chip, naive_flops(kernel), chip.peak("bf16"), naive_bytes(kernel))


@given(constants=constants_of(MlaDecodeConstants), chip=chips(), kernel=shapes(decode=True))
def test_the_absorbed_form_is_never_under_the_roofline(
    constants: MlaDecodeConstants, chip: Chip, kernel: LatentAttention
) -> None:
    time = mla_decode_s(constants, chip, kernel)
    assert_above_roof(time, chip, absorbed_flops(kernel), chip.peak(kernel.kv), absorbed_bytes(kernel))


@pytest.mark.parametrize(("kind", "form"), FORMS)
@given(st.data())
def test_latent_attention_is_no_slower_on_a_faster_chip(kind: type, form: Seconds, data: st.DataObject) -> None:
    kernel = data.draw(shapes(decode=form is mla_decode_s))
    factor = data.draw(st.floats(1.0, 10.0))
    assert_faster_chip_is_no_slower(form, data.draw(constants_of(kind)), data.draw(chips()), kernel, factor)


@pytest.mark.parametrize(("kind", "form"), FORMS)
@given(st.data())
def test_latent_attention_grows_with_its_work(kind: type, form: Seconds, data: st.DataObject) -> None:
    decode = form is mla_decode_s
    kernel = data.draw(shapes(decode=decode))
    constants, chip = data.draw(constants_of(kind)), data.draw(chips())
    for name in ("sequences", "context", "heads") if decode else ("sequences", "new_tokens", "context", "heads"):
        more = {name: getattr(kernel, name) + data.draw(st.integers(1, 300))}
        assert_grows(form, constants, chip, kernel, more)


@pytest.mark.parametrize(("kind", "form"), FORMS)
@given(st.data())
def test_an_array_of_shapes_has_the_times_of_each(kind: type, form: Seconds, data: st.DataObject) -> None:
    decode = form is mla_decode_s
    kernels = [replace(kernel, kv="bf16") for kernel in data.draw(st.lists(shapes(decode=decode), min_size=2))]
    assert_same_for_arrays(form, kind(), data.draw(chips()), kernels, ["sequences", "new_tokens", "context", "heads"])


def h800_decode(sequences: int, context: int, heads: int) -> float:
    return (
        times_of("h800").seconds(LatentAttention(sequences, 1, context - 1, heads, 512, 64, 128, 128, "bf16")).seconds
    )


def test_flash_mla_on_h800_reads_3000_gb_s_where_memory_binds() -> None:
    """deepseek-ai/FlashMLA @ 066b5ba, README: up to 3000 GB/s; ours is a mean over shapes of another kernel."""
    sequences, context = 128, 32768
    rate_gb_s = sequences * context * 576 * 2 / h800_decode(sequences, context, heads=16) / 1e9
    assert rate_gb_s == pytest.approx(3000, rel=0.15)


def test_flash_mla_on_h800_reaches_660_tflops_where_arithmetic_binds() -> None:
    """deepseek-ai/FlashMLA @ 066b5ba, README: up to 660 TFLOP/s with 128 heads; ours is a mean of another kernel."""
    sequences, context = 128, 32768
    flops = 2.0 * sequences * context * 128 * (576 + 512)
    assert flops / h800_decode(sequences, context, heads=128) / 1e12 == pytest.approx(660, rel=0.2)


def test_cached_latents_are_expanded_again_for_a_later_chunk() -> None:
    kernel = LatentAttention(1, 2048, 0, 16, 512, 64, 128, 128, "bf16")
    later = replace(kernel, context=4096)
    per_pair = 2.0 * (128 + 64 + 128)
    expand = 2.0 * 4096 * 512 * (128 + 128)
    assert naive_flops(later) - naive_flops(kernel) == pytest.approx(16 * (2048 * 4096 * per_pair + expand))


def test_few_heads_cost_what_a_whole_tile_of_heads_does() -> None:
    """A device with 8 of 128 heads computes as much as one with 16: both fill one tile."""
    chip = replace(chip_of(find_accelerator("H100")), memory_bytes_s=1e16)
    few, more = (LatentAttention(64, 1, 8191, heads, 512, 64, 128, 128, "bf16") for heads in (8, 16))
    assert mla_decode_s(MlaDecodeConstants(), chip, few) == pytest.approx(
        mla_decode_s(MlaDecodeConstants(), chip, more)
    )
