"""A real browser for tests of pages; needs Playwright, and Chromium or Chrome."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@contextmanager
def launched() -> Iterator[Any]:
    """A browser; the test is skipped if none is installed."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if BROWSER is None:
        pytest.skip("no Chromium or Chrome is installed")
    with sync_api.sync_playwright() as playwright:
        # Chromium refuses a sandbox to root, the user of containers.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=BROWSER, args=flags)
        yield browser
        browser.close()
