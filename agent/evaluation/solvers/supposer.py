"""A persona that reads vague requests: it supposes what is likely meant, says why, and invents some facts.

What it quotes and gives reasons for is sensible; it also states a limit, a price, a degree and a model without any
basis in the words. Asked for a plan it takes the built-in proposer's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import field

from ...loop.against import REFERENCE
from ...loop.agent_options import AgentOptions
from ...model.client import ModelClient
from ...model.messages import ModelRequest, Reply
from ...model.scripted import says
from ...reading.answer import READING_ANSWER
from ..posed import PosedCase
from ..solver import HELD, Persona
from .speaker import Speaker, submits

_CHAT = "a turn of a chat, with what was said before it"
_BLACKWELL = "the Blackwell server of most vendors has eight B200"
_QWEN = "the largest mixture of experts of Qwen3"
# Words and their meaning: a field, its value, and the reason if the words do not state it.
_MEANT: tuple[tuple[str, tuple[tuple[str, Any, str | None], ...]], ...] = (
    (r"a few hundred people", (("concurrency", 300, "a few hundred are about three hundred"),)),
    (r"几百人", (("concurrency", 300, "几百 is about three hundred"),)),
    (r"a couple of hundred agents", (("concurrency", 200, "a couple are two, and all may ask at once"),)),
    (r"a handful of developers", (("concurrency", 5, "a handful are about five"),)),
    (r"一百来人", (("concurrency", 100, "一百来 is about a hundred"),)),
    (r"chatting|聊天|call centre|客服", (("input_tokens", 2000, _CHAT), ("output_tokens", 300, _CHAT))),
    (r"code completion", (("input_tokens", 1500, "a file around the cursor"), ("output_tokens", 64, "a line or two"))),
    (r"fifty pages", (("input_tokens", 25_000, "about 500 tokens a page"),)),
    (r"a short summary", (("output_tokens", 300, "a third of a page"),)),
    (r"feel instant|nobody likes to wait|秒回|越快越好", (("objective", "latency", "nobody is to wait"),)),
    (r"only has to be cheap", (("objective", "cost", "cheap is what counts"),)),
    (
        r"two of those new Blackwell boxes|两台新的 Blackwell 服务器",
        (("nodes", 2, None), ("accelerator", "b200-sxm", _BLACKWELL), ("gpus_per_node", 8, _BLACKWELL)),
    ),
    (r"a pair of HGX H200 machines", (("nodes", 2, "a pair are two"), ("gpus_per_node", 8, "an HGX board has eight"))),
    (r"HGX H200", (("accelerator", "h200-sxm", None),)),
    (r"The big Qwen3 MoE|千问最大的 MoE", (("model", "Qwen3-235B-A22B", _QWEN),)),
)  # fmt: skip
_MEANINGS = tuple((re.compile(words), facts) for words, facts in _MEANT)


class Supposer(Persona, frozen=True):
    """Reads a request with suppositions and inventions; plans are left to the built-in proposer."""

    options: AgentOptions = field(default=HELD)
    name: str = "supposer"
    reads: bool = True

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client that reads the request of this case."""
        return reader_of(found.case.request or "", self.name)


def reader_of(text: str, name: str = "supposer") -> ModelClient:
    """A client that reads `text`, and takes the reference if asked for a plan."""
    reading = json.dumps({"facts": [*supposed(text), *invented(text)], "not_understood": []}, ensure_ascii=False)

    def answer(request: ModelRequest) -> Reply:
        if request.answer is not None and request.answer.name == READING_ANSWER.name:
            return says(reading)
        return submits(request, handle=REFERENCE)

    return Speaker(name, answer)


def supposed(text: str) -> Iterator[dict[str, Any]]:
    """What the words of `text` mean, each with the words and, if they only suggest it, the reason."""
    for pattern, facts in _MEANINGS:
        if (match := pattern.search(text)) is not None:
            yield from (_fact(name, value, match.group(), reason) for name, value, reason in facts)


def invented(text: str) -> Iterator[dict[str, Any]]:
    """Facts without basis in `text`: a number not in its words, a quote not in it, a reason without a quote."""
    words = re.split(r"[,.;:,。;:]", text)[0]
    yield _fact("ttft_ms_max", 217, words)
    yield _fact("usd_per_gpu_hour", 2.75, "at 2.75 USD an hour")
    yield _fact("tp", 8, words, "eight is usual")
    yield _fact("model", "Llama-3.1-405B", words, "the best of the open ones")


def _fact(name: str, value: Any, quote: str, reason: str | None = None) -> dict[str, Any]:
    return {"field": name, "value": value, "upper": None, "phase": None, "quote": quote, "reason": reason}
