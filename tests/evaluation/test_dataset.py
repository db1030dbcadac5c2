"""A user's few lines are read as meant, and faulty datasets are refused in one line with the place."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.evaluation import dataset as module
from shardwright.agent.evaluation.case import MOST_GOLDENS, Case
from shardwright.agent.evaluation.dataset import MAX_CASES, Dataset, dataset_of_text, read_dataset
from shardwright.agent.evaluation.posed import pose
from shardwright.tools.errors import InputError
from shardwright.tools.plan.describe import describe

from ..examples import examples

ROWS: list[dict[str, str]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "datasets_refused.json").read_text(encoding="utf-8")
)
REQUEST = "Serve Llama-3.1-8B on 2 H100, 1k in, 64 out, one user, lowest latency"
MINE: tuple[dict[str, Any], ...] = (
    {"request": REQUEST, "strategy": "TP2"},
    {"request": REQUEST, "strategy": "tensor parallelism over both GPUs: TP 2"},
    {"request": REQUEST, "strategy": "DP1 of TP2"},
    {"request": REQUEST, "strategy": {"tp": 2}},
    {"request": REQUEST, "strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}},
    {"request": REQUEST, "strategy": "--tensor-parallel-size 2"},
    {"request": REQUEST, "strategy": {"tensor_parallel_size": 2}},
    {"request": REQUEST, "strategy": ["TP2", {"dp": 2, "tp": 1}]},
    {"request": REQUEST, "strategy": "infeasible"},
    {"request": REQUEST},
)


def read(text: str | bytes, folder: Path, name: str = "mine.jsonl") -> Dataset:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_dataset(path)


def lines(*cases: dict[str, Any], end: str = "\n") -> str:
    return end.join(json.dumps(case, ensure_ascii=False) for case in cases)


def test_ten_lines_of_a_request_and_a_strategy_are_a_dataset(tmp_path: Path) -> None:
    dataset = read(lines(*MINE), tmp_path)
    assert [case.id for case in dataset.cases] == [f"mine-{number}" for number in range(1, 11)]
    assert len({case.family for case in dataset.cases}) == 10
    assert [case.expect for case in dataset.cases] == ["plan"] * 8 + ["infeasible", "plan"]
    assert dataset.notes == ("1 of 10 cases has no golden: only reading and legality are scored there",)
    for case in dataset.cases[:8]:
        right = pose(case).right
        assert next(describe(answer.strategy) for answer in right if answer.strategy is not None) == "TP2"
        assert [answer.fault for answer in right] == [None] * len(case.goldens)
    assert [len(case.goldens) for case in dataset.cases] == [1] * 7 + [2, 0, 0]


@pytest.mark.parametrize("name", ["request", "prompt", "question", "query", "input", "text", "Request", "PROMPT"])
def test_a_request_goes_by_many_names(name: str) -> None:
    (case,) = dataset_of_text(lines({name: "x"}), "a").cases
    assert case.request == "x"


@pytest.mark.parametrize(
    "name", ["strategy", "expected", "golden", "answer", "output", "target", "expected_strategy", "label", "Answer"]
)
def test_a_strategy_goes_by_many_names(name: str) -> None:
    (case,) = dataset_of_text(lines({"request": "x", name: "TP2"}), "a").cases
    assert [golden.strategy for golden in case.goldens] == ["TP2"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("infeasible", "infeasible"),
        (["infeasible"], "infeasible"),
        (" No Plan ", "infeasible"),
        ("无解", "infeasible"),
        ("refused", "refused"),
    ],
)
def test_that_there_is_no_plan_is_an_answer(said: str | list[str], meant: str) -> None:
    (case,) = dataset_of_text(lines({"request": "x", "answer": said}), "a").cases
    assert (case.expect, case.goldens) == (meant, ())


def test_a_mark_at_the_start_other_line_ends_and_empty_lines_change_nothing(tmp_path: Path) -> None:
    plain = read(lines(*MINE), tmp_path)
    for end in ("\r\n", "\n\n  \n", "\r"):
        assert read("\ufeff" + lines(*MINE, end=end) + end, tmp_path).cases == plain.cases
    # Unicode separators are ordinary characters of a text.
    odd = lines({"request": "a\u2028b\u2029c\x85d"}, {"request": "x"})
    assert [case.request for case in read(odd, tmp_path).cases] == ["a\u2028b\u2029c\x85d", "x"]


def test_a_list_an_object_with_cases_and_one_case_are_datasets_too() -> None:
    plain = dataset_of_text(lines(*MINE), "a").cases
    assert dataset_of_text(json.dumps(MINE, indent=1), "a").cases == plain
    assert dataset_of_text(json.dumps({"about": "mine", "cases": MINE}), "a").cases == plain
    assert dataset_of_text(json.dumps(MINE[0], indent=1), "a").cases == plain[:1]


def test_numbers_are_ids_and_categories_may_be_words() -> None:
    request = {"request": "x", "id": 7, "category": "Dense models"}
    first, second = dataset_of_text(lines(request, {"request": "y", "id": None, "category": None}), "a").cases
    assert (first.id, first.family) == ("7", "Dense-models")
    assert (second.id, second.family) == ("a-2", "a-2")


def test_a_file_may_be_called_anything(tmp_path: Path) -> None:
    for name in ("my own cases (2).jsonl", "我的.jsonl", "x" * 200 + ".jsonl"):
        (case,) = read(lines(MINE[0]), tmp_path, name).cases
        assert case.id.endswith("-1") and len(case.id) <= 100


def test_a_field_that_nothing_reads_is_noted_once_with_its_place_and_what_may_be_meant() -> None:
    more = {"weight": 3, "<b>\x1b[31m": 1, "familly": "x", "request_id": 7}
    dataset = dataset_of_text(lines(MINE[0], {**MINE[0], "weight": 2}, {**MINE[1], **more}), "a")
    assert len(dataset.cases) == 3
    left_out = "says nothing that is scored; it is left out"
    assert dataset.notes == (
        f"the field 'weight' {left_out} (first at a:2)",
        f"the field '<b>\\x1b[31m' {left_out} (first at a:3)",
        f"the field 'familly' {left_out} (first at a:3); did you mean 'family'?",
        f"the field 'request_id' {left_out} (first at a:3)",
    )


def test_both_gpus_are_those_of_the_request() -> None:
    (case,) = dataset_of_text(lines({"request": REQUEST, "strategy": "tensor parallel over both GPUs"}), "a").cases
    (right,) = pose(case).right
    assert right.fault is None and right.strategy is not None
    assert describe(right.strategy) == "TP2"


def test_cases_that_say_no_answer_are_counted_among_those_that_are_asked() -> None:
    bare = {"request": "x", "tags": ["bare"]}
    dataset = dataset_of_text(lines(bare, MINE[0], bare, MINE[8], {"request": "x", "intent": {"model.name": "y"}}), "a")
    assert dataset.notes == ("2 of 5 cases have no golden: only reading and legality are scored there",)
    assert dataset.only("a-2").notes == ()
    assert dataset.only("bare").notes == ("2 of 2 cases have no golden: only reading and legality are scored there",)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_what_is_no_dataset_is_refused_in_one_line_with_its_place(row: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read(row["text"], tmp_path)
    line = str(refused.value)
    assert row["says"] in line
    assert line.startswith(f"{tmp_path / 'mine.jsonl'}:")
    assert "\n" not in line and len(line) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 10_000_000, "nested too deeply"),
        ('{"a":' * 1_000_000, "nested too deeply"),
        (lines({"request": "x", "strategy": {"a": json.loads("[" * 70 + "]" * 70)}}), "nested too deeply"),
        ('{"request": "x", "regret_pct": ' + "9" * 5000 + "}", "a whole number of more than"),
        (lines({"request": "x" * 100_001}), "at most 100000"),
        (lines({"request": "x", "strategy": "TP2 " * 600}), "at most 2000"),
        (lines({"request": "x", "strategy": ["TP2"] * (MOST_GOLDENS + 1)}), "goldens"),
        (lines({"request": "x", "goldens": [{"y" * 100_000: 1}]}), "goldens/0"),
        ('{"request":"x"}\n' * (MAX_CASES + 1), "more than 10,000 cases"),
        (b"\xff\xfe" + lines(MINE[0]).encode("utf-16-le"), "not UTF-8"),
        (b" " * (module.MAX_FILE_BYTES + 1), "larger than 32 MiB"),
    ],
    ids=range(11),
)
def test_size_depth_and_count_are_bounded(text: str | bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read(text, tmp_path)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300 + len(str(tmp_path))


def test_what_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    for place in (tmp_path / "nothing.json", Path("/") / ("a" * 5000), Path("odd\udcff"), tmp_path):
        with pytest.raises(InputError) as refused:
            read_dataset(place)
        assert "cannot be read" in str(refused.value)
        str(refused.value).encode()


def test_a_folder_is_the_cases_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"cases": MINE[:2]}))
    (tmp_path / "a.jsonl").write_text(lines(*MINE[2:4]))
    (tmp_path / "notes.txt").write_text("not mine")
    assert [case.id for case in read_dataset(tmp_path).cases] == ["a-1", "a-2", "b-1", "b-2"]
    (tmp_path / "c.jsonl").write_text(lines({"id": "a-1", **MINE[0]}))
    with pytest.raises(InputError, match=r"c\.jsonl:1: the id 'a-1' is that of the case at .*a\.jsonl:1 "):
        read_dataset(tmp_path)


def test_the_digest_says_what_the_cases_say_in_any_order_and_file(tmp_path: Path) -> None:
    cases = [{**case, "id": f"c{place}"} for place, case in enumerate(MINE)]
    whole = read(lines(*cases), tmp_path)
    random.Random(4).shuffle(cases)
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "x.json").write_text(json.dumps(cases[:5]))
    (folder / "y.jsonl").write_text(lines(*cases[5:]))
    assert read_dataset(folder).digest == whole.digest
    assert dataset_of_text(lines(*cases[1:]), "a").digest != whole.digest
    assert dataset_of_text(lines({**cases[0], "strategy": "TP1"}, *cases[1:]), "a").digest != whole.digest


def test_only_picks_by_id_family_and_tag() -> None:
    dataset = dataset_of_text(lines(MINE[0], {**MINE[1], "tags": ["quick"]}, {**MINE[2], "family": "quick-ones"}), "a")
    assert [case.id for case in dataset.only("quick").cases] == ["a-2", "a-3"]
    assert [case.id for case in dataset.only("a-1").cases] == ["a-1"]
    with pytest.raises(InputError, match="no case has 'zzz'"):
        dataset.only("zzz")


@examples(60)
@given(
    st.text(max_size=200)
    | st.dictionaries(
        st.sampled_from([*Case.model_fields, "strategy", "input", "x"]),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=8) | st.floats(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
            max_leaves=6,
        ),
    ).map(json.dumps)
)
def test_any_text_is_a_dataset_or_one_line(text: str) -> None:
    try:
        dataset = dataset_of_text(text, "a")
    except InputError as error:
        assert str(error).startswith("a:")
        return
    assert dataset.cases and len(dataset.digest) == 64
