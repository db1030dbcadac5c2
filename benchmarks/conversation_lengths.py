"""Makes the lengths of conversations that fidelity predicts by, of the data set that benchmarks of servers send.

    python benchmarks/conversation_lengths.py ShareGPT_V3_unfiltered_cleaned_split.json [--write]

First question and first answer of each conversation, kept as `vllm bench serve` keeps them: 4 tokens or more each,
prompts of at most 1,024 tokens, at most 2,048 with the answer. Tokens are those of cl100k_base (package `bpe-openai`);
a file that is cut off counts as far as it goes.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import bpe_openai

DATA = Path(__file__).resolve().parent.parent / "tools" / "fidelity" / "data" / "conversations.json"
SOURCE = "anon8231489123/ShareGPT_Vicuna_unfiltered, ShareGPT_V3_unfiltered_cleaned_split.json (Hugging Face)"
_LEAST, _LONGEST_PROMPT, _LONGEST = 4, 1024, 2048
# More characters than a request may have tokens' worth of.
_MOST_CHARACTERS = 8 * _LONGEST
_SAMPLE = 8000
# Prompts in so many equal parts by length, the answers of each in as many: a pair for each.
_PARTS = 20

Pair = tuple[int, int]


def conversations(text: str) -> list[Any]:
    """The conversations of a file, all that are whole where it is cut off."""
    decoder, whole, place = json.JSONDecoder(), list[Any](), text.index("{")
    while place >= 0:
        try:
            conversation, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            break
        whole.append(conversation)
        place = text.find("{", place)
    return whole


def usable_pairs(dataset: Sequence[Any]) -> Iterator[Pair]:
    """Tokens of prompts and answers that a benchmark would send."""
    encode = bpe_openai.get_encoding("cl100k_base").encode_ordinary
    for conversation in dataset:
        turns = [turn["value"][:_MOST_CHARACTERS] for turn in conversation["conversations"][:2]]
        if len(turns) == 2:
            prompt, answer = (len(encode(turn)) for turn in turns)
            if min(prompt, answer) >= _LEAST and prompt <= _LONGEST_PROMPT and prompt + answer <= _LONGEST:
                yield prompt, answer


def parted(pairs: Sequence[Pair], by: int) -> list[list[Pair]]:
    """The pairs in equal parts, from those that are short on the side `by` to those that are long."""
    ranked = sorted(pairs, key=lambda pair: pair[by])
    return [ranked[len(ranked) * part // _PARTS : len(ranked) * (part + 1) // _PARTS] for part in range(_PARTS)]


def middle(pairs: Sequence[Pair]) -> Pair:
    """What stands for the pairs: their means, to a whole token."""
    prompts, answers = zip(*pairs, strict=True)
    return round(statistics.fmean(prompts)), round(statistics.fmean(answers))


def main() -> None:
    """Count, part, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--write", action="store_true", help="write the data file")
    chosen = parser.parse_args()
    dataset = conversations(chosen.dataset.read_text(encoding="utf-8", errors="replace"))
    random.Random(0).shuffle(dataset)
    pairs = [pair for pair, _ in zip(usable_pairs(dataset), range(_SAMPLE), strict=False)]
    parts = [middle(part) for prompts in parted(pairs, 0) for part in parted(prompts, 1)]
    for name, sample in (("counted", pairs), ("kept", parts)):
        prompts, answers = zip(*sample, strict=True)
        short = 100 * sum(answer <= 10 for answer in answers) / len(sample)
        pace = 1e3 * statistics.fmean(1 / (answer - 1) for answer in answers)
        means = f"{statistics.fmean(prompts):.0f} in, {statistics.fmean(answers):.0f} out"
        print(
            f"{name:8} {len(sample):5} pairs: {means}, {short:.1f}% of answers up to 10 tokens, mean of 1/(n-1) "
            f"{pace:.1f}e-3, correlation {statistics.correlation(prompts, answers):+.2f}"
        )
    if chosen.write:
        DATA.write_text(json.dumps({"source": SOURCE, "pairs": parts}, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
