"""The ids of the findings of a rule, read from where its code makes them: nothing is listed a second time.

An id is the first argument of a call, in the rule's own file, of what has `message_id` as its first parameter:
`Finding`, `Fault`, or a function or a class of that file. In a table of rules it stands in the entry of its rule.
"""

from __future__ import annotations

import ast
import inspect
import sys
from typing import TypeGuard

from msgspec import Struct

from .base import Rule


def message_ids(rule: Rule) -> tuple[str, ...]:
    """The ids of the findings of `rule`, in the order of its file."""
    return tuple(dict.fromkeys(message_id for _, message_id in stated_ids(rule)))


def stated_ids(rule: Rule) -> list[tuple[str, str]]:
    """Every id that the rule states, with what it is handed to, in the order of its file."""
    module = sys.modules[rule.module]
    calls = [node for node in ast.walk(_code_of(rule)) if isinstance(node, ast.Call) and node.args]
    stated: list[tuple[str, str]] = []
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        callee = getattr(module, name, None)
        takes = inspect.signature(callee).parameters if inspect.isfunction(callee) or _is_record(callee) else ()
        if next(iter(takes), "") == "message_id":
            texts = (node.value for node in _outcomes(call.args[0]) if isinstance(node, ast.Constant))
            stated += [(name, str(text)) for text in texts]
    return stated


def _code_of(rule: Rule) -> ast.AST:
    """The rule's file, or its entry where that is a table of rules."""
    tree = ast.parse(inspect.getsource(sys.modules[rule.module]))
    entries = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _id_of(node) == rule.id)
    entry = next(entries)
    return tree if isinstance(entry.func, ast.Name) and entry.func.id == "Rule" else entry


def _is_record(callee: object) -> TypeGuard[type]:
    return isinstance(callee, type) and issubclass(callee, Struct)


def _id_of(call: ast.Call) -> object:
    values = (word.value for word in call.keywords if word.arg == "id")
    return next((value.value for value in values if isinstance(value, ast.Constant)), None)


def _outcomes(value: ast.expr) -> tuple[ast.expr, ...]:
    """What an expression may come to: both sides of a choice."""
    return (*_outcomes(value.body), *_outcomes(value.orelse)) if isinstance(value, ast.IfExp) else (value,)
