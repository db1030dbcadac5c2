"""One case of a sweep: searched like a plan, reported as one row.

The row of a case without a plan names the binding rule and why; that of a case that cannot be evaluated names what is
missing. A fault of the program in one case is a row too: it must not take the others with it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from msgspec import Struct
from pydantic import Field

from ...tools.calibration.custom import CustomCalibration
from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.language.errors import RequestError
from ...tools.performance.cost import cost_of, price_of
from ...tools.plan.describe import describe
from ...tools.plan.performance import CostUnit
from ...tools.search.candidate import Candidate, SearchRequest, SearchResult
from ...tools.search.search import base_setting, search
from ..intent.complete import complete
from ..runs.time_limit import TIME_LIMIT_S, within
from ..runs.workers import DIED
from ..stated.search_request import architecture_of, hardware_block, search_request
from .document import Case

Figure = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Row(Frozen):
    """One row of the table. `feasible` is absent where `error` says why the case could not be evaluated.

    Number formats that were left open are those of the answer, absent where there is none. `strategy` is the best for
    the workload's objective; `strategy_json` is the same as the block of a plan. `limited_ms` is a JSON object of the
    latencies that a limit is on, but for the means of TTFT and TPOT ("TTFT p95"). The cost is of whole nodes, in USD at
    the catalogue's price, or in GPU-seconds where it has none. `evaluated` counts the strategies that
    were; `left_out` is what the time limit left no time for.
    """

    model: str
    hardware: str
    workload: str
    objective: str | None = None
    weights: str | None = None
    kv_cache: str | None = None
    activations: str | None = None
    feasible: bool | None = None
    rule: str | None = None
    reason: str | None = None
    strategy: str | None = None
    strategy_json: str | None = None
    gpus: int | None = None
    concurrency: int | None = None
    ttft_ms: Figure | None = None
    tpot_ms: Figure | None = None
    end_to_end_ms: Figure | None = None
    output_tokens_per_s: Figure | None = None
    output_tokens_per_s_per_gpu: Figure | None = None
    limited_ms: str | None = None
    cost_per_million_output_tokens: Figure | None = None
    cost_unit: CostUnit | None = None
    memory_per_gpu_bytes: int | None = None
    warnings: str | None = None
    evaluated: int | None = None
    left_out: str | None = None
    error: str | None = None


class Outcome(Struct, frozen=True):
    """A row, and whether it is an answer: the next run repeats a case that a broken run left."""

    row: Row
    is_answer: bool = True


def unanswered(case: Case, why: str) -> Outcome:
    """The outcome of a case that was not finished."""
    return Outcome(Row(model=case.model, hardware=case.hardware, workload=case.workload, error=why), is_answer=False)


def died(case: Case) -> Outcome:
    """The outcome of a case whose process died."""
    return unanswered(case, f"{DIED}; run the sweep again to try once more")


def evaluate_case(
    case: Case, calibration: CustomCalibration | None = None, time_limit_s: float = TIME_LIMIT_S
) -> Outcome:
    """Search the strategies of one case for at most `time_limit_s` seconds; never raises."""
    labels: dict[str, Any] = {"model": case.model, "hardware": case.hardware, "workload": case.workload}
    try:
        intent = complete(case.said).model_copy(update={"calibration": calibration})
        labels["objective"] = intent.workload.objective
        if intent.precisions is None:
            labels |= intent.precision.model_dump()
        assert intent.hardware is not None and intent.hardware.nodes is not None  # every case names both
        architecture = architecture_of(intent.model)
        request = search_request(intent, architecture, hardware_block(intent.hardware, intent.hardware.nodes))
        with within(time_limit_s):
            result = search(request)
        return Outcome(Row(**labels, **_answer(result, request)))
    except RequestError as error:
        # The row's columns already state the request.
        return Outcome(Row(**labels, error=error.reason))
    except InputError as error:
        return Outcome(Row(**labels, error=str(error)))
    except Exception as error:  # noqa: BLE001 - a fault in one case must not take the others with it
        reason = " ".join(str(error).split())[:300]
        return unanswered(case, f"failed with {type(error).__name__}: {reason}")


def _answer(found: SearchResult, request: SearchRequest) -> dict[str, Any]:
    best = found.best
    counts = {"evaluated": found.evaluated, "left_out": "; ".join(found.left_out) or None}
    if best is None:
        rule, reason = _why_not(found)
        return {"feasible": False, "rule": rule, "reason": reason, **counts}
    served = best.served_tokens_per_s or best.output_tokens_per_s or 0.0
    price = price_of(base_setting(request).hardware.accelerator, None)
    cost = cost_of(best.billed_gpus or best.gpus, served, price)
    chosen = {} if best.precision is None else best.precision.model_dump()
    return {
        **chosen,
        "feasible": True,
        "strategy": describe(best.strategy),
        "strategy_json": best.strategy.model_dump_json(),
        "gpus": best.gpus,
        "concurrency": best.concurrency,
        "ttft_ms": best.ttft_ms,
        "tpot_ms": best.tpot_ms,
        "end_to_end_ms": best.end_to_end_ms,
        "output_tokens_per_s": best.output_tokens_per_s,
        "output_tokens_per_s_per_gpu": best.output_tokens_per_s_per_gpu,
        "limited_ms": json.dumps(best.limited_ms) if best.limited_ms else None,
        "cost_per_million_output_tokens": None if cost is None else cost.per_million_output_tokens,
        "cost_unit": None if cost is None else cost.unit,
        "memory_per_gpu_bytes": best.memory_per_gpu_bytes,
        "warnings": " ".join(best.warnings) or None,
        **counts,
    }


def _why_not(result: SearchResult) -> tuple[str | None, str]:
    """The rule that the nearest candidate (the first) breaks, and by how much."""
    nearest: Candidate | None = next(iter(result.candidates), None)
    if nearest is None or not nearest.why_not:
        rule = max(result.rejected, key=lambda name: result.rejected[name], default=None)
        return rule, "no legal strategy for this model on this hardware"
    rule, _, reason = nearest.why_not[0].partition(": ")
    more = "".join(f"; {why.partition(': ')[2] or why}" for why in nearest.why_not[1:])
    return rule, f"nearest is {describe(nearest.strategy)} on {nearest.gpus} GPUs: {reason}{more}"
