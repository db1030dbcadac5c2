"""What the person would have to allow for a better plan: a search for a question near theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace
from pydantic import TypeAdapter, ValidationError

from ...tools.errors import InputError
from ...tools.plan.document import DType, Relaxation
from ...tools.plan.latency_limits import LATENCY_LIMITS
from ...tools.search.candidate import SearchRequest

FORMS = (
    "ttft_ms = 900; tpot_ms = 42; end_to_end_ms = 9000; weights = fp8; kv_cache = fp8; activations = fp8; "
    "relax = attention_dp"
)
_LINE = re.compile(r"(?P<name>[a-z_]{1,20}) ?(?:<=|=) ?(?P<value>[\w.]{1,40})")
_LIMITS = {limit.figure: limit.field for limit in LATENCY_LIMITS}
_FORMATS = ("weights", "kv_cache", "activations")
_DTYPE: TypeAdapter[DType] = TypeAdapter(DType)


class WouldNeed(Struct, frozen=True):
    """A possible gain: the lines to allow, the plan, and its comparison."""

    allow: tuple[str, ...]
    plan: str
    words: str

    def __str__(self) -> str:
        return f"{', '.join(self.allow)}: {self.plan}, {self.words}"


def allowed(request: SearchRequest, lines: Sequence[str]) -> SearchRequest:
    """`request` as if the person had allowed `lines`, each in one of `FORMS`.

    Raises:
        InputError: a line is malformed, or names no number format or relaxation.
    """
    for line in lines:
        match = _LINE.fullmatch(" ".join(line.lower().split()))
        if match is None:
            raise InputError(f"allow {line[:80]!r} was not understood; write {FORMS}")
        request = _with(request, match["name"], match["value"])
    return request


def _with(request: SearchRequest, name: str, value: str) -> SearchRequest:
    if name in _LIMITS:
        return replace(request, workload=request.workload.model_copy(update={_LIMITS[name]: _milliseconds(value)}))
    if name in _FORMATS:
        formats = request.precision.model_copy(update={name: _format(value)}).on(request.facts.accelerator)
        return replace(request, precision=formats)
    if name == "relax" and value in get_args(Relaxation):
        relaxations: tuple[Any, ...] = (*request.policy.relaxations, value)
        return replace(request, policy=request.policy.model_copy(update={"relaxations": relaxations}))
    raise InputError(f"allow '{name} = {value}' was not understood; write {FORMS}")


def _milliseconds(value: str) -> float:
    try:
        limit = float(value)
    except ValueError:
        limit = 0.0
    if not 0.0 < limit < 1e9:
        raise InputError(f"a limit of {value!r} ms is none; write {FORMS}")
    return limit


def _format(value: str) -> DType:
    try:
        return _DTYPE.validate_python(value)
    except ValidationError:
        raise InputError(f"{value!r} is no number format that is known: {', '.join(get_args(DType))}") from None
