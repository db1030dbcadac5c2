"""The pages build as a site, strictly and without a network, and the site fetches nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mkdocs.config import load_config
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import shardwright
from shardwright.agent.cli.app import cli
from shardwright.docs.make.site import on_page_markdown

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
# Attributes whose URL a browser fetches by itself, unlike links that a reader follows.
FETCHED = {
    ("audio", "src"), ("embed", "src"), ("iframe", "src"), ("img", "src"), ("img", "srcset"), ("link", "href"),
    ("object", "data"), ("script", "src"), ("source", "src"), ("source", "srcset"), ("video", "src"),
}  # fmt: skip
# Relations of `link` whose URL is not fetched.
UNFETCHED = {"canonical", "prev", "next"}


class Assets(HTMLParser):
    """The URLs that a page makes a browser fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "link" and dict(attrs).get("rel") in UNFETCHED:
            return
        self.urls += [value for name, value in attrs if value and (tag, name) in FETCHED]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with a dead proxy in place of the network."""
    folder = tmp_path_factory.mktemp("site")
    nowhere = "http://127.0.0.1:9"
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**inherited, "http_proxy": nowhere, "https_proxy": nowhere, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    build = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert (build.returncode, build.stderr) == (0, "")
    return folder


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    foreign_assets = {
        f"{page.relative_to(site)}: {asset}"
        for page in pages
        for asset in Assets(page.read_text(encoding="utf-8")).urls
        if re.match(r"(?:[a-z]+:)?//", asset)
    }
    assert len(pages) > 60
    assert foreign_assets == set()


def test_no_style_of_the_site_fetches_anything_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"(?:url\(|@import\s+)['\"]?(?:https?:)?//[^)'\"]*")
    matches = [match[0] for path in site.rglob("*.css") for match in fetched.finditer(path.read_text(encoding="utf-8"))]
    assert matches == []


def test_the_reader_of_assets_sees_one_from_elsewhere() -> None:
    text = '<link rel="stylesheet" href="//a/b.css"><link rel="canonical" href="https://c"><img src="d.png">'
    assert Assets(text).urls == ["//a/b.css", "d.png"]


def test_every_public_name_and_every_command_has_its_place(site: Path) -> None:
    names = (site / "reference" / "python" / "index.html").read_text(encoding="utf-8")
    missing = {
        name for name in shardwright.__all__ if name != "__version__" and f'id="shardwright.{name}"' not in names
    }
    assert missing == set()
    commands = (site / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    assert {name for name in cli.commands if f'id="{name}"' not in commands} == set()


def test_nothing_of_the_workshop_is_on_the_site(site: Path) -> None:
    assert {path.suffix for path in site.rglob("*") if path.is_file()} & {".py", ".jsonl", ".pyc"} == set()


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("../rules.md#TP003", "../rules.md#TP003"),
        ("../../knowledge/README.md", "../knowledge/README.md"),
        ("../../CONTRIBUTING.md", "../contributing.md"),
        ("../../tools/input/files.py", "https://github.com/shardwright/shardwright/blob/main/tools/input/files.py"),
        ("https://example.org/a.md", "https://example.org/a.md"),
        ("#here", "#here"),
    ],
)
def test_a_link_between_files_of_the_repository_leads_to_the_same_on_the_site(link: str, leads_to: str) -> None:
    config = load_config(str(ROOT / "mkdocs.yml"))
    places = ("how-to/ask.md", "rules.md", "knowledge/README.md", "contributing.md")
    files = Files([File(place, str(ROOT / "docs"), config.site_dir, use_directory_urls=True) for place in places])
    page = Page(None, files.src_uris["how-to/ask.md"], config)
    assert on_page_markdown(f"[a]({link})", page, config, files) == f"[a]({leads_to})"
    with pytest.raises(PluginError, match=r"docs/how-to/ask\.md: the link \.\./nowhere\.md leads to no file"):
        on_page_markdown("[a](../nowhere.md)", page, config, files)
