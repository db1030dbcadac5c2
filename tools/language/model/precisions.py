"""Number formats of a request: "fp8 weights with bf16 KV cache", "W4A16", "int4 AWQ", "FP8 量化".

A format belongs to the tensor that is named beside it, else to the weights. "Quantised" without a format is no format.
Several that are joined by "or" are a choice between them; beside "any precision" a format is one more to choose from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, product
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from ...catalog.dtypes import DTYPES, DType, element_bytes
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.matching import Role, pair
from ..patterns.number_words import AT_LEAST
from ..patterns.page import MODEL, SENTENCE_END, Page
from ..said import OpenPrecisions, StatedPrecision
from .names import NamedModel
from .open_precisions import read_open_precision

_FORMATS: dict[DType, str] = {
    "nvfp4": r"nv[\s_\-]?fp4",
    "mxfp4": r"mx[\s_\-]?fp4",
    "mxfp8": r"mx[\s_\-]?fp8",
    "bf16": r"bf[\s_\-]?16|bfloat[\s_\-]?16|brain\sfloat(?:\s?16)?",
    "fp16": r"fp[\s_\-]?16|float[\s_\-]?16|"
    r"16[\s\-]?bits?\s(?:float(?:s|ing)?(?:[\s\-]points?)?|fp)|half[\s\-]precision|半精度",
    "fp32": r"fp[\s_\-]?32|float[\s_\-]?32|single[\s\-]precision|单精度",
    "fp8": (
        r"fp[\s_\-]?8(?:[\s_\-]?(?:e4m3(?:fn)?|e5m2|block(?:wise)?))?|"
        r"float[\s_\-]?8(?:_e4m3(?:fn)?)?|e4m3(?:fn)?|e5m2|8[\s\-]?bits?\s(?:float(?:s|ing)?(?:[\s\-]points?)?|fp)|8\s?(?:位|比特)浮点数?"
    ),
    "int8": r"int[\s_\-]?8|q8(?:_0|_k)?|8[\s\-]?bits?\sint(?:eger)?s?|8\s?(?:位|比特)整(?:数|型)",
    "int4": (
        r"int[\s_\-]?4|i?q4(?:_[01k](?:_[sml])?|_xs|_nl)?|4[\s\-]?bits?\sint(?:eger)?s?|"
        r"4\s?(?:位|比特)整(?:数|型)|awq|gptq|四比特"
    ),
    "fp4": r"fp[\s_\-]?4|4[\s\-]?bits?\s(?:float(?:s|ing)?(?:[\s\-]points?)?|fp)|4\s?(?:位|比特)浮点数?",
}
FORMAT = Gated(
    r"(?<![A-Za-z0-9])(?:"
    + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _FORMATS.items())
    + r")(?![A-Za-z0-9])",
)
_SCHEME = Gated(
    r"(?<![A-Za-z0-9])(?:(?P<kind>fp|int)[\s_\-]?\d?[\s_\-]?)?w(?P<w>4|8|16)[\s_\-]?a(?P<a>4|8|16)(?:[\s_\-]?(?:kv|c)(?P<kv>4|8|16))?(?:[\s_\-]?(?P<kind2>fp|int)\d?)?(?![A-Za-z0-9])",
)
_BITS = Gated(r"(?<![A-Za-z0-9.])(?P<bits>4|8|16)[\s\-]?(?:bits?(?![a-z])|比特|位)(?!\s?(?:gpus?|cards?))")
_OPENS_BRACKET = re.compile(r"\s?(?:weights?\s?)?\(")
_QUANTISED = Gated(r"(?<![a-z])quanti[sz](?:ed|ation|e)(?![a-z])|量化")
_METHOD = Gated(r"awq|gptq")
_ROLE = Gated(
    r"(?P<kv_cache>(?<![a-z])(?:kv(?:[\s_\-]?cache)?|key[\s\-/]value\scache|attention\scache|(?<!prefix\s)(?<!prompt\s)cache(?!\s?hit))(?![a-z])|键值缓存|(?:kv\s?)缓存)"
    r"|(?P<activations>(?<![a-z])(?:activations?|acts?|compute(?!\s(?:trays?|nodes?|servers?|blades?|the|an?|our|how|what|which|it))|matmuls?|gemms?)(?![a-z])|激活(?:值)?|计算(?!托盘|节点))"
    r"|(?P<weights>(?<![a-z])(?:weights?|model\sweights|checkpoint|params|parameters)(?![a-z])|权重|参数)",
)
_BIT_FORMATS: dict[str, DType] = {"4": "int4", "8": "int8", "16": "bf16"}
_FIELDS = ("weights", "kv_cache", "activations")
# Words that join formats to choose from; words that join them only where "one of" stands beside them.
_OR = Gated(
    r"(?:\s?\ue002{1,20})?(?:\sif\spossible)?\s?(?:weights?|权重)?\s?[,(]?\s?(?:or|或者?|还是|抑或)\s?(?:else\s)?(?:(?:with|in|use|stay\s(?:on|with|at)|stick\s(?:to|with)|keep|remain\s(?:on|at)|go\swith)\s|用)?",
)
_COMMA = re.compile(r"\s?,\s?")
_AND = Gated(r"\s?(?:weights?|权重)?\s?,?\s?(?:and|&|和|与|及)\s?")
_ONE_OF_AFTER = Gated(
    r"\s?(?:weights?\s)?(?:are\s|is\s)?(?:both|either)|\s?(?:权重)?(?:均可|都可以?|都行|皆可|任选|二选一|之?中?选)",
)
_ONE_OF_BEFORE = Gated(r"(?:(?<![a-z])(?:either\sof|between|one\sof)|从|在)\s?$")
_NEITHER = Gated(r"\s?,?\s?(?:n?or|或者?)\s?")
_EXCEPT = Gated(
    r"(?:other\sthan|(?:precisions?|formats?|quanti[sz]ations?)\sbut|besides|(?:apart|aside)\sfrom|除了?|除开)\s?$",
)
_LEAST_BEFORE = Gated(rf"{AT_LEAST}\s?$")
_OR_MORE = Gated(r"\s?(?:(?:precision\s)?(?:or|and)\s(?:more|above|higher|better|up)|(?:及|或)?以上)")


class _Format(Struct, frozen=True):
    """A mention of a number format, or of several to choose from; `denied`: said not to be meant."""

    dtypes: tuple[DType, ...]
    start: int
    end: int
    denied: bool = False


def read_precision(page: Page, claims: Claims, model: NamedModel) -> None:
    """Read the formats; a suffix of the model's name ("-FP8") states the weights where nothing else does."""
    opened = read_open_precision(page, claims)
    _read_schemes(page, claims)
    reader = _Reader(page, claims, opened)
    reader.read()
    for match in page.search(_QUANTISED):
        is_stated = opened or claims.has("precisions") or any(claims.has(field) for field in _FIELDS)
        if not is_stated and not page.is_negated(*match.span()):
            claims.leave_unread(f"{match.group()!r} names no number format; say which (fp8, int8, int4)")
        page.take(*match.span())
    if model.weights is not None and opened:
        reader.choose("weights", (model.weights,), model.words)
    elif model.weights is not None and not claims.has("weights") and "weights" not in reader.chosen:
        claims.claim("weights", model.weights, model.words)
    reader.claim_choice()


def _read_schemes(page: Page, claims: Claims) -> None:
    for match in page.search(_SCHEME):
        if page.is_negated(*match.span()):
            page.take(*match.span())
            continue
        before = page.text[max(0, match.start() - 6) : match.start()].lower()
        after = page.text[match.end() : match.end() + 6].lower()
        is_float = "fp" in (match["kind"] or match["kind2"] or "").lower() or "fp8" in before or "fp8" in after
        eight: DType = "fp8" if is_float else "int8"
        formats: dict[str, DType] = {"4": "nvfp4" if match["a"] == "4" else "int4", "8": eight, "16": "bf16"}
        words = page.take(*match.span())
        claims.claim("weights", formats[match["w"]], words)
        claims.claim("activations", formats[match["a"]], words)
        if match["kv"]:
            claims.claim("kv_cache", formats[match["kv"]], words)
        claims.reading(f"{words!r} read as {formats[match['w']]} weights and {formats[match['a']]} activations")


# Behind a format that is a fallback, for where another does not do.
_ONLY_IF = Gated(
    r"(?:\s(?:weights?|kv|cache|quantization|quantisation|version|checkpoint|is\sfine|is\sok(?:ay)?)){0,3}\s(?:only\s(?:if|when|where)|"
    r"(?:only\s)?if\s(?:(?:that's|it's|that\sis|it\sis|really|absolutely)\s)?(?:needed|necessary|required|unavoidable)|as\s(?:a\s|the\s)?(?:fall-?back|last\sresort|plan\sb))(?![a-z])"
    r"|(?:只在|仅在|除非)?(?:必要|不得已|放不下)时?(?:再用|才用)?"
)
# Around a format: it is not approved, was tried once, or is a fallback.
_NOT_READY = Gated(
    r"(?:\s(?:weights?|kv|cache|version|checkpoint|build)){0,2}\s(?:(?:(?:has|have|is|are|was)(?:n't|\snot)|not)\s(?:been\s|yet\s|fully\s){0,2}(?:validated|tested|approved|released|qualified|signed\soff|ready|evaluated|available)|(?:还|尚)?(?:未|没有?)(?:验证|评测|上线|测过|批准))|"
    # it was tried and did not do: "fp8 failed the accuracy gate"
    r"(?:\s(?:weights?|kv|cache|version|checkpoint|build)){0,2}\s(?:(?:also|clearly|just|it|has|have)\s){0,2}"
    r"(?:fail(?:s|ed)|br(?:oke|eaks)|degrad(?:es|ed)|hurts?|ruin(?:s|ed)|los(?:t|es)|drop(?:s|ped)|costs?(?=\s[^.;\n]{0,20}(?:accuracy|quality|points?))|"
    r"(?:did|does|was|is|were|could|would)(?:n't|\snot)\s(?:pass|meet|hold|reach|clear|survive|(?:good|accurate|precise|stable|acceptable)(?:\senough)?|work))(?![a-z])"
    # what it costs is borne, or is no accuracy: "FP8 costs little accuracy", "FP8 drops the memory"
    r"(?![^.;\n]{0,40}(?<![a-z])(?:little|less\sthan|nothing|nobody|no(?:ne)?|barely|hardly|negligible|only|acceptabl[ey]|tolerabl[ey]|fine|ok(?:ay)?|costs?|bill|memory|latency|ttft|tpot)(?![a-z]))|"
    r"\s?的?(?:精度|效果|质量|准确率)?(?:不达标|不够|掉点|掉得|太差|[没未](?:能?通?过|达标)|下降|有?损失)(?![^。;\n]{0,8}(?:接受|很小|不大|不多|极小|轻微|忽略|有限|不明显))"
)
_ONCE = Gated(
    r"(?:(?<![a-z])(?:last\stime|earlier\s(?:trial|pilot|attempt|test)s?|in\sthe\spilot|back\sthen)(?![a-z])|上[次回]|之前试)[^,.;。()\n]{0,16}$"
)
_FALLBACK = Gated(
    r"(?<![a-z])(?:should\sit\snot(?:\s(?:fit|work|hold|do))?|if\sit\s(?:doesn't|won't|can't|does\snot)(?:\s[a-z]{2,6})?|if\snot|otherwise|failing\sthat|or\selse)[,;]?\s(?:then\s)?(?:(?:its|the|in|with|use|to|go|take)\s){0,3}$|(?:否则|不行|放不下)(?:的话)?[,]?\s?(?:就|再)?(?:用|上|换)?\s?$"
)


# "Shipped in bf16, served in fp8", "原始权重是bf16, 上线用fp8": what a checkpoint came in, and what it is served in.
_CAME_IN = Gated(
    r"(?<![a-z])(?:(?:shipp|publish|releas|train|stor|download|upload)ed|ships|comes?|came)\s?(?:in|as)?\s?[.:=]*\s?$|(?<![a-z])on\s(?:disk|the\shub)\s?(?:in|as|is|:)?\s?$|"
    r"(?:原始(?:的)?(?:权重|格式|精度|模型)?|(?:发布|训练|存储)(?:时|的|权重|格式)?)(?:是|为|用|:)?\s?$"
)
_SERVED_IN = Gated(
    r"(?<![a-z])(?:serv(?:e|ed|ing)|run(?:ning)?|quanti[sz]ed?|deploy(?:ed)?|load(?:ed)?|in\smemory)\s?(?:(?:it|them|in|as|at|to|with)\s?){0,2}[.:=]*\s?(?=[a-z]{2,4}\d)|(?:上线|部署|推理|量化)(?:时|后)?(?:用|为|成|到|是)?\s?(?=[a-z]{2,4}\d)"
)


# "Q4" as a format, and as a quarter of the year.
_IS_QUANTISED = Gated(rf"gguf|llama\.?cpp|weights?|quant|precision|权重|量化|精度|{MODEL}\W{{0,3}}q4(?![a-z\d])")
_IS_QUARTER = Gated(
    r"(?:(?<![a-z])(?:in|by|for|until|till|from|of|before|during|early|late|end|this|next|last|since|our|the)|20\d\d|fy\s?\d\d|[年度])\W{0,3}q4(?![a-z\d])|"
    r"(?<![a-z\d])q4\W{0,3}(?:20\d\d|fy\s?\d\d|'\d\d|(?:budget|plan|request|review|target|launch|forecast|sizing|capacity|demand|procurement|purchase|order|quarter|rollout)|"
    r"季|采购|预算|规划|扩容|计划|申请|上线|测算|需求|评审)"
)


class _Reader:
    """Reads formats off a page; `chosen` collects what is to be chosen from, by tensor."""

    def __init__(self, page: Page, claims: Claims, opened: str) -> None:
        self._page, self._claims, self._opened = page, claims, opened
        self.chosen: dict[str, tuple[DType, ...]] = {}
        self._words = [opened] if opened else []
        self._excluded: list[DType] = []
        # Weights that are listed behind "open" ("precision open: fp8 or bf16") are all that may be chosen.
        self._listed = False

    def read(self) -> None:
        """Read every format with the tensor that it belongs to."""
        page = self._page
        mentioned = self._mentioned()
        formats = _choices(page, [item for item in mentioned if not item.denied])
        for item in mentioned:
            if item.denied:
                page.take(item.start, item.end)
                self._excluded.extend(item.dtypes)
        roles = [Role(str(match.lastgroup), *match.span()) for match in page.search(_ROLE)]
        roles = [role for role in roles if not any(item.start < role.start < item.end for item in formats)]
        roles = [role for role in roles if any(self._in_one_sentence(role, item) for item in formats)]
        pairings = pair(page.text, roles, formats, lambda _role, _format: True)
        roled = {pairing.value for pairing in pairings}
        for pairing in pairings:
            words = page.original[slice(*pairing.span)].strip()
            self._claim(pairing.role.name, pairing.value, words)
        for item in formats:
            words = page.take(item.start, item.end)
            if item in roled or (self._claims.values.get("weights"),) == item.dtypes:
                continue
            if self._opened:
                self._listed = self._listed or len(item.dtypes) > 1
                self.choose("weights", item.dtypes, words)
            else:
                self._claim("weights", item, words)

    def _in_one_sentence(self, role: Role, item: _Format) -> bool:
        """Whether a tensor and a format stand together: "from the cache. Llama in fp8" names no format of a cache."""
        between = self._page.text[min(role.end, item.end) : max(role.start, item.start)]
        return SENTENCE_END.search(between) is None

    def choose(self, field: str, dtypes: tuple[DType, ...], words: str) -> None:
        """Leave `field` to be chosen from `dtypes`."""
        known = self.chosen.get(field, ())
        if known and not self._opened and set(known) != set(dtypes):
            raise self._claims.refusal(
                f"{field} are left to be chosen twice: of {', '.join(known)} and, in {words!r}, of "
                f"{', '.join(dtypes)}; keep one"
            )
        self.chosen[field] = tuple(dict.fromkeys((*known, *dtypes)))
        self._words.append(words)

    def claim_choice(self) -> None:
        """Claim the formats to choose from, if there are any."""
        if not self._opened and not self.chosen:
            return
        words = "; ".join(dict.fromkeys(self._words))
        for field, dtypes in self.chosen.items():
            if self._claims.has(field):
                raise self._claims.refusal(
                    f"{field} is stated twice: {self._claims.values[field]} in {self._claims.words[field]!r}, and to "
                    f"be chosen of {', '.join(dtypes)} in {words!r}; keep one"
                )
        named = [StatedPrecision(**dict(zip(self.chosen, mix, strict=True))) for mix in product(*self.chosen.values())]
        value = OpenPrecisions(
            is_open=bool(self._opened) and not self._listed,
            named=tuple(named) if self.chosen else (),
            excluded=tuple(dict.fromkeys(self._excluded)) if self._opened else (),
        )
        self._claims.claim("precisions", value, words)

    def _claim(self, field: str, item: _Format, words: str) -> None:
        if len(item.dtypes) > 1:
            self._listed = self._listed or field == "weights"
            self.choose(field, item.dtypes, words)
            return
        for dtype in item.dtypes:
            self._claims.claim(field, dtype, words)

    def _mentioned(self) -> list[_Format]:
        """Every format that is named, in order."""
        page, formats = self._page, list[_Format]()
        for match in page.search(FORMAT):
            if match.group().lower() == "q4" and not _IS_QUANTISED.search(_near(page, match)):
                words = page.clause_text(*match.span())[:80]
                if not _IS_QUARTER.search(_near(page, match)):
                    self._claims.leave_unread(
                        f"'Q4' in {words!r} may be a quarter or a format; write int4 for the latter"
                    )
                else:
                    self._claims.reading(f"'Q4' in {words!r} is read as a quarter of the year")
                page.take(*match.span())
                continue
            denied = self._is_denied(match)
            if not denied and _METHOD.fullmatch(match.group()) and _names_bits_beside(page, match):
                page.take(*match.span())  # "int4 AWQ", "AWQ 4-bit": one format, said with its method
                continue
            formats.append(_Format((cast("DType", match.lastgroup),), *match.span(), denied))
        for match in page.search(_BITS):
            if self._opened and self._is_least(match):
                continue
            denied = self._is_denied(match)
            if any(item.start <= match.end() + 2 and match.start() - 2 <= item.end for item in formats):
                page.take(*match.span())
                continue
            bits = int(match["bits"])
            is_of_weights = _OTHER_ROLES.match(page.text, match.end()) is None
            same = [known for known in formats if element_bytes(known.dtypes[0]) * 8 == bits and not known.denied]
            if not denied and is_of_weights and same:
                page.take(*match.span())  # "8 bit, i.e. the FP8 file": the format that has so many bits is named
                continue
            dtype = _BIT_FORMATS[match["bits"]]
            if not denied:
                self._claims.reading(f"{match.group().strip()!r} read as {dtype}")
            formats.append(_Format((dtype,), *match.span(), denied))
        formats.sort(key=lambda item: item.start)
        for before, after in list(pairwise(formats)):
            is_finer = before.dtypes == ("fp4",) and after.dtypes[0].endswith("fp4")
            if is_finer and _OPENS_BRACKET.fullmatch(page.text[before.end : after.start]):
                page.take(before.start, before.end)  # "FP4 (MXFP4)": which of them
                formats.remove(before)
        for i, (before, after) in enumerate(pairwise(formats), start=1):
            gap = page.text[before.end : after.start]
            if formats[i - 1].denied and (_NEITHER.fullmatch(gap) or (self._opened and _AND.fullmatch(gap))):
                formats[i] = replace(after, denied=True)
        return formats

    def _is_denied(self, match: re.Match[str]) -> bool:
        if self._page.is_negated(*match.span()):
            return True
        if (only := _ONLY_IF.match(self._page.original, match.end())) is not None:
            words = f"{match.group()}{only.group()}".strip()
            self._claims.leave_unread(f"{words!r} is for where another format does not do, and was not planned for")
            return True
        before = self._page.original[max(0, match.start() - 40) : match.start()]
        is_conditional = any(start <= match.start() < end for start, end in self._claims.conditional)
        if _FALLBACK.search(before) and not is_conditional:
            self._claims.leave_unread(
                f"{match.group()!r} is for where another format does not do, and was not planned for"
            )
            return True
        is_served = (FORMAT.match(self._page.original, served.end()) for served in self._page.search(_SERVED_IN))
        if _CAME_IN.search(before) and any(is_served):
            self._claims.reading(f"{match.group()!r} is what the checkpoint came in, not what it is served in")
            return True
        if _NOT_READY.match(self._page.original, match.end()) or _ONCE.search(before):
            self._claims.reading(f"{match.group()!r} was tried once or is not ready, and was not read")
            return True
        return bool(self._opened) and _EXCEPT.search(before[-30:]) is not None

    def _is_least(self, match: re.Match[str]) -> bool:
        """Whether bits are a lower bound: then narrower formats are excluded."""
        before = self._page.original[max(0, match.start() - 20) : match.start()]
        if not _LEAST_BEFORE.search(before) and not _OR_MORE.match(self._page.original, match.end()):
            return False
        self._excluded.extend(dtype for dtype in DTYPES if element_bytes(dtype) * 8 < int(match["bits"]))
        self._words.append(self._page.take(*match.span()))
        return True


def _choices(page: Page, formats: Sequence[_Format]) -> list[_Format]:
    """`formats`, with those that are joined by "or" as a single choice."""
    choices: list[_Format] = []
    run: list[_Format] = []
    for item in formats:
        if run and not any(joint.fullmatch(page.text[run[-1].end : item.start]) for joint in (_OR, _COMMA, _AND)):
            choices.extend(_chosen(page, run))
            run = []
        run.append(item)
    return [*choices, *_chosen(page, run)]


def _chosen(page: Page, run: Sequence[_Format]) -> Sequence[_Format]:
    """A list of formats as a single choice where "or" stands before its last, or "one of" beside it."""
    before = page.text[max(0, run[0].start - 20) : run[0].start] if run else ""
    one_of = len(run) > 1 and (_ONE_OF_BEFORE.search(before) or _ONE_OF_AFTER.match(page.text, run[-1].end))
    is_or = [_OR.fullmatch(page.text[left.end : right.start]) is not None for left, right in pairwise(run)]
    if not one_of and not any(is_or):
        return run
    length = len(run)
    if not one_of:
        first = is_or.index(True)
        length = next((i + 1 for i in range(first, len(is_or)) if not is_or[i]), len(run))
    joined, others = run[:length], run[length:]
    dtypes: list[DType] = [dtype for item in joined for dtype in item.dtypes]
    return [_Format(tuple(dict.fromkeys(dtypes)), joined[0].start, joined[-1].end), *_chosen(page, others)]


_OTHER_ROLES = Gated(r"\s?(?:for\s(?:the\s)?)?(?:kv|cache|activations?)|\s?的?(?:kv|缓存)")


def _near(page: Page, match: re.Match[str]) -> str:
    return page.text[max(0, match.start() - 24) : match.end() + 24]


def _names_bits_beside(page: Page, match: re.Match[str]) -> bool:
    """Whether a format or a number of bits stands right beside the name of a method."""
    near = page.text[max(0, match.start() - 10) : match.start()] + " . " + page.text[match.end() : match.end() + 10]
    return bool(FORMAT.search(near) or _BITS.search(near))
