"""What the page of the plan format says may be left out, and how a version is written, is so."""

from __future__ import annotations

import re
from pathlib import Path

from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate

PAGE = (Path(__file__).parents[2] / "docs/reference/plan-format.md").read_text(encoding="utf-8")


def test_the_version_is_written_as_the_page_says() -> None:
    written = re.search(r"^- `version`: \"(.*)\"$", PAGE, re.MULTILINE)
    assert written is not None and base_plan("dense-1")["version"] == written[1]


def test_fields_that_the_schema_lets_one_leave_out_and_a_rule_does_not_are_named() -> None:
    document = base_plan("moe-ep2")
    optional = re.search(r"Rules want two of these stated: (.*?)\.\n", PAGE, re.DOTALL)
    assert optional is not None
    bare = {key: value for key, value in document.items() if key != "construction"}
    bare["nodes"] = [
        {key: value for key, value in node.items() if key not in ("tokens_per_step", "recurrence")}
        for node in document["nodes"]
    ]
    broken = {finding.rule for finding in validate(bare).violations if finding.severity == "error"}
    assert broken == set(re.findall(r"[A-Z]{2}\d{3}", optional[1]))
