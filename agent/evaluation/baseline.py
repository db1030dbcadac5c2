"""Reads the report of an earlier run, to compare with: an untrusted file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ...tools.errors import InputError
from ...tools.input.files import read_bounded, shown_path
from ...tools.input.strict_json import parse
from ...tools.input.strict_values import MAX_WRAPPED_DEPTH, JsonError
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
    results: tuple[CaseResult, ...]


def read_baseline(path: Path) -> Baseline:
    """The report at `path`.

    Raises:
        InputError: it cannot be read, is no JSON report of an evaluation of this version, or has a result twice.
    """
    name = shown_path(path)
    try:
        raw: Any = parse(read_bounded(path, MAX_REPORT_BYTES, name), name, most_depth=MAX_WRAPPED_DEPTH)
    except JsonError as error:
        raise InputError(f"{error}; give what `eval -o FILE` wrote") from None
    if not isinstance(raw, dict) or raw.get("format") != "shardwright/eval":
        raise InputError(f"{name}: is no report of an evaluation; give what `eval -o FILE` wrote")
    if raw.get("version") != "1":
        raise InputError(f"{name}: version {repr(raw.get('version'))[:40]} of reports is not known; this reads '1'")
    try:
        baseline = Baseline.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(str(part)[:60] for part in first["loc"])
        raise InputError(f"{name}: {place}: {first['msg']}") from None
    _check_results(baseline.results, name)
    return baseline


def _check_results(results: tuple[CaseResult, ...], name: str) -> None:
    seen: set[tuple[str, int]] = set()
    digests: dict[str, str] = {}
    for result in results:
        if (result.id, result.epoch) in seen:
            raise InputError(f"{name}: two results are of case {result.id[:100]!r} in epoch {result.epoch}")
        if digests.setdefault(result.id, result.case) != result.case:
            raise InputError(f"{name}: case {result.id[:100]!r} is not the same in all epochs")
        seen.add((result.id, result.epoch))
