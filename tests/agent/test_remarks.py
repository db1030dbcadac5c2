"""A remark unrelated to a plan changes nothing that is read, wherever it is."""

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
# Things that a company has and no request is about: their number is no load, no length and no hardware.
THINGS = [
    "shops",
    "laptops",
    "groups",
    "maps",
    "schools",
    "trucks",
    "ships",
    "cameras",
    "phones",
    "printers",
    "offices",
    "countries",
    "brands",
    "songs",
    "books",
    "lawyers",
    "farms",
    "robots",
    "sensors",
    "labels",
    "answers",
    "albums",
    "towers",
    "bridges",
    "rules",
    "tests",
    "branches",
    "sites",
    "invoices",
]
THINGS_CHINESE = ("家门店", "个城市", "台打印机", "张发票", "块硬盘", "条产线", "名员工", "所学校", "页文档", "辆车")
SUBJECTS = ("The meeting", "A backup", "The lift", "Each lesson", "Our contract", "The gateway", "Maria")
PREDICATES = ("takes 20 seconds", "costs 500 euros a month", "writes 2 GB a day", "runs every 15 minutes", "is at 60%")
OTHERS = ("The crawler", "Our Kafka", "The vector database", "The old pipeline", "A different team", "The competitor")
OF_OTHERS = (
    "runs vLLM 0.6", "uses TP4", "has 3 replicas", "serves 200 users", "handles 90 requests per second",
    "runs Mixtral 8x7B", "answers within 300 ms", "makes 80 tokens per second", "owns 16 A100s", "needs 5 instances",
    "uses int8", "has 12 nodes",
)  # fmt: skip
# Quoted words and listed notes may differ.
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


@pytest.mark.one_in(20)
@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("said", ["Our client runs 20 {}.", "There are 20 {} involved.", "Each of them has 20 {}."])
def test_a_number_of_other_things_changes_nothing_that_is_read(thing: str, said: str) -> None:
    assert facts(f"{REQUESTS[1]}. {said.format(thing)}") == facts(REQUESTS[1])


@pytest.mark.one_in(10)
@pytest.mark.parametrize("thing", THINGS_CHINESE)
@pytest.mark.parametrize("said", ["我们有 20 {}。", "目前覆盖 20 {}。", "隔壁组用了 20 {}。"])
def test_a_number_of_other_things_in_chinese_changes_nothing(thing: str, said: str) -> None:
    assert facts(f"{REQUESTS[2]}。{said.format(thing)}") == facts(REQUESTS[2])


@pytest.mark.one_in(10)
@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_what_something_else_takes_or_costs_changes_nothing(subject: str, predicate: str) -> None:
    assert facts(f"{REQUESTS[1]}. {subject} {predicate}.") == facts(REQUESTS[1])


@pytest.mark.one_in(10)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("said", OF_OTHERS)
def test_what_is_said_of_another_system_changes_nothing(other: str, said: str) -> None:
    assert facts(f"{REQUESTS[1]}. {other} {said}.") == facts(REQUESTS[1])
