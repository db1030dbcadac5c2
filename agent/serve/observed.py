"""Observes requests: one line of log each, counts for Prometheus, and refusals as answers.

Nothing of what was asked or answered is in either: the method, the template of the route, the status and the time.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import RefusalError, broken

_BUCKETS_S = (0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0)
_NOWHERE = "(none)"
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})


class Counts:
    """How many requests there were, by route and status, and how long they took."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._slower: Counter[tuple[str, float]] = Counter()
        self._seconds: dict[str, float] = {}

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests[method, route, status] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds
        for bucket in _BUCKETS_S:
            self._slower[route, bucket] += seconds <= bucket

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Everything as Prometheus reads it; `gauges` are current numbers by name, each with its meaning."""
        lines = ["# HELP shardwright_requests_total Requests that were answered.",
                 "# TYPE shardwright_requests_total counter"]  # fmt: skip
        totals: Counter[str] = Counter()
        for (method, route, status), count in sorted(self._requests.items()):
            lines.append(f'shardwright_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
            totals[route] += count
        lines += ["# HELP shardwright_request_seconds Time until a request was answered.",
                  "# TYPE shardwright_request_seconds histogram"]  # fmt: skip
        for route, total in sorted(totals.items()):
            for bucket in _BUCKETS_S:
                at_most = self._slower[route, bucket]
                lines.append(f'shardwright_request_seconds_bucket{{route="{route}",le="{bucket:g}"}} {at_most}')
            lines.append(f'shardwright_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}')
            lines.append(f'shardwright_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'shardwright_request_seconds_count{{route="{route}"}} {total}')
        for name, (meaning, value) in gauges.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


class Observed:
    """Around everything else: what is refused or broken becomes an answer, and each request is counted and logged."""

    def __init__(self, app: ASGIApp, counts: Counts, log: Callable[[str], None] | None, mounted: Iterable[str]) -> None:
        self._app, self._counts, self._log, self._mounted = app, counts, log, frozenset(mounted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.monotonic(), 0

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, seen)
        except asyncio.CancelledError:
            raise
        except Exception as fault:  # noqa: BLE001 - the last place where a fault of ours can be answered
            refusal = next((error for error in (fault, fault.__cause__) if isinstance(error, RefusalError)), None)
            if refusal is None:
                log_fault(fault)
            if not status:
                await (refusal or broken()).response(scope["path"])(scope, receive, seen)
            # An answer that has begun ends here, and its connection with it.
        finally:
            self._count(scope, status, time.monotonic() - begin)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        template = getattr(scope.get("route"), "path", _NOWHERE)
        route = scope["path"] if scope["path"] in self._mounted else template
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._counts.add(method, route, status, seconds)
        if self._log is not None:
            self._log(f"{method} {route} {status or 'cut'} {seconds * 1e3:.0f} ms")


def log_line(line: str) -> None:
    """Write one line to the log, with the time."""
    sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {line}\n")


def log_fault(fault: BaseException) -> None:
    """Write where a fault of ours arose. Its message is left out: it may quote what was asked."""
    where = " < ".join(
        f"{frame.filename.rpartition('shardwright/')[2]}:{frame.lineno}"
        for frame in reversed(traceback.extract_tb(fault.__traceback__)[-6:])
    )
    log_line(f"fault {type(fault).__name__} at {where}")


def resident_bytes() -> int:
    """Memory that this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - a file of the system
            import resource

            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, ImportError, ValueError, IndexError):
        return 0
