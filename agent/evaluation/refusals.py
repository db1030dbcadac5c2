"""Faults of a user's file, in the words of the file: the validating library's messages name Python types."""

from __future__ import annotations

from pydantic_core import ErrorDetails

_WORDS = {
    "extra_forbidden": "there is no such field",
    "float_type": "not a number",
    "float_parsing": "not a number",
    "missing": "it is missing",
    "string_type": "not a text",
    "dict_type": "not an object",
    "model_type": "not an object",
    "model_attributes_type": "not an object",
    "tuple_type": "not a list",
    "too_short": "it is empty",
    "string_too_short": "it is empty",
}
_OF_PATTERN = {
    r"^[\w.\-]+$": "letters, digits, _ . - only",
    r"^[A-Z]{2}\d{3}$": "not the id of a rule, as PP003",
}


def refusal(error: ErrorDetails, place: str) -> str:
    """`place` with its fault, and with the value itself if it is short and malformed."""
    pattern = error.get("ctx", {}).get("pattern")
    if pattern in _OF_PATTERN:
        return f"{place} {str(error['input'])[:60]!r}: {_OF_PATTERN[pattern]}"
    if error["type"] == "literal_error":
        return f"{place} {str(error['input'])[:60]!r}: not {error.get('ctx', {}).get('expected')}"
    return f"{place}: {_WORDS.get(error['type']) or error['msg'].removeprefix('Value error, ')}"
