"""The words in which people say what a plan must leave alone, in English and Chinese (`constraints/reserved.py`)."""

from __future__ import annotations

from ..patterns.gated import Gated
from ..patterns.number_words import NUMBER
from ..patterns.page import BOX, CARD, MODEL


def cues(english: str, chinese: str = "") -> Gated:
    """A pattern of words: English ones whole, Chinese ones as they stand."""
    return Gated(rf"(?<![a-z])(?:{english})(?![a-z])" + (f"|{chinese}" if chinese else ""))


NODE = (
    r"nodes?|(?:gpu\s)?workers?|(?:compute\s)?trays?|vms?|servers?|machines?|box(?:es)?|hosts?|systems?|chassis|"
    r"节点|整?机器?|服务器"
)
_GPU = rf"gpus?|cards?|accelerators?|devices?|显?卡|{CARD}++s?"
# "two of the six servers", "two of those whole systems"; "one GPU out of the 8 H100": the whole of which it is a part.
_OF = (
    rf"(?:\s(?:of|out\sof)\s(?:the|our|these|those|its|my)?\s?(?:(?:{NUMBER})\s)?)?"
    r"(?:\s?(?:whole|entire|single|spare|full|complete|other|of\s(?:the|those|our|these)(?:\s\d{1,4})?)){0,2}"
)
_PART = (
    rf"(?:\s(?:of|out\sof|from)\s(?:(?:the|our|these|those|its|my)\s(?:\d{{1,5}}\s?x?\s?)?(?:{NODE}|{_GPU})|"
    rf"(?:each|every)\s(?:{NODE})))?"
)


def _counted(number: str) -> Gated:
    """So many nodes or GPUs, or a part of those there are."""
    return Gated(
        rf"(?<![A-Za-z0-9.\-×x*第])(?<!能用)(?<!可用)(?P<n>{number})\s?(?:[个台张块]\s?)?{_OF}\s?"
        rf"(?:(?P<node>{NODE}|{BOX}++s?|[dh]gxs?|(?<=台))|(?P<gpu>(?:{_GPU})(?!\s(?:workers?|nodes?|servers?|machines?|hosts?|box(?:es)?|instances?|trays?|vms?)(?![a-z]))|(?<=[张块])))(?![A-Za-z]){_PART}(?!\s?(?:with|of(?!f)|each|holding|having|都不|\(\s?\d))",
    )


COUNTED = _counted(rf"{NUMBER}|a\ssingle")
COUNTED_OR_ONE = _counted(rf"{NUMBER}|another|an?(?:\ssingle)?")
_GONE = (
    r"(?:drained|cordoned|evicted|decommissioned|retired|(?:shut|powered|switched|turned|taken)\s(?:down|off|out|offline)|pinned|bound|lent|loaned|promised|reserved|taken|used|busy|needed|occupied|dedicated|allocated|assigned|blocked|booked|earmarked|"
    r"given|sold|returned|moved|sent|handed|on\sloan|out\sof|down|broken|faulty|off\slimits|(?:(?:the|our|an?)\s)?(?:(?:hot|cold|warm)[\s\-])?(?:spares?|stand-?bys?))(?![a-z])(?!\s(?:back\s)?to\s(?:us|me|(?:an?|the|our)\s(?:\w+\s)?rack)(?![a-z]))"
)
# What else runs on GPUs, and who else has some.
_OTHER_WORK = (
    r"(?:jupyter\w*|notebooks?|embed\w*|re-?rank\w*|(?:re-?|pre-?)?train\w*|fine-?tun\w*|research\w*|experiment\w*|test(?:s|ing)?|staging|dev(?:elopment)?|"
    r"ci|etl|batch|ocr|asr|tts|speech|whisper|vision|cfd|simulation\w*|render\w*|graphics|backups?|(?:[a-z\-]{2,16}\s){0,2}(?:team|group|department|lab|project|people|guys|colleagues|students))"
)
# Behind "to" or "for": it is the planned model that gets it.
NOT_FOR_US = (
    r"(?!(?:us|me|it|this|that|these|those|(?:the|our|a)\s(?:model|llm|new|plan|service|chatbot)|serv\w{1,3}|inference|prefill\w{0,3}|decod\w{1,3}|use|"
    rf"weights?|kv|caches?|activations?|headroom|failover|redundancy|tp|pp|each|every|all|both|\d)(?![a-z])|[{MODEL}{CARD}]|"
    r"[a-z\s\-]{0,20}(?<![a-z])(?:model|llm|chatbot|assistant|engine|vllm|sglang|trt[a-z\-]*|tensorrt[a-z\-]*|replica|copy|instance|prefill|decode)s?(?![a-z]))"
)
_HANDS = (
    r"(?:(?:hand|giv|tak|send|pull|return|releas|remov|power|shut|turn|switch)(?:e|es|s|ed|d|en|ing|ting)?|"
    r"gave|took|sent|s[eo]ld|sell)"
)
_ASIDE = (
    r"(?:over|up|back(?!\sfrom(?![a-z]))|out(?!\sof\s(?:the|our|an?|their)\s(?:old|other|former|previous|retired|test|dev)(?![a-z]))|"
    r"away|down|offline|off(?!\s(?:the\sshelf)))"
)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
ORDINAL = "|".join((*ORDINALS, "other"))
# "two of the eight", "of which one": part of what was counted before.
PART_OF_IT = Gated(
    rf"(?<![A-Za-z0-9.])(?<!every\s)(?<!each\s)(?<!any\s)(?:(?P<n>{NUMBER})\sof\s(?:them|those|these|which|(?:the|our|those|these)\s(?:{NUMBER}))|"
    rf"of\s(?:which|these|those|them),?\s(?P<m>{NUMBER}))(?![A-Za-z\-]|\s?(?:{NODE}|{_GPU}))|(?:其中有?|有(?=\s?{NUMBER}\s?[台张块]卡?(?:已经?|正)?(?:在跑|在用|被占)))\s?(?P<k>{NUMBER})\s?[台张块]|"
    rf"(?<![A-Za-z0-9.])(?<!every\s)(?<!each\s)(?<!any\s)(?P<i>{NUMBER})\s(?:(?:must|should|shall|have\sto|has\sto|needs?\sto)\s(?:stay|remain|sit|be\s(?:kept|left))|(?:stay|remain)s?)(?![a-z])|"
    rf"(?<![A-Za-z0-9.=:])(?<!every\s)(?<!each\s)(?<!in\s)(?<!out\sof\s)(?P<l>{NUMBER})\s(?:(?:are|is|were|gets?|(?:will|must|shall|(?:has|have|needs?|is|are)\sto)\sbe|ha(?:s|ve)\s(?:(?:since|already|meanwhile|just|now)\s)?(?:been|gone))\s{_GONE}|(?:are|is)\s(?:only\s|meant\s)?for\s(?:the\s|our\s|an?\s)?{_OTHER_WORK}(?![a-z])|belongs?\sto(?!\s(?:us|me)(?![a-z])))|"
    rf"(?<![A-Za-z0-9.])(?P<p>{NUMBER})\s(?:kept|held|set|left|put)\s(?:back|aside|free|alone|in\sreserve)(?![a-z])|"
    rf"(?<![a-z])(?:(?:hold|keep|set|put|leave)(?:ing)?|(?:we|i|they)\s(?:(?:have|had|already|since|just)\s){{0,2}}{_HANDS}(?=\s[^,;.]{{1,40}}\s(?:{_ASIDE}|to)(?![a-z])))\s(?:those\s|these\s|the\s)?(?P<j>{NUMBER})(?:\sof\s(?:the|our|these|those)(?:\s{NUMBER})?\s(?:{_GPU}))?\s(?:{_ASIDE}|aside|free|alone|in\sreserve|to\s{NOT_FOR_US}[a-z]+)(?![a-z])|"
    rf"(?<![a-z])the\s(?:first|last|other|remaining|upper|lower)\s(?P<q>{NUMBER})(?:\s(?:{NODE}|{_GPU}|ones))?\s(?=(?:are|belong|stay|remain|must|have|go|will)(?![a-z]))|"
    rf"(?<![a-z])(?:the|our)\s(?P<o>last|(?:{ORDINAL}))(?:\s(?:one|{NODE}))?,?\s(?:is|stays?|remains?|must|has\sto|will)(?![a-z])",
)
# "students use two of them", "the client keeps 4 GPUs for embeddings", "其中2张要跑语音合成": what somebody else takes.
# The planner and the planned model are nobody else.
_OTHERS = (
    r"(?<![a-z])(?!(?:we|i|you|us|it|they|that|this|which|who|what|each|every|one|to|can|may|must|should|will|would|could|please|let|model|llm|"
    r"engine|replicas?|instances?|services?|deployments?|plan|copy|copies|stages?|groups?|nodes?|machines?|box(?:es)?|hosts?|chassis|trays?|racks?|sockets?|domains?|switch(?:es)?|prefill|decode|tp|pp|dp|ep|and|or|then|only|just)(?![a-z]))"
    r"[a-z][a-z'\-]{1,20}"
)
OTHERS_TAKE = Gated(
    rf"{_OTHERS}\s(?:(?:always|permanently|already|still|currently|also|usually|now)\s)?(?:uses?|takes?|gets?|keeps?|occup(?:y|ies)|hogs?|eats?|holds?|has|have|claims?|borrows?|books?|(?:is|are|was|were|will\sbe)\s(?:given|promised|assigned|lent)|(?P<wish>needs?|wants?|requires?|asks?\sfor))\s"
    rf"(?P<n>{NUMBER})(?!\s(?:{NODE}|gpus?|cards?)\s(?:of\s(?:its|their|his|her)\sown|with|each|holding)(?![a-z]))\s(?:of\s(?:them|those|these|the|our)(?![a-z])|(?=(?:{NODE}|gpus?|cards?)(?![a-z])))(?:\s?(?:\d{{1,3}}\s)?(?:(?P<node>{NODE})|gpus?|cards?)(?![a-z]))?|"
    rf"{_OTHERS}\s(?:sits?|lives?|runs?|squats?|stays?|camps?|is|are)\son\s(?P<s>{NUMBER})\sof\s(?:the|our|its|these|those|them)(?:\s?(?:\d{{1,3}}\s)?(?:(?P<node3>{NODE})|gpus?|cards?))?(?![a-z])|"
    rf"(?:(?P<gone>(?:分|拿|划|调|借|要|拉|拨|抽|搬|撤|卖)[走出]了?|(?:退|还|卖|转|拨|借|交|让|送)(?:还|掉|给|出)?了)|[分拿划调借要拉拨抽])\s?(?P<t>{NUMBER})\s?(?P<unit3>[台张块])(?(gone)|卡?给(?![\ue000\s]*(?:\ue000|大模型|推理)|这个|我们|咱|你))|"
    rf"其中有?\s?(?P<r>{NUMBER})\s?(?P<unit2>[台张块])(?:卡|机器|gpu)?\s?(?:[要得正]|一直|长期|正在)?在?(?:跑|做|用于|用来|给(?!大模型|这个|我们))(?![\ue000\s]*(?:\ue000|大模型|llm|推理|这个|我们))|"
    rf"(?:现在|目前|已经?)?有?\s?(?P<k>{NUMBER})\s?(?P<unit>[台张块])(?:卡|机器|gpu)?\s?(?:[要得正]|一直|长期|正在)?在?(?:跑|做|给(?!大模型|这个|我们))(?![\ue000\s]*(?:\ue000|大模型|llm|推理|这个|我们))[^,;。\n]{{1,30}}[,;。]\s?"
    rf"(?=(?:剩|其余|余下|别的))",
)
GIVEN_AWAY = cues(
    r"gave|given|handed|sent|returned|s[eo]ld|lost|moved|pulled|retired|dismantled|decommissioned|surrendered|ced(?:e|ed)",
    "[退还卖撤搬转拨]",
)
"""What is gone since: it does not come back with the time that tells of it."""
# "drain one node", "give research two GPUs": what right before a count gives it up, by itself or with a direction.
GIVES_UP = Gated(
    r"(?<![a-z])(?:(?:drain|cordon|evict|decommission|lend|loan|surrender|rma|unplug)(?:s|ing|ed)?|(?:retir|vacat|los|sacrific|ced)(?:e|es|ed|ing)|lost|lent|part(?:ing)?\swith|"
    rf"{_HANDS}\s{_ASIDE}|sold|(?:giv|hand|lend|loan|promis|ow)(?:e|es|s|ing)?\s{NOT_FOR_US}[a-z][a-z\s\-]{{1,24}})\s(?:(?:at\sleast|the|our)\s)?$",
)
# "One of the cards … that one isn't ours", "gone for us", "那张不归我": a part of what there is, whoever has it.
NOT_OURS = Gated(
    rf"(?<![a-z])(?:it|that|this|those|these|they|which|ones?|{NODE}|gpus?|cards?)(?:(?:'s|'re|\s(?:is|are))\snot|\s(?:is|are)n't)\s(?:ours|mine|(?:for|available\sto)\s(?:us|me))(?![a-z])|"
    r"(?<![a-z])(?:gone|lost)\s(?:for|to)\s(?:us|me)(?![a-z])|不归我们?|不是(?:给)?我们?的|我们?(?:用不了|不能用|动不[得了])"
)
GIVES = Gated(rf"(?<![a-z]){_HANDS}\s$")
DIRECTION = Gated(rf"\s(?:{_ASIDE}|(?:to|for)\s{NOT_FOR_US}[a-z]+(?!\suse(?![a-z])))(?![a-z])")
# "one node has to be drained", "two GPUs go to research", "one server in repair": what behind a count gives it up.
GIVEN_UP = Gated(
    rf"\s(?:is|are)\s(?:(?:still|already|just|currently)\s)?(?:there\s|meant\s|busy\s|taken\s)?for\s(?:the\s|our\s|an?\s)?{_OTHER_WORK}|"
    rf"\s(?:is|are)\s(?:only|exclusively)\s(?:used\s)?for\s(?:the\s|our\s|an?\s)?{NOT_FOR_US}[a-z]{{3,}}|"
    r",?\s(?:(?:that|which|of\s(?:them|ours))\s)?(?:(?:is|are|was|were|will|be|being|been|gets?|got|has|have|had|to|must|needs?|shall|going|currently|still|now|already|soon|also|due|scheduled|just)\s){0,5}"
    r"(?:drained|cordoned|evicted|decommissioned|retired|vacated|lost|(?:lent|loaned)(?!\s(?:to\s)?(?:us|me)(?![a-z]))|surrendered|dismantled|unplugged|rma'?e?d|missing|gone|dead|down|broken|defective|faulty|"
    rf"(?:handed|given|taken|sent|pulled|powered|shut|turned|switched|moved|returned)\s{_ASIDE}|(?:goes|go|going|went|handed|given|moved?|moves|returned|released|sent|back|promised|owed)\sto\s{NOT_FOR_US}[a-z]+|"
    r"(?:in|under|out\sfor|away\sfor|off\sfor|for|into|due\sfor)\s(?:the\s|a\s)?(?:repairs?|maintenance|rma|(?:firmware|bios|driver|kernel)\s[a-z]+|service(?=\s?(?:[,.;)\n]|$)))|(?:goes|go|going)\s(?:down|away|back|offline|dark)|died|broke(?:\sdown)?|failed|leaves?|left\sus)(?![a-z])",
)
# Beside it, it may not come to pass: no figure to plan with.
MAY_NOT = cues(
    r"if|when(?:ever)?|once|unless|may|might|could|can(?:not|'?t)?|would|never|not|(?:do|does|did|wo|must|should)n'?t|without|until|avoid\w{0,3}|even|rolling|at\sa\stime",
    "如果|假如|要是|万一|可能|不能|不会|不想|每次",
)
# The last of these before a count is the counted hardware.
HARDWARE = Gated(rf"(?P<node>{NODE}|{BOX}++s?|[台])|(?P<gpu>{_GPU}|[张块])")
# Between nodes and what each of them holds: "two nodes with 8 H100 each", "2 boxes (8 GPUs per box)".
NODES_OF = Gated(
    rf"(?P<n>{NUMBER})\s?[x*台个]?\s?(?:[a-z]{{2,12}}\s|{BOX}++s?\s|{CARD}++s?\s)?(?:{NODE}|{BOX}++s?|(?<=台))[\s,.(:]{{0,3}}(?:(?:w/|with|of|having|ha[sv]e?|that\sha[sv]e|each|every|per|holding|每)[\s,]?"
    rf"(?:(?:each|every|one|node|server|machine|box|of\s(?:them|these|those|which))\s|台|机)?(?:with|of|ha[sv]e?|holds?|,|:|是|有)?\s?)?(?:{NUMBER})\s?[x张块卡-]?\s?$",
)
ONE_NODE = Gated(r"node|server|machine|box|host|system|chassis")
# A key of a file: "keep free nodes: 1", "reserved gpus 2".
KEYED = Gated(
    rf"(?<![a-z])(?:keep|kept|leave|reserved?|spare|free|idle|stand[\s\-]?by)(?:\s(?:free|idle|aside|back|unused))?\s"
    rf"(?:(?P<node>{NODE})|gpus?|cards?)\s?[:=]\s?(?P<n>\d{{1,4}})(?![\d.])",
)
# A key with hardware as its value: "Kept back: one DGX, cold standby".
KEPT_KEY = Gated(
    r"(?:^|[\n.;|])\s?(?:(?:kept|held|keep|hold)\s(?:back|free|aside|out)|set\saside|reserved?|(?:(?:cold|hot|warm)[\s-])?(?:stand-?by|spares?)|off\slimits|(?:not|never)\s(?:ours|(?:to\sbe\s)?used)|do\snot\suse|with(?:hold|held)|"
    r"预留|保留|备用|[冷热灾]备)(?:\s(?:hardware|capacity|machines?|for\s[a-z ]{2,20}))?\s?[:=]\s?",
)
OF_WHICH = Gated(r"其中|(?<![a-z])(?:of\swhich|of\sthem|except|but)(?![a-z])")
# Nodes and GPUs by their numbers ("nodes 2 and 5", "GPU 6 and GPU 7"), and words that put them out of use.
NUMBERED = Gated(
    rf"(?<![A-Za-z0-9])(?<!in\s)(?<!on\s)(?<!of\s)(?:(?P<node>{NODE})|gpus?\s?|cards?)\s?#?"
    r"(?P<list>\d{1,3}(?:(?:\s?[,&和与]\s?|\sand\s|\s?-\s?|\s(?:to|through)\s|\s?[到至~]\s?)(?:node\s|gpu\s?)?\d{1,3}(?!\s(?:nodes|gpus)))*)(?![\d.]|\s?x\s?\d|\s?[a-z]?\d|\s?[张块卡])|"
    r"(?P<list2>(?:\d{1,3}\s?号?\s?[和与及,到至~-]\s?){0,8}\d{1,3}\s?号)\s?(?:(?P<node2>机器?|节点|服务器)|显?卡)(?!的?\s?\d)|"
    r"第\s?(?P<list3>\d{1,2}|[一二三四五六七八九十])\s?(?:(?P<node3>台|个?节点|号机)|[张块])",
)
# "research sits on gpu 0 and 1".
SITS_ON = Gated(
    rf"{_OTHERS}\s(?:sits?|lives?|squats?|camps?|runs?|is|are)\son\s(?:(?P<node>{NODE})|gpus?|cards?)\s#?"
    r"(?P<list>\d{1,3}(?:(?:\s?[,&]\s?|\sand\s|\s?-\s?|\s(?:to|through)\s)\d{1,3}(?!\s?(?:x|gpus|nodes)))*)(?![\d.]|\s?x\s?\d|\s?[a-z]?\d)",
)
_LOSING = r"(?:los[st]|losing|failure|outage|crash)"
# "must survive losing any one node", "one server may fail": the rest has to do.
SURVIVES = Gated(
    rf"(?<![a-z])(?:(?:surviv\w{{1,3}}|tolerat\w{{1,3}}|withstand\w{{0,3}})\s(?:the\s)?(?:{_LOSING}\s?(?:of\s)?)?|(?:cop(?:e|ing)\swith|absorb)\s(?:the\s)?{_LOSING}\s?(?:of\s)?)"
    rf"(?:any\s)?(?P<n>an?|any|{NUMBER})\s(?:(?:single|whole|entire|full|complete)\s)?(?:(?P<node>{NODE})|gpus?|cards?)(?![a-z])"
    r"(?:\s(?:down|fail(?:ures?|ing)|loss|outages?|crash(?:es|ing)?|dying|going\s(?:down|away))(?![a-z]))?|"
    rf"(?<![A-Za-z0-9.])(?P<m>any|an?|{NUMBER})\s(?:(?:single|whole|entire)\s)?(?:(?P<node2>{NODE})|gpus?|cards?)\s(?:may|can|might|could)\s(?:fail|die|crash|drop\sout|go\sdown|be\slost)(?![a-z])|"
    r"(?:允许|容忍|能扛住?|挂掉?|坏掉?|宕)\s?(?:任意|任何)?(?:坏|挂|宕机?)?\s?(?P<k>[一二两12])\s?(?P<unit>[台张])(?:机器|节点|卡)?(?:宕机|故障|挂掉?|坏掉?|也)?",
)
# "what three nodes can carry": the remaining ones.
LEFT_CARRY = Gated(
    rf"(?<![A-Za-z0-9.])(?:the\s(?:remaining|other)\s)?(?:{NUMBER})\s(?:{NODE}|gpus?|cards?)\s(?:can|must|have\sto|should|need\sto)\s(?:carry|hold|do|serve|handle|cope|suffice)(?![a-z])|"
    r"(?<![a-z])the\s(?:limits?|slos?|slas?|targets?)\s(?:must|have\sto|has\sto|should|need\sto)\s(?:still\s|all\s)*(?:hold|be\s(?:met|kept))(?![a-z])",
)
_TO = r"(?:\s?-\s?|\s?(?:to|through)\s?|\s?号?\s?[到至~]\s?)"
RANGE = Gated(rf"\d{_TO}\d")
RANGE_OR_ONE = Gated(rf"(?P<a>\d{{1,3}})(?:{_TO}(?:node\s|gpu\s)?(?P<b>\d{{1,3}}))?")
# "reserved gpus: 0", "no GPUs reserved"
_HARDWARE = r"(?:gpus?|cards?|nodes?|servers?)"
_SPARE = r"(?:reserved|kept\s(?:back|free|aside)|(?:(?:hot|cold)\s)?(?:spares?|stand-?by)|unavailable|broken|faulty)"
NONE_KEPT = Gated(
    rf"(?<![a-z]){_SPARE}(?:\s{_HARDWARE})?\s?[:=]\s?(?:0|no|none|zero)(?:\s{_HARDWARE})?(?![\w.]\d?)|"
    rf"(?<![a-z])(?:no|zero|(?<![\d.,])0)\s(?:{_SPARE}\s{_HARDWARE}|{_HARDWARE}\s(?:(?:is|are|to\sbe)\s)?(?:{_SPARE}|taken))(?![a-z])|"
    r"(?:预留|备用|不可用|占用|故障|坏)的?\s?(?:卡|gpu|节点|机器)?数?\s?[:=为]?\s?(?:0\s?[张台个块]?(?![\d.])|无)"
)
_BROKEN = r"down|broken|dead|faulty|flaky|offline|out\sof\s(?:order|service)"
DOWN = cues(
    rf"{_BROKEN}|exclude",
    "坏|掉[卡线]|离线|故障|维修|没修|宕机|不能算|不可用",
)
# "不要用流水线并行": this must not be used, but is no machine.
_THINGS = r"\ue002|[tpdesc]p\d{0,3}(?![a-z])|(?:fp|bf|int)\d|量化|流水线|张量|专家|数据并行|并行|投机|[a-z]{0,2}分离"
_OF_OTHER_THINGS = rf"(?!\s?(?:{_THINGS}))"
# Words that keep something from the plan, wherever in the sentence.
AWAY = cues(
    r"(?:is|are|as|being)\s(?:(?:an?|the|our)\s)?(?:(?:hot|cold|warm)[\s\-])?(?:spares?|stand-?bys?)(?=\s?(?:[,.;)\n]|$|and|but|for|in))|off[\s\-]?limits|off\sthe\stable|hands\soff|count(?:ed|ing)?\s(?:it|them|that|those|this)\sout|on\sloan|(?:lent|loaned|assigned|allocated|dedicated|given|pinned|bound|tied)\s(?:out\s)?to(?!\s(?:us|me)(?![a-z]))|(?:left|leave)(?:\s\w{1,8}){1,3}\salone|leave\s(?:them|those|these)\sout|"
    r"(?:leave|keep|save|hold|reserve|kept|held|saved)\s(?:(?:them|those|these|it|that)\s)?for(?=\s(?:(?:the|our|an?|some)\s)?(?!us(?![a-z])|you(?![a-z])|this|later|now)[a-z])|"
    r"reserv(?:e|ed|ing)(?!\s(?:[a-z0-9.]+\s)?(?:instances?|capacity|pricing)|\s(?:until|till|through|by\sus|for\s(?:us|this|our|the\snext))(?![a-z]))|"
    r"(?:leav(?:e|ing)|keep(?:ing)?|sav(?:e|ing))(?=\s(?:\d{1,3}|one|two|three|four|a)\s(?:gpus?|cards?|nodes?|servers?)\s(?:for|to|out|over)(?![a-z]))|"
    r"set(?:ting)?\saside|kept\saside|keep\saside|(?:hold|keep|set)(?:ing)?\s(?:\w+\s){0,3}back(?!\sto\s)|(?:held|kept)\sback|belongs?\sto|promised\sto|dibs|"
    r"(?:do|does|must|may|can|should|shall|will)(?:n't|not|\snot)\s(?:be\s)?"
    rf"(?:touch(?:ed)?|used?{_OF_OTHER_THINGS}|part\sof|scheduled?|occup(?:y|ied)|allocated?|available|count(?:ed)?)|dont\stouch|squats?|"
    r"(?:must|should|has\sto|have\sto|needs?\sto|shall)\sbe\sleft\s(?:for|to)|"
    r"(?:must|should|has\sto|have\sto|needs?\sto|shall)\s(?:sit|stay|remain|be\s(?:left|kept)|be)\s(?:entirely\s|completely\s)?(?:idle|empty|free|unused|alone|out)|"
    r"stays?\swith|(?:goes|go)\sto(?=\s(?:the\s|our\s|an?\s)?(?:train|other|another|research|staging|dev|re-?rank|embed|ocr|asr|tts|speech|vision|fine-?tun|batch|etl))|"
    r"(?:not|never)\s(?:be\s)?planned\s(?:in|with)|exclud(?:e|ed)|steer\sclear|plan\saround|earmarked|untouched|unavailable|drainable|(?:spare|drain)\s?[:=]?\s?(?=one|two|three|four|\d)|"
    r"(?:hot|cold|warm)[\s\-](?:spares?|stand-?bys?)|(?:(?:is|are|as)\s(?:the|our|an?)\s|as\s)(?:spares?|stand-?bys?|fail-?over|back-?ups?|reserves?)(?!\s(?:parts?|disk|drive))|"
    r"(?:is|are)\s(?:another|an?\sother|the\s\w+|some(?:one|body)\selse)(?:\s(?:team|group|department|project|unit|lab))?'s",
    r"(?:预留|保留)(?!实例)|留给|留出|(?<!给我们)(?:腾|让|抽|匀|借|挪|划|交)[出走给](?![^,;。\n]{0,14}(?:\ue000|大模型|推理|这个|我们|咱|你))(?:(?=[^,;。\n]{0,8}[一二两三四五六七八\d]\s?[台张块卡])|(?<=[台张块卡]..))|空着|(?:不能|别|不要|不准|不许)动|动不[得了]|已经分?给了|分给了?(?!我|咱)|"
    rf"(?:不(?:允许|能|可|要)(?:占用?|使用|用)|别(?:用|算)){_OF_OTHER_THINGS}|"
    r"避开|占着|被.{0,8}占|给[^,;。\n]{1,20}占|(?:(?<=[张台块卡点个都要须得先])给|(?:留|拿|拨|分|借|让)[^,;。\n]{0,8}?给)(?!大模型|推理|这个|我们|咱|你)[^,;。\n]{1,8}用(?!户)|不可用|(?:保持|须|要)空闲|[热冷]备(?!份)|备用|备机|[灾容]备|不参与|归(?!我|咱|一|类|档|纳)[^,;。\n]{1,8}?(?:组|团队|部门?|项目|业务|用)",
)
# A busy machine is always kept away; a free one only where that is demanded: else it is a fact.
BUSY = cues(
    r"busy|taken|occupied|standby|in\suse|drain(?:ed|ing)|cordoned|(?:in|under)\s(?:maintenance|repair)|"
    rf"(?:are|is|were|was)\s(?:(?:still|currently|now)\s)?(?:{_BROKEN}|defective|(?:being\s)?rma'?e?d|gone)",
    "(?:坏|故障|宕机|掉线|下线|报修|维修|送修|返修|退役|退[回还]|[在要去需]维护|撤[掉走])(?!率)",
)
FREE = cues(
    r"(?:free|idle|unused|empty|alone|unallocated|spare)(?!\s(?:tier|users?|plan|trial))",
    "(?<!预)留|空(?!闲)",
)
DEMAND = cues(
    r"must|should|shall|has\sto|have\sto|needs?|stays?|remains?|keep|kept|leave|leaving|left(?!\sover)|reserv(?:e|ed|ing)|"
    r"set\saside|wants?|required?|requires|budget|no\sless\sthan|at\sleast|headroom|with|taken|occupied|hands\soff",
    "留|空出|必须|至少|占",
)
