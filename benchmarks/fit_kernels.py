"""Fits the constants of every kernel to measured tables and writes the data files that ship with the package.

    OMP_NUM_THREADS=1 python benchmarks/fit_kernels.py KERNEL_DIR [--only gemm] [--output DIR]

KERNEL_DIR holds the tables (`gemm.csv`, `collectives.csv`, ...). With `--only`, entries of other kernels in the files
are kept. The same tables give the same files, to the byte. Prints the error on held-back shapes of each entry.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from shardwright.benchmarks.fits.attention import fit_attention_decode, fit_attention_prefill
from shardwright.benchmarks.fits.carry import FittedAccelerators
from shardwright.benchmarks.fits.collective import fit_collective
from shardwright.benchmarks.fits.elementwise import fit_elementwise
from shardwright.benchmarks.fits.exchange import fit_exchange
from shardwright.benchmarks.fits.gemm import fit_gemm
from shardwright.benchmarks.fits.grouped_gemm import fit_grouped_gemm
from shardwright.benchmarks.fits.mla import fit_mla_decode, fit_mla_prefill
from shardwright.tools.calibration.profile_file import CarryCheck, KernelEntry, ProfileFile
from shardwright.tools.errors import InputError

DATA = Path(__file__).resolve().parent.parent / "tools" / "calibration" / "data" / "kernels"
FITS: dict[str, Callable[[Path], FittedAccelerators]] = {
    "attention_decode": fit_attention_decode,
    "attention_prefill": fit_attention_prefill,
    "collective": fit_collective,
    "elementwise": fit_elementwise,
    "exchange": fit_exchange,
    "gemm": fit_gemm,
    "grouped_gemm": fit_grouped_gemm,
    "mla_decode": fit_mla_decode,
    "mla_prefill": fit_mla_prefill,
}


def text_of(file: ProfileFile) -> str:
    """The file as JSON with one entry on a line, so that a difference shows which entry changed."""
    lines = [f'{{"accelerator": {json.dumps(file.accelerator)},']
    for name, rows in (("entries", file.entries), ("carry_checks", file.carry_checks)):
        last = name == "carry_checks"
        body = ",\n".join("  " + json.dumps(row.model_dump(mode="json", exclude_none=True)) for row in rows)
        lines.append(f' "{name}": [\n{body}\n ]' + ("}" if last else ","))
    return "\n".join(lines) + "\n"


def order_of(entry: KernelEntry) -> tuple[str, str, str, str, int, int]:
    """The sort key of entries."""
    return (entry.kernel, entry.variant, entry.framework, entry.version, entry.nodes or 0, entry.ranks or 0)


def merge(path: Path, accelerator: str, entries: list[KernelEntry], checks: list[CarryCheck]) -> ProfileFile:
    """The file at `path` with all entries of the refitted kernels replaced."""
    old = ProfileFile.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None
    kernels = {row.kernel for row in (*entries, *checks)}
    kept = [entry for entry in (old.entries if old else ()) if entry.kernel not in kernels]
    kept_checks = [check for check in (old.carry_checks if old else ()) if check.kernel not in kernels]
    return ProfileFile(
        accelerator=accelerator,
        entries=tuple(sorted([*kept, *entries], key=order_of)),
        carry_checks=tuple(
            sorted(
                [*kept_checks, *checks], key=lambda check: (check.kernel, check.variant, check.framework, check.source)
            )
        ),
    )


def show(name: str, fitted: FittedAccelerators) -> None:
    """Print the errors of each entry and of each carry-over."""
    for accelerator, entries in fitted.entries.items():
        for row in sorted(entries, key=order_of):
            if row.held_back_median_pct is None:
                continue
            size = f" {row.nodes or 1}x{row.ranks}" if row.ranks else ""
            constants = " ".join(f"{key}={value:g}" for key, value in row.constants.items())
            print(
                f"{accelerator:29} {row.kernel} {row.variant}{size} {row.framework}-{row.version}: {row.rows} rows, "
                f"held back {row.held_back_median_pct}/{row.held_back_p90_pct} % ({row.held_back_rows}) | {constants}"
            )
    for accelerator, checks in fitted.carry_checks.items():
        for check in checks:
            print(f"carry {check.source} -> {accelerator} {name} {check.variant} {check.framework}: "
                  f"{check.median_pct}/{check.p90_pct} % of {check.rows} rows")  # fmt: skip


def main() -> None:
    """Fit, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("tables", type=Path, help="folder of the tables of kernel times")
    parser.add_argument("--only", choices=sorted(FITS), action="append", help="fit this kernel alone; may be repeated")
    parser.add_argument("--output", type=Path, default=DATA, help="folder of the data files")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or sorted(FITS):
        started = time.perf_counter()
        try:
            fitted = FITS[name](arguments.tables)
        except InputError as error:
            raise SystemExit(f"{name}: {error}") from None
        show(name, fitted)
        for accelerator in sorted({*fitted.entries, *fitted.carry_checks}):
            path = arguments.output / f"{accelerator}.json"
            merged = merge(
                path, accelerator, fitted.entries.get(accelerator, []), fitted.carry_checks.get(accelerator, [])
            )
            path.write_text(text_of(merged), encoding="utf-8")
        print(f"{name}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
