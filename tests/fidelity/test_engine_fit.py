"""The fit of engine constants: what it may move, and what it leaves as it is."""

from __future__ import annotations

import math

import numpy as np

from shardwright.tools.fidelity.engine_fit import NAMES, PRIORS, SHARES, constants_of, may_read_again, prior


def test_what_is_assumed_before_anything_was_measured_are_the_priors() -> None:
    constants = prior().constants.model_dump()
    assert all(math.isclose(constants[name], value) for name, (value, _) in PRIORS.items())


def test_a_share_stays_between_nothing_and_all() -> None:
    place = NAMES.index(SHARES[0])
    for value, wanted in ((-0.5, 0.0), (0.25, 0.25), (7.0, 1.0)):
        logs = np.array(prior().logs)
        logs[place] = value
        assert getattr(constants_of(logs), SHARES[0]) == wanted


def test_engines_of_today_read_a_cached_head_once() -> None:
    assert may_read_again(("trtllm", "session", "hopper")) and may_read_again(("vllm", "v0", "cdna3"))
    for wanted in (("vllm", "v0", "hopper"), ("vllm", "v1", "cdna3"), ("trtllm", "pytorch", "blackwell")):
        assert not may_read_again(wanted)
