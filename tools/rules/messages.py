"""Reads the message ids of a rule from its code, so that they need not be listed twice.

An id is the first argument of a call, in the rule's file, of something with `message_id` as its first parameter:
`Finding`, `Fault`, or a function or class of that file. In a table of rules it is in the entry of its rule.
"""

from __future__ import annotations

import ast
import inspect
import sys
from typing import TypeGuard

from msgspec import Struct

from .base import Rule


def message_ids(rule: Rule) -> tuple[str, ...]:
    """The message ids of `rule`, in the order of its file."""
    return tuple(dict.fromkeys(message_id for _, message_id in stated_ids(rule)))


def stated_ids(rule: Rule) -> list[tuple[str, str]]:
    """The name of the called function or class and the message id of each such call, in the order of the file."""
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
    """The syntax tree of the rule's file, or of its entry in a table of rules."""
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
    """The expressions that `value` may evaluate to: both sides of a conditional."""
    return (*_outcomes(value.body), *_outcomes(value.orelse)) if isinstance(value, ast.IfExp) else (value,)
