"""The load under which a row was measured: how its requests arrived, and how long they were.

A load is read from its cell (`64`, `max`, `inf(500)`, `qps=8`) and the words of the notes together, since a number
alone may be the users of a closed loop, a static batch, or prompts that were all there at the start.

The data file holds lengths that stand for thousands of conversations (ShareGPT); `benchmarks/conversation_lengths.py`
makes it. Many answers are a few tokens long, and belong to long prompts: what delays decode in a burst weighs on them
alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..input.files import shipped
from ..performance.serving.inputs import MOST_REQUESTS, requests_in
from ..performance.serving.load import REQUESTS_PER_USER, Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from ..plan.quantiles import Joint
from .table import MeasuredRow

# Requests of an open loop where a row does not say how many there were.
OPEN_LOOP_REQUESTS = 500
# Requests of a saturated engine: TensorRT-LLM's perf-overview queues 30,000 requests of 128 + 128 tokens, 3,000 of
# 128 + 2048, 1,500 of 2048 + 2048 and 1,000 of 20000 + 2000, that is about this many tokens, and never fewer.
_SATURATED_TOKENS = 6_500_000
_SATURATED_REQUESTS = (1000, 30_000)
# More requests in one run than any table of results has: nothing is computed for them.
MAX_REQUESTS = 1_000_000

_NUMBER = re.compile(r"[0-9]{1,9}")
_AT_ONCE = re.compile(r"inf\(([0-9]{1,9})\)")
_RATE = re.compile(r"qps=([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_REQUESTS = re.compile(
    r"(?<![0-9.,])([0-9]{1,3}(?:,[0-9]{3}){1,2}|[0-9]{1,9}) (?:requests|prompts)\b(?! (?:in flight|at a time|per))"
)
_RANGE = re.compile(r"random lengths in \[([0-9.]{1,12}),\s?([0-9.]{1,12})\]")
_CLOSED = re.compile(r"closed loop|fixed concurrency")
_STATIC = re.compile(r"static batch|benchmark_latency|(?<![a-z])batch [0-9]|single batch")
_QUEUED = re.compile(r"offline batch|at once|requests queued")
# Lengths that are means of a data set of conversations; and of another data set, which vary about as much as lengths
# uniform in [0, 2 x mean].
_CONVERSATIONS = re.compile(r"sharegpt")
_VARIED = re.compile(r"dataset means|data set means")


def arrivals_of(row: MeasuredRow) -> Arrivals | None:
    """How the row's requests arrived, or `None` where its cell and notes do not tell, or too many are meant."""
    arrivals = _arrivals(row)
    return arrivals if arrivals is not None and requests_in(arrivals) <= MAX_REQUESTS else None


def _arrivals(row: MeasuredRow) -> Arrivals | None:
    load = row.load.lower()
    if load == "max":
        return Burst(_saturating(row))
    if match := _AT_ONCE.fullmatch(load):
        return Burst(int(match[1])) if int(match[1]) else None
    if load == "qps=inf":
        return Burst(_stated_requests(_words(row)) or OPEN_LOOP_REQUESTS)
    if match := _RATE.fullmatch(load):
        requests = _stated_requests(_words(row)) or OPEN_LOOP_REQUESTS
        return OpenLoop(float(match[1]), requests) if float(match[1]) > 0.0 else None
    if _NUMBER.fullmatch(load) is None or int(load) == 0:
        return None
    return _numbered(int(load), _words(row))


def _numbered(count: int, words: str) -> Arrivals:
    """The arrivals that a bare number means by the words beside it; without any, the users of a closed loop."""
    if _CLOSED.search(words) is None:
        if _QUEUED.search(words):
            return Burst(count)
        if _STATIC.search(words):
            return StaticBatch(count)
    # Of many thousand users some rounds are enough, and all of them more than a simulation takes.
    return ClosedLoop(count, _stated_requests(words) or min(REQUESTS_PER_USER * count, max(count, MOST_REQUESTS)))


def _words(row: MeasuredRow) -> str:
    """The notes without the command that they may quote: its options are not words about the load."""
    return row.notes.partition("cmd=")[0].lower()


def _stated_requests(words: str) -> int | None:
    """How many requests the publisher sent, where the words say so."""
    match = _REQUESTS.search(words)
    return (int(match[1].replace(",", "")) or None) if match else None


def _saturating(row: MeasuredRow) -> int:
    least, most = _SATURATED_REQUESTS
    tokens = max(1, (row.input_tokens or 0) + (row.output_tokens or 0))
    return max(least, min(most, _SATURATED_TOKENS // tokens))


def lengths_of(row: MeasuredRow) -> Lengths | None:
    """The lengths of the row's requests, or `None` where it does not state one of them or no token is generated."""
    if row.input_tokens is None or not row.output_tokens:
        return None
    sent, received = max(1, row.input_tokens), row.output_tokens
    words = _words(row)
    if match := _RANGE.search(words):
        least = _share(match[1])
        return Lengths(sent, received, 0.0 if least is None else 1.0 - least)
    if _CONVERSATIONS.search(words):
        return Lengths(sent, received, stated=conversations(sent, received))
    if _VARIED.search(words):
        return Lengths(2 * sent, 2 * received, 1.0)
    return Lengths(sent, received)


def _share(text: str) -> float | None:
    """A share in 0…1 as written, or `None` where the text is none."""
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0.0 <= share <= 1.0 else None


@lru_cache(maxsize=1)
def _known() -> Joint:
    """The pairs of the data file."""
    pairs: list[tuple[int, int]] = shipped(__name__, "conversations.json")["pairs"]
    return Joint(tuple((prompt, answer) for prompt, answer in pairs))


@lru_cache(maxsize=256)
def conversations(input_tokens: int, output_tokens: int) -> Joint:
    """Conversations with these mean lengths: those of the data file, scaled."""
    prompts, answers = (mean / known for mean, known in zip((input_tokens, output_tokens), _known().means, strict=True))
    return Joint(
        tuple((max(1, round(prompt * prompts)), max(1, round(answer * answers))) for prompt, answer in _known().pairs)
    )
