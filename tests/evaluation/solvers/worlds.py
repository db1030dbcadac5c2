"""Cases that tests of solvers share, and a scripted endpoint for solvers that need one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.evaluation.case import Case
from shardwright.agent.evaluation.dataset import Dataset, read_dataset
from shardwright.agent.evaluation.posed import PosedCase, pose
from shardwright.agent.evaluation.results import CaseResult
from shardwright.agent.evaluation.score import score_case
from shardwright.agent.evaluation.solver import Solver
from shardwright.agent.evaluation.solvers.live import Live
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.settings import EndpointFlags

from ...agent.model.fault_server import FaultServer, Step, answer, call, sends

CASES = Path(__file__).parents[2] / "cases"
# Without knowledge, so that requests are small.
BARE = AgentOptions(knowledge_tokens=0)


@cache
def dataset() -> Dataset:
    """All cases."""
    return read_dataset(CASES / "evaluation_solvers.json")


def case(name: str = "words") -> Case:
    """The case with this id."""
    return next(entry for entry in dataset().cases if entry.id == name)


@cache
def posed(name: str = "words") -> PosedCase:
    """The case with its question."""
    return pose(case(name))


def scored(solver: Solver, name: str = "words", epoch: int = 1) -> CaseResult:
    """The result of `solver` in a case."""
    return score_case(case(name), solver, epoch).result


def strategy(tp: int, own_id: str = "c1", **more: Any) -> dict[str, Any]:
    """A call that submits a strategy with one replica."""
    block = {"tp": tp, **more}
    return call("submit_dag", json.dumps({"strategy": {"dp": 1, "prefill": block, "decode": block}}), own_id)


def calls(*tool_calls: dict[str, Any]) -> Step:
    """An answer with tool calls."""
    return sends(answer({"content": None, "tool_calls": list(tool_calls)}, "tool_calls"))


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the endpoint settings of this machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "SHARDWRIGHT_LLM_MODEL", "SHARDWRIGHT_LLM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def endpoint(*steps: Step, options: AgentOptions = BARE, **flags: Any) -> Iterator[tuple[Live, FaultServer]]:
    """A live solver and its server, which answers by `steps`."""
    with FaultServer(*steps) as server:
        yield Live.of(EndpointFlags(base_url=server.url, model="m", **flags), options), server


def texts_below(folder: Path) -> Iterable[str]:
    """The text of every file in `folder`."""
    return (path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the JSON file at `path`."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
