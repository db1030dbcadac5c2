"""The figures of a request that a follow-up may change without naming their value: double, add, go back, a bare number.

What each is now is read off the intent; it states nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...tools.catalog.hardware import find_accelerator
from ...tools.errors import InputError
from ...tools.plan.latency_limits import LATENCY_FIELDS, LATENCY_LIMITS
from ..intent.intent import HardwareChoice, Intent
from ..languages.say import say
from .edits import Spoken


def _of_load(field: str, intent: Intent) -> float | None:
    return getattr(intent.workload, field)


# The first that fits is meant where a text names none.
FIGURES: dict[str, Callable[[Intent], float | None]] = {
    "gpus": lambda intent: None if intent.hardware is None else intent.hardware.gpus,
    "nodes": lambda intent: None if intent.hardware is None else intent.hardware.nodes,
    "concurrency": lambda intent: None if intent.concurrency_open else intent.workload.concurrency,
    "input_tokens": lambda intent: intent.workload.input_tokens,
    "output_tokens": lambda intent: intent.workload.output_tokens,
    **{field: partial(_of_load, field) for field in LATENCY_FIELDS},
    "request_rate": lambda intent: intent.workload.request_rate,
    "min_tokens_per_second": lambda intent: intent.workload.min_tokens_per_second,
    "expert_imbalance": lambda intent: intent.workload.expert_imbalance,
    "usd_per_gpu_hour": lambda intent: intent.usd_per_gpu_hour,
}
WHOLE = frozenset({"gpus", "nodes", "concurrency", "input_tokens", "output_tokens"})
TITLES = {
    "gpus": "GPUs",
    "nodes": "nodes",
    "concurrency": "concurrency",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "request_rate": "requests/s",
    "min_tokens_per_second": "tokens/s",
    "expert_imbalance": "load of the busiest experts over the mean",
    "usd_per_gpu_hour": "USD per GPU hour",
}


def title(name: str) -> str:
    """The name of a figure in messages."""
    latency = next((limit.name for limit in LATENCY_LIMITS if limit.field == name), None)
    return say(TITLES.get(name, name.replace("_", " "))) if latency is None else limit_title(latency)


def limit_title(latency: str) -> str:
    """The name of a limit on a latency in messages."""
    return say("{latency} limit (ms)", latency=say(latency))


def shown(value: float) -> str:
    """A figure as a reading says it: whole where it is whole, thousands apart."""
    return f"{int(value):,}" if value == int(value) else f"{value:,g}"


def sum_text(value: float, sign: str, by: float, result: float) -> str:
    """How a figure came about, as a reading says it: "16 + 8 = 24"."""
    return f"{shown(value)} {sign} {shown(by)} = {shown(result)}"


def last_changed(spoken: Sequence[Spoken]) -> str | None:
    """The figure by which the last two different requests differ; `None` if they differ by several."""
    for before, after in zip(reversed(spoken[:-1]), reversed(spoken), strict=False):
        names = [name for name, get in FIGURES.items() if get(before.intent) != get(after.intent)]
        if "gpus" in names and "nodes" in names:  # the number of nodes follows from that of the GPUs
            names.remove("nodes" if after.said.gpus is not None else "gpus")
        if names:
            return names[0] if len(names) == 1 else None
    return None


def unlike(hardware: HardwareChoice | None, card: str | None, each: int | None) -> str | None:
    """Why GPUs called `card`, or nodes of `each` GPUs, are not like those of `hardware`; `None` where they are."""
    if hardware is None:
        return None
    if each is not None and each != hardware.gpus_per_node:
        nodes = "the nodes have {each} GPUs each, and a plan has nodes of one size; say all of them"
        return say(nodes, each=hardware.gpus_per_node)
    if card is None:
        return None
    try:
        named = find_accelerator(card)
    except InputError:
        return say("{card} is no accelerator that is known; say the hardware as a whole", card=card)
    present = hardware.accelerator if isinstance(hardware.accelerator, str) else hardware.accelerator.id
    if named.id != present:
        kinds = "the GPUs are {present}, and a plan has one kind; say all of them, such as '16 {card}'"
        return say(kinds, present=present, card=card)
    return None


def example(intent: Intent, name: str) -> str:
    """A field with a figure, as an example."""
    value = FIGURES[name](intent) if name in FIGURES else None
    return f"{title(name)} {2 * value if value else 16:g}"
