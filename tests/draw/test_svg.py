"""A plan's picture shows repetitions once and faults clearly, and no plan makes it fail or grow."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.catalog.models import find_model
from shardwright.tools.draw.style import STYLE
from shardwright.tools.draw.svg import MOST_BYTES, svg
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.rules.base import Rule
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.registry import all_rules

from ..examples import examples

CASES = json.loads((Path(__file__).parents[1] / "cases" / "pictures.json").read_text(encoding="utf-8"))
# Rules whose bad example changes the graph visibly.
SEEN = ("ST003", "ST004", "PP002", "PP003", "TP003", "EP002", "EP006", "SP002", "DP002", "DE003")
_SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> str:
    """All drawn texts, one per line."""
    return "\n".join("".join(element.itertext()) for element in ET.fromstring(picture).iter(f"{_SVG}text"))


def large_plan(model: str, nodes: int, **degrees: int) -> dict[str, Any]:
    entry = find_model(model)
    phase = PhaseStrategy.model_validate(degrees)
    strategy = Strategy(dp=1, gpu_count=nodes * 8, prefill=phase, decode=phase)
    request = BuildRequest(
        model=ModelBlock(name=entry.name, config=dict(entry.config)),
        hardware=HardwareBlock(accelerator="h100-sxm", nodes=nodes, gpus_per_node=8),
        workload=WorkloadBlock(input_tokens=4096, output_tokens=64, concurrency=1),
        precision=PrecisionBlock(weights="fp8", kv_cache="bf16", activations="bf16"),
        strategy=strategy,
    )
    return build_plan(request).model_dump(mode="json")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["base"])
def test_a_picture_says_degrees_communication_and_devices(case: dict[str, Any]) -> None:
    drawn_text = texts(svg(base_plan(case["base"])))
    assert [words for words in case["shows"] if words not in drawn_text] == []
    assert [words for words in case["lacks"] if words in drawn_text] == []


@pytest.mark.parametrize("name", base_names())
def test_names_and_order_do_not_count(name: str) -> None:
    plan = base_plan(name)
    rng = random.Random(name)
    new = {node["id"]: f"x{number}" for number, node in enumerate(rng.sample(plan["nodes"], len(plan["nodes"])))}
    other = {
        **plan,
        "nodes": [{**node, "id": new[node["id"]], "parent": new.get(node["parent"])} for node in plan["nodes"]],
        "edges": [{**edge, "source": new[edge["source"]], "target": new[edge["target"]]} for edge in plan["edges"]],
    }
    rng.shuffle(other["nodes"])
    rng.shuffle(other["edges"])
    assert svg(other) == svg(plan)


def test_a_picture_is_told_to_who_cannot_see_it() -> None:
    picture = ET.fromstring(svg(base_plan("moe-ep4")))
    assert picture.get("role") == "img"
    assert "tiny qwen3_moe · 4 h100-sxm GPUs" in (picture.findtext(f"{_SVG}title") or "")
    assert "Expert groups × 4" in (picture.findtext(f"{_SVG}desc") or "")


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("name", ["dense-pp2-tp2", "disaggregated-tp2"])
def test_one_phase_alone_has_nothing_of_the_other(name: str, phase: Any) -> None:
    lines = texts(svg(base_plan(name), phase=phase)).splitlines()
    assert {line for line in lines if line in ("Prefill", "Decode")} == {phase.capitalize()}
    assert sum(line.startswith("Replica") for line in lines) == 1
    assert not any("KV cache transfer" in line or "KV cache stays" in line for line in lines)


@pytest.mark.parametrize(
    ("model", "nodes", "degrees", "layers"),
    [
        ("DeepSeek-V3", 16, {"tp": 8, "tp_ffn": 8, "ep": 8, "pp": 16}, 61),
        ("Qwen3-Next-80B-A3B", 2, {"tp": 2, "tp_ffn": 2, "ep": 2, "pp": 8}, 48),
        ("gpt-oss-120b", 2, {"tp": 2, "ep": 2, "pp": 8}, 36),
    ],
)
def test_a_large_plan_is_small_and_whole(model: str, nodes: int, degrees: dict[str, int], layers: int) -> None:
    plan = large_plan(model, nodes, **degrees)
    picture = svg(plan)
    assert len(picture.encode()) <= MOST_BYTES
    drawn = texts(svg(plan, phase="decode"))
    named = [re.search(r"layers (\d+)(?:–(\d+))?", line) for line in drawn.splitlines() if line.startswith("Stage")]
    shown = {layer for match in named if match for layer in range(int(match[1]), int(match[2] or match[1]) + 1)}
    assert shown == set(range(layers))
    assert "more" not in drawn


def _boxes_without_others(picture: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each box without boxes inside, and of each label on a line."""
    rects = [rect.attrib for rect in ET.fromstring(picture).iter(f"{_SVG}rect")]
    inner = [rect for rect in rects if rect["class"] != "paper" and not rect["class"].endswith(" in")]
    spots = [[float(rect[name]) for name in ("x", "y", "width", "height")] for rect in inner]
    return [(x, y, x + width, y + height) for x, y, width, height in spots]


@pytest.mark.parametrize(
    "plan", [*map(base_plan, base_names()), large_plan("DeepSeek-V3", 8, tp=8, tp_ffn=8, ep=8, pp=8)]
)
def test_nothing_overlaps_and_the_width_is_that_of_a_page(plan: dict[str, Any]) -> None:
    picture = svg(plan)
    spots = _boxes_without_others(picture)
    for place, (left, top, right, bottom) in enumerate(spots):
        assert not [
            box for box in spots[place + 1 :] if left < box[2] and box[0] < right and top < box[3] and box[1] < bottom
        ]
    assert float(ET.fromstring(picture).get("width", 0)) <= 1150


@pytest.mark.parametrize("rule", SEEN)
def test_a_fault_of_the_graph_shows(rule: str) -> None:
    bad = next(known_rule for known_rule in all_rules() if known_rule.id == rule).bad
    assert svg(apply(bad)) != svg(base_plan(bad.base))


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_broken_example_is_drawn(rule: Rule) -> None:
    picture = svg(apply(rule.bad))
    ET.fromstring(picture)
    assert len(picture.encode()) <= MOST_BYTES


def test_edges_that_lead_nowhere_are_counted() -> None:
    plan = base_plan("dense-tp2")
    plan["edges"].append({"source": "nobody", "target": plan["nodes"][0]["id"], "type": "data"})
    assert "1 edges lead nowhere" in texts(svg(plan))


def test_text_of_a_document_stays_text() -> None:
    plan = base_plan("dense-tp2")
    plan["model"]["name"] = "<script>alert(1)</script>&\x00\ud800\u202e"
    plan["nodes"].append({"id": "<image href='http://x'/>", "type": "<a>", "parent": None})
    picture = svg(plan)
    assert {element.tag.removeprefix(_SVG) for element in ET.fromstring(picture).iter()} <= {
        "svg", "title", "desc", "style", "rect", "text", "tspan", "path",
    }  # fmt: skip
    assert not any(sign in picture for sign in "\x00\ud800\u202e")
    assert "<script>alert(1)</script>" in texts(picture)


_JUNK = st.sampled_from([None, True, -1, 10**12, 1.5, "", "x\x00", "n0.g0", [], {}, [1], [0, 3], [[0, 10**9]]])
_TYPES = st.sampled_from(["RequestNode", "PhaseNode", "PipelineStageNode", "LayerBlockNode", "MoENode", "Other", ""])


@st.composite
def broken_plans(draw: st.DrawFn) -> dict[str, Any]:
    """A base plan with damage to its tree, fields and edges."""
    plan = base_plan(draw(st.sampled_from(["dense-pp2-tp2", "moe-dp2-ep2", "disaggregated-tp2", "dense-sp2-tp2"])))
    nodes, edges = plan["nodes"], plan["edges"]
    a_node, an_edge = st.integers(0, len(nodes) - 1), st.integers(0, len(edges) - 1)
    for _ in range(draw(st.integers(1, 12))):
        node = nodes[draw(a_node)]
        match draw(st.integers(0, 4)):
            case 0:
                node["parent"] = nodes[draw(a_node)].get("id")
            case 1:
                node["type"] = draw(_TYPES)
            case 2:
                fields = ["id", "devices", "rank", "layers", "index", "experts", "phase", "role", "kind", "period"]
                node[draw(st.sampled_from(fields))] = draw(_JUNK)
            case 3:
                edges[draw(an_edge)]["target"] = nodes[draw(a_node)].get("id")
            case _:
                edges[draw(an_edge)][draw(st.sampled_from(["source", "type", "carries"]))] = draw(_JUNK)
    return plan


@given(broken_plans())
@examples(40)
def test_no_broken_plan_is_too_broken(plan: dict[str, Any]) -> None:
    picture = svg(plan)
    ET.fromstring(picture)
    assert len(picture.encode()) <= MOST_BYTES
    assert svg(json.loads(json.dumps(plan))) == picture


@pytest.mark.parametrize("document", [None, 1, "x", [], {}, {"nodes": 1}, {"nodes": [1, None], "edges": {}}], ids=repr)
def test_what_is_no_plan_is_an_empty_picture(document: object) -> None:
    assert "the document has no node to draw" in texts(svg(document))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", ["flat", "deep", "circle", "all_joined"])
def test_a_hostile_graph_is_bounded(shape: str) -> None:
    count = 3000 if shape != "all_joined" else 120
    parent = {"deep": lambda i: str(i - 1) if i else None, "circle": lambda i: str((i + 1) % count)}
    nodes = [
        {"id": str(i), "type": f"T{i}", "parent": parent.get(shape, lambda _: None)(i), "devices": [f"n0.g{i}"]}
        for i in range(count)
    ]
    pairs = ((i, j) for i in range(count) for j in range(count)) if shape == "all_joined" else ((0, count - 1),)
    edges = [{"source": str(i), "target": str(j), "type": "data"} for i, j in pairs]
    picture = svg({"nodes": nodes, "edges": edges})
    ET.fromstring(picture)
    assert len(picture.encode()) <= MOST_BYTES


def luminance(colour: str) -> float:
    """Relative luminance of a colour by WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("is_dark", [False, True])
def test_text_can_be_read_on_every_colour(is_dark: bool) -> None:
    light, dark = STYLE.split("@media(prefers-color-scheme:dark)")
    rules = dark if is_dark else light
    ink = luminance(re.findall(r"text\{fill:(#\w{6})", rules)[0])
    fills = re.findall(r"(?<!text)\.(\w+)\{fill:(#\w{6})", rules)
    assert len(fills) > 10
    for name, fill in fills:
        low, high = sorted((ink, luminance(fill)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, name
