"""The report of an evaluation as text: the score, each rung at each stage, then failures by case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...report.text import NONE, Bullets, Column, Section, Table, count_text, render, section
from ..comparison import Comparison, RungChange
from ..results import FINAL, STAGE_TITLES, CaseResult, Kept, Rate, stage_order
from ..rungs.ladder import RUNG_NAMES
from .head import MOST_LISTED, head, listed, percent
from .summary import Rungs, Summary

_LONGEST_WHY = 200


def render_summary(summary: Summary, records: Sequence[Kept], *, width: int, bold: bool = False) -> str:
    """The report of `eval`."""
    results = [record.result for record in records]
    sections = [
        section("", *head(summary, records)),
        section("Reading of requests, set by set", _readings(summary)),
        *_rungs(summary),
        section("Cases", _cases(results)),
        section("Regret against the goldens, by the performance model", _regret(summary)),
        section("Gain over the built-in plan, by the objective of each case", *_gains(summary)),
        section("Repeats", _repeats(summary)),
        section("Spent", _spent(summary)),
        section("Rules exercised by broken proposals", *_coverage(summary)),
        section("Damaged goldens", *_mutation(summary)),
        section("Against the baseline", *_comparison(summary.comparison)),
        section("Not solved", *_unsolved(results)),
        section("Faults of the run itself", Bullets(tuple(f"{case}: {why}" for case, why in summary.faults.items()))),
    ]
    return render(sections, width=width, bold=bold)


def _table(rungs: Rungs) -> Table:
    """Each rung at the stages that every run has; the stages of corrections are in the JSON and on the page."""
    columns = (
        Column("rung"),
        *(Column(title, figures=True) for title in STAGE_TITLES.values()),
        *Column.of_figures("95% interval", "cases"),
    )
    rows = tuple(
        (
            name,
            *(_rate(rungs[name].get(stage)) for stage in STAGE_TITLES),
            _interval(rungs[name].get(FINAL)),
            _count(rungs[name].get(FINAL)),
        )
        for name in RUNG_NAMES
        if name in rungs
    )
    return Table(columns, rows)


def _readings(summary: Summary) -> Table:
    """The scores of each set of readings."""
    figures = ("facts right", "right", "asked", "said back", "silently wrong", "requests")
    rows = tuple(
        (
            score.set,
            percent(score.fields_right),
            *map(str, (score.right, score.asked, score.said_back, score.silently_wrong, score.n)),
        )
        for score in summary.readings
    )
    return Table((Column("set"), *Column.of_figures(*figures)), rows)


def _corrections(rungs: Rungs) -> str:
    """How many plans keep every rule after each correction."""
    stages = [stage for stage in rungs.get("rules", {}) if stage not in STAGE_TITLES]
    shown = [
        f"{percent(rungs['rules'][stage].rate)} after {stage.rpartition('_')[2]}"
        for stage in sorted(stages, key=stage_order)
    ]
    return f"rules kept by correction, each mended by auto-fix: {', '.join(shown)}" if shown else ""


def _rate(rate: Rate | None) -> str:
    return NONE if rate is None else percent(rate.rate)


def _interval(rate: Rate | None) -> str:
    return NONE if rate is None else f"{percent(rate.low)} to {percent(rate.high)}"


def _count(rate: Rate | None) -> str:
    return NONE if rate is None else str(rate.n)


def _rungs(summary: Summary) -> Iterator[Section]:
    """The rungs; apart for cases with a broken proposal, whose first stage is that proposal's."""
    both = bool(summary.of_requests) and bool(summary.of_repairs)
    if not both:
        yield section("Rungs", _table(summary.rungs), _corrections(summary.rungs), _legend(summary))
    else:
        yield section("Rungs, requests", _table(summary.of_requests), _corrections(summary.of_requests))
        repairs = "Rungs, broken proposals that a case gives (at once: as it gives them)"
        yield section(repairs, _table(summary.of_repairs), _corrections(summary.of_repairs), _legend(summary))
    if summary.by_builder and summary.without_builder:
        yield section("Rungs without the cases whose golden this package wrote", _table(summary.without_builder))


def _legend(summary: Summary) -> str:
    note = "" if summary.by_builder else " No golden was written by this package."
    return (
        "A rung counts the cases that it applies to. At once is what was proposed, after auto-fix what the tools made "
        "of it, at the end what a user gets, whoever it is from. Intervals are of the last stage, clustered by family. "
        f"Goldens are strategies by engineers and publications, their DAGs are built.{note}"
    )


def _cases(results: Sequence[CaseResult]) -> Table | None:
    """Each case with its golden as read, if there are few."""
    if len(results) > MOST_LISTED:
        return None
    has_gain = any(result.gain is not None for result in results)
    columns = (
        Column("case", wraps=True),
        Column("golden, as read", wraps=True),
        Column("answer", wraps=True),
        Column("regret", figures=True),
        *([Column("gain", figures=True)] if has_gain else []),
        Column("solved"),
    )
    rows = [
        (
            result.id + (f" #{result.epoch}" if result.epoch > 1 else ""),
            result.golden or NONE,
            result.strategy or result.answer,
            _case_regret(result),
            *([NONE if result.gain is None else f"{result.gain.pct:+.1f}%"] if has_gain else []),
            "yes" if result.is_solved else "no",
        )
        for result in results
    ]
    return Table(columns, tuple(rows))


def _case_regret(result: CaseResult) -> str:
    mark = result.stages.get(FINAL, {}).get("regret")
    return NONE if mark is None or mark.value is None else f"{mark.value:+.1f}%"


def _regret(summary: Summary) -> str:
    regret = summary.regret
    if regret is None:
        return ""
    missed = f", and {regret.beyond_limits} that miss a limit of the golden's" if regret.beyond_limits else ""
    return (
        f"median {regret.median_pct:+.1f}%, mean {regret.mean_pct:+.1f}%, worst {regret.worst_pct:+.1f}% "
        f"over {count_text(regret.n, 'plan')}{missed}; below zero is better than the golden"
    )


def _gains(summary: Summary) -> Iterator[Table | str]:
    """The gains over the built-in plan, by objective."""
    if not summary.gains:
        return
    figures = ("plans", "better", "the same", "behind", "median", "mean", "best")
    rows = tuple(
        (
            gain.objective,
            str(gain.n),
            *(f"{count} ({percent(count / gain.n)})" for count in (gain.better, gain.same, gain.behind)),
            *(f"{share:+.1f}%" for share in (gain.median_pct, gain.mean_pct, gain.best_pct)),
        )
        for gain in summary.gains
    )
    yield Table((Column("objective"), *Column.of_figures(*figures)), rows)
    yield "By the objective's own figure: tokens/s, time from end to end, cost of a token. Above zero is better."


def _repeats(summary: Summary) -> Bullets:
    return Bullets(
        tuple(
            f"solved in at least one of {repeat.k} epochs (pass@{repeat.k}): {percent(repeat.at_least_one)}; "
            f"in all of them (pass^{repeat.k}): {percent(repeat.all_of_them)}"
            for repeat in summary.repeats
        )
    )


def _spent(summary: Summary) -> str:
    spent = summary.spent
    if not spent.input_tokens and not spent.output_tokens:
        return ""
    estimated = " (counted here, not by the server)" if spent.tokens_estimated else ""
    money = f", {spent.usd:.2f} USD" if spent.usd is not None else ""
    return (
        f"{count_text(spent.turns, 'turn')}, {count_text(spent.corrections, 'correction')}, "
        f"{count_text(spent.tool_calls, 'tool call')}, {spent.input_tokens:,} tokens in and "
        f"{spent.output_tokens:,} out{estimated}{money}"
    )


def _coverage(summary: Summary) -> Iterator[str]:
    coverage = summary.coverage
    if coverage is None:
        return
    yield f"{len(coverage.exercised)} of {coverage.rules} rules"
    if coverage.missing:
        yield f"not exercised: {', '.join(coverage.missing)}"


def _mutation(summary: Summary) -> Iterator[str]:
    score = summary.mutation
    if score is None or not score.harmful:
        return
    yield (
        f"mutation score {percent(score.killed / score.harmful)}: {score.killed} of {score.harmful} harmful mutants of "
        f"{count_text(score.goldens, 'golden')} broke a rule; {score.exact} of {score.mutants} mutants lost exactly "
        "the rungs that they should"
    )
    yield from (mutant.line for mutant in score.odd[:MOST_LISTED])


def _comparison(comparison: Comparison | None) -> Iterator[str | Bullets]:
    if comparison is None:
        return
    verdict = "Worse" if comparison.regressions else "No worse"
    solver = f", a run of {comparison.baseline}" if comparison.baseline else ""
    yield f"{verdict} than the baseline{solver}, in the {count_text(comparison.compared, 'case')} that both have."
    yield Bullets(tuple(change_line(change) for change in comparison.changes if change.lost or change.gained))
    if comparison.not_compared:
        yield f"Not compared, changed or only in one of the two: {listed(comparison.not_compared)}"


def change_line(change: RungChange) -> str:
    """The change of a rung at a stage, and the cases in which it changed."""
    worse = ", worse" if change.is_regression else ""
    stage = STAGE_TITLES.get(change.stage, change.stage)
    moved = f"{change.rung} {stage}: {percent(change.before)} to {percent(change.after)}{worse}"
    lost = f"; lost {listed(change.lost)}" if change.lost else ""
    gained = f"; gained {listed(change.gained)}" if change.gained else ""
    return f"{moved}{lost}{gained}"


def _unsolved(results: Sequence[CaseResult]) -> Iterator[Bullets | str]:
    lost = [result for result in results if not result.is_solved and result.fault is None]
    lines: dict[str, None] = {}
    for result in lost:
        lines[f"{result.id}: {_why(result)}"] = None
    shown = tuple(lines)[:MOST_LISTED]
    yield Bullets(shown)
    if len(lines) > len(shown):
        yield f"and {len(lines) - len(shown)} more"


def _why(result: CaseResult) -> str:
    """The lowest decisive rung that was lost, or that the answer has the wrong kind."""
    marks = {**result.stages.get(FINAL, {}), **result.marks}
    lost = [name for name in ("outcome", "own", "diagnosis", "intent", "reading", "rules", "regret") if name in marks]
    first = next((name for name in lost if not marks[name].passed), "")
    return f"{first}: {marks[first].why}"[:_LONGEST_WHY] if first else ""
