"""Keys of structured briefs that count, reserve, allow or cross something, as the readers of words know them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..catalog.hardware import mentions
from .gated import Gated
from .key_words import key_words

COUNT = Gated(r"(?:count|quantity|qty|number|num|amount)(?: total)?|how many|replicas|数量|台数|n")
# {"type": "L40S", "quantity_total": 16, "per_server": 8}: of cards, whatever holds them.
ALL_CARDS = Gated(
    r"total(?: (?:gpus?|cards?|count|quantity|number))?|(?:gpus?|cards?|count|quantity|number) total|"
    r"max(?:imum)? total|总卡数(?:上限)?|卡总数"
)
GPU_KEY = Gated(r"(?:gpu|card|accelerator|device|npu)(?: ?(?:type|model|name))?|显卡|加速卡|型号")
# {"reserved_for_others": {"nodes": 1}}, {"tensor_parallel": {"cross_node": false}}
KEPT_BACK = Gated(
    r"reserved|(?:kept|held) (?:back|free|aside)|keep free|set aside|stand ?by|spares?$|[冷热灾]备|备用|"
    r"others?$|not (?:ours|available)|blocked|unavailable|预留|占用"
)
# {"gpu": "A100", "use": "no, reserved for CFD"}
_USED = Gated(
    r"(?:use|usable|available|included?|in scope|ours|for us)(?: (?:for|by) (?:us|this))?|used (?:for|by) (?:us|this)|"
    r"(?:是否)?[可使启]用"
)
_NOT_USED = re.compile(
    r"\W*(?:no(?:ne|t(?: (?:used|usable|available|included|ours|for us))?)?|false|never|n|否|不(?:是|[可使启]?用)?|无)"
    r"\s*(?:[,;:(\uff0c\uff1b\uff1a\uff08–—-]|$)",
    re.IGNORECASE,
)
# {"allowed": {"pipeline_parallelism": false}}: permissions, which demand nothing.
_ALLOWED = Gated(r"(?:is |are )?(?:allowed|permitted|allows?|permits?|may use)|允许|可用")
# "gpus_granted_to_us", "taken_by_others".
_GRANTED_KEY = Gated(
    r"(?:gpus?|cards?|accelerators?) (?:granted|given|assigned|allotted|allocated|available)"
    r"(?: (?:to|for) (?:us|me|this|the project))?"
)
_TAKEN_KEY = Gated(
    r"(?:gpus? |cards? |accelerators? )?(?:taken|used|occupied|blocked|in use|reserved) "
    r"(?:by|for) (?:others|(?:an)?other (?:teams?|projects?|services?))"
)
_NETWORK = Gated(r"(?:.* )?(?:interconnects?|networks?|networking|fabrics?)|互联|网络")
_BETWEEN_NODES = Gated(r"between|across|inter|outside|external|节点间|机间")
_HARDWARE = Gated(r"nodes?|gpus?|cards?|servers?|machines?")
_CROSSING = Gated(
    r"(?:cross|across|inter|span|spans|multi) ?(?:the )?(?:nodes?|hosts?|servers?|machines?)|跨(?:节点|机)"
)
_EACH_MACHINE = Gated(r"每(?:台|节点|机器?)")
# {"requests": {"per_minute": 90}}
_OF_TIME = Gated(r"per (?:second|minute|hour|day)|每(?:秒|分钟|小时|天|日)")
_REQUESTS = Gated(r"requests?|calls|queries|请求|调用")
DEGREE = Gated(
    r"(?:tp|pp|ep|dp|sp|(?:tensor|pipeline|expert|data|sequence|context)(?: parallel\w*)?)(?: (?:size|degree)s?)?"
)
# {"gpu": "L40S", "per_node": 4, "count": 2}: the cards of each machine that is counted.
_THINGS = r"(?:(?:num(?:ber)?|count|no)(?: of)? )?(?:gpus?|cards?|accelerators?|devices?|npus?)(?: count)?"
_MACHINE = r"(?:node|server|machine|host|box|chassis|tray)"
OF_EACH = Gated(
    rf"(?:{_THINGS} )?(?:per {_MACHINE}|each)(?: (?:{_THINGS}|count))?|"
    rf"{_THINGS} (?:in|on|of|inside|each|every|a)(?: (?:an?|one|each|every|the))? {_MACHINE}|"
    rf"{_MACHINE} {_THINGS}|(?:[每单](?:[台机]|节点))(?:机器|服务器)?(?:卡|gpu|显卡)数量?|gpn"
)
MACHINES = Gated(r"(?:.* )?(?:nodes|servers?|hosts?|machines?|box(?:es)?|instances)")
# {"typical": 22, "plan_for": 70}: of several figures for one quantity, the one to plan for.
_PLANNED_KEY = Gated(r"plan(?:ned)? ?(?:for|with)?|design(?: for)?|size(?:d)? ?for|target|to plan")
_OTHER_FIGURES = Gated(
    r"typical|typ|now|today|current(?:ly)?|average|avg|mean|usual|peak|max(?:imum)?|min(?:imum)?|observed|last|measured"
)
_SHARED_KEY = Gated(
    r"(?:prompts? |input )?(?:common|shared|fixed|static|same) "
    r"(?:part|prefix|portion|(?:system )?prompt|head)(?: tokens?| length)?|system prompt(?: tokens?| length)?"
)
_LEAST_KEY = Gated(r"(min|max)(?:imum)? (?:instances|copies|deployments|number of (?:instances|copies))")
_MOST_KEY = Gated(r"(?:number of )?(nodes|hosts|servers|machines|instances|gpus|cards|replicas) max(?:imum)?")
# {"gpus": {"at_most": 6}}
_AT_MOST = Gated(r"at most|max(?:imum)?|up to|no more than|limit|cap|最多|上限")
_DENIED = Gated(r"deny|denied|never|no|none|forbid(?:den)?|disallow(?:ed)?|not allowed|off")
MACHINE_TYPE = Gated(
    r"(?:machine|instance|vm|node|server|box) ?(?:type|model|shape|size|sku|flavou?r)|sku|机型|实例(?:类型|规格)|"
    r"服务器型号"
)
# {"avoid": ["pipeline parallelism"]}, and "Not wanted" over a list.
_FORBIDS = Gated(
    r"(?:(?:what )?(?:we )?(?:do|must|may|should) not|dont|don't|not)(?: be)?"
    r"(?: used?| do| want(?:ed)?| acceptable| an option)?|no|never|avoid|forbid(?:den)?|ban(?:ned)?|excluded?|unwanted|"
    r"no[ -]gos?|disallow(?:ed)?|den(?:y|ied)|prohibit(?:ed)?|off limits|ruled out|not (?:allowed|permitted)|"
    r"禁止(?:项|事项)?|禁用|不用|不要|不使用|不允许"
)
_DENIES = Gated(r"(?:no|not|never|none|do\snot|don't)(?![a-z])|[不无禁]")
_RULED_OUT = Gated(
    r"(?<![a-z])(?:not|no|without|reject\w*|exclu\w*|old|former|retired|unavailable|refused|declined)(?![a-z])|[不非]|排除"
)
_SHORT = 60
# {"output": "results/bench-2025.csv"}
WRITES_TO = Gated(
    r"(?:.* )?(?:output|out|results?|reports?|logs?|art[ei]facts?|dashboards?|archive)(?: (?:file|path|dir|to))?"
)
IS_PATH = re.compile(r"(?=.*[A-Za-z]{2})[\w.:~-]*/[\w./:~-]+|[\w-]+\.(?:csv|json|log|md|html|txt|parquet|png|svg)")
# {"budget": {"per_hour_usd": 11}}
_BUDGET = Gated(r"(?:.* )?(?:budget|spend(?:ing)?|money)(?: .*)?|预算|费用")
_PER_TIME = Gated(r"(?<![a-z])(?:per|an?|each) (?:hour|day|week|month)|hourly|daily|monthly")
# {"nice": ["first token after 700 ms"]}
_WISH = Gated(r"nice|wish(?:es|list)?|optional(?:ly)?|stretch(?: goals?)?|bonus|加分项|期望")


def statement_of_key(parent: str, words: str, value: Any) -> tuple[str, ...] | None:
    """A key, its parent and its yes or no as a statement, behind the keys that it then stands under; else `None`."""
    if parent and isinstance(value, bool) and _ALLOWED.fullmatch(parent):
        return words, "allowed" if value else "not allowed"
    if parent and _is_denied(value) and _CROSSING.search(words):
        return (_kept_inside(words),)
    if isinstance(value, str) and _FORBIDS.fullmatch(words):
        return (f"no {value}",)
    if value is True and _FORBIDS.fullmatch(parent):
        return (f"no {words}",)
    return None


def rules_out(key: str) -> bool:
    """Whether a key says that what stands under it is not to be had."""
    return _FORBIDS.fullmatch(key) is not None or _RULED_OUT.search(key) is not None


def forbidden_under(heading: str, item: str) -> str:
    """An item of a list as what it demands: under "Not wanted" it is what must not be."""
    is_name = len(item) <= _SHORT and not _DENIES.match(item)
    return f"no {item}" if is_name and _FORBIDS.fullmatch(key_words(heading).strip(" :*")) else item


def key_under(parent: str, key: str, value: Any) -> str:
    """A key as the readers of words know it: "promptCommonPart", "minimum_instances", "nodes" under "reserved"."""
    words = key_words(key)
    if parent and KEPT_BACK.search(parent) and _HARDWARE.fullmatch(words):
        return f"reserved {words}"
    if _TAKEN_KEY.fullmatch(words) and isinstance(value, int):
        return "reserved gpus"
    if _NETWORK.fullmatch(parent) and _BETWEEN_NODES.fullmatch(words):
        return f"{parent} between nodes"
    if _BUDGET.fullmatch(parent) and _PER_TIME.search(words) and not _BUDGET.fullmatch(words):
        return f"budget {words}"
    if _WISH.fullmatch(words):
        return "nice to have"
    if _SHARED_KEY.fullmatch(words):
        return "shared prefix tokens"
    if _GRANTED_KEY.fullmatch(words):
        return "gpus"
    if _OF_TIME.fullmatch(words) and _REQUESTS.fullmatch(parent):
        return f"{parent} {words}" if words.isascii() else f"{words}{parent}数"
    if (OF_EACH.fullmatch(words) and words != "each") or (GPU_KEY.fullmatch(parent) and _EACH_MACHINE.fullmatch(words)):
        return "gpus per node"
    if _AT_MOST.fullmatch(words) and _HARDWARE.fullmatch(parent) and isinstance(value, int):
        return f"max {parent}"
    if most := _MOST_KEY.fullmatch(words):
        return f"max {most[1]}"
    return f"{bound[1]} replicas" if (bound := _LEAST_KEY.fullmatch(words)) else key


def _kept_inside(words: str) -> str:
    """The demand of a denied crossing: the thing above the key, the degree in it, or a replica stays in one node."""
    if _CROSSING.fullmatch(words):
        return "must stay inside one node"
    named = DEGREE.match(words)
    return f"no {named.group().upper()} across nodes" if named else "no replica may span nodes"


def _is_denied(value: Any) -> bool:
    return value is False or (isinstance(value, str) and _DENIED.fullmatch(key_words(value)) is not None)


def planned_figure(value: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The key and figure to plan for, among several figures for one quantity; `None` if no key says so."""
    planned = [key for key in value if _PLANNED_KEY.fullmatch(key_words(key))]
    others = [key for key in value if _OTHER_FIGURES.fullmatch(key_words(key))]
    if len(planned) != 1 or not others or len(value) != 1 + len(others):
        return None
    return planned[0], value[planned[0]]


def says_unused(entries: Iterable[tuple[str, object]]) -> str | None:
    """What says of a row or an object with a card that it is not used: {"gpu": "A100", "use": "no, for CFD"}."""
    plain = [(key_words(key), "no" if value is False else str(value)) for key, value in entries]
    says_no = next((f"{key}: {value}" for key, value in plain if _USED.fullmatch(key) and _NOT_USED.match(value)), None)
    return says_no if any(card.accelerator for _, value in plain for card in mentions(value)) else None
