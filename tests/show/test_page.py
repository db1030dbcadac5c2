"""The page of a plan needs no other file, shows the plan's content and never runs it."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest

from shardwright.agent.languages.say import picture_labels
from shardwright.tools.catalog.attention.kinds import KINDS
from shardwright.tools.plan.reader import read_document
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.rules.registry import all_rules
from shardwright.tools.show.page import page, page_data, page_hashes
from shardwright.tools.show.page_model import BoxData, PageData

HOSTILE = "</script><script>alert(1)</script><!-- \" ' & $data ${x} \u2028"
# Attributes by which a page loads something.
LOADS = {"src", "srcset", "data", "action", "poster", "background", "formaction", "xlink:href"}


class Parsed(HTMLParser):
    """The elements of a page with their attributes, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.titles: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        inside = self.elements[-1][0] if self.elements else ""
        if inside == "script" and data.strip():
            self.scripts.append(data)
        elif inside in ("title", "h1"):
            self.titles.append(data.strip())


@cache
def data(name: str) -> PageData:
    return page_data(read_document(base_plan(name)))


def hostile() -> dict[str, Any]:
    plan = base_plan("dense-tp2")
    new = {node["id"]: f"{HOSTILE}{number}" for number, node in enumerate(plan["nodes"])}
    plan["model"]["name"] = HOSTILE
    for node in plan["nodes"]:
        node["id"], node["parent"] = new[node["id"]], new.get(node["parent"])
    for edge in plan["edges"]:
        edge["source"], edge["target"] = new[edge["source"]], new[edge["target"]]
    return plan


@pytest.mark.parametrize("plan", [hostile(), base_plan("disaggregated-moe")], ids=["hostile", "sound"])
def test_nothing_is_loaded_and_nothing_of_a_plan_is_markup(plan: dict[str, Any]) -> None:
    text = page(read_document(plan))
    parsed = Parsed(text)
    assert not [
        element
        for element in parsed.elements
        if LOADS & element[1].keys() or element[0] in ("link", "iframe", "img", "base")
    ]
    assert all(
        not link.get("href", "#") or str(link["href"]).startswith("#") for tag, link in parsed.elements if tag == "a"
    )
    assert len(parsed.scripts) == 2 and not re.search(
        r"url\(|@import|https?://(?!www\.w3\.org)", text.replace("\\/", "/")
    )
    policy = next(meta["content"] for tag, meta in parsed.elements if tag == "meta" and "http-equiv" in meta)
    assert policy is not None and policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert all(page_hash in policy for page_hash in page_hashes())
    shown = json.loads(parsed.scripts[0])
    assert shown == json.loads(page_data(read_document(plan)).model_dump_json())


def test_a_name_is_shown_as_it_is() -> None:
    parsed = Parsed(page(read_document(hostile())))
    assert any("alert(1)" in title and "<script>" in title for title in parsed.titles)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", base_names())
def test_every_box_is_in_one_other_and_every_node_in_its_members_or_like_one(name: str) -> None:
    boxes = data(name).boxes
    inside = [number for box in boxes for part in box.parts for column in part for number in column]
    assert sorted(inside) == list(range(1, len(boxes)))
    assert all({link.source, link.target} <= set(_inside(box)) for box in boxes for link in box.links)
    assert {place for box in boxes for place in box.members} == set(range(len(data(name).nodes)))


def _inside(box: BoxData) -> list[int]:
    return [number for part in box.parts for column in part for number in column]


@pytest.mark.parametrize("name", base_names())
def test_the_critical_path_is_lit_in_the_boxes_as_long_as_on_the_timeline(name: str) -> None:
    shown = data(name)
    ends = {timeline.phase: timeline.ms for timeline in shown.timelines}
    lit: dict[str, float] = {}
    for box in shown.boxes:
        if box.kind == "phase":
            lit[box.title.lower()] = lit.get(box.title.lower(), 0.0) + box.critical_ms
    assert lit == pytest.approx(ends)


@pytest.mark.parametrize("name", base_names())
def test_the_cluster_has_every_gpu_once_with_what_it_holds_and_its_memory(name: str) -> None:
    shown = data(name)
    gpus = [gpu for rack in shown.racks for node in rack.nodes for gpu in node.gpus]
    assert [gpu.device for gpu in gpus] == list(range(len(shown.devices)))
    assert all(gpu.memory_bytes and gpu.usable_bytes and gpu.holds for gpu in gpus)


def test_a_gpu_says_its_layers_heads_and_experts() -> None:
    holds = [gpu.holds for gpu in data("moe-shared-tp2-ep4").racks[0].nodes[0].gpus]
    assert holds[1] != holds[0] and "layers" in holds[1][0] and "experts 4–7" in holds[1][0] and "head" in holds[1][0]


@pytest.mark.thorough
def test_broken_examples_have_a_page_with_its_finding_at_a_box() -> None:
    # Only every third: each is estimated and unrolled.
    for rule in all_rules()[::3]:
        shown = page_data(read_document(apply(rule.bad)))
        of_rule = [finding for finding in shown.findings if finding.rule == rule.id]
        assert of_rule, rule.id
        drawn = {place for box in shown.boxes for place in box.findings}
        assert {place for place, finding in enumerate(shown.findings) if finding.boxes} == drawn, rule.id
        assert shown.boxes[0].findings_inside + len(shown.boxes[0].findings) >= bool(drawn), rule.id


def test_a_node_with_a_finding_is_not_folded_into_those_without() -> None:
    plan = base_plan("dense-pp4")
    shard = next(
        node for node in plan["nodes"] if node["type"] == "ShardNode" and node["id"].startswith("r0.prefill.s2")
    )
    shard["devices"] = ["n0.g0"]
    shown = page_data(read_document(plan))
    titles = [shown.boxes[place].title for finding in shown.findings for place in finding.boxes]
    assert titles and not any("1–2" in title for title in titles)


def test_a_finding_of_an_edge_marks_the_line() -> None:
    rule = next(known_rule for known_rule in all_rules() if known_rule.id == "ST006")
    assert any(link.is_faulty for box in page_data(read_document(apply(rule.bad))).boxes for link in box.links)


def test_what_is_no_plan_has_a_page_without_figures_that_says_why() -> None:
    shown = page_data(read_document({"nodes": [{"id": "a", "type": "MoENode"}], "edges": 3}))
    assert shown.figures is None and "not a plan document" in shown.no_figures and len(shown.boxes) == 2


def test_one_phase_alone_has_nothing_of_the_other() -> None:
    shown = page_data(read_document(base_plan("dense-tp2")), "decode")
    assert [timeline.phase for timeline in shown.timelines] == ["decode"]
    assert [box.title for box in shown.boxes if box.kind == "phase"] == ["Decode"]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", base_names())
def test_each_label_of_a_picture_has_its_chinese(name: str) -> None:
    """Except names of devices and degrees, which are the same in all languages."""
    labels, untranslated = picture_labels("zh"), re.compile(r"(?:n\d[\d–]*\.g\d|(?:DP|EP|SP|TP|KV-SP) \d|$)")
    for box in page_data(read_document(base_plan(name))).boxes:
        for part in (piece for text in (box.title, *box.lines) for piece in re.split(" [·×] ", text)):
            assert untranslated.match(part) or {part, re.sub(r"\d+(?:[–.,]\d+)*", "{}", part)} & labels.keys(), part
    assert labels.keys() >= {f"Attention ({kind.kind})" for kind in KINDS if kind.kind != "full"}


def test_a_label_in_another_language_has_a_place_for_each_number() -> None:
    assert all(translation.count("{}") == label.count("{}") for label, translation in picture_labels("zh").items())
    assert picture_labels("en") == {}
