"""What starts a plan in an engine: no command is written here, and a question for one is told so.

Shown is what the knowledge base has of it: which options of an engine the degrees of a plan are, and what each engine
refuses.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ....tools.plan.describe import describe
from ..outcome import Outcome
from .explain import explain_words
from .work import Work

NO_COMMAND = "No command line or manifest of an engine is written here yet."
_SECTION = "accelerator.engines"
_ENGINE = (
    r"(?:vllm|sglang|trt-?llm|tensorrt-?llm|trtllm-\w{1,20}|lmdeploy|dynamo|nim|tgi|kubernetes|k8s|docker|engine|server)"
    r"(?![a-z])"
)
_COMMAND = (
    r"(?:commands?|command\s?lines?|cli|flags?|arg(?:ument)?s|yaml|"
    r"(?:launch|start-?up|engine|server)\s(?:script|options))"
)
_ASKED = r"(?:what|which|how|give|show|print|write|generate|make|create|export|produce|tell|need|want|get|can|could)"
_IT = r"(?:(?:it|this|that|(?:the|my|this|that)\s(?:plan|layout|model|strategy|deployment|one))\s)?"
_LAUNCH = re.compile(
    # "which vllm flags", "give me the command line for sglang", "the vllm serve command?"
    rf"^(?=.{{0,200}}(?<![a-z-]){_ENGINE})(?=.{{0,200}}(?<![a-z-]){_COMMAND}(?![a-z]))"
    rf"(?:.{{0,200}}(?<![a-z]){_ASKED}(?![a-z])|.{{0,200}}[?])"
    # "how do I run this with vllm"
    rf"|(?<![a-z])how\s(?:do|can|would|should|to)(?:\s(?:i|we|you|one))?\s(?:run|start|launch|deploy|serve|execute)\s"
    rf"{_IT}(?:with|in|on|under|using|by)\s{_ENGINE}"
    # "export it to vllm"
    rf"|(?<![a-z])(?:export|convert|translate)\s{_IT}(?:to|for|as|into)\s(?:an?\s)?{_ENGINE}"
    r"|(?:启动|运行|部署)(?:命令|参数|脚本)|命令行|导出(?:到|为|成)",
    re.I | re.S,
)
# What an option means, or what an engine refuses, is a question for the knowledge base alone.
_MEANT = re.compile(
    r"(?<![a-z])(?:means?|explain|refuses?|supports?|what\s(?:does|do)|why|if)(?![a-z])|什么意思|支持|如果", re.I
)


def asks_to_launch(text: str) -> bool:
    """Whether `text` asks for what starts a plan: a command, its options, an export."""
    return _LAUNCH.search(text) is not None and _MEANT.search(text) is None


def launch(work: Work) -> Outcome:
    """That no command is written, what the plan is, and how its degrees are called in engines."""
    planned = work.state.last_planned
    plan = None if planned is None else planned.result.plan
    parts = [NO_COMMAND + " Nothing changed."]
    if plan is not None:
        parts.append(f"The plan is {describe(plan.strategy)}; /export PATH writes its document.")
    parts.append("How degrees are called in engines, and what these refuse:")
    explained = explain_words(work, _SECTION)
    return replace(explained, text=" ".join(parts) + "\n\n" + explained.text)
