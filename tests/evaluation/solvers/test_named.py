"""Each name gives its solver, and impossible ones are refused in one line with the reason."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from shardwright.agent.evaluation.solver import Solver
from shardwright.agent.evaluation.solvers.named import SOLVERS, SolverSpec, solver_named
from shardwright.agent.evaluation.solvers.recorder import Recorder
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.settings import EndpointFlags
from shardwright.tools.errors import InputError

from . import worlds

clean_environment = worlds.clean_environment
URL = "http://127.0.0.1:9/v1"
LIVE = EndpointFlags(base_url=URL, model="m")


def test_every_name_gives_a_solver_that_can_go_to_another_process(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text(json.dumps({"replies": {"*": ["TP2"]}}))
    solver_named(SolverSpec("live", flags=LIVE, record=tmp_path / "tape"))
    places = {"scripted:FILE": f"scripted:{script}", "cassette:FOLDER": f"cassette:{tmp_path / 'tape'}"}
    solvers: dict[str, Solver] = {}
    for name in SOLVERS:
        spec = SolverSpec(places.get(name, name), flags=LIVE)
        solvers[name] = solver_named(spec)
        assert pickle.loads(pickle.dumps(solvers[name])) == solvers[name]
        assert pickle.loads(pickle.dumps(spec)) == spec
    assert [solver.name for solver in solvers.values()] == [
        "builtin", "golden", "careless", "stubborn", "student", "obedient", "opener", "supposer", "unconnected",
        "scripted:s.json", "cassette:m", "live:m",
    ]  # fmt: skip
    assert [name for name, solver in solvers.items() if not solver.is_deterministic] == ["live"]


def test_options_reach_the_solver_and_no_clock_ends_the_runs_of_one_that_asks_nobody() -> None:
    student = solver_named(SolverSpec("student", AgentOptions(feedback="codes")))
    assert student.options.feedback == "codes"
    assert student.options.limits.seconds == 86_400
    live = solver_named(SolverSpec("live", AgentOptions(feedback="codes"), LIVE))
    assert live.options.limits.seconds == AgentOptions().limits.seconds


def test_a_live_model_is_recorded_where_it_is_asked_for(tmp_path: Path) -> None:
    solver = solver_named(SolverSpec("live", flags=LIVE, record=tmp_path / "a" / "b", dataset_hash="h"))
    assert isinstance(solver, Recorder)
    assert json.loads((tmp_path / "a" / "b" / "recording.json").read_text())["dataset_hash"] == "h"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (SolverSpec("studnt"), "did you mean student"),
        (SolverSpec(""), "did you mean builtin"),
        (SolverSpec("scripted"), "needs its FILE: scripted:FILE"),
        (SolverSpec("cassette"), "needs its FOLDER"),
        (SolverSpec("golden:x"), "takes no place"),
        (SolverSpec("scripted:/no/such/file"), "/no/such/file: cannot be read"),
        (SolverSpec("cassette:/no/such/folder"), "no recording"),
        (SolverSpec("cassette:/x", AgentOptions()), "takes no options"),
        (SolverSpec("golden", AgentOptions()), "takes no options"),
        (SolverSpec("student", record=Path("/x")), "only a live model is recorded"),
        (SolverSpec("live"), "no endpoint is configured"),
        (SolverSpec("live", flags=LIVE, record=Path("/dev/null/x")), "/dev/null/x"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_in_one_line(spec: SolverSpec, words: str) -> None:
    with pytest.raises(InputError) as refused:
        solver_named(spec)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_calibration_is_the_built_in_proposers_alone() -> None:
    from shardwright.tools.calibration.custom import CustomCalibration

    calibration = CustomCalibration.model_construct(name="own")
    assert solver_named(SolverSpec("builtin", calibration=calibration)).name == "builtin by own"
    with pytest.raises(InputError, match="only the built-in proposer"):
        solver_named(SolverSpec("student", calibration=calibration))
