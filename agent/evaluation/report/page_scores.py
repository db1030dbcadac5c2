"""The upper part of the page: what was run, the scores with their intervals, the coverage, and the changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..comparison import Comparison
from ..gain import GainScore
from ..results import STAGE_TITLES, Kept, Rate, stage_order
from ..rungs.ladder import QUESTIONS, RUNG_NAMES
from .head import percent, solved_words
from .markup import Html, element, joined
from .summary import Rungs, Summary

_MOST_LISTED = 200


def scores(summary: Summary, records: Sequence[Kept]) -> Html:
    """Everything about the run as a whole."""
    first = {record.result.id: place for place, record in reversed(list(enumerate(records)))}
    return joined(
        _facts(summary, records),
        element(
            "section",
            element("h2", "Rungs"),
            element(
                "div",
                _rungs("All cases", summary.rungs),
                _rungs("Without cases whose golden the built-in proposer wrote", summary.without_builder),
                class_="pair",
            ),
            element("p", "Bars: the share with its 95% interval, clustered by family.", class_="soft"),
        ),
        _comparison(summary.comparison, first),
        _coverage(summary),
        _mutation(summary),
        _faults(summary, first),
    )


def _facts(summary: Summary, records: Sequence[Kept]) -> Html:
    header = summary.header
    families = len({record.result.family for record in records})
    rows = [
        ("solved", f"{solved_words(summary) if summary.cases else 'none was run'}; {families} families"),
        ("dataset", f"{header.dataset}, {header.dataset_hash}"),
        ("solver", f"{header.solver}{'' if header.is_deterministic else ' (not deterministic)'}"),
        ("shardwright", header.shardwright),
        ("options", ", ".join(f"{name} {value}" for name, value in header.options.items())),
        ("epochs", str(header.epochs) if header.epochs > 1 else ""),
        ("results", summary.digest),
        ("proposals", f"{summary.proposals:.2f} a case"),
        ("spent", _spent(summary)),
        ("regret", _regret(summary)),
        *((f"gain, {gain.objective}", _gain(gain)) for gain in summary.gains),
        *(
            (f"pass@{repeat.k}, pass^{repeat.k}", f"{percent(repeat.at_least_one)}, {percent(repeat.all_of_them)}")
            for repeat in summary.repeats
        ),
    ]
    pairs = [part for name, value in rows if value for part in (element("dt", name), element("dd", value))]
    return element("section", element("dl", *pairs, class_="facts"))


def _spent(summary: Summary) -> str:
    spent = summary.spent
    if not spent.turns and not spent.input_tokens:
        return ""
    money = f", {spent.usd:.2f} USD" if spent.usd is not None else ""
    return (
        f"{spent.turns:,} turns, {spent.corrections:,} corrections, {spent.tool_calls:,} tool calls, "
        f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out{money}"
    )


def _regret(summary: Summary) -> str:
    regret = summary.regret
    if regret is None:
        return ""
    return (
        f"median {regret.median_pct:+.1f}%, mean {regret.mean_pct:+.1f}%, worst {regret.worst_pct:+.1f}% "
        f"over {regret.n} plans (below zero is better than the golden)"
    )


def _gain(gain: GainScore) -> str:
    return (
        f"median {gain.median_pct:+.1f}%, mean {gain.mean_pct:+.1f}%, best {gain.best_pct:+.1f}% over {gain.n} plans: "
        f"{gain.better} better than the built-in plan, {gain.same} the same, {gain.behind} behind"
    )


def _rungs(title: str, rungs: Rungs) -> Html:
    stages = sorted({stage for by_stage in rungs.values() for stage in by_stage}, key=stage_order)
    head = [element("th", name) for name in ("rung", *(_stage_title(stage) for stage in stages), "cases")]
    rows = [
        element(
            "tr",
            element("td", name, title=QUESTIONS[name]),
            *(_rate(rungs[name].get(stage)) for stage in stages),
            element("td", str(max(rate.n for rate in rungs[name].values())), class_="figure"),
        )
        for name in RUNG_NAMES
        if name in rungs
    ]
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", element("h3", title), element("div", table, class_="wide"))


def _stage_title(stage: str) -> str:
    number = stage.rpartition("_")[2]
    return STAGE_TITLES.get(stage) or f"after {number} correction{'s' if number != '1' else ''}"


def _rate(rate: Rate | None) -> Html:
    if rate is None:
        return element("td", "")
    label = f"{percent(rate.low)} to {percent(rate.high)}, {rate.n} cases in {rate.families} families"
    return element("td", percent(rate.rate), _bar(rate), class_="figure", title=label)


def _bar(rate: Rate) -> Html:
    """The share as a point on its interval, on a line from 0 to 100%."""
    low, point = rate.low * 100, min(98.0, rate.rate * 98)
    return element(
        "svg",
        element("rect", class_="track", x="0", y="3", width="100", height="2"),
        element("rect", class_="span", x=f"{low:.1f}", y="1", width=f"{(rate.high - rate.low) * 100:.1f}", height="6"),
        element("rect", class_="point", x=f"{point:.1f}", y="0", width="2", height="8"),
        class_="bar",
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _comparison(comparison: Comparison | None, first: dict[str, int]) -> Html:
    if comparison is None:
        return Html("")
    verdict = (
        element("span", "worse than the baseline", class_="tag bad")
        if comparison.regressions
        else element("span", "no worse than the baseline", class_="tag good")
    )
    changed = [change for change in comparison.changes if change.lost or change.gained]
    head = element("tr", *(element("th", name) for name in ("rung", "stage", "before", "after", "lost", "gained")))
    rows = [
        element(
            "tr",
            element("td", change.rung, element("span", "worse", class_="tag bad") if change.is_regression else ""),
            element("td", _stage_title(change.stage)),
            element("td", percent(change.before), class_="figure"),
            element("td", percent(change.after), class_="figure"),
            element("td", *_links(change.lost, first)),
            element("td", *_links(change.gained, first)),
        )
        for change in changed
    ]
    table = element("div", element("table", element("thead", head), element("tbody", *rows)), class_="wide")
    left_out = f"Not compared, changed or only in one of the two: {', '.join(comparison.not_compared[:_MOST_LISTED])}"
    return element(
        "section",
        element("h2", "Against the baseline"),
        element("p", verdict),
        table if changed else element("p", "No case flipped."),
        element("p", left_out, class_="soft") if comparison.not_compared else "",
    )


def _links(cases: Sequence[str], first: dict[str, int]) -> Iterator[Html]:
    """The cases, each as a link to its details."""
    for number, case in enumerate(cases[:_MOST_LISTED]):
        named = element("a", case, href=f"#case-{first[case]}") if case in first else element("span", case)
        yield joined(", " if number else "", named)
    if len(cases) > _MOST_LISTED:
        yield element("span", f" and {len(cases) - _MOST_LISTED} more")


def _coverage(summary: Summary) -> Html:
    coverage = summary.coverage
    if coverage is None:
        return Html("")
    missing = f"Not exercised: {', '.join(coverage.missing)}." if coverage.missing else "Every rule is exercised."
    not_found = f" Expected and not reported: {', '.join(coverage.not_found)}." if coverage.not_found else ""
    line = f"{len(coverage.exercised)} of {coverage.rules} rules are exercised by a broken case. {missing}{not_found}"
    return element("section", element("h2", "Rules exercised"), element("p", line))


def _mutation(summary: Summary) -> Html:
    score = summary.mutation
    if score is None:
        return Html("")
    share = percent(score.killed / score.harmful) if score.harmful else "none was harmful"
    line = (
        f"Mutation score {share}: {score.killed} of {score.harmful} harmful mutants of {score.goldens} goldens broke a "
        f"rule; {score.exact} of {score.mutants} mutants lost exactly the rungs that they should."
    )
    rows = [element("li", mutant.line) for mutant in score.odd]
    return element("section", element("h2", "Damaged goldens"), element("p", line), element("ul", *rows))


def _faults(summary: Summary, first: dict[str, int]) -> Html:
    if not summary.faults:
        return Html("")
    rows = [element("li", *_links([case], first), f": {why}") for case, why in summary.faults.items()]
    return element("section", element("h2", "Faults of the run itself"), element("ul", *rows))
