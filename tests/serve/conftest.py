"""A server for all tests that need no other, and a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from shardwright.agent.operations.all_operations import OPERATIONS

from ..agent.operations.asked import SMALL
from ..browser import launched
from .browsing import Page
from .served import Server, in_thread


@pytest.fixture(scope="session")
def served() -> Iterator[Server]:
    with in_thread() as server:
        yield server


@pytest.fixture
def client(served: Server) -> Iterator[httpx2.Client]:
    with served.client() as client:
        yield client


@pytest.fixture(scope="session")
def plan() -> dict[str, Any]:
    operation = next(operation for operation in OPERATIONS if operation.name == "plan")
    return operation.answer(operation.question(SMALL)).plan.model_dump(mode="json")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(chromium: Any, served: Server) -> Iterator[Page]:
    opened = Page(chromium, served.url)
    yield opened
    assert opened.noise == []
    opened.context.close()
