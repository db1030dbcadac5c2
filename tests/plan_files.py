"""Plan documents as files of a folder, for tests of commands over files."""

from __future__ import annotations

import json
from pathlib import Path

import shardwright


def good_and_broken(folder: Path, broken: str, hardware: str) -> Path:
    """`folder` with good.json, a valid plan, and `broken`, which breaks a rule."""
    result = shardwright.plan(model="Llama-3.1-8B", hardware=hardware, input_tokens=1024, output_tokens=128)
    assert result.plan is not None
    document = result.plan.model_dump(mode="json")
    (folder / "good.json").write_text(json.dumps(document), encoding="utf-8")
    document["strategy"]["gpu_count"] = 16
    (folder / broken).write_text(json.dumps(document), encoding="utf-8")
    return folder
