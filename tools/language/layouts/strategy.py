"""Parallel degrees that a request states: "TP8 PP2", "8-way tensor parallel", "张量并行8", "prefill TP4, decode TP8".

A stated strategy is judged as it stands, so numbers are taken as written and nothing is corrected here. A degree may
follow from others: "DP attention, EP16", or SGLang's `dp` that lies inside its `tp` (`attention_words.fill`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ..conflicts.claims import Claims
from ..conflicts.turns import latest
from ..constraints.primitives import PERMITS
from ..constraints.words import rule_out
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..said import StatedDegrees, StatedStrategy
from .attention import demanded_spans, fill
from .compared import Compared, find_compared, options
from .degrees import PHASE_WORD, Degree, find_degrees, phase_name, phase_of, runs_of
from .sides import read_sides, set_aside_sides
from .weighed_hardware import refuse_own_hardware

# Attention DP that is demanded without a number: stands among degrees until the others settle it.
_DEMAND = "attention_dp?"
# Degrees that "pp=1" by itself only rules out: the others stay open.
_RULED_OUT_BY_ONE = ("pp", "ep", "sp")
_AS_DP = Gated(r"dp|data|数据")
# A line with the name of the strategy; numbers of GPUs in it are the strategy's, and need not be all that there are.
_STRATEGY_LINE = Gated(r"(?:^|\n)[^\n:=]{0,40}(?:strateg(?:y|ies)|parallelism|策略|并行)[^\n:=]{0,20}[:=][^\n]*")
_GPUS = Gated(r"(?<![a-z])gpus?\s?[:=]?\s?(?P<n>\d{1,7})(?![\d.])|(?<![\d.])(?P<m>\d{1,7})\s?gpus?(?![a-z])")


def read_strategy(page: Page, claims: Claims) -> None:
    """Read stated degrees; each belongs to the phase that is named beside it, else to both."""
    set_aside_sides(page, claims)
    for words, counts in read_sides(page):
        claims.claim("disaggregated", True, words)
        for phase, count in counts.items():
            _claim_degree(claims, phase, "replicas", claims.checked_degree(count, words), words)
    degrees = _without_permitted(page, claims, find_degrees(page, claims))
    gpus = _read_gpus(page, claims)
    by_phase = {phase: _said_last(page, claims, stated) for phase, stated in _by_phase(page, degrees).items()}
    if (compared := find_compared(page, degrees) or _rivals(page, by_phase)) is not None:
        refuse_own_hardware(page, claims, degrees)
        _claim_compared(claims, compared)
        return
    if degrees and all(degree.value == 1 and degree.name in _RULED_OUT_BY_ONE for degree in degrees):
        rule_out(claims, {(phase, degree.name): degree.words for phase, run in by_phase.items() for degree in run})
        return
    for phase, stated in by_phase.items():
        for degree in _with_attention_dp(page, claims, stated):
            name = "replicas" if degree.name == "dp" and phase != "both" else degree.name
            _claim_degree(claims, phase, name, degree.value, degree.words)
    strategy = _strategy(claims, gpus)
    for name in [name for name in claims.values if name.startswith("strategy.")]:
        claims.drop(name)
    if strategy is not None:
        claims.claim("strategy", strategy[0], strategy[1])


def _without_permitted(page: Page, claims: Claims, degrees: Sequence[Degree]) -> list[Degree]:
    """The demanded degrees, without those that their clause only allows."""
    demanded: list[Degree] = []
    for degree in degrees:
        clause = page.clause_text(degree.start, degree.end)
        if PERMITS.search(clause):
            claims.leave_unread(f"{clause!r} allows a strategy and demands none; all are ranked")
        else:
            demanded.append(degree)
    return demanded


def _said_last(page: Page, claims: Claims, stated: Sequence[Degree]) -> list[Degree]:
    """The degrees without those that a later turn states anew: "decode at TP8 too?" / "no, decode TP4"."""
    last = list(stated)
    for name in {degree.name for degree in stated}:
        rivals = [degree for degree in stated if degree.name == name]
        for rival, is_last in zip(rivals, latest(page.original, [(d.start, d.end) for d in rivals]), strict=True):
            if not is_last and rival.value != rivals[-1].value:
                last.remove(rival)
                claims.reading(f"{rival.words!r} was said before {rivals[-1].words!r}, which counts")
    return last


def _claim_compared(claims: Claims, compared: Compared) -> None:
    if not compared.strategies:
        subject = f"{compared.words!r}: strategies to compare"
        claims.leave_unread(f"{subject}; all strategies are ranked, so none of them is fixed")
        return
    claims.claim("compared", compared.strategies, compared.words)
    claims.reading(f"{compared.words!r} read as strategies to compare: all are ranked, and none of them is fixed")


def _rivals(page: Page, by_phase: Mapping[str, Sequence[Degree]]) -> Compared | None:
    """Stated strategies that differ, to be compared, or `None`; two that files state contradict each other."""
    for phase, stated in by_phase.items():
        first: dict[str, Degree] = {}
        for later in stated:
            earlier = first.setdefault(later.name, later)
            is_keyed = [_is_keyed(page, degree) for degree in (later, earlier)]
            if later.name != _DEMAND and earlier.value != later.value and not all(is_keyed):
                words = ", ".join(dict.fromkeys(degree.words for degree in stated))
                numbered = [degree for degree in stated if degree.name != _DEMAND]
                choices = options(page, [numbered]) if phase == "both" else ()
                # Copies that are mentioned elsewhere belong to a strategy that is not known here.
                return Compared(words, tuple(strategy for strategy in choices if strategy.prefill != StatedDegrees()))
    return None


def _is_keyed(page: Page, degree: Degree) -> bool:
    """Whether a degree stands in a line that states the strategy by its name."""
    return any(line.start() <= degree.start < line.end() for line in _STRATEGY_LINE.finditer(page.original))


def _by_phase(page: Page, degrees: Sequence[Degree]) -> dict[str, list[Degree]]:
    """The degrees of each phase and of both, with the demands of attention DP that have no number among them."""
    numbered = [(degree.start, degree.end) for degree in degrees]
    demands = [
        Degree(_DEMAND, 0, start, end, page.original[start:end])
        for start, end in demanded_spans(page)
        if not any(start < right and left < end for left, right in numbered)
    ]
    grouped: dict[str, list[Degree]] = {}
    for run in runs_of(page, sorted([*degrees, *demands], key=lambda degree: degree.start)):
        grouped.setdefault(phase_of(page, run), []).extend(run)
    both = grouped.get("both", [])
    if both and all(degree.name == _DEMAND for degree in both):
        grouped = {phase: [*both, *stated] for phase, stated in grouped.items() if phase != "both"}
    return grouped


def _with_attention_dp(page: Page, claims: Claims, stated: Sequence[Degree]) -> list[Degree]:
    """The stated degrees, with attention DP where it is demanded and the others determine it."""
    demand = next((degree for degree in stated if degree.name == _DEMAND), None)
    numbered = [degree for degree in stated if degree.name != _DEMAND]
    by_name = {degree.name: degree.value for degree in numbered}
    if demand is None or any(by_name[degree.name] != degree.value for degree in numbered):
        return numbered
    filled = fill(by_name)
    if filled is None:
        return numbered
    for degree in stated:
        page.take(degree.start, degree.end)
    words = ", ".join(dict.fromkeys(degree.words for degree in stated))
    tp = f" x TP {filled.tp}" if filled.tp is not None else ""
    claims.reading(f"{words!r} read as attention DP {filled.attention_dp}{tp}")
    others = [
        replace(degree, value=filled.tp) if degree.name == "tp" and filled.tp is not None else degree
        for degree in numbered
        if not (filled.takes_dp and degree.name == "dp")
    ]
    meant = next((d for d in numbered if filled.takes_dp and d.name == "dp"), None)
    words = f"{demand.words}, {meant.words}" if meant is not None else demand.words
    return [replace(demand, name="attention_dp", value=filled.attention_dp, words=words), *others]


def _claim_degree(claims: Claims, phase: str, name: str, value: int, words: str) -> None:
    phases = ("prefill", "decode") if phase == "both" and name != "dp" else (phase,)
    for each_phase in phases:
        claims.claim(f"strategy.{each_phase}.{name}", value, words)


def _read_gpus(page: Page, claims: Claims) -> int | None:
    """The GPUs that a strategy is stated for ("Strategy: GPUs 512, TP 8"); prefill's and decode's add up."""
    by_phase: dict[str, int] = {}
    for line in page.search(_STRATEGY_LINE):
        for match in _GPUS.finditer(page.text, *line.span()):
            words = page.take(*match.span())
            named = {
                phase_name(phase.group()) for phase in PHASE_WORD.finditer(page.original, line.start(), match.start())
            }
            number = claims.checked_degree(float(match["n"] or match["m"]), words)
            claims.claim(f"gpus of {' and '.join(sorted(named)) or 'the strategy'}", number, words)
            by_phase[" ".join(named)] = number
    for name in [name for name in claims.values if name.startswith("gpus of ")]:
        claims.drop(name)
    return sum(set(by_phase.values())) if by_phase else None


def _strategy(claims: Claims, gpus: int | None) -> tuple[StatedStrategy, str] | None:
    claimed = {name: value for name, value in claims.values.items() if name.startswith("strategy.")}
    if not claimed:
        return None
    degrees: dict[str, dict[str, int]] = {"prefill": {}, "decode": {}}
    dp: int | None = None
    for name, value in claimed.items():
        _, phase, degree = name.split(".")
        if phase == "both":
            dp = value
        else:
            degrees[phase][degree] = value
    # DP that both phases state alike counts replicas that serve both; replicas stated of each phase stay its own.
    replicas = {stated.get("replicas") for stated in degrees.values()}
    as_dp = all(_AS_DP.search(claims.words[name]) for name in claimed if name.endswith(".replicas"))
    if dp is None and as_dp and len(replicas) == 1 and not claims.has("disaggregated"):
        dp, _ = degrees["prefill"].pop("replicas", None), degrees["decode"].pop("replicas", None)
    words = ", ".join(dict.fromkeys(claims.words[name] for name in claimed))
    strategy = StatedStrategy(
        gpus=gpus, dp=dp, prefill=StatedDegrees(**degrees["prefill"]), decode=StatedDegrees(**degrees["decode"])
    )
    return strategy, words
