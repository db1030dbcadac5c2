"""Two personas that know the right plan and slip: one reads feedback, one repeats itself."""

from __future__ import annotations

from random import Random

from ...loop.question import Question
from ...model.client import ModelClient
from ...model.messages import ModelRequest, Reply
from ..posed import PosedCase
from ..solver import Persona
from .feedback import last_feedback
from .mistakes import SLIPS, right_answer
from .speaker import Speaker, submits


def chance_of(name: str, posed: PosedCase, epoch: int) -> Random:
    """The chance of a persona in a case: fixed for each case and epoch."""
    return Random(f"{name}:{posed.case.id}:{epoch}")


class Careless(Persona, frozen=True):
    """Slips first, then corrects itself as far as feedback helps.

    It takes an offered repair; given rules or findings it answers right; given only a rejection it tries something
    else, which may be another slip.
    """

    name: str = "careless"

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client that slips in this case."""
        assert found.question is not None
        question, chance = found.question, chance_of(self.name, found, epoch)
        return Speaker(self.name, lambda request: _careless(request, question, chance))


def _careless(request: ModelRequest, question: Question, chance: Random) -> Reply:
    heard = last_feedback(request)
    if heard is not None and heard.repaired_as is not None and request.tools:
        return submits(request, handle=heard.repaired_as)
    if heard is not None and (heard.families or heard.repaired_as is not None):
        return submits(request, **right_answer(question))
    drawn = chance.choice((*SLIPS, None) if heard is not None else SLIPS)
    return submits(request, **(right_answer(question) if drawn is None else drawn(question, chance)))


class Stubborn(Persona, frozen=True):
    """Makes one slip, and repeats it."""

    name: str = "stubborn"

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client that repeats one answer in this case."""
        assert found.question is not None
        chance = chance_of(self.name, found, epoch)
        answer = chance.choice(SLIPS)(found.question, chance)
        return Speaker(self.name, lambda request: submits(request, **answer))
