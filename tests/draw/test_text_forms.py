"""Mermaid, DOT and the outline show the same boxes as the picture, for any plan."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from shardwright.tools.draw.dot import dot
from shardwright.tools.draw.mermaid import mermaid
from shardwright.tools.draw.outline import outline
from shardwright.tools.rules.base import Rule
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.registry import all_rules

Form = Callable[[object], str]
FORMS: tuple[Form, ...] = (mermaid, dot, outline)
# The characters without special meaning in a Mermaid label, and the code of any other.
LABEL = re.compile(r"(?:\w|[ .,·×–()/:+-]|#\d+;|<br/>)*")
HOSTILE = 'a"b`]\n%%{init}%% end <script> #quot; \\" $(x) ```'


def hostile() -> dict[str, Any]:
    plan = base_plan("dense-tp2")
    plan["model"]["name"] = HOSTILE
    plan["nodes"].append({"id": HOSTILE, "type": HOSTILE, "parent": None})
    return plan


@pytest.mark.one_in(4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", base_names())
def test_degrees_phases_and_operators_are_told(form: Form, name: str) -> None:
    drawn_text = form(base_plan(name))
    assert {"Prefill", "Decode", "Embedding", "LM head", "Attention"} <= set(re.findall(r"LM head|\w+", drawn_text))


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_broken_example_is_told(rule: Rule) -> None:
    document = apply(rule.bad)
    assert all(form(document) for form in FORMS)


@pytest.mark.parametrize("plan", [hostile(), base_plan("moe-ep4")], ids=["hostile", "sound"])
def test_mermaid_has_no_sign_with_a_meaning_in_a_label(plan: dict[str, Any]) -> None:
    lines = mermaid(plan).splitlines()
    labels = [line[line.index('"') + 1 : line.rindex('"')] for line in lines if '"' in line]
    assert labels and all(LABEL.fullmatch(label) for label in labels)


def test_mermaid_opens_and_closes_every_box_and_colours_every_link() -> None:
    lines = [line.strip() for line in mermaid(base_plan("dense-pp2-tp2")).splitlines()]
    assert sum(line.startswith("subgraph") for line in lines) == lines.count("end")
    assert sum("-->" in line for line in lines) == sum(line.startswith("linkStyle") for line in lines)


def test_mermaid_of_many_stages_is_still_small() -> None:
    assert len(mermaid(base_plan("disaggregated-moe")).splitlines()) < 250


@pytest.mark.parametrize("plan", [hostile(), base_plan("moe-ep4")], ids=["hostile", "sound"])
def test_dot_has_quotes_only_around_texts_and_braces_in_pairs(plan: dict[str, Any]) -> None:
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", dot(plan))
    assert '"' not in bare and "<" not in bare and bare.count("{") == bare.count("}")


def test_an_outline_has_a_box_a_line_in_the_order_of_the_flow() -> None:
    lines = outline(base_plan("moe-ep4")).splitlines()
    titles = [
        line.lstrip("│├└─ ").partition(" · ")[2] or line.lstrip("│├└─ ") for line in lines if "All-to-all" in line
    ]
    assert [title.partition(" · ")[0] for title in titles[:2]] == ["dispatch", "combine"]
    assert all(line.isprintable() for line in outline(hostile()).splitlines())
