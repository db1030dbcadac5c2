"""A certificate is refused after any change anywhere in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.autofix.result import certificate
from shardwright.tools.errors import InputError
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.verify import certificate_sha256, verify, verify_file

from ..examples import examples

Steps = tuple[str | int, ...]


@cache
def _text() -> str:
    """The certificate of a repair of two faults, as JSON text."""
    document = base_plan("dense-tp2")
    document["strategy"]["prefill"]["tp"] = 4
    del document["nodes"][-1]
    proposal = json.dumps(document)
    return json.dumps(certificate(proposal, autofix(document)))


def _places(value: Any, at: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    yield at, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from _places(child, (*at, key))


def _others(value: Any) -> list[Any]:
    """Other values; first those that Python counts as equal to `value`."""
    if isinstance(value, dict):
        return [{}, {**value, "extra": None}]
    if isinstance(value, list):
        return [[], [*value, None], value[::-1]]
    if isinstance(value, bool):
        return [int(value), not value, None]
    if isinstance(value, int | float):
        return [bool(value), float(value) if isinstance(value, int) else int(value), value + 1, -value, str(value)]
    return [f"{value} ", "", None, 0] if isinstance(value, str) else ["", 0, False]


def _with(at: Steps, value: Any) -> dict[str, Any]:
    changed = json.loads(_text())
    if not at:
        return value
    place = changed
    for step in at[:-1]:
        place = place[step]
    place[at[-1]] = value
    return changed


def _without(at: Steps) -> dict[str, Any]:
    changed = json.loads(_text())
    place = changed
    for step in at[:-1]:
        place = place[step]
    del place[at[-1]]
    return changed


def _is_refused(changed: Any) -> bool:
    try:
        return not verify(changed).confirmed
    except InputError:
        return True


def test_the_certificate_as_it_was_written_is_confirmed() -> None:
    verification = verify(json.loads(_text()))
    assert verification.confirmed and verification.valid and len(json.loads(_text())["fixes"]) > 0


def test_a_repair_that_takes_a_device_from_an_operator_is_confirmed() -> None:
    document = base_plan("dense-tp2")
    shard = next(node for node in document["nodes"] if node["id"] == "r0.decode.s0.b0.attn.tp0")
    copies = [{**shard, "id": f"{shard['id']}.{number}", "devices": [f"n{number}.g0"]} for number in range(1, 4)]
    document["nodes"] += copies
    document["edges"] += [
        {**edge, end: copied["id"]}
        for edge in document["edges"]
        for end in ("source", "target")
        for copied in copies
        if edge[end] == shard["id"]
    ]
    verification = verify(certificate(json.dumps(document), autofix(document)))
    assert verification.confirmed and verification.valid


def test_no_change_anywhere_keeps_the_hash_of_the_certificate() -> None:
    whole = json.loads(_text())
    for at, value in _places(whole):
        if not at or at == ("certificate_sha256",) or (at[0] == "read" and len(at) > 3):
            continue
        changed = [_with(at, other) for other in _others(value) if json.dumps(other) != json.dumps(value)]
        for variant in (*changed, _without(at)):
            assert certificate_sha256(variant) != whole["certificate_sha256"], at


@examples(60)
@given(st.data())
def test_any_change_is_refused(data: st.DataObject) -> None:
    at, value = data.draw(st.sampled_from(list(_places(json.loads(_text())))[1:]))
    others = [other for other in _others(value) if json.dumps(other) != json.dumps(value)]
    changed = _without(at) if data.draw(st.booleans()) else _with(at, data.draw(st.sampled_from(others)))
    assert _is_refused(changed), at


@pytest.mark.parametrize(("field", "value"), [("description", "nothing of note"), ("shardwright", "99.0")])
def test_what_no_replay_can_show_is_bound_to_the_rest(field: str, value: str) -> None:
    changed = json.loads(_text())
    (changed["fixes"][0] if field == "description" else changed)[field] = value
    verification = verify(copy.deepcopy(changed))
    assert [check.what for check in verification.checks if not check.holds] == ["the hash of the certificate"]


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ('"version":', '"version": "2", "version":'),
        ('"warnings": 0', '"warnings": NaN'),
        ('"read": {', '"read": {"deep": ' + "[" * 800 + "]" * 800 + ", "),
    ],
    ids=["a key twice", "no number", "nested deeply"],
)
def test_a_file_that_says_two_things_or_none_is_refused(part: str, instead: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(_text().replace(part, instead, 1), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != _text()
    try:
        assert not verify_file(path).confirmed
    except InputError as error:
        assert "not a certificate" in str(error)
