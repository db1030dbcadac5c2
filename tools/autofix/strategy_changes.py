"""What became of the strategy block: every decision that the mended plan states otherwise than the document as read.

What was left out and is what the format takes for left out is no change. It judges nothing and never raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..bounds import INDEX
from ..plan.document import PHASES, PhaseStrategy
from ..plan.placement import even_cut
from ..plan.view import as_int, as_list, as_mapping

# What a field that is left out says; `None` where it says nothing.
_LEFT_OUT: Mapping[str, object] = {
    **dict.fromkeys(("pp", "sp", "ep", "tp", "tp_ffn", "attention_dp", "tp_expert", "kv_sp"), 1),
    "sp_kind": "all_gather",
}
_LONGEST = 40
_MOST = int(INDEX.most)


def strategy_changes(read: Mapping[str, Any] | None, plan: Mapping[str, Any] | None) -> tuple[str, ...]:
    """One line for each decision that differs: `prefill tp_ffn 8 -> 1`, `dp 2 -> 1`; none where there is no plan."""
    if plan is None:
        return ()
    before, after = as_mapping((read or {}).get("strategy")), as_mapping(plan.get("strategy"))
    return tuple(_changes(before, after))


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    yield from _change("dp", before.get("dp"), after.get("dp"), left_out=1)
    if before.get("gpu_count") is not None:
        yield from _change("gpu_count", before["gpu_count"], after.get("gpu_count"), left_out=None)
    for phase in PHASES:
        old, new = as_mapping(before.get(phase)), as_mapping(after.get(phase))
        for name in PhaseStrategy.model_fields:
            yield from _change(f"{phase} {name}", old.get(name), new.get(name), left_out=_LEFT_OUT.get(name))


def _change(what: str, before: object, after: object, *, left_out: object) -> Iterator[str]:
    if _said(before, left_out) != _said(after, left_out):
        yield f"{what} {_shown(before)} -> {_shown(after if after is not None else left_out)}"


def _said(value: object, left_out: object) -> object:
    """What a value says, in whatever form: a number as text is that number, an even cut says no cut."""
    if value is None:
        return left_out
    if isinstance(value, str):
        text = value.strip()
        return int(text) if len(text) < len(str(_MOST)) and text.isascii() and text.isdigit() else value
    if isinstance(value, int | float):
        return value
    sizes = _sizes(value)
    return None if sizes is not None and sizes == even_cut(sum(sizes), len(sizes)) else sizes or "unreadable"


def _sizes(value: object) -> tuple[int, ...] | None:
    sizes = [as_int(size) for size in as_list(value)]
    whole = [size for size in sizes if size is not None and 1 <= size <= _MOST]
    return tuple(whole) if whole and len(whole) == len(sizes) else None


def _shown(value: object) -> str:
    """`value` for people, whatever a document holds there."""
    if value is None:
        return "not stated"
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, int | float) and abs(value) <= _MOST:
        return f"{value}"
    sizes = _sizes(value)
    return f"{list(sizes[:_LONGEST])}" if sizes is not None else "unreadable"
