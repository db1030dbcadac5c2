"""shardwright answers one question: how do I split this large language model over these GPUs for serving?

    import shardwright

    result = shardwright.plan("Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency")
    report = shardwright.validate(result.plan)
    estimate = shardwright.estimate(result.plan)

Importing it is silent and light: each name is loaded when it is first used. `help(shardwright.plan)` says what `plan`
takes, gives and raises, and so for every name of `shardwright.__all__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agent.agent import Agent
    from .agent.chat.chat import Chat
    from .agent.chat.outcome import ChatAnswer
    from .agent.compare import Words, compare
    from .agent.evaluation.case import Case
    from .agent.evaluation.dataset import Dataset
    from .agent.evaluation.evaluate import Evaluation, aevaluate, evaluate
    from .agent.evaluation.posed import PosedCase
    from .agent.evaluation.results import CaseResult
    from .agent.evaluation.solver import Solver
    from .agent.explain import Explanation, explain
    from .agent.fix_api import autofix
    from .agent.importing.api import Imported, import_plan
    from .agent.loop.agent_options import AgentOptions
    from .agent.loop.budget import Limits, Prices
    from .agent.mix import MixAnswer, plan_mix
    from .agent.model.client import EndpointError, ModelClient
    from .agent.model.deadline import Deadline
    from .agent.model.messages import Message, ModelRequest, Reply, ToolCall, ToolSpec, Usage
    from .agent.pipeline import plan
    from .agent.results import PlanReport, PlanResult
    from .agent.runs.spent import Spent
    from .agent.search_api import search
    from .agent.search_results import RankedCandidate, SearchAnswer
    from .agent.stated.arguments import Arguments
    from .tools.autofix.result import AppliedFix, FixResult
    from .tools.calibration.custom import CustomCalibration
    from .tools.comparison.result import Comparison
    from .tools.errors import InputError, ServiceError, ShardwrightError, UnknownNameError
    from .tools.export.export import export
    from .tools.export.result import Export
    from .tools.performance.estimate import estimate
    from .tools.plan.document import HardwareBlock, Plan, PrecisionBlock, ServingBlock, WorkloadBlock
    from .tools.plan.performance import PerformanceEstimate
    from .tools.rules.findings import Violation
    from .tools.traffic.trace import Trace, read_trace
    from .tools.validate import ValidationReport, validate
    from .tools.verify import Verification, verify

    __version__: str

__all__ = [
    "Agent",
    "AgentOptions",
    "AppliedFix",
    "Arguments",
    "Case",
    "CaseResult",
    "Chat",
    "ChatAnswer",
    "Comparison",
    "CustomCalibration",
    "Dataset",
    "Deadline",
    "EndpointError",
    "Evaluation",
    "Explanation",
    "Export",
    "FixResult",
    "HardwareBlock",
    "Imported",
    "InputError",
    "Limits",
    "Message",
    "MixAnswer",
    "ModelClient",
    "ModelRequest",
    "PerformanceEstimate",
    "Plan",
    "PlanReport",
    "PlanResult",
    "PosedCase",
    "PrecisionBlock",
    "Prices",
    "RankedCandidate",
    "Reply",
    "SearchAnswer",
    "ServiceError",
    "ServingBlock",
    "ShardwrightError",
    "Solver",
    "Spent",
    "ToolCall",
    "ToolSpec",
    "Trace",
    "UnknownNameError",
    "Usage",
    "ValidationReport",
    "Verification",
    "Violation",
    "Words",
    "WorkloadBlock",
    "__version__",
    "aevaluate",
    "autofix",
    "compare",
    "estimate",
    "evaluate",
    "explain",
    "export",
    "import_plan",
    "plan",
    "plan_mix",
    "read_trace",
    "search",
    "validate",
    "verify",
]

_HOMES = {
    "Agent": ".agent.agent",
    "AgentOptions": ".agent.loop.agent_options",
    "AppliedFix": ".tools.autofix.result",
    "Arguments": ".agent.stated.arguments",
    "Case": ".agent.evaluation.case",
    "CaseResult": ".agent.evaluation.results",
    "Chat": ".agent.chat.chat",
    "ChatAnswer": ".agent.chat.outcome",
    "Comparison": ".tools.comparison.result",
    "CustomCalibration": ".tools.calibration.custom",
    "Dataset": ".agent.evaluation.dataset",
    "Deadline": ".agent.model.deadline",
    "EndpointError": ".agent.model.client",
    "Evaluation": ".agent.evaluation.evaluate",
    "Explanation": ".agent.explain",
    "Export": ".tools.export.result",
    "FixResult": ".tools.autofix.result",
    "HardwareBlock": ".tools.plan.document",
    "Imported": ".agent.importing.api",
    "InputError": ".tools.errors",
    "Limits": ".agent.loop.budget",
    "Message": ".agent.model.messages",
    "MixAnswer": ".agent.mix",
    "ModelClient": ".agent.model.client",
    "ModelRequest": ".agent.model.messages",
    "PerformanceEstimate": ".tools.plan.performance",
    "Plan": ".tools.plan.document",
    "PlanReport": ".agent.results",
    "PlanResult": ".agent.results",
    "PosedCase": ".agent.evaluation.posed",
    "PrecisionBlock": ".tools.plan.document",
    "Prices": ".agent.loop.budget",
    "RankedCandidate": ".agent.search_results",
    "Reply": ".agent.model.messages",
    "SearchAnswer": ".agent.search_results",
    "ServiceError": ".tools.errors",
    "ServingBlock": ".tools.plan.document",
    "ShardwrightError": ".tools.errors",
    "Solver": ".agent.evaluation.solver",
    "Spent": ".agent.runs.spent",
    "ToolCall": ".agent.model.messages",
    "ToolSpec": ".agent.model.messages",
    "Trace": ".tools.traffic.trace",
    "UnknownNameError": ".tools.errors",
    "Usage": ".agent.model.messages",
    "ValidationReport": ".tools.validate",
    "Verification": ".tools.verify",
    "Violation": ".tools.rules.findings",
    "Words": ".agent.compare",
    "WorkloadBlock": ".tools.plan.document",
    "aevaluate": ".agent.evaluation.evaluate",
    "autofix": ".agent.fix_api",
    "compare": ".agent.compare",
    "estimate": ".tools.performance.estimate",
    "evaluate": ".agent.evaluation.evaluate",
    "explain": ".agent.explain",
    "export": ".tools.export.export",
    "import_plan": ".agent.importing.api",
    "plan": ".agent.pipeline",
    "plan_mix": ".agent.mix",
    "read_trace": ".tools.traffic.trace",
    "search": ".agent.search_api",
    "validate": ".tools.validate",
    "verify": ".tools.verify",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("shardwright")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    # Results show themselves in notebooks from then on.
    import_module(".agent.notebook", __name__)
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
