"""What a request cannot have: non-goals, refused by name, and instructions to break a rule, which change nothing."""

from __future__ import annotations

import re

from .conflicts.claims import Claims
from .conflicts.statement_rank import STAYS
from .lexicons.reserved import NOT_OURS
from .patterns.gated import Gated
from .patterns.page import MODEL, OTHER, Page
from .roles import PERSON_SPEAKS, foreign_spans, speaks_of_machines

# Models that are not planned; words about them beside a model to serve may be about another system.
_OTHER_KIND = "encoder-decoder models"
_NON_GOALS: tuple[tuple[str, str], ...] = (
    (
        "speculative decoding",
        r"(?<![a-z])(?:speculative[\s\-](?:decoding|sampling|execution)|speculation|spec[\s\-]?dec(?:oding)?|draft\smodels?|eagle[\s\-]?[123]?|"
        r"medusa|multi[\s\-]token\sprediction|mtp|lookahead\sdecoding)(?![a-z])|投机(?:解码|采样|推理)|推测(?:解码|采样)|草稿模型",
    ),
    (
        "LoRA serving",
        r"(?<![a-z])(?:multi[\s\-]?)?q?loras?(?:[\s\-](?:adapters?|serving))?(?![a-z]|[\s\-](?:train|fine|tun|job))|(?<![a-z])(?:peft|adapters)(?![a-z])|适配器",
    ),
    (
        "training",
        r"(?<![a-z])(?:(?:to|want|please|let'?s|we|can|i)\s(?:(?:pre-?|post-?|re-?)?train|(?:fine-?|post-?)tune)|(?:pre-?|fine-?|post-?)(?:train|tune)(?=\s(?:the\s|a\s|my\s|our\s)?(?:model|[\ue000]))|"
        r"train(?=\s[\ue000])|(?:pre-?|post-?|fine-?)?(?:training|tuning)(?=\s(?:run|job|of\s|on\s|for\s|throughput|step|cluster|[\ue000]|$))|"
        r"for\s(?:pre-?|post-?|fine-?)?(?:training|tuning)|rlhf|grpo|ppo)(?![a-z])|(?:进行|做|要|想|用于|来)(?:预|后)?(?:训练|微调)|^(?:训练|微调)|(?:训练|微调)(?=\s?[\ue000])",
    ),
    (
        _OTHER_KIND,
        r"(?<![a-z])(?:encoder[\s\-]decoders?|seq2seq|flan[\s\-]?t5|t5(?:[\s\-](?:xxl|xl|large|base|small|11b|3b))?|bart|whisper)(?![a-z])|编码器[\s\-]?解码器",
    ),
    (
        "mixed accelerators in one replica",
        r"(?<![a-z])(?:mixed|heterogeneous|mixing)\s(?:gpus?|accelerators?|cards?|hardware|clusters?)(?![a-z])|(?<![a-z])mix\sof\s(?:gpus?|cards?|accelerators?)(?![a-z])|异构(?:卡|gpu|集群|硬件)?|混(?:合|用)(?:卡|gpu|显卡)",
    ),
)  # fmt: skip
_NON_GOAL = Gated(
    "|".join(f"(?P<g{i}>{pattern})" for i, (_, pattern) in enumerate(_NON_GOALS)),
)

# "four are reserved for training": about other hardware, and no wish to train.
_BUSY = Gated(
    r"(?:reserved|used|busy|occupied|needed|earmarked|allocated|taken|booked|free|idle|empty|unused|untouched|aside|back|pinned|promised|lent|given|gone|went|lost|moved|blocked|set\saside|kept|dedicated|assigned|"
    r"(?<=\d\s)(?:is|are|goes|go)|(?<=(?:one|two)\s)(?:is|are|goes|go)|预留|保留|留|占用|已|被)(?:\s(?:up|only|exclusively|already))?(?:\s(?:to|for|by)(?:\s(?:the|our|an?|some|future))?)?\s?(?:给|着)?$",
)
# "Leave 10 GB a GPU untouched, the LoRA cache lives there": about something that shares the memory.
_KEPT_FREE = Gated(
    r"\d\s?g(?:i?b)?(?![a-z])[^.;\n]{0,40}(?:untouched|free|unused|reserv|taken|aside|belong|预留|保留|留)|(?:leave|keep|reserve|留)[^.;\n]{0,20}\d\s?g|"
    r"(?:must|should|shall|ha[sv]e?\sto|needs?\sto)\s(?:stay|remain|be\s(?:kept|left))|stays?\s(?:free|idle|empty)",
)
# "MTP is somebody's experiment and should be left out", "leave out speculation"; "_" stands for the refused words.
_LEFT_OUT = Gated(
    r"(?<!not\s)(?<!not\sbe\s)(?<!never\s)(?<!never\sbe\s)(?<!don't\s)(?<![a-z])"
    r"(?:(?:leav(?:e|ing)|keep(?:ing)?)\s(?:(?:the|any)\s)?_\sout(?![a-z])|"
    r"(?:leav(?:e|ing)\sout|exclud(?:e|ing)|omit(?:ting)?|ignor(?:e|ing)|disregard(?:ing)?)\s(?:(?:the|any)\s)?_|"
    r"_.*(?<!not\s)(?<!not\sbe\s)(?<!never\s)(?<!never\sbe\s)(?<![a-z])(?:(?:left|kept)\sout|excluded|omitted|ignored|disregarded|out\sof\sscope|"
    r"not\s(?:be\s)?(?:part\sof|in\sscope|included|considered|counted|planned))(?![a-z])|_[^不]*(?:不(?:用|要|必|需要?)?(?:考虑|计入|纳入)|排除))",
)
# Behind a non-goal, in its sentence: the plan is to be made without it, or before it comes.
_SWITCHED_OFF = Gated(
    r"^[^.;!?。\n]{0,24}?(?:(?:按|先|暂)[^.;。\n]{0,4}不(?:开启?|启用)|关闭|(?<![a-z])assum(?:e|ed|ing)\s(?:it\s)?(?:off|disabled)|"
    r"(?:is|stays|remains|kept|:)\s?(?:off|disabled)|(?<![a-z])(?:comes?|coming|follows?|arrives?|(?:is|are)\s(?:planned|scheduled|due)|will\s(?:come|follow|be\s(?:added|tried|tested|evaluated|introduced|considered)))\s(?:only\s)?(?:in|with|by|for|later|next|soon|after)(?![a-z])|"
    r"(?<![a-z])(?:not\syet|(?:later|next\s(?:week|month|quarter|sprint|year|release|phase))(?=\s?(?:[,.;)\n]|$|this|in)))|(?:以后|之后|后续|后面|下一?个?(?:季度|版本|周|月|期|阶段))再?(?:上|做|开|加|考虑|评估|说)|(?:please\s)?(?:ignore|skip|forget|disregard)\s(?:it|that|this)(?![a-z]))",
)
_OTHER_CLAUSE = Gated(
    r"[,.;:!?()\n。]|\s(?:because|since|which|while|when|(?:and|but)(?!\s(?:should|must|shall|can|may|is|are|has|will|needs)(?![a-z])))\s",
)
# "Two of the GPUs run Whisper and stay that way": on a part of the hardware.
_ON_SOME = Gated(r"\s(?:gpus?|cards?|nodes?|servers?|machines?|box(?:es)?)(?![a-z])|[张台块卡]")
# "Leave one out, the Whisper thing is on it".
_IS_ON_IT = Gated(
    r"\s(?:(?:thing|stuff|model|job|service|server|container|pod)s?\s)?(?:is|are|sits?|lives?|runs?|stays?)\s(?:already\s|still\s)?on\s(?:it|that|those|them|there)(?![a-z])",
)
_SERVED = Gated(r"(?<![a-z])(?:serv(?:e|ing)|run(?:ning)?|host(?:ing)?|with|plus)\s(?:\w+\s){0,2}$|部署|加载")
_SERVED_TOO = Gated(
    r"(?<![a-z])(?:serv(?:e|ing)|run(?:ning)?|host(?:ing)?|deploy(?:ing)?|plus|and)\s(?:\w+\s){0,2}$|部署|加载|[和与及]$"
)
# A request to serve something that mentions somebody's training wants no training.
_SERVING = Gated(
    r"(?<![a-z])(?:serv(?:e|es|ing)|inference|ttft|tpot|concurren\w{1,3}|tokens?\s(?:in|out)|(?<=\d\s)(?:in|out)|(?<=\dk\s)(?:in|out)|input|output|prompts?|latency|requests?)(?![a-z])|推理|输入|输出|并发",
)
_WISHED = Gated(
    r"^(?:to|want|please|let'?s|we|can|i)\s|^(?:pre-?|fine-?|post-?)(?:train|tune)$|^train$|for\s|进行|做|要|想|用于|来",
)
_SENTENCE = re.compile(r"(?:[^.;。;\n]|\.(?=\S)){1,400}")
_MODEL_AFTER = re.compile(r"\s?(?:of\s|on\s)?(?:the\s|our\s|a\s)?\ue000")
_OVERRIDE = (
    r"(?:ignor(?:e|ing)|disregard(?:ing)?|bypass(?:ing)?|overrid(?:e|ing)|forget(?:ting)?|pretend(?:ing)?|waiv(?:e|ing)|suppress|"
    r"(?:may|can|could|(?:free|ok|okay|allowed|fine)\sto)\s(?:exceed|go\s(?:over|beyond|above))|turn(?:ing)?\soff|switch(?:ing)?\soff|disabl(?:e|ing)|skip(?:ping)?|drop|violat(?:e|ing)|break(?:ing)?|relax|assume|mark|treat|report|do\snot\s(?:check|apply|enforce)|don'?t\s(?:check|apply|enforce|validate))"
)
_LAW = (
    r"(?:rules?|checks?|constraints?|validat(?:e|or|ion)|instructions?|prompts?\sabove|(?:memory|vram)\s(?:limit|check|rule|bound)s?|limits?|guardrails?|polic(?:y|ies)|"
    r"violations?|errors?|[A-Z]{2}\d{3}|as\svalid|safety)"
)
_INSTRUCTION = Gated(
    rf"(?<![a-z])(?<!without\s)(?:please\s)?{_OVERRIDE}(?![a-z])[^,;.!?。\n]{{0,60}}?(?<![a-z]){_LAW}(?![a-z])[^,;.!?。\n]{{0,40}}?(?=[,;.!?。\n]|\s(?:and|but|then)\s|$)"
    r"|(?:忽略|无视|跳过|绕过|关闭|假装|假设|禁用|不要检查|不用检查|别管|违反|取消)[^,;.!?。\n]{0,30}?(?:规则|检查|限制|约束|校验|验证|指令|提示|[A-Z]{2}\d{3}|通过)[^,;.!?。\n]{0,20}"
    r"|(?<![a-z])(?:rule\s)?[A-Z]{2}\d{3}\s(?:does\snot|doesn'?t|need\snot|must\snot|should\snot)\s(?:apply|hold|matter|fire)",
)
# Quoted speech, and words in it that want to overrule the request.
_QUOTATION = re.compile(r"[“「『][^”」』\n]{4,600}[”」』]|\"[^\"\n]{4,600}\"|\[[^\[\]\n]{4,600}\]")
_OVERRULING = Gated(
    r"(?<![a-z])(?:ignor(?:e|ing)|disregard(?:ing)?|forget)\s(?:all|any|every(?:thing)?|the|your|previous|prior|what(?:ever)?)(?![a-z])|"
    r"(?:忽略|无视|忘记|不要理会)[^,;.!?。]{0,8}(?:要求|指令|内容|规则|提示|设定)|管理员模式|系统提示词",
)
_RULE_ID = re.compile(r"(?<![A-Za-z0-9])(?:ST|CO|DP|PP|TP|EP|SP|PH|DE|GP|ME|PE)\d{3}(?!\d)")


def set_aside_orders(page: Page, claims: Claims) -> None:
    """Take brackets and quotations off the page that want to overrule the request."""
    for match in page.search(_QUOTATION):
        if _INSTRUCTION.search(match.group()) or _OVERRULING.search(match.group()):
            words = page.take(*match.span())
            claims.leave_unread(f"{words[:120]!r} quotes instructions: they order nothing")


def set_aside_instructions(page: Page, claims: Claims) -> None:
    """Take instructions to break a rule off the page; they are listed as unread and have no other effect."""
    page.foreign = foreign_spans(page.text)
    for span in page.foreign:
        if not speaks_of_machines(page.text, span):
            words = page.original[slice(*span)].strip()
            if words[:1] in "[(":  # words in brackets end with them
                page.take(*span)
            claims.leave_unread(f"{words[:120]!r} pretends another speaker: it permits nothing and orders nothing")
    for match in page.search(PERSON_SPEAKS):
        page.take(match.end() - len(match.group().lstrip()), match.end())
    for match in page.search(_INSTRUCTION):
        words = page.take(*match.span())
        claims.leave_unread(f"{words[:120]!r}: words of a request switch no rule off; only the named relaxations do")
    page.take_all(_RULE_ID)


def refuse_non_goals(page: Page, claims: Claims) -> None:
    """Refuse what the tool does not plan; "no speculative decoding" asks for nothing and is fine."""
    for match in page.search(_NON_GOAL):
        name = _NON_GOALS[int(str(match.lastgroup)[1:])][0]
        before = page.text[max(0, match.start() - 80) : match.start()]
        left, sentence = next(
            ((run.start(), run.group()) for run in _SENTENCE.finditer(page.text) if run.end() > match.start()),
            (0, ""),
        )
        busy = _BUSY.search(before[-30:])
        is_used = busy is not None and name != "training" and busy.group().lower().startswith(("use", "need", "dedic"))
        is_kept = _KEPT_FREE.search(sentence) and not _SERVED.search(before[-24:])
        of_others = name == "training" and _SERVING.search(page.original) and not _WISHED.search(match.group())
        runs_beside = (STAYS.search(sentence) or NOT_OURS.search(sentence)) and _ON_SOME.search(sentence)
        runs_beside = runs_beside or (name != "training" and _IS_ON_IT.match(page.text, match.end()))
        said_of_others = is_kept or of_others or (busy and not is_used) or runs_beside
        if _is_left_out(page, *match.span()) or _SWITCHED_OFF.search(page.text[match.end() : match.end() + 60]):
            words = page.original[left : left + len(sentence)].strip()
            claims.reading(f"{words[:300]!r} asks to leave {name} out, and no plan has it")
            page.take(*match.span())
            continue
        if page.is_negated(*match.span()) or (said_of_others and not _MODEL_AFTER.match(page.text, match.end())):
            page.take(*match.span(), mark=OTHER)
            continue
        if name == _OTHER_KIND and MODEL in page.text and not _SERVED_TOO.search(before[-24:]):
            words = page.original[left : left + len(sentence)].strip()
            claims.leave_unread(
                f"{words[:160]!r} was not read as a wish to serve {page.original[slice(*match.span())]}"
            )
            page.take(*match.span(), mark=OTHER)
            continue
        raise claims.refusal(f"not planned by this tool: {name} ({match.group().strip()!r}); leave it out")


def _is_left_out(page: Page, start: int, end: int) -> bool:
    """Whether the clause of the words at this span asks to leave them out of the plan."""
    before = _OTHER_CLAUSE.split(page.text[max(0, start - 80) : start])[-1]
    behind = _OTHER_CLAUSE.split(page.text[end : end + 160], maxsplit=1)[0]
    return _LEFT_OUT.search(f"{before}_{behind}") is not None
