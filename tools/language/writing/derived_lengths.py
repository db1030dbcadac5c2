"""A length that is stated by another: "2,300 tokens, of which 300 are the answer", "the reply is a quarter of that".

A reading says which words were converted into what.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.quantities import find_quantities, read_number, read_share
from ..patterns.rewriting import Workings

# "2,300 tokens total, of which the completion is roughly 300", "3k context each with 500 of that being the reply".
_LENGTH = r"\d(?:[\d,]{0,12}\d)?(?:\.\d+)?\s?k?"
_ALL = r"(?:total|context|altogether|overall|all\stold|in\s(?:total|all)|in\sand\sout|input\s(?:and|\+|plus)\soutput)"
_ANSWER = (
    r"(?:the\s|its\s|our\s|an?\s)?"
    r"(?:completions?|repl(?:y|ies)|answers?|responses?|outputs?|generat(?:ions?|ed)|summar(?:y|ies)|written)(?![a-z])"
)
_ABOUT = r"(?:\s?(?:about|around|roughly|approximately|approx\.?|some|just|only|~|≈))?\s?"
_OF_TOTAL = Gated(
    rf"(?<![\w.])(?P<all>{_LENGTH})\s(?:tokens?|toks?)\s(?:of\s)?{_ALL}(?:\s(?:each|apiece|per\s[a-z]{{4,12}}))?\s?[,;(\-]?\s?"
    rf"(?:of\swhich\s{_ANSWER}\s(?:is|are|makes?|takes?|has|have){_ABOUT}(?P<a>{_LENGTH})(?:\stokens?)?|"
    rf"(?:with|of\swhich|including|incl\.?){_ABOUT}(?P<b>{_LENGTH})(?:\stokens?)?(?:\sof\s(?:that|those|them|which|it))?\s(?:being|are|is|for|as|of|go(?:es)?\sto)\s{_ANSWER}|"
    rf"{_ABOUT}(?P<c>{_LENGTH})(?:\stokens?)?\sof\s(?:that|those|them|which|it)\s(?:being|are|is|for|as|go(?:es)?\sto)\s{_ANSWER})(?![\w.]\d)",
)
# "comes out at about the same length" behind what goes in.
_LENGTH_TOO = (
    r"(?:(?:and\s)?(?:it\s|that\s)?(?:comes?|goes|are|is)\s(?:back\s)?(?:out\s)?(?:at|with|in)?\s?|(?:and\s)?(?:the\s)?(?:answers?|outputs?|repl(?:y|ies)|translations?|results?)\s(?:is|are|has|have|comes?\sout)\s(?:at\s)?)"
    r"(?:about|roughly|around|pretty\smuch|more\sor\sless)?\s?(?:of\s)?(?:the\ssame\s(?:length|size)|as\slong)(?![a-z])(?:\s(?:again|out|back))?"
)
_SAME_LENGTH = Gated(
    rf"(?<![\w.,])(?P<n>\d[\d,]{{0,7}}k?)\s(?P<unit>tokens|words)\s(?:in|each|long|of\sinput)?\s?,?\s?(?:and\s)?{_LENGTH_TOO}(?:,?\s(?:plus|with|and|\+)\s(?:an?|the|our)\s(?:(?:fixed|shared|constant|common|static|same)\s)?(?P<more>\d{{2,5}})[\s\-]tokens?\s(?:long\s)?(?:system\s)?(?:instructions?|prompts?|templates?|preambles?))?",
)
# "the reply is a quarter of that length", "outputs are 20% of the input", "输出是输入的五分之一".
_SHARE = (
    r"(?:\d{1,3}(?:\.\d)?\s?(?:%|percent)|half|an?\s(?:third|quarter|fifth|sixth|eighth|tenth)|"
    r"two\s(?:thirds|fifths)|three\s(?:quarters|fifths|tenths))"
)
_PART_OF_INPUT = Gated(
    rf"(?<![a-z])(?:the\s|our\s|its\s|an?\s)?(?:completions?|repl(?:y|ies)|answers?|responses?|outputs?|generations?|summar(?:y|ies))\s(?:is|are|has|have|comes?\sto|takes?|runs?\sto|of)(?:\s(?:about|roughly|around|some|only|typically|usually))?\s"
    rf"(?P<share>{_SHARE})\s(?:of\s)?(?:that|it|this|the\s(?:input|prompt|question|document|request)s?|as\slong|as\smuch|the\s(?:length|size))(?![a-z])(?:\s(?:length|size|long|in\slength|as\slong))?(?:\s(?:of|as)\s(?:the\s)?(?:input|prompt|that)s?)?|"
    rf"(?<![a-z])(?:writes?|produces?|returns?|generates?|emits?|answers\swith|gives\sback)\s(?:about\s|roughly\s|only\s|some\s)?(?P<share2>{_SHARE})\sof\s(?:that|it|this|the\s(?:input|prompt)s?)(?![a-z])|"
    r"(?:输出|回答|回复|摘要|总结)(?:长度|大?约|大概|一般|平均)*(?:是|为|占|有|约)?(?:输入|提示词?|原文|问题)(?:长度)?的\s?(?P<cn>[一二两三四五六八九十]{1,2}分之[一二两三四五六七八九]|一半|[一二三四五六七八九]成|\d{1,3}\s?%)",
)
# "思考大概 1500 token, 正式回答 500 token", "2k reasoning tokens plus 500 of answer": both are the output.
_THOUGHT_CHINESE = Gated(
    r"(?:思考|推理过程|推理|先想|平均想)[^\d,;。\n]{0,8}(?P<a>\d[\d,]{0,12}k?)\s?(?:个?\s?tokens?)?\s?(?:左右|上下)?(?:[,;]?\s?(?:再加|加上|加|和|再|然后|之后|后)?|才[^\d,;。\n]{1,6}[,;])\s?(?:正式|最终|最后)?的?(?:回答|答案|回复|正文)[^\d,;。\n]{0,8}(?P<b>\d[\d,]{0,12}k?)(?=\s?(?:个?\s?tokens?|[,;。\n]|$))",
)
_THOUGHT = Gated(
    r"(?<![\w.])(?P<a>\d[\d,]{0,12}k?)\s(?:tokens?\sof\s(?:reasoning|thinking)|(?:reasoning|thinking)\stokens?)\s?(?:,|plus|and|\+)\s?(?:then\s|about\s|some\s|another\s){0,2}(?P<b>\d[\d,]{0,12}k?)\s"
    r"(?:(?:tokens?\s)?of\s(?:the\s|final\s|actual\s){0,2}answer|(?:answer|visible|final)\stokens?)(?![a-z])|"
    r"(?<![a-z])(?:thinking|reasoning)\s(?:(?:takes|is|has|needs|about|around|some|of|runs|to)\s){1,3}(?P<a2>\d[\d,]{0,12}k?)(?:\stokens)?,?\s(?:and\s|plus\s)?(?:the\s|its\s)?(?:visible\s|final\s|actual\s|written\s)?answers?\s(?:(?:takes?|is|are|has|have|about|around|some|of)\s){0,2}(?P<b2>\d[\d,]{0,12}k?)(?:\stokens)?(?!\w|\s?(?:ms|s|sec)(?![a-z]))",
)
# "the reply is as long as the mail, 350 tokens", "译文和原文差不多长,1500 token".
_AS_LONG = Gated(
    r"(?<![a-z])(?:(?:the|our|its)\s)?(?:answers?|repl(?:y|ies)|outputs?|completions?|translations?|drafts?|rewrites?)\s(?:(?:is|are|has|have|about|roughly|more\sor\sless|usually)\s){0,3}(?:as\slong\sas|equals?|matches|(?:of\s)?the\ssame\s(?:length|size)\sas)\s(?:(?:the|its|our|an?)\s)?[a-z]{3,12}(?:\sin\slength)?\s?[,:(;]\s?(?:about\s|some\s|around\s)?(?P<n>\d[\d,]{0,7}k?)\stokens(?!\s?/)\)?|"
    r"(?:译文|输出|回答|改写稿?)的?(?:长度)?[和与跟](?:原文|输入|问题|提示词?)的?(?:长度)?(?:都)?(?:差不多|大致相同|相当|一样|相同|基本一致|等)长?[,;](?:都是|[^\d;。\n]{0,6}?)\s?(?P<cn>\d[\d,]{0,7}k?)\s?个?\s?token"
)
# "it thinks for about 3,000 tokens and answers with 500", "reasons for 4k": the output too.
_WRITTEN = rf"\d[\d,]{{0,12}}k?(?!\w|\.\d|\s?%)|{ENGLISH_NUMBER}(?![a-z])"
_THINKS = Gated(
    rf"(?<![a-z])(?:thinks|reasons|ponders|deliberates)\sfor\s(?:about\s|some\s|around\s|roughly\s|up\sto\s)?(?P<a>{_WRITTEN})(?!\s?(?:ms|s|secs?|seconds?|min|minutes?|hours?|steps?|rounds?|turns?|times)(?![a-z]))(?:\stokens)?"
    rf"(?:,?\s(?:(?:and|before|then|it)\s){{1,3}}(?:answers|replies|writes|responds|says)\s(?:(?:with|in|about|some|around)\s){{0,2}}(?P<b>{_WRITTEN})(?:\stokens)?)?"
)
# "answers were 300 tokens and grew to 420", "回答从 300 涨到 420 token": the later length.
_GREW = Gated(
    r"(?P<what>(?<![a-z])(?:answers?|repl(?:y|ies)|outputs?|completions?|responses?|summar(?:y|ies)|prompts?|inputs?|contexts?|documents?)(?![a-z])[^.;\n\d]{0,24}?)"
    r"(?:(?P<a>\d[\d,]{0,9}k?)(?:\stokens)?,?\s(?:(?:at\sfirst|to\sbegin\swith|last\s[a-z]{4,7}|and|but|then|they|it|have|has|since|now|recently)\s){0,4})?"
    r"(?:grew|grown|rose|risen|increased|swelled|(?:went|gone)\sup|shrank|shrunk|(?:went|gone)\sdown|fell|fallen|dropped)\s(?:since\s)?(?:from\s\d[\d,]{0,9}k?\s(?:tokens\s)?)?to\s(?:about\s|some\s|around\s)?(?=\d)|"
    r"(?P<cn>(?:回答|回复|输出|输入|提示词?|摘要)(?:长度)?[^\d,;。\n]{0,8}?)(?:从|由|原来)\s?\d[\d,]{0,9}k?\s?(?:个?\s?tokens?)?\s?(?:涨|增加?|升|变|降|减少?|缩短?|扩大?)[到至成为]\s?(?:了)?(?=\d)"
)
_MOST_BACK = 160  # characters to the length that a part is of
_LEAST = 32  # tokens


def _both_lengths(match: re.Match[str]) -> str | None:
    """ "2000 input tokens, 300 output tokens" for a length of both together and the answer's part of it."""
    total, answer = (read_number(words) for words in (match["all"], match["a"] or match["b"] or match["c"]))
    if total is None or answer is None or answer >= total:
        return None
    return f"{total - answer:.12g} input tokens, {answer:.12g} output tokens"


def _part_of_input(match: re.Match[str]) -> str | None:
    """The output in tokens, as a share of the last length before it; `None` where there is none."""
    share = read_share(match["share"] or match["share2"] or match["cn"])
    before = find_quantities(match.string[max(0, match.start() - _MOST_BACK) : match.start()])
    sizes = [size for size in before if size.upper is None and size.value >= _LEAST]
    lengths = [size for size in sizes if size.unit == "tokens"] or [size for size in sizes if size.unit == "count"]
    if share is None or not 0.0 < share < 1.0 or not lengths:
        return None
    tokens = round(lengths[-1].value * share)
    return f"输出 {tokens} token" if match["cn"] else f"output of {tokens} tokens"


def _same_length(match: re.Match[str]) -> str:
    """Both lengths where as much comes out as goes in, with the instruction that stands before the input."""
    amount = (read_number(match["n"].replace(",", "")) or 0) * (4 / 3 if match["unit"] == "words" else 1)
    more = float(match["more"] or 0)
    shared = f" of which {more:g} are a shared prefix" if more else ""
    return f"input of {amount + more:.0f} tokens{shared}, output of {amount:.0f} tokens"


def _of_thinker(match: re.Match[str]) -> str | None:
    lengths = [read_number(match[part].lower()) or 0.0 for part in "ab" if match[part]]
    return None if min(lengths) < _LEAST else f"output of {sum(lengths):.12g} tokens"


def _sum_of(match: re.Match[str]) -> str:
    return f"{sum(read_number(words) or 0 for words in match.groups() if words):.12g}"


TOLD_LENGTHS: Workings = (
    (_GREW, lambda match: f"{(match['what'] or match['cn']).rstrip()} "),
    (_THINKS, _of_thinker),
    (_THOUGHT_CHINESE, lambda match: f"输出 {_sum_of(match)}"),
    (_THOUGHT, lambda match: f"{_sum_of(match)} output tokens"),
    (_SAME_LENGTH, _same_length),
    (
        _AS_LONG,
        lambda match: (
            f"输入 {match['cn']} token, 输出 {match['cn']} token"
            if match["cn"]
            else f"input of {match['n']} tokens, output of {match['n']} tokens"
        ),
    ),
    (_OF_TOTAL, _both_lengths),
    (_PART_OF_INPUT, _part_of_input),
)
