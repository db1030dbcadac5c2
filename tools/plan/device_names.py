"""Device lists as people write them: `n0.g0–7`, `n0–3.g0–7`, instead of thirty-two names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DEVICE = re.compile(r"n(\d{1,9})\.g(\d{1,9})")
_MAX_RUNS = 6


def devices_text(names: Iterable[str]) -> str:
    """`names` with runs of GPUs and of nodes folded; after six runs the rest is counted."""
    by_node: dict[int, list[int]] = {}
    others: list[str] = []
    for name in dict.fromkeys(names):
        match = _DEVICE.fullmatch(name)
        if match is None:
            others.append(name)
        else:
            by_node.setdefault(int(match[1]), []).append(int(match[2]))
    by_gpus: dict[str, list[int]] = {}
    for node in sorted(by_node):
        by_gpus.setdefault(runs_text(by_node[node], ""), []).append(node)
    runs = [f"n{nodes}.g{gpus}" for gpus, members in by_gpus.items() for nodes in _node_runs(members)] + others
    shown = ", ".join(runs[:_MAX_RUNS])
    return shown if len(runs) <= _MAX_RUNS else f"{shown} and {len(runs) - _MAX_RUNS} more"


def _node_runs(nodes: list[int]) -> list[str]:
    return runs_text(nodes, "").split(",")


def runs_text(numbers: Iterable[int], separator_after: str = " ") -> str:
    """Whole numbers with runs folded: `0–7`, `0–3,8–11`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in runs]
    return f",{separator_after}".join(texts)
