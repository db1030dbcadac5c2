"""Placeholder."""

from __future__ import annotations

from .results import ResultModel


class MutationScore(ResultModel):
    """How many damaged goldens the ladder catches."""

    mutants: int
    killed: int
