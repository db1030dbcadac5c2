"""The package's interface for programs: names, signatures, types and docstrings."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import shardwright

from .public_api import public_api

ROOT = Path(__file__).resolve().parents[2]
WRITTEN_DOWN = ROOT / "tests" / "cases" / "public_api.txt"
VALUES: dict[str, Any] = {name: getattr(shardwright, name) for name in shardwright.__all__}
FUNCTIONS: dict[str, Callable[..., Any]] = {name: value for name, value in VALUES.items() if inspect.isfunction(value)}
# Types in signatures of `shardwright.Chat` and `Agent` that only the command line uses.
INNER = {"Finished", "Intent", "ModelPlanner", "ModelReader", "Page", "Question", "Said", "Session", "Turn"}


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods that a program calls: of the agent and the chat."""
    for owner in (shardwright.Agent, shardwright.Chat):
        for name, member in vars(owner).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", member


CALLED = {**FUNCTIONS, **dict(methods())}


def test_every_signature_is_as_it_was_written_down() -> None:
    command = "python tests/packaging/public_api.py > tests/cases/public_api.txt"
    assert WRITTEN_DOWN.read_text(encoding="utf-8") == public_api(), f"what is public has changed: {command}"


def test_names_are_sorted_and_are_all_that_a_program_is_shown() -> None:
    names = shardwright.__all__
    assert names == sorted(names)
    assert [name for name in dir(shardwright) if not name.startswith("__")] == [n for n in names if n[:2] != "__"]


def test_type_checkers_are_told_of_the_same_names_in_the_same_places() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (type_checking,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in type_checking.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: f".{node.module}" for node in imports for alias in node.names}
    assert homes == shardwright._HOMES


def _classes_of_ours(hint: Any) -> Iterator[str]:
    if isinstance(hint, type) and hint.__module__.startswith("shardwright."):
        yield hint.__name__
    for part in get_args(hint):
        yield from _classes_of_ours(part)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_types_of_a_signature_can_be_named_by_a_program(name: str) -> None:
    named_classes = {kind for hint in get_type_hints(FUNCTIONS[name]).values() for kind in _classes_of_ours(hint)}
    assert named_classes - INNER <= set(shardwright.__all__)


@pytest.mark.parametrize("name", CALLED)
def test_no_argument_is_of_any_type(name: str) -> None:
    written = inspect.signature(CALLED[name])
    assert not re.search(r"\bAny\b", str(written))
    for parameter in written.parameters.values():
        assert parameter.kind is not parameter.VAR_KEYWORD or str(parameter.annotation).startswith("Unpack[")
        assert parameter.kind is not parameter.VAR_POSITIONAL


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_tells_of_every_argument_every_error_and_shows_an_example(name: str) -> None:
    words = inspect.getdoc(FUNCTIONS[name]) or ""
    assert re.search(r"^Raises:$", words, re.MULTILINE)
    if words.startswith("As `"):
        return
    assert all(
        re.search(rf"^    \**{argument}: ", words, re.MULTILINE)
        for argument in inspect.signature(FUNCTIONS[name]).parameters
    )
    assert ">>> " in words


def test_help_on_plan_names_everything_that_may_be_stated() -> None:
    words = inspect.getdoc(shardwright.plan) or ""
    assert [name for name in get_type_hints(shardwright.Arguments) if name not in words] == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_examples_in_help_run_as_they_stand(name: str) -> None:
    for example in doctest.DocTestFinder(recurse=False).find(FUNCTIONS[name], name, globs={}):
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
