"""What qualifies a figure: its statistic, whether it is a bound, and the unit that its key states.

It refuses to say what the figure is about: that is the table's business (`brief_fields.py`).
"""

from __future__ import annotations

import re

from ...tools.plan.document import Statistic
from .brief_facts import Bound
from .brief_statements import key_words
from .quantities import Quantity

_FOR_ALL = re.compile(
    r"(?:both|all|均|都)[^,;.()]{0,8}?(?P<which>p ?\d\d|median|mean|average|中位|平均)|(?P<which2>p ?\d\d|"
    r"median)\s(?:for )?(?:both|all)",
    re.IGNORECASE,
)
_STATISTICS: tuple[tuple[re.Pattern[str], Statistic], ...] = (
    (re.compile(r"\bp ?99(?:[._]?9)?\b|99(?:th)? ?percentile|99分位|99 ?%"), "p99"),
    (re.compile(r"\bp ?95\b|95(?:th)? ?percentile|95分位"), "p95"),
    (re.compile(r"\bp ?90\b|90(?:th)? ?percentile|90分位"), "p90"),
    (re.compile(r"\bp ?50\b|median|50(?:th)? ?percentile|中位|50分位"), "p50"),
    (re.compile(r"\bmean\b|average|\bavg\b|平均|均值"), "mean"),
)
_BOUNDS: tuple[tuple[re.Pattern[str], Bound], ...] = (
    (
        re.compile(r"typical\w*|\busual\w*|\baverage|\bavg|\bmean\b|median|\bp ?50\b|mostly|典型|平均|通常|一般"),
        "typical",
    ),
    (
        re.compile(
            r"\bmax(?:imum)?\b|\bpeak\b|\bburst\b|峰值"
            r"|高峰|\bup to\b|at most|longest|no more than|\bp "
            r"?9[059]\b|upper|最大|最长|最多|不超过|上限"
        ),
        "high",
    ),
    (re.compile(r"\bmin(?:imum)?\b|at least|shortest|lower|最小|最短|最少|至少"), "low"),
)
_KEY_UNITS: tuple[tuple[str, str], ...] = (
    (r"tokens? ?(?:/|per) ?s(?:ec(?:ond)?)?|\btps|tok ?/ ?s", "tokens/s"),
    (r"tflop ?/? ?s?|tflops?|tops", "TFLOPS"),
    (r"pflop ?/? ?s?|pflops?", "PFLOPS"),
    (r"gib(?: ?/ ?s| s| per s\w*)|gibps", "GiB/s"),
    (r"gb ?/ ?s|gb s|gb per s\w*|gbyte s", "GB/s"),
    (r"tb ?/ ?s|tb s|tb per s\w*|tbps", "TB/s"),
    (r"gbit ?/ ?s|gbit s|gbits?", "Gbit/s"),
    (r"gbps", "gbps"),
    (r"ms|msecs?|millis(?:econds?)?|毫秒", "ms"),
    (r"us|microseconds?", "us"),
    (r"(?<!per )(?:s|secs?|seconds?|秒)", "s"),
    (r"gib", "GiB"),
    (r"gb|g", "GB"),
    (r"mib", "MiB"),
    (r"mb", "MB"),
    (r"tb", "TB"),
    (r"bytes", "byte"),
    (r"percent|pct|%|percentage", "%"),
    (r"(?<!per )tokens?", "tokens"),
    (r"usd|\$", "USD"),
    (r"rpm|qpm|req(?:uest)?s? ?(?:/|per) ?min(?:ute)?", "rpm"),
    (r"qps|rps|req(?:uest)?s? ?(?:/|per) ?s(?:ec(?:ond)?)?", "rps"),
)
_KEY_UNIT_PATTERNS = tuple((re.compile(rf"(?:^|[\s(\[,])(?:in )?(?:{p})\s?[)\]]?$"), unit) for p, unit in _KEY_UNITS)
_WRITTEN_RATE = re.compile(r"(?<![A-Za-z])G(B|b)(?:ps|/s|_per_s)(?![A-Za-z])")
_UNIT_INSIDE = re.compile(r"[(\[（]([^()\[\]（）]{1,16})[)\]）]")


def key_unit(key: str) -> str | None:
    """The unit that a key or a column header ends with or has in brackets: `gpu_memory_gb`, `TTFT (ms)`."""
    if written := _WRITTEN_RATE.search(key):  # the case of the b tells bytes from bits
        return "GB/s" if written[1] == "B" else "Gbit/s"
    words = key_words(key)
    for candidate in (*(m.strip() for m in _UNIT_INSIDE.findall(words)), words):
        for pattern, unit in _KEY_UNIT_PATTERNS:
            if pattern.search(candidate):
                return unit
    return None


def statistics_in(text: str) -> tuple[Statistic, ...]:
    """Every statistic that a text names, in the order of the text ("P50/P99")."""
    found: dict[int, Statistic] = {
        match.start(): name for pattern, name in _STATISTICS for match in pattern.finditer(text)
    }
    return tuple(found[start] for start in sorted(found))


def is_word(quantity: Quantity) -> bool:
    """Whether a number is a word of the language and no figure: "one way", "one of the"."""
    return quantity.unit == "count" and quantity.words.lower() == "one"


def shared_statistic(text: str) -> str:
    """The statistic that a text states for all its limits ("both p99"), "" where it states none."""
    shared = _FOR_ALL.search(text)
    return (shared["which"] or shared["which2"]).lower() if shared else ""


def statistic_of(*texts: str) -> Statistic | None:
    """The statistic that the first of `texts` with any names; those beyond p99 count as p99."""
    return next((found for text in texts for pattern, found in _STATISTICS if pattern.search(text)), None)


def bound_of(*texts: str) -> Bound | None:
    """Whether the first of `texts` that says so speaks of a typical, a lowest or a highest figure."""
    return next((bound for text in texts for pattern, bound in _BOUNDS if pattern.search(text)), None)
