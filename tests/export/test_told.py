"""What an export tells beside its commands: whom they refuse, and what the engine does of itself, where it does it."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.pipeline import plan
from shardwright.tools.export.export import export
from shardwright.tools.export.result import TargetName

SAMPLED = {"pairs": [[100, 10]] * 20, "longest": [30_000, 700]}


@pytest.mark.parametrize(
    ("target", "setting"), [("vllm", "--max-model-len"), ("sglang", "--context-length"), ("trtllm", "max_seq_len")]
)
@pytest.mark.parametrize(
    ("lengths", "longest"),
    [
        ({"input_tokens": 2048, "output_tokens": 256}, 2048 + 256 + 16),
        ({"input_tokens": 1000, "output_tokens": 100, "input_tokens_range": (500, 6000)}, 6000 + 100 + 16),
        ({"input_tokens": 100, "output_tokens": 10, "lengths": SAMPLED}, 30_000 + 700 + 16),
        ({"input_tokens": 131_000, "output_tokens": 72}, None),
    ],
)
def test_requests_that_the_command_refuses_are_told(
    target: TargetName, setting: str, lengths: Any, longest: int | None
) -> None:
    document = plan(model="llama-3.1-8b", hardware="1x2:h100-sxm", engine=target, **lengths).plan
    assert document is not None
    found = export(document, target)
    told = [one for one in found.remarks if "are refused by this command" in one]
    if longest is None:
        assert told == []
        return
    assert told == [
        f"requests longer than {longest:,} tokens in all are refused by this command ({setting}); "
        "the model takes 131,072"
    ]
    assert found.text is not None and f"Mind: {told[0]}" in found.text
    assert str(longest) in found.text


@pytest.mark.parametrize("target", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("degrees", "sends", "places"),
    [
        ("TP8", False, False),
        ("TP8 EP8", False, True),
        ("attention DP 8, EP8", True, True),
        ("attention DP 2, TP4, EP8", True, True),
    ],
)
def test_what_engines_do_of_themselves_is_told_where_they_do_it(
    target: TargetName, degrees: str, sends: bool, places: bool
) -> None:
    made = plan(f"Qwen3-235B-A22B on 8 H200 with {target}, {degrees}", relaxations=["attention_dp"], rules="engine")
    assert made.plan is not None and made.report is not None and made.report.stated is not None
    told = export(made.plan, target).by_itself
    assert any("dispatch and combine" in one for one in told) is sends
    assert any("run of experts" in one for one in told) is places
