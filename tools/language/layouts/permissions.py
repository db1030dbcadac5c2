"""What a request permits: the named relaxations, and prefill and decode on separate cards.

Only clear permission, or a demand for the thing itself, allows a relaxation; a question or a doubt does not.
"""

from __future__ import annotations

import re

from ...plan.constraints import MOST_WORDS_CHARS, DegreeConstraint, ForbiddenDegree
from ..conflicts.claims import Claims
from ..constraints.words import add_constraints
from ..patterns.gated import Gated
from ..patterns.page import TAKEN, Page
from ..said import StatedStrategy
from .attention import ATTENTION_DP, MAY_BE
from .compared import is_weighed
from .degrees import names_attention_degree

_SPLIT = r"(?:split|shard(?:ed)?|cut|slic(?:e|ed)|partition(?:ed)?|divided?)"
_TENSOR = r"(?:tp|tensor[\s\-]parallel(?:ism)?)"
_RELAXATIONS: dict[str, str] = {
    "tp_in_expert": (
        r"tp[\s_]in[\s_]experts?|(?:tp|tensor[\s\-]parallel(?:ism)?)\s(?:with)?in(?:side)?(?:\sof)?\s(?:the\s|each\s|an\s)?experts?|(?:split(?:ting)?|shard(?:ing)?|cut(?:ting)?)\s(?:the\s|each\s|single\s|individual\s)?experts?\s(?:with|by|using|across|over)\s"
        r"(?:tp|tensor[\s\-]parallel(?:ism)?|gpus|devices|cards)|expert[\s\-](?:tp|tensor[\s\-]parallel(?:ism)?)|"
        rf"experts?{MAY_BE}(?:internally\s)?(?:{_SPLIT}\s(?:internally\s)?(?:with|by|using|across|over)\s(?:the\s)?(?:{_TENSOR}|gpus|devices|cards)|{_TENSOR})|"
        r"专家内(?:部)?(?:的)?(?:使用|做|采用)?(?:张量并行|tp)|在?专家(?:内|里|内部)(?:使用|做|用|切)?(?:张量并行|tp)"
    ),
    "attention_dp": ATTENTION_DP,
    "kv_sequence_decode": (
        r"kv[\s_]sequence[\s_]decode|context[\s\-]parallel(?:ism)?\s(?:in\s|for\s|during\s)?decod(?:e|ing)|decode[\s\-]context[\s\-]parallel(?:ism)?|(?:shard(?:ing)?|split(?:ting)?|cut(?:ting)?)\s(?:of\s)?(?:the\s)?kv[\s\-]?cache\s(?:along|by|over|across)\s(?:the\s)?sequence|"
        rf"kv[\s\-]?cache{MAY_BE}{_SPLIT}\s(?:along|by|over|across)\s(?:the\s)?sequence|"
        r"(?:sequence|context)[\s\-](?:sharded|split)\skv|kv\s?(?:缓存|cache)?\s?(?:按|沿)?\s?序列(?:维度?)?(?:切分|分片|并行)"
    ),
    "vocab_parallel": (
        r"vocab(?:ulary)?[\s_\-]parallel(?:ism)?|(?:shard(?:ing|ed)?|split(?:ting)?)\s(?:of\s)?(?:the\s)?(?:vocab(?:ulary)?|embeddings?(?:\stable)?|lm[\s\-]?head)|parallel\s(?:vocab(?:ulary)?|embeddings?)|"
        rf"(?:vocab(?:ulary)?|embeddings?(?:\stable)?|lm[\s\-]?head){MAY_BE}(?:{_SPLIT}|parallel)|"
        r"词表(?:可以|允许|不能|不可以)(?:切分|并行|拆分)|词表(?:并行|切分)|(?:切分|拆分)词表"
    ),
    "redundant_experts": (
        r"redundant[\s_]experts?|expert\s(?:redundancy|replication|duplication)|(?:replicat(?:e|ed|ing)|duplicat(?:e|ed|ing))\s(?:the\s|some\s|hot\s|popular\s)*experts?|(?:copies|replicas)\sof\s(?:the\s|hot\s|some\s)*experts|"
        rf"experts?{MAY_BE}(?:replicated|duplicated|copied)|eplb|冗余专家|专家冗余|复制(?:热点)?专家|专家复制"
    ),
}  # fmt: skip
_RELAXATION = Gated(
    "|".join(f"(?P<{name}>{pattern})" for name, pattern in _RELAXATIONS.items()),
)
# Denials around or inside the name of a relaxation, beyond what `Page.is_negated` knows of any name.
_DENIED_INSIDE = Gated(r"(?<![a-z])(?:not|never|cannot)(?![a-z])|n't(?![a-z])|不")
_DENIED_AFTER = Gated(
    r"^(?:[\s\"'`:\-]{0,3}|,\s(?:but\s)?(?:that|this|it|which)\s)(?:"
    r"(?:may|can|could|must|should|shall|will|would|is|are|do|does|has|have|was)(?:\s?n't|\s(?:not|never|no))(?![a-z])|cannot(?![a-z])|"
    r"(?:(?:is|are|was|remains?|stays?|(?:must|should|would|will|shall)\s(?:be|stay|remain))\s)?(?:(?:strictly|absolutely|still|currently|clearly)\s){0,2}"
    r"(?:not\s(?:allowed|permitted|acceptable|supported|an?\soption|ok(?:ay)?|wanted|used)|forbidden|disallowed|prohibited|banned|unacceptable|unwanted|unsupported|unused|disabled|deactivated|ruled\sout|excluded|"
    r"out(?:\sof\s(?:the\squestion|bounds))?(?=\s?(?:[,.;)!?\n]|$))|(?:switched|turned|shut|kept|left|stays?)\soff(?![a-z])|off(?:\sthe\stable|\slimits|-limits)?(?=\s?(?:[,.;()!?\n]|$))|no[\s\-]go|an?\sno[\s\-]go))"
    r"|^(?:[\s:]{0,2}(?:是|先|都|暂时?|已经?|目前)*|,\s?这是?)(?:不允许|不可以|不行|不能|不被允许|不可|不支持|不[开用上做启]|没[开用上有]|禁止|禁用|不要|关(?:掉|闭|了|上|着)?)",
)
_DENIED_BEFORE = Gated(
    r"(?:(?<![a-z])(?:not|never|no\slonger)|n't)\s(?:[a-z]{1,12}\s)?(?:fine|ok(?:ay)?|acceptable|allow(?:ed)?|permit(?:ted)?|want|like|happy|free|use|apply|let)(?![a-z])",
)
# Two negations that permit: "is not a problem", "no objection to".
_GRANTED_BEFORE = Gated(
    r"(?<![a-z])(?:no\s(?:objections?\s(?:to|against)|problem\swith)|(?:not|n't)\s(?:mind|object\sto|opposed\sto|against|rule\sout|exclude|forbid))"
    r"(?:\s[a-z]{1,8}){0,2}\s?$|(?:不反对|不介意|不排除)[^,.;。]{0,4}$",
)
_GRANTED_AFTER = Gated(
    r"^\s?(?:is|are|would\sbe)(?:n't|\snot)\s(?:an?\s(?:problem|issue)|forbidden|prohibited|excluded|ruled\sout|off\slimits)(?![a-z])|^\s?(?:没问题|没有问题)",
)
_PERMISSION = Gated(
    r"(?<![a-z])(?:allow(?:s|ed|ing)?|permit(?:s|ted|ting)?|accept(?:able)?|enabl(?:e|ed|ing)|use|using|with|want|need|like|please|ok(?:ay)?|fine|may|can|could|free\sto|feel\sfree|happy|relax(?:ed|ing|ation|ations)?|apply|employ|turn\son|run|do|go|let)(?![a-z])"
    r"|允许|可以|可(?!能)|使用|启用|开启|采用|接受|同意|放开|放宽|需要|要|用|开|支持",
)
_QUESTION = Gated(
    r"(?<![a-z])(?:would(?!\s(?:also\s)?be\s(?:(?:perfectly|quite|also|entirely|totally)\s)?(?:acceptable|fine|ok(?:ay)?|allowed|alright|welcome)(?![a-z]))|should|does|what\sif|why|how|whether|compare|versus|vs)(?![a-z])[^.]{0,80}|\?|？|是否|会不会|能否|吗",
)
_DISAGGREGATED = Gated(
    r"(?P<no>(?<![a-z])(?:co[\s\-]?locat(?:ed?|ion|ing)|monolithic|non[\s\-]?disaggregated|un[\s\-]?disaggregated|aggregated)(?![a-z])|p/?d\s?(?:混部|不分离|合一)|(?P<bare>(?<![要分])[别不](?:再|要|做|搞|用|上|弄)?分离)|(?:(?<=[,;。:])|(?<=[,;。:]\s)|(?<=[先就])|(?<=还是))混部(?=[吧了]?\s?(?:[,;。.\n]|$))|(?:prefill\s(?:and|&|/)\sdecode|both\sphases)\s(?:[a-z]+\s){0,2}?(?:on|share)\sthe\ssame\s(?:gpus|cards|nodes|servers|workers|instances|pool)(?![a-z])|(?:(?:run|keep|serv|leav)(?:e|s|es|n?ing)?\sprefill\s(?:and|&|/)\sdecode|prefill\s(?:and|&|/)\sdecode\s(?:[a-z]+\s){0,2}?(?:runs?|kept|served?|stays?))\stogether(?![a-z])(?!\s(?!on\s)(?:[a-z]+\s){0,2}\d)|(?:prefill|预填充)\s?(?:和|与|/)\s?(?:decode|解码)\s?(?:混部|不分离|同卡))"
    r"|(?P<yes>(?<![a-z])(?:disagg(?![a-z])|(?:prefill(?:\s?(?:and|&|/|-)\s?)decode\s)?dis[\s\-]?aggregat(?:ed?|ion|ing)(?:\s(?:serving|inference|prefill(?:\sand\sdecode)?))?|p/?d[\s\-](?:separation|disagg(?:regation|regated)?|split)|"
    r"separat(?:e|ed|ing|ion)(?:\sof)?(?:\s(?:the|pools?|gpus|instances|workers|nodes|for|out))*\sprefill(?:\s(?:and|from|&|/)\s|/)(?:the\s)?decod(?:e|ing)|split(?:ting)?\s(?:up\s)?prefill(?:\s(?:and|from|&)\s|/)decod(?:e|ing)|"
    r"prefill(?:\s?(?:and|&|/)\s?)decod(?:e|ing)\s(?:(?:run|runs|running|should|be|must|go|live|sit|placed|kept|are|is)\s)*(?:on\s(?:separate|different|their\sown|dedicated)|separated?(?:ly)?|apart|split|disaggregated|separation)|"
    r"(?:prefill|预填充)[^.;\n]{0,12}(?:decod\w+|解码)[^.;\n]{0,40}?(?:different|separate|distinct|their\sown|dedicated)\s(?:cards|gpus|nodes|servers|machines|pools?|instances?)|"
    r"how\smany(?:\s(?:gpus|cards|nodes|servers|trays|of\s(?:them|those)))?\s[^.;?\n]{0,24}?(?:for|to)\s(?:the\s)?prefill[^.;?\n]{0,24}?(?:for|to)\s(?:the\s)?decod(?:e|ing)|"
    r"(?:dedicated|separate)\s(?:prefill|decode)\s(?:gpus|nodes|instances|workers|pools?))(?![a-z])|p/?d\s?分离|(?:预填充|prefill)\s?(?:和|与|/|跟)?\s?(?:解码|decode)\s?(?:要|需要?|应)?\s?(?:分离|分开|拆开|分到)|分离(?:式)?(?:部署|推理|架构)|xpyd)",
)
# A clause that says nothing of its own beside "不分离"; else it must name the phases ("计算和存储不分离" does not).
_FILLERS = " 我们咱就先暂时目前还是都也那这次本期吧了的话"
_PHASES = Gated(r"p/?d(?![a-z])|prefill|decode|预填充|解码")
# "Separate prefill/decode pools: no".
_DENIED_BEHIND = Gated(
    r"(?:\s(?:pools?|instances?|nodes?|gpus|workers?|servers?))?\s?[:?]\s?(?:no|nope|not)(?![a-z])|"
    r"\s?[:|,]?\s?(?:(?:was|is|has\sbeen)\s)?(?:considered,?\s(?:and|but)\s)?(?:rejected|dropped|discarded|ruled\sout|declined|postponed|deferred|shelved)(?![a-z])|"
    r"\s?[:|]?\s?(?:还|暂|本期)?(?:未|没有?|不)(?:启用|开启?|上|用|做|部署|采用)|\s?[:|]\s?(?:off|disabled|none|not\s(?:used|enabled|planned|in\suse))(?![a-z])|"
    r"(?:的话|部署|方案)?[,\s]{0,2}(?:先|暂时?|目前|这次|[本这]期|本次|这轮|现阶段|这个季度|也)?都?(?:先)?(?:不|别|免)(?!错)",
)
# "disagg or colocated, whatever is faster", "PD 分离或混部都行": a choice between both decides nothing.
_OR_NOT = Gated(
    r"(?:\s(?:prefill|decode|serving|inference|pools?|mode|setup))?\s?(?:/|,?\s?(?:or|vs\.?|versus)\s|还是|或者?)\s?(?:not(?![a-z])|(?:fully\s)?(?:co[\s\-]?locat\w{1,4}|monolithic|(?:non|un)?[\s\-]?(?:dis)?[\s\-]?aggregated|dis[\s\-]?agg\w{0,9}|together|combined|shared|apart|separate)(?![a-z])|不分离|混合?部署?|合一|分离)",
)
_ONE_AND_ANOTHER = Gated(
    r"(?:prefill|decode)\s(?:runs?\s)?(?:on|in)\s(?:one|a)\s(?:node|server|machine|box)(?:,|\sand|\swith|;)\s(?:prefill|decode)\s(?:runs?\s)?(?:on|in)\s"
    r"(?:another|the\s(?:other|second)|a\s(?:second|different))(?:\s(?:one|node|server|machine|box))?",
)
_MAYBE = Gated(
    r"(?<![a-z])(?:may|can|could|might|if|allowed|optional(?:ly)?|possibly|consider|whether|either|maybe|auto|tbd|undecided|fine|ok|compar(?:e[ds]?|ing|ison)|versus|vs|recommend|advise|evaluate)(?![a-z])|对比|比较|评估|可以|可(?=分)|允许|如果|是否|要不要|该不该|上不上|需不需要|考虑",
)


def read_relaxations(page: Page, claims: Claims) -> None:
    """Read the named relaxations; only clear permission (or a demand for the thing itself) allows one."""
    allowed: dict[str, str] = {}
    denied: dict[str, str] = {}
    for match in page.search(_RELAXATION):
        name = str(match.lastgroup)
        left, right = page.clause(*match.span())
        before, after = page.original[left : match.start()], page.original[match.end() : right + 1]
        words = page.original[left:right].strip()
        granted = bool(_GRANTED_BEFORE.search(before) or _GRANTED_AFTER.search(page.original[match.end() :][:60]))
        if not granted and _is_denied(page, match, before):
            denied.setdefault(name, words)
        elif page.is_foreign(match.start()):
            claims.leave_unread(f'{words!r} claims another speaker and allows nothing; say "allow {name}" yourself')
        elif name == "attention_dp" and is_weighed(page, *match.span()):
            continue  # one of several strategies: what it would take is said with it
        elif name == "attention_dp" and names_attention_degree(page, *match.span()) and not _asks(before, after):
            # A stated degree asks for the thing itself; its words are left to the reader of strategies.
            allowed.setdefault(name, words)
            continue
        elif _asks(before, after) or not (
            granted or _is_permitted(before, match.group() + after, match.group().lower() == name)
        ):
            claims.leave_unread(f'{words!r} does not clearly allow the relaxation {name}; say "allow {name}"')
        else:
            allowed.setdefault(name, words)
        page.take(*match.span())
    both = denied.keys() & allowed
    if both:
        raise claims.refusal(f"the relaxation {min(both)} is both allowed and ruled out; keep one")
    if "attention_dp" in denied:
        ruled_out = ForbiddenDegree(name="attention_dp", relation="forbidden")
        words = denied["attention_dp"][:MOST_WORDS_CHARS]
        add_constraints(claims, [DegreeConstraint(kind="degree", value=ruled_out, words=words)])
    if allowed:
        claims.claim("relaxations", tuple(sorted(allowed)), "; ".join(dict.fromkeys(allowed.values())))


def allow_stated(claims: Claims) -> None:
    """Allow attention DP where the stated strategy has it, in words that name no relaxation ("DP16 for attention")."""
    strategy = claims.values.get("strategy")
    allowed: tuple[str, ...] = claims.values.get("relaxations", ())
    if not isinstance(strategy, StatedStrategy) or "attention_dp" in allowed:
        return
    if any((phase.attention_dp or 1) > 1 for phase in (strategy.prefill, strategy.decode)):
        words = [claims.words[name] for name in ("relaxations", "strategy") if name in claims.words]
        claims.replace("relaxations", tuple(sorted((*allowed, "attention_dp"))), "; ".join(words))


def _is_denied(page: Page, match: re.Match[str], before: str) -> bool:
    """Whether a relaxation is ruled out: "may not be", "is not allowed", "is out of the question", "禁止 ..."."""
    after = page.original[match.end() : match.end() + 60]
    return bool(
        page.is_negated(*match.span())
        or _DENIED_INSIDE.search(match.group())
        or _DENIED_AFTER.search(after)
        or _DENIED_BEFORE.search(before)
    )


def _asks(before: str, after: str) -> bool:
    return bool(_QUESTION.search(before) or _QUESTION.search(after))


def _is_permitted(before: str, after: str, is_proper_name: bool) -> bool:
    """Whether the words around a relaxation allow it or ask for it; nothing before it continues a list ("A, B, C")."""
    if is_proper_name or not before.strip():
        return True
    return bool(_PERMISSION.search(before) or _PERMISSION.search(after))


def read_disaggregation(page: Page, claims: Claims) -> None:
    """Read whether prefill and decode shall run on separate cards; a mere permission leaves that open."""
    for match in page.search(_ONE_AND_ANOTHER):
        words = page.take(*match.span())
        claims.claim("disaggregated", True, words)
        claims.claim("nodes", 2, words)
    for match in page.search(_DISAGGREGATED):
        if (choice := _OR_NOT.match(page.text, match.end())) is not None:
            words = page.take(match.start(), choice.end())
            claims.reading(f"{words!r} leaves open whether prefill and decode are separate")
            continue
        if page.text[match.start()] == TAKEN:
            continue
        wanted = match["yes"] is not None
        denied = _DENIED_BEHIND.match(page.original, match.end()) is not None
        negated = denied or page.is_negated(*match.span())
        clause = page.clause_text(*match.span())
        said = clause.rpartition(":")[2]  # without who says it
        is_alone = not said.replace(match.group(), "").strip(_FILLERS)
        if match["bare"] and not (is_alone or _PHASES.search(clause)):
            continue
        words = page.take(*match.span())
        if _MAYBE.search(clause) and not negated and wanted:
            claims.reading(f"{clause!r} read as a permission: separate prefill and decode stays open")
            continue
        claims.claim("disaggregated", wanted != negated, clause if negated else words)
