"""The mark of a reading: facts are read as meant, or unclear ones are asked about; none is silently wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....tools.catalog.models import find_model
from ....tools.errors import InputError
from ....tools.language.said import Said
from ...reading.agreement import same_constraint, total
from ...stated.constraints import stated_constraints
from ..marks import Mark

# Prefixes of a wrong reading: it was asked about, the report names what was not acted on, or nothing tells.
ASKED, SAID_BACK, WRONG = "asked: ", "said back: ", "silently wrong: "
_ROUNDING = 0.03
_COUNTS = ("nodes", "gpus_per_node", "gpus")


def reading_mark(fields: Mapping[str, Any], constraints: Sequence[str], said: Said | str) -> Mark:
    """The mark of a reading, or of a question or refusal in its place; its value is the share of right facts.

    Raises:
        InputError: a line of `constraints` is malformed.
    """
    count = len(fields) + len(constraints)
    if isinstance(said, str):
        return Mark(passed=not count, value=float(not count), why="" if not count else f"{ASKED}{said}"[:300])
    how = SAID_BACK if said.unread else WRONG
    if not count:
        return Mark(passed=False, value=0.0, why=f"{how}read, and it had to be asked")
    wrong = [*_wrong_fields(fields, said), *_missing(constraints, said)]
    return Mark(passed=not wrong, value=1 - len(wrong) / count, why=f"{how}{'; '.join(wrong)}"[:300] * bool(wrong))


def _wrong_fields(fields: Mapping[str, Any], said: Said) -> Iterator[str]:
    counts = {name: value for name in _COUNTS if (value := getattr(said, name)) is not None}
    if counts.keys() == {"gpus_per_node"}:  # of the one node that is assumed where nobody counts them
        counts["nodes"] = 1
    plain = said.model_dump(mode="json")
    for name, wanted in fields.items():
        actual = total(counts) if name == "gpus" else plain.get(name)
        if not _is(name, actual, wanted):
            yield f"{name} is {actual}, not {wanted}"


def _is(name: str, actual: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        return all(_is(str(key), actual.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(actual, list) and name == "relaxations":
        return sorted(wanted) == sorted(actual)
    if isinstance(wanted, list) and isinstance(actual, list):
        return len(wanted) == len(actual) and all(_is(name, *pair) for pair in zip(actual, wanted, strict=True))
    if isinstance(wanted, int | float) and isinstance(actual, int | float) and not isinstance(wanted, bool):
        return abs(actual - wanted) <= _ROUNDING * max(abs(wanted), 1e-9)
    if name == "model" and isinstance(actual, str) and isinstance(wanted, str):
        try:
            entry, meant = find_model(actual), find_model(wanted)
            return meant.name in (entry.name, entry.base)
        except InputError:
            return actual == wanted
    return actual == wanted


def _missing(lines: Sequence[str], said: Said) -> Iterator[str]:
    for line in lines:
        for wanted in stated_constraints([line]) or ():
            if not any(same_constraint(constraint, wanted) for constraint in said.constraints):
                yield f"no constraint {line}"
