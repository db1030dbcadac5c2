"""The fits of latent attention, on tables made from known constants."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from shardwright.benchmarks.fits.mla import DECODE, PREFILL, fit_mla_decode, fit_mla_prefill
from shardwright.tools.calibration.chip import Chip, chip_of
from shardwright.tools.calibration.forms.constant import read_constants
from shardwright.tools.calibration.forms.mla import MlaDecodeConstants, MlaPrefillConstants
from shardwright.tools.calibration.shapes import LatentAttention
from shardwright.tools.catalog.hardware import find_accelerator

from .chips import mla_decode_s, mla_prefill_s
from .tables import write_table

CHIPS = {"h100-sxm": chip_of(find_accelerator("H100")), "l40s": chip_of(find_accelerator("L40S"))}
TRUE_DECODE = {"launch_us": 12.0, "memory_share": 0.85, "compute_share": 0.5, "wave_us": 3.0}
TRUE_PREFILL = {"launch_us": 14.0, "compute_share": 0.62, "memory_share": 0.5}
# Microseconds of the projections around the core in a module with one sequence; they grow with the root of more.
PROJECTIONS_US = 80.0
SHAPE = LatentAttention(1, 1, 1, 1, 512, 64, 128, 128, "bf16")


def decode_us(chip: Chip, batch: int, length: int, heads: int) -> float:
    sizes = {"sequences": batch, "new_tokens": 1, "context": length - 1, "heads": heads}
    kernel = replace(SHAPE, **{name: np.array([float(value)]) for name, value in sizes.items()})
    return float(DECODE.seconds(DECODE.warm(**TRUE_DECODE), chip, kernel)[0]) * 1e6


def prefill_us(chip: Chip, batch: int, length: int, heads: int) -> float:
    sizes = {"sequences": batch, "new_tokens": length, "context": 0, "heads": heads}
    kernel = replace(SHAPE, **{name: np.array([float(value)]) for name, value in sizes.items()})
    return float(PREFILL.seconds(PREFILL.warm(**TRUE_PREFILL), chip, kernel)[0]) * 1e6


def rows() -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = []
    columns = {"kernel": "made", "q_dtype": "bf16", "kv_dtype": "bf16"}
    kernel = {"gpu": "h100-sxm", "src": "trtllm-1.3.0", "scope": "attn_kernel", "gemm_dtype": "", **columns}
    module = {"gpu": "l40s", "src": "vllm-0.24.0", "scope": "module", "gemm_dtype": "bf16", **columns}
    never_split = {**kernel, "gpu": "l40s"}
    for batch, heads, length in product((1, 4, 16, 64), (8, 16, 64, 128), (128, 1024, 4096, 16384, 65536)):
        shape = {"batch": batch, "length": length, "local_heads": heads}
        core_us = decode_us(CHIPS["h100-sxm"], batch, length, heads)
        table.append({**kernel, "phase": "decode", **shape, "us": core_us})
        table.append({**never_split, "phase": "decode", **shape, "us": 1000 * core_us})
        layer_us = PROJECTIONS_US * batch**0.5 + decode_us(CHIPS["l40s"], batch, length, heads)
        table.append({**module, "phase": "decode", **shape, "us": layer_us})
        if length <= 16384:
            prompt_us = prefill_us(CHIPS["h100-sxm"], batch, length, heads)
            table.append({**kernel, "phase": "prefill", **shape, "us": prompt_us})
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    write_table(path / "mla.csv", rows())
    return path


def test_a_decode_fit_finds_the_constants_again(folder: Path) -> None:
    (entry,) = fit_mla_decode(folder).entries["h100-sxm"]
    constants = read_constants(MlaDecodeConstants, entry.constants)
    assert entry.held_back_median_pct is not None and entry.held_back_median_pct < 1.5
    for batch, context, heads in ((1, 3000, 16), (64, 10000, 128), (128, 60000, 16)):
        kernel = replace(SHAPE, sequences=batch, context=context, heads=heads)
        true = mla_decode_s(MlaDecodeConstants(**TRUE_DECODE), CHIPS["h100-sxm"], kernel)
        assert mla_decode_s(constants, CHIPS["h100-sxm"], kernel) == pytest.approx(true, rel=0.06)


def test_decode_of_l40s_comes_from_the_growth_of_its_modules(folder: Path) -> None:
    """The constants include neither what a module adds to the core nor the rows of the kernel that never splits."""
    (entry,) = fit_mla_decode(folder).entries["l40s"]
    assert entry.framework == "vllm"
    constants = read_constants(MlaDecodeConstants, entry.constants)
    kernel = replace(SHAPE, sequences=64, context=30000, heads=16)
    true = mla_decode_s(MlaDecodeConstants(**TRUE_DECODE), CHIPS["l40s"], kernel)
    assert mla_decode_s(constants, CHIPS["l40s"], kernel) == pytest.approx(true, rel=0.1)


def test_a_prefill_fit_finds_the_constants_again(folder: Path) -> None:
    (entry,) = fit_mla_prefill(folder).entries["h100-sxm"]
    constants = read_constants(MlaPrefillConstants, entry.constants)
    assert entry.held_back_median_pct is not None and entry.held_back_median_pct < 1.5
    for batch, tokens, heads in ((1, 3000, 16), (8, 700, 128)):
        kernel = replace(SHAPE, sequences=batch, new_tokens=tokens, context=0, heads=heads)
        true = mla_prefill_s(MlaPrefillConstants(**TRUE_PREFILL), CHIPS["h100-sxm"], kernel)
        assert mla_prefill_s(constants, CHIPS["h100-sxm"], kernel) == pytest.approx(true, rel=0.05)
