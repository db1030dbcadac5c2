"""The command that checks a plan with its engine's own load generator."""

from __future__ import annotations

import shlex

from ..engines.engine import LoadToSend
from ..plan.performance import Benchmark
from .layout import LoadedLayout
from .planned_run import lengths_of, planned_run
from .serving.load import OpenLoop
from .serving_estimate import serve


def benchmark_of(layout: LoadedLayout, model: str) -> Benchmark | None:
    """The benchmark command for `model` as served by `layout`, and what it should print.

    `None` if no load generator of the engine is known, or none sends such lengths or arrivals.

    At a rate the tool counts every request, also the first ones on an idle server, which a plan's figures leave out.
    Raises InputError: a fact that the arithmetic needs is not known, or the load cannot be served.
    """
    run, lengths, workload = planned_run(layout), lengths_of(layout), layout.setting.workload
    if lengths.stated is not None or workload.prefixes is not None or workload.arrivals is not None:
        return None
    rate = workload.request_rate
    load = LoadToSend(
        model=model,
        input_tokens=lengths.input_tokens,
        output_tokens=lengths.output_tokens,
        requests=run.requests,
        users=workload.concurrency if rate is None else None,
        rate_per_s=rate,
    )
    command = layout.setting.engine.facts.load_generator(load)
    if command is None:
        return None
    times = run.times if rate is None else serve(layout, OpenLoop(rate, run.requests), lengths)
    planned_times = run.times
    note = None
    if times is not planned_times:
        note = (
            "the tool counts every request, those on the server that is still idle too; once that is filled up TTFT "
            f"{planned_times.ttft.mean * 1e3:,.1f} ms, TPOT {planned_times.tpot.mean * 1e3:,.2f} ms, "
            "as an estimate has them"
        )
    return Benchmark(
        command=shlex.join(command),
        ttft_ms=times.ttft.mean * 1e3,
        tpot_ms=times.tpot.mean * 1e3,
        output_tokens_per_s=times.output_tokens_per_s,
        note=note,
    )
