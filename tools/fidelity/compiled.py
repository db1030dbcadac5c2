"""Runs the serving simulation as a fit needs it, thousands of times: means only, compiled where numba is installed.

numba is the extra `[fast]`. The core, the same that `serve` runs, knows nothing of it: its functions are compiled as
they stand and its classes by the annotations of their attributes; arguments and results have arrays in place of lists.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import make_dataclass
from functools import lru_cache
from importlib import import_module
from inspect import isfunction
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from msgspec.structs import astuple, replace

from ..errors import InputError
from ..performance.serving import admission, core, costs, pace, progress, state
from ..performance.serving.core import run
from ..performance.serving.inputs import requests_in, run_of
from ..performance.serving.load import Arrivals, Lengths, ServingTimes, StaticBatch, Statistics
from ..performance.serving.policy import Policy
from ..performance.serving.records import Rules, Seen, Totals
from ..performance.serving.replicas import shares_of
from ..performance.serving.step_table import StepTable
from ..performance.serving_estimate import Server, shown_late
from .engine_cases import Case

_searchsorted: Any = np.searchsorted
_Given = TypeVar("_Given", bound="tuple[object, ...] | StepTable")


@lru_cache(maxsize=1)
def compiled_run() -> Callable[..., Any] | None:
    """`core.run` compiled, for arguments that are all `in_arrays`; `None` where numba is not installed."""
    # By name, for it is not a dependency: the types must check without it.
    try:
        numba: Any = import_module("numba")
        extending: Any = import_module("numba.extending")
    except ImportError:
        return None
    parts = [part for module in (admission, core, costs, pace, progress) for part in vars(module).values()]
    for function in set(filter(isfunction, parts)):
        extending.register_jitable(function)
    extending.overload(bisect)(_place)
    known = _plain_types(numba.types)
    # A tuple of arrays counts the references to each wherever it is read, an object only those to itself.
    columns, seen = (_compiled_class(_class_of(record), record, known) for record in (StepTable, Seen))
    for plain_class in (state.Batch, state.GivenPrefixes, state.Group, state.Prices, state.Replica):
        extending.overload(plain_class, strict=False)(_maker_of(_compiled_class(plain_class, plain_class, known)))
    run: Any = core.run

    def in_objects(step: Any, rules: Any, load: Any, blank: Any) -> Any:
        return run(columns(*step), rules, load, seen(*blank))

    fast: Any = numba.njit(in_objects)

    def served(step: StepTable, *others: Any) -> Any:
        return fast(astuple(step), *others)

    return served


def _place(grid: Any, x: Any) -> Any:
    """Stands in for `bisect`, which numba does not know."""
    del grid, x

    def place(grid: Any, x: Any) -> Any:
        return _searchsorted(grid, x, side="right")

    return place


def _plain_types(types: Any) -> dict[Any, Any]:
    """The types of numba for those that the core annotates with, but for its classes."""
    known: dict[Any, Any] = {int: types.int64, float: types.float64, bool: types.boolean}
    known[list[tuple[int, int]]] = types.List(types.UniTuple(types.int64, 2))
    known[list[tuple[int, int, int]]] = types.List(types.UniTuple(types.int64, 3))
    for kind in (int, float):
        known[list[kind]] = types.List(known[kind])
        known[Sequence[kind]] = known[MutableSequence[kind]] = types.Array(known[kind], 1, "C")
    known[Rules] = types.BaseTuple.from_types([known[hint] for hint in get_type_hints(Rules).values()], Rules)
    return known


def _compiled_class(plain_class: type, annotated: type, known: dict[Any, Any]) -> Any:
    """`plain_class` compiled, with the attributes of `annotated`, which is added to the `known` types."""
    numba: Any = import_module("numba.experimental")
    fast = numba.jitclass({name: known[hint] for name, hint in get_type_hints(annotated).items()})(plain_class)
    known[annotated] = fast.class_type.instance_type
    known[list[annotated]] = import_module("numba").types.List(known[annotated])
    return fast


def _class_of(record: Any) -> type:
    """A class with all fields of a record as attributes and as arguments of its constructor."""
    dataclass: Any = make_dataclass(record.__name__, get_type_hints(record))
    return type(record.__name__, (), {"__init__": dataclass.__init__})


def _maker_of(fast: Any) -> Callable[..., Any]:
    """Stands in for calls of a class that numba compiled to `fast`."""

    def make(*arguments: Any) -> Any:
        return fast(*arguments)

    def maker(*arguments: Any) -> Any:
        del arguments
        return make

    return maker


def in_arrays(record: _Given) -> _Given:
    """A record of the core with arrays in place of lists, and numbers of the types that they are annotated with."""
    construct: Any = type(record)
    values = astuple(record) if isinstance(record, StepTable) else record
    fields = zip(_kinds(type(record)), values, strict=True)
    return construct(*(np.asarray(field, kind) if many else kind(field) for (kind, many), field in fields))


@lru_cache
def _kinds(of: type) -> list[tuple[Any, bool]]:
    """Of each field of a record: the type of its numbers, and whether it has many of them."""
    return [(get_args(hint)[0], True) if get_args(hint) else (hint, False) for hint in get_type_hints(of).values()]


@lru_cache(maxsize=8192)
def _run(policy: Policy, arrivals: Arrivals, lengths: Lengths) -> tuple[Any, Any] | None:
    """Rules and requests, in arrays, of a policy whose client costs nothing; `None` where it cannot be served."""
    try:
        rules, requests = run_of(policy, arrivals, lengths)
    except InputError:
        return None
    return in_arrays(rules), in_arrays(requests)


def mean_times(server: Server, case: Case) -> ServingTimes | None:
    """Means of what users see, and the rate; `None` where the case has no answer with these constants."""
    policy = server.policy
    shares = shares_of(case.situation.arrivals, server.copies)
    arrivals = shares[0].arrivals
    # Replicas that get one request less count for that much less.
    busy = sum(requests_in(share.arrivals) * share.replicas for share in shares) / requests_in(arrivals)
    loaded = _run(replace(policy, client_s=0.0, client_s_per_token=0.0), arrivals, case.situation.lengths)
    if loaded is None:
        return None
    rules, load = loaded
    prompts, outputs = load.inputs, load.outputs
    count = len(prompts)
    seen = in_arrays(Seen.blank(count))
    client = policy.client_s + policy.client_s_per_token * prompts
    serve = compiled_run() or run
    paused = load._replace(pauses=load.pauses + client)
    # The compiled run returns a plain tuple.
    done_run: Any = serve(in_arrays(server.table), rules, paused, seen)
    totals = Totals(*done_run)
    if totals.finished < count:
        return None
    first, done, arrived = np.asarray(seen.first), np.asarray(seen.done), np.asarray(seen.arrived)
    if isinstance(arrivals, StaticBatch):
        first = np.full(count, first.max())
    many = outputs > 1
    tpot = float(((done - first)[many] / (outputs[many] - 1)).mean()) if many.any() else 0.0

    times = ServingTimes(
        ttft=Statistics.constant(float((first - arrived + client).mean())),
        tpot=Statistics.constant(tpot),
        end_to_end=Statistics.constant(float((done - arrived + client).mean())),
        output_tokens_per_s=float(outputs.sum() / totals.end_s) * busy,
        makespan_s=float(totals.end_s),
        running=float(totals.decoding_s / totals.end_s) * busy,
    )
    return shown_late(times, server.first_token_steps, case.situation.lengths)
