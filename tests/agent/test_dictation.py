"""Dictated requests are written down, and ordinary sentences stay as they are."""

from __future__ import annotations

import pytest

from shardwright.tools.language.writing.dictation import undictated


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("gemma three twelve b on two l forties", "gemma 3 12b on two l40"),
        ("qwen two point five fourteen b", "qwen2.5 14b"),
        ("gpt oss one hundred twenty b", "gpt-oss 120b"),
        ("qwen three two hundred thirty five b a twenty two b", "qwen3 235b-a22b"),
        ("four a one hundred forty gigs", "four a100 40GB"),
        ("sixteen h 20s", "sixteen h20s"),
        ("eight m i three hundred x", "eight mi300x"),
        ("two fifty nineties, n v f p four", "two RTX 5090s, nvfp4"),
        ("two l forty s", "two l40s"),
        ("uh, d p two and, um, e p of sixteen with s g lang", "DP2 and, EP16 with SGLang"),
        ("h one hundred, two fifty tokens out, one k in", "h100, 250 tokens out, 1k in"),
    ],
)
def test_what_was_dictated_is_written_down(said: str, written: str) -> None:
    assert undictated(said)[0] == written


@pytest.mark.parametrize(
    "text",
    [
        "one of the eight nodes",
        "a one hundred percent share of two h100 nodes",
        "we want a one hundred token answer",
        "plan b two hundred users, section l four words long",
        "tp 4, pp 2 on Qwen 3 32B",
        "we start llama three times",
        "x y z, a b and i",
        "at this point two of us use it",
        "one in six of the four hundred people",
        "a ten percent margin",
    ],
)
def test_an_ordinary_sentence_stays_as_it_is(text: str) -> None:
    assert undictated(text) == (text, ())
