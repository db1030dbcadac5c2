"""Keys of structured briefs that count, reserve, allow or cross something, as the readers of words know them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...catalog.hardware import mentions
from ..lexicons import reserved as lex
from ..patterns.gated import Gated
from .key_words import KEPT_BACK, key_words, known_key

COUNT = Gated(
    r"(?:count|quantity|qty|number|num|amount)(?: total)?|how many|replicas|数量|台数|n|(?:we )?have|owned|in stock"
)
# {"type": "L40S", "quantity_total": 16, "per_server": 8}: of cards, whatever holds them.
ALL_CARDS = Gated(
    r"total(?: (?:gpus?|cards?|boards|count|quantity|number))?|(?:gpus?|cards?|boards|count|quantity|number) total|"
    r"max(?:imum)? total|总卡数(?:上限)?|卡总数|"
    r"(?:boards |units |modules )?(?:fitted|installed|mounted)|slots (?:filled|populated)|boards|已装|装有"
)
GPU_KEY = Gated(r"(?:gpu|card|accelerator|device|npu)(?: ?(?:type|model|name))?|显卡|加速卡|型号")
# Words in a row, or a value of an object, by which it counts for nothing.
GONE = Gated(
    r"(?<![a-z])(?:(?:(?:is|are|being|already|to\sbe|was|were)\s)+(?:decommissioned|retired|scrapped|sold|withdrawn|dropped|rejected|phased\sout)|"
    r"(?:for|listed\sfor)\s(?:completeness|reference|information)(?:\sonly)?|not\s(?:available|ours|for\sus|in\sscope)|none(?=\s?(?:\(|$|until|till|before))|out\sof\sscope|obsolete|decommissioned|retired|not\s(?:to\sbe\s|being\s)?(?:counted|planned|included|used)|cold\s(?:dr|stand-?by|spare))(?![a-z])"
    r"|(?<![a-z])(?:out\sof\sservice|(?:do\snot|don't|must\snot|never)\s(?:use|touch|plan))(?![a-z])"
    r"|退役|下线|淘汰|仅供参考|报废|停用|(?:不[可能要得]|勿)(?:占?用|动)|被?(?:借|占)走|不参与",
)
CARDS = Gated(r"(?:gpu|card|accelerator|device|npu|board)s|显卡|加速卡")
# {"part": "MI300X"}: a card where the catalogue has its name.
PART_KEY = Gated(r"(?:part|product|chip|board|sku)(?: (?:name|no|number))?|产品|芯片")
_OF_A_PART = Gated(r"\d|其中|部分|(?<![a-z])(?:one|two|half|some|rest|(?:of\s(?:the|them|these|those|which)))(?![a-z])")
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
# {"item": "8x B200", "status": "cancelled"}
_STATUS = Gated(
    r"(?:order |line |offer )?(?:status|state|decision|outcome|verdict|result)|(?:审批|订单)?(?:状态|结论|结果)"
)
_LAPSED = Gated(
    r"\W*(?:(?:was|is|has\sbeen)\s)?(?:(?:cancel|reject|declin|refus|withdr|deni|expir|laps|drop|return|retir|reced|scrap|decommission|"
    r"void|lost|dead|turned\sdown)\w*|not\s(?:accepted|ordered|approved|chosen|selected|taken))(?![a-z])|"
    r"已?被?(?:取消|驳回|拒绝|否决|作废|撤[回销单]|淘汰|落选)|未(?:批|获批|通过|中标|采纳)"
)
_STANDS = Gated(
    r"\W*(?:accepted|approved|ordered|confirmed|chosen|selected|delivered|booked|installed|won|active|in\suse|ours|ok)\W*|"
    r"已?(?:下单|批准|通过|采纳|中标|确认|到货|选定|在用)"
)
# {"allowed": {"pipeline_parallelism": false}}: permissions, which demand nothing.
_ALLOWED = Gated(r"(?:is |are )?(?:allowed|permitted|allows?|permits?|may use)|允许|可用")
# "gpus_granted_to_us", "taken_by_others".
_GRANTED_KEY = Gated(
    r"(?:gpus?|cards?|boards|accelerators?) "
    r"(?:granted|given|assigned|allotted|allocated|available|fitted|installed|mounted)"
    r"(?: (?:to|for) (?:us|me|this|the project))?"
)
# "cards_for_vision", "taken_by_others", "视觉占用卡数": what others have of the hardware that was counted.
_GIVEN = (
    r"(?:(?:is\s|are\s)?(?:taken|used|needed|occupied|blocked|in\suse|reserved|kept|held|left|given|lent|promised|"
    r"belong(?:s|ing)?)(?:\sfree)?\s)"
)
_OURS = r"(?:我|咱|本|大?模型|推理|llm|每|已)"
_OTHERS_KEY = Gated(
    rf"(?:(?:(?P<node>{lex.NODE})|gpus?|cards?|accelerators?)\s(?:{_GIVEN}(?:by|for|to)|for)\s{lex.NOT_FOR_US}|"
    rf"(?P<bare>{_GIVEN}by\s)|{_GIVEN}for\s(?:others|(?:an)?other\s))(?!others?\sonly).*|"
    rf"(?:(?:预?留|分|借|让|拨)?给(?!{_OURS})[^卡台机节]{{1,10}}?|(?!{_OURS})[^卡台机节]{{1,10}}?(?:占用?|使用|用掉|预留))的?"
    rf"(?:(?P<node2>节点|机器|服务器)|显?卡|gpu)数?量?"
)
_OF_HARDWARE = Gated(r"hardware|gpus?|cards?|accelerators?|machines?|cluster|硬件|卡|机器")
_NETWORK = Gated(r"(?:.* )?(?:interconnects?|networks?|networking|fabrics?)|互联|网络")
_BETWEEN_NODES = Gated(r"between|across|inter|outside|external|节点间|机间")
_HARDWARE = Gated(r"(?P<nodes>(?:node|server|machine|host|box)(?:e?s)?)|(?P<gpus>(?:gpu|card)s?)")
_CROSSING = Gated(
    r"(?:cross|across|inter|span|spans|multi) ?(?:the )?(?:nodes?|hosts?|servers?|machines?)|跨(?:节点|机)"
)
_IN_ONE_NODE = Gated(
    r"(?:all )?(?:(?:in|on|inside|within) )?(?:the )?(?:one|a single|single|same) "
    r"(?:node|server|machine|host|box|chassis)(?: only)?|"
    r"(?:在?同一?[台个]?|单[台个]?)(?:服务器|机器?|节点)[内上]?"
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
EACH = "each "
_FULL_MACHINE = Gated(r"^(?!\W*\d).*(?<![a-z])(?:node|server|machine|host|box|system)(?![a-z])\W.{0,16}\d\s?[x×*]")
MACHINE = Gated(rf"{_MACHINE}|instance|vm|实例|服务器|机器|节点")
MACHINES = Gated(
    r"(?:.* )?(?:nodes|servers?|hosts?|machines?|box(?:es)?|chassis|instances)|"
    r"(?:gpu ?)?(?:机器|服务器|节点|主机)数?量?"
)
# {"typical": 22, "plan_for": 70}: of several figures for one quantity, the one to plan for.
_PLANNED_KEY = Gated(r"plan(?:ned)? ?(?:for|with)?|design(?: for)?|size(?:d)? ?for|target|to plan")
_OTHER_FIGURES = Gated(
    r"typical|typ|now|today|current(?:ly)?|average|avg|mean|usual|peak|max(?:imum)?|min(?:imum)?|observed|last|measured"
)
_QUANTITY_OF = Gated(rf"(?<![a-z])(?:{_OTHER_FIGURES.pattern})(?![a-z])")
_SHARED_KEY = Gated(
    r"(?:prompts? |input )?(?:common|shared|fixed|static|same) "
    r"(?:part|prefix|portion|(?:system )?prompt|head)(?: tokens?| length)?|system prompt(?: tokens?| length)?|"
    r"(?:of which|thereof|incl(?:uding)?)(?: the)? (?:common|shared|fixed|static|same)(?: \w+){0,2}"
)
# {"gpus": {"at_most": 6}}
_AT_MOST = Gated(
    r"at most|max(?:imum)?(?: (?:count|number|quantity))?|(?:count|number) max|up to|no more than|limit|cap|最多|上限"
)
_DENIED = Gated(r"deny|denied|never|no|none|forbid(?:den)?|disallow(?:ed)?|not allowed|off")
MACHINE_TYPE = Gated(
    r"(?:machine|instance|vm|node|server|box) ?(?:type|model|shape|size|sku|flavou?r)|sku|机型|实例(?:类型|规格)|"
    r"服务器型号"
)
# {"avoid": ["pipeline parallelism"]}, and "Not wanted" over a list.
_FORBIDS = Gated(
    r"(?:(?:what )?(?:we )?(?:do|must|may|should) not|dont|don't|not)(?: be)?"
    r"(?: used?| do| want(?:ed)?| acceptable| an option)?|no|never|avoid|forbid(?:s|den)?|ban(?:ned)?|excluded?|"
    r"unwanted|no[ -]gos?|disallow(?:ed)?|den(?:y|ied)|prohibit(?:ed)?|off limits|ruled out|not (?:allowed|permitted)|"
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
# {"redundancy": {"replicas": 1}}
_REDUNDANCY = Gated(r"redundancy|stand ?by|spares?|failover|fault tolerance|冗余|备用|容灾")
_REPLICAS = Gated(r"(?:model )?(?:replicas?|copies)|副本[数量]{0,2}")
# {"memory": {"headroom": "10%"}}: none of the load.
_LIMITED = Gated(r"(?:.* )?(?:memory|vram|hbm|disk|storage|budget|costs?|power|cpu|network)|显存|内存|预算")
# {"quantization": {"linear_weights": "int8", "linear_inputs": "int8"}}
_FORMATS = Gated(r"(?:.* )?(?:precisions?|quanti[sz]ations?|(?:d|data ?)types?|number formats?)|精度|量化")
_TENSOR = Gated(
    r"(?P<weights>(?:linear|layer|gemm|matmul|model) weights?)|"
    r"(?P<activations>(?:(?:linear|layer|gemm|matmul|compute) )?inputs?)"
)
# {"nice": ["first token after 700 ms"]}
_WISH = Gated(r"nice|wish(?:es|list)?|optional(?:ly)?|stretch(?: goals?)?|bonus|加分项|期望")


def statement_of_key(parent: str, words: str, value: Any) -> tuple[str, ...] | None:
    """A key, its parent and its yes or no as a statement, behind the keys that it then stands under; else `None`."""
    if parent and isinstance(value, bool) and _ALLOWED.fullmatch(parent):
        return words, "allowed" if value else "not allowed"
    if parent and _is_denied(value) and _CROSSING.search(words):
        return (_kept_inside(words),)
    if value in (True, "yes") and _IN_ONE_NODE.fullmatch(words):
        return "nodes", "1"
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
    if parent and KEPT_BACK.search(parent) and (kept := _HARDWARE.fullmatch(words)):
        return f"reserved {kept.lastgroup}"
    if any(
        _REDUNDANCY.fullmatch(one) and _REPLICAS.fullmatch(other) for one, other in ((parent, words), (words, parent))
    ):
        return "spare replicas"
    of_others = _OTHERS_KEY.fullmatch(words) if isinstance(value, int) else None
    if of_others and not (of_others["bare"] and not _OF_HARDWARE.search(parent)):
        return "reserved nodes" if any(map(of_others.group, ("node", "node2"))) else "reserved gpus"
    if _NETWORK.fullmatch(parent) and _BETWEEN_NODES.fullmatch(words):
        return f"{parent} between nodes"
    if _BUDGET.fullmatch(parent) and _PER_TIME.search(words) and not _BUDGET.fullmatch(words):
        return f"budget {words}"
    if _LIMITED.fullmatch(parent) and words.startswith("headroom"):
        return f"{parent} {words}"
    if _FORMATS.fullmatch(parent) and (tensor := _TENSOR.fullmatch(words)):
        return str(tensor.lastgroup)
    if _WISH.fullmatch(words):
        return "nice to have"
    if _SHARED_KEY.fullmatch(words):
        return "shared prefix tokens"
    if _GRANTED_KEY.fullmatch(words):
        return "gpus"
    if _OF_TIME.fullmatch(words) and _REQUESTS.fullmatch(parent):
        return f"{parent} {words}" if words.isascii() else f"{words}{parent}数"
    is_each = OF_EACH.fullmatch(words) and (words != "each" or MACHINES.fullmatch(parent))
    if is_each or (GPU_KEY.fullmatch(parent) and _EACH_MACHINE.fullmatch(words)):
        return "gpus per node"
    of = _HARDWARE.fullmatch(parent) or MACHINES.fullmatch(parent) or MACHINE.fullmatch(parent)
    if of and type(value) is int and KEPT_BACK.fullmatch(words):
        return f"reserved {of.lastgroup or 'nodes'}"
    if of and _AT_MOST.fullmatch(words) and isinstance(value, int):
        return f"max {of.lastgroup or 'nodes'}"
    bound = known_key(f"{words}{parent}") if isinstance(value, int) else None  # {"副本": {"最少": 2}}
    return bound if bound is not None and bound.startswith(("max", "min")) else key


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


def not_planned(value: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of figures for which another is planned, where a key names it: "plan_for: peak_qps"; that key first."""
    naming = [key for key, item in value.items() if isinstance(item, str) and _PLANNED_KEY.fullmatch(key_words(key))]
    named = key_words(value[naming[0]]) if len(naming) == 1 else ""
    figures = {key: _QUANTITY_OF.sub("", key_words(key)).strip() for key in value if key not in naming}
    chosen = [key for key in figures if named and f"{key_words(key)} ".startswith(f"{named} ")]
    if len(chosen) != 1:
        return ()
    return (*naming, *(key for key in figures if key not in chosen and figures[key] == figures[chosen[0]]))


def names_full_machine(value: object) -> bool:
    """Whether a value is a machine with its cards: "GPU server, 8x B200"."""
    return isinstance(value, str) and len(value) < _SHORT and _FULL_MACHINE.search(value) is not None


def says_unused(entries: Iterable[tuple[str, object]], *, is_listed: bool = False) -> str | None:
    """What says of a row or an object with a card that it is not used: {"gpu": "A100", "use": "no, for CFD"}.

    Beside others in a list any value may say so, unless it speaks of a part of the cards.
    """
    plain = [(key_words(key), "no" if value is False else str(value)) for key, value in entries]
    gone = [value for _, value in plain if is_listed and GONE.search(value) and not _OF_A_PART.search(value)]
    says_no = next((f"{key}: {value}" for key, value in plain if value in gone or _says_no(key, value)), None)
    return says_no if any(GPU_KEY.fullmatch(key) or mentions(value) for key, value in plain) else None


def _says_no(key: str, value: str) -> bool:
    is_use, is_status = _USED.fullmatch(key), _STATUS.fullmatch(key)
    return bool((is_use and _NOT_USED.match(value)) or (is_status and _LAPSED.match(value)))


def says_used(key: str, value: str) -> bool:
    """Whether a key in plain words with its value says no more than that something counts: "status: ordered"."""
    return _STATUS.fullmatch(key) is not None and _STANDS.fullmatch(value) is not None
