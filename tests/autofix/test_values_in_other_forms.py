"""A value with only one meaning is written as the format has it, whatever else is wrong."""

from __future__ import annotations

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.plan.schema import MAX_FAULTS
from shardwright.tools.rules.examples import base_plan


@pytest.mark.one_in(1)
@pytest.mark.parametrize("written", ["BF16", "bfloat16", "torch.bfloat16"])
def test_a_number_format_by_another_name_is_that_format(written: str) -> None:
    plan = base_plan("dense-1")
    result = autofix({**plan, "precision": {**plan["precision"], "weights": written}})
    assert result.valid and result.document == plan


def test_it_is_mended_beside_more_faults_than_are_listed() -> None:
    plan = base_plan("mla-tp2-ep2-pp2")
    graph = {name: [{**element, "colour": "red"} for element in plan[name]] for name in ("nodes", "edges")}
    assert sum(map(len, graph.values())) > MAX_FAULTS
    result = autofix({**plan, **graph, "precision": {**plan["precision"], "weights": "FLOAT16"}})
    assert result.valid and result.plan is not None and result.plan.precision.weights == "fp16"
    assert result.document is not None and result.document["nodes"] == plan["nodes"]
