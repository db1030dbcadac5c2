"""Ablation: how much of what the tools found a proposer is told between two proposals."""

from __future__ import annotations

from typing import get_args

from ...loop.feedback import Level
from .variant import Ablation, with_options

ABLATION = Ablation(
    "feedback",
    "what is it worth to be told more than that a proposal was wrong?",
    tuple(with_options(level, feedback=level) for level in get_args(Level)),
)
