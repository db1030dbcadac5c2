"""What qualifies a figure: the unit that its key states, and whether it is one at all.

It refuses to say what the figure is about: that is the table's business (`fields.py`).
"""

from __future__ import annotations

import re

from ..patterns.quantities import Quantity
from .key_words import key_words
from .statements import Statement

_SPEED = r"(?:tps|(?:tok(?:en)?s?|t)(?: per)? s(?:ec(?:ond)?)?)"
_STREAM = r"(?:user|request|stream|session|client|reader|conversation|sequence)"
_ARRIVALS = r"(?:req(?:uest)?s?|rate|arrivals?|inbound|incoming|lambda|calls?|queries)"
_KEY_UNITS: tuple[tuple[str, str], ...] = (
    (rf"{_SPEED}(?: per| each)? {_STREAM}|(?:per|each) {_STREAM} {_SPEED}", "tokens/s per user"),
    (r"tok(?:en)?s? ?(?:/|per| ) ?s(?:ec(?:ond)?)?|\btps", "tokens/s"),
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
    (r"(?<!per )(?<!first )(?<!per output )tokens?", "tokens"),
    (r"usd|\$", "USD"),
    (r"rpm|qpm|(?:req(?:uest)?s?|rate) ?(?:/|per) ?min(?:ute)?", "rpm"),
    (r"(?:req(?:uest)?s?|rate) ?(?:/|per) ?(?:hour|hr?)", "requests per hour"),
    (r"(?:usd|dollars?|\$)(?: per)? (?:hour|hr?)", "USD per hour"),
    (rf"qps|rps|hz|{_ARRIVALS} ?(?:/|per) ?s(?:ec(?:ond)?)?", "rps"),
)
_KEY_UNIT_PATTERNS = tuple((re.compile(rf"(?:^|[\s(\[,])(?:in )?(?:{p})\s?[)\]]?$"), unit) for p, unit in _KEY_UNITS)
# Behind a unit: which of the figures of a quantity stands there.
_BOUND = re.compile(r" (?:min(?:imum)?|max(?:imum)?|limit|target|goal|bound|at least|at most)$")
_OF_EACH = re.compile(r" per (?:card|gpu|device|accelerator|node|server|host)$")
_WRITTEN_RATE = re.compile(r"(?<![A-Za-z])G(B|b)(?:ps|/s|_per_s)(?![A-Za-z])")
_UNIT_INSIDE = re.compile(r"[(\[（]([^()\[\]（）]{1,16})[)\]）]")


def key_unit(key: str) -> str | None:
    """The unit that a key or a column header ends with or has in brackets: `gpu_memory_gb`, `TTFT (ms)`."""
    if written := _WRITTEN_RATE.search(key):  # the case of the b tells bytes from bits
        return "GB/s" if written[1] == "B" else "Gbit/s"
    words = _OF_EACH.sub("", _BOUND.sub("", key_words(key)))
    for candidate in (*(m.strip() for m in _UNIT_INSIDE.findall(words)), words):
        for pattern, unit in _KEY_UNIT_PATTERNS:
            if pattern.search(candidate):
                return unit
    return None


def stated_unit(statement: Statement) -> str | None:
    """The unit that the key of a statement states, else the nearest of the two keys above it."""
    keys = statement.path[-3:] if statement.keyed else ()
    return next((unit for key in reversed(keys) if (unit := key_unit(key))), None)


def is_word(quantity: Quantity) -> bool:
    """Whether a number is a word of the language and no figure: "one way", "one of the"."""
    return quantity.unit == "count" and quantity.words.lower() == "one"
