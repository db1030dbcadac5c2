"""Remarks with numbers or names that say nothing about a deployment, defused before anything is read.

"We do 2 releases a month", "I read the blog of vLLM", "the team has 7 people": words that would pass for a rate, an
engine or a load are left out of the text that is read. The report quotes texts as they are read.
"""

from __future__ import annotations

from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.rewriting import Rewriting, rewritten

_N = rf"(?:\d{{1,4}}|{ENGLISH_NUMBER})"
_PAGE = (
    r"(?:blog(?:\sposts?)?|docs?|documentation|papers?|repo(?:sitory)?|website|slack|release\snotes|changelog|issues?|"
    r"github)"
)
_ENGINE = r"(?:vllm|sglang|tensorrt[\s\-]?llm|trt[\s\-]?llm|lmdeploy|tgi)"
_MAKERS = r"(?:people|folks|guys|team|maintainers|developers|community|experts?)"
_ASIDES: Rewriting = (
    # Who works on it: no load.
    (
        Gated(
            rf"(?<![a-z])(?:team|group|department|company)\s(?:has|is|counts|consists\sof)\s(?:only\s|just\s|about\s)?{_N}\s"
            r"(?:people|persons|members|engineers|developers|heads|fte)(?![a-z])(?!\s(?:us(?:e|ing)|who|on|at|chat))"
        ),
        "team works on it",
    ),
    (Gated(r"团队(?:一共|总共|共有?|有)\s?\d{1,4}\s?(?:个?人|名)(?!用|使用|在线|并发|同时)"), "团队负责"),
    # What happens so often, and is no request.
    (
        Gated(
            rf"(?<![\w.]){_N}\s(?:releases?|deployments?|deploys?|sprints?|meetings?|outages?|incidents?|reboots?|updates?|patch(?:es)?|maintenance\swindows?)"
            r"\s(?:per|an?|every|each)\s(?:day|week|month|quarter|year)(?![a-z])"
        ),
        "releases",
    ),
    # Where servers stand, and with whom.
    (
        Gated(
            r"(?<![a-z])co[\s\-]?locat(?:ion|ed|ing)\s(?=(?:with\s(?!prefill|decod)|facilit|data\s?cent|provider|space|rack|site))"
        ),
        "housing ",
    ),
    # Nodes of a picture, money for something else.
    (
        Gated(
            rf"(?<![\w.]){_N}\snodes\s(?=(?:in|of|on)\s(?:the|our|a|that)\s(?:org(?:anization)?\s?chart|tree|graph|diagram|dom|workflow|mind\s?map))"
        ),
        "places ",
    ),
    (
        Gated(
            r"(?<![a-z])budget\sfor\s(?:coffee|lunch|food|drinks?|travel|books?|training|parties|party|office|furniture|marketing|consultants?|licen[cs]es?)"
            r"\s(?:is|was)\s(?:only\s|just\s|about\s)?[$€£]?\s?\d[\d.,]{0,8}\s?(?:dollars?|usd|euros?|eur|pounds?|k)?(?:\s(?:per|an?|every|each)\s(?:day|week|month|quarter|year))?"
        ),
        "budget is another",
    ),
    (
        Gated(r"(?:咖啡|午餐|餐费|差旅|团建|加班|打车|培训|图书)的?预算[^,;。\n]{0,6}?\d[\d.]{0,6}\s?[块元]"),
        "另一项预算",
    ),
    # What was read, and by whom it was written.
    (Gated(rf"(?<![a-z]){_PAGE}\s(?:of|from|by|for)\s(?:the\s)?{_ENGINE}(?![a-z])"), "a page"),
    (Gated(rf"(?<![a-z]){_ENGINE}(?:'s)?\s(?:{_PAGE}|{_MAKERS})(?![a-z])"), "a page"),
    # A closed model that is measured against: it cannot be served.
    (
        Gated(
            r"(?<![a-z])(?:compar(?:e[sd]?|ing)|benchmark(?:s|ed|ing)?|judged?|measured?)\s(?:it\s|us\s|this\s|them\s|ourselves\s)?(?:with|to|against)\s"
            r"(?:gpt-?\d[\w.\-]{0,12}|claude(?:[\s\-][\w.]{1,8}){0,3}|gemini(?:[\s\-][\w.]{1,8}){0,3}|o[1-4](?:-mini)?)(?![\w\-])"
        ),
        "compare",
    ),
    # "8k resolution, has nothing to do with context length".
    (
        Gated(r"(?<![a-z])(?:has|have|had|is|are)\s(?:absolutely\s)?nothing\sto\sdo\swith\s[^.,;:!?()\n]{1,40}"),
        "is another matter",
    ),
    # A network of something else.
    (
        Gated(
            r"(?<![a-z])(?:storage|nfs|nas|s3|ceph|backups?|management)(?:\s(?!between)[a-z]{1,12}){0,4}\s(?:over|via|on|through)\s"
            r"\d{1,4}\s?(?:gbe|g(?:bit|b)?(?:/s|ps)?(?:\sethernet)?)(?![a-z])"
        ),
        "storage",
    ),
    # Jobs of others, at other hours.
    (
        Gated(
            r"(?<![a-z])batch\sjobs\s(?=(?:run|happen|are|start)\s(?:only\s)?(?:at\snight|overnight|elsewhere|on\sother))"
        ),
        "jobs ",
    ),
)


def without_asides(text: str) -> str:
    """A normalised text in which words that state nothing replace such remarks."""
    return rewritten(text, _ASIDES)
