"""Results are a line at a prompt, a table and a picture in a notebook, and no text of a plan becomes markup."""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.tools.displayed import Displayed
from shardwright.tools.rules.examples import base_plan

REQUEST = "Serve Llama-3.1-8B on 1 H100, 1k in / 64 out, lowest latency"
HOSTILE = "<img src=x onerror=alert(1)>\n\x1b[31m</iframe><script>alert(1)</script>"


@cache
def results() -> dict[str, Displayed]:
    """A result of each kind, the plan with a hostile name."""
    planned = shardwright.plan(REQUEST)
    document: dict[str, Any] = base_plan("dense-tp2")
    document["model"]["name"] = HOSTILE
    plan = shardwright.Plan.model_validate(document)
    broken = {**document, "nodes": [{**node, "id": HOSTILE} for node in document["nodes"]]}
    assert planned.estimate is not None
    return {
        "result": planned, "plan": plan, "estimate": planned.estimate, "valid": shardwright.validate(plan),
        "broken": shardwright.validate(broken), "search": shardwright.search(REQUEST),
    }  # fmt: skip


def elements(html: str) -> list[str]:
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)
    parser.feed(html)
    return tags


@pytest.mark.parametrize("name", ["result", "plan", "estimate", "valid", "broken", "search"])
def test_a_result_is_one_short_line_at_a_prompt(name: str) -> None:
    line = repr(results()[name])
    assert line == str(results()[name]) and line.isprintable() and 20 < len(line) < 250


@pytest.mark.parametrize("name", ["result", "plan", "estimate", "valid", "broken", "search"])
def test_a_notebook_shows_tables_and_pictures_and_nothing_else(name: str) -> None:
    html = results()[name]._repr_html_()
    assert html is not None
    assert set(elements(html)) <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "img"}


def test_tables_and_pictures_are_where_they_belong() -> None:
    html = {name: result._repr_html_() or "" for name, result in results().items()}
    assert all("<table>" in html[name] for name in ("result", "estimate", "broken", "search"))
    assert all('<img src="data:image/svg+xml;base64,' in html[name] for name in ("result", "plan"))


def test_the_page_of_a_plan_is_framed_without_rights_and_can_be_saved(tmp_path: Path) -> None:
    plan = results()["plan"]
    assert isinstance(plan, shardwright.Plan)
    page = plan.show()
    assert elements(page._repr_html_()) == ["iframe"] and 'sandbox="allow-scripts"' in page._repr_html_()
    page.save(str(tmp_path / "plan.html"))
    assert (tmp_path / "plan.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("name", ["estimate", "broken", "search"])
def test_without_pandas_a_line_names_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(shardwright.InputError, match="pip install pandas"):
        getattr(results()[name], "to_pandas")()  # noqa: B009  # of several types


@pytest.mark.parametrize(("name", "column"), [("estimate", "device"), ("broken", "rule"), ("search", "ttft_ms")])
def test_a_table_is_a_frame(name: str, column: str) -> None:
    pytest.importorskip("pandas")
    frame = getattr(results()[name], "to_pandas")()  # noqa: B009
    assert len(frame) > 0 and column in frame.columns
