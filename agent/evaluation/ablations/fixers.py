"""Ablation: whether proposals are repaired, so that a model need not correct what a tool can."""

from __future__ import annotations

from .variant import Ablation, with_options

ABLATION = Ablation(
    "fixers",
    "what are repairs worth?",
    (with_options("repairs on", repairs=True), with_options("repairs off", repairs=False)),
)
