"""In a real browser, if there is one, the page's own script works and a stranger's does not run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from shardwright.agent.evaluation.report.page import render_page

from .samples import kept_cases, summary

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]

# A script that does on the page what a person does.
_PERSON = """
const search = document.getElementById("search"), which = document.getElementById("which");
const shown = () => [...document.querySelectorAll("#cases tbody")].filter((one) => !one.hidden).map((one) => one.id);
const seen = {};
search.value = "MOON"; search.dispatchEvent(new Event("input")); seen.search = shown();
search.value = ""; search.dispatchEvent(new Event("input"));
which.value = "fault"; which.dispatchEvent(new Event("input")); seen.fault = shown();
which.value = ""; which.dispatchEvent(new Event("input"));
document.querySelector("#cases th button").click(); seen.sorted = shown();
location.hash = "#case-0";
setTimeout(() => {
  const image = document.querySelector("#case-0 img");
  seen.open = document.querySelector("#case-0 details").open;
  document.title = JSON.stringify(seen);
}, 50);
"""


def dom_of(page: Path, tmp_path: Path) -> str:
    """The document in the browser after all scripts have run."""
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=2000", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def test_only_its_own_script_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_page(summary(), kept_cases()), encoding="utf-8")
    dom = dom_of(page, tmp_path)
    assert "<title>Evaluation: builtin on a &lt;small&gt; one</title>" in dom
    assert "4 of 4 cases" in dom
    assert re.search(r'<div id="tools" class="tools">', dom)


def test_cases_are_searched_filtered_sorted_and_opened(tmp_path: Path) -> None:
    source = render_page(summary(), kept_cases())
    # The page's policy would block the script of the test.
    source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
    page = tmp_path / "page.html"
    page.write_text(source.replace("</body>", f"<script>{_PERSON}</script></body>"), encoding="utf-8")
    title = re.search("<title>(.*?)</title>", dom_of(page, tmp_path))
    assert title is not None
    assert title[1] == (
        '{"search":["case-2"],"fault":["case-3"],"sorted":["case-0","case-1","case-3","case-2"],"open":true}'
    )
