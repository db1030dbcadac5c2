"""Typing errors in key words are corrected; real words and names are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.language.request import read_request
from shardwright.tools.language.writing.spelling import corrected, plain_figures, simplified

SLIPS = """
throuhgput throughput, latancy latency, promt prompt, ouput output, concurency concurrency, conccurrent concurrent,
lenght length, simultanous simultaneous, maximze maximize, chepest cheapest, lowset lowest, higest highest,
secods seconds, weigths weights, priorty priority, paralell parallel, deepseak deepseek, toekns tokens
"""


@pytest.mark.parametrize("pair", [pair.split() for pair in SLIPS.split(",")], ids=lambda pair: pair[0])
def test_a_slip_in_a_key_word_is_mended_and_reported(pair: list[str]) -> None:
    written, meant = pair
    assert corrected(f"the {written} is") == (f"the {meant} is", ((written, meant),))


REAL = """
throughout content contest decide decoder prefix relies sends competing compilation answer request interactivity
tokenizer optimizer priorities prompted weighted maximal latent latest precise lengthy responsive parallelism
Mixtral Mistral Llama Qwen DeepSeek out in input outputs
"""


@pytest.mark.parametrize("word", REAL.split())
def test_a_real_word_is_left_alone(word: str) -> None:
    assert corrected(f"a {word} b") == (f"a {word} b", ())


def test_a_mended_slip_is_told_to_the_reader() -> None:
    said = read_request("Llama-3.1-70B on 8 H100, highest throuhgput")
    assert said.objective == "throughput"
    assert any("throuhgput" in note for note in said.readings)


def test_traditional_characters_and_terms_read_as_simplified_ones() -> None:
    assert simplified("兩台伺服器，每台8張，權重FP8，延遲越低越好") == "两台服务器，每台8张，权重FP8，延迟越低越好"


@given(st.text(max_size=200))
def test_mending_twice_is_mending_once(text: str) -> None:
    for mend in (simplified, lambda text: corrected(text)[0]):
        assert mend(mend(text)) == mend(text)


@given(st.text(alphabet="0123456789., kK/x-", max_size=60))
def test_figures_without_a_unit_are_left_alone(text: str) -> None:
    assert plain_figures(text) == text
    assert corrected(text) == (text, ())


@pytest.mark.timeout(60)
def test_a_long_text_of_unknown_words_takes_bounded_time() -> None:
    corrected(" ".join(f"throug{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}put" for i in range(1_800)))
