"""The serving engines that are known, however they are spelled. A new one is its file and its place here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import lmdeploy, nim, sglang, trtllm, vllm
from .engine import Engine, RankOrder

# By name. NIM comes first, for it is named beside the engine that it runs.
ENGINES: Mapping[str, Engine] = {
    engine.name: engine for engine in (nim.ENGINE, vllm.ENGINE, sglang.ENGINE, trtllm.ENGINE, lmdeploy.ENGINE)
}
# The name of an engine with rules (EN).
EngineName = str
JUDGED: Mapping[EngineName, Engine] = {name: engine for name, engine in ENGINES.items() if engine.is_judged}
# Assumed where no engine is named: the one that most deployments run.
DEFAULT_ENGINE: Final = "vllm"
# Starts one of the engines above, and does not say which.
FRONT: Final = "dynamo"
# Those that are named beside the engine that they start.
FRONTS = frozenset((FRONT, nim.ENGINE.name))
# What may be named, those with rules first.
KNOWN = (*JUDGED, *(name for name in ENGINES if name not in JUDGED), FRONT)
_MAX_READ, _MAX_SHOWN = 200, 60


def _letters(text: str | None) -> str:
    return "".join(letter for letter in (text or "")[:_MAX_READ].lower() if letter.isalnum())


def _spelled(text: str | None) -> list[Engine]:
    letters = _letters(text)
    return [engine for engine in ENGINES.values() if any(spelling in letters for spelling in engine.spellings)]


def engine_name(text: str | None) -> str | None:
    """The engine that `text` names however it is spelled; `None` where it names none that is known."""
    return next((engine.name for engine in _spelled(text)), None)


def known_engine(text: str | None) -> str | None:
    """As `engine_name`, or the front that starts one of them."""
    return engine_name(text) or (FRONT if FRONT in _letters(text) else None)


def engine_of(text: str | None) -> EngineName | None:
    """The engine with rules that `text` names; `None` where it names none, an unknown one, or several."""
    names = [name for name, engine in JUDGED.items() if engine in _spelled(text)]
    return names[0] if len(names) == 1 else None


def engine_or_usual(*texts: str | None) -> EngineName:
    """The engine with rules that the first of `texts` with one names; the usual one where none does."""
    return next((name for name in map(engine_of, texts) if name is not None), DEFAULT_ENGINE)


def rank_order(text: str | None) -> RankOrder:
    """How the engine that `text` names numbers the ranks of a replica; stage by stage where it names none."""
    name = engine_of(text)
    return "stages" if name is None else JUDGED[name].rank_order


def unjudged_engine(text: str | None) -> tuple[str, ...]:
    """The remark that rules on engines (EN) pass by a plan that names `text`; none where they judge it."""
    if not text or names_known(text):
        return ()
    titles = ", ".join(engine.title for engine in JUDGED.values())
    return (f"no rule on engines judges this plan: {text[:_MAX_SHOWN]!r} is not one of {titles}",)


def names_known(text: str | None) -> bool:
    """Whether `text` names one of the engines with rules, or what starts one of them."""
    return engine_of(text) is not None or FRONT in _letters(text)
