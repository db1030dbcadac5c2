"""`import`: what runs today, as a command line or a manifest, as a plan document with its findings and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...tools.input.files import is_there
from .asking import said_of_options, says_setting
from .documents import read_plan_text
from .flags import FILE, TEXT, output_format, strict_option
from .streams import STANDARD, check_places, write_saved

# A name that ends like this is a file's, whether there is one or not.
_FILES = (".sh", ".bash", ".yaml", ".yml", ".txt", ".md", ".sbatch", ".slurm", ".conf")


@click.command("import", short_help="What runs today, a command or a manifest, as a plan.")
@click.argument("source", nargs=-1, required=True, type=TEXT, metavar="COMMAND|FILE...")
@says_setting
@click.option("-o", "--output", type=FILE, help="Write the plan document to this file.")
@strict_option
@output_format
def import_command(
    source: tuple[str, ...],
    output: Path | None,
    output_format: str,
    calibration: Path | None,
    *,
    strict: bool,
    **options: Any,
) -> int:
    """Read what starts an engine: a command in quotes, files (scripts, manifests, options of TensorRT-LLM), or both.

    vLLM, SGLang and TensorRT-LLM; Kubernetes, docker-compose, Dynamo, Ray Serve. The plan is judged and estimated as
    it runs; exit 1 where it breaks a rule (not where requests only wait for room), or its engine refuses it or every
    request of the load. --hardware and the load say what no command does. A file that a command names (--config FILE)
    is read where it is given too.

    \b
      shardwright import "vllm serve Qwen/Qwen3-32B -tp 4" --hardware 1x4:h100-sxm -o today.json
      shardwright import launch.sh extra.yaml
    """
    files = [Path(word) for word in source if _is_file(word)]
    check_places({"-o": output}, files)
    text, texts = _texts(source)
    from ...tools.importing.launch import read_launch
    from ..importing.api import imported
    from ..report.importing import render_import

    result = imported(read_launch(text, texts), said_of_options(options), calibration)
    write_saved(result, output_format, render_import, output, result.plan.model_dump_json(indent=2) + "\n")
    return result.exit_status or int(strict and bool(result.not_understood))


def _is_file(text: str) -> bool:
    if text == STANDARD:
        return True
    if "\n" in text or len(text) > 1000:
        return False
    is_named = text.lower().endswith(_FILES)
    return is_there(text, or_no_file=is_named) or (is_named and " " not in text.strip())


def _texts(source: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The command, "" where there is none, and the files by their names.

    Raises:
        InputError: a file cannot be read.
    """
    files = [word for word in source if _is_file(word)]
    texts = {word if word != STANDARD else "standard input": read_plan_text(Path(word)) for word in files}
    return " ".join(word for word in source if word not in files), texts
