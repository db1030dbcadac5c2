"""A persona that slips as models do, and then follows feedback to the letter, without other knowledge.

How fast it mends a slip shows the worth of the feedback. It takes an offered repair, or the reference if the hint says
so; else it sets each field that a finding names to a value that the finding calls legal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from msgspec import field

from ...loop.against import REFERENCE
from ...loop.agent_options import AgentOptions
from ...loop.question import Question
from ...model.client import ModelClient
from ...model.messages import ModelRequest, Reply
from ...model.scripted import says
from ..posed import PosedCase
from ..solver import HELD, Persona
from .careless import chance_of
from .feedback import Feedback, last_feedback
from .mistakes import lost_collective, right_answer
from .speaker import Speaker, submits

_MOST_DEGREE = 8


def multiplied(question: Question) -> dict[str, Any]:
    """TP and EP whose product is the number of GPUs, as if they were independent."""
    gpus = question.request.facts.gpus
    tp = min(_MOST_DEGREE, gpus)
    degrees = {"tp": tp, "ep": max(2, gpus // tp)}
    return {"strategy": {"dp": 1, "prefill": degrees, "decode": degrees}}


def invented(question: Question) -> dict[str, Any]:
    """The right strategy with invented fields, and a wrong number of GPUs."""
    right = right_answer(question)["strategy"]
    return {"strategy": {**right, "cp": 2, "zero_stage": 3, "gpu_count": 2 * question.request.facts.gpus}}


# First answers by name, and whether each is in words.
SLIPS: Mapping[str, tuple[Callable[[Question], dict[str, Any]], bool]] = {
    "multiplies TP and EP": (multiplied, False),
    "loses a collective": (lambda question: lost_collective(question, Random(1)), False),
    "invents fields": (invented, True),
    "writes prose and JSON": (multiplied, True),
}


class Obedient(Persona, frozen=True):
    """Makes a slip, chosen by case, and follows the feedback."""

    options: AgentOptions = field(default=HELD)
    name: str = "obedient"

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client that slips in this case."""
        assert found.question is not None
        slip = chance_of(self.name, found, epoch).choice(list(SLIPS))
        return speaker_of(found.question, slip, self.name)


def speaker_of(question: Question, slip: str, name: str = "obedient") -> ModelClient:
    """A client that makes the slip of that name first."""
    make, in_words = SLIPS[slip]
    first = make(question)
    last = first

    def answer(request: ModelRequest) -> Reply:
        nonlocal last
        heard = last_feedback(request)
        if heard is None:
            return _in_words(first) if in_words else submits(request, **first)
        last = _mended(last, heard)
        return submits(request, **last)

    return Speaker(name, answer)


def _in_words(answer: dict[str, Any]) -> Reply:
    text = json.dumps(answer.get("document") or answer, ensure_ascii=False)
    return says(f"Here is how I would split it, since the links are fast:\n```json\n{text}\n```\nThat will do.")


def _mended(last: dict[str, Any], feedback: Feedback) -> dict[str, Any]:
    """The last answer, corrected as the feedback asks."""
    if f"`{REFERENCE}`" in feedback.hint:
        return {"handle": REFERENCE}
    if feedback.repaired_as is not None:
        return {"handle": feedback.repaired_as}
    strategy = json.loads(json.dumps(last.get("strategy", {})))
    for finding in feedback.findings:
        for place in str(finding.get("field", "")).split(", "):
            phase, _, name = place.rpartition(".")
            block = strategy.setdefault(phase, {}) if phase else strategy
            value = finding.get("expected")
            if isinstance(value, list):
                value = max((degree for degree in value if isinstance(degree, int)), default=None)
            if isinstance(value, int):
                block[name] = value
            else:
                block.pop(name, None)
    return {"strategy": strategy}
