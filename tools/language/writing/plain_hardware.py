"""Colloquial wordings about cards and machines: "3 nodes 8xH100", "8-way hosts", "half a rack"."""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.quantities import read_number
from ..patterns.rewriting import Rewriting

# "Is one H100 enough for …, or should I use both cards?"
_ENOUGH_OR_MORE = Gated(
    r"(?<![a-z])(?:is|are|will|would)\s(?:one|an?\ssingle|1|two|2|four|4)\s(?:of\s(?:the|our)\s)?(?P<card>[a-z][\w\-]{1,12}(?:\s(?:pcie|sxm|nvl|\d{2,3}\s?gb))?)s?\s(?:be\s)?(?:enough|sufficient|ok(?:ay)?|suffice)(?P<rest>[^?\n]{0,200}?),?\s"
    r"or\s(?:do|should|must|would|will)\s(?:i|we)\s(?:rather\s|really\s|better\s)?(?:need|use|take|have|go\sfor|buy)\s(?:to\s(?:use|take|have)\s)?(?P<m>both|all\s(?:two|four|eight|\d{1,2})|two|three|four|eight|\d{1,2})(?:\sof\s(?:them|these|those))?(?:\s(?:cards|gpus))?(?:\s(?:of|in)\s(?:the|our)\s[a-z]{3,10})?(?=\s?[?,.;)])"
)
# "3 nodes 8xH100": nodes of so many.
_NODES_OF = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\s(?P<node>nodes|servers|boxes|machines|hosts)"
    r"\s(?=\d{1,2}\s?x\s?[a-z]{1,4}\d)"
)
# "servers are 8x H100, three of them": nodes that are named first and counted behind.
_COUNTED_BEHIND = Gated(
    rf"(?<![a-z])(?:the\s|our\s)?(?P<node>servers|nodes|boxes|machines|hosts)\s"
    r"(?:are|have|with|of|come\swith)\s(?P<each>\d{1,2}\s?x\s?[a-z][a-z\d\- ]{1,20}?)(?:\seach)?,\s"
    rf"(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})\sof\s(?:them|these|those)(?![a-z])"
)
# "three AZs with one g5.12xlarge in each": as many machines as zones.
_IN_EACH = Gated(
    r"(?<![\w.])(?P<n>\d{1,2}|two|three|four|five|six)\s(?:azs?|(?:availability\s)?zones|sites|regions|racks|rooms|data\s?cent(?:er|re)s)\s(?:with|and)\s(?:one|an?|1)\s(?P<what>[A-Za-z][\w.\-]{2,30}(?:\s[A-Za-z0-9\-]{1,12})?)\s(?:in\s|at\s|per\s)?(?:each|zone|site|az)(?![a-z])",
)
# "three offices with one server of 2 RTX 4090 each", "三县各1台": as many machines as places.
_ONE_AT_EACH = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,2}}|{ENGLISH_NUMBER})\s(?P<place>(?!users|requests|replicas|copies)[a-z]{{4,12}}s)\s(?:with|and|have|has|get)\s(?:one|an?|1)\s(?P<node>server|node|box|machine|host)\s(?=(?:of|with|holding|having)\s[^,.;\n]{{2,40}}\seach(?![a-z]))|"
    r"(?P<cn>\d{1,2}|[二两三四五六七八九十])\s?个?(?:[县市区省地校院厂]区?|机房|分行|门店|站点|城市|数据中心)\s?各\s?(?:有|配|放|部署)?\s?(?:1|一)\s?台(?![\d一二三四])"
)
# "H100s, four to a server".
_TO_A_NODE = Gated(
    r"(?<![\w.])(?P<n>\d{1,2}|two|four|six|eight|sixteen)\s(?:(?:gpus|cards|of\s(?:them|these))\s)?to\s(?:an?|each|every|one)\s(?P<node>server|host|node|box|machine|vm)(?![a-z])"
)
# "always in servers of eight".
_ALL_OF_EIGHT = Gated(
    r"(?<![a-z])(?:always\s|only\s|all\s)?in\s(?P<node>servers|nodes|boxes|machines|hosts|chassis|units)\sof\s(?P<n>two|four|eight|2|4|8)(?:\s(?:gpus|cards))?(?=\s?[,.;)\n]|$)"
)
# "machines of 8 H100": what each of them has, where nothing counts them.
_MACHINES_OF = Gated(
    rf"(?:(?P<q>(?<![\w.])(?:\d{{1,4}}|{ENGLISH_NUMBER}))\s(?:[a-z]+\s)?)?(?<![a-z])(?P<node>machines|servers|nodes|boxes|hosts)\s(?:of|with|having)\s(?P<n>\d{{1,2}}|four|eight)\s?x?\s?(?=[a-z]{{1,3}}\d)"
)
# "one of our 8-way H100 hosts".
_WAY_HOSTS = Gated(
    rf"(?<![\w.])(?:(?P<n>one|an?|\d{{1,3}}|{ENGLISH_NUMBER})\s(?:of\s(?:our|the|these|those)\s)?)?(?P<each>\d{{1,2}})-way\s(?P<card>[a-z]{{1,3}}\d{{1,4}}[a-z]{{0,3}})\s(?P<node>hosts?|servers?|nodes?|box(?:es)?|machines?)(?![a-z])"
)
# "a tray being 4 GPUs", "each VM has two GPUs".
_NODE_HAS = Gated(
    r"(?<![a-z])(?:an?|each|every|one)\s(?P<node>tray|node|server|box|vm|machine|host|worker)\s(?:being|is|has|having|holds|means)\s(?P<n>\d{1,2}|two|four|eight)\s(?P<gpus>gpus|cards)(?![a-z])",
)
# "6 GPU workers with 2x A100 each": machines of a cluster, where cards are counted in each.
_WORKER_NODES = Gated(
    r"(?<![\w.])(?P<n>\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|twelve)\s(?:(?:gpu|cluster|kubernetes|k8s)\s)?workers"
    r"(?=\s(?:with|of|having)\s(?:\d{1,2}|one|two|four|eight)(?![.,\d]))",
)
# "the A100 boxes (there are two, eight cards each)".
_BOXES_TOLD = Gated(
    rf"(?<![a-z])(?:the|our)\s(?P<card>[a-z]{{1,3}}\d{{1,4}}[a-z]{{0,3}})\s(?P<node>servers|nodes|boxes|machines|hosts)\s?[(,-]\s?(?:there\sare|we\shave|we've\sgot)\s(?P<n>\d{{1,3}}|{ENGLISH_NUMBER}),\s(?P<each>\d{{1,2}}|{ENGLISH_NUMBER})\s(?:cards|gpus)\s(?:each|apiece)\s?\)?"
)
# "2x80GB A100".
_SIZED_CARDS = Gated(
    r"(?<![\w.])(?P<n>\d{1,3})\s?[x×*]\s?(?P<size>\d{2,3})\s?GB\s(?P<card>[A-Z]{1,2}\d{2,4}[A-Z]?)(?!\w)"
)
# "4x A100 40": the memory that tells cards of the same name apart, without its unit.
_BARE_MEMORY = Gated(
    r"(?<![\w\-])(?P<card>A100|A800|V100|H20|H100)s?\s(?P<size>16|32|40|80|96|141)(?=\s?(?:[,.;:)!?\n]|$|(?:gpus?|cards?|in|on|with|and|pcie|sxm)(?![a-z])))(?!\.\d)",
)
# "2 pieces, GeForce RTX 5090", "RTX 5090, 2 pcs".
_PIECES = Gated(
    rf"(?<![\w.])(?P<n>\d{{1,4}}|{ENGLISH_NUMBER})\s(?:pieces|pcs|units),\s(?=(?:(?:nvidia|geforce|amd|instinct|radeon|tesla)\s){{0,2}}(?:rtx|mi|[abhlvt])\s?\d)"
)
_PIECES_BEHIND = Gated(
    rf"(?<![\w.])(?P<card>(?:rtx|mi|[abhlvt])\s?\d{{1,4}}[a-z]{{0,3}}(?:\s(?:pcie|sxm\d?|nvl|ada|\d{{2,3}}\s?gb)){{0,2}}),\s(?P<n>\d{{1,4}}|{ENGLISH_NUMBER})\s(?:pieces|pcs|units)(?![a-z]|\sof)"
)
# "half of a GB200 NVL72".
_HALF_A_RACK = Gated(
    r"(?<![a-z])half\s(?:of\s)?(?:an?|the|our)\s(?P<card>gb[23]00)\s?nvl\s?(?P<n>72|36)(?:\sracks?)?(?!\w|\s?[(:,]\s?(?:nine|\d{1,2})\s(?:compute\s)?trays)(?:\s?\(\s?36\s?gpus\s?\))?"
)
# "八张四零九零": a card by its digits, spoken one by one.
_SPOKEN_CARD = Gated(r"(?<=[张块卡颗]|[, 个])(?P<card>[二三四五][零〇][六七八九][零〇])(?![年月日号])")
_SPOKEN_DIGITS = str.maketrans("零〇一二三四五六七八九", "00123456789")
_NAMED_SPEED = Gated(r"(?P<n>十万|[百千万])兆(?:以太网?|网络?|互联|光纤|光口|网口|交换机)?(?!字节|b)")
# "万兆互联": a network by its speed; "平均2分钟触发一次": how often.
_NETWORK = {"百": "0.1", "千": "1", "万": "10", "十万": "100"}


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


# "16 max in two nodes": GPUs, which the nodes hold.
_MOST_IN_NODES = Gated(
    rf"(?<![\w.$])(?P<n>\d{{1,4}})\s(?:max(?:imum)?|at\s(?:the\s)?most|tops)\s(?=(?:in|on|over|across)\s(?:\d{{1,3}}|{ENGLISH_NUMBER})\s(?:nodes|servers|machines|boxes|hosts)(?![a-z]))"
)
REWRITTEN: Rewriting = (
    (_MOST_IN_NODES, r"at most \g<n> gpus "),
    (_ENOUGH_OR_MORE, _at_most_as_few),
    (_NODES_OF, r"\g<n> \g<node> of "),
    (_COUNTED_BEHIND, r"\g<n> \g<node> with \g<each>"),
    (_IN_EACH, r"\g<n> \g<what>"),
    (
        _ONE_AT_EACH,
        lambda match: f"{match['cn']}台" if match["cn"] else match.expand(r"\g<n> \g<place>, \g<n> \g<node>s "),
    ),
    (_TO_A_NODE, r"\g<n> gpus per \g<node>"),
    (_ALL_OF_EIGHT, r"\g<n> gpus per node"),
    (_MACHINES_OF, _of_each_machine),
    (_WAY_HOSTS, _way_hosts),
    (_NODE_HAS, r"\g<n> \g<gpus> per \g<node>"),
    (_WORKER_NODES, r"\g<n> nodes"),
    (_BOXES_TOLD, _boxes_told),
    (_SIZED_CARDS, r"\g<n>x \g<card> \g<size>GB"),
    (_BARE_MEMORY, r"\g<card> \g<size>GB"),
    (_PIECES, r"\g<n> x "),
    (_PIECES_BEHIND, r"\g<card> x \g<n>"),
    (_HALF_A_RACK, lambda match: f"{int(match['n']) // 2} {match['card']}"),
    (_SPOKEN_CARD, lambda match: f" RTX {match['card'].translate(_SPOKEN_DIGITS)}"),
    (_NAMED_SPEED, lambda match: f" {_NETWORK[match['n']]}G以太网"),
)
