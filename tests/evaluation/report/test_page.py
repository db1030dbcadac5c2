"""The page of an evaluation is complete and self-contained, and whatever a stranger wrote stays text."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from shardwright.agent.evaluation.comparison import compare_runs
from shardwright.agent.evaluation.coverage import Coverage
from shardwright.agent.evaluation.mutation import Mutant, MutationScore
from shardwright.agent.evaluation.report.markup import element, joined
from shardwright.agent.evaluation.report.page import MOST_PICTURE_BYTES, render_page
from shardwright.agent.evaluation.report.summary import summed_up
from shardwright.agent.evaluation.rungs.ladder import RUNG_NAMES

from .samples import HEADER, HOSTILE, kept_cases, results, summary

_VOID = {"meta", "input", "img", "br"}


class Page(HTMLParser):
    """Elements with attributes, the text, and whether every element is closed in the right place."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self._open: list[str] = []
        self.feed(source)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in ("script", "style"):
            self.said += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def source() -> str:
    return render_page(summary(), kept_cases())


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_it_asks_for_nothing(page: Page) -> None:
    links = [value or "" for _, attrs in page.elements for name, value in attrs.items() if name in ("src", "href")]
    assert links
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in links)
    assert not {"link", "iframe", "object", "base", "form"} & {tag for tag, _ in page.elements}


def test_its_policy_lets_only_its_own_script_run(source: str, page: Page) -> None:
    policy = next(meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    for name in ("style", "script"):
        body = re.findall(f"<{name}>(.*?)</{name}>", source, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in body]
        assert [f"{name}-src 'sha256-{digest}'" in policy for digest in digests] == [True]
    assert "default-src 'none'" in policy
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on") or name == "style"]


def test_a_hostile_request_is_text(source: str, page: Page) -> None:
    assert len(page.of("script")) == 1
    assert HOSTILE.split("&")[0] in page.said
    assert not any(sign in source for sign in "\x07\u202e")
    assert "<small>" not in source


def test_every_case_is_there_with_every_mark(page: Page) -> None:
    bodies = [body for body in page.of("tbody") if "data-state" in body]
    assert [body["data-family"] for body in bodies] == [result.family for result in results()]
    marks = [mark for mark in page.of("td") if "data-key" in mark]
    assert len(marks) == len(results()) * len(RUNG_NAMES)
    repaired = [mark for mark in marks[: len(RUNG_NAMES)] if "late" in (mark["class"] or "")]
    assert {(mark["title"] or "").split(":")[0] for mark in repaired} >= {"rules"}
    assert all(not mark["title"] or "not passed" in mark["title"] for mark in marks[-len(RUNG_NAMES) :])
    assert "unknown base plan" in page.said


def test_a_case_tells_its_proposals_findings_and_repairs(page: Page) -> None:
    for words in (
        "What the base plan moe-ep2 answers.",
        "Two devices are used.",
        "GP001: strategy.gpu_count is 7, the graph uses 2 devices",
        "GP001: sets strategy.gpu_count to 2",
        '"path": "/strategy/gpu_count"',
        "EP2 × TP2 (builder)",
    ):
        assert words in page.said


def test_the_picture_of_the_answer_is_an_image_that_is_told(page: Page) -> None:
    (image,) = page.of("img")
    picture = base64.b64decode((image["src"] or "").removeprefix("data:image/svg+xml;base64,"))
    assert ET.fromstring(picture).tag.endswith("svg")
    assert image["alt"] == "DAG of the answer to count-of-seven: EP2 × TP2"


def test_scores_stand_apart_for_cases_of_the_builder(page: Page) -> None:
    summed = summary()
    assert summed.rungs != summed.without_builder
    assert page.said.count("at the end") >= 2
    assert "Without cases whose golden the built-in proposer wrote" in page.said
    bars = [svg for svg in page.of("svg") if svg.get("class") == "bar"]
    rates = [rate for rungs in (summed.rungs, summed.without_builder) for stages in rungs.values() for rate in stages]
    assert len(bars) == len(rates)


def test_flipped_cases_coverage_and_mutants_are_named() -> None:
    cases = kept_cases()
    before = tuple(
        result.model_copy(
            update={"marks": {name: mark.model_copy(update={"passed": True}) for name, mark in result.marks.items()}}
        )
        for result in results()
    )
    mutant = Mutant(case="c1", mutator="drop <edge>", lost=(), expected=("rules",))
    summed = summed_up(
        HEADER,
        cases,
        Coverage(rules=3, exercised=("GP001",), missing=("TP001", "TP002")),
        MutationScore(goldens=1, harmful=2, killed=1, mutants=2, exact=1, survivors=(mutant,), inexact=(mutant,)),
        compare_runs(before, results(), is_exact=True),
    )
    page = Page(render_page(summed, cases))
    assert "worse than the baseline" in page.said
    assert {"#case-1"} <= {link["href"] for link in page.of("a")}
    assert "flipped" in (next(body for body in page.of("tbody") if body.get("id") == "case-1")["data-state"] or "")
    assert "Not exercised: TP001, TP002." in page.said
    assert "Mutation score 50%" in page.said
    assert page.said.count("c1, drop <edge>: lost nothing, should rules") == 1


def test_a_page_of_many_cases_stays_short() -> None:
    first = kept_cases()[0]
    assert first.detail is not None
    large = f"<svg xmlns='http://www.w3.org/2000/svg'><!--{'x' * 59_000}--></svg>"
    detail = first.detail.model_copy(update={"picture": large})
    many = [
        first.model_copy(
            update={"detail": detail, "result": first.result.model_copy(update={"id": f"case-{number}"})}
        )
        for number in range(250)
    ]  # fmt: skip
    unsolved = many[249].result.model_copy(update={"fault": "broke"})
    many[249] = many[249].model_copy(update={"result": unsolved})
    text = render_page(summed_up(HEADER, many), many)
    assert len(text.encode()) < 10_000_000
    shown = [html.unescape(label) for label in re.findall(r'alt="([^"]*)"', text)]
    assert len(shown) == MOST_PICTURE_BYTES // len(large)
    assert "DAG of the answer to case-249: EP2 × TP2" in shown
    assert text.count("The picture is left out") == 250 - len(shown)


def test_markup_escapes_all_but_markup() -> None:
    inner = element("b", "<&>\"'", title='"><script>')
    assert inner == '<b title="&quot;&gt;&lt;script&gt;">&lt;&amp;&gt;&quot;&#x27;</b>'
    assert joined("<", inner) == f"&lt;{inner}"
    assert element("p", inner.upper()) == f"<p>{html.escape(inner.upper())}</p>"
