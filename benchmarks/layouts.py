"""Whether the search finds the layouts that others have published for the same model, hardware and load.

    python benchmarks/layouts.py [--only TEXT]

Layouts are those of tests/cases/deployments.json, their loads those of tests/cases/search_layouts.json. Every layout is
searched for alike, without any tuning: its hardware, number formats, load, engine and its settings as published, the
relaxations that it needs allowed and no other, for each objective (latency, throughput, cost). It counts as found where
it is among the first three for an objective, or on the Pareto front, at a concurrency that was published for it. A
layout's rank is one more than the number of other layouts that are better by more than a tie (0.5%), or that no rule
warns of where one warns of it. Layouts are the same where all degrees and numbers of replicas agree; left out are what
engines decide by themselves or nobody publishes: redundant experts, the cut of stages, and how the shared expert and
the few dense layers of a mixture are split. Where the phases were published apart, and not how many devices each gets
for one load, each is judged by itself among all that its devices could do: both must be among the first three.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.catalog.models import load_model
from shardwright.tools.errors import InputError, MissingFieldError
from shardwright.tools.performance.layout import facts_of
from shardwright.tools.performance.setting import Setting
from shardwright.tools.plan.describe import describe
from shardwright.tools.plan.document import (
    PHASES,
    HardwareBlock,
    Objective,
    Phase,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import gpu_count, stage_width
from shardwright.tools.search.candidate import Candidate, SearchRequest
from shardwright.tools.search.loads import shared_batches
from shardwright.tools.search.phase_replicas import PhaseScreen
from shardwright.tools.search.ranking import worth
from shardwright.tools.search.search import base_setting, search_anew
from shardwright.tools.search.simulated import candidate_at
from shardwright.tools.search.strategy_rows import TIE_SHARE

CASES = Path(__file__).resolve().parent.parent / "tests" / "cases"
OBJECTIVES: tuple[Objective, ...] = ("latency", "throughput", "cost")
LEADING = 3
# One way and per GPU, where a card's network is not known: 100 Gbit/s.
UNKNOWN_NETWORK_GB_S = 12.5
DEGREES = ("pp", "sp", "ep", "tp", "attention_dp", "tp_expert", "kv_sp")


class Case(Struct, frozen=True):
    """A published layout and its load; `unknown` says why it cannot be judged."""

    name: str
    request: SearchRequest
    strategy: Strategy
    concurrencies: tuple[int, ...]
    counts: bool
    apart: bool
    unknown: str | None

    def key(self, strategy: Strategy) -> tuple[int, ...]:
        """The key by which layouts are told apart here."""
        sides = (self.side_key(phase, phase.replicas) for phase in (strategy.prefill, strategy.decode))
        return (strategy.dp if self.counts else 1, *chain.from_iterable(sides))

    def side_key(self, phase: PhaseStrategy, replicas: int | None) -> tuple[int, ...]:
        """The key by which layouts of one phase are told apart."""
        names = [*DEGREES, *(() if self.request.architecture.is_moe else ("tp_ffn",))]
        return (*(getattr(phase, name) or 1 for name in names), replicas or 1 if self.counts else 1)

    def is_same(self, strategy: Strategy) -> bool:
        """Whether `strategy` is the published layout."""
        return self.key(strategy) == self.key(self.strategy)


class Found(Struct, frozen=True):
    """Where a search has a layout: its rank by one objective (`None`: not feasible), and whether it is on the front."""

    objective: Objective | Literal["apart"]
    concurrency: int
    rank: int | None
    on_front: bool
    remark: str

    @property
    def is_found(self) -> bool:
        """Whether the layout counts as found."""
        return self.on_front or (self.rank is not None and self.rank <= LEADING)


def cases() -> Iterator[Case]:
    """All layouts of the tables."""
    layouts = {row["name"]: row for row in json.loads((CASES / "deployments.json").read_text("utf-8"))}
    for load in json.loads((CASES / "search_layouts.json").read_text("utf-8"))["layouts"]:
        yield _case(layouts[load["name"]], load)


def _case(layout: dict[str, Any], load: dict[str, Any]) -> Case:
    size, _, name = load.get("hardware", layout["hardware"]).partition(":")
    nodes, _, gpus = size.partition("x")
    accelerator = find_accelerator(name)
    hardware = HardwareBlock(accelerator=name, nodes=int(nodes), gpus_per_node=int(gpus))
    if facts_of(hardware, accelerator).stated_inter_bw_bytes_s is None:
        hardware = hardware.model_copy(update={"inter_node_bw_gb_s": UNKNOWN_NETWORK_GB_S})
    prefill, decode = (PhaseStrategy.model_validate(layout[phase]) for phase in ("prefill", "decode"))
    dp = layout["dp"]
    if "replicas" in load:
        counts: list[int] = load["replicas"]
        prefill, decode = (
            phase.model_copy(update={"replicas": count}) for phase, count in zip((prefill, decode), counts, strict=True)
        )
        dp = sum(counts)
    strategy = Strategy(dp=dp, gpu_count=1, prefill=prefill, decode=decode)
    request = SearchRequest(
        architecture=load_model(layout["model"]).architecture(),
        hardware=hardware,
        facts=facts_of(hardware, accelerator),
        workload=WorkloadBlock.model_validate(load.get("load", layout["load"])),
        precision=PrecisionBlock.model_validate({**layout["precision"], **load.get("precision", {})}),
        policy=PolicyBlock.model_validate({"relaxations": list(layout["relaxations"])}),
        serving=None if "serving" not in load else ServingBlock.model_validate(load["serving"]),
        # What was published of replicas that serve both phases was chosen among such.
        disaggregated=prefill.replicas is not None,
    )
    return Case(
        name=layout["name"],
        request=request,
        strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
        concurrencies=tuple(load.get("concurrency", (layout["load"]["concurrency"],))),
        counts=load.get("counts", True),
        apart=load.get("apart", False),
        unknown=load.get("unknown"),
    )


def judged(case: Case) -> Iterator[Found]:
    """The layout under each objective at each published concurrency; what was timed is shared."""
    setting = base_setting(case.request)
    for concurrency in case.concurrencies:
        if case.apart:
            yield _apart(case, concurrency)
            continue
        for objective in OBJECTIVES:
            update = {"objective": objective, "concurrency": concurrency}
            workload = case.request.workload.model_copy(update=update)
            yield _outcome(case, replace(case.request, workload=workload), setting.with_workload(workload))


def _apart(case: Case, concurrency: int) -> Found:
    """Both phases by themselves; the rank is that of the one that is further behind."""
    sides = [_side(case, phase, concurrency) for phase in PHASES]
    ranks = [rank for rank, _ in sides if rank is not None]
    rank = max(ranks) if len(ranks) == len(sides) else None
    return Found("apart", concurrency, rank, False, "; ".join(words for _, words in sides))


def _side(case: Case, phase: Phase, concurrency: int) -> tuple[int | None, str]:
    """The rank of one phase among all that its devices could do, by the time of all prompts or of a step, and why."""
    side: PhaseStrategy = getattr(case.strategy, phase)
    hardware = case.request.hardware
    gpus = (side.replicas or 1) * side.pp * stage_width(side)
    hardware = hardware.model_copy(update={"nodes": -(-gpus // hardware.gpus_per_node)})
    facts = facts_of(hardware, case.request.facts.accelerator)
    workload = case.request.workload.model_copy(update={"concurrency": concurrency})
    request = replace(case.request, hardware=hardware, facts=facts, workload=workload)
    loads = np.array([concurrency])
    screen = PhaseScreen(request, base_setting(request), phase, shared_batches(loads, request.space.gpus), loads)
    rows, best = screen.rows, dict[tuple[int, ...], tuple[bool, float]]()
    seconds = rows.prompts_s if phase == "prefill" else rows.pass_s
    for row in range(len(rows)):
        degrees = screen.options[int(rows.replica[row])].degrees(phase)
        key = case.side_key(degrees, int(rows.replicas[row]))
        best[key] = min(best.get(key, (True, math.inf)), (bool(rows.warnings[row]), float(seconds[row])))
    entry = best.get(case.side_key(side, side.replicas))
    if entry is None:
        return None, f"{phase}: not feasible"
    warned, took_s = entry
    ahead = sum(warns < warned or (warns == warned and s * (1 + TIE_SHARE) < took_s) for warns, s in best.values())
    least = min(s for _, s in best.values())
    return 1 + ahead, f"{phase} rank {1 + ahead} of {len(best)} on {gpus}, {took_s / least - 1.0:+.1%} by time"


def _outcome(case: Case, request: SearchRequest, setting: Setting) -> Found:
    result, workload = search_anew(request, setting), request.workload
    feasible = [candidate for candidate in result.candidates if candidate.feasible]
    front = (result.candidates[place].strategy for place in result.pareto)
    same = [candidate for candidate in feasible if case.is_same(candidate.strategy)]
    try:
        published = same[0] if same else candidate_at(request, setting, case.strategy, workload.concurrency)
    except InputError as error:
        return Found(workload.objective, workload.concurrency, None, False, str(error))
    on_front = any(case.is_same(strategy) for strategy in front)
    if not published.feasible:
        return Found(workload.objective, workload.concurrency, None, on_front, "; ".join(published.why_not))
    ahead = {case.key(candidate.strategy) for candidate in feasible if leads(candidate, published, workload.objective)}
    return Found(
        workload.objective, workload.concurrency, 1 + len(ahead), on_front, remark(published, result.best, workload)
    )


def leads(candidate: Candidate, other: Candidate, objective: Objective) -> bool:
    """Whether `candidate` is better than `other` by more than a tie, or has no warnings where `other` has some."""
    if bool(candidate.warnings) != bool(other.warnings):
        return not candidate.warnings
    return worth(candidate, objective) * (1 + TIE_SHARE) < worth(other, objective)


def remark(published: Candidate, best: Candidate | None, workload: WorkloadBlock) -> str:
    """How far a layout is behind the best one."""
    if best is None:
        return "nothing is feasible"
    behind = worth(published, workload.objective) / worth(best, workload.objective) - 1.0
    warned = f", warned of by {', '.join(published.warnings)}" if published.warnings else ""
    return f"{behind:+.1%} by {workload.objective}{warned}; best {describe(best.strategy)} on {best.gpus}"


def verdict(results: list[Found]) -> str:
    """The best outcome of a layout, in words."""
    ranks = [result.rank for result in results if result.rank is not None]
    least = min(ranks, default=None)
    if least is not None and least <= LEADING:
        return "first" if least == 1 else f"{least}. of all"
    if any(result.on_front for result in results):
        return "on the front"
    return "not feasible" if least is None else f"rank {least}"


def main() -> None:
    """Print the table and the share."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="layouts with this in their name")
    only = parser.parse_args().only
    verdicts: list[bool] = []
    for case in (case for case in cases() if only in case.name):
        if case.unknown is not None:
            print(f"  {'-':12} {case.name}: {case.unknown}")
            continue
        start = time.perf_counter()
        try:
            results = list(judged(case))
        except MissingFieldError as error:
            print(f"  {'-':12} {case.name}: {error}")
            continue
        good = any(result.is_found for result in results)
        verdicts.append(good)
        print(f"  {verdict(results):12} {case.name} ({time.perf_counter() - start:.1f} s)")
        for result in [result for result in results if result.is_found][:1] or results:
            place = f"rank {result.rank}" if result.rank is not None else "not feasible"
            front = ", on the front" if result.on_front else ""
            print(
                f"      {result.objective:10} at {result.concurrency:6,}: {place}{front}; {result.remark}", flush=True
            )
    if verdicts:
        share = sum(verdicts) / len(verdicts)
        print(f"{sum(verdicts)} of {len(verdicts)} layouts: first three or on the front ({share:.0%})")


if __name__ == "__main__":
    main()
