"""Ablation: whether a model is given the built-in plan and has to match it."""

from __future__ import annotations

from .variant import Ablation, with_options

ABLATION = Ablation(
    "reference",
    "what is the built-in plan worth as a reference?",
    (with_options("with the reference", reference=True), with_options("without it", reference=False)),
)
