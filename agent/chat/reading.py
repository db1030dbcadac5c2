"""Reads deterministically which kind of turn a text is: a why, a what if, a question, or a change.

A question never changes the plan: what it would change is planned on the side. A text that fits no kind is answered
with the nearest thing that can be said; nothing is guessed.
"""

from __future__ import annotations

import difflib
import re

from msgspec.structs import replace

from ...tools.errors import InputError
from ...tools.language.layouts.whole_strategy import weighs_strategies
from ...tools.language.writing.normal_form import normalise
from ...tools.rules.registry import FAMILIES
from ..languages.say import say
from .edit_reader import read_edit
from .edit_words import JOINED
from .outcome import Outcome
from .turns.change import begin, change, require_model
from .turns.compare import compare_with
from .turns.earlier import asks_of_earlier, goes_back, note_on_whole
from .turns.explain import explain_words
from .turns.flips import FLIPS
from .turns.launch import asks_to_launch, beside_launch, launch, launch_text
from .turns.own_plan import of_own_plan
from .turns.risk import asks_for_risk
from .turns.show import show_cost, show_estimate, show_validation
from .turns.what_if import what_if
from .turns.why import why, why_not_words
from .turns.why_slow import why_slow
from .turns.work import Work

_ENDS = " ?.。!"
_LEAD = r"^(?:(?:and|but|so|ok(?:ay)?|then|well|hm+|please|now|那么?|请)[\s,,]{0,3}){0,3}"
_WHY = re.compile(
    rf"{_LEAD}(?:why|how\scome|(?:你|您)?(?:们)?为什么|为何|为啥|怎么不|干嘛)(?![a-z])\s?(?P<rest>.*)$", re.I | re.S
)
_WHY_NOT = re.compile(
    r"^(?:(?:not|no|don'?t|doesn'?t|didn'?t|isn'?t|aren'?t|wasn'?t|can'?t|couldn'?t|shouldn'?t|do|did|does|is|are|was|have|you|we|it|"
    r"the|this|that|there|use|using|choose|chose|chosen|pick|take|go|with|for|any|no|plan|a|more)\s|不(?:用|选|使用|采用|是|能用?|能)?|没有?(?:用|选)?|"
    r"要?(?:用|选|使用|采用)){0,8}",
    re.I,
)
_DENIED = re.compile(r"(?<![a-z])(?:not|no|never|without|instead|rather)(?![a-z])|n't(?![a-z])|[不没]", re.I)
# What is, is asked of the plan; what could be is a change to look at.
_IS_SO = re.compile(
    rf"{_LEAD}(?:is|are|does|do|did|was|were)\s(?!.*(?:\d|(?<![a-z])(?:if|when|with|possible|better|safe|worth|enough)(?![a-z])))",
    re.I,
)
_ABOUT_FIGURES = re.compile(
    r"(?<![a-z])(?:how\s(?:fast|slow|much\s(?:memory|vram|kv)|many\s(?:tokens|requests))|(?:what(?:'s|\sis|\sare)|show)\s(?:the\s|its\s|my\s)?"
    r"(?:ttft|tpot|latency|throughput|memory|figures|estimate|bottleneck)|critical\spath|bottleneck)(?![a-z])"
    r"|(?:多快|多慢|显存(?:要?占|用|需要)?(?:用|了)?多少|占多少显存|显存占用|KV\s?(?:cache|缓存)?\s?(?:要|会)?(?:占|用|需要)(?:了|用)?多少|瓶颈|吞吐(?:是)?多少|延迟(?:是)?多少)",
    re.I,
)
# What a price of tokens is for.
_TOKENS = r"(?:(?:an?|one|1|every|each)\s)?(?:million|1\s?m)\s(?:output\s)?tokens?"
_ABOUT_COST = re.compile(
    r"(?<![a-z])(?:(?:what(?:'s|\sis|\sare)|show)\s(?:the\s|its\s|my\s)?(?:hourly\s|daily\s)?(?:costs?|price)"
    rf"|(?:how\smuch|what)\s(?:does|do|will|would|is)\s(?:it|this|that|(?:the|this|that)\s(?:plan|layout|deployment)|a\stokens?|{_TOKENS})\scosts?"
    r"|how\smuch(?:\s(?:is|would|will)\s(?:it|this|that)(?:\sbe)?)?\s(?:per|an?)\s(?:hour|day)"
    rf"|(?:how\smuch|what)(?:'s|\s(?:is|are|would|will))\s{_TOKENS}(?:\sbe)?"
    r"|how\s(?:expensive|cheap)\s(?:is|would|will)\s(?:it|this|that|(?:the|this)\s(?:plan|layout)))(?![a-z])"
    rf"(?:\s(?:of|for|per)\s{_TOKENS})?"
    r"|(?:要|得|花)?多少钱|(?:成本|费用|价格)(?:是)?多少",
    re.I,
)
_SLOW = re.compile(r"slow|fast|high|large|big|low|so\s|ttft|tpot|latency|memory|慢|高|大", re.I)
_ESTIMATE = re.compile(
    rf"{_LEAD}(?:estimate|evaluate|how\sgood\sis\sit|评估|估算|预测)(?:\s(?:it|that|this|the\splan)|一下)?\s?[.!?。?]?$",
    re.I,
)
_VALIDATE = re.compile(
    rf"{_LEAD}(?:validate|check|verify|is\s(?:it|this|that|the\splan)\s(?:still\s)?(?:valid|legal|ok(?:ay)?)|校验|验证|检查|合法吗|有效吗)"
    r"(?:\s(?:it|that|this|the\splan|the\srules)|一下)?\s?[.!?。?]?$",
    re.I,
)
_COMPARE = re.compile(
    rf"{_LEAD}(?:compare|contrast|对比|比较)(?:一下)?\s?(?:(?:it|this|that|the\s(?:current\s)?plan|current)\s)?"
    r"(?:(?:with|to|against|and|vs\.?|和|与|跟)\s?)?(?P<rest>.*)$"
    r"|^(?:(?:it|this|the\splan|current)\s)?(?:vs\.?|versus)\s(?P<other>.+)$"
    r"|^(?:和|与|跟)\s?(?P<beside>.{1,200}?)\s?(?:相比|对比|比较?)(?:一下|呢|怎么样|如何)?[?。]?$",
    re.I | re.S,
)
_WHAT_IF = re.compile(
    rf"{_LEAD}(?:what\sif|what\swould\s(?:happen|change)\s(?:if|with)|what\s(?:happens\s)?(?:if|with|about)|how\sabout|suppose(?:\sthat)?|supposing|assum(?:e|ing)(?:\sthat)?|"
    r"imagine(?:\sthat)?|would\s(?:it|that)\s(?:\w{1,12}\s){0,3}(?:with|if|on)|if|如果|假如|假设|要是|若|倘若)(?![a-z])\s?(?P<rest>.*)$",
    re.I | re.S,
)
_RULE = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(FAMILIES)})[\-_ ]?[0-9]{{3}}(?![0-9])", re.I)
_EXPLAIN = re.compile(
    rf"{_LEAD}(?:explain|define|tell\sme\s(?:about|more\sabout)|what(?:'s|\sis|\sare|\sdoes|\sdo)|how\s(?:do|does|is|are|can)|when\s(?:do|does|is|are|"
    r"should|to)|which|who|where|解释|说明|介绍|讲讲|什么是|何为|什么叫)(?![a-z])\s?(?P<rest>.*)$",
    re.I | re.S,
)
_EXPLAIN_AFTER = re.compile(r"(?:是什么(?:意思)?|什么意思|怎么(?:工作|算|回事)|如何(?:工作|计算))[?。]?$")
_QUESTION = re.compile(
    rf"[?]\s*$|{_LEAD}"
    r"(?:can|could|would|should|shall|is|are|does|do|did|will|may|might)\s(?:i|we|you|it|this|that|they|the|there|one)(?![a-z])"
    r"|(?:吗|呢|么|怎么样|如何|行不行|可以不可以|好不好)[?]?$",
    re.I,
)
# What is asked for is no number of the load.
_HOW_MANY = re.compile(r"^how\smany\s(?:concurrent\s)?(?:users|requests|clients|sessions)(?=\s)", re.I)
_RESULT_OF = re.compile(r"(?:会|将|又)?(?:怎么样|怎样|如何|呢|吗|的话)[?]?$")
_EXAMPLES = (
    "now with 16 GPUs", "use fp8", "TPOT under 30 ms", "drop the limit on TTFT", "switch to H200", "allow attention dp",
    "double the GPUs", "back to 8 GPUs", "optimize for throughput", "why?", "why not TP16?", "why not PP?",
    "what if the prompts were 32k", "compare TP4 PP2", "explain PP003", "estimate", "validate", "undo", "show the plan",
    "is this risky?", "what would change your mind?", "what if traffic doubles?", "which vllm flags?",
    "concurrency 64", "use TP8", "without PP", "model Llama-3.1-8B",
)  # fmt: skip

# The examples that are shown if nothing is near.
_SHOWN_EXAMPLES = ("now with 16 GPUs", "why not TP16?", "what if the prompts were 32k")


def answer(work: Work, text: str) -> Outcome:
    """Answer a text that is no command.

    Raises:
        InputError: what it says cannot be read or cannot be.
    """
    plain = " ".join(normalise(text).split())
    if work.state.current is None:
        return _first(work, text, plain)
    return goes_back(work, plain) or _question(work, plain) or _change(work, text, plain)


def _first(work: Work, text: str, plain: str) -> Outcome:
    """The first text of a chat: a request, or a question that needs no plan."""
    if asks_to_launch(plain):
        return _first_launch(work, text)
    if _asks_to_explain(plain):
        explained = explain_words(work, _explained(plain))
        if explained.kind == "explain":
            return explained
    try:
        return begin(work, text)
    except InputError as error:
        raise require_model(error) from None


def _first_launch(work: Work, text: str) -> Outcome:
    """A command that is asked for before there is a plan: the plan, if the text says enough for one."""
    try:
        started = begin(work, text)
    except InputError:
        return launch(work, text)
    return _with_launch(work, started, text)


def _with_launch(work: Work, planned: Outcome, text: str) -> Outcome:
    """A turn that planned, with the command that `text` asks for; unchanged if there is no plan."""
    plan = None if planned.planned is None else planned.planned.result.plan
    if plan is None:
        return planned
    return replace(planned, text=f"{planned.text}\n{launch_text(plan, text, work.width)}")


def _explained(plain: str) -> str:
    match = _EXPLAIN.match(plain)
    rule = _RULE.search(plain)
    if rule is not None:
        return rule.group()
    # A topic stands alone after "explain"; a question is asked whole.
    return (
        match["rest"] if match and plain.lower().lstrip().startswith(("explain", "define", "解释", "介绍")) else plain
    )


def _question(work: Work, plain: str) -> Outcome | None:
    """The answer where `plain` asks something; `None` where it does not."""
    asked_why = _WHY.match(plain)
    if asked_why is not None:
        return _why(work, plain, asked_why["rest"].strip(_ENDS))
    if asks_to_launch(plain):
        return _changed_and_launched(work, plain) or launch(work, plain)
    if FLIPS.search(plain) or asks_for_risk(plain):
        return why_not_words(work, plain)
    compared = _COMPARE.match(plain)
    earlier = asks_of_earlier(work, plain, compares=compared is not None)
    if earlier is not None:
        return earlier
    answered = of_own_plan(work, plain)
    if answered is not None:
        return answered
    if _ABOUT_COST.search(plain):
        return _cost(work, _ABOUT_COST.sub(" ", plain))
    if _ESTIMATE.match(plain):
        return show_estimate(work)
    if _ABOUT_FIGURES.search(plain):
        return show_estimate(work, plain)
    if _VALIDATE.match(plain):
        return show_validation(work)
    if compared is not None:
        return _compare(work, next((part for part in compared.groups() if part), "").strip(_ENDS))
    supposed = _WHAT_IF.match(plain)
    if supposed is not None:
        return _suppose(work, supposed["rest"], plain)
    if _asks_to_explain(plain):
        return explain_words(work, _explained(plain))
    if not _QUESTION.search(plain):
        return None
    return (why_not_words(work, plain) if _IS_SO.match(plain) else None) or _suppose(work, plain, plain)


def _cost(work: Work, beside: str) -> Outcome:
    """What the plan costs, and with the change that stands beside the question ("at $2 per GPU hour"), if any."""
    supposed = _WHAT_IF.match(beside.strip(_ENDS))
    changed = what_if(work, beside.strip(_ENDS) if supposed is None else supposed["rest"])
    if changed is None:
        return show_cost(work, work.now)
    if changed.aside is not None and changed.aside.result.plan is None:
        return changed
    return replace(changed, text=f"{show_cost(work, changed.aside or work.now).text}\n{changed.text}")


def _asks_to_explain(plain: str) -> bool:
    """Whether a topic is asked for; "which is better, TP8 or PP2 x TP4?" is asked of a deployment."""
    if _RULE.search(plain):
        return True
    asks = _EXPLAIN.match(plain) or _EXPLAIN_AFTER.search(plain)
    return asks is not None and not weighs_strategies(plain)


def _changed_and_launched(work: Work, plain: str) -> Outcome | None:
    """The change that stands beside the wish for a command, with the launch command of its plan."""
    beside = beside_launch(plain)
    changed = change(work, beside) if beside else None
    return None if changed is None else _with_launch(work, changed, plain)


def _why(work: Work, plain: str, rest: str) -> Outcome:
    subject = _WHY_NOT.sub("", rest + " ").strip()
    if not subject or subject in ("plan", "one", "this", "that", "it", "layout", "strategy", "方案", "这个", "这样"):
        return why(work)
    if _RULE.search(subject):
        return explain_words(work, _explained(subject))
    named = why_not_words(work, subject)
    if named is not None:
        return named
    # Only what the plan is asked not to have can be tried: "why is TPOT 2x worse than theirs" states no limit.
    changed = what_if(work, subject) if _DENIED.search(plain) else None
    if changed is not None:
        return changed
    if _SLOW.search(subject):
        return why_slow(work, subject)
    return explain_words(work, plain) if read_edit(subject, work.state.spoken).is_empty else why(work)


def _compare(work: Work, rest: str) -> Outcome:
    try:
        return compare_with(work, rest, may_read_files=True)
    except InputError:
        # "compare with H200", "compare with 16 GPUs": no strategy, but a request.
        changed = what_if(work, rest) if rest else None
        if changed is None:
            raise
        return changed


def _suppose(work: Work, rest: str, plain: str) -> Outcome:
    supposed = _HOW_MANY.sub("", _RESULT_OF.sub("", rest.strip(_ENDS)))
    changed = what_if(work, supposed, is_more=JOINED.search(plain) is not None)
    if changed is not None:
        return changed
    named = why_not_words(work, rest)
    return named if named is not None else explain_words(work, plain)


def _change(work: Work, text: str, plain: str) -> Outcome:
    changed = change(work, text)
    if changed is None:
        return not_understood(plain)
    note = "" if changed.planned is None else note_on_whole(work, plain, changed.planned)
    return replace(changed, text=f"{changed.text}{note}")


def not_understood(text: str) -> Outcome:
    """The answer to a text that fits no kind of turn: what can be said, the nearest first."""
    near = difflib.get_close_matches(text.lower()[:100], _EXAMPLES, n=3, cutoff=0.5)
    shown = [f'"{example}"' for example in near or map(say, _SHOWN_EXAMPLES)]
    lead = say("Did you mean") if near else say("It can be changed or asked about, as in")
    message = "That was not understood, and nothing changed. {lead} {examples}; /help lists all."
    return Outcome("unknown", say(message, lead=lead, examples=", ".join(shown)) + "\n")
