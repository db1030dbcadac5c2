"""Sentences about other systems and other people: "the vector database (3 nodes) is sized elsewhere".

Such a sentence begins with the other system and states its hardware, load and settings. It comes off the page before
anything is read of it, and a reading says so; hardware that it counts is listed as unread, as it may be ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...catalog import hardware, model_mentions
from ..lexicons.limits import ROLE as LATENCY
from ..lexicons.load import ROLE as LOAD
from ..lexicons.reserved import BUSY, DOWN, NOT_FOR_US
from ..patterns.gated import Gated
from ..patterns.page import Page
from .claims import Claims
from .statement_rank import GIVEN_AWAY

_SYSTEM = (
    r"(?:mysql|postgres\w{0,5}|redis|kafka|elastic\w{0,8}|mongo\w{0,4}|clickhouse|(?:vector\s)?(?:database|db)|data\s?(?:lake|warehouse)|"
    r"etl(?:\s(?:job|pipeline))?|hadoop|spark|crawlers?|embedd?(?:ing|er)s?(?:\s(?:service|model|server))?|re-?rank(?:er|ing)(?:\s(?:service|model))?|asr|tts|"
    r"(?:web\s)?front[\s\-]?end|web\s?servers?|api\s?gateway|gateway|load\sbalancers?|ci(?:\s(?:system|cluster|runners?))?|build\s(?:farm|server)|mail\sserver|(?:object\s)?storage|"
    r"(?:search|spark|hadoop|kafka|elastic\w{0,8})\scluster|billing\s(?:service|system)|"
    r"(?:staging|test|dev(?:elopment)?)\s(?:environment|cluster|system)|(?:guardrail|moderation|router|classifier)\s(?:model|service)?)"
)
_FORMER = (
    r"(?:old|previous|former|legacy)\s(?:(?!model|cluster|hardware|node|server|gpu|card|load|traffic)[a-z\-]{2,12}\s)?"
    r"(?:system|setup|deployment|service|pipeline|stack|backend|solution|bot|chatbot|assistant|pilot|vendor|provider)"
)
_PEOPLE = (
    r"(?:(?:(?:sister|other|different|another|training|research|neighbou?ring|recommendation|data\sscience)\s(?:team|group|department|project|lab|division|company)s?)|"
    r"(?:team|lab|group|department)s?\s(?:next\sdoor|upstairs|downstairs)|competitors?|competition|vendors?|(?:friend|buddy|cousin|brother|room-?mate)s?|(?:[a-z]{3,12}\s)?colleagues)"
)
# "the MI250 cluster (32 cards) handles the other 400"
_REST = (
    r"(?:the|our)\s[a-z]{1,4}\d{2,4}[a-z]{0,4}\s(?:cluster|pool|fleet|farm|nodes?|box(?:es)?|servers?)(?:\s?\([^()\n]{0,60}\))?\s"
    r"(?:handles?|serves?|takes?|runs?|does|covers?|keeps?)\s(?:all\s)?(?:the\s|our\s)?(?:other|rest|remaining|remainder)(?![a-z])"
)
_VERB = (
    r"(?:has|have|had|runs?|ran|uses?|used|owns?|needs?|needed|serves?|served|handles?|handled|sees?|saw|answers?|answered|makes?|made|costs?|is|are|was|were|takes?|took|holds?|managed|manages|did|does|gets?|got|reached|reaches|"
    r"claims?|claimed|reports?|says?|said|wants?|plans?|bought|will)"
)
_OTHERS = Gated(
    rf"(?:(?<=[.!?;:\n]\s)|(?<=[\n。])|(?<=[.!?;]\s\s)|^|(?<=[*_\-]\s)|(?<=\()|(?<=,\s))(?:{_REST}|(?:(?:the|our|an?|their|that|its|my)\s)?(?:{_SYSTEM}|{_FORMER}|{_PEOPLE})"
    rf"(?:\s?\([^()\n]{{0,80}}\))?\s(?:(?:currently|already|still|also|only|now|alone|itself|there)\s)?{_VERB}(?![a-z]))"
    r"(?:\([^()\n]{0,120}\)|[^.;!?\n()。]|\.(?=\S)){0,200}?(?=[.;!?\n()。]|,\s(?:but|so|while|whereas|and\s(?:we|i|our))(?![a-z])|\s[-–—]\s|$)|"
    r"(?:(?<=[,;。\n:])|(?<=[,;。:]\s)|^)[^\S\n]?(?:隔壁(?:组|团队|部门)?|(?:其他|别的|另一个?|训练|推荐|搜索|数据)(?:组|团队|部门)|(?:审核|业务|管理)?后台的?\s?mysql|mysql|redis|kafka|向量(?:数据)?库|数据库|(?:对象)?存储|语音(?:识别)?(?:模块|服务)|(?:嵌入|重排|embedding|rerank\w{0,3})\s?(?:模型|服务)?|前端|网关|爬虫|检索服务|(?:旧|老|之前的?|原来的?)(?:系统|服务|方案|平台)|竞品|友商|供应商|(?:测试|开发|灰度)环境)"
    r"(?![^,;。\n]{0,12}(?:占|留|共用|共享))(?:\([^()\n]{0,80}\)|[^,;。\n()]){1,120}?(?=[,;。\n()]|$)"
)
_ANOTHERS = (
    r"(?:an?other|the\s(?!same)[\w\-]+|some(?:body|one)\selse|others|a\s(?:different|separate))"
    r"(?:\s(?:team|group|department|project|lab|vendor|unit))?"
)
# "Not ours.", "All reserved for radiology.", "别人的": hardware that the words before it count is not to be had.
_THEIRS = (
    r"(?:(?:all|both|just|already|long|now|since|sadly|i'm\safraid)\s){0,3}(?:not\s(?:(?:for|available\sto)\s)?(?:ours|mine|us|me)|not\s(?:available|accessible)|"
    r"(?:none|nothing)\sof\s(?:(?:it|them|that|those)\s(?:is\s|are\s)?(?:ours|for\sus)|(?:our|my|your)\s(?:business|concern))|"
    rf"(?:some|every|any)(?:body|one)\selse's|theirs|{_ANOTHERS}'s|hands\soff|off\slimits|(?:sold|belong(?:s|ing)?\sto\s{NOT_FOR_US}[a-z]|{GIVEN_AWAY})[^.,;!\n。]{{0,40}})|"
    r"(?:这些)?(?:都|也)?(?:不归我们?|不是我们?的?|别人的?|不能[用动碰]|别[用动碰]|[是归属]于?[^,;。\n]{1,8}(?:组|团队|部门|科室|项目))(?:的|了|用|管)?"
)
# A sentence, or a clause, that the next words put out of scope: "…, 300 rps. Not part of this."
_SCOPE = r"(?:scope|request|plan|exercise|sizing|project|question)"
_PUT_OUT = Gated(
    r"(?:(?<=[.!?;\n]\s)|(?<=[\n。;])|^)(?P<said>(?:[^.!?;\n。]|\.(?=\S)){6,300}?)(?P<gap>[.,;。]\s?)(?:(?:but|and|all)\s)?(?:(?:it|that|this|they|these|those|which)(?:'s|\s(?:is|are))\s)?"
    rf"(?:(?:explicitly\s)?(?:not\s(?:in|part\sof)|out(?:side)?\sof|outside)\s(?:(?:the|this|our|my)\s)?(?:{_SCOPE}|this(?=\s?[.;!\n]))|"
    rf"(?P<left>(?:please\s)?leave\s(?:it|that|this|them|those)\s(?:out|aside)|not\s(?:your|our|my)\s(?:problem|concern|business|job|topic))|(?P<theirs>{_THEIRS})|"
    rf"[这那]?都?不(?:在|属于|算)(?:本次|这次|此次)?的?(?:规划|评估|需求)?的?(?:范围)?(?:之?内)?)(?:\s(?:today|here|now|(?:for|this)\s(?:now|time|round)))?(?=\s?(?:[.,;!)\n。]|$))"
)
_PAUSE = re.compile(r"[,:]\s")
_IN_BRACKETS = re.compile(r"\([^()\n]*\)")
_ELSEWHERE = Gated(
    r"\d|(?<![a-z])(?:another|other|separate|own|different|elsewhere)(?![a-z])|另[一外有]|别的|其[他它]|单独"
)
# Whatever the sentence begins with, its verb says that others run or plan it: "matchmaking (2000 rps) runs elsewhere".
_RUN_BY_OTHERS = Gated(
    r"(?:(?<=[.!?;:\n]\s)|(?<=[\n。])|^)(?:(?:the|our|an?|their)\s)?"
    r"(?!(?:traffic|loads?|requests?|users?|inference|serving|prefill|decode|capacity|demand|each|every)(?![\w\-]))"
    r"(?!(?:[\w\-/]+\s){0,4}(?:it|this|that|they|those|these|both|all|some|half|none|rest|others?|last|first|two|three|four|we|i|one|of|model|llm|(?:gpu|card|node|server|machine|host|box|cluster|rack)(?:e?s)?)(?![\w\-])(?!\smodel))"
    r"(?:[a-z][\w\-/]*\s){0,4}[a-z][\w\-/]*(?:\s?\([^()\n]{1,80}\))?\s(?:(?:itself|already|also)\s)?"
    r"(?:(?:runs?|lives?|sits?|(?:is|are)\s(?:being\s)?(?:run|sized|planned|handled|hosted|served|operated|owned|managed))\s"
    rf"(?:elsewhere|separately|on\s(?:its|their)\sown\s(?:cluster|hardware|gpus|cards|nodes|machines)|by\s{_ANOTHERS})|"
    r"ha(?:s|ve)\s(?:its|their)\sown\s(?:cluster|hardware|gpus|cards|nodes|machines|servers)|(?:is|are)(?:n't|\snot)\spart\sof\s(?:this|it|the\splan)|"
    rf"(?:is|are)\s{_ANOTHERS}'s|belongs?\sto\s{_ANOTHERS}(?<=team|roup|ment|ject))(?![a-z])(?P<more>(?:[^.;!?\n。]|\.(?=\S)){{0,200}})|"
    r"(?:(?<=[,;。\n:])|(?<=[,;。:]\s)|^)[^\S\n]?(?!本|我们|[^,;。\n]{0,12}(?:台|张|机器|节点|卡))[^,;。\n()\d]{2,16}(?:\([^()\n]{1,60}\))?"
    r"(?:由(?:别的|其[他它]|另一?个?|隔壁|[^,;。\n()]{1,6}?)(?:团队|组|部门)(?:负责|规划|管|提供|运营|维护)|(?:跑|部署|放|运行)?在(?:别处|别的|另外的?|其[他它])(?:机器|集群|环境|地方)?(?:上|里)?)(?:\([^()\n]{1,60}\)|[^,;。:()\n\d]){0,60}|"
    r"(?:(?<=[,;。\n:])|(?<=[,;。:]\s)|^)[^\S\n]?[^,;。\n]{2,40}?[跟和与](?:这个|这次|本次|此次|我们|本)(?:项目|规划|需求|方案)?(?:无关|没有?关系)"
)
# Of our hardware taken or kept for others, or sent to the planned model.
_OF_OURS = Gated(
    r"(?<![a-z])of\s(?:the|our|these|those|its|all|them|my)(?![a-z])|(?<![a-z])(?:gpu|card|node)s?\s?#?\d|(?<![a-z])(?:sends?|fires?|calls\s(?:it|us|the|our)|asks?|submits?|issues?|queries|shares?|sharing|pinned|reserved?|occup\w{1,5}|keeps?|kept|blocks?|blocked|lea(?:ves?|ving)|remain\w{0,3}|same|one\sof|needs?\sto\skeep|until|borrow\w{0,3}|free|(?:one|two|three|four)\s(?:is|are|stays?|goes?|belongs?))(?![a-z])|"
    r"其中|占|预?留|共用|共享"
)
_COUNTED = Gated(
    r"(?<![\w.])(?:\d{1,5}|one|two|three|four|five|six|eight|a)\s?(?:x\s?)?(?:[a-z]{1,3}\d{2,4}[a-z]{0,3}s?|gpus?|cards?|nodes?|servers?|machines?|box(?:es)?|hosts?|instances?|vms?)(?![a-z])|\d\s?[张块台]|\d\s?个?节点"
)


def set_aside_others(page: Page, claims: Claims) -> None:
    """Take sentences about other systems off the page, but for models and cards that are named nowhere else."""
    said = [match for match in (*page.search(_OTHERS), *page.search(_RUN_BY_OTHERS)) if not _OF_OURS.search(match[0])]
    spans = [(match.start(), _end(page.text, match)) for match in said]
    for start, stop in (*spans, *_put_out(page)):
        words = page.original[start:stop].strip()
        if not any(map(str.isalnum, words)):
            continue
        names = sorted(_only_names(page.text, start, stop))
        for left, right in zip([start, *(end for _, end in names)], [*(left for left, _ in names), stop], strict=True):
            page.take(left, right)
        if _COUNTED.search(words):
            claims.leave_unread(
                f"{words[:300]!r} is said of another system; say so where it takes a part of what there is"
            )
        else:
            claims.reading(f"{words[:300]!r} is said of another system, and was set aside")


def _end(text: str, match: re.Match[str]) -> int:
    """Where words about another system end: before a limit, and before a load where there is no other than that."""
    more = match.groupdict().get("more") or ""
    cut = _PAUSE.search(more)
    begin = match.end() - len(more)
    elsewhere = f"{text[: match.start()]} {text[match.end() :]}"
    is_ours = LATENCY.search(more) or (_states_load(more) and not _states_load(elsewhere))
    return begin + cut.start() if cut and is_ours else match.end()


def _states_load(text: str) -> bool:
    return any(match.lastgroup in ("concurrency", "rate") for match in LOAD.finditer(text))


def _put_out(page: Page) -> Iterator[tuple[int, int]]:
    """What the words behind it put out of scope: a sentence, or its last clause where the rest may be the plan's."""
    for match in _PUT_OUT.finditer(page.original):  # the marks of a list, which are taken, end a sentence too
        start, said = match.start(), match["said"]
        if match["gap"].strip() == "," and any((*model_mentions.mentions(said), *hardware.mentions(said))):
            start += _IN_BRACKETS.sub(lambda bracket: "_" * len(bracket.group()), said).rfind(",") + 1
        named = _cards(said) if match["theirs"] else set[str]()
        is_of_ours = _OF_OURS.search(said) or DOWN.search(said) or BUSY.search(said)
        if (match["left"] or (match["theirs"] and not named)) and is_of_ours:
            continue
        if match["theirs"] and (match["gap"].strip() == "," or (named and not _cards(page.original) - named)):
            continue
        if _ELSEWHERE.search(page.original, start, match.start("gap")):
            yield start, match.end()


def _cards(text: str) -> set[str]:
    return {mention.accelerator.id for mention in hardware.mentions(text) if mention.accelerator is not None}


def _only_names(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of models and cards that are named nowhere else."""
    models = [(mention.start, mention.end) for mention in model_mentions.mentions(text)]
    cards = [(mention.start, mention.end) for mention in hardware.mentions(text) if mention.accelerator is not None]
    for named in (models, cards):
        inside = [span for span in named if start <= span[0] and span[1] <= end]
        if len(inside) == len(named):
            yield from inside
