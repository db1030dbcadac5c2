"""What each relaxation allows and which rules it lifts; the rules are found by trying, not listed."""

from __future__ import annotations

from functools import cache
from typing import get_args

from ...tools.plan.document import Relaxation
from .markdown import table

_ALLOWS: dict[str, str] = {
    "tp_in_expert": "tensor parallelism inside an expert: an ExpertNode of `tp_expert` devices, ep × tp_expert = |D|",
    "attention_dp": "attention copies for groups of requests inside one stage, one expert group across them",
    "kv_sequence_decode": "the KV cache of decode cut along the sequence over `kv_sp` devices",
    "vocab_parallel": "Embedding and LMHead cut by vocabulary, with shards and a collective",
    "redundant_experts": "a routed expert hosted more than once",
}


@cache
def relaxed_rules() -> dict[str, tuple[str, ...]]:
    """For each relaxation, the rules that refuse what it allows: those that fire on its base plan without it."""
    from ...tools.rules.examples import base_names, base_plan
    from ...tools.rules.registry import rule_order
    from ...tools.validate import validate

    rules_by_relaxation: dict[str, set[str]] = {}
    for name in base_names():
        document = base_plan(name)
        relaxations = document["policy"]["relaxations"]
        allowed = {violation.rule for violation in validate(document).violations}
        document["policy"]["relaxations"] = []
        refused = {violation.rule for violation in validate(document).violations} - allowed
        for relaxation in relaxations:
            rules_by_relaxation.setdefault(relaxation, set()).update(refused)
    return {name: tuple(sorted(rules, key=rule_order)) for name, rules in sorted(rules_by_relaxation.items())}


def generate() -> str:
    """Every relaxation with what it allows and the rules that refuse it otherwise."""
    lifted = relaxed_rules()
    rows = [(f"`{name}`", _ALLOWS[name], ", ".join(lifted[name])) for name in get_args(Relaxation)]
    return "\n".join(table(("relaxation", "allows", "without it refused by"), rows))
