"""What the screen of a search loses: its answer against simulating every strategy, and its error, on random problems.

    python benchmarks/screen.py [--count 200] [--seed 1] [--most 400]

Problems are drawn: models (dense, experts, latent attention), up to 16 GPUs, loads, rates, limits, objectives, prefill
and decode together or apart; spaces of more than `--most` strategies are left out. Regret is by how much the objective
of the search's best is worse than that of the best of all, each simulated under the load. The screen's error is the
simulated figure over the screened one.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

import numpy as np
from msgspec.structs import replace

from shardwright.tests.search.questions import Question, drawn_questions
from shardwright.tests.spaces import strategies
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.errors import InputError
from shardwright.tools.plan.document import PHASES, Strategy
from shardwright.tools.plan.placement import own_cut
from shardwright.tools.search.candidate import Candidate, SearchRequest
from shardwright.tools.search.ranking import worth
from shardwright.tools.search.screen import Screen
from shardwright.tools.search.search import base_setting, search_anew
from shardwright.tools.search.simulated import candidate_at


def as_cut(request: SearchRequest, strategy: Strategy) -> Strategy:
    """The strategy with the stages that a named engine cuts by itself."""
    engine, layers = request.named_engine, request.architecture.num_layers
    if engine is None:
        return strategy
    phases = {phase: getattr(strategy, phase) for phase in PHASES}
    cut = {
        phase: degrees.model_copy(update={"stage_layers": own_cut(JUDGED[engine].default_cut(layers, degrees.pp))})
        for phase, degrees in phases.items()
    }
    return strategy.model_copy(update=cut)


def regret_of(question: Question, most: int) -> tuple[float | None, int, int, list[tuple[float, float, float]]] | None:
    """Regret, strategies, simulated loads and (TTFT, TPOT, cost) ratios; `None` where the space is too large."""
    # With an open number of requests there is no one load to compare at.
    request = replace(question.search, concurrency_open=False)
    space = [as_cut(request, strategy) for strategy in islice(strategies(request.space), most + 1)]
    if len(space) > most:
        return None
    setting, objective = base_setting(request), request.workload.objective
    result = search_anew(request, setting)
    candidates: list[Candidate] = []
    for strategy in space:
        try:
            candidates.append(candidate_at(request, setting, strategy, request.workload.concurrency))
        except InputError:
            continue
    ratios = []
    screen = Screen(request, setting)
    rows = screen.rows
    by_strategy = {plan.strategy: plan for plan in candidates if plan.ttft_ms is not None}
    for row in range(len(rows)):
        plan = by_strategy.get(screen.strategy(rows, row))
        if plan is not None and plan.tpot_ms and plan.ttft_ms:
            cost = worth(plan, objective) / float(rows.cost[row])
            ratios.append(
                (plan.ttft_ms / float(rows.ttft_s[row]) / 1e3, plan.tpot_ms / float(rows.tpot_s[row]) / 1e3, cost)
            )
    feasible = [plan for plan in candidates if plan.feasible]
    if not feasible:
        return (0.0 if result.best is None else None), len(space), result.simulated, ratios
    clean = [plan for plan in feasible if not plan.warnings] or feasible
    least = min(worth(plan, objective) for plan in clean)
    if result.best is None:
        return float("inf"), len(space), result.simulated, ratios
    return worth(result.best, objective) / least - 1.0, len(space), result.simulated, ratios


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=400)
    arguments = parser.parse_args()
    regrets: list[float] = []
    ratios: list[tuple[float, float, float]] = []
    spaces = simulated = 0
    start = time.monotonic()
    for question in drawn_questions(seed=arguments.seed, most_gpus=16):
        result = regret_of(question, arguments.most)
        if result is None:
            continue
        regret, space, loads, errors = result
        spaces, simulated = spaces + space, simulated + loads
        regrets.append(0.0 if regret is None else regret)
        ratios.extend(errors)
        if regret is None or regret > 0.005:
            words = "an answer where there is none" if regret is None else f"regret {regret:.1%}"
            print(f"{question.name}: {words} of {space}", flush=True)
        if len(regrets) >= arguments.count:
            break
    values = np.array(regrets)
    seconds = time.monotonic() - start
    print(f"{len(values)} problems, {spaces:,} strategies, {simulated:,} loads simulated in searches, {seconds:.0f} s")
    middle, tenth, hundredth = np.percentile(values, (50, 90, 99))
    print(f"regret: median {middle:.2%}, p90 {tenth:.2%}, p99 {hundredth:.2%}, most {values.max():.1%}")
    table = np.array(ratios)
    for place, what in enumerate(("TTFT", "TPOT", "cost")):
        low, middle, high = np.percentile(table[:, place], (5, 50, 95))
        print(f"simulated / screened {what}: {low:.2f} to {high:.2f} (5 to 95%), median {middle:.2f}")


if __name__ == "__main__":
    main()
