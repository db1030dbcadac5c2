"""Scripted models for tests of the loop: steps that Hypothesis draws, and runs of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from shardwright.agent.loop.budget import Limits
from shardwright.agent.loop.context import Passages
from shardwright.agent.loop.loop import Ending, Options, run
from shardwright.agent.loop.question import Question
from shardwright.agent.loop.report import result_of
from shardwright.agent.loop.transcript import Recorder, Result, Setup, Transcript
from shardwright.agent.model.client import EndpointError, FaultKind
from shardwright.agent.model.messages import Reply, Usage
from shardwright.agent.model.scripted import ScriptedModel, Step, calls, says
from shardwright.agent.results import PlanResult
from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.tools.plan.canonical import content_hash

from .hostile_documents import HOSTILE_IDS
from .questions import SMALL, question

_FAULTS: tuple[FaultKind, ...] = ("server_error", "rate_limited", "timeout", "unreadable", "key_refused")
_DEGREES = st.sampled_from([1, 2, 3, 4, 8, 4096, 0, None])
_BLOCK = st.fixed_dictionaries({}, optional=dict.fromkeys(("pp", "tp", "ep", "sp"), _DEGREES))
_STRATEGY = st.fixed_dictionaries({}, optional={"dp": _DEGREES, "prefill": _BLOCK, "decode": _BLOCK})
_HANDLE = st.sampled_from(["d1", "d2", "d9", *HOSTILE_IDS[:3]])
_ARGUMENTS = st.one_of(
    st.builds(lambda strategy: json.dumps({"strategy": strategy}), _STRATEGY),
    st.builds(lambda handle: json.dumps({"handle": handle}), _HANDLE),
    st.text(max_size=20),
    st.sampled_from(["", "{}", "null", '{"strategy": {"dp": NaN}}', '{"document": {"nodes": [1]}}']),
)
_NAMES = st.sampled_from(
    ["submit_dag", "submit_dag", "search_strategies", "inspect_dag", "patch_dag", "look_up", "no_tool"]
)
_CALLS = st.lists(st.tuples(_NAMES, _ARGUMENTS), min_size=1, max_size=4).map(lambda drawn: calls(*drawn))
_WORDS = st.one_of(
    st.text(max_size=30),
    st.builds(lambda strategy: json.dumps({"strategy": strategy}), _STRATEGY),
    st.sampled_from(
        ["TP2", "vllm serve m --tensor-parallel-size 2", '{"strategy": {"dp": 1, "prefill": {"tp": 2}}', ""]
    ),
).map(says)
_OTHER = st.sampled_from(
    [
        Reply(finish="refusal", refusal="no", usage=Usage(input_tokens=5, output_tokens=1)),
        Reply(finish="length", text='{"strategy": {', usage=Usage(input_tokens=5, output_tokens=1)),
    ]
)
_FAULT = st.builds(lambda kind: EndpointError(kind, "no answer", 3), st.sampled_from(_FAULTS))
SCRIPTS = st.lists(st.one_of(_CALLS, _CALLS, _WORDS, _WORDS, _OTHER, _FAULT), max_size=7)
OPTIONS = st.builds(
    lambda corrections, tool_calls, level, repairs, with_tools: Options(
        limits=Limits(corrections=corrections, tool_calls=tool_calls, seconds=60),
        feedback=level,
        repairs=repairs,
        tools=ALL_TOOLS if with_tools else (),
        fence=lambda: "data-0000000000000000",
    ),
    st.integers(0, 3),
    st.integers(0, 6),
    st.sampled_from(["none", "bit", "codes", "full", "patch"]),
    st.booleans(),
    st.booleans(),
)
TOOLS = Options(tools=ALL_TOOLS, fence=lambda: "data-0000000000000000")


def played(
    steps: Sequence[Step], options: Options = TOOLS, request: str = SMALL, recorder: Recorder | None = None
) -> tuple[Ending, PlanResult]:
    """The run of a script, and its result."""
    posed = question(request)
    ending = run(posed, request, Passages(), ScriptedModel(steps), options, recorder or recorder_of(posed, options))
    return ending, result_of(posed, ending, "scripted")


def recorder_of(posed: Question, options: Options, path: Path | None = None, request: str = SMALL) -> Recorder:
    """A recorder for a run with `options`."""
    setup = Setup(
        request=request,
        intent=posed.intent,
        model="scripted",
        tools=tuple(tool.name for tool in options.tools),
        limits=options.limits,
        level=options.feedback,
        repairs=options.repairs,
        max_output_tokens=options.max_output_tokens,
        fence=options.fence(),
    )
    return Recorder(setup, path)


def recorded(steps: Sequence[Step], options: Options = TOOLS, path: Path | None = None) -> Transcript:
    """The transcript of the run of a script."""
    recorder = recorder_of(question(SMALL), options, path)
    ending, result = played(steps, options, recorder=recorder)
    plan_hash = None if result.plan is None else content_hash(result.plan)
    end = Result(status=ending.status, origin=ending.origin, plan_hash=plan_hash, spent=ending.spent)
    return recorder.finish(end)


# Valid but not accepted: its number of GPUs contradicts its degrees, so either may be meant.
AMBIGUOUS = says('{"strategy": {"dp": 1, "gpu_count": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}')


def strategy(dp: int | None = 1, **degrees: Any) -> Reply:
    """A reply that submits a strategy with the same degrees in both phases."""
    return calls(("submit_dag", {"strategy": {"dp": dp, "prefill": degrees, "decode": degrees}}))
