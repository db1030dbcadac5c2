"""The page for everyone: light and dark, narrow and wide, in English and Chinese, by keyboard, and read aloud.

Skipped where Playwright or a browser (Chromium or Chrome) is not installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pytest

from .browsing import SMALL_REQUEST, Page
from .served import Server

pytestmark = pytest.mark.thorough

SHEETS = ("picture", "request", "memory", "strategies", "findings", "compare", "export")
PHONE = {"width": 390, "height": 844}
PARTS = files("shardwright.agent.serve").joinpath("page")


def filled(page: Page) -> Iterator[str]:
    """Open each sheet of a plan in turn, filled as far as possible; its name."""
    page.planned().tab.locator("#picture").wait_for()
    for sheet in SHEETS:
        panel = page.open(sheet)
        if sheet == "strategies":
            panel.locator("button.first").click()
            panel.locator(".point").first.click()
        elif sheet == "compare":
            panel.locator("textarea").fill("PP2")
            panel.locator("button.first").click()
            panel.locator(".compared").wait_for()
        elif sheet == "export":
            panel.locator("button.first").click()
            panel.locator("pre").wait_for()
        yield sheet


def serious(axe: Any, page: Page, rules: Mapping[str, Any]) -> list[str]:
    """Serious and critical violations of `rules` that axe finds on the page."""
    options = {"resultTypes": ["violations"], "iframes": False, **rules}
    violations = axe.run(page.tab, options=options).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


# Only colours depend on the colour scheme.
@pytest.mark.parametrize(
    ("scheme", "rules"), [("light", {}), ("dark", {"runOnly": ["color-contrast"]})], ids=["light", "dark"]
)
def test_axe_finds_nothing_serious(scheme: str, rules: dict[str, Any], chromium: Any, served: Server) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = Page(chromium, served.url, color_scheme=scheme)
    assert serious(axe, page, rules) == []
    violations = {sheet: serious(axe, page, rules) for sheet in filled(page)}
    assert violations == {sheet: [] for sheet in SHEETS}
    page.tab.click("#help-open")
    assert serious(axe, page, rules) == [] and page.noise == []


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_phone_needs_no_scrolling_sideways(locale: str, chromium: Any, served: Server) -> None:
    page = Page(chromium, served.url, viewport=PHONE, locale=locale)
    assert page.overflow() <= 0
    wide = {sheet: page.overflow() for sheet in filled(page)}
    page.tab.click("#view-chat")
    assert {**wide, "chat": page.overflow()} == {**dict.fromkeys(SHEETS, 0), "chat": 0}
    assert page.tab.locator("#message").is_visible() and page.noise == []


def test_the_theme_follows_the_system_and_the_toggle(chromium: Any, served: Server) -> None:
    page = Page(chromium, served.url, color_scheme="dark")

    def paper() -> str:
        return page.tab.evaluate("getComputedStyle(document.body).backgroundColor")

    assert paper() == "rgb(13, 17, 23)"
    page.tab.click("#theme")
    assert paper() == "rgb(255, 255, 255)"
    page.tab.reload()
    page.tab.wait_for_selector("body[data-ready]")
    assert paper() == "rgb(255, 255, 255)"
    page.tab.click("#theme")
    page.tab.emulate_media(color_scheme="light")
    assert paper() == "rgb(13, 17, 23)"


def test_chinese_follows_the_browser_and_the_toggle_and_is_understood(chromium: Any, served: Server) -> None:
    page = Page(chromium, served.url, locale="zh-CN")
    assert page.tab.get_attribute("html", "lang") == "zh" and "部署" in page.tab.inner_text("#empty")
    page.tab.click(".examples button >> nth=0")
    page.verdict("有效方案")
    page.say("现在用 4 张卡")
    page.verdict("TP4")
    page.tab.click("#language")
    page.verdict("Valid plan")
    assert page.tab.get_attribute("html", "lang") == "en"
    assert page.tab.inner_text("#tab-memory") == "Memory" and page.noise == []


def test_every_text_is_there_in_both_languages_and_none_is_left_over() -> None:
    texts = json.loads(PARTS.joinpath("strings.json").read_text(encoding="utf-8"))
    assert list(texts) == ["en", "zh"] and texts["en"].keys() == texts["zh"].keys()
    for name, text in texts["en"].items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", texts["zh"][name])), name
    code = "".join(path.read_text(encoding="utf-8") for path in PARTS.iterdir() if path.name.endswith((".js", ".html")))
    used = set(re.findall(r"\bt\(\"([\w.-]+)\"", code)) | set(re.findall(r"data-t[a-z-]*=\"([\w-]+)\"", code))
    assert used <= texts["en"].keys()
    prefixes = ("field-", "tab-", "memory-", "for-", "by-", "choice-", "theme-", "example-")
    unused = [name for name in texts["en"] if f'"{name}"' not in code and not name.startswith(prefixes)]
    assert unused == ["warning"]  # a severity, as a finding names it


def test_nothing_comes_from_elsewhere_and_no_markup_is_made_of_text() -> None:
    for path in PARTS.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text), path.name
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\(", text), (
            path.name
        )
        assert not re.findall(r"<[^>]+ (style|on\w+)=", text), path.name


def test_all_of_it_is_reached_by_keyboard(chromium: Any, served: Server) -> None:
    page = Page(chromium, served.url)
    keys = page.tab.keyboard
    keys.press("Tab")
    keys.press("Enter")  # skips to the message
    keys.type(SMALL_REQUEST)
    keys.press("Enter")
    page.verdict("TP2")
    keys.press("Escape")
    page.tab.evaluate("document.activeElement.blur()")
    keys.press("?")
    page.tab.locator("#help[open]", has_text="Send the message").wait_for()
    keys.press("Escape")
    keys.press("4")
    page.tab.locator("#sheet-strategies").wait_for()
    page.tab.focus("#tab-strategies")
    for _ in range(2):
        keys.press("Tab")
    keys.press("Enter")
    page.tab.locator(".point").first.wait_for()
    keys.press("Tab")
    keys.press("ArrowLeft")
    assert page.tab.get_attribute(":focus", "aria-checked") == "true"
    chosen = page.tab.inner_text("#sheet-strategies .card h3")
    keys.press("Tab")
    keys.press("Enter")
    page.verdict(chosen)
    keys.press("u")
    page.verdict("TP2")
    keys.press("/")
    assert page.tab.evaluate("document.activeElement.id") == "message" and page.noise == []


def test_escape_stops_what_is_under_way(chromium: Any, served: Server) -> None:
    page = Page(chromium, served.url)
    page.say("DeepSeek-V3 on 512 H100, 4096 in, 512 out, 512 users, highest throughput")
    page.tab.locator("#stop").wait_for()
    page.tab.keyboard.press("Escape")
    page.tab.locator("#say-error", has_text="Stopped.").wait_for()
    assert page.tab.input_value("#message").startswith("DeepSeek-V3") and page.noise == []
