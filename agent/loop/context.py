"""A model's first messages: instructions, knowledge, facts, and the request as quoted data.

The first message depends only on the tool's version: a prefix that servers can cache. Knowledge for this request,
facts and the request follow. Text from outside is marked as data and fenced with a boundary of random letters that its
author cannot have known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ...prompts.render import prompt_hash, render
from ...tools.catalog.entry import ModelEntry
from ...tools.performance.weights import model_bytes
from ...tools.plan.describe import describe
from ...tools.search.search import base_setting
from ..facts import model_facts
from ..model.messages import Message
from .against import REFERENCE
from .feedback import figures_told
from .question import Question


class Passages(Struct, frozen=True):
    """Knowledge for a request: what every request gets, what this one needs, and the ids of the sections.

    `teaching` returns passages on broken rules that were not given yet; it remembers what it gave.
    """

    core: str = ""
    selected: str = ""
    sections: tuple[str, ...] = ()
    teaching: Callable[[tuple[str, ...]], str] = lambda rules: ""


class Opening(Struct, frozen=True):
    """The first messages of a run, with the hash of each prompt and the ids of the sections in them."""

    messages: tuple[Message, ...]
    prompts: dict[str, str]
    sections: tuple[str, ...]


_MOST_RUNNERS_UP = 3


def opening(
    question: Question,
    request_text: str,
    passages: Passages,
    *,
    with_tools: bool,
    fence: str,
    has_reference: bool = True,
) -> Opening:
    """The first messages for `question`; `request_text` is the person's own words, fenced with `fence`.

    `has_reference`: the built-in proposer's plan is shown.
    """
    prompts = ["system", "knowledge", "request", "task", *(["reference"] if has_reference else [])]
    system = [render("system")]
    if not with_tools:
        system.append(render("text_mode"))
        prompts.append("text_mode")
    if passages.core:
        # Shipped text, the same in every run: fenced with its own hash, it stays a prefix that servers can cache.
        core_fence = f"data-{hashlib.sha256(passages.core.encode()).hexdigest()[:16]}"
        system.append(render("knowledge", part="always needed", fence=core_fence, passages=passages.core))
    content = render(
        "request",
        knowledge=_selected(passages, fence),
        fence=fence,
        facts=_json(facts(question)),
        request=request_text or "(no words: everything was said by options)",
        understood=_json(understood(question)),
        reference=_reference(question, fence) if has_reference else "",
        task=render("task", objective=question.request.workload.objective),
    )
    messages = (Message(role="system", content="\n\n".join(system)), Message(role="user", content=content))
    return Opening(messages, {name: prompt_hash(name) for name in prompts}, passages.sections)


def _selected(passages: Passages, fence: str) -> str:
    if not passages.selected:
        return ""
    return render("knowledge", part="for this request", fence=fence, passages=passages.selected) + "\n"


def facts(question: Question) -> dict[str, Any]:
    """The catalogue's facts of the model and the hardware that a split depends on."""
    model, known = question.model, question.request.facts
    entry = ModelEntry(name=model.name, config=model.config, source="request")
    described = model_facts(entry).model_dump(
        mode="json", exclude_none=True, exclude={"config", "source", "confidence", "notes", "assumptions", "model_type"}
    )
    memory = question.reference.estimate.memory if question.reference.estimate is not None else None
    return {
        "model": described,
        "weights_bytes": model_bytes(base_setting(question.request)),
        "accelerator": {"id": known.accelerator.id, "memory_bandwidth_gb_s": known.accelerator.memory_bandwidth_gb_s},
        "usable_memory_per_gpu_bytes": memory.per_device[0].usable_bytes if memory is not None else None,
        "nodes": question.request.hardware.nodes,
        "gpus_per_node": question.request.hardware.gpus_per_node,
        "gpus": known.gpus,
    }


def understood(question: Question) -> dict[str, Any]:
    """The request as read: load, limits, formats, relaxations, constraints, and assumptions."""
    header = question.header
    constraints = header["policy"].get("constraints")
    return {
        **({"constraints": constraints} if constraints else {}),
        "workload": header["workload"],
        "precision": header["precision"],
        "relaxations": header["policy"].get("relaxations", []),
        "concurrency_is_open": question.intent.concurrency_open,
        "disaggregated": question.intent.disaggregated,
        "assumed": [f"{assumption.field}: {assumption.reason}" for assumption in question.intent.assumptions],
        "not_understood": list(question.intent.unread),
    }


def _reference(question: Question, fence: str) -> str:
    return render("reference", fence=fence, plan=_json(reference(question))) + "\n\n"


def reference(question: Question) -> dict[str, Any]:
    """The built-in proposer's plan, its figures, and its alternatives."""
    plan, result = question.reference_plan, question.reference
    assert result.estimate is not None
    assert result.report is not None
    degrees = plan.strategy.model_dump(mode="json", exclude_none=True, exclude={"gpu_count"})
    return {
        "handle": REFERENCE,
        "plan": describe(plan.strategy),
        "strategy": {name: _above_one(block) for name, block in degrees.items()},
        "concurrency": plan.workload.concurrency,
        "figures": figures_told(plan, result.estimate),
        "limits": list(result.report.limits) or "none asked for",
        "runners_up": [f"{row.summary}: {row.reason}" for row in result.report.alternatives[:_MOST_RUNNERS_UP]],
    }


def _above_one(block: Any) -> Any:
    """The degrees of a phase that are above one."""
    return {name: value for name, value in block.items() if value != 1} if isinstance(block, dict) else block


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
