"""Colloquial wordings about models and layouts: "2 x TP4", "fp8 everywhere", "four replicas at TP2"."""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.quantities import read_number
from ..patterns.rewriting import Rewriting

# "Llama 3.3 Nemotron Super 49B": one name.
_NEMOTRON = Gated(r"(?<![\w.])llama[ \-]?(?P<v>3[._]\d) (?:-\s)?nemotron[ \-]")
# "2 x TP4", "TP4 x 2": as many replicas of it.
_TIMES_STRATEGY = Gated(
    r"(?<![\w.])(\d{1,3})\s?[x×*]\s?(tp\s?=?\s?\d{1,3})(?!\w)(?!\s?[x×*]\s?\d)|"
    r"(?<!\w)(tp\s?=?\s?\d{1,3})\s?[x×*]\s?(\d{1,3})(?=\s?(?:[?,.;:)\n]|$|(?:replicas?|copies)(?![a-z])|副本|个?实例))|"
    r"(?<!\w)(?P<again>tp\s?=?\s?\d{1,3})\s(?:twice|two\stimes)(?![a-z])"
)
# "Does it fit on a single A100? If it doesn't, what's the smallest number": asked is the number.
_FITS_ON_ONE = Gated(
    r"(?<![a-z])(?P<lead>(?:does|do|will|would|can|could)\s[^?.\n]{2,60}?\s(?:fit|run|work)\s(?:on|in|onto|into)\s)(?:an?\ssingle|one|just\sone|1)\s(?P<what>[^?\n]{2,40}\?\s?(?:and\s)?(?:if\s(?:it|that|they)\s(?:doesn't|don't|does\snot|won't|can't)|if\snot|otherwise|or\selse)[,]?\s(?=[^?\n]{0,30}(?:how\smany|number)))"
)
# "two replicas at TP4".
_REPLICAS_AT = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?:replicas|copies|instances)\s(?:(?:each\s)?(?:at|of|with|using|in|on)\s)(?P<tp>tp\s?=?\s?\d{{1,3}})(?![\w\d])"
)
# "two TP4 replicas", "两个TP4副本", "TP4两副本": the same, the strategy standing elsewhere.
_REPLICAS_SPLIT = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?:(?:identical|independent|separate)\s)?(?P<tp>tp[\s\-]?=?\s?\d{{1,3}})\s(?:replicas|copies|instances|servers)(?![a-z]|\s(?:per|each|(?:on|in)\s(?:each|every))(?![a-z]))|"
    rf"(?<![\w.])(?P<n2>\d{{1,3}}|[二两三四六八双])\s?个?(?P<tp2>tp\s?=?\s?\d{{1,3}})的?(?:副本|实例)|"
    rf"(?<!\w)(?P<tp3>tp\s?=?\s?\d{{1,3}})的?[,，]?\s?(?P<n3>\d{{1,3}}|[二两三四六八双])\s?个?(?:副本|实例)"
)
# "1 prefill TP4 and 1 decode TP4".
_SIDE_SPLIT = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?P<phase>prefill|decode)\s(?:(?:replicas?|instances?|servers?|workers?)\s)?(?P<tp>tp\s?=?\s?\d{{1,3}})(?!\w)"
)
# "please leave disaggregation out".
_LEFT_OUT = Gated(
    r"(?<![a-z])(?:please\s)?(?:leave|keep)\s(?!(?:one|two|an?|the\s(?:first|last|other|second))\s)(?P<what>(?!nodes?|gpus?|cards?|servers?|(?:that|this|it|them|those|these)(?![a-z]))[a-z/]+(?:[\s\-][a-z/]+){0,3}?)\sout(?:\s(?:of\s(?:it|this|the\splan)|for\snow|entirely|please))?(?=\s?(?:[,.;!\n]|$))"
)
# "tensor parallelism must not span more than 4 GPUs", "nor should TP use over 4 cards".
_WIDEST = Gated(
    r"(?:(?<![a-z])(?:nor|never|no)\s(?:[a-z]{2,8}\s){0,3})?(?<![a-z])(?P<what>tensor[\s\-]parallel(?:ism)?|tp|expert[\s\-]parallel(?:ism)?|ep|pipeline[\s\-]parallel(?:ism)?|pp)(?:\sgroups?)?\s(?:(?:(?:must|should|may|can|shall|will)(?:\snot|n't)?|cannot|can't|mustn't|is\snot\sto|to|never)\s){0,2}"
    r"(?:span|use|cover|cross|exceed|take|go\s(?:over|across|beyond)|spread\sover|run\s(?:over|across))\s(?:more\sthan|over|beyond)\s(?P<n>\d{1,3}|two|four|eight|sixteen)\s(?:of\sthe\s)?(?:gpus|cards)(?![a-z])|"
    r"(?P<denied>(?<![a-z])(?:won't|don't|do\snot|can't|not|no|never|nothing)(?![a-z]))[^.;\n]{0,40}?\s(?:spread|stretch|run|take|use|put)s?\s(?P<what2>tensor[\s\-]parallel(?:ism)?|tp|expert[\s\-]parallel(?:ism)?|ep|pipeline[\s\-]parallel(?:ism)?|pp)\s(?:over|across|on|beyond|to)\s(?:more\sthan\s)?(?P<n2>\d{1,3}|two|four|eight|sixteen)\s(?:gpus|cards)(?![a-z])"
)
_NOT_MORE = Gated(r"(?<![a-z])(?:nor|not|never|cannot|no)(?![a-z])|n't")
# "Eight single-GPU replicas": how each is split, and no count of cards.
_SINGLE_GPU_REPLICAS = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?:single|one|1)[\s\-](?:gpu|card)\s(?:replicas|instances|copies)(?![a-z])"
)
# "TP2 还是一卡一份": a replica on each card counts no cards.
_ONE_EACH_CHINESE = Gated(
    r"(?:(?<=还是)|(?<=还是\s)|(?=[^,;。\n]{0,8}还是))(?:一卡|单卡|每卡|每张卡?)(?:各?跑?)?(?:一|1)(?:份|个?实例|个?副本)"
)
_MAKER = Gated(
    r"(?:智谱(?:清言|AI)?|(?:通义)?千问)(?:的|家|那个|最新的?|新出的?|开源的?){0,2}\s?(?:GLM|Qwen)?[\s\-]?(?=\d\.?\d?)",
)
# "智谱那个4.6", "千问3-32B": a maker's name before a release is its family's.
_MAKERS = {"智谱": "GLM-", "千问": "Qwen"}
# "fp8 everywhere incl. KV".
_EVERYWHERE = Gated(
    r"(?<![\w.])(?P<format>fp8|int8|bf16|fp16)\s(?:everywhere|throughout|for\severything|all\sthe\sway)(?:,?\s\(?(?:incl(?:\.|uding)?|also)\s(?:the\s)?kv(?:[\s\-]?cache)?\)?)?",
)


def _replicas_of(match: re.Match[str]) -> str:
    count = read_number((match["n"] or match["n2"] or match["n3"]).lower()) or 1
    return match.group() if count < 2 else f"DP{count:g} x {match['tp'] or match['tp2'] or match['tp3']}"


def _at_most_so_wide(match: re.Match[str]) -> str:
    if not _NOT_MORE.search(match.group()):
        return match.group()
    return f"{match['what'] or match['what2']} at most {read_number(match['n'] or match['n2']) or 1:g}"


# "希望对比:TP2x2副本、PP2x2副本": one or the other.
_COMPARED_CHINESE = Gated(r"(?:对比|比较|候选)[^。;\n]{2,80}")
_BETWEEN_STRATEGIES = re.compile(r"(?<=[\d本])\s?[、,]\s?(?=[TPDES]P\s?\d)", re.IGNORECASE)

# "TP, PP and EP must stay in a box": each of them.
_PRIMITIVE = (
    r"(?<![a-z\d])(?:[tpes]p|(?:tensor|pipeline|expert|sequence|context)[\s\-]parallel(?:ism)?|(?:张量|流水线?|专家)并行)"
    r"(?![a-z]|\s?[=:]?\s?\d)"
)
_LIST = rf"(?P<first>{_PRIMITIVE}(?:\s?,\s?{_PRIMITIVE}){{0,2}})"
_REST = (
    r"(?P<rest>\s?(?:must|should|shall|may|can|cannot|can't|has|have|needs?|is|are|stays?|only|both|all|at\smost|up\sto|max|not|never|"
    r"within|inside|in|on|across|confined|limited|只|不|必须|都|均|最多|限|要|须|留)(?![a-z])[^,.;!?\n。]{0,80})"
)
_SHARED = Gated(
    rf"(?P<verb>(?:keep|leave|confine|limit|restrict)\s)?(?:both\s)?{_LIST}\s?,?\s?(?:and|&|和|与|及)\s?(?P<last>{_PRIMITIVE}){_REST}"
)
_NEITHER = Gated(
    rf"(?<![a-z])neither\s{_LIST}\s?,?\snor\s(?P<last>{_PRIMITIVE})(?:\s(?P<can>may|must|can|should|is|are)(?P<rest>\s[^,.;!?\n。]{{1,80}}))?"
)
_ONE_PRIMITIVE = re.compile(_PRIMITIVE, re.IGNORECASE)


def _of_each_primitive(match: re.Match[str]) -> str:
    if _ONE_PRIMITIVE.search(match["rest"] or ""):
        return match.group()
    names = [*_ONE_PRIMITIVE.findall(match["first"]), match["last"]]
    if match.re.groupindex.get("can"):
        said = f" {match['can']} not{match['rest']}" if match["can"] else ""
        return ", ".join(f"{name}{said}" if said else f"no {name}" for name in names)
    return ", ".join(f"{match['verb'] or ''}{name}{match['rest']}" for name in names)


# "between 2 and 4 replicas", "2-4 replicas", "at least 2 replicas and never more than 4".
_COPIES = r"(?P<what>replicas|instances of the model|copies of the model)(?![a-z])"
_BETWEEN_COPIES = Gated(
    rf"(?:(?<![a-z])between\s(?P<least>\d{{1,3}})\sand|(?<![\w.,-])(?P<from>\d{{1,3}})\s?(?:to|-))\s?(?P<most>\d{{1,3}})\s{_COPIES}"
)
_AND_AT_MOST = Gated(
    rf"(?<![a-z])(?P<head>at\sleast\s\d{{1,3}}\s{_COPIES}),?\s(?:and\s|but\s)?"
    r"(?:at\smost|(?:never|not|no)\smore\sthan|max(?:imum)?)\s(?P<most>\d{1,3})(?=\s?(?:[,.;)\n]|$))"
)


def _between(match: re.Match[str]) -> str:
    what = match["what"]
    return f"at least {match['least'] or match['from']} {what}, at most {match['most']} {what}"


# "Why not TP4?" asks for it to be judged, and rules nothing out.
_WHY_NOT = Gated(
    r"(?:(?<![a-z])why\s(?:not|isn't\sit|don't\s(?:i|we|you)(?:\s(?:just\s)?use)?)\s(?:just\s|simply\s|use\s)?|(?:为什么|为何|为啥|怎么)不用?)"
    r"(?=\s?(?:[tpe]p\s?=?\s?\d|(?:tensor|pipeline|expert)\sparallel))"
)

REWRITTEN: Rewriting = (
    (_WHY_NOT, "what about "),
    (_BETWEEN_COPIES, _between),
    (_AND_AT_MOST, r"\g<head>, at most \g<most> \g<what>"),
    (_NEITHER, _of_each_primitive),
    (_SHARED, _of_each_primitive),
    (_COMPARED_CHINESE, lambda match: _BETWEEN_STRATEGIES.sub("或", match.group())),
    (_NEMOTRON, r"Llama-\g<v>-Nemotron-"),
    (_TIMES_STRATEGY, lambda match: f"DP{match[1] or match[4] or 2} x {match[2] or match[3] or match['again']}"),
    (_FITS_ON_ONE, r"\g<lead>\g<what>"),
    (_REPLICAS_AT, lambda match: f"DP{read_number(match['n'].lower()) or 1:g} x {match['tp']}"),
    (_REPLICAS_SPLIT, _replicas_of),
    (_SIDE_SPLIT, lambda match: f"{read_number(match['n'].lower()) or 1:g} {match['phase']} of {match['tp']}"),
    (_LEFT_OUT, r"no \g<what>"),
    (_WIDEST, _at_most_so_wide),
    (_SINGLE_GPU_REPLICAS, lambda match: f"DP{read_number(match['n'].lower()) or 1:g} x TP1"),
    (_ONE_EACH_CHINESE, "每卡各有副本"),
    (_MAKER, lambda match: next(name for maker, name in _MAKERS.items() if maker in match.group())),
    (_EVERYWHERE, r"\g<format> weights, \g<format> KV cache"),
)
