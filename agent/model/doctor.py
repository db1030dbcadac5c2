"""Examines an endpoint: whether it answers, what it supports, and the best settings for it.

It changes nothing and plans nothing; it makes about seven small requests, at their usual cost.
"""

from __future__ import annotations

from typing import Any, Literal

from ...tools.frozen import Frozen
from . import probes
from .deadline import Deadline
from .endpoint import EndpointClient
from .probes import MIN_CONTEXT_TOKENS, Check, timed
from .settings import VARIABLES

# Faults after which no other probe is useful.
_DOWN = {"unreachable", "timeout", "key_refused", "server_error", "rate_limited"}
# Only the probe of the key and the address is retried more often.
PROBE_ATTEMPTS = 2


class DoctorReport(Frozen):
    """What was found. `suits` is the mode that the endpoint keeps best; `None` where it gives no answers at all.

    `dialect` is how schemas are written for it.
    """

    endpoint: str
    model: str
    dialect: str
    checks: tuple[Check, ...]
    suits: Literal["tools", "schema", "text"] | None
    context_tokens: int | None
    requests: int
    advice: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """0 if it works, 1 if not well enough, 3 if it is down."""
        if self.suits is None:
            return 3
        return 1 if self.suits == "text" else 0


def examine(client: EndpointClient, deadline: Deadline) -> DoctorReport:
    """The report on `client`; probes without time left are skipped."""
    listing: list[dict[str, Any]] = []

    def models() -> probes.Found:
        listing.extend(client.models(deadline))
        return probes.listed(listing, client.name)

    first = timed("model listed", models)
    if first.fault is not None and first.fault not in _DOWN:
        first = first.model_copy(update={"state": "weak", "detail": f"no list of models: {first.detail}"})
    checks = [first]
    plain = _probe("plain answer", probes.answers, client, deadline, is_wanted=first.fault not in _DOWN)
    checks.append(plain)
    is_up = plain.state in ("ok", "weak")
    tools = _probe("tools", probes.calls_tools, client, deadline, is_wanted=is_up)
    has_tools = tools.state in ("ok", "weak")
    parallel = _probe("parallel calls", probes.calls_in_parallel, client, deadline, is_wanted=has_tools)
    schema = _probe("strict schema", probes.keeps_schema, client, deadline, is_wanted=is_up)
    stream = _probe("streaming", probes.streams, client, deadline, is_wanted=is_up)
    checks += [tools, parallel, schema, stream]
    context, dialect = probes.context_tokens(listing, client.name), client.features.dialect
    if context is None and dialect.longer_context is not None:
        length = _probe("context", probes.reads_whole, client, deadline, is_wanted=is_up)
    else:
        length = _context_check(context)
    checks.append(length)
    suits = None if not is_up else "tools" if tools.state == "ok" else _second(tools, schema)
    return DoctorReport(
        endpoint=client.settings.base_url,
        model=client.name,
        dialect=dialect.name,
        checks=tuple(checks),
        suits=suits,
        context_tokens=context,
        requests=client.requests_made,
        advice=_advice(client, suits, checks),
    )


def _second(tools: Check, schema: Check) -> Literal["tools", "schema", "text"]:
    """The best mode if tools are not called properly; wrong arguments are better than no form at all."""
    if schema.state in ("ok", "weak"):
        return "schema"
    return "tools" if tools.state == "weak" else "text"


def _probe(name: str, probe: Any, client: EndpointClient, deadline: Deadline, *, is_wanted: bool) -> Check:
    if not is_wanted:
        return Check(name=name, state="skipped", detail="not tried: what it needs failed")
    if deadline.is_over():
        return Check(name=name, state="skipped", detail="not tried: no time was left")
    return timed(name, lambda: probe(client, deadline.sooner(client.settings.request_timeout_s)))


def _context_check(tokens: int | None) -> Check:
    if tokens is None:
        return Check(name="context", state="skipped", detail="the server does not tell its length")
    state = "ok" if tokens >= MIN_CONTEXT_TOKENS else "weak"
    return Check(name="context", state=state, detail=f"{tokens:,} tokens")


def _advice(client: EndpointClient, suits: str | None, checks: list[Check]) -> tuple[str, ...]:
    if suits is None:
        failed = next((check for check in checks if check.state == "failed"), None)
        return (failed.detail,) if failed is not None else ()
    mode, advice = client.settings.mode, []
    if mode == suits or (mode == "auto" and suits == "tools"):
        advice.append(f"mode {mode} suits it: nothing is to be set")
    else:
        advice.append(f"set {VARIABLES['mode']}={suits}")
    if suits == "text":
        advice.append("it keeps neither tools nor schemas, and text takes more corrections: a larger model does better")
    if any(check.name == "context" and check.state == "weak" for check in checks):
        longer = client.features.dialect.longer_context or "serve it with a longer context"
        advice.append(f"{longer} (at least {MIN_CONTEXT_TOKENS:,} tokens)")
    if any(check.name == "model listed" and check.state == "weak" and check.fault is None for check in checks):
        advice.append("name a model that the server lists, if the answers are not those of the model you mean")
    return tuple(advice)
