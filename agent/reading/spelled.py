"""Whether a name, a format, a wish or a degree stands in the words that are quoted for it."""

from __future__ import annotations

import re

from ...tools.catalog import hardware, model_mentions
from ...tools.catalog.names import parse_name
from ...tools.engines.names import ENGINES
from ...tools.language.said import Said
from ...tools.language.writing.spelling import simplified
from ...tools.plan.latency_limits import STATISTIC_FIELDS
from .derived import numbers_of

_PARALLEL = {
    "tp": (
        r"(?<![a-wyz])tp|tensor|slic|matri(?:x|ces)|(?:split|cut|shard|saw)[a-z]*\s(?:\w+\s)?layer|"
        r"张量|层[^,;。]{0,6}切|矩阵"
    ),
    "tp_ffn": r"(?<![a-z])tp|tensor|ffn|mlp|feed.?forward|张量",
    "pp": r"(?<![a-wyz])pp|pipelin|stage|consecutive|bunch|chain|流水|分段",
    "ep": r"(?<![a-wyz])ep|expert|专家",
    "sp": r"(?<![a-z])sp|sequence|context.?parallel|序列",
    "attention_dp": r"attention|(?<![a-wyz])dp|data.?parallel|注意力",
    "dp": r"(?<![a-wyz])dp|data.?parall|replica|cop(?:y|ies)|instance|each|separate|independ|副本|数据并行|[路各]|独立",
    "replicas": r"replica|cop(?:y|ies)|instance|(?<![a-wyz])dp|data.?parallel|副本|实例|数据并行|路",
}
_WORDS: dict[str, dict[str, str]] = {
    "objective": {
        "latency": r"latenc|fast|quick|respons|snap|instant|soon|slow|speed|wait|delay|low|延|快|慢|等|响应|秒回",
        "throughput": (
            r"throughput|goodput|volume|capacity|most|many|max|more|large|high|as\smuch|load|per\ssec|/s|"
            r"吞吐|多|大|扛|量|高"
        ),
        "cost": (
            r"cheap|cost|few|sav(?:e|ing)|small|less|least|low|minim|econom|money|price|pay|bill|budget|spend|enough|"
            r"便宜|成本|少|省|划算|钱|低|费"
        ),
    },
    "disaggregated": {
        "True": r"disagg|separat|apart|split|pools?|own\s(?:gpus|nodes|machines)|true|yes|分离|分开",
        "False": (
            r"co-?locat|together|same|not|(?<![a-z])no(?![a-z])|none|n't|without|false|off|reject|shared|pool|"
            r"不|无|共用|混|合"
        ),
    },
    "gpus_open": {
        "True": r"no\s(?:limit|cap)|as\smany|few|how|minim|least|small|whatever|unlimited|需要|不限|少|几|多少"
    },
    "statistic": {"p50": r"p50|median|中位", "mean": r"mean|average|avg|平均|均"},
    "engine": {
        **{name: rf"(?<![a-z])(?:{'|'.join(engine.spellings)})(?![a-z])" for name, engine in ENGINES.items()},
        "trtllm": r"trt|tensorrt",
        "none": r"paper|no\sengine|any\sengine|纸面",
        "dynamo": r"dynamo",
    },
}
# A model over several cards or nodes, without the name of the way.
_SPREAD = re.compile(
    r"split|span|across|cross|over|extend|spread|inside|within|glue|together|pool|all\s(?:of|the|two|four|eight)|跨|拆|切|合|一起",
    re.IGNORECASE,
)
_CARD_NAME = re.compile(r"(?P<letters>[a-z]+)-?(?P<figure>\d+)")
_BITS = {"fp8": "8bit", "int8": "8bit", "int4": "4bit", "fp4": "4bit", "bf16": "16bit", "fp16": "16bit"}
_GLUE = re.compile(r"[\s\-_]+")


def names_parallel(name: str, quote: str) -> bool:
    """Whether `quote` speaks of the parallelism, or the demand, of that name."""
    return name not in _PARALLEL or re.search(_PARALLEL[name], simplified(quote), re.IGNORECASE) is not None


def names_spread(name: str, quote: str) -> bool:
    """Whether words speak of a parallelism by its name, or of a model that is spread over cards or nodes."""
    return names_parallel(name, quote) or _SPREAD.search(quote) is not None


def is_suggested(field: str, value: object, quote: str) -> bool:
    """Whether `quote` suggests the name that is supposed of it: a model needs a name, a card its maker or its kind."""
    if field == "model":
        return bool(model_mentions.mentions(quote)) or is_spelled(field, value, quote, Said())
    if field != "accelerator" or hardware.mentions(quote):
        return True
    card = hardware.find_accelerator(str(value))
    words = (*(card.architecture or "").split(), card.vendor or "", *card.brands)
    return any(word and re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", quote, re.IGNORECASE) for word in words)


def is_spelled(field: str, value: object, quote: str, rules: Said) -> bool:
    """Whether `value` stands in `quote`: to the rules, to the catalogues, or by its word."""
    if getattr(rules, field, None) == value:
        return True
    if field == "model":
        entries = (mention.entry for mention in model_mentions.mentions(quote))
        letters = "".join(quote.lower().split())
        is_told = all(token in letters for token in parse_name(str(value)).core)
        return is_told or any(entry is not None and entry.name == value for entry in entries)
    if field == "accelerator":
        is_named = any(
            mention.accelerator is not None and mention.accelerator.id == value for mention in hardware.mentions(quote)
        )
        return is_named or _is_spoken(str(value), quote)
    plain = _GLUE.sub("", quote.lower())
    if field in ("weights", "kv_cache", "activations"):
        return str(value) in plain or _BITS.get(str(value), "\0") in plain
    if field == "engine_version":
        return str(value).lower() in quote.lower()
    if field in STATISTIC_FIELDS:
        numbers = numbers_of(quote)
        shares = (
            *numbers,
            *(number * 100 for number in numbers),
            *(a / b * 100 for a in numbers for b in numbers if b),
        )
        shares += tuple(100 - share for share in shares)  # "one exception in ten"
        if str(value)[1:] in {f"{share:g}" for share in shares}:
            return True
    pattern = _WORDS.get("statistic" if field in STATISTIC_FIELDS else field, {}).get(str(value))
    return pattern is not None and re.search(pattern, quote, re.IGNORECASE) is not None


def _is_spoken(card: str, quote: str) -> bool:
    """Whether a card is named with its figure in words ("H one hundred")."""
    name = _CARD_NAME.match(card)
    if name is None or float(name["figure"]) not in numbers_of(quote):
        return False
    return re.search(rf"(?<![a-z]){name['letters']}(?![a-z])", quote, re.IGNORECASE) is not None
