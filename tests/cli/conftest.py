"""Command-line tests print to a wide terminal, so that no path of a temporary folder is wrapped."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
