"""A secret is found in every form, whole or in pieces; other text is left alone."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from shardwright.agent.model.redaction import REDACTED, RedactedStream, Redactor

# A part of the redaction mark cannot be hidden by the mark.
SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=24).filter(
    lambda secret: secret.lower() not in REDACTED
)


@given(SECRETS, st.text(max_size=9), st.text(max_size=9))
def test_a_secret_is_found_in_every_form(secret: str, before: str, after: str) -> None:
    assume(secret.lower() not in (before + after).lower())
    redactor = Redactor([secret])
    for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], secret.upper(), secret.lower()):
        assert form not in redactor.text(f"{before} {form} {after}")


@given(SECRETS, st.binary(max_size=7), st.binary(max_size=7))
def test_a_secret_is_found_in_base64_at_every_alignment(secret: str, before: bytes, after: bytes) -> None:
    assume(Redactor([secret]).text(secret) == REDACTED)  # not the placeholder key of a local server
    data = before + secret.encode() + after
    for encoded in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        assert REDACTED in Redactor([secret]).text(encoded)


# Letters of escapes: parts of a secret are secrets, contain one another, or end as an escape.
TRICKY = st.text(st.sampled_from("a\\fn0%41&;lt"), min_size=6, max_size=12)


@given(SECRETS | TRICKY, st.lists(st.integers(1, 9), min_size=1, max_size=20), st.text(max_size=9))
@example("000000\\f", [1], "")
def test_a_secret_cut_into_pieces_is_found(secret: str, lengths: list[int], around: str) -> None:
    # A preceding backslash has been shown before it turns out to begin no escape.
    assume(not around.endswith("\\"))
    text, redactor = f"{around}{secret} {around}", Redactor([secret])
    stream, shown, at = RedactedStream(redactor), [], 0
    for turn in range(len(text)):
        length = lengths[turn % len(lengths)]
        shown.append(stream.feed(text[at : at + length]))
        at += length
    shown.append(stream.end())
    assert "".join(shown) == redactor.text(text)
    assert secret not in "".join(shown)


@given(st.lists(st.text(max_size=6), max_size=9))
def test_text_without_secrets_is_left_as_it_is(pieces: list[str]) -> None:
    redactor = Redactor(["sk-this-is-never-there"])
    stream = RedactedStream(redactor)
    whole = "".join(pieces)
    assert redactor.text(whole) == whole
    assert "".join([*(stream.feed(piece) for piece in pieces), stream.end()]) == whole


@pytest.mark.parametrize("placeholder", ["", "x", "EMPTY", "none", "ollama", "sk-no-key-required"])
def test_a_key_that_is_none_is_no_secret(placeholder: str) -> None:
    text = f"tensor parallelism none ollama {placeholder} EMPTY x"
    assert Redactor([placeholder]).text(text) == text


def test_values_are_redacted_through_and_through() -> None:
    redacted = Redactor(["canary-1"]).value({"canary-1": ["a canary-1", {"b": "CANARY-1"}, 7, None]})
    assert redacted == {REDACTED: [f"a {REDACTED}", {"b": REDACTED}, 7, None]}
