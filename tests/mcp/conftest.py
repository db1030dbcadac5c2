"""A server for all tests: a real process, called by the official client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .talk import Talk, connected, launch


@pytest.fixture(scope="session")
def talk() -> Iterator[Talk]:
    """A client connected to a server on standard streams."""
    with connected(launch()) as client:
        yield client
