"""Hooks of the site: pages that lie beside `docs/` take part in it, and links between files hold on it.

The knowledge base, ARCHITECTURE.md and the like stay where a reader of the repository looks for them. A link to a file
that is a page of the site leads there; one to any other file of the repository leads to the repository.
"""

from __future__ import annotations

import posixpath
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/shardwright/shardwright/blob/main/"
# Pages of the site that lie elsewhere in the repository, by their place on the site.
BESIDE = {
    "architecture.md": "ARCHITECTURE.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    **{path: path for path in (one.relative_to(ROOT).as_posix() for one in (ROOT / "knowledge").rglob("*.md"))},
}
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")


# What the package is made of. The Python reference reads links to it in a folder with the package's name: the root of
# the repository is the package, whatever that folder is called.
PACKAGE = ("__init__.py", "agent", "knowledge", "prompts", "tools")
_links = ExitStack()


def on_startup(command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
    """Let the Python reference find the package by its name."""
    home = Path(_links.enter_context(TemporaryDirectory()))
    (home / "shardwright").mkdir()
    for part in PACKAGE:
        (home / "shardwright" / part).symlink_to(ROOT / part)
    sys.path.insert(0, str(home))


def on_shutdown() -> None:
    """Remove the links."""
    _links.close()


def on_config(config: MkDocsConfig) -> None:
    """Navigation: a folder that is named stands for its pages."""
    config.nav = [_unfolded(entry) for entry in config.nav or ()]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the site, those beside `docs/` too."""
    for place, path in BESIDE.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with links as the site has them."""
    here = posixpath.dirname(page.file.src_uri)
    source = BESIDE.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match["path"]))
        if not (ROOT / target).exists():
            raise PluginError(f"{source}: the link {match['path']} leads to no file")
        place = next((place for place, path in BESIDE.items() if path == target), target.removeprefix("docs/"))
        if files.get_file_from_path(place) is None:
            return f"{REPOSITORY}{target}{match['anchor'] or ''}"
        return f"{posixpath.relpath(place, here or '.')}{match['anchor'] or ''}"

    return _LINK.sub(moved, markdown)


def _unfolded(entry: Any) -> Any:
    """The entry with the pages of the folder that it names, in order, those of a subfolder below its name."""
    if isinstance(entry, dict):
        return {name: _unfolded(value) for name, value in entry.items()}
    if isinstance(entry, list):
        return [_unfolded(one) for one in entry]
    folder = ROOT / ("knowledge" if entry == "knowledge" else f"docs/{entry}")
    if not folder.is_dir():
        return entry
    return _pages(folder, entry)


def _pages(folder: Path, place: str) -> list[Any]:
    pages: list[Any] = sorted(f"{place}/{path.name}" for path in folder.glob("*.md"))
    pages.sort(key=lambda name: not name.endswith("README.md"))
    for inner in sorted(path for path in folder.iterdir() if path.is_dir() and any(path.glob("*.md"))):
        title = inner.name.lstrip("0123456789_").replace("_", " ")
        pages.append({f"{title[0].upper()}{title[1:]}": _pages(inner, f"{place}/{inner.name}")})
    return pages
