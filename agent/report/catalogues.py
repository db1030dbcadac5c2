"""The catalogues and the rule book as text: lists for looking up, one entry in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.config_fields import MAX_POSITIONS
from ..citations import public_sources
from ..facts import AcceleratorList, AttentionFacts, ExampleFacts, ModelFacts, ModelList, RuleFacts, RuleList
from .edits import edit_text
from .text import (
    NONE,
    Block,
    Bullets,
    Column,
    Section,
    Table,
    bytes_text,
    count_text,
    figure,
    figure_of,
    render,
    section,
    value_text,
)
from .validation import violation_blocks

Facts = ModelList | ModelFacts | AcceleratorList | Accelerator | RuleList | RuleFacts


def render_facts(facts: Facts, *, width: int, bold: bool = False) -> str:
    """Models, accelerators or rules, a line each; or one of them in full."""
    match facts:
        case ModelList():
            sections = _models(facts.models)
        case ModelFacts():
            sections = _model(facts)
        case AcceleratorList():
            sections = _accelerators(facts.accelerators)
        case Accelerator():
            sections = _accelerator(facts)
        case RuleList():
            sections = _rules(facts.rules)
        case RuleFacts():
            sections = _rule(facts, width)
    return render(sections, width=width, bold=bold)


def _models(models: Sequence[ModelFacts]) -> list[Section]:
    columns = (
        Column("model", wraps=True),
        *Column.of_figures("params", "layers", "experts"),
        Column("attention", wraps=True),
        Column("KV/token", figures=True),
        Column("stored"),
    )
    rows = tuple(
        (
            model.name,
            params_text(model.total_params),
            str(model.layers),
            f"{model.experts}/{model.experts_per_token}" if model.experts else NONE,
            "+".join(dict.fromkeys(facts.kind for facts in model.attention)) or NONE,
            bytes_text(model.kv_cache_bytes_per_token_bf16),
            model.native_precision,
        )
        for model in models
    )
    hint = (
        "Experts: all / for each token. KV cache in bf16, before any window. `shardwright models NAME` shows one; "
        "the path of a config.json works wherever a model is named."
    )
    return [section("", Table(columns, rows)), section("", hint)]


def _model(model: ModelFacts) -> list[Section]:
    facts: list[tuple[str, str]] = [
        ("type", model.model_type),
        ("parameters", f"{params_text(model.total_params)} ({model.total_params:,})"),
        ("layers", str(model.layers)),
        ("hidden size", f"{model.hidden_size:,}"),
        ("vocabulary", f"{model.vocab_size:,}"),
        ("longest sequence", _longest(model.max_position_embeddings)),
        ("stored in", model.native_precision),
        ("KV cache in bf16", f"{model.kv_cache_bytes_per_token_bf16:,} bytes per token, before any window"),
    ]
    if model.experts:
        facts.append(("experts", f"{model.experts} routed, {model.experts_per_token} for each token"))
    facts += [("source", model.source or NONE), ("confidence", model.confidence or NONE)]
    if model.notes:
        facts.append(("notes", model.notes))
    return [
        section("", model.name),
        section("Facts", _pairs(facts)),
        section("Attention", Bullets(tuple(_attention_text(item) for item in model.attention))),
        section("Read by documented defaults", Bullets(model.assumptions)),
    ]


def _attention_text(item: AttentionFacts) -> str:
    window = f", window of {count_text(item.window_tokens, 'token')}" if item.window_tokens else ""
    return (
        f"{count_text(item.layers, 'layer')} {item.kind}: {count_text(item.query_heads, 'query head')}, "
        f"{count_text(item.kv_heads, 'KV head')}, caches {item.cache_elements_per_token:,} elements per token{window}"
    )


def params_text(count: int) -> str:
    """A parameter count as people say it: `70.6B`."""
    for limit, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= limit:
            return f"{figure(count / limit)}{unit}"
    return str(count)


def _longest(positions: int) -> str:
    return "no limit stated" if positions >= MAX_POSITIONS else count_text(positions, "token")


def _accelerators(accelerators: Sequence[Accelerator]) -> list[Section]:
    columns = (
        Column("accelerator", wraps=True),
        *Column.of_figures("memory", "GB/s", "bf16 TFLOP/s", "fp8", "link GB/s", "per node", "USD/h"),
    )
    rows = tuple(
        (
            item.id,
            NONE if item.memory_gb_marketing is None else f"{figure(item.memory_gb_marketing)} GB",
            figure_of(item.memory_bandwidth_gb_s),
            figure_of(item.dense_peak_tflops.bf16),
            figure_of(item.dense_peak_tflops.fp8),
            figure_of(item.intra_node_bw_gb_s_unidirectional_per_accelerator),
            figure_of(item.typical_node_accelerators),
            NONE if item.on_demand_usd_per_hour is None else "–".join(figure(p) for p in item.on_demand_usd_per_hour),
        )
        for item in accelerators
    )
    hint = "Dense peaks of one accelerator; links are one way. `shardwright hardware NAME` shows one in full."
    return [section("", Table(columns, rows)), section("", hint)]


def _accelerator(accelerator: Accelerator) -> list[Section]:
    values: dict[str, Any] = accelerator.model_dump(mode="json", exclude_none=True, exclude={"id", "source", "notes"})
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            pairs += [(f"{name}.{key}", value_text(inner)) for key, inner in value.items()]
        else:
            pairs.append((name, value_text(value)))
    count_bytes, which = accelerator.memory_bytes()
    return [
        section("", accelerator.id),
        section("Facts", _pairs(pairs), f"Memory that plans count with: {count_bytes:,} bytes ({which})"),
        section("Notes", accelerator.notes or ""),
        section("Sources", Bullets(accelerator.source)),
    ]


def _pairs(pairs: Sequence[tuple[str, str]]) -> Table:
    return Table((Column("fact"), Column("value", wraps=True)), tuple(pairs))


def _rules(rules: Sequence[RuleFacts]) -> list[Section]:
    columns = (Column("rule"), Column("severity"), Column("auto-fix"), Column("what must hold", wraps=True))
    rows = tuple((rule.id, rule.severity, rule.fix, rule.requirement) for rule in rules)
    hint = "`shardwright rules ID` explains one, with an example that breaks it."
    return [section("", Table(columns, rows)), section("", hint)]


def _rule(rule: RuleFacts, width: int) -> list[Section]:
    """One rule explained, with its examples and what validation says of them."""
    return [
        section("", f"{rule.id} {rule.name} ({rule.severity})"),
        section("What must hold", rule.requirement),
        section("Why", rule.rationale),
        section("How to mend it", rule.remedy, f"Kind of fix: {rule.fix}"),
        section("Messages", ", ".join(rule.messages or ())),
        section("Source", public_sources([rule.source])),
        section("Taught in", rule.taught_in, f"`shardwright explain {rule.id}` prints it" if rule.taught_in else None),
        _example_section("An example that breaks it", rule.bad, width),
        _example_section("An example that passes", rule.good, width),
    ]


def _example_section(title: str, example: ExampleFacts | None, width: int) -> Section:
    if example is None:
        return section(title)
    edits: Block = Bullets(tuple(edit_text(edit) for edit in example.edits))
    base = f"The valid base plan “{example.base}”" + (", changed:" if example.edits else ", as it is.")
    findings: list[Block] = violation_blocks(example.found)
    # A line of a drawing that is too long is cut: wrapped, it would leave its place in the tree.
    lines = [line if len(line) <= width - 2 else line[: width - 3] + "…" for line in example.drawing]
    verdict = "Validation finds:" if findings else "Validation finds nothing."
    drawn = "\n".join(["", *lines]) if lines else ""
    return section(title, base, edits, drawn, f"\n{verdict}" if drawn else verdict, *findings)
