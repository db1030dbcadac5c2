"""What a request wants to make best: latency, throughput or cost, in strong words ("lowest") or weak ("low")."""

from __future__ import annotations

import re

from .claims import Claims
from .page import Page

_BEST = r"(?:best|max(?:imum|imal)?|highest|most|peak|top|greatest|maximi[sz](?:e|ed|ing)|as\shigh\sas\spossible)"
_LEAST = (
    r"(?:lowest|minimum|minimal|min|minimi[sz](?:e|ed|ing)|least|smallest|best|shortest|as\slow\sas\spossible|reduce)"
)
_FILL = (
    r"(?:\s(?:the|possible|overall|total|aggregate|our|my|end-to-end|e2e|per-token|token|decode|system|output|for|of|on|"
    r"first)){0,3}"
)
_SUBJECTS: dict[str, tuple[str, str]] = {
    "latency": (
        r"(?:latency|latencies|response\stimes?|delay|responsiveness|ttft|tpot)",
        r"(?:延迟|时延|响应(?:时间|速度)?|首字)",
    ),
    "throughput": (
        r"(?:throughput|(?:tokens?|toks?)(?:/s(?:ec)?|\sper\ssec(?:ond)?)(?:/gpu)?|tps|goodput)",
        r"(?:吞吐(?:量|率)?)",
    ),
    "cost": (
        r"(?:costs?|price|spend(?:ing)?|bills?|budget|money|expenses?|usd|dollars?|\$|cost[\s\-]per[\s\-]token)",
        r"(?:成本|费用|花费|价格|花钱|开销)",
    ),
}  # fmt: skip
_STRONG: dict[str, str] = {
    "latency": (
        r"as\s(?:fast|quick(?:ly)?|responsive|snappy)\sas\s(?:possible|it\sgets|you\scan)|fastest(?:\s(?:possible|response|replies|answers?))?|"
        r"(?:speed|latency|response\stime)\s(?:matters\smost|is\s(?:key|critical|everything|the\s(?:priority|goal|objective)|paramount|king)|above\sall)|尽(?:快|可能快)|越快越好|最快"
    ),
    "throughput": (
        r"as\smany\s(?:tokens|requests)(?:\sper\ssecond)?\sas\spossible|throughput\s(?:matters\smost|is\s(?:key|critical|everything|the\s(?:priority|goal|objective)|king)|above\sall)|"
        r"most\stokens|throughput\sas\shigh\sas\spossible|吞吐(?:量)?(?:越大|越高)越好"
    ),
    "cost": (
        r"cheapest|(?:best|most)\sbang\sfor\s(?:the|your|our)\sbuck|best\s(?:value|price[\s\-]performance|price/performance)(?:\sfor\s(?:the\s)?money)?|as\scheap(?:ly)?\sas\spossible|least\sexpensive|most\s(?:cost[\s\-]?(?:effective|efficient)|economical)|(?:cost|price)\s(?:matters\smost|is\s(?:key|critical|everything|the\s(?:priority|goal|objective)|king)|above\sall)|"
        r"最(?:便宜|省钱|划算|经济)|性价比最高"
    ),
}  # fmt: skip
_WEAK: dict[str, str] = {
    "latency": (
        r"low(?:er)?[\s\-]latency|latency[\s\-](?:sensitive|critical|bound|optimi[sz]ed|oriented|focus(?:s?ed)?)|interactive(?:ly)?|real[\s\-]?time|snappy|responsive|quick\s(?:replies|responses|answers)|"
        r"fast\s(?:replies|responses|answers|response)|低(?:延迟|时延)|(?:延迟|时延)(?:敏感|要?低(?!于))|实时|交互式?|响应快"
    ),
    "throughput": (
        r"high(?:er)?[\s\-]throughput|throughput[\s\-](?:bound|optimi[sz]ed|oriented|focus(?:s?ed)?)|offline|batch\s(?:processing|inference|jobs?|workloads?|scoring)|bulk|overnight|"
        r"高吞吐|大吞吐|吞吐(?:量)?(?:要|尽量)?(?:高|大)|离线|批处理|批量(?:处理|推理|任务)"
    ),
    "cost": (
        r"cheap(?:ly|er)?|low(?:er)?[\s\-]cost|cost[\s\-]?(?:effective(?:ly)?|efficient(?:ly)?|sensitive|conscious|optimi[sz]ed|oriented)|economical(?:ly)?|save\smoney|on\sa\s(?:tight\s)?budget|inexpensive(?:ly)?|"
        r"便宜|省钱|低成本|成本低|性价比(?:高|优先)?|划算|经济(?:型)?"
    ),
}  # fmt: skip
_INDIFFERENT = re.compile(
    r"(?:latency|throughput|costs?|price|money)\s(?:is\s|are\s)?(?:not|isn'?t|doesn'?t|no)\s(?:matter|important|a\s(?:concern|problem|priority|factor)|critical|object|relevant|an\sissue)|"
    r"(?:don'?t|do\snot|doesn'?t)\s(?:really\s)?(?:care|worry|mind)\s(?:much\s)?(?:about|for)\s(?:the\s)?(?:latency|throughput|costs?|price)|regardless\sof\s(?:the\s)?(?:latency|throughput|costs?|price)|"
    r"(?:latency|throughput|cost|price)[\s\-](?:insensitive|tolerant|be\sdamned)|money\sis\sno\sobject|(?:不在乎|不关心|不考虑|不计|无所谓)(?:延迟|时延|吞吐|成本|价格|费用)|(?:延迟|时延|吞吐|成本|价格|费用)(?:不重要|无所谓|不敏感|不要求|不限|没有要求|不是问题)",
    re.IGNORECASE,
)


def _objective_pattern() -> re.Pattern[str]:
    parts: list[str] = []
    for name, (english, chinese) in _SUBJECTS.items():
        superlative = _BEST if name == "throughput" else _LEAST
        any_tongue = rf"(?:{english}|{chinese})"
        strong = (
            rf"(?<![a-z])(?:{superlative}{_FILL}\s{english}|{english}\s(?:first|as\s(?:high|low)\sas\spossible|above|over\s\w+|priority)|"
            rf"(?:optimi[sz]e[ds]?|optimi[sz]ing|optimal|tuned?|priorit(?:i[sz]e|y)|prefer|favou?r|focus|aim|go(?:al)?|objective|target|care)(?:\s(?:is|for|on|the|to|towards?|about|mostly|most|more|only|mainly)){{0,4}}\s?[:=]?\s?(?:the\s|low(?:er)?\s|high(?:er)?\s|best\s)?{english}|"
            rf"{english}\s(?:is\smore\simportant|matters\smore)(?:\sthan\s\w+)?)(?![a-z])|{_STRONG[name]}"
            rf"|{any_tongue}\s?(?:要|应|需)?\s?(?:优先|最(?:低|小|高|大|少|短|优|快|佳)(?:化)?|第一|为主|为先|尽(?:量|可能)(?:低|高|大|小|少|短)|越(?:低|高|大|小|少|短)越好)"
            rf"|(?:最(?:低|小|高|大|少|短|优)(?:化)?|优先(?:考虑|保证)?|降低|优化|追求|侧重|看重|只要|只看|只求|只关心|只在乎|目标(?:是|为|:)?)\s?(?:的)?\s?(?:低|高)?\s?{any_tongue}"
        )
        parts.append(rf"(?P<strong_{name}>{strong})")
        weak = "|".join(rf"(?<![a-z]){p}" if p[0].isascii() else p for p in [rf"(?:{_WEAK[name]})(?![a-z])"])
        parts.append(rf"(?P<weak_{name}>{weak})")
    return re.compile("|".join(parts), re.IGNORECASE)


_OBJECTIVE = _objective_pattern()


def read_objective(page: Page, claims: Claims) -> None:
    """Read what to make best; "lowest latency" outweighs "interactive"; two equal wishes for different things clash."""
    for match in page.search(_INDIFFERENT):
        page.take(*match.span())
    found: dict[str, list[tuple[str, str]]] = {"strong": [], "weak": []}
    for match in page.search(_OBJECTIVE):
        strength, name = str(match.lastgroup).split("_")
        if not page.is_negated(*match.span()):
            found[strength].append((name, match.group().strip()))
    wishes = found["strong"] or found["weak"]
    names = list(dict.fromkeys(name for name, _ in wishes))
    if not names:
        return
    words = next(words for name, words in wishes if name == names[0])
    claims.claim("objective", names[0], words)
    if len(names) > 1:
        other = next(words for name, words in wishes if name == names[1])
        if found["strong"]:
            raise claims.refusal(f"two objectives: {words!r} and {other!r}; say which one comes first")
        claims.reading(f"{words!r} read as the objective, {other!r} as a wish that comes after it")
