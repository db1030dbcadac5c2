"""Models and accelerators by the names that people write, alone and in running text."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.catalog import hardware, model_mentions, models
from shardwright.tools.catalog.names import parse_name
from shardwright.tools.errors import InputError, UnknownNameError

from ..examples import examples

CASES = Path(__file__).parent.parent / "cases"
MODELS = json.loads((CASES / "model_aliases.json").read_text(encoding="utf-8"))
ACCELERATORS = json.loads((CASES / "accelerator_aliases.json").read_text(encoding="utf-8"))
TEXTS = json.loads((CASES / "mentions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("written", "meant"), MODELS["resolved"])
def test_a_model_name_means_its_entry(written: str, meant: str) -> None:
    entry = models.find_model(written)
    assert (entry.base or entry.name).rsplit("/", 1)[-1] == meant


@pytest.mark.parametrize(("written", "is_it"), MODELS["releases"])
def test_a_release_of_another_date_is_told_where_the_entry_is_none_of_it(written: str, is_it: bool) -> None:
    (mention,) = model_mentions.mentions(f"{written} on 8 H100")
    assert mention.entry is not None
    assert (mention.words, models.is_name_of(mention.words, mention.entry)) == (written, is_it)
    assert ("is planned with the layers of" in models.read_as(mention.words, mention.entry)) is not is_it


@pytest.mark.parametrize(("written", "how"), MODELS["refused"])
def test_a_model_name_is_never_guessed(written: str, how: str) -> None:
    with pytest.raises(InputError) as caught:
        models.find_model(written)
    assert isinstance(caught.value, UnknownNameError) == (how == "unknown")
    assert "\n" not in str(caught.value)


def test_every_entry_is_found_by_its_own_names() -> None:
    for entry in models.all_models():
        for name in (entry.name, entry.short_name):
            assert models.find_model(name) is entry, name
        for alias in entry.aliases:
            named = models.find_model(alias)
            assert named is entry or (named.base == entry.name and named.config is entry.config), alias


def test_another_checkpoint_of_an_entry_stays_what_is_served() -> None:
    for entry in models.all_models():
        for repository in (alias for alias in entry.aliases if "/" in alias):
            assert models.find_model(repository).name == repository
            assert models.find_model(repository).architecture() == entry.architecture()
            note = models.same_architecture(repository, models.find_model(repository))
            is_tuned = parse_name(repository).core <= parse_name(entry.short_name).core
            assert is_tuned or (note is not None and entry.short_name in note)


@pytest.mark.parametrize(
    ("written", "served"),
    [
        ("DeepSeek R1 0528", "deepseek-ai/DeepSeek-R1-0528"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3-0324"),
        ("mistral large 2411", "mistralai/Mistral-Large-Instruct-2411"),
        ("R1-Distill-Qwen-32B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"),
        ("deepseek r1 distill qwen 1.5b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"),
        ("Qwen2.5-Coder-7B-Instruct", "Qwen/Qwen2.5-Coder-7B-Instruct"),
    ],
)
def test_a_release_or_a_distillation_is_served_by_its_own_name(written: str, served: str) -> None:
    assert models.find_model(written).name == served


@pytest.mark.parametrize(("written", "meant", "gpus_per_node"), ACCELERATORS["resolved"])
def test_an_accelerator_name_means_its_entry(written: str, meant: str, gpus_per_node: int | None) -> None:
    named = hardware.read_accelerator_name(written)
    assert (named.accelerator.id, named.gpus_per_node) == (meant, gpus_per_node)


@pytest.mark.parametrize("written", ACCELERATORS["refused"])
def test_an_accelerator_that_is_not_in_the_catalogue_is_refused(written: str) -> None:
    with pytest.raises(InputError, match="unknown accelerator"):
        hardware.find_accelerator(written)


def test_every_accelerator_is_found_by_its_id() -> None:
    for part in hardware.all_accelerators():
        assert hardware.find_accelerator(part.id) is part
        assert hardware.find_accelerator(part.id.upper()) is part


@pytest.mark.parametrize(("text", "model_words", "accelerator_words"), TEXTS["known"])
def test_names_in_text_are_found_where_they_stand(
    text: str, model_words: list[str], accelerator_words: list[str]
) -> None:
    named, parts = model_mentions.mentions(text), hardware.mentions(text)
    assert [mention.words for mention in named] == model_words
    assert [mention.words for mention in parts] == accelerator_words
    assert all(mention.entry is not None for mention in named)
    assert all(mention.accelerator is not None for mention in parts)
    assert all(text[mention.start : mention.end] == mention.words for mention in (*named, *parts))


@pytest.mark.parametrize(("text", "model_words", "accelerator_words"), TEXTS["unknown"])
def test_unknown_names_in_text_carry_why(text: str, model_words: list[str], accelerator_words: list[str]) -> None:
    assert [mention.words for mention in model_mentions.mentions(text) if mention.error] == model_words
    assert [mention.words for mention in hardware.mentions(text) if mention.error] == accelerator_words


def test_a_format_in_a_name_is_told() -> None:
    assert [mention.weights for mention in model_mentions.mentions("Llama-3.1-405B-FP8 and Qwen3-32B-AWQ")] == [
        "fp8",
        "int4",
    ]


WORDS = ["llama", "3.1", "70b", "-", "x", "8", "H100", "/", "A100", "80G", "nvl", "+", "4090", "的", "k2", "v3", "\n"]


@given(st.text(max_size=300) | st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join))
@examples(150)
def test_any_text_is_searched_without_failing(text: str) -> None:
    spans = [(mention.start, mention.end) for mention in model_mentions.mentions(text)]
    assert all(span[1] <= following[0] for span, following in pairwise(spans))
    for mention in hardware.mentions(text):
        assert (mention.accelerator is None) == (mention.error is not None)


@given(st.text(max_size=250))
@examples(100)
def test_any_name_is_an_entry_or_an_input_error(name: str) -> None:
    for find in (models.find_model, hardware.find_accelerator):
        try:
            find(name)
        except InputError as error:
            assert "\n" not in str(error)


@pytest.mark.timeout(60)  # a tenth of a second here; a pattern that backtracks takes minutes
@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ["llama-" * 20_000, "8x" * 40_000, "a" * 100_000, "H100 " * 20_000, "1" * 100_000])
def test_long_hostile_text_is_read_in_linear_time(text: str) -> None:
    model_mentions.mentions(text)
    hardware.mentions(text)
