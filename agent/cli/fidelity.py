"""`fidelity`: predictions for a table of measured results, and how far off they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .documents import title_of
from .flags import FILE, output_format
from .online_flag import online_option
from .streams import STANDARD, check_places, read_stdin, write_answer, write_files

if TYPE_CHECKING:
    from ...tools.fidelity.table import MeasuredRow


@click.command("fidelity", short_help="Predict a table of measured results and say how far off.")
@click.argument("table", metavar="CSV", type=FILE)
@click.option("-o", "--output", type=FILE, help="Write id, metric, measured, predicted, error, reason.")
@online_option
@output_format
def fidelity_command(table: Path, output: Path | None, output_format: str) -> int:
    """Predict every row of CSV, a table of measured serving results, and print the errors beside a plain roofline's.

    Columns: id, model, gpu, tp, isl, osl, concurrency_or_batch, metric, value; and where known framework,
    framework_version, weights_dtype, kv_dtype, gpus, pp, ep, dp, disaggregated, statistic, notes. A row that cannot be
    modelled is left out of the errors and counted with its reason; the exit status is 0 all the same.

    A metric is ttft_ms, tpot_ms, itl_ms, e2e_latency_ms, output_tok_s_total (vLLM's output_throughput),
    output_tok_s_per_gpu, total_tok_s or total_tok_s_per_gpu.
    """
    check_places({"-o": output}, [table])
    rows = _read(table)
    from ...tools.fidelity.run import predict_rows, predictions_csv, report_of
    from ...tools.performance.serving_estimate import serve

    predictions = predict_rows(rows, serve)
    report = report_of(predictions)
    from ..report.fidelity import render_fidelity

    write_files(
        {} if output is None else {output: predictions_csv(predictions)},
        lambda _: write_answer(report, output_format, render_fidelity, title=title_of(table)),
    )
    return 0


def _read(table: Path) -> tuple[MeasuredRow, ...]:
    from ...tools.fidelity.table import MAX_TABLE_BYTES, read_table, read_table_file

    if str(table) == STANDARD:
        return read_table(read_stdin(MAX_TABLE_BYTES), "standard input")
    return read_table_file(table)
