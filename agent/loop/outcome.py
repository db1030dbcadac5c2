"""How a run ended: a status of a closed list, the plan with who made it, and what it took."""

from __future__ import annotations

from typing import Literal

# `accepted`: a plan valid as it stood, the model's or the reference that it took. `accepted_after_repair`: mended.
# `infeasible`: no plan exists, by the tools; no model was asked. The others end a run before a plan was accepted; the
# best valid plan so far, or the built-in proposer's, is returned then.
Status = Literal[
    "accepted",
    "accepted_after_repair",
    "corrections_spent",
    "tool_calls_spent",
    "tokens_spent",
    "cost_spent",
    "time_spent",
    "no_progress",
    "refused_by_model",
    "endpoint_failed",
    "infeasible",
]
# Whose plan it is: the model's as it wrote it, or repaired with its decisions kept; auto-fix's, which could not keep
# what the model decided; the built-in proposer's.
Origin = Literal["model", "model_repaired", "auto_fix", "builtin"]
