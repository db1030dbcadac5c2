"""Reads the report of an earlier run, to compare with: a file that a stranger may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...tools.errors import InputError
from ...tools.files import read_bounded, utf8_text
from .results import CaseResult

MAX_REPORT_BYTES = 128 << 20


class Baseline(BaseModel):
    """What of an earlier report is compared."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: str
    version: str
    dataset_hash: str
    solver: str
    is_deterministic: bool
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    results: tuple[CaseResult, ...]


def read_baseline(path: Path) -> Baseline:
    """The report at `path`.

    Raises:
        InputError: it cannot be read, or is no JSON report of an evaluation of this version.
    """
    name = str(path)
    text = utf8_text(read_bounded(path, MAX_REPORT_BYTES, name), name)
    try:
        raw: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not JSON: {error}; give what `eval -o FILE` wrote") from None
    if not isinstance(raw, dict) or raw.get("format") != "shardwright/eval":
        raise InputError(f"{name}: is no report of an evaluation; give what `eval -o FILE` wrote")
    if raw.get("version") != "1":
        raise InputError(f"{name}: version {raw.get('version')!r} of reports is not known; this reads '1'")
    try:
        return Baseline.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(part) for part in first["loc"])
        raise InputError(f"{name}: {place}: {first['msg']}") from None
