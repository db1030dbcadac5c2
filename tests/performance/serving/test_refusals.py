"""What cannot be served is refused with a line that names the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from shardwright.tools.errors import InputError
from shardwright.tools.performance.serving.core import run
from shardwright.tools.performance.serving.inputs import run_of
from shardwright.tools.performance.serving.load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from shardwright.tools.performance.serving.records import Seen

from .engines import ENGINE, ROOMY, simulate

CASES = json.loads((Path(__file__).parents[2] / "cases" / "serving_refused.json").read_text(encoding="utf-8"))


def arrivals_of(fields: dict[str, Any]) -> Arrivals:
    if "users" in fields:
        return ClosedLoop(**fields)
    if "rate_per_s" in fields:
        return OpenLoop(**fields)
    return StaticBatch(**fields) if "sequences" in fields else Burst(**fields)


@pytest.mark.parametrize("case", CASES, ids=[case["names"] for case in CASES])
def test_a_run_that_cannot_be_is_refused_by_the_field_that_is_wrong(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        simulate(
            ENGINE,
            replace(ROOMY, **case.get("policy", {})),
            arrivals_of(case.get("arrivals", {"requests": 5})),
            replace(Lengths(100, 60), **case.get("lengths", {})),
        )
    assert case["names"] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_run_ends_after_the_most_steps() -> None:
    rules, requests = run_of(ROOMY, ClosedLoop(1, 100), Lengths(10, 10))
    assert run(ENGINE, rules._replace(most_events=20), requests, Seen.blank(100)).finished < 100


@pytest.mark.thorough
def test_a_run_that_needs_too_many_steps_is_cut_off_and_says_so() -> None:
    with pytest.raises(InputError, match="needs more than 1000000 steps; lower the requests"):
        simulate(ENGINE, replace(ROOMY, token_budget=1), Burst(10), Lengths(100_000, 2))
