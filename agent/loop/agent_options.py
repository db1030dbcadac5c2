"""How an agent works, as whoever starts one says it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct, field

from ...tools.errors import InputError
from ..runs.time_limit import TIME_LIMIT_S
from .budget import Limits, Prices
from .feedback import Level

# Most tokens of knowledge in a prompt.
KNOWLEDGE_TOKENS = 5_300
# Who reads a request: the model beside the rules, or the rules alone.
Reads = Literal["model", "rules"]
# How a model is asked, the most demanding of its server first.
MODES = ("tools", "schema", "text")


class AgentOptions(Struct, frozen=True):
    """How an agent works: what a run may spend, how much a model is told, whether proposals are repaired.

    The time of `limits` runs from the call, the search for the built-in proposer's plan included. That search ends
    with the best that it has after `time_limit_s`, or with the time of `limits`, and each search of a tool likewise; no
    step begins after the time, and a step of a tool ends with it.
    `mode`: `tools`, `schema` (strict answers, no tools), `text`; `auto` begins with tools and goes on with what the
    server does not refuse. `transcript` is the file that each run is written to. `reader`: whether the model reads the
    request too, beside the rules, or the `rules` alone. `reference`: whether the model is given the built-in plan
    and its own has to match it; without, whatever is valid is accepted, so that the worth of the reference shows.
    """

    limits: Limits = field(default_factory=Limits)
    prices: Prices | None = None
    feedback: Level = "patch"
    repairs: bool = True
    mode: str = "auto"
    knowledge_tokens: int = KNOWLEDGE_TOKENS
    max_output_tokens: int = 4096
    transcript: Path | None = None
    time_limit_s: float = TIME_LIMIT_S
    reader: Reads = "model"
    reference: bool = True

    def __post_init__(self) -> None:
        """Refuse an unknown mode.

        Raises:
            InputError: `mode` or `reader` is not one of those above.
        """
        if self.reader not in get_args(Reads):
            raise InputError(f"AgentOptions: reader {self.reader!r} is none of {', '.join(get_args(Reads))}")
        if self.mode not in ("auto", *MODES):
            raise InputError(f"AgentOptions: mode {self.mode!r} is none of auto, {', '.join(MODES)}")
