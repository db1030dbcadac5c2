"""Launch files with remarks as plain lines: a value that a remark calls old or a bound is set aside or replaced.

No flag is known here: flags are read like the words of a request.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated

FORMER = "former settings"
_FLAG = Gated(r"^[ \t]*--[\w-]+[^\n#]*?(?:[ \t]*\\)?[ \t]*(?:#+[ \t]*(?P<remark>[^\n]*))?$", re.MULTILINE)
_REMARK = re.compile(r"^[ \t]*#+[ \t]*(?P<remark>[^\n]*)$", re.MULTILINE)
_OLD = Gated(
    r"(?<![a-z])(?:was|were|too|old|wrong|nonsense|ignored?|unused|not\s(?:used|needed|true)|no\slonger|(?:only|just)\s(?:the|a|an)|cap|placeholder|obsolete|"
    r"default)(?![a-z])|旧|忽略|不再|只是|仅(?:为|是)|过于",
)
_INSTEAD = Gated(
    r"(?<![a-z])(?:plan\s(?:for|with)|use|take|make\s(?:it|that)|should\sbe|better|now)\s(?P<n>\d[\w.]*)|(?:按|改[成为]|用)\s?(?P<m>\d[\w.]*)",
)

# Behind a value: what stood in its place before.
_FORMERLY = Gated(
    r"(?:(?:was|were|previously|formerly|originally|initially|up\sfrom|down\sfrom|instead\sof|"
    r"(?:old|before|earlier|initial|previous|former|original)(?=\s?[:=\d]|\s(?:value|figure|number|target|estimate|plan)(?![a-z]))|"
    r"(?:raised|lowered|changed|reduced|increased|cut|moved|corrected)\sfrom)(?![a-z])|"
    r"(?:the\s)?(?:(?:first|last|previous)\s)?(?:rev(?:ision)?|version|draft|round|v|r)\.?\s?\d{0,3}(?:\.\d{1,2})?\s?(?:[:=]|had(?![a-z])|said(?![a-z])|was(?![a-z]))|"
    r"原[为来是先定]|之前|以前|此前|旧|上一?版|上次|曾|去年|上个?月)"
)


def tells_former(remark: str) -> bool:
    """Whether a remark behind a value says what held before, and not what holds instead: "rev 2: bf16", "was 30"."""
    return _FORMERLY.match(remark) is not None and _INSTEAD.search(remark) is None


def plain_lines(text: str) -> str:
    """The text with the lines of a launch file as plain ones, each at its place; other texts as they are."""
    if len(_FLAG.findall(text)) < 3:
        return text
    return _REMARK.sub(lambda match: match["remark"].rstrip() + ";" * bool(match["remark"]), _FLAG.sub(_flag, text))


def _flag(match: re.Match[str]) -> str:
    words, _, remark = match.group().rstrip(" \\").partition("#")
    words, remark = words.rstrip(" \\"), remark.strip("# ")
    instead = _INSTEAD.search(remark)
    if instead is not None:
        return re.sub(r"[\s=]\S+$", f" {instead['n'] or instead['m']}", words) + ";"
    if _OLD.search(remark):
        return f"{FORMER}: {words} ({remark})"
    return f"{words} ({remark});" if remark else f"{words};"
