"""Ablation: correct a proposal, or sample anew for as many tokens and let the validator pick the first valid one.

Fresh samples may spend in a case what a run with corrections spent there. A sample is a run without corrections whose
conversation is independent of the others; the last one may exceed the allowance, as any last answer may.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...loop.agent_options import AgentOptions
from ...runs.spent import Spent, spent_together
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
    """Tokens of input and output together."""
    return spent.input_tokens + spent.output_tokens


class FreshSamples(OfAnother, frozen=True):
    """Asks a solver anew until a proposal is accepted or the case's tokens are spent; at least once.

    `allowed_tokens` gives the allowance by case and epoch; a case without one is sampled once.
    """

    allowed_tokens: tuple[tuple[str, int, int], ...]

    @property
    def name(self) -> str:
        """The solver's name, marked as sampled."""
        return f"{self.inner.name} (fresh samples)"

    @property
    def options(self) -> AgentOptions:
        """The solver's options, without corrections."""
        options = self.inner.options
        return replace(options, limits=options.limits.model_copy(update={"corrections": 0}))

    @property
    def digest(self) -> str:
        """Identifies the results: the solver, and its allowances."""
        return f"{solver_digest(self.inner)} {sorted(self.allowed_tokens)}"

    def solve(self, found: PosedCase, epoch: int) -> Solution:
        """The first accepted sample, else the best of the last; with the cost of all.

        Raises:
            ShardwrightError: as the solver.
        """
        allowed = next((tokens for case, at, tokens in self.allowed_tokens if (case, at) == (found.case.id, epoch)), 0)
        samples: list[Solution] = []
        for number in range(MOST_SAMPLES):
            # A solver with chance draws anew in each epoch: samples are epochs between those of the run.
            drawn_epoch = epoch if number == 0 else epoch * 1_000_000 + number
            samples.append(solve_question(found, self.inner, drawn_epoch, self.options, takes_up=False))
            spent = sum(tokens_of(sample.spent) for sample in samples)
            if samples[-1].status in _ACCEPTED or spent >= allowed:
                break
        best = samples[-1]
        if best.status not in _ACCEPTED:
            best = next((sample for sample in samples if sample.plan_from != "builtin"), best)
        # Each sample's attempts begin with the proposal that the case gives.
        before = 0 if found.proposal is None and found.broken is None else 1
        attempts = [*samples[0].attempts, *(attempt for sample in samples[1:] for attempt in sample.attempts[before:])]
        return replace(best, attempts=tuple(attempts), spent=spent_together([sample.spent for sample in samples]))


def _fresh(solver: Solver, first: tuple[CaseResult, ...]) -> Solver:
    return FreshSamples(solver, tuple((result.id, result.epoch, tokens_of(result.spent)) for result in first))


SAMPLES = Ablation(
    "samples",
    "is it better to correct, or to ask anew for as many tokens?",
    (with_options("repair"), Variant("fresh samples", _fresh)),
)
