"""The right answer as a solver: less than full marks for it is a fault of the harness or the dataset."""

from __future__ import annotations

from msgspec import field
from msgspec.structs import replace

from ...loop.agent_options import AgentOptions
from ...model.client import ModelClient
from ..marks import Solution
from ..posed import PosedCase, right_documents
from ..solve import solve_question
from ..solver import UNHURRIED, Persona
from .speaker import Speaker, submits

# The tool's limit.
_LONGEST_RATIONALE = 4000


class Golden(Persona, frozen=True):
    """Submits the case's own golden; if that is no plan, the built-in proposer answers.

    The proposal that a case gives is judged, but not mended: the golden replaces it.
    """

    options: AgentOptions = field(default=replace(UNHURRIED, repairs=False))
    name: str = "golden"
    why_fixed: str = "it is right whatever it is told; take a persona, a script or a live model"

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client that submits the golden and why it is right."""
        right = next(right_documents(found), None)
        if right is None:
            return None
        decided = ", ".join(found.case.decided_by)
        why = f"Decided by {decided}. {right.golden.source}" if decided else right.golden.source

        return Speaker(self.name, lambda request: submits(request, why[:_LONGEST_RATIONALE], document=right.document))

    def solve(self, found: PosedCase, epoch: int) -> Solution:
        """The golden, whatever was proposed before."""
        return solve_question(found, self, epoch, takes_up=False)
