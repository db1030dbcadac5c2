"""`export`: a plan document as what starts its servers."""

from __future__ import annotations

from pathlib import Path

import click

from ...tools.errors import InputError
from ...tools.input.files import folder_place, write_folder
from .documents import DOCUMENT, title_of, typed_plan
from .flags import FILE, output_format
from .streams import check_places, is_standard, write_answer, write_files, write_stdout

_TARGETS = "vllm, sglang, trtllm, kubernetes, docker-compose, slurm, dynamo, ray, llm-d or chakra."


@click.command("export", short_help="What starts the servers of a plan document.")
@DOCUMENT
@click.option("--to", "target", required=True, metavar="TARGET", help=_TARGETS)
@click.option("-o", "--output", type=FILE, help="Write the text to this file; chakra's traces to this new folder.")
@output_format
def export_command(document: Path, target: str, output: Path | None, output_format: str) -> int:
    """Write what starts the servers of the plan document FILE; exit 1 where the engine cannot run it.

    An engine's target is a script, to be run on each node. The others run the plan's own engine, or else vLLM: Docker
    Compose a service a command, Slurm a batch job, Kubernetes Deployments and sets of pods, llm-d the same behind its
    router; Dynamo a DynamoGraphDeployment, Ray an application of Ray Serve. chakra is a folder of execution traces for
    the simulator ASTRA-sim and needs no engine.

    What the engine cannot be told is refused with the reason and the nearest plan that it can run.

    \b
      shardwright export plan.json --to vllm -o launch.sh
    """
    is_folder = target == "chakra"
    if is_folder:
        _check_folder(output, output_format)
    check_places({"-o": None if is_folder else output}, [document])
    plan = typed_plan(document)
    from ...tools.export.export import export, target_named

    exported = export(plan, target_named(target))

    def report(_: frozenset[Path]) -> None:
        from ..report.export import render_export

        if output_format == "text" and exported.text is not None and output is None:
            write_stdout(exported.text.rstrip("\n"))
        else:
            write_answer(exported, output_format, render_export, title=title_of(document))

    if exported.folder and output is not None:
        write_folder(output, {file.name: file.data for file in exported.folder})
    write_files({} if output is None or is_folder else {output: exported.text}, report)
    return exported.exit_status


def _check_folder(output: Path | None, output_format: str) -> None:
    """Whether a folder of files can be put at `output`, before it is made.

    Raises:
        InputError: no folder is named, or something is there.
    """
    if output is not None and not is_standard(output):
        folder_place(output)
    elif output is not None or output_format != "json":
        raise InputError("--to chakra writes a folder of files: name a new one with -o FOLDER")
