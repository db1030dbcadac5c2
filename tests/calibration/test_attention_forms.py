"""Attention: never under the roofline, never slower on a faster chip, never faster with more work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.calibration.chip import Chip, chip_of
from shardwright.tools.calibration.forms.attention import (
    DecodeConstants,
    PrefillConstants,
    attention_bytes,
    attention_decode_parts,
    attention_decode_s,
    attention_flops,
    attention_prefill_parts,
    attention_prefill_s,
    is_decode,
    visible_pairs,
)
from shardwright.tools.calibration.shapes import Attention
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import MissingFieldError

from .chips import times_of
from .form_properties import (
    Seconds,
    assert_above_roof,
    assert_faster_chip_is_no_slower,
    assert_grows,
    assert_same_for_arrays,
    chips,
    constants_of,
)

FORMS = ((PrefillConstants, attention_prefill_s), (DecodeConstants, attention_decode_s))
CASES = Path(__file__).parent.parent / "cases" / "calibration"
CHUNKS = json.loads((CASES / "attention_chunks_measured.json").read_text(encoding="utf-8"))
MORE = ("sequences", "new_tokens", "context", "query_heads", "head_dim", "window")


@st.composite
def shapes(draw: st.DrawFn, *, decode: bool) -> Attention:
    kv_heads = draw(st.integers(1, 64))
    return Attention(
        sequences=draw(st.integers(1, 512)),
        new_tokens=1 if decode else draw(st.integers(1, 65536)),
        context=draw(st.integers(0, 200_000)),
        query_heads=kv_heads * draw(st.integers(1, 32)),
        kv_heads=kv_heads,
        head_dim=draw(st.sampled_from([64, 96, 128, 192, 256])),
        kv=draw(st.sampled_from(["bf16", "fp8"])),
        window=draw(st.none() | st.integers(1, 8192)),
    )


@pytest.mark.parametrize(("kind", "form"), FORMS)
@given(st.data())
def test_attention_is_never_under_the_roofline(kind: type, form: Seconds, data: st.DataObject) -> None:
    kernel = data.draw(shapes(decode=form is attention_decode_s))
    chip = data.draw(chips())
    time = form(data.draw(constants_of(kind)), chip, kernel)
    assert_above_roof(time, chip, attention_flops(kernel), chip.peak("bf16"), attention_bytes(kernel))


@pytest.mark.parametrize(("kind", "form"), FORMS)
@given(st.data())
def test_attention_is_no_slower_on_a_faster_chip(kind: type, form: Seconds, data: st.DataObject) -> None:
    kernel = data.draw(shapes(decode=form is attention_decode_s))
    factor = data.draw(st.floats(1.0, 10.0))
    assert_faster_chip_is_no_slower(form, data.draw(constants_of(kind)), data.draw(chips()), kernel, factor)


@pytest.mark.parametrize(("kind", "form"), FORMS)
@given(st.data())
def test_attention_grows_with_its_work(kind: type, form: Seconds, data: st.DataObject) -> None:
    decode = form is attention_decode_s
    kernel = data.draw(shapes(decode=decode))
    constants, chip = data.draw(constants_of(kind)), data.draw(chips())
    for name in MORE:
        value = getattr(kernel, name)
        if value is None or (decode and name == "new_tokens"):
            continue
        assert_grows(form, constants, chip, kernel, {name: value + data.draw(st.integers(1, 300))})


@pytest.mark.parametrize(("kind", "form"), FORMS)
@given(st.data())
def test_an_array_of_shapes_has_the_times_of_each(kind: type, form: Seconds, data: st.DataObject) -> None:
    decode = form is attention_decode_s
    kernels = [
        replace(shape, kv="bf16", window=512) for shape in data.draw(st.lists(shapes(decode=decode), min_size=2))
    ]
    names = ["sequences", "new_tokens", "context", "query_heads", "kv_heads", "head_dim"]
    assert_same_for_arrays(form, kind(), data.draw(chips()), kernels, names)


@given(new=st.integers(1, 40), context=st.integers(0, 40), window=st.integers(1, 60))
def test_pairs_are_those_that_counting_finds(new: int, context: int, window: int) -> None:
    kernel = Attention(1, new, context, 8, 8, 128, "bf16", window)
    assert visible_pairs(kernel) == sum(min(context + place + 1, window) for place in range(new))
    whole = replace(kernel, window=None)
    assert visible_pairs(whole) == sum(context + place + 1 for place in range(new))


def h100() -> Chip:
    return chip_of(find_accelerator("H100"))


def test_a_window_bounds_decode_at_any_context() -> None:
    near = Attention(32, 1, 4096, 32, 8, 128, "bf16", 1024)
    assert attention_decode_s(DecodeConstants(), h100(), replace(near, context=100_000)) == pytest.approx(
        attention_decode_s(DecodeConstants(), h100(), near)
    )


def test_a_chunk_on_cached_tokens_pays_for_what_it_sees() -> None:
    chunk = Attention(1, 2048, 0, 32, 8, 128, "bf16")
    first_s = attention_prefill_parts(PrefillConstants(), h100(), chunk)[1]
    later_s = attention_prefill_parts(PrefillConstants(), h100(), replace(chunk, context=14336))[1]
    # (2048 x 14336 + 2048^2 / 2) pairs instead of 2048^2 / 2.
    assert 9 < later_s / first_s < 16


def test_an_8_bit_cache_halves_the_read_of_a_long_decode() -> None:
    kernel = Attention(64, 1, 32768, 64, 8, 128, "bf16")
    wide_s = attention_decode_parts(DecodeConstants(), h100(), kernel)[1]
    narrow_s = attention_decode_parts(DecodeConstants(), h100(), replace(kernel, kv="fp8"))[1]
    assert narrow_s / wide_s == pytest.approx(0.5, abs=0.1)


def test_one_new_token_is_decode() -> None:
    assert is_decode(1)
    assert not is_decode(2)


def test_a_chip_without_16_bit_arithmetic_is_an_error_that_names_it() -> None:
    chip = replace(h100(), peak_flops_s={"fp8": 1e15})
    with pytest.raises(MissingFieldError, match="bf16"):
        attention_decode_s(DecodeConstants(), chip, Attention(1, 1, 128, 8, 8, 128, "bf16"))


def test_chunks_on_cached_tokens_take_what_vllm_measured_though_no_fit_saw_any() -> None:
    times = times_of(CHUNKS["accelerator"])

    def relative_error(case: dict[str, Any]) -> float:
        kernel = Attention(1, case["prefill_chunk"], case["prefill_kv"], case["q_heads"], case["kv_heads"], 128, "bf16")
        return abs(times.seconds(kernel).seconds * 1e6 / case["us"] - 1.0)

    errors = [relative_error(case) for case in CHUNKS["cases"]]
    assert float(np.median(errors)) < 0.12
    assert max(errors) < 0.3
