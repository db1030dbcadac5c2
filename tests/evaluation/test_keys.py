"""An earlier result is reused exactly if nothing that it depends on has changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import field
from msgspec.structs import replace

from shardwright.agent.evaluation.keys import key_of, options_said, package_digest, solver_digest
from shardwright.agent.evaluation.posed import PosedCase
from shardwright.agent.evaluation.solver import UNHURRIED
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits, Prices
from shardwright.agent.model.client import ModelClient
from shardwright.tests.evaluation.running import BUILTIN, Failing, broken_plans
from shardwright.tools.calibration.custom import CustomCalibration
from shardwright.tools.errors import InputError

CASE, OTHER_CASE = broken_plans(2).cases


def test_a_default_that_is_stated_is_no_other_option() -> None:
    stated = AgentOptions(limits=Limits(corrections=4), feedback="patch", mode="auto", prices=None)
    assert options_said(stated) == options_said(AgentOptions())
    assert set(Limits.model_fields) == set(options_said(stated)["limits"])


def test_where_a_record_lies_is_no_other_option(tmp_path: Path) -> None:
    assert options_said(AgentOptions(transcript=tmp_path / "record.jsonl")) == options_said(AgentOptions())


@pytest.mark.parametrize(
    "changed",
    [
        {"limits": Limits(corrections=3)},
        {"limits": Limits(tokens=1)},
        {"prices": Prices(usd_per_million_input=1, usd_per_million_output=1)},
        {"feedback": "bit"},
        {"repairs": False},
        {"mode": "text"},
        {"knowledge_tokens": 1},
        {"max_output_tokens": 1},
    ],
    ids=str,
)
def test_every_option_that_changes_an_answer_counts(changed: dict[str, Any]) -> None:
    options = replace(UNHURRIED, **changed)
    assert options_said(options) != options_said(UNHURRIED)
    assert solver_digest(replace(BUILTIN, options=options)) != solver_digest(BUILTIN)


def test_no_option_is_forgotten() -> None:
    assert {*options_said(AgentOptions()), "transcript"} == set(AgentOptions.__struct_fields__)


def test_case_epoch_solver_and_calibration_tell_keys_apart() -> None:
    keys = [
        key_of(CASE, 1, BUILTIN),
        key_of(OTHER_CASE, 1, BUILTIN),
        key_of(CASE, 2, BUILTIN),
        key_of(CASE, 1, Failing()),
        key_of(CASE, 1, Failing(raises=("case-1",))),
        key_of(CASE, 1, replace(BUILTIN, calibration=CustomCalibration(name="a"))),
        # The same name with other constants.
        key_of(CASE, 1, replace(BUILTIN, calibration=CustomCalibration(name="a", made_from="b"))),
        key_of(CASE, 1, replace(BUILTIN, calibration=CustomCalibration(name="b"))),
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(CASE.model_copy(), 1, replace(BUILTIN)) == keys[0]


class Playing(Failing, frozen=True):
    """A solver that defines its own key."""

    folder: Path = Path()
    digest: str = ""


class Strange(Failing, frozen=True):
    """A solver with a field that cannot be compared."""

    thing: object = field(default_factory=object)


def test_a_solver_may_say_itself_what_it_plays(tmp_path: Path) -> None:
    played = Playing(folder=tmp_path, digest="a")
    assert solver_digest(played) == solver_digest(replace(played, folder=tmp_path / "elsewhere"))
    assert solver_digest(played) != solver_digest(replace(played, digest="b"))


def test_fields_of_a_user_s_own_dataclass_count() -> None:
    @dataclass(frozen=True)
    class Drawn:
        temperature: float
        name: str = "drawn"
        is_deterministic: bool = False
        calibration: CustomCalibration | None = None
        options: AgentOptions = UNHURRIED

        def client(self, posed: PosedCase, epoch: int) -> ModelClient | None:
            return None

    assert solver_digest(Drawn(0.1)) == solver_digest(Drawn(0.1)) != solver_digest(Drawn(0.2))


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(InputError, match=r"thing: object cannot be compared .* without a journal"):
        key_of(CASE, 1, Strange())


def test_the_package_is_what_it_is_made_of() -> None:
    assert package_digest() == package_digest.__wrapped__()
    assert len(package_digest()) == 64
