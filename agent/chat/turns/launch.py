"""Answers with the launch script of the plan, or why the engine cannot run it."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ....tools.engines.names import engine_or_usual
from ....tools.export.export import export, target_named
from ....tools.plan.document import Plan, ServingBlock
from ...languages.say import say
from ...report.export import render_export
from ..outcome import Outcome
from .explain import explain_words
from .work import Work

_NO_PLAN = "There is no plan yet whose commands could be written: say what to serve, and on what."
_SECTION = "accelerator.engines"
_ENGINE = (
    r"(?:vllm|sglang|trt-?llm|tensorrt-?llm|trtllm-\w{1,20}|lmdeploy|dynamo|nim|tgi|kubernetes|k8s|docker|slurm|ray|llm-d|"
    r"engine|server)(?![a-z])"
)
_COMMAND = (
    r"(?:commands?|command\s?lines?|cli|flags?|arg(?:ument)?s|yaml|"
    r"(?:launch|start-?up|engine|server)\s(?:script|options))"
)
_ASKED = r"(?:what|which|how|give|show|print|write|generate|make|create|export|produce|tell|need|want|get|can|could)"
_IT = r"(?:(?:it|this|that|(?:the|my|this|that)\s(?:plan|layout|model|strategy|deployment|one))\s)?"
_STARTS = r"(?:run|start|launch|deploy|serve|execute)"
_LAUNCH = re.compile(
    # "which vllm flags", "the vllm serve command?", "vllm 要加哪些参数"
    rf"^(?=.{{0,200}}(?<![a-z-]){_ENGINE})(?=.{{0,200}}(?:(?<![a-z-]){_COMMAND}(?![a-z])|(?:启动|哪些|什么|要加)[^,.;。]{{0,6}}(?:参数|命令|选项)))"
    # "which flags", "what command do I run", "give me the launch script"
    rf"|(?<![a-z]){_ASKED}(?![a-z])[^.!?]{{0,60}}(?<![a-z-])(?:flags?|command\s?lines?|(?:launch|start-?up|server)\s(?:scripts?|options))(?![a-z])"
    rf"|(?<![a-z])command\s(?:(?:do|should|would|to)\s)?(?:(?:i|we|you)\s)?{_STARTS}(?:s|\s(?:it|this|that))?(?![a-z])"
    rf"|(?<![a-z]){_STARTS}(?:ing|-?up)?\s(?:commands?|scripts?|flags?|options?)(?![a-z])"
    # "how do I run this with vllm", "how do I start it?"
    rf"|(?<![a-z])how\s(?:do|can|would|should|to)(?:\s(?:i|we|you|one))?\s{_STARTS}\s"
    rf"(?:{_IT}(?:with|in|on|under|using|by)\s{_ENGINE}|{_IT.removesuffix('?')}?(?:it|this|that)?[\s.?!]*$)"
    # "export it to vllm"
    rf"|(?<![a-z])(?:export|convert|translate)\s{_IT}(?:to|for|as|into)\s(?:an?\s)?{_ENGINE}"
    r"|(?:启动|运行|部署)(?:命令|参数|脚本)|命令行|导出(?:到|为|成)|(?:怎么|如何|什么命令)(?:启动|运行|部署)|(?:哪些|什么)\s?(?:启动)?(?:参数|flags?|选项)",
    re.I | re.S,
)
# What runs an engine, by its names; a form that runs on another one comes before it.
_FORMS = tuple(
    (re.compile(rf"(?<![a-z])(?:{names})(?![a-z])", re.I), form)
    for names, form in (
        *(("dynamo", "dynamo"), ("llm-d", "llm-d"), ("ray", "ray"), ("slurm", "slurm")),
        *(("docker", "docker-compose"), ("kubernetes|k8s", "kubernetes")),
    )
)
# Servers that no exporter writes for.
_NO_EXPORTER = re.compile(r"(?<![a-z])(?:lmdeploy|nim|tgi)(?![a-z])", re.I)
# What an option means, or what an engine refuses, is a question for the knowledge base alone.
_MEANT = re.compile(
    r"(?<![a-z])(?:means?|explain|refuses?|supports?|what\s(?:does|do)|why|if)(?![a-z])|什么意思|支持|如果", re.I
)


def asks_to_launch(text: str) -> bool:
    """Whether `text` asks for what starts a plan: a command, its options, an export."""
    return _LAUNCH.search(text) is not None and _MEANT.search(text) is None


# What joins two wishes of one turn.
_JOINS = re.compile(r"\s?[;.。;]\s?|\s?[,,]\s?(?:and|then|also|plus|并|再)?\s?|\s(?:and|then|plus)\s|然后|并且?|再")


def beside_launch(text: str) -> str:
    """What a text says besides its wish for a launch ("no PP, and give me the vLLM command"); "" if nothing."""
    parts = [part for part in _JOINS.split(text) if part.strip()]
    asking = [place for place, part in enumerate(parts) if asks_to_launch(part)]
    return ", ".join(part for place, part in enumerate(parts) if place not in asking) if asking else ""


def launch(work: Work, text: str) -> Outcome:
    """The launch script of the plan for the engine that `text` names, the plan's own, or else the usual one.

    Where nothing was asked for yet: how degrees are called in engines, and what these refuse.

    Raises:
        InputError: the current request has no plan; that of an earlier one would be taken for its.
    """
    if work.state.current is None:
        explained = explain_words(work, _SECTION)
        return replace(explained, text=f"{say(_NO_PLAN)}\n\n{explained.text}")
    return Outcome("show", launch_text(work.plan, text, work.width))


def launch_text(plan: Plan, text: str, width: int) -> str:
    """The script that starts `plan` on the engine and in the form that `text` names, or why there can be none."""
    front = _NO_EXPORTER.search(text)
    unwritten = say("For {front} nothing is written yet; its containers run this:", front=front[0]) if front else ""
    serving = None if plan.serving is None else plan.serving.engine
    engine = engine_or_usual(text, serving)
    target = next((form for names, form in _FORMS if names.search(text)), None)
    if target is not None:
        plan = plan.model_copy(
            update={"serving": (plan.serving or ServingBlock()).model_copy(update={"engine": engine})}
        )
    exported = export(plan, target_named(target or engine))
    lines = exported.text or render_export(exported, title=say("this plan"), width=width)
    return f"{unwritten}\n{lines}" if unwritten else lines
