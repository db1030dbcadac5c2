"""Sentences about the past: "last year we ran TP4 on vLLM 0.6", "in the pilot we paid 12 dollars an hour".

Loads and lengths of the past count where no others are stated. Settings, prices and figures that were reached then are
no demand (`Claims.past`).
"""

from __future__ import annotations

from ..patterns.gated import Gated
from ..patterns.page import Page
from .claims import Claims

_WHEN = (
    r"(?:last\s(?:year|month|week|quarter|time|summer|autumn|fall|winter|spring)|in\s(?:19|20)\d\d|(?:in|during)\s(?:the|our)\s(?:first\s|last\s|old\s|early\s)?(?:pilot|demo|poc|trial|load\stest|stress\stest|hackathon|prototype|first\sphase|early\sdays)|"
    r"back\sthen|at\sthe\stime|(?:until|till|before)\s(?:january|february|march|april|may|june|july|august|september|october|november|december|last\s[a-z]{4,8}|20\d\d|that|the\s[a-z]{4,12})|"
    r"at\smy\s(?:last|previous|old)\s(?:job|company|employer)|earlier\sthis\s(?:year|month|week)|(?:a\sfew\s|some\s|two\s|three\s)?(?:years|months)\sago|once\supon\sa\stime)"
)
_DID = (
    r"(?:had(?!\sto)|ran|used|needed|served|handled|saw|answered|made|paid|sent|wrote|tried|tested|measured|reached|managed|"
    r"owned|operated|started\swith|planned\swith|did|kept|were\susing|were\srunning)"
)
_TRIAL = (
    r"(?:the|our|an?|that|their)\s(?:[a-z0-9.\-]+\s){0,3}?(?:trial|pilot|demo|poc|proof\sof\sconcept|load\stest|stress\stest|prototype|"
    r"hackathon|predecessor|dry\srun|first\sphase|phase\s(?:1|one))(?:\s(?:in|of|from|last|back\sin)\s[a-z0-9\s]{2,16}?)?"
)
# What befell something that ran: "at 07:42 the cache was exhausted with 70 requests open", "TTFT spiked to 9 s".
_BEFELL = (
    r"(?:spiked|climbed|jumped|(?:went|shot)\s(?:up|through)|rose|crashed|collapsed|exploded|peaked|failed|"
    r"(?:ran|were|was)\s(?:out|exhausted|overloaded|saturated)|fell\s(?:over|behind)|timed\sout)"
)
_HAPPENED = (
    r"(?:what\s(?:happened|went\swrong|we\ssaw|broke)|"
    r"(?:the\s)?(?:incident|outage|symptoms?|root\scause|impact|timeline|post-?mortem|observations?)|"
    r"故障(?:经过|现象|描述)?|事故(?:经过|描述)?|现象|问题现象|发生了什么)"
)
# Where a sentence begins.
_BEGIN = r"(?:(?<=[.!?;:\n]\s)|(?<=[\n(])|^)"
_PAST = Gated(
    rf"{_BEGIN}(?:in\s[a-z0-9\s]{{2,16}},?\s)?{_TRIAL}(?:\s\([^()\n]{{1,120}}\))?\s(?:(?:itself|only|still|just|also|already|even)\s)?(?:{_DID}|ended|finished)(?![a-z])(?:[^.;!?\n]|\.(?=\S)){{0,200}}|"
    rf"{_BEGIN}(?:and\s|but\s|so\s)?{_WHEN},?\s(?:we|i|they|it|the\steam|somebody|someone)\s(?:(?:only|still|just|also|already|even|always)\s)?{_DID}(?![a-z])(?:[^.;!?\n]|\.(?=\S)){{0,200}}|"
    rf"(?:(?<=[.!?;]\s)|(?<=\n)|(?<=[\n。])|^){_HAPPENED}\s?[:：](?:[^\n.。]|\.(?=\S)){{4,300}}|"
    rf"{_BEGIN}(?:(?:on|at)\s[\w:]{{2,12}}(?:\s(?:morning|night))?|yesterday|last\snight|the\sother\sday|{_WHEN}),?\s[^.;!?\n]{{2,60}}?(?<![a-z]){_BEFELL}(?![a-z])(?:[^.;!?\n]|\.(?=\S)){{0,120}}|"
    rf"{_BEGIN}(?:we|i|they)\s(?:(?:only|still|just|also|already|even|always)\s)?{_DID}(?![a-z])(?:[^.;!?\n]|\.(?=\S)){{2,140}}?\s{_WHEN}(?=\s?[.;!?\n]|$)|"
    r"(?<![a-z])(?:an?|the|our|my)\s(?:earlier|previous|first|old)\s(?:version|draft|revision|paper|offer)(?:\s(?:of\s[a-z\s]{2,20}))?\s(?:listed|had|said|showed|mentioned|contained|named|used|spoke\sof|asked\sfor)(?![a-z])(?:[^.;!?\n]|\.(?=\S)){0,120}|"
    r"(?:(?<=[。;\n,])|^)[^\S\n]?(?:去年|前年|上个?(?:月|周|季度)|20\d\d\s?年|当时|那时候?|试点(?:期间|阶段|的时候|时)|(?:压测|演示)(?:的时候|时|期间)|之前|以前|早些时候)(?:,|我们?|咱们?|他们?|是|都|只|还|曾)?(?!已?经?(?:[改换升迁][成为到用至]|决?定了?|拍板|敲定))(?:[^,;.。\n]|\.(?=\S)){2,60}"
)


def note_past(page: Page, claims: Claims) -> None:
    """Record in `claims.past` the sentences of the page about the past."""
    claims.past = tuple(match.span() for match in _PAST.finditer(page.original))
