"""Characters that nobody reads as letters: invisible ones, arrows, emoji.

`visible` drops what leaves no trace on a screen; `spoken` writes arrows alike and emoji as the separators that they
are used as. It changes no letter and no digit.
"""

from __future__ import annotations

import re

from .gated import Gated

# Everything of Unicode's category Cf (zero width, bidi, soft hyphen, tags), variation selectors, the grapheme joiner,
# blank Hangul fillers, the keycap around a digit, colours of a terminal, and control characters but line ends and tabs.
_INVISIBLE = Gated(
    "\x1b\\[[0-9;]{0,20}[A-Za-z]|"
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20e0-\u20e4\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]",
    flags=0,
)
# Arrows and pointing hands to the right, and the longer ones of ASCII ("->" and "=>" stay: the latter may be "≥").
_ARROW = Gated(
    "[→⇒⇨⇾⇢↦↠⇉⇛⟶⟹⟼➔➙➛➜➝➞➟➠➡➢➣➤➥➦➧➨➩➪➫➬➭➮➯➱➲➳➵➸➺➻➼➽➾▶►▸▹▻⏩⏭⭢⮕\U0001f449\U0001f846\U0001f852\U0001f862\U0001f872\U0001f882"
    "\U0001f892]|(?<![-<])-{2,4}>|(?<![=<>])={2,4}>|(?<=[\\dkK\\s])~>",
    flags=0,
)
_EMOJI = (
    "[\u2600-\u2712\u2717-\u2767\u27c0\u2b12-\u2b2f\u2b50-\u2b5a\U0001f000-\U0001f800\U0001f8b0-\U0001faff■□▪▫●○◆◇★☆]"
)
_EMOJI_OF_NUMBER = re.compile(rf"(?<=\d)\s?{_EMOJI}{{1,20}}\s?(?=[A-Za-z]|$)")
_EMOJIS = re.compile(rf"\s?{_EMOJI}(?:\s?{_EMOJI}){{0,40}}\s?")


def visible(text: str) -> str:
    """The text without characters that a reader cannot see, so that none of them splits a word or a number."""
    return _INVISIBLE.sub("", text)


def spoken(text: str) -> str:
    """The text with one kind of arrow and commas for emoji; an emoji between a number and its word is dropped."""
    return _EMOJIS.sub(", ", _EMOJI_OF_NUMBER.sub(" ", _ARROW.sub("→", text)))
