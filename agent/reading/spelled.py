"""Whether a name, a format, a wish or a degree stands in the words that are quoted for it."""

from __future__ import annotations

import re

from ...tools.catalog import hardware, model_mentions
from ...tools.catalog.names import parse_name
from ...tools.engines.names import ENGINES
from ...tools.language.normal_form import normalise
from ...tools.language.quantities import find_quantities
from ...tools.language.said import Said
from ...tools.plan.latency_limits import STATISTIC_FIELDS

_PARALLEL = {
    "tp": r"(?<![a-z])tp|tensor|张量",
    "tp_ffn": r"(?<![a-z])tp|tensor|ffn|mlp|feed.?forward|张量",
    "pp": r"(?<![a-z])pp|pipelin|stage|流水",
    "ep": r"(?<![a-z])ep|expert|专家",
    "sp": r"(?<![a-z])sp|sequence|context.?parallel|序列",
    "attention_dp": r"attention|(?<![a-z])dp|data.?parallel|注意力",
    "dp": r"(?<![a-z])dp|data.?parallel|replica|cop(?:y|ies)|instance|副本",
    "replicas": r"replica|cop(?:y|ies)|instance|(?<![a-z])dp|data.?parallel|副本|实例",
}
_WORDS: dict[str, dict[str, str]] = {
    "objective": {
        "latency": r"latenc|fast|quick|respons|延迟|时延",
        "throughput": r"throughput|吞吐",
        "cost": r"cheap|cost|few|save|saving|便宜|成本|少|省",
    },
    "disaggregated": {
        "True": r"disaggregat|separat|apart|own\s(?:gpus|nodes|machines)|分离",
        "False": r"co-?locat|together|same|not|no\s|don'?t|without|不",
    },
    "gpus_open": {"True": r"no\s(?:limit|cap)|as\smany|few|how|minim|least|whatever|unlimited|不限|少"},
    "statistic": {"p50": r"p50|median|中位", "mean": r"mean|average|avg|平均"},
    "engine": {
        **{name: rf"(?<![a-z])(?:{'|'.join(one.spellings)})(?![a-z])" for name, one in ENGINES.items()},
        "trtllm": r"trt|tensorrt",
        "none": r"paper|no\sengine|any\sengine|纸面",
        "dynamo": r"dynamo",
    },
}
_BITS = {"fp8": "8bit", "int8": "8bit", "int4": "4bit", "fp4": "4bit", "bf16": "16bit", "fp16": "16bit"}
_GLUE = re.compile(r"[\s\-_]+")


def names_parallel(name: str, quote: str) -> bool:
    """Whether the parallelism, or the demand, of that name is spoken of."""
    return name not in _PARALLEL or re.search(_PARALLEL[name], quote, re.IGNORECASE) is not None


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
        entries = (one.entry for one in model_mentions.mentions(quote))
        said = "".join(quote.lower().split())
        is_told = all(token in said for token in parse_name(str(value)).core)
        return is_told or any(entry is not None and entry.name == value for entry in entries)
    if field == "accelerator":
        return any(one.accelerator is not None and one.accelerator.id == value for one in hardware.mentions(quote))
    plain = _GLUE.sub("", quote.lower())
    if field in ("weights", "kv_cache", "activations"):
        return str(value) in plain or _BITS.get(str(value), "\0") in plain
    if field == "engine_version":
        return str(value).lower() in quote.lower()
    if field in STATISTIC_FIELDS:
        shares = (f"{one.value * 100:g}" for one in find_quantities(normalise(quote)) if one.unit == "share")
        if str(value)[1:] in (*re.findall(r"\d+", quote), *shares):
            return True
    pattern = _WORDS.get("statistic" if field in STATISTIC_FIELDS else field, {}).get(str(value))
    return pattern is not None and re.search(pattern, quote, re.IGNORECASE) is not None
