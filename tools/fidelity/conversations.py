"""Lengths of the conversations that benchmarks of servers send (ShareGPT), each prompt with its answer.

The data file holds what stands for thousands of them; `benchmarks/conversation_lengths.py` makes it. Many answers are
a few tokens long, and they are the ones of long prompts: what of a burst holds decode up weighs on them alone.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files

from ..plan.quantiles import Joint


@lru_cache(maxsize=1)
def _known() -> Joint:
    """The pairs of the data file."""
    package = __name__.rpartition(".")[0]
    text = files(package).joinpath("data/conversations.json").read_text(encoding="utf-8")
    return Joint(tuple((int(prompt), int(answer)) for prompt, answer in json.loads(text)["pairs"]))


@lru_cache(maxsize=256)
def conversations(input_tokens: int, output_tokens: int) -> Joint:
    """Conversations with these means: as long as those that are known times what brings them there."""
    prompts, answers = (mean / known for mean, known in zip((input_tokens, output_tokens), _known().means, strict=True))
    return Joint(tuple((max(1, round(one * prompts)), max(1, round(more * answers))) for one, more in _known().pairs))
