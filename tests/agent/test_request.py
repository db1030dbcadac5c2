"""Requests are read field by field, whatever their spelling, and refused in one line if they cannot be met."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.intent.complete import complete
from shardwright.agent.intent.intent import Intent
from shardwright.tools.errors import InputError
from shardwright.tools.language.errors import RequestError
from shardwright.tools.language.request import MAX_REQUEST_CHARACTERS, read_request
from shardwright.tools.language.said import Said

from ..examples import examples

CASES = Path(__file__).parent.parent / "cases"
REQUESTS: list[dict[str, Any]] = [
    case
    for name in ("requests.json", "requests_in_odd_writing.json")
    for case in json.loads((CASES / name).read_text(encoding="utf-8"))
]
PARAPHRASES: list[dict[str, Any]] = json.loads((CASES / "paraphrases.json").read_text(encoding="utf-8"))
READ = [case for case in REQUESTS if "said" in case]
REFUSED = [case for case in REQUESTS if "refused" in case]
NOTES = {"words", "readings", "unread"}


def stated_fields(said: Said) -> dict[str, Any]:
    """The stated fields as JSON, without the notes."""
    fields = said.model_dump(mode="json", exclude_defaults=True, exclude=NOTES)
    if said.strategy is not None:
        fields["strategy"] = said.strategy.model_dump(mode="json", exclude_none=True)
    return fields


def same(value: Any, expected: Any) -> bool:
    return value == (pytest.approx(expected) if isinstance(expected, float) else expected)


def look_up(intent: Intent, path: str) -> Any:
    value: Any = intent.model_dump(mode="json")
    for key in path.split("."):
        value = value[key]
    return value


@pytest.mark.one_in(1)
@pytest.mark.parametrize("case", READ, ids=lambda case: case["id"])
def test_a_request_is_read_field_by_field(case: dict[str, Any]) -> None:
    said = read_request(case["text"])
    fields = stated_fields(said)
    assert fields.keys() == case["said"].keys()
    for name, expected in case["said"].items():
        assert same(fields[name], expected), name
    for part in case.get("unread", ()):
        assert any(part.lower() in note.lower() for note in said.unread)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", READ, ids=lambda case: case["id"])
def test_every_field_that_was_said_knows_its_words(case: dict[str, Any]) -> None:
    said = read_request(case["text"])
    assert said.words.keys() == case["said"].keys()
    assert all(said.words.values())


@pytest.mark.parametrize("case", [case for case in READ if "intent" in case], ids=lambda case: case["id"])
def test_a_request_is_completed_by_stated_assumptions(case: dict[str, Any]) -> None:
    intent = complete(read_request(case["text"]))
    for path, expected in case["intent"].items():
        assert same(look_up(intent, path), expected), path


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["id"])
def test_a_request_that_cannot_be_met_is_refused_in_one_line(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refusal:
        complete(read_request(case["text"]))
    message = str(refusal.value)
    assert "\n" not in message
    for part in case["refused"]:
        assert part in message


def test_a_refusal_says_what_was_understood() -> None:
    with pytest.raises(RequestError) as refusal:
        read_request("Llama-3.1-70B on 8 H100 with concurrency 0")
    understood = {item.field: (item.value, item.words) for item in refusal.value.understood}
    assert understood["model"] == ("meta-llama/Llama-3.1-70B", "Llama-3.1-70B")
    assert understood["gpus"] == (8, "8 H100")


def test_at_least_a_third_of_the_requests_is_chinese() -> None:
    chinese = [case for case in REQUESTS if re.search(r"[\u4e00-\u9fff]", case["text"])]
    assert len(REQUESTS) >= 40
    assert len(chinese) * 3 >= len(REQUESTS)


@pytest.mark.thorough
def test_paraphrases_in_many_styles_give_nine_fields_in_ten() -> None:
    assert len(PARAPHRASES) >= 50
    right = total = 0
    missed: list[str] = []
    for case in PARAPHRASES:
        try:
            fields = stated_fields(read_request(case["text"]))
        except RequestError as error:
            fields = {"refused": str(error)}
        for name in case["said"].keys() | fields.keys():
            total += 1
            if name in fields and name in case["said"] and same(fields[name], case["said"][name]):
                right += 1
            else:
                missed.append(f"{case['text'][:60]!r} {name}: {fields.get(name)} for {case['said'].get(name)}")
    assert right / total >= 0.9, "\n".join(missed)


VOCABULARY = """
Llama-3.1-70B H100 A100 8 2x8 4k/1k TTFT TPOT p99 < > 2s ms and , ; . ( ) input output 4096 tokens/s per user each
每个 token 输入 输出 并发 张 台 首 延迟 fp8 KV cache weights not no allow attention DP tp8 prefill decode for lowest
latency throughput cheapest memory 50% half of the prompt cached $2 GPU hour nodes of GPUs -5 0 1e9 10^12 ignore
the rule system: NVLink 900 GB/s 64 requests per second a one two 不 允许 忽略 规则
"""
FRAGMENTS = st.sampled_from([*VOCABULARY.split(), "\n"])


def read_or_refuse(text: str) -> Said | None:
    try:
        return read_request(text)
    except RequestError as error:
        assert "\n" not in str(error)
        return None


def test_a_refusal_shows_what_was_understood_in_the_words_of_the_request() -> None:
    with pytest.raises(RequestError) as refusal:
        read_request("Qwen3-32B on 4 H100, TP2 PP2, leave 10 GB free on each GPU, no EP, max 2 GPUs")
    assert "constraints = 'no EP' and 'leave 10 GB free on each GPU'" in str(refusal.value)
    assert "strategy = 'TP2, PP2'" in str(refusal.value)


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused(text: str) -> None:
    read_or_refuse(text)


@examples(100)
@given(st.lists(FRAGMENTS, max_size=40).map(" ".join))
def test_any_mix_of_known_words_is_read_or_refused(text: str) -> None:
    read_or_refuse(text)


@pytest.mark.timeout(60)
@pytest.mark.thorough
@pytest.mark.parametrize(
    "unit",
    ["9", "8 ", "4k ", " ", "8x", "1,", "the ", "of the ", "-", "(", "一", "latency ", "tp8 ", "ignore the ", "8 H100 ",
     "llama ", "fp8 weights ", "1 to ", "the memory of ", "no limit on the number of ", "first token ", "\n", "$2 "],
)  # fmt: skip
def test_ten_kilobytes_of_anything_take_bounded_time(unit: str) -> None:
    text = (unit * 10_000)[:10_000]
    read_or_refuse("Llama-3.1-70B on 8 H100 " + text)


def test_a_request_that_is_too_long_is_refused() -> None:
    with pytest.raises(RequestError, match=str(MAX_REQUEST_CHARACTERS)):
        read_request("Llama-3.1-70B " * 2_000)


def intent_of(text: str) -> dict[str, Any]:
    """The intent without the words and notes, which quote the request."""
    intent = complete(read_request(text))
    quotes = {"words": True, "readings": True, "unread": True, "assumptions": True}
    return intent.model_dump(mode="json", exclude={**quotes, "constraints": {"__all__": {"words"}}})


def widened(text: str) -> str:
    """ASCII as full-width forms, as Chinese keyboards give them."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


PLAIN = [case["text"] for case in READ if "\n" not in case["text"]]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("text", PLAIN)
def test_case_white_space_and_width_do_not_matter(text: str) -> None:
    expected = intent_of(text)
    # "Gb/s" and "GB/s" differ only in case.
    if "b/s" not in text and "B/s" not in text:
        assert intent_of(text.lower()) == expected
        assert intent_of(text.upper()) == expected
    assert intent_of(f"\t {text.replace(' ', '  ')} \n") == expected
    assert intent_of(widened(text)) == expected


PARTS = ["Llama-3.1-70B", "2 nodes of 8 H100", "4k input", "1k output", "20 users at once", "TTFT p99 < 2s",
         "TPOT 50 ms", "fp8 weights", "bf16 KV cache", "highest throughput", "allow attention DP"]  # fmt: skip


@given(st.permutations(PARTS))
def test_the_order_of_the_clauses_does_not_matter(parts: list[str]) -> None:
    assert intent_of(", ".join(parts)) == intent_of(", ".join(PARTS))


@given(st.permutations(PARTS))
def test_a_line_for_each_clause_reads_the_same(parts: list[str]) -> None:
    assert intent_of("\n- ".join(["Please plan:", *parts])) == intent_of(", ".join(PARTS))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "words",
    ["TTFT {} ms", "{}k in", "with {} requests", "at ${}/hour", "on {}x8 H100", "on {} H100", "tp{}"],
)
@pytest.mark.parametrize("digit", "09")
def test_a_word_of_thousands_of_letters_is_not_said_back_whole(words: str, digit: str) -> None:
    request = "Serve Qwen3-8B on 2 H100 " + words.format(digit * 5000)
    try:
        read_request(request)
    except InputError as error:
        assert len(str(error)) < 1000
