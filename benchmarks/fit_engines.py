"""Fits the constants of serving engines to measured results and writes the data file that ships with the package.

    OMP_NUM_THREADS=1 python benchmarks/fit_engines.py MEASURED.csv [--write]

Rows that the table's own notes or other rows contradict are left out (`suspicious` says which and why). The same table
gives the same file. numba, where installed, makes it some hundred times as quick. After new constants the ranges have
to be made anew: `benchmarks/fit_ranges.py`, which also says how far off rows are that took no part in a fit.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from shardwright.benchmarks.fits.engine_levels import POOLED, Key, fit_levels
from shardwright.tools.calibration.engine_profile import all_entries
from shardwright.tools.calibration.error_ranges import LOW_CONCURRENCY
from shardwright.tools.engines.names import ENGINES
from shardwright.tools.errors import InputError
from shardwright.tools.fidelity.compiled import mean_times
from shardwright.tools.fidelity.conformal import pair_of
from shardwright.tools.fidelity.engine_cases import About, Case, Settings, case_of
from shardwright.tools.fidelity.engine_fit import Fitted, log_error
from shardwright.tools.fidelity.situation import Situation, situation_of
from shardwright.tools.fidelity.table import MeasuredRow, read_table_file
from shardwright.tools.performance.serving.load import Burst

DATA = Path(__file__).resolve().parent.parent / "tools" / "calibration" / "data" / "engines.json"


Figures = dict[Situation, dict[str, list[float]]]
# A group of many rows says little more than one of a dozen, spread over its loads.
MOST_OF_GROUP = 12
MOST_AT_ONCE = 6000
# Relative errors by family and group.
Errors = dict[tuple[str, str], list[float]]


def suspicious(row: MeasuredRow) -> str:
    """Why a row takes no part in the fit (empty: it does)."""
    if row.disaggregated or row.tier == "C":
        return "ambiguous"
    if row.framework_version in ("1.3.0rc1", "1.3.0rc5"):
        return "times independent of the concurrency, or faster than it allows"
    if row.source == "GPUSTACK" and not row.load.isdigit():
        return "hundreds of requests at once: limits of API servers and preemption that nobody states"
    if "gpt-oss" in row.model and row.load == "512" and "H100" in row.gpu:
        return "faster at 512 than at 64"
    if (
        row.source == "IX"
        and row.metric == "ttft_ms"
        and row.published.startswith("2025-11")
        and "sglang" in row.framework
    ):
        return "warm-up compilation averaged in"
    return ""


def read_cases(path: Path) -> list[Case]:
    """The cases of a table: rows of one deployment and load are one case."""
    figures: Figures = defaultdict(lambda: defaultdict(list))
    about: dict[Situation, tuple[str, str, str]] = {}
    for row in read_table_file(path):
        situation = situation_of(row)
        if suspicious(row) or not isinstance(situation, Situation):
            continue
        arrivals = situation.arrivals
        if isinstance(arrivals, Burst):
            # Some waves of a saturated engine tell as much as dozens.
            arrivals = Burst(min(arrivals.requests, MOST_AT_ONCE))
        key = Situation(situation.deployment, arrivals, situation.lengths, "ttft_ms")
        figures[key][situation.figure].append(row.value)
        layout = ",".join(str(degree or "") for degree in (row.tp, row.ep, row.dp, row.pp))
        group = f"{row.source}|{row.model}|{row.gpu}|{layout}"
        about[key] = (group, pair_of(situation.deployment), row.tier)
    cases: list[Case] = []
    settings: Settings = {}
    refused: defaultdict[str, int] = defaultdict(int)
    for situation, by_figure in spread_out(figures, about).items():
        group, pair, tier = about[situation]
        measured = {name: statistics.fmean(values) for name, values in by_figure.items()}
        try:
            cases.append(case_of(About(tier, group, pair), situation, measured, settings))
        except InputError as error:
            refused[str(error)[:90]] += 1
    for reason, count in sorted(refused.items(), key=lambda item: -item[1])[:5]:
        print(f"  left out {count}: {reason}")
    return cases


def spread_out(figures: Figures, about: dict[Situation, tuple[str, str, str]]) -> Figures:
    """At most `MOST_OF_GROUP` situations of each group, spread evenly over its lengths and loads."""
    groups: defaultdict[str, list[Situation]] = defaultdict(list)
    for situation in figures:
        groups[about[situation][0]].append(situation)
    spread: Figures = {}
    for group in groups.values():
        group.sort(key=lambda case: (case.lengths.input_tokens, case.lengths.output_tokens, str(case.arrivals)))
        count = min(MOST_OF_GROUP, len(group))
        chosen = {round(place * (len(group) - 1) / max(1, count - 1)) for place in range(count)}
        spread |= {group[index]: figures[group[index]] for index in sorted(chosen)}
    return spread


def family(case: Case, figure: str) -> str:
    """The family that a figure is scored in."""
    if figure == "ttft_ms":
        users = getattr(case.situation.arrivals, "users", None) or getattr(case.situation.arrivals, "sequences", None)
        return "ttft_low" if users is not None and users <= LOW_CONCURRENCY else "ttft_load"
    return {"tpot_ms": "tpot", "e2e_ms": "e2e", "makespan_ms": "e2e"}.get(figure, "throughput")


def score(cases: Sequence[Case], constants: Sequence[Fitted]) -> Errors:
    """Relative errors by (family, group)."""
    errors: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for case, fitted in zip(cases, constants, strict=True):
        times = mean_times(case.server_with(fitted.constants), case)
        for figure, measured in case.measured.items():
            log_ratio = log_error(None if times is None else case.figure(times, figure), measured)
            errors[(family(case, figure), case.about.group)].append(math.exp(log_ratio) - 1.0)
    return errors


def summary(
    errors: dict[tuple[str, str], list[float]], keep: set[str] | None = None
) -> dict[str, tuple[float, float, int]]:
    """Median and p90 over groups of the groups' median absolute error in percent, and the number of groups."""
    by_family: dict[str, tuple[float, float, int]] = {}
    for name in ("tpot", "ttft_low", "ttft_load", "e2e", "throughput"):
        medians = [
            100 * float(np.median(np.abs(values)))
            for (fam, group), values in errors.items()
            if fam == name and (keep is None or group in keep)
        ]
        if medians:
            by_family[name] = (float(np.median(medians)), float(np.percentile(medians, 90)), len(medians))
    return by_family


def show(title: str, errors: Errors, tier_a: set[str]) -> None:
    """Print the scores of all groups, of tier A, and of each source."""
    print(title)
    sources = sorted({group.partition("|")[0] for _, group in errors})
    for name, keep in (("all", None), ("tier A", tier_a)):
        print(f"  {name:8}", "  ".join(f"{k} {m:.1f}/{p:.0f} ({n})" for k, (m, p, n) in summary(errors, keep).items()))
    for source in sources:
        of_source = {key: value for key, value in errors.items() if key[1].startswith(source + "|")}
        print(f"  {source:8}", "  ".join(f"{k} {m:.1f}/{p:.0f} ({n})" for k, (m, p, n) in summary(of_source).items()))


def entry_of(key: Key, fitted: Fitted, cases: Sequence[Case]) -> dict[str, object]:
    """One entry of the data file. How the engine schedules is documented behaviour, kept from the file as it is."""
    members = [case for case in cases if case.wanted[:2] == key[:2] and key[2] in (POOLED, case.wanted[2])]
    scheduler = next(
        entry.scheduler
        for wanted in (key, (*key[:2], POOLED))
        for entry in all_entries()
        if (entry.engine, entry.generation, entry.accelerator_class) == wanted
    )
    constants = fitted.constants
    if not ENGINES[key[0]].gives_heads_one_block(key[1]):
        constants = constants.model_copy(update={"head_token_ns": 0.0})
    return {
        "engine": key[0],
        "generation": key[1],
        "accelerator_class": key[2],
        "constants": {name: float(f"{value:.4g}") for name, value in constants.model_dump().items()},
        "scheduler": scheduler.model_dump(exclude_defaults=True),
        "rows": sum(len(case.measured) for case in members),
        "source": "published end-to-end results: " + ", ".join(sorted({sources_of(case) for case in members})),
        "fitted": date.today().isoformat(),
    }


def sources_of(case: Case) -> str:
    """The source of a case, by the key that the measured table gives it."""
    return case.about.group.partition("|")[0]


def main() -> None:
    """Fit, rotate, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--write", action="store_true", help="write the data file")
    chosen = parser.parse_args()
    start = time.perf_counter()

    def note(text: str) -> None:
        print(f"  {time.perf_counter() - start:6.0f} s  {text}", flush=True)

    cases = read_cases(chosen.table)
    tier_a = {case.about.group for case in cases if case.about.tier == "A"}
    note(f"{len(cases)} cases in {len({case.about.group for case in cases})} groups")
    levels = fit_levels(cases, note)
    show("In sample", score(cases, [levels.of(case.wanted) for case in cases]), tier_a)
    if chosen.write:
        entries = [entry_of(key, fitted, cases) for key, fitted in sorted(levels.fitted.items())]
        text = json.dumps({"entries": entries}, indent=1, ensure_ascii=False) + "\n"
        DATA.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
