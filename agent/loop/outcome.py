"""How a run ended: a status of a closed list, the plan with its maker, and the cost."""

from __future__ import annotations

from typing import Literal

# `accepted`: a plan valid as proposed, the model's or the reference that it took. `accepted_after_repair`: repaired.
# `infeasible`: no plan exists, by the tools; no model was asked. The others end a run without an accepted plan and
# return the best valid plan so far, or the built-in proposer's.
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
# The plan's maker: the model as written, or repaired with its decisions kept; auto-fix with changed decisions; the
# built-in proposer.
Origin = Literal["model", "model_repaired", "auto_fix", "builtin"]
