"""In a tie by the objective the fewest GPUs win, then the quickest, then the simplest plan; the report says so."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.planning.rejected import why_lost
from shardwright.tools.plan.document import PhaseStrategy, Strategy, WorkloadBlock
from shardwright.tools.search.candidate import Candidate
from shardwright.tools.search.ranking import complexity
from shardwright.tools.search.strategy_rows import reordered

LOAD: dict[str, Any] = {"input_tokens": 1024, "output_tokens": 256, "concurrency": 16}
RATE = 4.0


def phase(tp: int, pp: int = 1, replicas: int | None = None) -> PhaseStrategy:
    return PhaseStrategy(pp=pp, sp=1, ep=1, tp=tp, tp_ffn=tp, replicas=replicas)


def together(tp: int, dp: int = 1, pp: int = 1) -> Strategy:
    return Strategy(dp=dp, gpu_count=dp * tp * pp, prefill=phase(tp, pp), decode=phase(tp, pp))


def apart(prefill: PhaseStrategy, decode: PhaseStrategy) -> Strategy:
    counts = [(side.replicas or 0) * side.tp * side.pp for side in (prefill, decode)]
    dp = (prefill.replicas or 0) + (decode.replicas or 0)
    return Strategy(dp=dp, gpu_count=sum(counts), prefill=prefill, decode=decode)


def candidate(strategy: Strategy, tpot_ms: float, tokens_per_s: float, *, served: float | None = None) -> Candidate:
    """A candidate that holds every limit, on nodes of eight, with 100 ms to the first token."""
    gpus = strategy.gpu_count
    return Candidate(
        strategy=strategy,
        feasible=True,
        gpus=gpus,
        billed_gpus=-(-gpus // 8) * 8,
        concurrency=16,
        ttft_ms=100.0,
        tpot_ms=tpot_ms,
        end_to_end_ms=100.0 + 255 * tpot_ms,
        output_tokens_per_s=tokens_per_s,
        output_tokens_per_s_per_gpu=tokens_per_s / gpus,
        served_tokens_per_s=served or tokens_per_s,
        memory_per_gpu_bytes=1,
    )


ALIKE = apart(phase(2, replicas=1), phase(2, replicas=1))
# Objective, whether a rate is stated, the winner, the loser, and the reason that is reported.
TIES = [
    ("cost", True, (together(2, dp=2), 20.0, 1000.0), (ALIKE, 12.0, 1010.0), "servers of two kinds instead of one"),
    ("cost", True, (together(4), 20.0, 900.0), (together(8), 8.0, 1020.0), "8 GPUs instead of 4"),
    ("cost", True, (together(4, dp=2), 9.0, 990.0), (together(1, dp=8), 20.0, 1020.0), "but slower"),
    ("cost", False, (together(4, dp=2), 9.0, 1000.0), (together(1, dp=8), 20.0, 1003.0), "but slower"),
    ("latency", False, (together(4, dp=2), 9.01, 900.0), (together(4, pp=2), 9.0, 950.0), "with more pipeline stages"),
    ("latency", False, (together(2, dp=2), 9.01, 900.0), (ALIKE, 9.0, 950.0), "servers of two kinds instead of one"),
    ("throughput", False, (together(2), 9.01, 997.0), (together(4), 9.0, 1000.0), "4 GPUs instead of 2"),
]


@pytest.mark.parametrize(("objective", "at_rate", "first", "second", "words"), TIES)
def test_of_a_tie_the_one_wins_that_is_said_to(
    objective: Any, at_rate: bool, first: tuple[Any, ...], second: tuple[Any, ...], words: str
) -> None:
    load = WorkloadBlock(**LOAD, objective=objective, request_rate=RATE if at_rate else None)
    served = RATE * 256 if at_rate else None
    best, other = candidate(*first, served=served), candidate(*second, served=served)
    assert reordered([other, best], load) == [best, other] == reordered([best, other], load)
    assert words in why_lost(other, best, objective).reason


def test_a_node_more_is_no_tie_however_fast_it_is() -> None:
    load = WorkloadBlock(**LOAD, objective="cost", request_rate=RATE)
    few, many = (
        candidate(together(8), 30.0, 900.0, served=1024.0),
        candidate(together(8, dp=2), 5.0, 1020.0, served=1024.0),
    )
    assert reordered([many, few], load) == [few, many]
    assert why_lost(many, few, "cost").reason == "16 GPUs billed for the same rate against 8 (+100%)"


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_servers_of_two_kinds_are_never_simpler_than_as_many_of_one(tp: int) -> None:
    assert complexity(apart(phase(tp, replicas=1), phase(tp, replicas=1))) > complexity(together(tp, dp=2))
    assert complexity(apart(phase(tp, replicas=2), phase(tp, replicas=2))) > complexity(together(tp, dp=4))
