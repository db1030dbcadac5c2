"""`models`, `hardware`, `rules`, `schema`: what the package knows."""

from __future__ import annotations

from typing import Any

import click

from .flags import TEXT, inline_config, output_format
from .online_flag import online_option
from .streams import MAX_REQUEST_BYTES, STANDARD, read_stdin, write_answer, write_stdout


@click.command("models", short_help="List the models, or show one.")
@click.argument("name", required=False, type=TEXT)
@online_option
@output_format
def models_command(name: str | None, output_format: str) -> int:
    """List the catalogue of models, or show NAME: a name, the path of a config.json, a config in JSON, or "-"."""
    from ..facts import models_asked_for
    from ..report.catalogues import render_facts

    write_answer(models_asked_for(None if name is None else _config_or_name(name)), output_format, render_facts)
    return 0


def _config_or_name(name: str) -> str | dict[str, Any]:
    """The config that NAME is (from standard input where it is `-`), else the name or path.

    Raises:
        InputError: it begins like a config and is none.
    """
    config = inline_config(read_stdin(MAX_REQUEST_BYTES) if name == STANDARD else name, "the config")
    return name if config is None else config


@click.command("hardware", short_help="List the accelerators, or show one.")
@click.argument("name", required=False, type=TEXT)
@output_format
def hardware_command(name: str | None, output_format: str) -> int:
    """List the catalogue of accelerators, or show every figure known of NAME."""
    from ..facts import accelerators_asked_for
    from ..report.catalogues import render_facts

    write_answer(accelerators_asked_for(name), output_format, render_facts)
    return 0


@click.command("rules", short_help="List the hard rules, or explain one.")
@click.argument("rule_id", metavar="[ID]", required=False, type=TEXT)
@output_format
def rules_command(rule_id: str | None, output_format: str) -> int:
    """List the rules that every plan must keep, or explain ID with an example that breaks it."""
    from ..facts import rules_asked_for
    from ..report.catalogues import render_facts

    write_answer(rules_asked_for(rule_id), output_format, render_facts)
    return 0


@click.command("schema", short_help="Print the JSON Schema of the plan document.")
@click.option("--compact", is_flag=True, help="The form that a proposer may write: with repeat and like.")
@output_format
def schema_command(compact: bool, output_format: str) -> int:
    """Print the JSON Schema (draft 2020-12) of the plan document; it is JSON in either format."""
    import json

    from ...tools.plan.schema import compact_schema, plan_schema

    del output_format
    write_stdout(json.dumps(compact_schema() if compact else plan_schema(), indent=2, ensure_ascii=False))
    return 0
