"""Ablation: to correct a proposal, or to ask anew for as many tokens, the validator picking the first that is valid.

What a run with corrections spent in a case is what fresh samples may spend there. A sample is a run without corrections
whose conversation knows nothing of the others; the last one may end beyond the allowance, as any last answer may.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...loop.agent_options import AgentOptions
from ...spent import Spent, spent_together
from ..keys import solver_digest
from ..marks import Solution
from ..posed import PosedCase
from ..results import CaseResult
from ..solve import solve_question
from ..solver import Solver
from .variant import Ablation, OfAnother, Variant, with_options

MOST_SAMPLES = 100
_ACCEPTED = ("accepted", "accepted_after_repair")


def tokens_of(spent: Spent) -> int:
    """What counts as spent: input and output together."""
    return spent.input_tokens + spent.output_tokens


class FreshSamples(OfAnother, frozen=True):
    """Asks a solver anew until a proposal is accepted or the tokens of the case are spent; at least once.

    `allowed_tokens` are pairs of case and epoch with what may be spent there; a case without one is sampled once.
    """

    allowed_tokens: tuple[tuple[str, int, int], ...]

    @property
    def name(self) -> str:
        """The solver's, and how it is asked."""
        return f"{self.inner.name} (fresh samples)"

    @property
    def options(self) -> AgentOptions:
        """The solver's own, without corrections."""
        own = self.inner.options
        return replace(own, limits=own.limits.model_copy(update={"corrections": 0}))

    @property
    def digest(self) -> str:
        """What its answers come of: the solver, and how much may be spent."""
        return f"{solver_digest(self.inner)} {sorted(self.allowed_tokens)}"

    def solve(self, found: PosedCase, epoch: int) -> Solution:
        """The first sample that was accepted, else the best of the last; with what all of them took.

        Raises:
            ShardwrightError: as the solver's.
        """
        allowed = next((tokens for case, at, tokens in self.allowed_tokens if (case, at) == (found.case.id, epoch)), 0)
        samples: list[Solution] = []
        for number in range(MOST_SAMPLES):
            # Someone with chance in it draws anew in each epoch: samples are epochs between those of the run.
            own = epoch if number == 0 else epoch * 1_000_000 + number
            samples.append(solve_question(found, self.inner, own, self.options, takes_up=False))
            spent = sum(tokens_of(one.spent) for one in samples)
            if samples[-1].status in _ACCEPTED or spent >= allowed:
                break
        best = samples[-1]
        if best.status not in _ACCEPTED:
            best = next((one for one in samples if one.plan_from != "builtin"), best)
        # What the case says was proposed before stands at the head of each sample.
        before = 0 if found.proposal is None and found.broken is None else 1
        attempts = [*samples[0].attempts, *(made for one in samples[1:] for made in one.attempts[before:])]
        return replace(best, attempts=tuple(attempts), spent=spent_together([one.spent for one in samples]))


def _fresh(solver: Solver, first: tuple[CaseResult, ...]) -> Solver:
    return FreshSamples(solver, tuple((one.id, one.epoch, tokens_of(one.spent)) for one in first))


SAMPLES = Ablation(
    "samples",
    "is it better to correct, or to ask anew for as many tokens?",
    (with_options("repair"), Variant("fresh samples", _fresh)),
)
