"""The page in a real browser opens, folds, searches and zooms by mouse and keys, loads nothing and logs nothing.

Skipped where Playwright or a browser (Chromium or Chrome) is not installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.agent.languages.say import picture_labels
from shardwright.tools.plan.reader import read_document
from shardwright.tools.rules.examples import apply, base_plan
from shardwright.tools.rules.registry import all_rules
from shardwright.tools.show.page import page

from ..browser import launched

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


class Opened:
    """A page of a plan in the browser, with everything that it requested or logged."""

    def __init__(
        self, chromium: Any, folder: Path, plan: dict[str, Any], labels: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        (folder / "plan.html").write_text(page(read_document(plan), labels=labels), encoding="utf-8")
        self.tab = chromium.new_context(**options).new_page()
        self.noise: list[str] = []
        self.tab.on("console", lambda message: self.noise.append(message.text))
        self.tab.on("pageerror", lambda error: self.noise.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.noise.append(dialog.message))
        self.tab.on("request", lambda request: self.noise.append(request.url))
        self.tab.goto((folder / "plan.html").as_uri())
        self.noise = [message for message in self.noise if not message.endswith("/plan.html")]

    def boxes(self) -> int:
        return self.tab.locator("#tree .box").count()

    def overlaps(self) -> list[str]:
        """Labels of boxes that overlap a sibling or stick out of their parent."""
        return self.tab.evaluate(
            """() => [...document.querySelectorAll('#tree .box.open > .inside')].flatMap((inside) => {
              const boxes = [...inside.querySelectorAll(':scope > .part > .column > .box')];
              const spot = (one) => one.getBoundingClientRect();
              const outer = spot(inside);
              const meet = (low, high, other_low, other_high) => low < other_high - 1 && other_low < high - 1;
              const over = (a, b) => meet(a.left, a.right, b.left, b.right) && meet(a.top, a.bottom, b.top, b.bottom);
              return [...boxes.filter((one) => spot(one).right > outer.right + 1), ...boxes.filter((one, place) =>
                boxes.slice(place + 1).some((other) => over(spot(one), spot(other))))].map((one) => one.ariaLabel);
            })"""
        )


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["dense-pp4", "moe-shared-tp2-ep4", "disaggregated-moe"])
def test_boxes_do_not_overlap_and_the_page_is_no_wider_than_the_screen(
    name: str, width: int, chromium: Any, tmp_path: Path
) -> None:
    opened = Opened(chromium, tmp_path, base_plan(name), viewport={"width": width, "height": 900})
    opened.tab.click("#open-all")
    assert opened.overlaps() == [] and opened.noise == []
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= width


def test_boxes_open_and_fold_by_mouse_and_by_keys(chromium: Any, tmp_path: Path) -> None:
    opened = Opened(chromium, tmp_path, base_plan("moe-ep4"), viewport={"width": 1400, "height": 900})
    opened.tab.click("#fold-all")
    folded = opened.boxes()
    opened.tab.keyboard.press("ArrowDown")
    opened.tab.keyboard.press("ArrowRight")
    assert opened.boxes() > folded
    opened.tab.keyboard.press("ArrowLeft")
    assert opened.boxes() == folded
    opened.tab.click("#tree .box .box .turn")
    assert opened.boxes() > folded and opened.noise == []


def test_search_finds_a_gpu_a_layer_and_a_name_and_shows_it(chromium: Any, tmp_path: Path) -> None:
    opened = Opened(chromium, tmp_path, base_plan("dense-pp2-tp2"), viewport={"width": 1400, "height": 900})
    opened.tab.click("#fold-all")
    for words in ("n0.g3", "layer 5", "all-reduce"):
        opened.tab.keyboard.press("/")
        opened.tab.fill("#search", words)
        opened.tab.keyboard.press("Enter")
        assert opened.tab.locator("#tree .chosen").is_visible(), words
        opened.tab.fill("#search", "")
        opened.tab.focus("#tree .chosen")
    assert opened.noise == []


def test_a_click_tells_of_rules_cost_memory_and_gpus(chromium: Any, tmp_path: Path) -> None:
    opened = Opened(chromium, tmp_path, base_plan("moe-ep4"), viewport={"width": 1400, "height": 900})
    opened.tab.click("#tree .kind-attention > .head >> nth=0")
    shown = opened.tab.inner_text("#details")
    assert all(word in shown for word in ("AttentionNode", "GPUs", "memory", "critical path", "computes", "Rules that"))


def test_a_finding_leads_to_its_box(chromium: Any, tmp_path: Path) -> None:
    rule = next(known_rule for known_rule in all_rules() if known_rule.id == "TP003")
    opened = Opened(chromium, tmp_path, apply(rule.bad), viewport={"width": 1400, "height": 900})
    opened.tab.click("text=TP003 error")
    assert "faulty" in opened.tab.locator("#tree .chosen").get_attribute("class")
    assert "TP003" in opened.tab.inner_text("#details") and opened.noise == []


def test_the_timeline_zooms_and_tells_what_runs(chromium: Any, tmp_path: Path) -> None:
    opened = Opened(chromium, tmp_path, base_plan("dense-tp2"), viewport={"width": 1400, "height": 900})
    canvas = opened.tab.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    canvas.focus()
    opened.tab.keyboard.press("+")
    spot = canvas.bounding_box()
    for step in range(160, 1100, 10):
        opened.tab.mouse.move(spot["x"] + step, spot["y"] + 36)
    assert " GPUs" in opened.tab.locator("#timelines p").first.inner_text() and opened.noise == []


def test_a_hostile_name_runs_nothing(chromium: Any, tmp_path: Path) -> None:
    plan = json.loads(json.dumps(base_plan("dense-tp2")).replace("tiny", "</script><img src=x onerror=alert(1)>tiny"))
    opened = Opened(chromium, tmp_path, plan, color_scheme="dark")
    assert opened.noise == [] and "<img src=x" in opened.tab.inner_text("h1")


def test_a_notebook_frames_the_page(chromium: Any) -> None:
    tab, noise = chromium.new_page(), list[str]()
    tab.on("console", lambda message: noise.append(message.text))
    tab.on("pageerror", lambda error: noise.append(str(error)))
    tab.set_content(shardwright.Plan.model_validate(base_plan("dense-tp2")).show()._repr_html_())
    tab.frame_locator("iframe").locator("#tree .box").first.wait_for()
    assert noise == []


@pytest.mark.parametrize("name", ["dense-tp2", "moe-ep4", "disaggregated-moe"])
def test_figures_have_their_ranges_unless_the_page_around_says_them(name: str, chromium: Any, tmp_path: Path) -> None:
    plan = base_plan(name)
    opened = Opened(chromium, tmp_path, plan, viewport={"width": 1400, "height": 900})
    ranges = shardwright.estimate(plan).ranges
    measured = [value for value in (ranges.ttft_ms, ranges.tpot_ms, ranges.end_to_end_ms) if value is not None]
    shown = [cell.partition("\n")[2] for cell in opened.tab.locator("#figures dd").all_inner_texts()[:3]]
    assert len([text for text in shown if "–" in text]) == len(measured) > 0
    assert "null" not in opened.tab.inner_text("header") and "90%" in opened.tab.inner_text("#ranges")
    (tmp_path / "around.html").write_text('<iframe src="plan.html"></iframe>', encoding="utf-8")
    opened.tab.goto((tmp_path / "around.html").as_uri())
    inside = opened.tab.frame_locator("iframe")
    inside.locator("#tree .box").first.wait_for()
    assert not inside.locator("#figures").is_visible() and not inside.locator("#ranges").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_two_keys_of_a_legend_look_alike(scheme: str, chromium: Any, tmp_path: Path) -> None:
    opened = Opened(chromium, tmp_path, base_plan("dense-pp2-tp2"), color_scheme=scheme)
    for legend in ("#legend", "#racks > p", "#breakdown .pair > div:first-child > p"):
        keys = opened.tab.evaluate(
            """(where) => [...document.querySelectorAll(`${where} .key i`)].map((key) => {
              const style = getComputedStyle(key);
              const canvas = document.createElement('canvas').getContext('2d');
              canvas.fillStyle = style.borderTopWidth === '0px' ? style.backgroundColor : style.borderTopColor;
              canvas.fillRect(0, 0, 1, 1);
              return [style.borderTopWidth, ...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
            })""",
            legend,
        )
        assert len(keys) > 2
        for place, (border, *colour) in enumerate(keys):
            for other_border, *other in keys[place + 1 :]:
                apart = sum((a - b) ** 2 for a, b in zip(colour, other, strict=True)) ** 0.5
                assert border != other_border or apart > 70, (legend, colour, other)


def test_labels_stand_in_the_language_of_the_page(chromium: Any, tmp_path: Path) -> None:
    opened = Opened(chromium, tmp_path, base_plan("disaggregated-tp2"), picture_labels("zh"))
    tree, page_text = opened.tab.inner_text("#tree"), opened.tab.inner_text("body")
    for label in ("副本 0", "预填充", "解码", "注意力"):
        assert label in tree
    assert "Replica" not in tree and "Attention" not in tree
    assert "时间花在哪里" in page_text and opened.noise == []
