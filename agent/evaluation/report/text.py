"""The report of an evaluation as text: the score, then each rung at each stage, then what went wrong and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...report.text import NONE, Bullets, Column, Section, Table, count_text, render, section
from ..comparison import Comparison, RungChange
from ..results import FINAL, STAGE_TITLES, CaseResult, Kept, Rate, stage_order
from ..rungs.ladder import RUNG_NAMES
from .summary import Rungs, Summary

# Cases that are listed with what went wrong; the page and the JSON have all of them.
MOST_LISTED = 25
_LONGEST_WHY = 200


def render_summary(found: Summary, kept: Sequence[Kept], *, width: int, bold: bool = False) -> str:
    """The report of `eval`."""
    results = [one.result for one in kept]
    sections = [
        section("", *_head(found, kept)),
        section("Reading of requests, set by set", _readings(found)),
        *_rungs(found),
        section("Cases", _cases(results)),
        section("Regret against the goldens, by the performance model", _regret(found)),
        section("Gain over the built-in plan, by the objective of each case", *_gains(found)),
        section("Repeats", _repeats(found)),
        section("Spent", _spent(found)),
        section("Rules exercised by broken proposals", *_coverage(found)),
        section("Damaged goldens", *_mutation(found)),
        section("Against the baseline", *_comparison(found.comparison)),
        section("Not solved", *_unsolved(results)),
        section("Faults of the run itself", Bullets(tuple(f"{case}: {why}" for case, why in found.faults.items()))),
    ]
    return render(sections, width=width, bold=bold)


def percent(share: float) -> str:
    """A share in whole percent; what is not all is never called 100%, and what is not nothing never 0%."""
    shown = round(share * 100)
    if (shown == 100 and share < 1) or (shown == 0 and share > 0):
        return f"{share * 100:.1f}%"
    return f"{shown}%"


def _head(found: Summary, kept: Sequence[Kept]) -> Iterator[str]:
    header = found.header
    families = len({one.result.family for one in kept})
    epochs = f" × {header.epochs} epochs" if header.epochs > 1 else ""
    yield (
        f"{header.dataset}: {count_text(found.cases, 'case')}{epochs} in {count_text(families, 'family', 'families')}; "
        f"solver {header.solver}; shardwright {header.shardwright}"
    )
    yield f"Dataset {header.dataset_hash[:16]}, results {found.digest[:16]}"
    yield f"Solved: {found.solved} of {found.cases} ({percent(found.solved / found.cases)})"
    yield (
        "Solved is a right answer in every epoch: read as meant, the proposer's own, keeping every hard rule, no worse "
        "than the golden by the performance model. Another plan than the golden may be as good."
    )
    asked = {one.result.id for one in kept if one.result.passed("own") is not None}
    if asked:
        yield (
            f"Of {count_text(len(asked), 'case')} in which it was asked, {found.own} end with a plan of its own; in "
            "the others a user gets the built-in proposer's, whose marks stand under `at the end`."
        )
    if found.unreachable:
        yield f"The model could not be reached in {count_text(found.unreachable, 'case')}."
    if found.without_golden:
        lone = count_text(found.without_golden, "case")
        yield f"{lone} without a golden: only reading and legality are marked there."


def _table(rungs: Rungs) -> Table:
    """Each rung at the stages that every run has; what each correction brought is in the JSON and on the page."""
    columns = (
        Column("rung"),
        *(Column(title, figures=True) for title in STAGE_TITLES.values()),
        Column("95% interval", figures=True),
        Column("cases", figures=True),
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


def _readings(found: Summary) -> Table:
    """How each set of requests was read."""
    figures = ("facts right", "right", "asked", "said back", "silently wrong", "requests")
    rows = tuple(
        (
            one.set,
            percent(one.fields_right),
            *map(str, (one.right, one.asked, one.said_back, one.silently_wrong, one.n)),
        )
        for one in found.readings
    )
    return Table((Column("set"), *(Column(name, figures=True) for name in figures)), rows)


def _corrections(rungs: Rungs) -> str:
    """How many plans keep every rule after each correction."""
    stages = [stage for stage in rungs.get("rules", {}) if stage not in STAGE_TITLES]
    shown = [
        f"{percent(rungs['rules'][one].rate)} after {one.rpartition('_')[2]}" for one in sorted(stages, key=stage_order)
    ]
    return f"rules kept by correction: {', '.join(shown)}" if shown else ""


def _rate(rate: Rate | None) -> str:
    return NONE if rate is None else percent(rate.rate)


def _interval(rate: Rate | None) -> str:
    return NONE if rate is None else f"{percent(rate.low)} to {percent(rate.high)}"


def _count(rate: Rate | None) -> str:
    return NONE if rate is None else str(rate.n)


def _rungs(found: Summary) -> Iterator[Section]:
    """The rungs: apart for cases that give a broken proposal, whose first stage is that proposal's."""
    both = bool(found.of_requests) and bool(found.of_repairs)
    if not both:
        yield section("Rungs", _table(found.rungs), _corrections(found.rungs), _legend(found))
    else:
        yield section("Rungs, requests", _table(found.of_requests), _corrections(found.of_requests))
        repairs = "Rungs, broken proposals that a case gives (at once: as it gives them)"
        yield section(repairs, _table(found.of_repairs), _corrections(found.of_repairs), _legend(found))
    if found.by_builder and found.without_builder:
        yield section("Rungs without the cases whose golden this package wrote", _table(found.without_builder))


def _legend(found: Summary) -> str:
    whose = "" if found.by_builder else " No golden was written by this package."
    return (
        "A rung counts the cases that it applies to; intervals are of the last stage, clustered by family. Goldens are "
        f"strategies by engineers and publications, their DAGs are built.{whose}"
    )


def _cases(results: Sequence[CaseResult]) -> Table | None:
    """Each case with its golden as it was read, where there are few."""
    if len(results) > MOST_LISTED:
        return None
    has_gain = any(one.gain is not None for one in results)
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
            one.id + (f" #{one.epoch}" if one.epoch > 1 else ""),
            one.golden or NONE,
            one.strategy or one.answer,
            _case_regret(one),
            *([NONE if one.gain is None else f"{one.gain.pct:+.1f}%"] if has_gain else []),
            "yes" if one.is_solved else "no",
        )
        for one in results
    ]
    return Table(columns, tuple(rows))


def _case_regret(result: CaseResult) -> str:
    mark = result.stages.get(FINAL, {}).get("regret")
    return NONE if mark is None or mark.value is None else f"{mark.value:+.1f}%"


def _regret(found: Summary) -> str:
    regret = found.regret
    if regret is None:
        return ""
    missed = f", and {regret.beyond_limits} that miss a limit of the golden's" if regret.beyond_limits else ""
    return (
        f"median {regret.median_pct:+.1f}%, mean {regret.mean_pct:+.1f}%, worst {regret.worst_pct:+.1f}% "
        f"over {count_text(regret.n, 'plan')}{missed}; below zero is better than the golden"
    )


def _gains(found: Summary) -> Iterator[Table | str]:
    """What those who were asked gain, objective by objective."""
    if not found.gains:
        return
    figures = ("plans", "better", "the same", "behind", "median", "mean", "best")
    rows = tuple(
        (
            one.objective,
            str(one.n),
            *(f"{count} ({percent(count / one.n)})" for count in (one.better, one.same, one.behind)),
            *(f"{share:+.1f}%" for share in (one.median_pct, one.mean_pct, one.best_pct)),
        )
        for one in found.gains
    )
    yield Table((Column("objective"), *(Column(name, figures=True) for name in figures)), rows)
    yield "By the objective's own figure: tokens/s, time from end to end, cost of a token. Above zero is better."


def _repeats(found: Summary) -> Bullets:
    return Bullets(
        tuple(
            f"solved in at least one of {one.k} epochs (pass@{one.k}): {percent(one.at_least_one)}; "
            f"in all of them (pass^{one.k}): {percent(one.all_of_them)}"
            for one in found.repeats
        )
    )


def _spent(found: Summary) -> str:
    spent = found.spent
    if not spent.input_tokens and not spent.output_tokens:
        return ""
    estimated = " (counted here, not by the server)" if spent.tokens_estimated else ""
    money = f", {spent.usd:.2f} USD" if spent.usd is not None else ""
    return (
        f"{count_text(spent.turns, 'turn')}, {count_text(spent.corrections, 'correction')}, "
        f"{count_text(spent.tool_calls, 'tool call')}, {spent.input_tokens:,} tokens in and "
        f"{spent.output_tokens:,} out{estimated}{money}"
    )


def _coverage(found: Summary) -> Iterator[str]:
    coverage = found.coverage
    if coverage is None:
        return
    yield f"{len(coverage.exercised)} of {coverage.rules} rules"
    if coverage.missing:
        yield f"not exercised: {', '.join(coverage.missing)}"


def _mutation(found: Summary) -> Iterator[str]:
    score = found.mutation
    if score is None or not score.harmful:
        return
    yield (
        f"mutation score {percent(score.killed / score.harmful)}: {score.killed} of {score.harmful} harmful mutants of "
        f"{count_text(score.goldens, 'golden')} broke a rule; {score.exact} of {score.mutants} mutants lost exactly "
        "the rungs that they should"
    )
    yield from (one.line for one in score.odd[:MOST_LISTED])


def _comparison(found: Comparison | None) -> Iterator[str | Bullets]:
    if found is None:
        return
    verdict = "Worse" if found.regressions else "No worse"
    whose = f", a run of {found.baseline}" if found.baseline else ""
    yield f"{verdict} than the baseline{whose}, in the {count_text(found.compared, 'case')} that both have."
    yield Bullets(tuple(change_line(one) for one in found.changes if one.lost or one.gained))
    if found.not_compared:
        yield f"Not compared, changed or only in one of the two: {listed(found.not_compared)}"


def change_line(change: RungChange) -> str:
    """What became of a rung at a stage, and in which cases."""
    worse = ", worse" if change.is_regression else ""
    stage = STAGE_TITLES.get(change.stage, change.stage)
    moved = f"{change.rung} {stage}: {percent(change.before)} to {percent(change.after)}{worse}"
    lost = f"; lost {listed(change.lost)}" if change.lost else ""
    gained = f"; gained {listed(change.gained)}" if change.gained else ""
    return f"{moved}{lost}{gained}"


def listed(cases: Sequence[str]) -> str:
    """Cases by name, capped with a count of the rest."""
    shown = ", ".join(cases[:MOST_LISTED])
    return shown if len(cases) <= MOST_LISTED else f"{shown} and {len(cases) - MOST_LISTED} more"


def _unsolved(results: Sequence[CaseResult]) -> Iterator[Bullets | str]:
    lost = [one for one in results if not one.is_solved and one.fault is None]
    lines: dict[str, None] = {}
    for one in lost:
        lines[f"{one.id}: {_why(one)}"] = None
    shown = tuple(lines)[:MOST_LISTED]
    yield Bullets(shown)
    if len(lines) > len(shown):
        yield f"and {len(lines) - len(shown)} more"


def _why(result: CaseResult) -> str:
    """The lowest decisive rung that was lost, or that the answer is none of the right kind."""
    marks = {**result.stages.get(FINAL, {}), **result.marks}
    lost = [name for name in ("outcome", "own", "diagnosis", "intent", "reading", "rules", "regret") if name in marks]
    first = next((name for name in lost if not marks[name].passed), "")
    return f"{first}: {marks[first].why}"[:_LONGEST_WHY] if first else ""
