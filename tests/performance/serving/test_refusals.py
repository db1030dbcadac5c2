"""What cannot be served is refused with a line that names the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from shardwright.tools.errors import InputError
from shardwright.tools.performance.serving.core import run
from shardwright.tools.performance.serving.inputs import inputs_of
from shardwright.tools.performance.serving.load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from shardwright.tools.performance.serving.records import Seen
from shardwright.tools.performance.serving.simulate import outcome_of

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


def test_a_run_that_needs_too_many_steps_is_cut_off_and_says_so() -> None:
    arrivals = ClosedLoop(1, 100)
    inputs = inputs_of(ENGINE, ROOMY, arrivals, Lengths(10, 10))
    inputs = replace(inputs, rules=inputs.rules._replace(most_events=20))
    seen = Seen.blank(100)
    totals = run(inputs.step, inputs.rules, inputs.requests, seen)
    with pytest.raises(InputError, match="needs more than 20 steps; lower the requests"):
        outcome_of(inputs, seen, totals, arrivals)
