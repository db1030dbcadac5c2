"""Errors of the package reach another process as they were raised: message, class and fields."""

from __future__ import annotations

import copy
import pickle

import pytest

import shardwright
from shardwright.agent.model.messages import Usage
from shardwright.tools.catalog.hub_cache import UnknownRepositoryError
from shardwright.tools.errors import MissingFieldError, ShardwrightError, UnknownArgumentError
from shardwright.tools.input.strict_values import JsonError
from shardwright.tools.language.errors import RequestError

_RAISED = (
    shardwright.ShardwrightError("plain"),
    shardwright.InputError("wrong", "/nodes/1"),
    shardwright.ServiceError("down"),
    shardwright.UnknownNameError("model", "lama", ("llama-3.1-8b",)),
    shardwright.EndpointError("timeout", "no answer", 3, Usage(input_tokens=5, output_tokens=0)),
    UnknownRepositoryError("org/name", ("llama-3.1-8b",)),
    UnknownArgumentError("modle", ("model", "hardware")),
    MissingFieldError("hidden_size", "config.json"),
    JsonError("a.json", "no JSON", 1, 2, is_json=False),
    RequestError("no model is named", field="model"),
)


@pytest.mark.parametrize("error", _RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "sent", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickled", "copied"]
)
def test_an_error_is_the_same_in_another_process(error: ShardwrightError, sent: object) -> None:
    assert callable(sent)
    arrived = sent(error)
    assert type(arrived) is type(error) and str(arrived) == str(error)
    assert vars(arrived) == vars(error) and arrived.exit_status == error.exit_status
