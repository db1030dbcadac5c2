"""`models`, `hardware`, `rules`, `schema`: what the package knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .flags import TEXT, inline_config, output_format
from .online_flag import online_option
from .streams import MAX_REQUEST_BYTES, STANDARD, may_style, read_stdin, text_width, write_json, write_stdout

if TYPE_CHECKING:
    from ...tools.catalog.models import ModelEntry


@click.command("models", short_help="List the models, or show one.")
@click.argument("name", required=False, type=TEXT)
@online_option
@output_format
def models_command(name: str | None, output_format: str) -> int:
    """List the catalogue of models, or show NAME: a name, the path of a config.json, a config in JSON, or "-"."""
    from ...tools.catalog.models import all_models
    from ..facts import ModelList, model_facts
    from ..report.catalogues import render_model, render_models

    if name is None:
        models = tuple(model_facts(entry) for entry in all_models())
        if output_format == "json":
            write_json(ModelList(models=models))
        else:
            write_stdout(render_models(models, width=text_width(), bold=may_style()))
        return 0
    facts = model_facts(named_model(name), with_config=True)
    if output_format == "json":
        write_json(facts)
    else:
        write_stdout(render_model(facts, width=text_width(), bold=may_style()))
    return 0


def named_model(name: str) -> ModelEntry:
    """The model that NAME means: a config in JSON (from standard input where it is `-`), a path, or a name.

    Raises:
        InputError: there is none.
    """
    from ...tools.catalog.models import load_model

    config = inline_config(read_stdin(MAX_REQUEST_BYTES) if name == STANDARD else name, "the config")
    return load_model(name if config is None else config)


@click.command("hardware", short_help="List the accelerators, or show one.")
@click.argument("name", required=False, type=TEXT)
@output_format
def hardware_command(name: str | None, output_format: str) -> int:
    """List the catalogue of accelerators, or show every figure known of NAME."""
    from ...tools.catalog.hardware import all_accelerators, find_accelerator
    from ..facts import AcceleratorList
    from ..report.catalogues import render_accelerator, render_accelerators

    if name is None:
        accelerators = tuple(all_accelerators())
        if output_format == "json":
            write_json(AcceleratorList(accelerators=accelerators))
        else:
            write_stdout(render_accelerators(accelerators, width=text_width(), bold=may_style()))
        return 0
    accelerator = find_accelerator(name)
    if output_format == "json":
        write_json(accelerator)
    else:
        write_stdout(render_accelerator(accelerator, width=text_width(), bold=may_style()))
    return 0


@click.command("rules", short_help="List the hard rules, or explain one.")
@click.argument("rule_id", metavar="[ID]", required=False, type=TEXT)
@output_format
def rules_command(rule_id: str | None, output_format: str) -> int:
    """List the rules that every plan must keep, or explain ID with an example that breaks it."""
    from ...tools.rules.registry import all_rules, find_rule
    from ..facts import RuleList, rule_facts
    from ..report.catalogues import render_rule, render_rules

    if rule_id is None:
        rules = tuple(rule_facts(rule) for rule in all_rules())
        if output_format == "json":
            write_json(RuleList(rules=rules))
        else:
            write_stdout(render_rules(rules, width=text_width(), bold=may_style()))
        return 0
    facts = rule_facts(find_rule(rule_id), with_examples=True)
    if output_format == "json":
        write_json(facts)
    else:
        write_stdout(render_rule(facts, width=text_width(), bold=may_style()))
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
