"""What people write in passing, in the form that the patterns of figures know: "15 lakh", "七八千", "万兆".

It changes the writing and reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..gated import Gated, Pattern
from .number_words import ENGLISH_NUMBER, chinese_value
from .quantities import find_quantities, read_number

# "15 lakh", "1.2 crore".
_SCALES = {"thousand": 1000, "million": 10**6}
_INDIAN = {"lakh": 10**5, "lac": 10**5, "crore": 10**7}
_INDIAN_SCALE = Gated(r"(?<![\w.])(\d{1,6}(?:,\d{2,3})*(?:\.\d{1,4})?)\s?(lakh|lac|crore)s?(?![a-z])")
# "七八千" is 7,000 to 8,000, "三五百" 300 to 500; "十来个" some ten, "一千多" some thousand.
_ABOUT_CHINESE = Gated(
    r"(?<![零一二两三四五六七八九十百千万亿\d])(?P<a>[一二两三四五六七八九])(?P<b>[二三四五六七八九])(?P<scale>[十百千万]{1,2})(?![一二三四五六七八九\d])",
    flags=0,
)
_SOME_CHINESE = Gated(
    r"(?<=[十百千万亿\d])(?:来|多|几)(?=\s?[个人路条字次台张万千亿,;。\n]|\s?(?:token|用户|并发|请求))"
)
# "智谱那个4.6", "千问3-32B": a maker's name before a release is its family's.
_MAKERS = {"智谱": "GLM-", "千问": "Qwen"}
_MAKER = Gated(
    r"(?:智谱(?:清言|AI)?|(?:通义)?千问)(?:的|家|那个|最新的?|新出的?|开源的?){0,2}\s?(?:GLM|Qwen)?[\s\-]?(?=\d\.?\d?)",
)
# "万兆互联": a network by its speed; "平均2分钟触发一次": how often.
_NETWORK = {"百": "0.1", "千": "1", "万": "10", "十万": "100"}
_NAMED_SPEED = Gated(r"(?P<n>十万|[百千万])兆(?:以太网?|网络?|互联|光纤|光口|网口|交换机)?(?!字节|b)")
_EVERY_SO_OFTEN = Gated(
    r"每?(?P<n>\d{1,4}(?:\.\d)?|[一两二三四五六七八九十]{1,3})\s?个?(?P<unit>秒|分钟|小时)钟?(?:就|会|才|左右|大概|要)?(?:触发|发起|调用|请求|提问|问|查|刷新?|用|来|点|发)?(?P<how>一|1)次",
    flags=0,
)
_SOME_TEN = re.compile(r"(?<![一二两三四五六七八九十百千万亿\d])十[来多几](?=个)")
# "three AZs with one g5.12xlarge in each": as many of what is in each.
_IN_EACH = Gated(
    r"(?<![\w.])(?P<n>\d{1,2}|two|three|four|five|six)\s(?:azs?|(?:availability\s)?zones|sites|regions|racks|rooms|data\s?cent(?:er|re)s)\s(?:with|and)\s(?:one|an?|1)\s(?P<what>[A-Za-z][\w.\-]{2,30}(?:\s[A-Za-z0-9\-]{1,12})?)\s(?:in\s|at\s|per\s)?(?:each|zone|site|az)(?![a-z])",
)
# "a tray being 4 GPUs", "each VM has two GPUs".
_NODE_HAS = Gated(
    r"(?<![a-z])(?:an?|each|every|one)\s(?P<node>tray|node|server|box|vm|machine|host|worker)\s(?:being|is|has|having|holds|means)\s(?P<n>\d{1,2}|two|four|eight)\s(?P<gpus>gpus|cards)(?![a-z])",
)
# "H100s, four to a server".
_TO_A_NODE = Gated(
    r"(?<![\w.])(?P<n>\d{1,2}|two|four|six|eight|sixteen)\s(?:(?:gpus|cards|of\s(?:them|these))\s)?to\s(?:an?|each|every|one)\s(?P<node>server|host|node|box|machine|vm)(?![a-z])"
)
# "machines of 8 H100": what each of them has, where nothing counts them.
_MACHINES_OF = Gated(
    rf"(?:(?P<q>(?<![\w.])(?:\d{{1,4}}|{ENGLISH_NUMBER}))\s(?:[a-z]+\s)?)?(?<![a-z])(?P<node>machines|servers|nodes|boxes|hosts)\s(?:of|with|having)\s(?P<n>\d{{1,2}}|four|eight)\s?x?\s?(?=[a-z]{{1,3}}\d)"
)
# "Kimi K2 Thinking-style traffic": no model that is planned.
_STYLE = Gated(
    r"(?<![\w])[A-Z][A-Za-z0-9.]*(?:[ \-][A-Z0-9][A-Za-z0-9.]*){0,3}-(?:style|like|class|level|grade)(?=\s[a-z])",
    flags=0,
)
# "Does it fit on a single A100? If it doesn't, what's the smallest number": asked is the number.
_FITS_ON_ONE = Gated(
    r"(?<![a-z])(?P<lead>(?:does|do|will|would|can|could)\s[^?.\n]{2,60}?\s(?:fit|run|work)\s(?:on|in|onto|into)\s)(?:an?\ssingle|one|just\sone|1)\s(?P<what>[^?\n]{2,40}\?\s?(?:and\s)?(?:if\s(?:it|that|they)\s(?:doesn't|don't|does\snot|won't|can't)|if\snot|otherwise|or\selse)[,]?\s(?=[^?\n]{0,30}(?:how\smany|number)))"
)
# "20 张发票", "6 台打印机", "20 块钱": the measure words of cards and machines, of other things.
_OTHER_THINGS = Gated(
    r"(?P<n>(?<![A-Za-z\d.])\d{1,6}|[一二两三四五六七八九十百]{1,3})\s?(?:张(?=发票|表|报表|图|照片|截图|订?单|车?票|纸|海报|桌|床|名片|证)|"
    r"块(?=钱|硬盘|屏|地|区域|业务|内容|ssd|盘|电池)|台(?=打印机|电脑|机器人|手机|平板|终端|摄像|空调|设备|车|电视|笔记本|机柜|交换机|路由器|机床|收银|录音))"
)
# "two replicas at TP4".
_REPLICAS_AT = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?:replicas|copies|instances)\s(?:(?:each\s)?(?:at|of|with|using|in|on)\s)(?P<tp>tp\s?=?\s?\d{{1,3}})(?![\w\d])"
)
# "one of our 8-way H100 hosts".
_WAY_HOSTS = Gated(
    rf"(?<![\w.])(?:(?P<n>one|an?|\d{{1,3}}|{ENGLISH_NUMBER})\s(?:of\s(?:our|the|these|those)\s)?)?(?P<each>\d{{1,2}})-way\s(?P<card>[a-z]{{1,3}}\d{{1,4}}[a-z]{{0,3}})\s(?P<node>hosts?|servers?|nodes?|box(?:es)?|machines?)(?![a-z])"
)
# "单路输入": of each request.
_OF_ONE_STREAM = re.compile(r"单路(?=输入|输出|平均|请求)")
# "at most 56 generations at once": what is served at once are requests.
_SERVED_AT_ONCE = Gated(
    r"(?<![\w.])(?P<n>\d[\d,]{0,8})\s(?:generations|completions|answers|replies|responses|outputs|decodes|drafts)\s"
    r"(?=(?:being\s[a-z]{3,12}\s)?(?:at\s(?:once|a\stime|any\s(?:one\s)?time|the\ssame\s(?:time|moment))|in\s(?:parallel|flight)|simultaneous|concurrent))",
)
# "Longest prompt to be accepted: 32,000 tokens": the most beside the usual length.
_LONGEST = Gated(
    r"(?<![a-z])(?P<most>longest|largest|biggest)\s(?:prompt|input|document|request)s?(?:\s(?:to\sbe\saccepted|(?:we|it|you)\s(?:must\s|need\sto\s|have\sto\s)?(?:accept|support|see|saw|get|had)|accepted|allowed|supported|possible|so\sfar))?"
    r"(?:\s(?:is|are|was|of|at|has|had))?\s?[:|,]?\s?(?=\d)",
)
# "6 GPU workers with 2x A100 each": machines of a cluster, where cards are counted in each.
_WORKER_NODES = Gated(
    r"(?<![\w.])(?P<n>\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|twelve)\s(?:(?:gpu|cluster|kubernetes|k8s)\s)?workers"
    r"(?=\s(?:with|of|having)\s(?:\d{1,2}|one|two|four|eight)(?![.,\d]))",
)
# "please leave disaggregation out".
_LEFT_OUT = Gated(
    r"(?<![a-z])(?:please\s)?(?:leave|keep)\s(?!(?:one|two|an?|the\s(?:first|last|other|second))\s)(?P<what>(?!nodes?|gpus?|cards?|servers?)[a-z/]+(?:[\s\-][a-z/]+){0,3}?)\sout(?:\s(?:of\s(?:it|this|the\splan)|for\snow|entirely|please))?(?=\s?(?:[,.;!\n]|$))"
)
# "tensor parallelism must not span more than 4 GPUs", "nor should TP use over 4 cards".
_WIDEST = Gated(
    r"(?:(?<![a-z])(?:nor|never|no)\s(?:[a-z]{2,8}\s){0,3})?(?<![a-z])(?P<what>tensor[\s\-]parallel(?:ism)?|tp|expert[\s\-]parallel(?:ism)?|ep|pipeline[\s\-]parallel(?:ism)?|pp)(?:\sgroups?)?\s(?:(?:(?:must|should|may|can|shall|will)(?:\snot|n't)?|cannot|can't|mustn't|is\snot\sto|to|never)\s){0,2}"
    r"(?:span|use|cover|cross|exceed|take|go\s(?:over|across|beyond)|spread\sover|run\s(?:over|across))\s(?:more\sthan|over|beyond)\s(?P<n>\d{1,3}|two|four|eight|sixteen)\s(?:of\sthe\s)?(?:gpus|cards)(?![a-z])|"
    r"(?P<denied>(?<![a-z])(?:won't|don't|do\snot|can't|not|no|never|nothing)(?![a-z]))[^.;\n]{0,40}?\s(?:spread|stretch|run|take|use|put)s?\s(?P<what2>tensor[\s\-]parallel(?:ism)?|tp|expert[\s\-]parallel(?:ism)?|ep|pipeline[\s\-]parallel(?:ism)?|pp)\s(?:over|across|on|beyond|to)\s(?:more\sthan\s)?(?P<n2>\d{1,3}|two|four|eight|sixteen)\s(?:gpus|cards)(?![a-z])"
)
_NOT_MORE = Gated(r"(?<![a-z])(?:nor|not|never|cannot|no)(?![a-z])|n't")
# "the A100 boxes (there are two, eight cards each)".
_BOXES_TOLD = Gated(
    rf"(?<![a-z])(?:the|our)\s(?P<card>[a-z]{{1,3}}\d{{1,4}}[a-z]{{0,3}})\s(?P<node>servers|nodes|boxes|machines|hosts)\s?[(,-]\s?(?:there\sare|we\shave|we've\sgot)\s(?P<n>\d{{1,3}}|{ENGLISH_NUMBER}),\s(?P<each>\d{{1,2}}|{ENGLISH_NUMBER})\s(?:cards|gpus)\s(?:each|apiece)\s?\)?"
)
# "It isn't pipeline parallelism that we can't do": said twice not to be, it says nothing of what is.
_TWICE_DENIED = Gated(
    r"(?<![a-z])(?:it|that)\s(?:isn't|is\snot|wasn't)\s[a-z][a-z\s\-]{2,40}\sthat\s(?:we|i|they|you)\s(?:can't|cannot|don't|won't|mustn't|may\snot|shouldn't)\s[a-z]{2,10}(?![a-z])"
)
# "2k/700 requests": their two lengths.
_LENGTHS_OF_REQUESTS = Gated(
    r"(?<![\w./])(\d[\d.,]{0,8}k|\d{3,6})\s?/\s?(\d[\d.,]{0,8}k|\d{2,6})\s(?=(?:token\s)?(?:requests|calls|prompts|chats|traffic)(?![a-z]))"
)
# "Eight single-GPU replicas": how each is split, and no count of cards.
_SINGLE_GPU_REPLICAS = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?:single|one|1)[\s\-](?:gpu|card)\s(?:replicas|instances|copies)(?![a-z])"
)
# "512 concurrency highest tok/s": a wish behind a figure is a statement of its own.
_WISH_BEHIND = Gated(
    r"(?<=[a-z])\s(?=(?:highest|max(?:imum|imi[sz]e)?|best|most)\s(?:tok(?:en)?s?(?:/s|\sper\ssecond)|throughput)(?![a-z]))"
)
# "TP2 还是一卡一份": a replica on each card counts no cards.
_ONE_EACH_CHINESE = Gated(r"(?:一卡|单卡|每卡|每张卡?)(?:各?跑?)?(?:一|1)(?:份|个?实例|个?副本)")
# "filing goes in (1,100 tokens), a 60-token verdict comes out".
_GOES_IN = Gated(r"(?<![a-z])(?:goes|go|is\sput|comes)\sin\s?\(\s?(?P<n>\d[\d,]{0,9}k?)\stok(?:en)?s?\s?\)")
_COMES_OUT = Gated(
    r"(?<![\w.,])(?P<n>\d[\d,]{0,9}k?)[\s\-]tokens?\s(?:[a-z]{2,14}\s){0,3}?(?:comes?|goes|go)\s(?:out|back)(?![a-z])"
)
# "2x80GB A100".
_SIZED_CARDS = Gated(
    r"(?<![\w.])(?P<n>\d{1,3})\s?[x×*]\s?(?P<size>\d{2,3})\s?GB\s(?P<card>[A-Z]{1,2}\d{2,4}[A-Z]?)(?!\w)"
)
# "4x A100 40": the memory that tells two cards of one name apart, without its unit.
_BARE_MEMORY = Gated(
    r"(?<![\w\-])(?P<card>A100|A800|V100|H20|H100)s?\s(?P<size>16|32|40|80|96|141)(?=\s?(?:[,.;:)!?\n]|$|(?:gpus?|cards?|in|on|with|and|pcie|sxm)(?![a-z])))(?!\.\d)",
)
# "half of a GB200 NVL72".
_HALF_A_RACK = Gated(
    r"(?<![a-z])half\s(?:of\s)?(?:an?|the|our)\s(?P<card>gb[23]00)\s?nvl\s?(?P<n>72|36)(?:\sracks?)?(?!\w|\s?[(:,]\s?(?:nine|\d{1,2})\s(?:compute\s)?trays)(?:\s?\(\s?36\s?gpus\s?\))?"
)
# "输出512,100并发": two figures, which a comma parts; no thousands are counted so.
_NO_THOUSANDS = Gated(r"((?:输入|输出|进|出)\s?\d{1,3}),(?=\d{3}\s?(?:个|路|的)?\s?(?:并发|用户|请求|QPS|RPS|路))")
# "20 000 prompts", "7 200 tokens": groups of digits as many countries write them.
_SPACED_GROUPS = Gated(
    r"(?<![\w.,/:-])(?<!\d\s)(\d{1,3}) (000|\d{3}"
    r"(?=\s(?:of\s)?(?:prompts?|tokens?|requests?|employees|users|people|documents|calls|queries|characters|words)(?![a-z])))"
    r"(?![\w.,]*\d)(?!\s\d)",
)
# "People get annoyed if nothing shows up for 2 seconds": the first token is due by then.
_NOTHING_SHOWS = Gated(
    r"(?<![a-z])(?:if|when)\s(?:(?:there's|they\ssee)\snothing|nothing\s(?:shows(?:\sup)?|appears|comes(?:\sback|\sup|\sout)?|happens|moves|is\sthere)|(?:the\s|they\s(?:see|get)\s)?(?:no|first)\s(?:first\s)?(?:token|word|text|reply|answer)s?\s"
    r"(?:(?:shows(?:\sup)?|appears|comes)|isn't\s(?:there|out|visible)))\s(?:for|within|in|after|by)\s(?:about\s|some\s|more\sthan\s)?(?P<time>\d[\d.]{0,5}\s?(?:ms|milliseconds?|s|sec|seconds?))(?![a-z])",
)
# "every active dev triggers one every ~6 seconds": one of what was spoken of.
_ONE_EVERY = Gated(
    r"(?<![a-z])((?:each|every)(?:\s[a-z]+){1,3}\s(?:triggers?|sends?|fires?|makes?|asks?|issues?|starts?|runs?|submits?))\s(?:one|it)\severy\s?(?:about\s|~|≈|some\s)?\s?(\d{1,3}|two|three|five|ten|twenty|thirty)\s(second|minute|hour)s?(?![a-z])",
)
# "two and a half thousand tokens"
_HALF_THOUSAND = Gated(
    r"(?<![a-z])(one|two|three|four|five|six|seven|eight|nine|ten)\sand\sa\shalf\s(thousand|million)(?![a-z])"
)
# "2 x TP4", "TP4 x 2": as many replicas of it.
_TIMES_STRATEGY = Gated(
    r"(?<![\w.])(\d{1,3})\s?[x×*]\s?(tp\s?=?\s?\d{1,3})(?!\w)(?!\s?[x×*]\s?\d)|"
    r"(?<!\w)(tp\s?=?\s?\d{1,3})\s?[x×*]\s?(\d{1,3})(?=\s?(?:[?,.;:)\n]|$|(?:replicas?|copies)(?![a-z])|副本|个?实例))|"
    r"(?<!\w)(?P<again>tp\s?=?\s?\d{1,3})\s(?:twice|two\stimes)(?![a-z])"
)
# Versions of what runs beside an engine: no quantity of a plan.
_SOFTWARE = Gated(
    r"(?<![a-z])(?:ubuntu|debian|rhel|centos|rocky(?:\slinux)?|sles|windows(?:\sserver)?|cuda|cudnn|nccl|rocm|driver|python|py?torch|linux|kernel|docker|kubernetes|k8s|helm|slurm|ansible|terraform)\s?(?:version\s|v)?\d{1,4}(?:\.\d{1,3}){0,3}(?![\w%]|\s?(?:gb|gpus?|nodes?|ms|s|tokens?)(?![a-z]))",
)
# "fp8 everywhere incl. KV".
_EVERYWHERE = Gated(
    r"(?<![\w.])(?P<format>fp8|int8|bf16|fp16)\s(?:everywhere|throughout|for\severything|all\sthe\sway)(?:,?\s\(?(?:incl(?:\.|uding)?|also)\s(?:the\s)?kv(?:[\s\-]?cache)?\)?)?",
)
# "gpus=16xH100 nodes=2 qps=2 goal=max_throughput": keys with values in a row, each a statement of its own.
_KEY = r"[a-z][a-z\d_\-]{0,30} ?(?:[<>]=|[≤≥]|=(?!=)) ?(?=\S)"
_NEXT_KEY = Gated(rf"(?<=[^\s,;:|]) +(?={_KEY})")
_KEYS = Gated(rf"(?<!\w){_KEY}")
_FEWEST_KEYS = 3
# "--isl 6144 --osl 512": flags with values in a row are keys too.
_FLAG = Gated(r"(?<!\S)--(?P<key>[a-z][a-z\d]*(?:[\-_][a-z\d]+){0,5})(?:\s?=\s?|\s)(?=[^\s\-])")
_FEWEST_FLAGS = 2
_SNAKE = Gated(r"(?<=[=])[a-z]{2,12}(?:_[a-z]{2,12}){1,3}(?![\w/.\-])")
# "token rate at least 20 per second per user": of what.
_TOKEN_RATE = Gated(
    r"(?<![a-z])(?:token|decode|decoding|generation|output|typing|reading)\s(?:rate|speed)s?((?:[\s:=]|(?:of|is|must\sbe|should\sbe|at\sleast|min(?:imum)?|above|over|about|around|no\sless\sthan|not\sbelow)(?![a-z]))*"
    r"\d{1,4}(?:\.\d)?)\s?(?=(?:per|/|a|each|every)\s?s(?:ec(?:ond)?)?\s?(?:per|/|for\s(?:each|every)|a)\s?(?:user|request|stream|session|person|client))",
)
# "思考大概 1500 token, 正式回答 500 token", "2k reasoning tokens plus 500 of answer": both are the output.
_THOUGHT_CHINESE = Gated(
    r"(?:思考|推理过程)[^\d,;。\n]{0,8}(?P<a>\d[\d,]{0,12}k?)\s?(?:个?\s?tokens?)?[,;]?\s?(?:再加|加上|加|和)?\s?(?:正式|最终|最后)?的?(?:回答|答案|回复|正文)[^\d,;。\n]{0,8}(?P<b>\d[\d,]{0,12}k?)(?=\s?个?\s?tokens?)",
)
_THOUGHT = Gated(
    r"(?<![\w.])(?P<a>\d[\d,]{0,12}k?)\s(?:tokens?\sof\s(?:reasoning|thinking)|(?:reasoning|thinking)\stokens?)\s?(?:,|plus|and|\+)\s?(?:then\s|about\s|some\s|another\s){0,2}(?P<b>\d[\d,]{0,12}k?)\s"
    r"(?:(?:tokens?\s)?of\s(?:the\s|final\s|actual\s){0,2}answer|(?:answer|visible|final)\stokens?)(?![a-z])",
)


def in_plain_writing(text: str) -> str:
    """The text with colloquial figures, names and turns as they are written out."""
    if len(_FLAG.findall(text)) >= _FEWEST_FLAGS:
        text = _FLAG.sub(r", \g<key>=", text)
    if len(_KEYS.findall(text)) >= _FEWEST_KEYS:
        text = _SNAKE.sub(lambda match: match.group().replace("_", " "), _NEXT_KEY.sub(", ", text))
    for pattern, written in _REWRITTEN:
        text = pattern.sub(written, text)
    return text


def _number(words: str) -> float:
    return float(words) if words[0].isdigit() else float(chinese_value(words) or 1)


def _sum_of(match: re.Match[str]) -> str:
    return f"{sum(read_number(match[part]) or 0 for part in 'ab'):.12g}"


def _one_every(match: re.Match[str]) -> str:
    return f"each of them sends {1 / (read_number(match[2]) or 1):.12g} requests per {match[3]}"


def _within_days(match: re.Match[str]) -> str:
    return f"within {(read_number(match['n']) or 1) * (7 if match['unit'].startswith('week') else 1):g} days"


def _at_the_peak(match: re.Match[str]) -> str:
    found = find_quantities(f"{match['n']} 次请求")
    amount = (found[0].decimal_value if found else 0.0) * _number(match["k"])
    return f"高峰每天 {amount:.0f} 次请求"


def _at_most_so_wide(match: re.Match[str]) -> str:
    if not _NOT_MORE.search(match.group()):
        return match.group()
    return f"{match['what'] or match['what2']} at most {read_number(match['n'] or match['n2']) or 1:g}"


def _at_most_as_few(match: re.Match[str]) -> str:
    words = match["m"].lower().removeprefix("all ")
    most = 2 if words == "both" else read_number(words) or 1
    return f"at most {most:g} {match['card']}, as few as needed,{match['rest']}"


def _of_each_machine(match: re.Match[str]) -> str:
    if match["q"]:
        return match.group()
    return f"{match['node']} with {read_number(match['n']) or 1:g} gpus each, "


def _way_hosts(match: re.Match[str]) -> str:
    count = read_number(match["n"].lower()) if match["n"] and match["n"].lower() not in ("a", "an") else 1
    if match["n"] is None:
        return f"{match['node']} with {match['each']}x {match['card']} each"
    return f"{count or 1:g} node{'s' * ((count or 1) > 1)} with {match['each']}x {match['card']} each"


def _boxes_told(match: re.Match[str]) -> str:
    nodes, each = (read_number(match[name].lower()) or 1 for name in ("n", "each"))
    return f"{nodes:g} {match['node']} with {each:g}x {match['card']} each"


def _so_often(match: re.Match[str]) -> str:
    return f"每{match['unit']}{1 / (_number(match['n'])):.12g}次"


def _in_digits(match: re.Match[str]) -> str:
    return f"{float(match[1].replace(',', '')) * _INDIAN[match[2].lower()]:.0f}"


def _as_range(match: re.Match[str]) -> str:
    low, high = (chinese_value(match[end] + match["scale"]) or 0 for end in "ab")
    return f"{low}到{high}" if low < high else match.group()


# "ca. 600 tokens": no sentence ends there.
_CIRCA = Gated(r"(?<![a-z.])(?:ca|approx|circa)\.\s?(?=\d)")

# "4-bit is out of the question": nothing that comes out.
_OUT_OF = Gated(r"(?<![a-z])out\sof\s(?:the\s)?(?:question|scope|bounds|the\srunning)(?![a-z])")

_ON_THE_OTHER_HAND = Gated(r",\s(?:on\sthe\sother\shand|however|though|by\scontrast|of\scourse|in\sturn),\s")
# "Is one H100 enough for …, or should I use both cards?"
_ENOUGH_OR_MORE = Gated(
    r"(?<![a-z])(?:is|are|will|would)\s(?:one|an?\ssingle|1|two|2|four|4)\s(?:of\s(?:the|our)\s)?(?P<card>[a-z][\w\-]{1,12}(?:\s(?:pcie|sxm|nvl|\d{2,3}\s?gb))?)s?\s(?:be\s)?(?:enough|sufficient|ok(?:ay)?|suffice)(?P<rest>[^?\n]{0,200}?),?\s"
    r"or\s(?:do|should|must|would|will)\s(?:i|we)\s(?:rather\s|really\s|better\s)?(?:need|use|take|have|go\sfor|buy)\s(?:to\s(?:use|take|have)\s)?(?P<m>both|all\s(?:two|four|eight|\d{1,2})|two|three|four|eight|\d{1,2})(?:\sof\s(?:them|these|those))?(?:\s(?:cards|gpus))?(?:\s(?:of|in)\s(?:the|our)\s[a-z]{3,10})?(?=\s?[?,.;)])"
)
# "TPOT can be relaxed to 80 ms", "TPOT 可以放宽到 80ms".
_RELAXED = Gated(
    r"\s(?:can|may|could)\s(?:now\s)?be\s(?:relaxed|loosened|raised|tightened|lowered|widened)\sto\s(?=\d)|\s?(?:可以?|能|已)?(?:放宽|放松|收紧|调整)(?:到|成|为|至)\s?(?=\d)"
)
_ONE_AND_SAME = Gated(r"(?<![a-z])one\sand\sthe\ssame(?![a-z])")
# "yo, got 3 nodes": the writer has them; "the trainer got 3 nodes" says who else.
_GOT = Gated(
    r"(?:^|(?<=[.;!?,]\s)|(?<=\n))(?:(?:yo|hi|hey|hello|ok(?:ay)?|so|well),?\s)?got\s(?=(?:\d|an?|one|two|three|four|five|six|eight|some|access)(?![a-z]))"
)
# "8x H100 each but one of them has to stay idle": a clause of its own, and no "each but one".
_BUT_ONE = Gated(
    r"(?<=[a-z\d)])\sbut\s(?=(?:one|two|three|\d)\sof\s(?:them|those|these)\s(?:has|have|is|are|must|needs?|stays?|will|can)(?![a-z]))"
)
# "Llama 3.3 Nemotron Super 49B": one name.
_NEMOTRON = Gated(r"(?<![\w.])llama[ \-]?(?P<v>3[._]\d) (?:-\s)?nemotron[ \-]")
# "3 nodes 8xH100": nodes of so many.
_NODES_OF = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?P<node>nodes|servers|boxes|machines|hosts)"
    r"\s(?=\d{1,2}\s?x\s?[a-z]{1,4}\d)"
)
_DO_NOT_EXCEED = Gated(r"[别勿](?=(?:超过?|多于|大于|高于|低于|少于))")
_OF_EM = Gated(r"(?<![a-z])of\s'?em(?![a-z])")
# "half a k out"
_HALF_A_K = Gated(r"(?<![\w.])half\sa\s(?:k|thousand)(?![a-z])")
# "each has one request running at a time": as many requests as there are of what is counted.
_ONE_EACH_AT_A_TIME = Gated(
    r",?\s?\(?(?<![a-z])(?:each|every\sone|all)(?:\sof\s(?:them|these))?\s(?:has|have|runs?|keeps?|with|sends?)\s(?:only\s|just\s|exactly\s)?(?:one|a\ssingle|1)\s(?:request|call|query|stream|generation)s?"
    r"(?:\s(?:running|open|active|in\sflight|going|outstanding))?\s(?:at\s(?:a|any|one|the\ssame)\stime|at\sonce|at\sany\smoment)\)?"
)
# "has to be through in two weeks": within so many days.
_WEEKS = Gated(
    r"(?<![a-z])(?:(?:be|is|are|get|gets|been)\s)?(?:through|done|finished|complete[d]?|ready|over)\s(?:with(?:in)?|in)\s(?:about\s|at\smost\s|max(?:imum)?\s)?(?P<n>\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen)\s(?P<unit>days?|weeks?)(?![a-z])"
)
# "the busiest hour has 14k turns": requests of an hour.
_BUSIEST_HOUR = Gated(
    r"(?<![a-z])(?:the\s|our\s|in\sthe\s)?(?:busiest|peak|rush|worst|top)\shour\s?(?:has|have|sees?|brings?|gets?|carries|is|with|:|=|we\s(?:get|see|have))\s?(?:about\s|around\s|roughly\s|some\s|~\s?)?(?P<n>\d[\d,.]{0,11}\s?k?)\s(?:turns?|chats?|calls?|requests?|queries|messages?|conversations?|prompts?|questions?)(?![a-z])(?!\s(?:per|a|each)\s)"
)
# "日均请求 80 万左右", "日均 80 万次"
_DAILY_CHINESE = Gated(
    r"(?:日均(?:请求|调用|访问|对话|问答)?(?:量|数|次数)?|日(?:请求|调用|访问|对话|问答)(?:量|数|次数))\s?(?:大?约|大概|差不多)?\s?(?P<n>\d[\d.]{0,6}\s?[万亿千]?)\s?(?:左右|上下)?\s?(?:次|个|条)?(?:请求|调用|对话)?(?=\s?[,;。:]|$)"
)
# "高峰大概是均值的 3 倍", behind an amount of each day.
_PEAK_CHINESE = Gated(
    r"每天\s?(?P<n>\d[\d.]{0,6}\s?[万亿千]?)\s?次请求[,;。][^\n\d]{0,10}?高峰(?:时段|时|期)?(?:大?概|大?约)?(?:是|为|有|按)?(?:全天|一天|当天|日)?的?(?:均值|平均值?|日均|平时)的?\s?(?P<k>\d(?:\.\d)?|两|三|四|五)\s?倍"
)
# "servers are 8x H100, three of them": nodes that are told first, and counted behind.
_COUNTED_BEHIND = Gated(
    rf"(?<![a-z])(?:the\s|our\s)?(?P<node>servers|nodes|boxes|machines|hosts)\s"
    r"(?:are|have|with|of|come\swith)\s(?P<each>\d{1,2}\s?x\s?[a-z][a-z\d\- ]{1,20}?)(?:\seach)?,\s"
    rf"(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\sof\s(?:them|these|those)(?![a-z])"
)
# "1-year reserved": for how long a price holds.
_TERM = Gated(
    r",?\s(?:\d|one|three)[\s\-]?(?:years?|yr)\s(?:reserved|commit(?:ment|ted)?|savings\splan)(?:\s(?:pric(?:e|ing)|rate|instances?))?(?![a-z])"
)
# What is written instead, in the order in which it is done: a later one reads what an earlier one wrote.
_REWRITTEN: tuple[tuple[Pattern, str | Callable[[re.Match[str]], str]], ...] = (
    (_CIRCA, "about "),
    (_OUT_OF, "not allowed"),
    (_ON_THE_OTHER_HAND, " "),
    (_RELAXED, " of "),
    (_ENOUGH_OR_MORE, _at_most_as_few),
    (_GOT, "we have "),
    (_NEMOTRON, r"Llama-\g<v>-Nemotron-"),
    (_NODES_OF, r"\g<n> \g<node> of "),
    (_DO_NOT_EXCEED, "不"),
    (_OF_EM, "of them"),
    (_BUT_ONE, ", but "),
    (_HALF_A_K, "500"),
    (_ONE_EACH_AT_A_TIME, ""),
    (_WEEKS, _within_days),
    (_BUSIEST_HOUR, r"\g<n> requests per hour"),
    (_DAILY_CHINESE, r"每天 \g<n> 次请求"),
    (_PEAK_CHINESE, _at_the_peak),
    (_ONE_AND_SAME, "the same"),
    (_COUNTED_BEHIND, r"\g<n> \g<node> with \g<each>"),
    (_TERM, ""),
    (_THOUGHT_CHINESE, lambda match: f"输出 {_sum_of(match)}"),
    (_THOUGHT, lambda match: f"{_sum_of(match)} output tokens"),
    (_TOKEN_RATE, r"\1 tokens "),
    (_SOFTWARE, lambda match: match.group().split()[0].rstrip("0123456789.")),
    (_NOTHING_SHOWS, r"; first token within \g<time>;"),
    (_ONE_EVERY, _one_every),
    (_HALF_THOUSAND, lambda match: f"{((read_number(match[1]) or 0) + 0.5) * _SCALES[match[2].lower()]:g}"),
    (_TIMES_STRATEGY, lambda match: f"DP{match[1] or match[4] or 2} x {match[2] or match[3] or match['again']}"),
    (_IN_EACH, r"\g<n> \g<what>"),
    (_TO_A_NODE, r"\g<n> gpus per \g<node>"),
    (_MACHINES_OF, _of_each_machine),
    (_STYLE, "such"),
    (_FITS_ON_ONE, r"\g<lead>\g<what>"),
    (_OTHER_THINGS, r"\g<n> 个"),
    (_REPLICAS_AT, lambda match: f"DP{read_number(match['n'].lower()) or 1:g} x {match['tp']}"),
    (_WAY_HOSTS, _way_hosts),
    (_OF_ONE_STREAM, "每个请求"),
    (_NODE_HAS, r"\g<n> \g<gpus> per \g<node>"),
    (_SERVED_AT_ONCE, r"\g<n> requests "),
    (_LONGEST, r"\g<most> "),
    (_WORKER_NODES, r"\g<n> nodes"),
    (_WISH_BEHIND, ", "),
    (_LEFT_OUT, r"no \g<what>"),
    (_WIDEST, _at_most_so_wide),
    (_BOXES_TOLD, _boxes_told),
    (_TWICE_DENIED, ""),
    (_LENGTHS_OF_REQUESTS, r"input \1, output \2, "),
    (_SINGLE_GPU_REPLICAS, lambda match: f"DP{read_number(match['n'].lower()) or 1:g} x TP1"),
    (_ONE_EACH_CHINESE, "每卡各有副本"),
    (_GOES_IN, r"input \g<n> tokens"),
    (_COMES_OUT, r"output \g<n> tokens"),
    (_SIZED_CARDS, r"\g<n>x \g<card> \g<size>GB"),
    (_BARE_MEMORY, r"\g<card> \g<size>GB"),
    (_HALF_A_RACK, lambda match: f"{int(match['n']) // 2} {match['card']}"),
    (_NO_THOUSANDS, r"\1, "),
    (_SPACED_GROUPS, r"\1\2"),
    (_MAKER, lambda match: next(name for maker, name in _MAKERS.items() if maker in match.group())),
    (_NAMED_SPEED, lambda match: f" {_NETWORK[match['n']]}G以太网"),
    (_EVERY_SO_OFTEN, _so_often),
    (_EVERYWHERE, r"\g<format> weights, \g<format> KV cache"),
    (_INDIAN_SCALE, _in_digits),
    (_ABOUT_CHINESE, _as_range),
    (_SOME_TEN, "10"),
    (_SOME_CHINESE, ""),
)
