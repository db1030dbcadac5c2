"""Ablation: how much of the knowledge base a proposer gets: none, the core that is always given, what it calls for."""

from __future__ import annotations

from ....knowledge.selection import select
from ....knowledge.situation import Situation
from ...loop.agent_options import KNOWLEDGE_TOKENS
from ..results import CaseResult
from ..solver import Solver
from .variant import Ablation, Variant, with_options


def _core_only(solver: Solver, first: tuple[CaseResult, ...]) -> Solver:
    """A budget in which the core fits and nothing else."""
    core_tokens = select(Situation(), KNOWLEDGE_TOKENS).core_tokens
    return with_options("core only", knowledge_tokens=core_tokens).vary(solver, first)


ABLATION = Ablation(
    "knowledge",
    "what is the knowledge base worth to a proposer?",
    (
        with_options("none", knowledge_tokens=0),
        Variant("core only", _core_only),
        with_options("selected", knowledge_tokens=KNOWLEDGE_TOKENS),
    ),
)
