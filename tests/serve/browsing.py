"""The page in a real browser, as a person uses it: messages, drops, key presses, and the browser's complaints.

Nothing here can be used where Playwright or a browser (Chromium or Chrome) is not installed.
"""

from __future__ import annotations

import json
from typing import Any

SMALL_REQUEST = "Serve Llama-3.1-8B on 2 H100, 1k in / 128 out, lowest latency"
WIDE = {"width": 1400, "height": 900}


class Page:
    """The page of the server at `url`, open in a tab. `noise` lists its log messages and requests to other servers."""

    def __init__(self, chromium: Any, url: str, **options: Any) -> None:
        self.context = chromium.new_context(**{"viewport": WIDE, "locale": "en-US", **options})
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(20_000)
        self.noise: list[str] = []
        self.tab.on("console", lambda message: self.noise.append(message.text))
        self.tab.on("pageerror", lambda error: self.noise.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.noise.append(dialog.message), dialog.dismiss()))
        self.tab.on("request", self._record_foreign)
        self._page_url = url.partition("#")[0]
        self.tab.goto(url)
        self.tab.wait_for_selector("body[data-ready]")

    def _record_foreign(self, request: Any) -> None:
        if not request.url.startswith((self._page_url, "about:", "blob:", "data:")):
            self.noise.append(request.url)

    def say(self, text: str) -> None:
        """Write a message and send it."""
        self.tab.fill("#message", text)
        self.tab.press("#message", "Enter")

    def verdict(self, words: str) -> None:
        """Wait until the head of the plan has `words`."""
        self.tab.locator("#head .verdict", has_text=words).wait_for()

    def planned(self, request: str = SMALL_REQUEST, verdict: str = "TP2") -> Page:
        """Ask for a plan and wait for it; the page."""
        self.say(request)
        self.verdict(verdict)
        return self

    def open(self, sheet: str) -> Any:
        """Open a sheet of the plan and return it."""
        self.tab.click(f"#tab-{sheet}")
        return self.tab.locator(f"#sheet-{sheet}")

    def drop(self, name: str, content: object) -> None:
        """Drop a file on the page: a text, or an object as JSON."""
        self.drop_all({name: content if isinstance(content, str) else json.dumps(content)})

    def drop_all(self, texts: dict[str, str]) -> None:
        """Drop files on the page at once."""
        data = self.tab.evaluate_handle(
            """(texts) => {
              const data = new DataTransfer();
              for (const [name, text] of Object.entries(texts)) data.items.add(new File([text], name));
              return data;
            }""",
            texts,
        )
        self.tab.dispatch_event("body", "drop", {"dataTransfer": data})

    def picture(self) -> Any:
        """The frame with the picture of the plan."""
        return self.tab.frame_locator("#picture")

    def overflow(self) -> int:
        """By how many pixels the page or its plan is wider than the screen."""
        return self.tab.evaluate(
            """() => Math.max(...[document.documentElement, ...document.querySelectorAll('#plan, #chat, #talk')]
              .map((one) => one.scrollWidth - one.clientWidth))"""
        )
