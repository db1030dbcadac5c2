"""A remark that has nothing to do with a plan changes nothing that is read, wherever it stands."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.language.request import read_request

REMARKS: list[str] = json.loads((Path(__file__).parents[1] / "cases" / "remarks.json").read_text(encoding="utf-8"))
REQUESTS = (
    "Qwen3-32B on 8 H100, 2k/300",
    "Llama 3.3 70B fp8 on 2 nodes of 8 H100, 3000 tokens in, 500 out, 40 concurrent, TTFT under 1 s",
    "Qwen3-32B，8张H100，输入2000，输出300，并发20，TPOT 50ms以内",
)
# How words are quoted and what is listed may differ.
TOLD = {"words", "unread", "readings"}


@cache
def facts(text: str) -> dict[str, Any]:
    said = read_request(text).model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in said.items() if name not in TOLD}


@pytest.mark.one_in(20)
@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("remark", REMARKS)
def test_a_remark_changes_nothing_that_is_read(remark: str, request_: str) -> None:
    as_sentence = remark[0].upper() + remark[1:]
    for text in (f"{request_}. {as_sentence}.", f"{request_}, {remark}", f"{as_sentence}. {request_}"):
        assert facts(text) == facts(request_), text
