"""Keys that mean something only together: an instance type and its count, items of a day and the calls of each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from ...catalog.hardware import mentions
from ...engines.names import known_engine
from ..patterns.gated import Gated
from ..patterns.quantities import find_quantities, read_number
from .key_words import key_words
from .keys import COUNT, MACHINE_TYPE, MACHINES, names_full_machine
from .statements import Statement

_MACHINE = Gated(rf"{MACHINE_TYPE.pattern}|instance|vm|machine|server|box|node|type|kind|spec|实例|服务器|规格|配置")
_CARDS_OF_IT = Gated(r"\d{1,3}\s?[x×*张块卡]?\s?[a-z]")
_MOST = Gated(
    r"max(?:imum)? (?:replicas|instances|vms|machines|nodes|servers|count)|"
    r"(?:count|number|quantity|qty|instances|machines|nodes) (?:max(?:imum)?|limit|cap)"
)
_PRICE = Gated(
    r"(?:list )?(?:hourly (?:usd|price|cost|rate)|"
    r"(?:usd|price|cost|rate) (?:per|an?) (?:(?:machine|instance|vm|node|server) )?hour|usd hourly)"
)
_OF_DAY = Gated(r"(?P<item>[a-z]{3,16})s per (?:(?:working|business) )?(?P<time>day|hour|minute|second)")
_OF_EACH = Gated(
    r"(?:llm |model )?(?:calls|requests|prompts|queries|passes) "
    r"per (?!(?:day|hour|minute|second)$)(?P<item>[a-z]{3,16})"
)
_CALLS = ("call", "prompt", "querie", "inference", "completion")
# "2160 (each = 1 request)": what an item is, in the remark behind its number.
_ITS_CALLS = Gated(
    r"(?<![a-z])(?:each|every|an?|one|1)(?:\s(?:of\s(?:them|these|those)|[a-z]{3,16}))?\s?(?:=|->|:|is|are|makes?|means|gives|sends|triggers|counts\sas|equals)\s?(?:exactly\s|about\s)?"
    r"(?P<n>\d{1,4}|an?|one|two|three|four|five)\s(?:llm\s|model\s)?(?:requests?|calls?|prompts?|quer(?:y|ies))(?![a-z])|"
    r"(?P<k>\d{1,4}|one|two|three)\s(?:llm\s|model\s)?(?:requests?|calls?|prompts?)\s(?:each|apiece)(?![a-z])|"
    r"每[次个场条份]?[^,;。\d]{0,4}(?:=|是|为|对应|触发|产生)?\s?(?P<m>\d{1,4}|[一二两三四五])\s?[次个条]\s?(?:请求|调用)",
)
_WINDOW = Gated(r"(?:window|busy|working|business|active|office)(?: day)? hours|hours per day|window h")
# {"robots": 12, "requests_per_second_per_robot": 2}
_TIME = "second|minute|hour|day"
_RATE_OF_EACH = Gated(
    rf"(?:requests|calls|queries|prompts) per (?P<time>{_TIME}) (?:per|each) (?P<item>[a-z]{{2,16}})|"
    rf"(?:requests|calls|queries|prompts) per (?!{_TIME})(?P<item2>[a-z]{{2,16}}) per (?P<time2>{_TIME})|"
    r"每[个台名位条只]?(?P<item3>[^每秒分小天\d]{1,4})每(?P<time3>秒|分钟|小时|天)的?(?:请求|调用)[数量]?"
)
_TIMES = {"秒": "second", "分钟": "minute", "小时": "hour", "天": "day"}
# {"online": 600, "share_generating": "5%"}
_PEOPLE = Gated(
    r"(?:.* )?(?:users?|people|players?|agents|members|customers|employees|staff|seats|subscribers|students|sessions|"
    r"online)(?: (?:online|open|registered|connected|count|total))?|.*(?:在线|用户|人数|坐席|员工)(?:人?数|总[数量])?"
)
_SHARE_SERVED = Gated(
    r"(?=.*(?:share|fraction|ratio|percent\w*|pct|portion|part))(?!.*(?:error|fail|cache|hit|shared|retr|time ?out))"
    r"(?=.*(?:generating|running|in flight|at once|with .*request|concurren\w*|simultan\w*|waiting|active)).*|"
    r".*(?:同时|并发|活跃|正在)[^:]{0,6}(?:比例?|占比|率)"
)
_IS_SHARE = re.compile(r"\d[\d.]{0,6}\s?%|0?\.\d{1,4}(?=\s|$)")
_ENGINE_KEY = Gated(
    r"(?:.* )?(?:name|engine|framework|runtime|server|backend|software|stack|image|repo(?:sitory)?)|"
    r".*(?:引擎|框架|镜像)"
)
_VERSION = Gated(
    r"(?:(?:engine|framework|runtime|server|backend|image|container) )?(?:version|ver|release|build|tag|版本号?|版次)"
)
_RELEASE = re.compile(r"v?\d+(?:\.\d+){1,3}[\w.-]{0,12}")
# "tokens_in_out: [1000, 250]", "Query heads / KV heads: 40 / 8": two keys and two figures in one statement.
_SIDE = r"(?:in(?:put)?|out(?:put)?|prompt|completion|answer|generat\w+|isl|osl|q(?:uery)?|kv|输入|输出)"
_LENGTH = (
    r"(?:(?:平均)?(?:tokens?|lengths?|len|size|per [a-z]{3,16}(?![a-z])|avg|average|mean|(?:attention )?heads|长度)"
    r"[ :]?\s?)*"
)
_BOTH_SIDES = Gated(
    rf"(?P<head>{_LENGTH})[(]?\s?(?P<a>{_SIDE})\s?(?:[/,&、和与]|and)?\s?(?P<b>{_SIDE})[)]?\s?{_LENGTH}(?P<tail>\([^()]{{2,16}}\))?"
)
_OF_TWO = Gated(r"(?P<head>[^/()]{2,24}?)\s?\((?P<a>[^/()]{1,30}?)\s?/\s?(?P<b>[^/()]{1,30}?)\)(?P<tail>)")
_TWO_KEYS = Gated(r"(?P<head>)(?P<a>[^/()]{1,30}?)\s?/\s?(?P<b>[^/()]{1,30}?)(?P<tail>\s?\([^()]{2,16}\))?")
_FIGURE = r"[<>=≤≥~]{0,2}\s?\d[\d.,]*\s?[a-z%\u4e00-\u9fff]{0,8}"
_TWO_FIGURES = Gated(
    rf"\s*(?P<a>{_FIGURE}?)(?:\s?[/;、]\s?|\sto\s|,\s)(?P<b>{_FIGURE})(?P<remark>\s?\([^()]*\)|[,，]\s?[^\d]{{2,30}})?\s*"
)
# "requests / s", "p50 / p95": no two things.
_NOT_APART = Gated(
    r"(?:s|secs?|seconds?|min(?:ute)?|h(?:our)?|day|week|month|gpu|card|node|server|host|machine|user|token|request|"
    r"(?:.* )?(?:p\d\d\d?|mean|avg|average|median|max(?:imum)?|min(?:imum)?|typical|usual)|平均|中位数?|"
    r"最[大小])"
)
# "concurrency_per_node: 40", "concurrency: 40 (per node)"
_PART = r"(?P<{}>per (?:node|server|machine|host|box|gpu|card|accelerator))"
_AT_ONCE = Gated(
    r"(?:(?:requests? )?concurren(?:cy|t requests)|(?:parallel|simultaneous) requests|(?:requests )?in flight)"
    rf"(?: {_PART.format('key')})?"
)
_AMOUNT_OF_EACH = Gated(rf"(?P<n>\d{{1,6}})\s?(?:\(?{_PART.format('body')}\)?)?")
_AT_PEAK = Gated(r"(?:(?:at )?(?:the )?(?:peak|busiest)|busy hour|高峰|峰值)")


def _parted(entry: Statement) -> tuple[Statement, ...]:
    """A statement of two keys and two figures as two statements, in the order of both."""
    # The separators of a key of a file are blanks in words.
    key = unicodedata.normalize("NFKC", entry.path[-1]).lower().replace("_", " ") if entry.keyed and entry.path else ""
    sides = _BOTH_SIDES.fullmatch(key)
    keys = sides if sides and sides["a"] != sides["b"] else _OF_TWO.fullmatch(key) or _TWO_KEYS.fullmatch(key)
    figures = _TWO_FIGURES.fullmatch(entry.text)
    if keys is None or figures is None:
        return (entry,)
    remark = figures["remark"] or ""
    if _AT_PEAK.fullmatch(keys["b"]):  # "Concurrency (steady / peak): 40 / 90", "rps avg/peak: 3/9"
        *of, first = keys["a"].split()
        text = f"{first} {figures['a']}, {keys['b']} {figures['b']}{remark}"
        return (replace(entry, path=(*entry.path[:-1], keys["head"] or " ".join(of) or "load"), text=text),)
    if any(_NOT_APART.fullmatch(keys[side]) for side in "ab"):
        return (entry,)
    parts: list[Statement] = []
    shared = keys["b"].split()[-1] if " " in keys["b"] and " " not in keys["a"] else ""
    for side in "ab":
        noun = f"{shared if side == 'a' else ''} {keys['head'] or ''}"
        if keys is sides:
            noun = "heads" if "head" in key else "tokens"
        name = " ".join(f"{keys[side]} {noun} {keys['tail'] or ''}".split())
        parts.append(replace(entry, path=(*entry.path[:-1], name), text=figures[side] + remark))
    return tuple(parts)


def with_counts_joined(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, with those that only mean something together reworded or merged."""
    joined: list[Statement] = []
    statements = [part for entry in statements for part in _parted(entry)]
    for _, group in groupby(statements, key=lambda entry: entry.path[:-1] if entry.keyed else (entry.where,)):
        siblings = _with_version_of_engine(_with_cards_of_each(list(group)))
        siblings = _with_rate_of_each(_with_share_of_people([*map(_load_of_each, siblings)]))
        joined += _of_calls(_of_machines(siblings) if any(map(_names_machine, siblings)) else siblings)
    return joined


def _key(entry: Statement) -> str:
    return key_words(entry.path[-1]) if entry.keyed and entry.path else ""


def _keyed(group: Sequence[Statement], pattern: Gated) -> tuple[Statement, re.Match[str]] | tuple[None, None]:
    """The first statement whose key matches `pattern`, and the match; two `None` without one."""
    return next(((entry, match) for entry in group if (match := pattern.fullmatch(_key(entry)))), (None, None))


def _names_machine(entry: Statement) -> bool:
    is_key = _MACHINE.fullmatch(_key(entry)) is not None or _key(entry).endswith(" type")
    return is_key and any(mention.gpus_per_node for mention in mentions(entry.text))


def _with_cards_of_each(group: list[Statement]) -> list[Statement]:
    """Beside the number of nodes, a node of so many cards is each of them: "node: 8x H200", "nodes: 3"."""
    if not any(MACHINES.fullmatch(_key(entry)) and read_number(entry.text) is not None for entry in group):
        return group
    each: list[Statement] = []
    for entry in group:
        is_machine = _MACHINE.fullmatch(_key(entry)) and _CARDS_OF_IT.match(entry.text)
        if is_machine or names_full_machine(entry.text):
            cards = re.sub(r"^\D+", "", entry.text)  # "GPU server, 8x B200"
            entry = replace(entry, path=(*entry.path[:-1], "each node"), text=cards)
        each.append(entry)
    return each


def _with_version_of_engine(group: list[Statement]) -> list[Statement]:
    """The group with the version of an engine behind its name: "name: vLLM", "version: 0.9.1".

    A bare version beside the whole document is the document's.
    """
    engines = (e for e in group if known_engine(e.text) is not None)
    engine = next((e for e in engines if any(map(_ENGINE_KEY.fullmatch, map(key_words, e.path[-2:])))), None)
    version, match = _keyed(group, _VERSION)
    if engine is None or version is None or match is None or (len(version.path) == 1 and " " not in match.group()):
        return group
    name = known_engine(engine.text) if "/" in engine.text else engine.text  # "vllm/vllm-openai"
    if "/" in engine.text and not _RELEASE.fullmatch(version.text):
        return group
    named = replace(engine, text=f"{name} {version.text}")
    return [named if entry is engine else entry for entry in group if entry is not version]


def _of_machines(group: Sequence[Statement]) -> list[Statement]:
    """Counts beside a machine type reworded as counts of it, and an hourly price as that of one machine."""
    reworded: list[Statement] = []
    for entry in group:
        key = _key(entry)
        if COUNT.fullmatch(key) or (MACHINES.fullmatch(key) and entry.text[:1].isdigit()):
            entry = replace(entry, path=(*entry.path[:-1], "nodes"))
        elif _MOST.fullmatch(key):
            entry = replace(entry, path=(*entry.path[:-1], "max nodes"))
        elif _PRICE.fullmatch(key) and entry.text[:1].isdigit():
            figure, _, remark = entry.text.partition(" ")
            entry = replace(entry, path=(*entry.path[:-1], "price"), text=f"${figure} per node-hour {remark}".strip())
        reworded.append(entry)
    return reworded


def _with_share_of_people(group: list[Statement]) -> list[Statement]:
    """The group with a number of people and the share of them that is served as one statement."""
    people, _ = _keyed(group, _PEOPLE)
    share, _ = _keyed(group, _SHARE_SERVED)
    figure = None if share is None else _IS_SHARE.match(share.text)
    if people is None or share is None or figure is None or not people.text[:1].isdigit():
        return group
    part = figure.group() if "%" in figure.group() else f"{float(figure.group()) * 100:g}%"
    text = f"{people.text} users, {part} of them at the same time{share.text[figure.end() :]}"
    both = replace(share, path=(*share.path[:-1], "load"), text=text)
    return [both if entry is share else entry for entry in group if entry is not people]


def _load_of_each(entry: Statement) -> Statement:
    """A number of requests at once that is stated per node or GPU, as the readers of words know it."""
    key, body = _AT_ONCE.fullmatch(_key(entry)), _AMOUNT_OF_EACH.fullmatch(entry.text)
    part = key and body and (key["key"] or body["body"])
    if not part or body is None:
        return entry
    return replace(entry, path=(*entry.path[:-1], "load"), text=f"{body['n']} concurrent requests {part}")


def _with_rate_of_each(group: list[Statement]) -> list[Statement]:
    """The group with a number of things and the rate of each as one rate: "robots: 12", "每臂每秒请求数: 2"."""
    rate, match = _keyed(group, _RATE_OF_EACH)
    if rate is None or match is None:
        return group
    item, time = match["item"] or match["item2"] or match["item3"], match["time"] or match["time2"] or match["time3"]
    counted = next((entry for entry in group if entry is not rate and _counts(_key(entry), item)), None)
    figures = [find_quantities(entry.text)[:1] for entry in (rate, counted) if entry is not None]
    if counted is None or not all(figures):
        return group
    amount = figures[0][0].decimal_value * figures[1][0].decimal_value
    both = replace(rate, path=(*rate.path[:-1], "load"), text=f"{amount:.12g} requests per {_TIMES.get(time, time)}")
    return [both if entry is rate else entry for entry in group if entry is not counted]


def _counts(key: str, item: str) -> bool:
    if item.isascii():
        return re.fullmatch(rf"(?:number of |\w+ )?{item}s?(?: count| number| total| online)?", key) is not None
    return item in key and key.endswith(("数量", "数", "个数", "台数"))


def _of_calls(group: Sequence[Statement]) -> Iterator[Statement]:
    """Items of a day and the calls of each, merged into the calls of a day and the hours in which they come."""
    items, of_day = _keyed(group, _OF_DAY)
    each, of_each = _keyed(group, _OF_EACH)
    window, _ = _keyed(group, _WINDOW)
    its_calls = None if items is None else _ITS_CALLS.search(items.text)
    is_call = of_day is not None and of_day["item"] in _CALLS
    is_spread = each or window or its_calls or is_call
    amounts = [find_quantities(entry.text)[:1] for entry in (items, each, window) if entry is not None]
    is_other = of_day is None or (of_each is not None and of_each["item"] != of_day["item"])
    if items is None or of_day is None or not is_spread or not all(amounts) or is_other:
        yield from group
        return
    amount = amounts[0][0].decimal_value * (amounts[1][0].decimal_value if each is not None else 1)
    if its_calls is not None and each is None:
        amount *= read_number((its_calls["n"] or its_calls["m"] or its_calls["k"]).lower()) or 1.0
    within = "" if window is None else f", within {amounts[-1][0].decimal_value:g} hours"
    for entry in group:
        if entry is items:
            yield replace(
                entry, path=(*entry.path[:-1], "load"), text=f"{amount:.12g} requests per {of_day['time']}{within}"
            )
        elif entry not in (each, window):
            yield entry
