"""Each operation answers as the library does, refuses a bad question in one line, and opens no file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.operations.all_operations import OPERATIONS
from shardwright.agent.operations.asking import Request
from shardwright.agent.operations.operation import Operation
from shardwright.agent.stated.arguments import Arguments
from shardwright.tools.errors import InputError
from shardwright.tools.input.files import without_files

from .asked import SMALL, questions

BY_NAME: dict[str, Operation[Any, Any]] = {operation.name: operation for operation in OPERATIONS}


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    return _ask("plan", SMALL).plan.model_dump(mode="json")


def _ask(name: str, fields: dict[str, Any]) -> Any:
    operation = BY_NAME[name]
    return operation.answer(operation.question(fields))


@pytest.mark.one_in(1)
@pytest.mark.parametrize("name", BY_NAME)
def test_each_answers_with_an_object_of_its_kind_and_a_text(name: str, plan: dict[str, Any]) -> None:
    operation = BY_NAME[name]
    answer = _ask(name, questions(plan)[name])
    assert isinstance(answer, operation.answers)
    assert json.loads(answer.model_dump_json())
    assert operation.text(answer).strip()


@pytest.mark.parametrize("name", BY_NAME)
def test_a_field_that_there_is_not_is_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: no_such_field: there is no such field"):
        BY_NAME[name].question({"no_such_field": 1})


def test_what_is_no_object_is_refused_in_plain_words() -> None:
    with pytest.raises(InputError, match=r"^plan: an object is expected$"):
        BY_NAME["plan"].question([])


def test_a_request_can_state_what_the_library_takes() -> None:
    stated = set(Request.model_fields)
    # The serving block is called `engine`; limits have one name each; ranges are part of `workload`.
    left_out = {
        "serving",
        "ttft_ms_max",
        "tpot_ms_max",
        "end_to_end_ms_max",
        "input_tokens_range",
        "output_tokens_range",
        "expert_imbalance",
    }
    assert set(Arguments.__annotations__) - left_out <= stated


def test_a_brief_is_texts_by_name() -> None:
    brief = {"need.md": "Model: Llama-3.1-8B\nHardware: 2 x H100\nInput 512 tokens, output 64 tokens\n"}
    assert _ask("plan", {"brief": brief}).plan.model.name == "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("plan", {**SMALL, "model": "{path}"}),
        ("plan", {"request": "Serve {path} on 2 H100"}),
        ("plan", {"request": "Serve {folder} on 2 H100"}),
        ("plan", {**SMALL, "model": "{folder}"}),
        ("plan", {"brief": {"x.yaml": "model: {path}\nhardware: 2x H100\n"}}),
        ("models", {"name": "{path}"}),
        ("models", {"name": "{folder}"}),
        ("validate", {"plan": "{path}"}),
        ("estimate", {"plan": "{path}"}),
        ("export", {"plan": "{path}", "to": "vllm"}),
        ("compare", {"a": "{path}", "b": "TP2"}),
        ("show", {"plan": "{path}"}),
    ],
)
def test_no_path_is_opened_and_none_is_told_from_one_that_is_not_there(
    name: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    config = tmp_path / "config.json"

    def refusal() -> str:
        text = json.dumps(fields).replace("{path}", str(config)).replace("{folder}", str(tmp_path))
        with pytest.raises(InputError) as refused:
            _ask(name, json.loads(text))
        return str(refused.value)

    absent = refusal()
    config.write_text(json.dumps({"model_type": "llama", "hidden_size": 31337}))
    assert refusal() == absent
    assert "31337" not in absent


def test_nothing_is_written_where_files_are_shut(tmp_path: Path) -> None:
    from shardwright.tools.input.files import write_file, write_folder

    for write in (lambda: write_file(tmp_path / "a", b"x"), lambda: write_folder(tmp_path / "b", {"c": b"x"})):
        with without_files(), pytest.raises(InputError, match="no file is opened here"):
            write()
    assert not [*tmp_path.iterdir()]
