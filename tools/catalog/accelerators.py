"""Accelerators: the frozen model of one, the catalogue of those that ship, and their names as people write them.

All TFLOP/s are dense peaks of one accelerator; bandwidths are 10^9 bytes/s, links one way. A figure that is not known
is `None` and asking for it is an error that names it, never a default.

All that is known of names is read off the catalogue: an entry's `names`, the `brands` and vendors that may stand
before one, and the shape that they share, by which an accelerator that the catalogue lacks ("MI450X", "H900") is still
seen as one. Names of systems (DGX, HGX) and of clouds' machines (p5.48xlarge) are data too; words of form and memory,
and of racks (NVL72), are the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Struct
from pydantic import Field

from ...tools.input import bounds
from ..errors import MissingFieldError
from ..frozen import Frozen
from .dtypes import DType

MAX_NAME_CHARS = 200
# At least one character that is no blank.
AcceleratorName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS, pattern=r"\S")]
TFLOPs = Annotated[float, bounds.TFLOPS.real()]
Bandwidth = Annotated[float, bounds.BANDWIDTH_GB_S.real()]
Gibibytes = Annotated[float, bounds.MEMORY_BYTES.over(2**30).real()]
Mebibytes = Annotated[float, bounds.MEMORY_BYTES.over(2**20).real()]
Bytes = Annotated[int, bounds.MEMORY_BYTES.whole()]
Count = Annotated[int, bounds.DEGREE.whole()]
Watts = Annotated[float, bounds.WATTS.real()]
Ratio = Annotated[float, bounds.FLOP_PER_BYTE.real()]
USDPerHour = Annotated[float, bounds.USD.real()]
# Share of a part's peak, from the least that is plausible.
Share = Annotated[float, bounds.USABLE_SHARE.real()]


class DensePeakTFLOPS(Frozen):
    """Dense matmul peaks by number format, in TFLOP/s; `None` where the accelerator has no such unit."""

    fp32: TFLOPs | None = None
    bf16: TFLOPs | None = None
    fp16: TFLOPs | None = None
    fp8: TFLOPs | None = None
    fp4: TFLOPs | None = None
    int8: TFLOPs | None = None
    int4: TFLOPs | None = None


class Accelerator(Frozen):
    """One kind of accelerator, from the catalogue or of a user's own."""

    id: AcceleratorName
    # How people write it, the family's name shared by its variants, and what may stand before that.
    names: tuple[AcceleratorName, ...] = ()
    brands: tuple[AcceleratorName, ...] = ()
    vendor: str | None = None
    architecture: str | None = None
    form_factor: str | None = None
    memory_gb_marketing: Gibibytes | None = None
    memory_type: str | None = None
    memory_bytes_reported: Bytes | None = None
    memory_gib_reported: Gibibytes | None = None
    driver_memory_mib_from_memory_unverified: Mebibytes | None = None
    # Total memory that cudaMemGetInfo reports to a process, as engines log it: the driver reserves some.
    memory_gib_to_processes: Gibibytes | None = None
    memory_bandwidth_gb_s: Bandwidth | None = None
    # Units that work is spread over (SMs of NVIDIA, compute units of AMD), and the cache that they share.
    multiprocessors: Count | None = None
    l2_bytes: Annotated[int, bounds.CACHE_BYTES.whole()] | None = None
    dense_peak_tflops: DensePeakTFLOPS
    intra_node_interconnect: str | None = None
    intra_node_bw_gb_s_unidirectional_per_accelerator: Bandwidth | None = None
    intra_node_bw_gb_s_bidirectional_per_accelerator: Bandwidth | None = None
    intra_node_p2p_gb_s_unidirectional: Bandwidth | None = None
    # False: the GPUs of a node do not reach each other's memory over PCIe, and what they send goes through the host's.
    peer_access: bool | None = None
    scale_up_domain_accelerators: Count | None = None
    typical_node_accelerators: Count | None = None
    typical_nic_gbit_s_per_accelerator: Bandwidth | None = None
    typical_nic_gb_s_unidirectional_per_accelerator: Bandwidth | None = None
    host_pcie_gb_s_unidirectional: Bandwidth | None = None
    # Where the host's memory is reached by another link than PCIe (NVLink-C2C).
    host_link_gb_s_unidirectional: Bandwidth | None = None
    tdp_w: Watts | None = None
    on_demand_usd_per_hour: tuple[USDPerHour, USDPerHour] | None = None
    price_source: str | None = None
    measured_max_matmul_tflops: dict[str, TFLOPs] | None = None
    ridge_flop_per_byte: dict[str, Ratio] | None = None
    # Accelerators whose measured kernels stand in for its own, nearest first; if empty, the first of its architecture.
    kernels_like: tuple[AcceleratorName, ...] = ()
    kernels_like_reason: str | None = None
    source: tuple[str, ...] = ()
    confidence: str | None = None
    notes: str | None = None
    # A user's own: share of the peak that large matmuls reach (MFU), share of the memory bandwidth that is reached.
    compute_efficiency: Share | None = None
    memory_efficiency: Share | None = None

    @property
    def generation(self) -> str:
        """The first word of its architecture in small letters, empty where none is stated."""
        return (self.architecture or "").strip().partition(" ")[0].lower()

    @property
    def usd_per_hour(self) -> float | None:
        """Midpoint of the on-demand price range in USD per hour; `None` if unknown."""
        return None if self.on_demand_usd_per_hour is None else sum(self.on_demand_usd_per_hour) / 2

    @property
    def host_gb_s(self) -> float | None:
        """Peak rate in 10^9 bytes/s at which an accelerator reads the host's memory; `None` if unknown."""
        return self.host_link_gb_s_unidirectional or self.host_pcie_gb_s_unidirectional

    def computes_in(self, wanted: DType) -> DType:
        """`wanted`, or fp16 in place of a bf16 that this part has no units for (V100, T4)."""
        peaks = self.dense_peak_tflops
        return "fp16" if wanted == "bf16" and peaks.bf16 is None and peaks.fp16 is not None else wanted

    def memory_bytes(self) -> tuple[int, str]:
        """Memory of one accelerator in bytes, and which figure that is.

        The reported figure, else the driver's, else the marketing GiB less 0.5% (rule ME001). Raises MissingFieldError:
        the accelerator states no memory at all.
        """
        if self.memory_bytes_reported is not None:
            return self.memory_bytes_reported, "reported by the device"
        if self.memory_gib_reported is not None:
            return round(self.memory_gib_reported * 2**30), "reported by the device"
        if self.driver_memory_mib_from_memory_unverified is not None:
            return round(self.driver_memory_mib_from_memory_unverified * 2**20), "driver's figure (unverified)"
        if self.memory_gb_marketing is not None:
            return round(self.memory_gb_marketing * 2**30 * 0.995), "marketing GiB less 0.5%"
        raise MissingFieldError("memory_gb_marketing", f"accelerator {self.id}", "memory decides what fits")

    def memory_bytes_to_processes(self) -> int:
        """Bytes that an engine takes its share of: what cudaMemGetInfo reports, where that was logged, else all memory.

        Raises MissingFieldError: the accelerator states no memory at all.
        """
        if self.memory_gib_to_processes is not None:
            return round(self.memory_gib_to_processes * 2**30)
        return self.memory_bytes()[0]


_RACK = re.compile(r"\bnvl\s?\d{2,3}\b(?!\s?gi?b)")
_FORM = re.compile(r"(sxm|pcie|pci-e|nvl)\d?(?![a-z0-9])")
_MEMORY = re.compile(r"(?<![a-z0-9.])(\d{1,4})\s?(?:gib|gb|g)(?![a-z0-9])")
# Words that may stand around a name and say nothing of the variant.
_COMMON = (
    r"tensor core|generation|gpus?|npus?|cards?|accelerators?|hbm[23]e?|oam|server edition|server|workstation edition|"
    r"superchip"
)
_QUALIFIER = (
    r"(?:[ \t-]?(?:sxm\d?|pci-?e|nvl(?:[ \t]?\d{2,3}(?![\d]|[ \t]?gi?b(?![a-z])))?)(?![A-Za-z0-9])|"
    r"[ \t-]?\d{2,3}[ \t]?g(?:i?b)?(?![A-Za-z0-9]))"
)


class NameWords(Struct, frozen=True):
    """A name cut apart: the family, what else it says, and whether it names a system rather than a part."""

    family: str
    memory_gb: str | None
    form: str | None
    is_system: bool


class AcceleratorNames:
    """The names of a catalogue's entries; `known_elsewhere` are names recognised in text that have no entry."""

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

    A name's digits match any digits of that length. One letter with digits counts only in capitals and with three
    digits: shorter words mean something else ("T5", "b16").
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
    """A cloud machine's name as it is compared: `Standard_ND96isr_H100_v5` and `nd96isr h100 v5` are equal."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("standard")


def _mention_pattern(
    names: list[str], elsewhere: tuple[str, ...], before: tuple[str, ...], machines: Iterable[str]
) -> re.Pattern[str]:
    """Matches a name in running text with its qualifiers, brands and systems (`before`) in front; or a machine's name.

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
