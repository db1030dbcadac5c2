"""One server for all tests: a real process, asked by the official client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .talk import Talk, connected, launch


@pytest.fixture(scope="session")
def talk() -> Iterator[Talk]:
    """A client of a server on standard streams."""
    with connected(launch()) as found:
        yield found
