"""Lack of progress: the same proposal with the same faults, or the same calls, again.

Meanings are compared: a proposal by the content hash of its document and the set of its broken rules, a call by its
name and its arguments as sorted JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field

from ...tools.input.strict_json import parse
from ...tools.input.strict_values import JsonError
from ..model.messages import ToolCall
from .judge import Judgement

# A repeated proposal is pointed out at the second time and ends the run at the third.
MOST_SAME_PROPOSALS = 3
# The same calls turn after turn are pointed out from the first number on, and end the run at the second.
SAME_CALLS_WARNED = 3
MOST_SAME_CALLS = 5


class Progress(Struct):
    """The proposals and calls of one run."""

    _proposals: Counter[tuple[str, frozenset[str]]] = field(default_factory=Counter[tuple[str, frozenset[str]]])
    _last_calls: tuple[tuple[str, str], ...] = ()
    _same_calls: int = 0

    def times_proposed(self, judgement: Judgement) -> int:
        """How often this proposal was judged, this time included."""
        key = (judgement.content_hash or judgement.refusal or "", frozenset(judgement.rules))
        self._proposals[key] += 1
        return self._proposals[key]

    def times_called(self, calls: Iterable[ToolCall]) -> int:
        """How often in a row these calls were made, this time included."""
        now = tuple((call.name, _canonical(call.arguments)) for call in calls)
        self._same_calls = self._same_calls + 1 if now == self._last_calls else 1
        self._last_calls = now
        return self._same_calls


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(parse(arguments, ""), sort_keys=True)
    except JsonError:
        return arguments
