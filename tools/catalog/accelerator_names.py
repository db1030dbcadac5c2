"""Names of accelerators as people write them: which entries a name may mean, and where names stand in running text.

All that is known of names is read off the catalogue: an entry's `names`, the `brands` and vendors that may stand before
one, and the shape that they share, by which an accelerator that the catalogue lacks ("MI450X", "H900") is still seen
as one. Names of systems (DGX, HGX) and of clouds' machines (p5.48xlarge) are data too; words of form and memory, and of
racks (NVL72), are the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .accelerators import Accelerator

_RACK = re.compile(r"\bnvl\s?\d{2,3}\b(?!\s?gi?b)")
_FORM = re.compile(r"(sxm|pcie|pci-e|nvl)\d?(?![a-z0-9])")
_MEMORY = re.compile(r"(?<![a-z0-9.])(\d{1,4})\s?(?:gib|gb|g)(?![a-z0-9])")
# Words that may stand around a name and say nothing of the variant.
_COMMON = (
    r"tensor core|gpus?|npus?|cards?|accelerators?|hbm[23]e?|oam|server edition|server|workstation edition|superchip"
)
_QUALIFIER = (
    r"(?:[ \t-]?(?:sxm\d?|pci-?e|nvl(?:[ \t]?\d{2,3})?)(?![A-Za-z0-9])|[ \t-]?\d{2,3}[ \t]?g(?:i?b)?(?![A-Za-z0-9]))"
)


@dataclass(frozen=True, slots=True)
class NameWords:
    """A name cut apart: the family, what else it says, and whether it names a system rather than a part."""

    family: str
    memory_gb: str | None
    form: str | None
    is_system: bool


class AcceleratorNames:
    """The names of a catalogue's entries; `known_elsewhere` are names that are seen in text and stand for none."""

    def __init__(
        self,
        accelerators: Iterable[Accelerator],
        known_elsewhere: Iterable[str],
        systems: Iterable[str] = (),
        machines: Iterable[str] = (),
    ) -> None:
        entries = tuple(accelerators)
        brands, systems = _brands(entries), tuple(re.escape(name.lower()) for name in systems)
        self._system = re.compile(rf"\b(?:{'|'.join(systems) or '(?!)'})\b")
        self._noise = re.compile(rf"\b(?:{'|'.join(brands)}|{_COMMON})\b")
        self._glued = re.compile(rf"^(?:{'|'.join(brands)})+(?=.*\d)")
        self._by_family: dict[str, list[Accelerator]] = {}
        for entry in entries:
            for family in dict.fromkeys(self.cut(name).family for name in entry.names or (entry.id,)):
                self._by_family.setdefault(family, []).append(entry)
        names = [name for entry in entries for name in entry.names]
        self.mention = _mention_pattern(names, tuple(known_elsewhere), (*brands, *systems), machines)

    def cut(self, name: str) -> NameWords:
        """The parts of one name."""
        words = self._noise.sub(" ", re.sub(r"[_()\-,]", " ", name.lower().replace("pci-e", "pcie")))
        is_system = self._system.search(words) is not None or _RACK.search(words) is not None
        words = _RACK.sub(" ", self._system.sub(" ", words))
        memory, form = _MEMORY.search(words), _FORM.search(words)
        family = self._glued.sub("", re.sub(r"[^a-z0-9]", "", _FORM.sub(" ", _MEMORY.sub(" ", words))))
        return NameWords(family, memory[1] if memory else None, form[1] if form else None, is_system)

    def of_family(self, family: str) -> tuple[Accelerator, ...]:
        """The entries of a family, the usual one first; none where the catalogue has no such family."""
        return tuple(self._by_family.get(family, ()))

    @property
    def families(self) -> dict[str, str]:
        """Each family as `cut` gives it, and the id of its usual entry."""
        return {family: entries[0].id for family, entries in self._by_family.items()}


def _brands(entries: Iterable[Accelerator]) -> tuple[str, ...]:
    """Vendors and brands as patterns, in lower case, the longest first."""
    words = {entry.vendor for entry in entries if entry.vendor}.union(*(entry.brands for entry in entries))
    return tuple(sorted((re.escape(word.lower()) for word in words), key=len, reverse=True))


def _spelled(name: str) -> str:
    """A name as a pattern: its words may be joined, or parted by a blank or a hyphen."""
    return r"[ \t-]?".join(re.escape(word) for word in name.split())


def _shapes(names: Iterable[str]) -> Iterator[str]:
    """Patterns of names like those of the catalogue, for accelerators that it does not have.

    A name's digits stand for any as many. One letter with digits is read so only in capitals and with three digits: all
    else that is so short is a word of something else ("T5", "b16").
    """
    for name in names:
        words = name.split()
        number = re.fullmatch(r"([^\W\d]*)(\d+)[A-Za-z]{0,2}", words[-1])
        if number is None or not (len(words) > 1 or number[1]):
            continue
        letters, digits = re.escape(number[1]), len(number[2])
        lead = "".join(re.escape(word) + r"[ \t-]?" for word in words[:-1])
        if len(words) > 1:
            yield rf"{lead}{letters or '[a-z]?'}\d{{{digits}}}(?!x\d)[a-z]{{0,2}}\d?"
        elif digits >= 3 and len(number[1]) > 1:
            yield rf"{letters}\d{{{digits}}}(?!x\d)[a-z]{{0,2}}"
        elif digits >= 3:
            yield rf"(?-i:(?<!-){letters}[1-9]\d{{{digits - 1}}}[A-Z]?)"


def machine_key(name: str) -> str:
    """A cloud's name of a machine, as it is compared: `Standard_ND96isr_H100_v5` and `nd96isr h100 v5` are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("standard")


def _mention_pattern(
    names: list[str], elsewhere: tuple[str, ...], before: tuple[str, ...], machines: Iterable[str]
) -> re.Pattern[str]:
    """A name in running text, `before` it brands and systems, and what qualifies it; or the name of a machine.

    Bounded, no nested repetition.
    """
    machine = "|".join("[ _-]".join(map(re.escape, re.split("[ _-]", name))) for name in machines)
    known = (_spelled(name) for name in sorted({*names, *elsewhere}, key=len, reverse=True))
    alternatives = "|".join((*known, *dict.fromkeys(_shapes(names))))
    return re.compile(
        r"(?:(?<![A-Za-z0-9.])|(?<=\d[x×*]))"
        rf"(?:(?:standard[ _-])?(?:{machine or '(?!)'})(?:s\b)?(?![A-Za-z0-9]|\.\d)|"
        rf"(?:(?:{'|'.join(before)})[ \t-]{{1,2}}){{0,3}}"
        rf"(?:{alternatives})(?:[ \t-]?ti(?![A-Za-z0-9]))?"
        rf"{_QUALIFIER}{{0,3}}(?:s\b)?(?![a-wyz0-9]|x(?!\d{{1,4}}(?![A-Za-z0-9]))|\.\d)(?![ \t]*(?:tokens?|个?词)))",
        re.IGNORECASE | re.ASCII,
    )
