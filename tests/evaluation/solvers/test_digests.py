"""A journal identifies a solver by all that its answers depend on, and by nothing secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardwright.agent.evaluation.ablations.ablate import ABLATIONS
from shardwright.agent.evaluation.keys import solver_digest
from shardwright.agent.evaluation.solvers.cassette import Played
from shardwright.agent.evaluation.solvers.named import SolverSpec, solver_named
from shardwright.agent.evaluation.solvers.student import Student
from shardwright.agent.model.settings import EndpointFlags

from . import worlds

clean_environment = worlds.clean_environment
LIVE = EndpointFlags(base_url="http://127.0.0.1:9/v1", model="m")


def test_every_solver_has_a_digest_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text(json.dumps({"replies": {"*": ["TP2"]}}))
    names = ("builtin", "golden", "careless", "stubborn", "student", f"scripted:{script}", "live")
    specs = [SolverSpec(name, flags=LIVE) for name in names]
    specs += [SolverSpec("live", flags=LIVE, record=tmp_path / place) for place in ("a", "b")]
    digests = [solver_digest(solver_named(spec)) for spec in specs]
    assert len(set(digests)) == len(specs)
    assert digests == [solver_digest(solver_named(spec)) for spec in specs]


def test_every_variant_of_an_ablation_has_one() -> None:
    for ablation in ABLATIONS.values():
        assert len({solver_digest(arm.vary(Student(), ())) for arm in ablation.variants}) == len(ablation.variants)


def test_a_live_model_is_known_by_its_place_and_not_by_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(url: str, key: str) -> str:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", key)
        return solver_digest(solver_named(SolverSpec("live", flags=EndpointFlags(model="m"))))

    assert digest("http://a/v1", "sk-canary-1") == digest("http://a/v1", "sk-canary-2")
    assert digest("http://a/v1", "sk-canary-1") != digest("http://b/v1", "sk-canary-1")


def test_a_recording_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    solver_named(SolverSpec("live", flags=LIVE, record=tmp_path))
    before = solver_digest(Played.of(tmp_path))
    assert solver_digest(Played.of(tmp_path)) == before
    (tmp_path / "words.1.json").write_text("{}")
    assert solver_digest(Played.of(tmp_path)) != before
