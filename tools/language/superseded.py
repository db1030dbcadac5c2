"""What holds of an older text beside a newer one: all of it, or, where the newer calls it dead, what that says stays.

"Input as before, output double that" speaks of the older text too: its length is multiplied there.
"""

from __future__ import annotations

from typing import Any

from .conflicts.figures import label
from .lexicons.limits import ROLE as LATENCY
from .lexicons.load import ROLE as LOAD
from .load.changes import FACTOR, factor
from .merge import stated_fields
from .patterns.gated import Gated
from .patterns.page import parts
from .said import Said

_GONE = (
    r"(?:dead|void|obsolete|cancell?ed|withdrawn|outdated|superseded|scrapped|history|"
    r"invalid|off\sthe\stable|no\slonger\s(?:valid|true|relevant))"
)
_TEXT = r"(?:mail|e-?mail|message|request|ticket|plan|note|quote|draft|text|version|above|lot|thing|one)s?"
_DEAD = Gated(
    rf"(?<![a-z])(?<!in\s)(?<!of\s)(?:(?:all|everything)\s(?:of|in)\s)?(?:(?:that|this|it|(?:the|his|her|their|my|our|[a-z]+'s)\s(?:[a-z]+\s)?{_TEXT}|that\s{_TEXT})(?:\sabove|\sbelow)?)\s(?:(?:is|are|was)\s(?:(?:now|all|since|completely|entirely)\s)?{_GONE}|no\slonger\s(?:holds?|appl(?:y|ies)|counts?|stands?))|"
    r"(?<![a-z])(?:nothing|none)\s(?:in|of)\s(?:it|that|this|these|them|the\s[a-z]+)\s(?:is\s(?:still\s)?(?:valid|true|relevant)|(?:still\s)?(?:holds?|appl(?:y|ies)|counts?|stands?))(?:\s(?:any\s?more|any\slonger|now))?|"
    rf"(?<![a-z])(?:ignore|forget|disregard|scrap)\s(?:all\sof\s|everything\sin\s)?(?:everything\s(?:below|above|quoted)|(?:the|that|his|her)\s(?:quoted\s|old\s|previous\s)?(?:e?-?mail|message|request|above|quote)|what\s(?:is|was)\squoted)(?![a-z])|"
    r"(?:上面|以上|上述|原来?的?(?:需求|方案|工单|邮件|计划|要求)|之前(?:的|那[封个份])(?:需求|方案|邮件|要求)?|那[封个份](?:需求|方案|邮件)?|引用的?(?:内容|部分)?)的?[^,;。\n]{0,6}?(?:全部|全都|都|已经?|整个)*(?:作废|取消|不算|无效|过期|失效|废弃|推翻|不成立|撤[回销])了?"
)
_SAME = Gated(
    r"(?<![a-z])(?:same|unchanged|(?:stays?|remains?|keep|kept|leave)(?=\s(?:as|the\ssame|like|what|where)|\s?[,.;\n]|$)|as\s(?:before|above|then|in|(?:it|they)\s(?:was|were))|like\s(?:before|then|above)|no\schange|except|apart\sfrom|still\s(?:holds?|appl(?:y|ies)|stands?))(?![a-z])|除了|不变|照旧|沿用|同[上原]|一样|维持|保持"
)
# "users will not double", "if the users double", "twice the answer quality".
_UNSAID = Gated(
    r"(?<![a-z])(?:not|never|no|if|unless|whether|may|might|could|would|quality|accuracy)(?![a-z])|n't(?![a-z])|不|没|如果|若|可能|质量|精度"
)
_THING = Gated(
    r"(?<![a-z])(?:(?P<model>model)|(?P<hardware>hardware|gpus?|cards?|nodes?|machines?|box(?:es)?)|(?P<engine>engine)|(?P<weights>precision|weights|quanti[sz]ation)|(?P<strategy>layout|strategy|parallelism)|(?P<objective>objective|goal|priority)|(?P<limits>limits?|slos?|slas?|targets?))(?![a-z])|"
    r"(?P<model2>模型)|(?P<hardware2>硬件|机器|显?卡)|(?P<engine2>引擎)|(?P<weights2>精度|权重|量化)|(?P<strategy2>切分|并行|策略)|(?P<objective2>目标)|(?P<limits2>指标|限制|时延要求)"
)
_CLAUSE_END = Gated(r"[,;:!?()\n。]|\.(?=\s|$)|\s(?:and|but)\s")
_LIMITS = ("ttft", "tpot", "end_to_end")
_FIELDS: dict[str, tuple[str, ...]] = {
    "model": ("model", "model_config_object"),
    "hardware": ("accelerator", "accelerator_object", "gpus", "nodes", "gpus_per_node"),
    "engine": ("engine", "engine_version"),
    "weights": ("weights", "kv_cache", "activations", "precisions"),
    "strategy": ("strategy", "disaggregated"),
    "objective": ("objective",),
    "limits": tuple(f"{role}_{what}" for role in _LIMITS for what in ("ms_max", "statistic")),
    "input": ("input_tokens", "input_tokens_range"),
    "output": ("output_tokens", "output_tokens_range"),
    "concurrency": ("concurrency",),
    "rate": ("request_rate", "rate_curve"),
    "hit_rate": ("prefix_cache_hit_rate", "prefixes"),
    "memory": ("memory_utilization",),
} | {role: (f"{role}_ms_max", f"{role}_statistic") for role in _LIMITS}
_MULTIPLIED = ("input_tokens", "output_tokens", "concurrency", "request_rate")


def still_holding(before: Said, newer: str) -> tuple[Said, str]:
    """What holds of an older text, and the newer text without the words that say so."""
    fields: dict[str, Any] = stated_fields(before)
    notes: list[str] = []
    words = dict(before.words)
    kept: set[str] = set()
    for start, clause in list(parts(newer, _CLAUSE_END)):
        names = [name for role in _roles(clause) for name in _FIELDS.get(role, ()) if name in fields]
        change = FACTOR.search(clause)
        figures = any(map(str.isdigit, clause[: change.start()] + clause[change.end() :] if change else clause))
        if not names or figures:
            continue
        if change is not None and _UNSAID.search(clause):
            continue
        if change is not None and len(names) == 1 and names[0] in _MULTIPLIED:
            value = fields[names[0]] * factor(change)
            notes.append(f"{clause.strip()!r} read as {value:g}, from {words[names[0]]!r} that was said before")
            fields[names[0]] = type(fields[names[0]])(value)
            newer = f"{newer[:start]}{' ' * len(clause)}{newer[start + len(clause) :]}"
        elif not _SAME.search(clause):
            continue
        kept |= {*names}
    dead = _DEAD.search(newer)
    if dead is None:
        return before.model_copy(update={**fields, "readings": (*before.readings, *notes)}), newer
    said = ", ".join(map(label, sorted(kept))) or "nothing of it"
    notes.append(f"{dead.group().strip()!r} is said of what was written before: {said} is kept")
    holding = {name: value for name, value in fields.items() if name in kept}
    newer = f"{newer[: dead.start()]}{' ' * len(dead.group())}{newer[dead.end() :]}"
    words = {name: phrase for name, phrase in words.items() if name in holding}
    return Said(**holding, words=words, readings=tuple(notes)), newer


def _roles(clause: str) -> set[str]:
    matches = (match for pattern in (LOAD, LATENCY, _THING) for match in pattern.finditer(clause))
    return {str(match.lastgroup).rstrip("2") for match in matches}
