"""Whatever a careless caller passes as a document or an argument is refused in one short line."""

from __future__ import annotations

import decimal
import inspect
import pathlib
from collections.abc import Callable
from typing import Any, get_type_hints

import numpy as np
import pytest

import shardwright
from shardwright.agent.evaluation.dataset import dataset_of_text
from shardwright.tools.autofix.foreign.claims import MOST_PLACES
from shardwright.tools.autofix.foreign.reader import read_proposal
from shardwright.tools.rules.examples import base_plan

pytestmark = pytest.mark.thorough

_LOOP: list[Any] = []
_LOOP.append(_LOOP)
_NO_DOCUMENT = (
    None, 123, 1.5, True, b"{}", {1}, (1, 2), len, object(), decimal.Decimal(2), np.int64(2), np.arange(3), _LOOP, "",
    " ", "x" * 10**6, pathlib.Path("a\0b"), (letter for letter in "ab"), 10**5000,
)  # fmt: skip
_READERS: dict[str, Callable[[Any], object]] = {
    "validate": shardwright.validate,
    "autofix": shardwright.autofix,
    "estimate": shardwright.estimate,
    "compare": lambda document: shardwright.compare(document, base_plan("dense-tp2")),
    "verify": shardwright.verify,
}
_CASES = dataset_of_text('{"request": "Llama-3.2-1B on one L4, 64 in / 8 out", "strategy": "TP1"}', "one case")
_ONE = "Serve Llama-3.1-8B on 1 H100, 2k in / 256 out"
_LOAD = {"input_tokens": 8, "output_tokens": 8}
_WRONG: dict[str, Callable[[], object]] = {
    "explain: no text": lambda: shardwright.explain(7),  # type: ignore[arg-type]
    "explain: limit": lambda: shardwright.explain("PP003", 10**5000),
    "plan: no text": lambda: shardwright.plan([_ONE]),  # type: ignore[arg-type]
    "plan: calibration": lambda: shardwright.plan(_ONE, calibration=1),  # type: ignore[arg-type]
    "plan: brief": lambda: shardwright.plan(_ONE, brief=[1]),  # type: ignore[list-item]
    "plan: one brief": lambda: shardwright.plan(_ONE, brief="no such file.md"),
    "search: workload": lambda: shardwright.search(model="Llama-3.1-8B", workload=" "),  # type: ignore[arg-type]
    "search: precision": lambda: shardwright.search(model="Llama-3.1-8B", precision=_LOOP, workload=_LOAD),
    "search: engine": lambda: shardwright.search(model="Llama-3.1-8B", engine=b"x", workload=_LOAD),  # type: ignore[arg-type]
    "search: relaxations": lambda: shardwright.search(model="Llama-3.1-8B", relaxations=np.arange(2), workload=_LOAD),
    "search: top": lambda: shardwright.search(model="Llama-3.1-8B", top="1", workload=_LOAD),  # type: ignore[arg-type]
    "autofix: request": lambda: shardwright.autofix("Llama-3.1-8B TP2", request=7),  # type: ignore[arg-type]
    "autofix: rules": lambda: shardwright.autofix("Llama-3.1-8B TP2", rules=[7]),  # type: ignore[list-item]
    "autofix: a long rule": lambda: shardwright.autofix("Llama-3.1-8B TP2", rules=["x" * 10**6]),
    "estimate: price": lambda: shardwright.estimate(base_plan("dense-tp2"), -1.0),
    "estimate: a huge price": lambda: shardwright.estimate(base_plan("dense-tp2"), 10**5000),
    "estimate: calibration": lambda: shardwright.estimate(base_plan("dense-tp2"), calibration=0),  # type: ignore[arg-type]
    "compare: titles": lambda: shardwright.compare(base_plan("dense-1"), base_plan("dense-1"), titles=(1, 2)),  # type: ignore[arg-type]
}


def _check_line(error: Exception) -> None:
    assert len(str(error)) < 600
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("reader", _READERS)
def test_what_is_no_document_is_refused_by_every_reader_in_one_line(reader: str) -> None:
    for value in _NO_DOCUMENT:
        if reader == "autofix" and isinstance(value, str) and not value.strip():
            continue  # Any text is a proposal, if one of nothing.
        with pytest.raises(shardwright.InputError) as refused:
            _READERS[reader](value)
        _check_line(refused.value)


@pytest.mark.parametrize("name", _WRONG)
def test_an_argument_of_a_wrong_kind_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(shardwright.InputError) as refused:
        _WRONG[name]()
    _check_line(refused.value)


# A valid call of every public function; each of its arguments is replaced by each value of `_ODD`.
_TINY = {"model": "llama-3.2-1b", "hardware": "1x1:l4", "input_tokens": 64, "output_tokens": 8}
_TRACE = str(pathlib.Path(__file__).parents[1] / "cases" / "trace.jsonl")
_KIND = {"name": "a", "weight": 1, "input_tokens": 64, "output_tokens": 8}
_WELL: dict[str, dict[str, Any]] = {
    "autofix": {"document": "Llama-3.2-1B, TP1, one L4, 64 in, 8 out"},
    "compare": {"a": base_plan("dense-1"), "b": "TP1"},
    "estimate": {"document": base_plan("dense-1")},
    "evaluate": {"dataset": _CASES, "jobs": 1},
    "explain": {"question": "PP003"},
    "export": {"document": base_plan("dense-1"), "to": "vllm"},
    "import_plan": {"source": "vllm serve Qwen/Qwen3-8B -tp 1", "hardware": "1x1:h100-sxm"},
    "plan": _TINY,
    "plan_mix": {"model": "llama-3.2-1b", "hardware": "1x1:l4", "workloads": [_KIND]},
    "read_trace": {"path": _TRACE},
    "search": _TINY,
    "validate": {"document": base_plan("dense-1")},
    "verify": {"certificate": {}},
}
_ODD = (
    None, 3, -1, 2.5, float("nan"), True, "", "nonsense", "\udc80", "x" * 5000, "a\0b", b"bytes", object(), [], [None],
    ["x"], [[]], {}, {"a": 1}, {1: 2}, {"\udc80": 1}, (1, 2), pathlib.Path("nofile"), pathlib.Path(),
    pathlib.Path("a\0b"), len, int, np.int64(2), decimal.Decimal(2),
)  # fmt: skip
# Arguments that would start long work or many processes, with the values to skip.
_SLOW = {("evaluate", "dataset"): (None,), ("evaluate", "jobs"): (None, 3, np.int64(2))}


def test_the_table_has_every_public_function() -> None:
    functions = {name for name in shardwright.__all__ if inspect.isfunction(getattr(shardwright, name))}
    assert set(_WELL) == functions - {"aevaluate"}


@pytest.mark.parametrize("name", _WELL)
def test_whatever_an_argument_is_a_call_is_answered_or_refused_by_an_error_of_ours(name: str) -> None:
    function = getattr(shardwright, name)
    takes = inspect.signature(function).parameters
    arguments = [parameter for parameter in takes if parameter != "stated"]
    arguments += get_type_hints(shardwright.Arguments) if "stated" in takes else []
    for argument in arguments:
        for value in _ODD:
            if any(value is odd for odd in _SLOW.get((name, argument), ())):
                continue
            try:
                function(**{**_WELL[name], argument: value})
            except shardwright.ShardwrightError as refused:
                _check_line(refused)


@pytest.mark.parametrize("kind", [shardwright.ShardwrightError, TypeError])
def test_an_argument_that_there_is_not_is_refused_with_the_nearest(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="did you mean 'hardware'"):
        shardwright.plan(**{**_TINY, "hardwear": "1x1:l4"})


@pytest.mark.parametrize("text", ["\ufeff{}", "\ufeff\n[]", " \ufeff{}", '\ufeff{"nodes": 1}'])
def test_json_behind_a_byte_order_mark_is_no_path(text: str) -> None:
    assert not shardwright.validate(text).valid


def test_a_list_of_more_devices_than_anything_is_laid_out_on_is_not_understood() -> None:
    read = read_proposal('{"model": "Llama-3.1-70B", "replicas": [{"devices": "0-99999", "tp": 8}]}')
    assert any("'0-99999': not understood" in note.what for note in read.notes)
    assert not any("devices" in node for node in (read.document or {})["nodes"])


def test_a_short_proposal_that_names_millions_of_devices_is_read_in_part() -> None:
    many = ", ".join('{"devices": "0-9998", "tp": 8}' for _ in range(120))
    read = read_proposal(f'{{"model": "Llama-3.1-70B", "replicas": [{many}]}}')
    assert any(f"{MOST_PLACES:,} devices" in note.what for note in read.notes)
    assert sum(len(node.get("devices", ())) for node in (read.document or {})["nodes"]) <= 2 * MOST_PLACES
