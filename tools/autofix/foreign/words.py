"""Reads words in a foreign proposal with the reader of `tools/language`, which is loaded when it is first needed.

Degrees in the value of a key are read whole or not at all. Never raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from ...catalog.hardware import mentions
from ...errors import InputError
from ...plan.document import PHASES
from .lexicon import any_case

if TYPE_CHECKING:
    from ...language.errors import RequestError
    from ...language.said import Said, StatedStrategy

_MAX_CHARS = 300
# Different texts of one proposal that are read; one may take a few ms.
_MOST_TEXTS = 500
# Words without one of these state no degree.
_DEGREE = any_case(r"[tpesd]p(?![a-z])|parallel|并行|pipelin|流水|stage|级|replica|副本|copies|\dp|data|tensor")

Degrees = Mapping[str | None, Mapping[str, Any]]
"""Degrees by phase (`None`: both); layers of each stage are a list."""


class HardwareWords(Struct, frozen=True):
    """Hardware in a line: the accelerator's id, and those of `nodes`, `gpus_per_node` and `total` that it counts.

    `problem`: why it names no accelerator although it seems to.
    """

    accelerator: str | None = None
    counts: dict[str, int] = field(default_factory=dict[str, int])
    problem: str | None = None


class Words:
    """Reads the words of one proposal, each text once, and a bounded number of them."""

    def __init__(self) -> None:
        self._degrees: dict[str, Degrees | None] = {}
        self._hardware: dict[str, HardwareWords] = {}

    def degrees(self, text: str) -> Degrees | None:
        """As `degrees_of`."""
        if text not in self._degrees:
            if len(self._degrees) >= _MOST_TEXTS or len(text) > _MAX_CHARS or not _DEGREE.search(text):
                return None
            self._degrees[text] = degrees_of(text)
        return self._degrees[text]

    def hardware(self, text: str) -> HardwareWords:
        """As `hardware_of`."""
        if text not in self._hardware:
            if len(self._hardware) >= _MOST_TEXTS:
                return HardwareWords()
            self._hardware[text] = hardware_of(text)
        return self._hardware[text]


def hardware_of(text: str) -> HardwareWords:
    """The hardware that `text` names."""
    text = text[:_MAX_CHARS]
    if not mentions(text):
        return HardwareWords()
    said = said_in(text)
    if isinstance(said, InputError):
        return HardwareWords(problem=said.reason)
    if said.accelerator is None:
        return HardwareWords(problem="several accelerators are named")
    return HardwareWords(said.accelerator, counts_in(said))


def counts_in(said: Said) -> dict[str, int]:
    """The counts of nodes and GPUs, under the names that claims have for them."""
    counts = {"nodes": said.nodes, "gpus_per_node": said.gpus_per_node, "total": said.gpus}
    return {name: number for name, number in counts.items() if number is not None}


def degrees_of(text: str) -> Degrees | None:
    """The degrees that the whole of `text` states; `None` if it says anything else or contradicts itself."""
    from ...language.layouts.whole_strategy import strategy_of_words

    try:
        return degrees_in(strategy_of_words(text))
    except InputError:
        return None


def number_of(text: str) -> int | None:
    """The whole number that `text` spells out: "two", "四"; `None` if it says anything else."""
    from ...language.patterns.quantities import read_whole

    return read_whole(text.strip()) if len(text) < 40 else None


def degrees_in(strategy: StatedStrategy) -> Degrees:
    """The degrees of a stated strategy by phase, those that both share under `None`."""
    of_phase: dict[str, dict[str, int]] = {
        phase: getattr(strategy, phase).model_dump(exclude_none=True) for phase in PHASES
    }
    prefill, decode = of_phase.values()
    both = {name: number for name, number in prefill.items() if decode.get(name) == number and name != "replicas"}
    by_phase: dict[str | None, dict[str, int]] = {None: both if strategy.dp is None else {**both, "dp": strategy.dp}}
    for phase, degrees in of_phase.items():
        by_phase[phase] = {name: number for name, number in degrees.items() if name not in both}
    return {phase: degrees for phase, degrees in by_phase.items() if degrees}


def said_in(text: str) -> Said | RequestError:
    """What `text` says, or the error if the reader refuses it."""
    from ...language.errors import RequestError
    from ...language.request import read_words

    try:
        return read_words(text)
    except RequestError as error:
        return error
