"""What `models`, `hardware`, `rules` and `expand` print, as frozen models: facts gathered from what the tools hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..tools.catalog.accelerators import Accelerator
from ..tools.frozen import Frozen, Sparse
from ..tools.performance.execution_model import ExecutionDAG
from ..tools.rules.base import FixKind, Severity, Violation

if TYPE_CHECKING:
    from ..tools.catalog.attention.spec import AttentionSpec
    from ..tools.catalog.models import ModelEntry
    from ..tools.rules.base import Example, Rule


class AttentionFacts(Sparse):
    """One kind of attention of a model, and how many layers have it; widths in elements."""

    kind: str
    layers: int
    query_heads: int
    kv_heads: int
    cache_elements_per_token: int
    window_tokens: int | None = None


class ModelFacts(Sparse):
    """One model as the tools read it. `kv_cache_bytes_per_token_bf16` is before any window."""

    name: str
    model_type: str
    total_params: int
    layers: int
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int
    native_precision: str
    attention: tuple[AttentionFacts, ...]
    kv_cache_bytes_per_token_bf16: int
    experts: int | None = None
    experts_per_token: int | None = None
    source: str | None = None
    confidence: str | None = None
    notes: str | None = None
    assumptions: tuple[str, ...] = ()
    config: dict[str, Any] | None = None


class ModelList(Frozen):
    """Every model of the catalogue."""

    models: tuple[ModelFacts, ...]


class AcceleratorList(Frozen):
    """Every accelerator of the catalogue."""

    accelerators: tuple[Accelerator, ...]


class ExampleFacts(Frozen):
    """An example of a rule: a valid base plan, the edits that make it, and what validation finds in it.

    `drawing` is the part of its DAG that the rule is about, as lines of a tree.
    """

    base: str
    edits: tuple[dict[str, Any], ...]
    found: tuple[Violation, ...]
    drawing: tuple[str, ...] = ()


class RuleFacts(Sparse):
    """One rule; the examples only where one rule is asked for."""

    id: str
    name: str
    severity: Severity
    requirement: str
    rationale: str
    source: str
    fix: FixKind
    remedy: str
    # The ids of its findings' messages.
    messages: tuple[str, ...] | None = None
    good: ExampleFacts | None = None
    bad: ExampleFacts | None = None
    # The section of the knowledge base that says most of the rule, as file § heading.
    taught_in: str | None = None


class Expansion(Frozen):
    """The execution DAG of both phases of a plan."""

    prefill: ExecutionDAG
    decode: ExecutionDAG


class RuleList(Frozen):
    """The rule catalogue."""

    rules: tuple[RuleFacts, ...]


def models_asked_for(model: str | Mapping[str, Any] | None) -> ModelList | ModelFacts:
    """A model by its name or its config; every model of the catalogue where it is `None`.

    Raises:
        InputError: there is no such model.
    """
    from ..tools.catalog.models import all_models, load_model

    if model is None:
        return ModelList(models=tuple(map(model_facts, all_models())))
    return model_facts(load_model(model), with_config=True)


def accelerators_asked_for(name: str | None) -> AcceleratorList | Accelerator:
    """The accelerator of that name; every one of the catalogue where it is `None`.

    Raises:
        InputError: there is no such accelerator.
    """
    from ..tools.catalog.hardware import all_accelerators, find_accelerator

    return AcceleratorList(accelerators=all_accelerators()) if name is None else find_accelerator(name)


def rules_asked_for(rule_id: str | None) -> RuleList | RuleFacts:
    """The rule of that id, with its examples; every rule where it is `None`.

    Raises:
        InputError: there is no such rule.
    """
    from ..tools.rules.registry import all_rules, find_rule

    if rule_id is None:
        return RuleList(rules=tuple(map(rule_facts, all_rules())))
    return rule_facts(find_rule(rule_id), with_examples=True)


def model_facts(entry: ModelEntry, *, with_config: bool = False) -> ModelFacts:
    """`entry` as the tools read it.

    Raises:
        InputError: its config cannot be read.
    """
    from ..tools.catalog.config import read_architecture

    architecture = read_architecture(entry.config, where=entry.name)
    counts = Counter(_attention_facts(layer.attention) for layer in architecture.layers if layer.attention is not None)
    attention = tuple(facts.model_copy(update={"layers": layers}) for facts, layers in counts.items())
    moe = max((layer.moe for layer in architecture.layers if layer.moe), key=lambda spec: spec.experts, default=None)
    return ModelFacts(
        name=entry.name,
        model_type=architecture.model_type,
        total_params=architecture.total_params,
        layers=architecture.num_layers,
        hidden_size=architecture.hidden_size,
        vocab_size=architecture.vocab_size,
        max_position_embeddings=architecture.max_position_embeddings,
        native_precision=architecture.native_precision,
        attention=attention,
        kv_cache_bytes_per_token_bf16=2 * sum(facts.layers * facts.cache_elements_per_token for facts in attention),
        experts=moe.experts if moe else None,
        experts_per_token=moe.top_k if moe else None,
        source=entry.source,
        confidence=entry.confidence,
        notes=entry.notes,
        assumptions=architecture.assumptions,
        config=dict(entry.config) if with_config else None,
    )


def _attention_facts(spec: AttentionSpec) -> AttentionFacts:
    return AttentionFacts(
        kind=spec.kind,
        layers=1,
        query_heads=spec.query_heads,
        kv_heads=spec.kv_heads,
        cache_elements_per_token=spec.cache_elements_per_token,
        window_tokens=spec.window_tokens,
    )


def rule_facts(rule: Rule, *, with_examples: bool = False) -> RuleFacts:
    """`rule` as facts, with its examples as validation sees them if asked for."""
    facts = RuleFacts(
        id=rule.id,
        name=rule.name,
        severity=rule.severity,
        requirement=rule.requirement,
        rationale=rule.rationale,
        source=rule.source,
        fix=rule.fix,
        remedy=rule.remedy,
    )
    if not with_examples:
        return facts
    from ..tools.rules.messages import message_ids
    from .citations import rule_citations

    taught_in = next(iter(rule_citations([rule.id])), None)
    return facts.model_copy(update={"messages": message_ids(rule), **_examples(rule), "taught_in": taught_in})


def _examples(rule: Rule) -> dict[str, ExampleFacts]:
    """Both examples, drawn at the nodes that the bad one is about."""
    from ..tools.rules.examples import apply
    from ..tools.validate import validate
    from .report.drawing import Focus, draw, focus_of
    from .report.edits import edit_facts

    findings = validate(apply(rule.bad)).violations
    bad = focus_of(rule.bad, findings, rule.id)
    good = Focus(tuple(dict.fromkeys((*focus_of(rule.good, (), rule.id).nodes, *bad.nodes))), bad.places)

    def facts(example: Example, focus: Focus) -> ExampleFacts:
        document = apply(example)
        edits = tuple(edit_facts(edit) for edit in example.edits)
        violations = validate(document).violations
        return ExampleFacts(base=example.base, edits=edits, found=violations, drawing=draw(document, focus))

    return {"good": facts(rule.good, good), "bad": facts(rule.bad, bad)}
