"""The schemas of all tools as a file, so that a change of what models are offered shows up.

Run it to rewrite the file: `python -m shardwright.tests.agent.toolset.golden`, or by its path.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shardwright.agent.toolset.all_tools import ALL_TOOLS

PLACE = Path(__file__).parents[2] / "cases" / "tool_schemas.json"


def offered() -> list[dict[str, Any]]:
    """The tools as offered, in their order."""
    return [tool.spec.model_dump(mode="json") for tool in ALL_TOOLS]


if __name__ == "__main__":
    PLACE.write_text(json.dumps(offered(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
