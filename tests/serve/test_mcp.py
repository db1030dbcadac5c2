"""The Model Context Protocol beside the routes: the official client asks a server started by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..agent.operations.asked import SMALL
from ..mcp.talk import connected
from .served import as_process


@pytest.mark.thorough
def test_the_official_client_plans_and_validates_through_the_server(tmp_path: Path) -> None:
    with as_process(tmp_path) as process, connected(f"{process.url.rstrip('/')}/mcp") as client:
        planned = client.answered("plan", **SMALL)
        assert planned["answer"]["valid"]
        assert client.answered("validate", plan=planned["kept"]["answer.plan"])["answer"]["valid"]
