"""`measure` and `calibrate`: this machine's kernels timed, and a calibration fitted to what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tools.engines.names import ENGINES
from ...tools.errors import InputError
from .documents import title_of
from .flags import COUNT, DTYPE, FILE, HARDWARE, TEXT, HardwareFlag, calibration_option, output_format
from .streams import (
    STANDARD,
    check_places,
    is_standard,
    read_stdin,
    write_answer,
    write_files,
    write_saved,
    write_stdout,
)

if TYPE_CHECKING:
    from ...tools.calibration.measure.run import Kernel
    from ...tools.fidelity.bench_outputs import Served

_KERNELS = ("gemm", "attention", "moe", "collectives")
_MAX_NAME = 100


@click.command("measure", short_help="Time this machine's kernels, for calibrate.")
@click.option("-o", "--output", type=FILE, help="Write the table here; else to standard output.")
@click.option(
    "--kernels", metavar="LIST", help=f"Which of {','.join(_KERNELS)}; all, where left out (collectives: several GPUs)."
)
@click.option("--quick", is_flag=True, help="A short grid, just enough for every fit.")
@click.option("--gpu", type=TEXT, help="The accelerator's name in the catalogue, where its own is not known.")
@output_format
def measure_command(output: Path | None, kernels: str | None, quick: bool, gpu: str | None, output_format: str) -> int:
    """Time matmuls, attention, experts and collectives on this machine's accelerator with PyTorch.

    Writes one CSV with a column "table", in the columns of public kernel tables; times are microseconds. Kernels are
    replayed as CUDA graphs on operands that no cache holds. Needs PyTorch: pip install 'shardwright[measure]'. Without
    an accelerator the host is timed, for trying it out.
    """
    if output_format == "json" and output is None:
        raise click.UsageError("--format json prints what was measured: -o FILE says where the table goes")
    check_places({"-o": output})
    wanted = None if kernels is None else _kernels(kernels)
    from ...tools.calibration.measure.machine import FULL, QUICK, find_machine
    from ...tools.calibration.measure.run import measure
    from ...tools.calibration.measure.table import table_text

    machine = find_machine(gpu)
    if machine.is_host:
        click.echo("shardwright measure: no accelerator here: the host is timed, for trying it out", err=True)
    # Between processes of a host there is no link worth a time, unless it is asked for.
    chosen = wanted or tuple(name for name in _known_kernels() if not machine.is_host or name != "collectives")
    measured = measure(machine, chosen, QUICK if quick else FULL)
    text = table_text(measured.rows)
    if output is None:
        write_stdout(text)
        return 0

    def report(_: frozenset[Path]) -> None:
        from ..report.calibration import render_measure

        write_answer(measured.report, output_format, render_measure, saved_as=output)

    write_files({output: text}, report)
    return 0


def _known_kernels() -> tuple[Kernel, ...]:
    from ...tools.calibration.measure.run import KERNELS

    return KERNELS


def _kernels(words: str) -> tuple[Kernel, ...]:
    """The kernels that a list names.

    Raises:
        UsageError: one is none of them.
    """
    names = [word.strip().lower() for word in words[:200].split(",") if word.strip()]
    unknown = next((name for name in names if name not in _KERNELS), None)
    if unknown is not None or not names:
        raise click.UsageError(f"--kernels {words[:60]!r} is no list of {', '.join(_KERNELS)}")
    return tuple(name for name in _known_kernels() if name in names)


@click.command("calibrate", short_help="Fit a calibration to kernel times or serving results of your own.")
@click.argument("file", metavar="FILE", type=FILE)
@click.option("-o", "--output", type=FILE, help="Write the calibration to this file.")
@click.option("--name", type=TEXT, help="What estimates call it; the file's name where left out.")
@click.option("--model", type=TEXT, help="What was served, where the file does not say (a catalogue name).")
@click.option("--hardware", type=HARDWARE, metavar="NODESxGPUS:ACCELERATOR", help="What it ran on: 1x8:h100-sxm.")
@click.option("--tp", type=COUNT, help="Tensor-parallel degree of the deployment.")
@click.option("--pp", type=COUNT, help="Pipeline stages.")
@click.option("--ep", type=COUNT, help="Expert-parallel degree.")
@click.option("--dp", type=COUNT, help="Replicas of a dense model, data-parallel attention of a MoE.")
@click.option("--precision", type=DTYPE, help="Number format of the weights; the checkpoint's where left out.")
@click.option("--kv-precision", type=DTYPE, help="Number format of the KV cache; the engine's default where left out.")
@click.option("--engine", type=TEXT, help=f"What served: {', '.join(ENGINES)}; the client's own where left out.")
@click.option("--engine-version", type=TEXT, help="Its version, such as 0.11.0.")
@calibration_option("A calibration to begin with: what FILE does not cover stays as it says.", from_environment=False)
@output_format
def calibrate_command(
    file: Path, output: Path | None, name: str | None, calibration: Path | None, output_format: str, **served: Any
) -> int:
    """Fit constants to what you measured in FILE, beginning at those that ship, and say how far off both are.

    \b
    FILE is one of
      what shardwright measure wrote (or one of the public kernel tables)
      vLLM:   vllm bench serve --save-result            needs --hardware; --tp where it has several GPUs
      SGLang: python -m sglang.bench_serving --output-file   the same
      a CSV of serving results with the columns of shardwright fidelity

    Several runs under different loads tell more than one. Use the result with --calibration on estimate and plan, or
    name it in $SHARDWRIGHT_CALIBRATION. It changes times, never what is valid.
    """
    # An own calibration may be fitted on in its place, and not replace what was measured.
    check_places({"-o": output}, [file])
    text = _text(file)
    from datetime import datetime

    from ...tools.calibration.custom import read_calibration
    from ...tools.fidelity.calibrate import Task, calibrate

    today = datetime.now().astimezone().date()
    base = None if calibration is None else read_calibration(calibration)
    task = Task(_name(name, output, file), title_of(file), today, _served(served), base)
    report = calibrate(text, task)
    fitted = report.calibration.model_dump_json(indent=1, exclude_none=True) + "\n"
    from ..report.calibration import render_calibration

    write_saved(report, output_format, render_calibration, output, fitted, title=title_of(file))
    return 0


def _name(name: str | None, output: Path | None, file: Path) -> str:
    """The name of the calibration: as stated, or from the file that it goes to or comes from."""
    stem = (file if output is None or is_standard(output) else output).stem
    title = name or "".join(letter for letter in stem if letter.isprintable()) or "own"
    if not title.isprintable() or len(title) > _MAX_NAME:
        raise InputError(f"--name must be printable and at most {_MAX_NAME} characters long")
    return title[:_MAX_NAME]


def _served(options: dict[str, Any]) -> Served:
    from ...tools.fidelity.bench_outputs import Served

    hardware: HardwareFlag | None = options["hardware"]
    return Served(
        accelerator=None if hardware is None else hardware.accelerator,
        nodes=1 if hardware is None else hardware.nodes,
        gpus_per_node=1 if hardware is None else hardware.gpus_per_node,
        model=options["model"],
        tp=options["tp"],
        pp=options["pp"],
        ep=options["ep"],
        dp=options["dp"],
        weights=options["precision"],
        kv_cache=options["kv_precision"],
        engine=options["engine"],
        engine_version=options["engine_version"],
    )


def _text(file: Path) -> str:
    """The text of the file, `-` being standard input.

    Raises:
        InputError: it cannot be read, is too large, or is not UTF-8.
    """
    from ...tools.fidelity.bench_json import MAX_FILE_BYTES
    from ...tools.input.files import read_bounded, utf8_text

    if str(file) == STANDARD:
        return read_stdin(MAX_FILE_BYTES)
    name = title_of(file)
    return utf8_text(read_bounded(file, MAX_FILE_BYTES, name), name)
