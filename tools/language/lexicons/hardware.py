"""The words and shapes of counts of accelerators (used by `hardware/words.py` alone).

`LEXICON` gives each word a one-letter symbol; the shapes below are patterns over the string of symbols.
"""

from __future__ import annotations

import re

from ...catalog.hardware import system_sizes
from ..patterns.gated import Gated
from ..patterns.number_words import AT_MOST, ENGLISH_NUMBER
from ..patterns.page import BOX, CARD, RACK

_SYSTEMS = {name.lower(): size for name, size in system_sizes().items()}
_SYSTEM = "|".join(map(re.escape, _SYSTEMS))
# An instance over several nodes is one of the model.
_NODE_NOUN = (
    r"(?:node|machine|server|srv|box|host|tray|vm|"
    r"instance(?!s?\s(?:over|across|spanning|per\s|of\s(?:it|the\smodel)|that\sspans?|with\s(?:tp|ep|pp)|at\stp)))"
)
_MAKER = r"(?:dell|hpe?|supermicro|lenovo|cisco|gigabyte|inspur|poweredge|proliant|thinksystem)"
# Symbols in the order in which they are tried; words that carry no meaning here are skipped ("").
LEXICON: tuple[tuple[str, str], ...] = (
    ("C", rf"{CARD}+(?:'?s(?![a-z]))?"),
    ("B", rf"{BOX}+(?:'?s(?![a-z]))?"),
    ("R", rf"{RACK}+(?:'?s(?![a-z]))?(?:\s?racks?(?![a-z])|\s?机柜)?"),
    ("", rf"个(?=\s?[{CARD}{BOX}{RACK}])"),
    # A server by its maker and number: "Dell XE9680", "HPE ProLiant DL380a"; by its maker alone: "one Supermicro with".
    (
        "S",
        rf"{_MAKER}\s(?:(?:emc|poweredge|proliant|thinksystem)\s)?[a-z]{{1,4}}-?\d{{3,5}}[a-z]{{0,4}}(?:\sservers?)?(?![a-z])|"
        rf"{_MAKER}s?(?=\s(?:with|holding|having|containing|carrying)\s)",
    ),
    ("l", r"\n{3}|\n(?=[^\n:=]{1,40}[:=])"),
    (
        "",
        r"(?!\n{3})\s|(?:type|count(?!\s?[:=])|nvidia|amd|intel|google|brand[\s\-]new|available|such|spare|new|lone|sole|solitary|units?|pieces?|pcs\.?|nos\.?|equal|identical|existing|used|old|second[\s\-]hand|idle|free|owned|leased|rented|dedicated|physical|additional|powerful|big|beefy|shiny|whole|full|entire|separate|different|local|on[\s\-]prem|measly|(?:prefill|decode)(?=\s(?:nodes?|gpus?|cards?|servers?|machines?|instances?))|aws|azure|gcp|dell|hpe|supermicro|cloud|rackmount|bare[\s\-]metal|racks?(?=\sof\s)|[a-z]{1,3}\d[a-z]{0,3}\.\d{0,3}x?large(?:-like)?|[a-z]{1,2}\d[a-z]{0,2}(?=\s(?:instances?|nodes?|machines?|servers?|boxes)))(?![a-z])|(?:型号|数(?!量))(?=\s?[::=\d为])|"
        r"个(?=\s?(?:nodes?|servers?|hosts?|gpus?)(?![a-z]))",
    ),
    (
        "n",
        r"(?:(?<![^\s(=:,])-)?\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,6})?(?:k(?=\s?(?:gpus?|cards?|[张块卡])))?(?![a-wyz0-9])(?!\s[gt]i?b(?![a-z]))",
    ),
    ("n", rf"{ENGLISH_NUMBER}(?![a-z])" + r"|[一二两三四五六七八九十百双单零]{1,5}(?=\s?[台张块颗片个卡机节])"),
    (
        "e",
        rf"(?:(?<=gpu\s)|(?<=gpus\s)|(?<=cards\s))(?:an?|in|inside|on)\s{_NODE_NOUN}(?=\s?[:=])|(?:(?<=gpu\s)|(?<=gpus\s)|(?<=cards\s))an?\s{_NODE_NOUN}(?![a-z])|"
        r"(?:in\s|on\s)?(?:each|apiece|every)(?:\s(?:of\s(?:them|which)|one))?(?![a-z])(?!\s(?:user|request|token|stream|session|gpu|card|of\s\d[\d,.]*k?\s(?:input|prompt|token|output)))"
        rf"(?:\s{_NODE_NOUN}(?![a-z]))?|(?:per|in\s(?:each|every|one|a)|on\s(?:each|every))\s{_NODE_NOUN}(?![a-z])|"
        rf"/\s?{_NODE_NOUN}(?![a-z])|/\s?(?:节点|台|机(?:器)?|服务器)|(?:gpus?|cards?|accelerators?)[\s_\-]?per[\s_\-]?{_NODE_NOUN}(?![a-z])|"
        r"每\s?(?:台|个)?\s?(?:节点|机器|服务器|机|(?:计算)?托盘)|每台|各|"
        r"每个?(?=\s?(?:\d{1,3}|[一二两三四五六七八九十])\s?[张块])",
    ),
    (
        "c",
        r"(?:quantity|qty|count|num(?:ber)?(?=\s?[:=])|(?:total\s)?(?:number|no\.)\sof(?=\s(?:gpus?|cards?|accelerators?|nodes?|servers?|machines?)(?![a-z])))(?![a-z])|数量|总数|个数|张数|卡数",
    ),
    ("p", r"(?:per|for\seach|/)\s?(?:replica|copy|stage|shard|group|engine)(?![a-z])|每个?副本"),
    ("t", r"(?:in\stotal|total|altogether|overall|in\sall)(?![a-z])|总共|一共|共计|合计|总计|共"),
    (
        "S",
        r"(?:compute\s|(?<!-)gpu\s|physical\s|bare[\s\-]metal\s)?"
        rf"(?:{_NODE_NOUN}(?:e?s)?|supermicros|workstations(?!\seach(?!\swith))|(?:desktop\s|gaming\s|tower\s)?pcs|{_SYSTEM})(?![a-z])|"
        r"台\s?(?:机器|服务器|主机|机|节点)?|个?\s?(?:节点|服务器|机器(?!人)|(?:计算)?托盘)|机(?![架柜器])",
    ),
    (
        "q",
        r"[张块个]\s?(?:\d{2,4}G|\ue002+)?\s?(?:(?:RoCE|IB|InfiniBand|以太|ConnectX-?\d|CX-?\d)\s?)?(?:网卡|网口|口(?![\u4e00-\u9fff])|硬盘)",
    ),  # what else a node has
    (
        "g",
        r"(?:hw|hardware)(?=\s(?:count|quantity|qty))|(?:gpus?|cards?|accelerators?|chips?|(?<=\d-)way)(?![a-z]|\s(?:memory|mem|util|vram|ram|hours?|hrs?)(?![a-z]))|(?:张|块|颗|片)\s?(?:显卡|加速卡|卡|gpus?(?![a-z]))?|"
        r"个\s?(?:gpus?(?![a-z])|卡)|显卡|卡",
    ),
    ("m", r"of\s(?:them|those|these)(?![a-z])"),
    ("x", r"(?!(?<=[a-z]\s)(?-i:X)\d)[x*](?![a-z])|times(?![a-z])"),  # "Foobar X200" is a name
    ("o", r"w/"),
    (
        "o",
        r"(?:of|with|having|has|have|containing|holding|holds?|contains?|carrying|which|at|full\sof|equipped|fitted|populated|filled|featuring|sporting|using)(?![a-z])"
        r"|à|的|配备|配有|配置?|带有|带|有|装|上|放|插|分别|是",
    ),
    ("a", r"an?(?![a-z])"),
    ("d", r"(?:the|our|my|your|their|this|that|these|those)(?![a-z])"),
    ("i", r"(?:for|in|on|to|and|or|is|are|can|please|pls|plz|by|from|over|across)(?![a-z])"),
    ("(", r"[(\[]"),
    (")", r"[)\]]"),
    (",", r"[,;|]"),
    ("-", r"-"),
    (":", r"[:=]"),
    (".", r"[A-Za-z]+(?:\d[A-Za-z0-9.]{0,20})?|.|\n"),
)
LEXER = Gated("|".join(f"(?P<t{i}>{pattern})" for i, (_, pattern) in enumerate(LEXICON)), re.IGNORECASE | re.DOTALL)
USUAL_NODE = max(_SYSTEMS.values())
HARDWARE_UNITS = frozenset({"count", "gpus", "nodes"})
_GPU_WORDS = r"(?:gpus?|cards?|accelerators?|chips?|devices|hardware|[\ue001\ue004]+'?s?)"
OPEN = Gated(
    rf"(?:no|without\s(?:a|any)|not\sany)\s(?:hard\s)?(?:limits?|caps?|constraints?|restrictions?)\s(?:on|to|for)\s(?:the\s)?"
    rf"(?:number\sof\s|how\smany\s|count\sof\s|available\s)?{_GPU_WORDS}(?:\scount)?|unlimited\s(?:number\sof\s)?{_GPU_WORDS}|"
    rf"as\smany\s(?:{_GPU_WORDS}\s)?as\s(?:needed|necessary|required|you\s(?:need|want|like)|it\stakes)|any\snumber\sof\s{_GPU_WORDS}|"
    rf"(?:fewest|smallest|lowest|minimum)\snumber\sthat\s(?:does|do|will|works?|holds?)|(?:hand|give|send)\sback\sas\smany\s{_GPU_WORDS}|"
    rf"how\s(?:many|few)\s{_GPU_WORDS}|how\sfew\sof\s(?:the|these|those|them|our|my|your)\s?|{_GPU_WORDS}(?:\scount)?\s(?:is\s|are\s)?(?:unlimited|not\slimited|unconstrained|unbounded)|"
    rf"(?:fewest|minimum|minimal|min|smallest|least|lowest)(?:\snumber\sof|\samount\sof|\scount\sof)?\s(?:possible\s)?{_GPU_WORDS}(?:\scount)?|"
    rf"as\sfew\s(?:of\s(?:the|these|those|them|our)\s?)?(?:(?:\d{{1,4}}|{ENGLISH_NUMBER})\s?)?(?:{_GPU_WORDS}|nodes|servers|machines|box(?:es)?|hosts|instances)?\s?as\s(?:possible|(?:you|we|it)\s(?:possibly\s)?can|(?:will|would|can)\s[a-z]{{2,10}}|do(?:es)?|needed|necessary)|"
    rf"(?:the\s)?fewer(?:\s{_GPU_WORDS})?,?\s(?:(?:is|are|would\sbe)\s)?(?:the\s)?(?:better|nicer)|as\sfew\s{_GPU_WORDS}|{_GPU_WORDS}(?:\scount)?\s?(?::|\s(?:(?:is|are|come|available)\s)?(?:available\s)?in)\s?(?:no\s(?:fixed\s|hard\s|upper\s)?limit|any\snumber|unlimited|as\smany\sas\s\w+|as\sneeded|open|tbd)|"
    r"(?:卡数?|显卡|gpus?|加速卡|机器|服务器|[\ue001]+)\s?(?:的?数量?|个数)?\s?[:,]?\s?(?:数量)?(?:不限制?|没有限制|无限制?|不受限制?|任意|随意|不做限制)|"
    r"不限(?:制|定)?\s?(?:卡|显卡|gpu|机器)(?:的?数量?)?|(?:需要|至少要|要|用)(?:多少|几)(?:张|块|台|个)?\s?(?:卡|gpu|机器|显卡|[\ue001]+)?|"
    r"(?:最少|至少需要|最少需要|最少要)(?:多少|几)(?:张|块)?\s?(?:卡|gpu|显卡|[\ue001]+)?|尽(?:量|可能)少的?\s?(?:卡|gpu|显卡|[\ue001]+)|"
    r"最少的?\s?(?:卡|gpu|显卡|[\ue001]+)|(?:卡|gpu)\s?(?:数量?)?\s?(?:用[得的])?(?:越少越好|尽量少|最少)|"
    r"(?:尽量|尽可能|能)少(?:用|占)(?:几[张块台])?\s?(?:卡|gpu|显卡|机器|[\ue001]+)",
)
FEWEST_WORDS = Gated(r"few|back|minim|min(?![a-z])|least|small|lowest|how|enough|need|需要|多少|几|少")
# "How many servers?", where the size of each is stated: "servers with 8 H200".
NODES_ASKED = Gated(
    r"(?<![a-z])(?:(?:fewest|smallest|lowest|minimum|minimal|least)\s(?:possible\s)?(?:number\sof\s|amount\sof\s|count\sof\s)?(?:servers?|nodes?|machines?|box(?:es)?|hosts?|instances?|vms?)(?![a-z])|(?:smallest|lowest|minimum|fewest)\snumber\sof\s(?:those|these|such|the)\s(?:cards|gpus|machines|servers|nodes)(?![a-z]))|"
    r"(?<![a-z])how\s(?:many|few)\s(?:of\s(?:them|these|those|the|such)\s)?(?:servers?|nodes?|machines?|box(?:es)?|hosts?)(?![a-z])|(?:多少|几)台(?:机器|服务器|节点)?",
)
_COUNTED_THINGS = rf"(?:{_GPU_WORDS}|{_NODE_NOUN}(?:e?s)?)"
# "Are 2 nodes enough, or do I need all three?": a number that is asked about, beside the actual one.
ENOUGH_ASKED = Gated(
    rf"(?<![a-z])(?:is|are|will|would|could|can|do|does)\s(?:(?:the|just|only|already)\s)?(?:\d{{1,4}}|{ENGLISH_NUMBER})\s(?:of\sthem|{_COUNTED_THINGS})\s(?:be\s)?"
    r"(?:enough|sufficient|suffice|do|work|hold|carry\sit|make\sit|ok(?:ay)?)(?![a-z])(?=[^?.;\n]{0,80}\?)|"
    rf"(?<![a-z])(?:do|would)\s(?:i|we)\s(?:really\s)?need\sall\s(?:\d{{1,4}}|{ENGLISH_NUMBER})(?![a-z])(?=[^?.;\n]{{0,60}}\?)",
)
# "more than two GPUs in a group", "never split one copy over more than 2 cards", "bridges join two cards each": no
# count of the hardware.
_MOST = r"(?:no\smore\sthan|more\sthan|at\smost|up\sto|over|beyond|max(?:imum)?(?:\sof)?)"
_COPY = r"(?:group|copy|instance|replica|vm|pod|container|engine)"
_GROUP = (
    r"(?:bridged?s?|pairs?|pairwise|pcie\s(?:switch(?:es)?|roots?)|numa\s(?:nodes?|domains?|zones?)|(?:cpu\s)?sockets?)"
)
OF_A_GROUP = Gated(
    rf"(?<![a-z]){_MOST}\s(?:\d{{1,3}}|{ENGLISH_NUMBER})\s{_GPU_WORDS}\s(?:in\sa|per|to\sa|(?:for|in|on|to)\s(?:each|every|one|any))\s(?:tp\s)?{_COPY}(?![a-z])|"
    rf"(?<![a-z])(?:an?|one|no|any|each|every|the|single)\s(?:single\s|model\s)?{_COPY}(?![a-z])[^.,;:\d\n]{{0,36}}?\s{_MOST}\s(?:\d{{1,3}}|{ENGLISH_NUMBER})\s{_GPU_WORDS}(?![a-z])|"
    r"(?:每个?|[单同]一?个?|一个)(?:副本|实例)[^,;。\n\d]{0,10}?(?:超过|大于|最多|至多|上限)[^,;。\n\d]{0,4}?(?:\d{1,3}|[一二两三四五六七八九十]{1,3})\s?[张块]?卡|"
    rf"(?<![a-z]){_GROUP}\s[^.,;:\n\d]{{0,30}}?(?<![\w.])(?:\d{{1,2}}|{ENGLISH_NUMBER})\s{_GPU_WORDS}(?:\s(?:each|apiece))(?![a-z])|"
    rf"(?<![a-z])(?:each|every|per|a)\s{_GROUP}\s(?:has|holds|with|joins|connects|of)\s(?:\d{{1,2}}|{ENGLISH_NUMBER})\s{_GPU_WORDS}|"
    rf"(?<![\w.])(?:\d{{1,2}}|{ENGLISH_NUMBER})\s{_GPU_WORDS}\s(?:(?:each|apiece)\s[^.,;:()\n\d]{{0,24}}?|(?:per|on\s(?:each|every|a|one)|to\s(?:an?|each))\s){_GROUP}(?![a-z])|"
    r"每\s?[两二四\d]\s?[张块]卡?[^,;。\n\d]{0,8}(?:桥|nvlink|pcie\s?switch|交换芯片)|每个?\s?(?:numa|cpu|pcie\s?switch)[^,;。\n\d]{0,8}[两二四\d]\s?[张块]卡?",
)
# "4 more of the same … plan for all of them", "8 more … on all 16": GPUs that are added to those counted.
FURTHER = Gated(
    rf"(?<![A-Za-z0-9.])(?:another\s|a\sfurther\s)?(?P<n>\d{{1,4}}|{ENGLISH_NUMBER})\s(?:more|further|additional|extra)(?:\s(?:of\s(?:the\ssame|those|them|these)|{_GPU_WORDS}|identical\sones?))?(?=\s?(?:[,.;:!?)\n]|$)|\s(?:and|to|for|on|in|from|so|which|that|arrive|come|next|of)(?![a-z]))"
    rf"|(?<![a-z])another\s(?P<m>\d{{1,4}}|{ENGLISH_NUMBER})(?=\s?(?:of\s(?:the\ssame|those|them|these)|{_GPU_WORDS}|[,.;)\n]))|(?:再|又|另外?)(?:加|买|来|添|有)\s?(?P<k>\d{{1,4}}|[一二两三四五六七八九十]{{1,3}})\s?[张块]卡?",
)
ALL_OF_THEM = Gated(
    rf"(?<![a-z])(?:all(?:\sof\sthem|\stogether|\s(?:the\s)?(?P<n>\d{{1,4}}|{ENGLISH_NUMBER}))|both\slots|together|combined|in\stotal)(?![a-z])|一共|总共|全部",
)
COUNTED = Gated(rf"(?<![\w.])(?:\d{{1,4}}|{ENGLISH_NUMBER})\s?x?\s?{_COUNTED_THINGS}")
# Right before a number of GPUs: it is the most that may be used.
MOST_BEFORE = Gated(rf"{AT_MOST}\W{{0,3}}[用批给买拿要]?\s?$")
BEFORE_MOST = 16
IS_LOST = Gated(
    r"\s?(?:(?:fails?|dies?|breaks?|crashes|crash|goes\s(?:down|away)|(?:is|are|gets?)\s(?:lost|down|gone|broken)|drops?\sout|burns?\sout)(?![a-z])|坏|挂[了掉]|故障|宕)"
)
"""Behind a count: the hardware that may be lost."""
IN_A_NODE = Gated(
    rf"(?<![a-z]){_NODE_NOUN}(?:e?s)?\s(?:(?:each|that)\s)?(?:with|of|holding|having|have|hold)\s$|(?:每|单)台(?:机器)?\s?(?:有|是)?\s?$",
)
# "four L40S in one server": all that there is, where nothing else counts.
IN_ONE_NODE = Gated(rf"(?<![a-z])(?:in|inside|on)\s(?:one|a\ssingle|the\ssame)\s{_NODE_NOUN}$")
OF_MACHINE = Gated(
    r"(?:机型|(?:服务器|机器|节点)(?:型号|配置|规格)|(?<![a-z])(?:node|server|machine|box|host)[\s_](?:type|model|config(?:uration)?|specs?))\s?[:=]\s?$",
)
_SYSTEM_WORD = Gated(_SYSTEM)
PHASE = Gated(r"prefill|decod|预填充|解码")

# "I've got six of them": read only where nothing else counts.
OF_THEM = re.compile(r"(?P<n>n)m")
OWNING = Gated(
    r"(?:have|'ve|got|own|bought|rent|use|using|are|get|gave\sus|with|on|across|over|up\sto|at\s(?:the\s)?most|no\smore\sthan|max(?:imum)?(?:\sof)?|quota(?:\s(?:is|of|for|allows))?)(?:\s(?:only|just|about|exactly))?\s?$",
)
# "How few H100 do? We own 8.": the hardware, where nothing else counts it.
OWNED = Gated(
    rf"(?<![a-z])(?:we|i)(?:\s(?:only|just|already))?\s?(?:'ve\sgot|'ve|own|have(?:\sgot)?|got|bought|rent)\s(?:only\s|just\s)?"
    rf"(?P<n>\d{{1,4}}|{ENGLISH_NUMBER})(?=\s?(?:[.,;!)\n]|$|but\s|and\s))",
)
# "half of a DGX H100", "half of our 16 H100s": the share of a node or of a count.
SHARE_OF = re.compile(r"(?P<q>q)o?d?(?P<n>[na])?S?(?P<what>[BC])g?")
# "my 4090", "this L40S", "我那张4090": one card, unless more than a card follows ("this H100 plan").
ONE_CARD = Gated(
    rf"(?:(?<![a-z])(?:my|this|that|his|her)\s(?:(?:own|old|new|trusty|little|home|gaming|personal|spare|lone|only|humble|nvidia|amd)\s){{0,3}}"
    rf"|我(?:自己|个人|家里?|手上|手头)?(?:的|有)?(?:[这那一](?:张|块))?\s?|[这那](?:张|块)\s?)(?P<card>{CARD}++)(?!'?s(?![a-z]))"
    r"(?:\s(?:card|gpu))?(?=\s?(?:$|[^A-Za-z0-9*集服机节们几\s]|(?:at|in|on|for|to|and|or|with|without|while|but|can|could|will|would|should|must|"
    r"that|which|has|have|is|as|please|serve|serves|run|runs|handle|handles|hold|holds|fit|fits|by|from|using|so|since|only|alone|i|we|"
    r"rig|pc|desktop|workstation|laptop)(?![a-z])))"
    rf"|(?<![a-z])the\s(?P<card2>{CARD}++)(?!'?s(?![a-z]))(?:\s(?:card|gpu))?\s(?:(?:that\s)?(?:i|we)(?:'ve\sgot|\s(?:have|own|got|bought))|"
    r"(?:in|inside)\s(?:my|our|the|this|his|her)\s(?:[a-z]{1,10}\s)?(?:desktop|workstation|pc|laptop|rig|computer|tower))(?![a-z])",
)
JUST_ONE = Gated(
    rf"{CARD}(?:\s(?:card|gpu))?[\s,;:(\-]{{1,3}}(?P<one>(?:(?:we|i)\s(?:have\s)?)?(?:just|only)\s(?:have\s)?(?:(?:the|a)\s)?(?:single\s)?one(?:\s(?:of\s(?:them|those|these)|card|gpu))?(?=\s?(?:[.,;:)\n]|$))|"
    r"[就只]有?这?一[张块]卡?(?=\s?(?:[,;:。)\n]|$)))"
)
"""Behind a card's name: "an L4, just one"."""
# "2 GPUs for prefill and 2 for decode", "prefill on 2 GPUs and decode on the other 2": a split of the hardware.
_PHASE_WORD = r"(?:the\s)?(?:prefill|decode)(?:ing)?"
SPLIT = Gated(
    rf"(?<![\d.])\d{{1,4}}\s?(?:gpus?|cards?|of\sthem)?\s(?:for|to|on)\s{_PHASE_WORD}\s?(?:,|and|&)\s?(?:and\s)?(?:the\s(?:other|remaining)\s)?"
    rf"\d{{1,4}}\s?(?:gpus?|cards?)?\s(?:for|to|on)\s{_PHASE_WORD}(?![a-z])|"
    rf"{_PHASE_WORD}\s(?:on|gets?|takes?|with)\s\d{{1,4}}\s?(?:gpus?|cards?)?\s?(?:,|and|&)\s?(?:and\s)?{_PHASE_WORD}\s(?:on|gets?|takes?|with)\s"
    r"(?:the\s(?:other|remaining)\s)?\d{1,4}(?:\s?(?:gpus?|cards?))?(?![a-z\d])",
)
PRICED = Gated(r"\s(?:is|costs?|rents?|goes|runs)\s(?:us\s)?(?:for\s|at\s|about\s|around\s)?(?:[$€£]|\d)")
EACH_REPLICA = Gated(
    r"(?:each|every|per)\s(?:copy|replica|instance)(?:\s(?:on|with|gets|has|uses|takes|needs))?\s$|每个?(?:副本|实例)(?:用|占|需要)?\s?$",
)
# "Slurm lets our team take 3 nodes", "we may use 4 GPUs": the usable part of all hardware.
OUR_PART = Gated(
    rf"(?<![a-z])(?:(?:lets?|allows?|gives?|grants?|leaves?)\s(?:us|me|our\steam)(?:\s(?:to\s)?(?:take|use|have|with))?|"
    rf"(?:we|i|our\steam)(?:\s(?:can|may|could|get\sto|(?:am|are|is)\sallowed\sto)|'(?:m|re)\s(?:only\s)?allowed\sto)\s(?:only\s|just\s)?(?:take|use|have|get|touch))\s(?:only\s|just\s|up\sto\s|at\smost\s)?"
    rf"(?P<n>\d{{1,6}}|{ENGLISH_NUMBER})\s(?:(?P<node>nodes?|servers?|machines?|box(?:es)?|hosts?)|gpus?|cards?)(?![a-z])",
)
# "four of those nodes", "use two of these machines": the usable part of the hardware named before.
OF_THOSE = Gated(
    rf"(?<![A-Za-z0-9.])(?P<n>\d{{1,6}}|{ENGLISH_NUMBER})\sof\s(?:those|these)\s(?:\w{{2,12}}\s)?(?:(?P<node>{_NODE_NOUN}(?:e?s)?)|gpus?|cards?)(?![a-z])"
    # Words behind them may say that they are not available.
    r"(?!\s(?:that\s|which\s)?(?:are|is|were|was|have|has|had|must|will|stays?|belongs?|goes|go|should|need)(?![a-z])(?!\s(?:ours|free|available|usable|idle|spare)))",
)
# "12 L40S, but only 8 are available": the hardware to plan with.
AVAILABLE = Gated(
    rf"(?<![A-Za-z0-9.])(?<!\d\sto\s)(?<!\d-)(?<!every\s)(?<!each\s)(?<!any\s)(?P<n>\d{{1,6}}|{ENGLISH_NUMBER})\s(?:of\s(?:them|those|these)\s)?(?:gpus?\s|cards?\s|[\ue001]{{1,30}}s?\s)?"
    r"(?:are|is|remain)\s(?:still\s|now\s|actually\s|really\s|currently\s)?"
    r"(?:available|free|left(?:\sover)?|usable|unused|spare|idle|ours)(?![a-z])"
    rf"|(?:(?:may|can|could|allowed\sto)\s(?:only\s|just\s)?(?:touch|use|take)|use)\s(?:only\s|just\s|up\sto\s|at\smost\s)?(?P<n4>\d{{1,6}}|{ENGLISH_NUMBER})\sof\s"
    r"(?:its|them|those|these|the)(?:\s(?:gpus?|cards?))?(?![a-z]|\s?\d)"
    rf"|(?:only\s)?(?:allowed|given|ours?(?:\sis)?)\s(?:only\s)?(?:a\s)?half\sof\s(?:it|them),?\s(?:i\.?e\.?,?\s)?(?P<n6>\d{{1,6}})\s(?:gpus?|cards?)"
    rf"|(?<![a-z])the\s(?:remaining|other)\s(?P<n5>\d{{1,6}}|{ENGLISH_NUMBER})(?:\s(?:gpus?|cards?))?(?=\s?[,.;(\n]|$|\sof\s(?:the|our|its|these|those)\s)"
    rf"|(?:(?:may|can|could|allowed\sto)\s(?:only\s|just\s)?(?:touch|use|take|have)|(?:use|take)(?:\sonly)?|only)\sthe\s(?:first|last|upper|lower)\s(?P<n7>\d{{1,6}}|{ENGLISH_NUMBER})"
    rf"(?:\s(?:gpus?|cards?))?(?=\s?[,.;:()\n]|$)|(?<![a-z])(?:we|i|you)(?:'ve|\sonly|\sjust|\sactually)?\s(?:have|got|get|own)\s(?:only\s|just\s)?"
    rf"(?P<n9>\d{{1,6}}|{ENGLISH_NUMBER})\sof\sthe\s(?:\d{{1,6}}|{ENGLISH_NUMBER})(?![\w.])(?!\s(?:nodes?|servers?|machines?|box(?:es)?|racks?))"
    rf"|(?:(?<![a-z])(?:so|leav(?:es|ing)|that's|then)\s|,\s)(?:only\s|just\s)?(?P<n10>\d{{1,6}}|{ENGLISH_NUMBER})\s(?:gpus?\s|cards?\s|left\s){{0,2}}for\s(?:us(?![a-z])|(?=(?:the\s)?[\ue000]))"
    r"|(?:只能|只可|还能|能)用\s?(?P<n11>\d{1,6}|[一二两三四五六七八九十]{1,3})\s?[张块]卡?(?!\S{0,2}[台机])"
    r"|(?:剩|余)下?的?\s?(?P<n12>\d{1,6}|[一二两三四五六七八九十]{1,3})\s?[张块]卡?\s?(?:可用|能用|归我们|给我们)|(?:只能|只|可以?)[用动拿]\s?[前后]\s?(?P<n8>\d{1,6}|[一二两三四五六七八九十]{1,3})\s?[张块卡]"
    r"|(?:可用|能用|空闲|剩下?|实际可用)(?:的)?\s?(?:只有|就|有|是)?\s?(?P<n2>\d{1,6}|[一二两三四五六七八九十]{1,3})\s?[张块卡]"
    r"|只有\s?(?P<n3>\d{1,6}|[一二两三四五六七八九十]{1,3})\s?[张块卡]\s?(?:可用|能用|空闲)",
)

# Before "use two of them": the planner is told to, and nobody else does it.
TOLD_TO = Gated(
    r"(?:^|[,;:.(!?\n-]|(?<![a-z])(?:we|i|you|us|can|may|could|should|must|will|would|to|only|just|please|let's|then|and|so|but|now|or))\s?$",
)
# "GPUs 0 to 3 are ours", "卡0-3归我们": the usable part by its numbers.
OUR_NUMBERED = Gated(
    r"(?:(?<![a-z])(?:gpus?|cards?|devices?)\s?|卡\s?|(?<=[\s,;:。\n])(?=[^\s,;。]{3,10}卡))#?(?P<list>\d{1,3}(?:\s?-\s?|\s?(?:to|through|and|&|,)\s?|\s?[到至~和与,]\s?)\d{1,3})\s?"
    r"(?:(?:are|belong\sto|is)\s(?:only\s|still\s)?(?:ours|us|free|available|usable|for\sus)(?![a-z])|(?:号卡)?(?:归我们|给我们|是我们的|可用|能用|空闲))",
)
# "must not span more than two machines": no count of the hardware.
SPREAD = Gated(
    rf"(?<![a-z])(?:span(?:ning|s)?|across|over|cross(?:ing)?|beyond|between)\s(?:no\s)?more\sthan\s(?:\d{{1,4}}|{ENGLISH_NUMBER})\s{_NODE_NOUN}(?:e?s)?(?![a-z])|"
    rf"(?<![a-z])(?:replica|copy|instance|group)s?\s(?:(?:may|can|must|should)\s)?(?:[a-z]+\s){{0,2}}?(?:on|over|across|use|take|span|occupy)\s(?:at\smost|up\sto|no\smore\sthan|max(?:imum)?)\s(?:\d{{1,4}}|{ENGLISH_NUMBER})\s{_NODE_NOUN}(?:e?s)?(?![a-z])|"
    r"(?:每个?|一个)(?:副本|实例)[^,;。\n]{0,4}(?:最多|至多|不超过|不能超过)[^,;。\n\d]{0,4}(?:\d{1,3}|[一二两三四五六七八九十])\s?[台个](?:机器|节点|服务器)?",
)
# Shapes over the symbols. Groups: n nodes, p accelerators per node, g accelerators in all.
SOME_OF = re.compile(r"(?P<n>n)[xg]?od?n[-x]?C?-?(?:g|(?P<node>S)|(?<=C))")
TIMES_NODES = re.compile(r"(?P<p>n)(?P<noun>-?g?[CB]?g?)x(?P<n>n)-?(?P<unit>S)(?![gSn])")
GRID = Gated(r"(?P<n>n)S?x\(?(?P<p>n)(?!q|xn|:[nq])x?-?g?o?[CB]?g?S?\)?|(?P<p2>n)x?-?g?o?Cx(?P<n2>n)S", flags=0)
NODES_OF = Gated(
    r"(?P<n>[na])-?[CB]?-?S[CB]?(?P<join>[,(:]*[eoad]*)(?P<t1>t?)o?(?P<p>n)-?x?(?P<noun>g?o?[CB]?g?)(?P<e>e?)(?P<t2>(?:t(?!:?n))?)",
    flags=0,
)
PER_NODE = re.compile(r"(?P<p>n)-?x?g?o?[CB]?g?e|e:?[oi]{0,2}(?P<p2>n)(?!-?x?q)-?x?g?o?[CB]?g?|e:?o?C:?x(?P<p3>n)(?!q)")
SIZED = Gated(r"(?P<n>[na]?)-?g?C?(?P<p>n)(?P<bind>[-x]?g?[-x]?)(?P<card>C?)(?P<bind2>-?g?)o?S(?:(?P<n2>n)S)?", flags=0)
BOXES = re.compile(r"(?:(?P<n>[na])S?g?x?o?B|S?g?x?o?B(?:[x:](?P<n2>n)(?![.iq])|[,(-]?(?P<n3>n)m)?)S?(?!g)")
RACKS = re.compile(r"(?P<n>[na]?)x?o?R(?!g)")
# "16 GPUs of a GB200 NVL72", "two trays in one NVL72 rack": a part of the rack that is named.
PART_OF_RACK = re.compile(r"(?P<n>n)-?(?:g|(?P<node>S))[oi,(]{1,2}[and]?R")
CARD_NODES = re.compile(r"(?P<n>[nad])-?S?x?o?C-?S")
# A count of GPUs, or of nodes where the shape holds an S.
COUNTS = Gated(
    r"(?P<g>n)[-xogd]{0,4}[CBR]-?g?|C[gx]?x(?P<g2>n)g?|C\(x?(?P<g3>n)g?(?:o\.?)?\)|C[:,]?(?P<g4>n)-?g|C:(?P<g5>n)(?!q)|C[,(-]?(?P<g11>n)m|"
    r"(?P<one>a)C(?!S|\([^)]{0,40}[nS])g?|(?P<g6>n)-?g(?!p|:n[^Sgx-]|:n$|:[CBR])|(?P<g7>n)-?S(?!:n[^Sgx-]|:n$)|g:(?P<g8>n)(?![xgSq.])|S:(?P<g9>n)(?![xgSq.])|"
    r"(?:[Sg]|(?<![.i]))c:?(?P<g10>n)(?![xgSq.])|C[,l]?c:(?P<g13>n)(?![xgSq])|gt:(?P<g14>n)(?![xgSq])|c[Sg]:?(?P<g12>n)(?![xgSq.])",
    flags=0,
)


def system_size(words: str) -> int | None:
    """GPUs of the system that `words` name as a node ("2 DGX"); `None` where they name none."""
    match = _SYSTEM_WORD.search(words)
    return None if match is None else _SYSTEMS[match.group().lower()]
