"""`export`: a plan document as what starts its servers."""

from __future__ import annotations

from pathlib import Path

import click

from .documents import DOCUMENT, title_of, typed_plan
from .flags import FILE, output_format
from .streams import check_places, may_style, text_width, write_files, write_json, write_stdout

_TARGETS = "vllm, sglang, trtllm, kubernetes, docker-compose, slurm, dynamo, ray or llm-d."


@click.command("export", short_help="What starts the servers of a plan document.")
@DOCUMENT
@click.option("--to", "target", required=True, metavar="TARGET", help=_TARGETS)
@click.option("-o", "--output", type=FILE, help="Write the text to this file.")
@output_format
def export_command(document: Path, target: str, output: Path | None, output_format: str) -> int:
    """Write what starts the servers of the plan document FILE; exit 1 where the engine cannot run it.

    An engine's target is a script, to be run on each node. The others run the plan's own engine, or else vLLM: Docker
    Compose a service a command, Slurm a batch job, Kubernetes Deployments and sets of pods, llm-d the same behind its
    router; Dynamo a DynamoGraphDeployment, Ray an application of Ray Serve.

    What the engine cannot be told is refused with the reason and the nearest plan that it can run.

    \b
      shardwright export plan.json --to vllm -o launch.sh
    """
    check_places({"-o": output}, [document])
    plan = typed_plan(document)
    from ...tools.export.export import export

    found = export(plan, target)

    def report(_: frozenset[Path]) -> None:
        if output_format == "json":
            write_json(found)
        elif found.text is None or output is not None:
            from ..report.export import render_export

            write_stdout(render_export(found, title=title_of(document), width=text_width(), bold=may_style()))
        else:
            write_stdout(found.text.rstrip("\n"))

    write_files({} if output is None else {output: found.text}, report)
    return found.exit_status
