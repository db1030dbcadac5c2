"""What an engine's own ways of splitting would bring to a plan of the strict rules, or where these have no plan.

Nothing is relaxed unasked (rules.md R13, R15): this only says what they would bring, and how to ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ...tools.checkpoint import if_time
from ...tools.engines.defaults import engine_relaxations, possible_relaxations
from ...tools.engines.names import DEFAULT_ENGINE, JUDGED
from ...tools.plan.document import Relaxation, ServingBlock, Strategy
from ...tools.search.batch import searched, sized_with_batch
from ...tools.search.candidate import Candidate, SearchRequest
from ...tools.search.kinds import Kind
from ...tools.search.ranking import worth
from ...tools.search.reach import Sized
from ...tools.search.sizing import fewest_gpus
from .reasons import figures, named

# What attention DP would gain is mentioned from this gain on.
_GROUPS_GAIN = 0.05
# What an engine does by itself counts on more GPUs and from less on: no plain command beats a plan unmentioned.
_OWN_GPUS, _OWN_GAIN = 64, 0.01
NO_ENGINE_NAMED = "No engine was named"
# From this gain on the first lines mention it.
_FIRST_GAIN = 0.05


class _Way(Struct, frozen=True):
    """Relaxations beside those in force, the words and options that bring them, and the engine that they name.

    `first`: what the first lines say of the way, before how much better its best is.
    """

    added: tuple[Relaxation, ...]
    words: str
    engine: str | None = None
    first: str = ""


class _Gain(Struct, frozen=True):
    """The best candidate of a way, and by what share it is better."""

    best: Candidate
    share: float


class Gains(Struct, frozen=True):
    """What relaxations would gain on the hardware of a plan; `first`: the largest gain, if it is worth a first line."""

    hint: str | None = None
    first: str | None = None


def gains(request: SearchRequest, chosen: Candidate) -> Gains:
    """The gain over `chosen` of the assumed engine's own relaxations, or of the one that large MoE deployments use.

    Phases are together or apart as in `chosen`: with those that are together a relaxation gains at least so much.
    """
    if request.disaggregated or request.facts.gpus == 1:
        return Gains()
    auto = _way_of_engine(request) if request.facts.gpus <= _OWN_GPUS else None
    groups = _groups(request)
    ways = [(auto, _gain(request, chosen, auto), _OWN_GAIN), (groups, _gain(request, chosen, groups), _GROUPS_GAIN)]
    hints = [_better(*row) for row in ways]
    most = max(
        ((gain.share, way.first) for way, gain, _ in ways if way is not None and gain is not None), default=(0.0, "")
    )
    first = f"{most[1]} {most[0]:.0%} better: see “Why this one”" if most[0] >= _FIRST_GAIN else None
    return Gains("; ".join(filter(None, hints)) or None, first)


def with_engine(request: SearchRequest, usual_node: int, at_most: int) -> str | None:
    """The plan with what the engine does by itself, else with what its options allow.

    It is on this hardware, else on more GPUs, `at_most` in all.
    """
    auto, every = _way_of_engine(request), _way_of_options(request)
    for way in filter(None, (auto, every)):
        best = _best(request, way)
        if best is not None:
            way, best = _no_more_than_used(request, way, best)
            return f"there is a plan {way.words}: {named(best)} with {figures(best)}"
    return _on_another_number(request, (auto, every), usual_node, request.facts.gpus, at_most)


def fewer_with_engine(request: SearchRequest, usual_node: int) -> str | None:
    """The fewest GPUs that suffice once the assumed engine is named; `request` has the fewest without."""
    return _on_another_number(request, (_way_of_engine(request),), usual_node, 0, request.facts.gpus - 1)


def fewer_with_groups(request: SearchRequest, usual_node: int) -> str | None:
    """The fewest GPUs that suffice with attention DP; `request` has the fewest without."""
    return _on_another_number(request, (_groups(request),), usual_node, 0, request.facts.gpus - 1)


def other_with_engine(
    request: SearchRequest, kinds: Iterable[Kind], least: Callable[[Iterable[Kind]], Sized | None]
) -> str | None:
    """The `least` hardware of `kinds` that suffices once the assumed engine is named; `None` if it is `request`'s."""
    way = _way_of_engine(request)
    if way is None:
        return None
    asked = [replace(kind, request=_asked(kind.request, way)) for kind in kinds]
    sized = if_time(f"other hardware {way.words}", lambda: least(asked))
    fitted = None if sized is None else _serving(sized)
    if fitted is None:
        return None
    (on, best), have = fitted, request.facts
    facts = on.facts
    if (facts.accelerator.id, facts.gpus) == (have.accelerator.id, have.gpus):
        return None
    return f"{facts.gpus} × {facts.accelerator.id} would do {way.words}: {named(best)} with {figures(best)}"


def _on_another_number(
    request: SearchRequest, ways: Iterable[_Way | None], usual_node: int, more_than: int, at_most: int
) -> str | None:
    """The first of `ways` by which more than `more_than` GPUs of the kind, and at most `at_most`, suffice."""
    for way in filter(None, ways):
        relaxed = _asked(request, way)
        look = partial(fewest_gpus, relaxed, usual_node, more_than=more_than, at_most=at_most)
        sized = if_time(f"fewer GPUs {way.words}", look) if at_most > more_than else None
        fitted = None if sized is None else _serving(sized)
        if fitted is not None:
            on, best = fitted
            return f"{on.facts.gpus} GPUs would do {way.words}: {named(best)} with {figures(best)}"
    return None


def _serving(sized: Sized) -> tuple[SearchRequest, Candidate] | None:
    """The request and the best on hardware that suffices, as a plan for it would have them; `None` if it serves none.

    An engine whose cache holds no request of the load serves none.
    """
    fitted = sized_with_batch(sized)
    best = None if fitted.result is None else fitted.result.best
    return None if best is None or best.lacks_cache else (fitted.request, best)


def _way_of_engine(request: SearchRequest) -> _Way | None:
    """The relaxations that the assumed engine brings by itself, once it is named."""
    engine = request.space.engine
    if engine is None or request.named_engine is not None:
        return None
    added = _not_in_force(request, engine_relaxations(engine, request.architecture))
    named_so = f"with {JUDGED[engine].title} named (--engine {engine})"
    words = f"{named_so}, which brings {' and '.join(added)} by itself"
    return _Way(added, words, engine, f"{NO_ENGINE_NAMED}: the best {named_so} would be") if added else None


def _groups(request: SearchRequest) -> _Way | None:
    groups: tuple[Relaxation, ...] = ("attention_dp",) if request.architecture.is_moe else ()
    added = _not_in_force(request, groups)
    words = "with attention DP allowed (--relax attention_dp)"
    return (
        _Way(added, words, first=f"Attention DP was not allowed: the best {words} would be at least") if added else None
    )


def _way_of_options(request: SearchRequest) -> _Way | None:
    """All that the engine's options allow."""
    engine = request.space.engine or DEFAULT_ENGINE
    added = _not_in_force(request, possible_relaxations(engine, request.architecture))
    options = "--rules engine" if request.named_engine else f"--engine {engine} --rules engine"
    return _Way(added, f"with all that {JUDGED[engine].title} can do ({options})", engine) if added else None


def _not_in_force(request: SearchRequest, names: Iterable[Relaxation]) -> tuple[Relaxation, ...]:
    return tuple(name for name in names if name not in request.policy.relaxations)


def _no_more_than_used(request: SearchRequest, way: _Way, best: Candidate) -> tuple[_Way, Candidate]:
    """`way` with only the relaxations that `best` uses, and its best; `way` and `best` if that finds none."""
    engine = request.space.engine or DEFAULT_ENGINE
    brought = engine_relaxations(engine, request.architecture)
    used: tuple[Relaxation, ...] = tuple(name for name in way.added if name in brought or name in _shown(best.strategy))
    if used == way.added:
        return way, best
    asked = [name for name in used if name not in brought]
    options = " ".join(
        [*([] if request.named_engine else [f"--engine {engine}"]), *(f"--relax {name}" for name in asked)]
    )
    title = JUDGED[engine].title
    more = f"with more of what {title} can do allowed" if request.named_engine else f"with {title} named and told to"
    words = f"{more} ({options})" if asked else f"with {options}"
    fewer = _Way(used, words, engine)
    best_of_fewer = _best(request, fewer)
    return (way, best) if best_of_fewer is None else (fewer, best_of_fewer)


def _shown(strategy: Strategy) -> set[Relaxation]:
    """Relaxations that the degrees of a strategy show."""
    shown: set[Relaxation] = set()
    for phase in (strategy.prefill, strategy.decode):
        if (phase.attention_dp or 1) > 1:
            shown.add("attention_dp")
        if (phase.kv_sp or 1) > 1:
            shown.add("kv_sequence_decode")
    return shown


def _best(request: SearchRequest, way: _Way) -> Candidate | None:
    outcome = if_time(f"plans {way.words}", lambda: searched(_asked(request, way)))
    return None if outcome is None else outcome[1].best


def _gain(request: SearchRequest, chosen: Candidate, way: _Way | None) -> _Gain | None:
    """The best candidate by `way`, and its gain over `chosen`."""
    best = None if way is None else _best(request, way)
    if best is None:
        return None
    objective = request.workload.objective
    return _Gain(best, worth(chosen, objective) / worth(best, objective) - 1)


def _better(way: _Way | None, gain: _Gain | None, least: float) -> str | None:
    """How to ask for a candidate that is better by at least the share `least`."""
    if way is None or gain is None or gain.share < least:
        return None
    return f"{way.words}, {named(gain.best)} with {figures(gain.best)} would be {gain.share:.0%} better"


def _asked(request: SearchRequest, way: _Way) -> SearchRequest:
    """The request with the options of `way`."""
    policy, serving = request.policy, request.serving
    if way.engine is not None and request.named_engine is None:
        serving = (serving or ServingBlock()).model_copy(update={"engine": way.engine})
    relaxations = (*policy.relaxations, *way.added)
    return replace(request, serving=serving, policy=policy.model_copy(update={"relaxations": relaxations}))
