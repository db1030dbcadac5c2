"""The attention fits find the constants again that made a table, without its warm cache."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardwright.benchmarks.fits.attention import DECODE, PREFILL, fit_attention_decode, fit_attention_prefill
from shardwright.tools.calibration.chip import chip_of
from shardwright.tools.calibration.forms.attention import (
    DecodeConstants,
    PrefillConstants,
    attention_decode_s,
    attention_prefill_s,
)
from shardwright.tools.calibration.forms.constant import read_constants
from shardwright.tools.calibration.shapes import Attention
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError

from .tables import write_table

H100 = chip_of(find_accelerator("H100"))
HEADS = ((8, 1), (32, 8), (32, 32), (64, 8))
TRUE_DECODE = {"launch_us": 9.0, "memory_share": 0.82, "compute_share": 0.35, "wave_us": 3.0, "split_us": 0.6}
TRUE_PREFILL = {"launch_us": 11.0, "compute_share": 0.7, "memory_share": 0.8, "loop_keys": 180.0}
WARMTH = {"l2_speedup": 3.0, "l2_share": 0.8}


def rows(length: str, lengths: tuple[int, ...], stack: str, seconds: Any) -> list[dict[str, Any]]:
    table = []
    for (heads, kv_heads), batch, tokens, width in product(HEADS, (1, 4, 16, 64, 256), lengths, (64, 128)):
        shape = {"batch": batch, length: tokens, "q_heads": heads, "kv_heads": kv_heads, "head_dim": width, "window": 0}
        table.append({
            "gpu": "h100-sxm", "src": stack, "kernel": "made", "q_dtype": "bf16", "kv_dtype": "bf16", **shape,
            "us": seconds(batch, tokens, heads, kv_heads, width) * 1e6,
        })  # fmt: skip
    return table


def warm_decode(batch: int, tokens: int, heads: int, kv_heads: int, width: int) -> float:
    constants = DECODE.warm(**TRUE_DECODE, **WARMTH)
    kernel = Attention(*(np.array([float(size)]) for size in (batch, 1, tokens - 1, heads, kv_heads, width)), kv="bf16")
    return float(DECODE.seconds(constants, H100, kernel)[0])


def warm_prefill(batch: int, tokens: int, heads: int, kv_heads: int, width: int) -> float:
    constants = PREFILL.warm(**TRUE_PREFILL, **WARMTH)
    kernel = Attention(*(np.array([float(size)]) for size in (batch, tokens, 0, heads, kv_heads, width)), kv="bf16")
    return float(PREFILL.seconds(constants, H100, kernel)[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    write_table(path / "attn_decode.csv", rows("kv_len", (256, 1024, 4096, 16384, 65536), "vllm-0.24.0", warm_decode))
    write_table(path / "attn_prefill.csv", rows("seq", (128, 512, 2048, 8192), "vllm-0.24.0", warm_prefill))
    return path


def test_a_decode_fit_finds_the_constants_again_without_the_warm_cache(folder: Path) -> None:
    (entry,) = fit_attention_decode(folder).entries["h100-sxm"]
    constants = read_constants(DecodeConstants, entry.constants)
    assert entry.held_back_median_pct is not None and entry.held_back_median_pct < 1.0
    assert constants.memory_share == pytest.approx(TRUE_DECODE["memory_share"], rel=0.03)
    for batch, context in ((1, 500), (16, 2000), (64, 30000)):
        kernel = Attention(batch, 1, context, 32, 8, 128, "bf16")
        true = attention_decode_s(DecodeConstants(**TRUE_DECODE), H100, kernel)
        assert attention_decode_s(constants, H100, kernel) == pytest.approx(true, rel=0.05)


def test_a_prefill_fit_finds_the_constants_again(folder: Path) -> None:
    (entry,) = fit_attention_prefill(folder).entries["h100-sxm"]
    constants = read_constants(PrefillConstants, entry.constants)
    assert entry.held_back_median_pct is not None and entry.held_back_median_pct < 1.5
    for tokens, context in ((700, 0), (4000, 0), (2048, 8192)):
        kernel = Attention(4, tokens, context, 32, 8, 128, "bf16")
        true = attention_prefill_s(PrefillConstants(**TRUE_PREFILL), H100, kernel)
        assert attention_prefill_s(constants, H100, kernel) == pytest.approx(true, rel=0.05)


def test_the_same_table_gives_the_same_entry(folder: Path) -> None:
    assert fit_attention_decode(folder) == fit_attention_decode(folder)


def test_another_kernel_of_tensorrt_llm_on_hopper_is_left_out(tmp_path: Path) -> None:
    """With as many KV heads as query heads it runs another kernel: rows of it, ten times slower, change nothing."""

    def seconds(batch: int, tokens: int, heads: int, kv_heads: int, width: int) -> float:
        slower = 10.0 if heads == kv_heads else 1.0
        return slower * warm_decode(batch, tokens, heads, kv_heads, width)

    write_table(tmp_path / "attn_decode.csv", rows("kv_len", (256, 1024, 4096, 16384, 65536), "trtllm-1.0", seconds))
    (entry,) = fit_attention_decode(tmp_path).entries["h100-sxm"]
    assert entry.held_back_p90_pct is not None and entry.held_back_p90_pct < 3.0


def test_a_missing_table_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"attn_decode\.csv"):
        fit_attention_decode(tmp_path)
