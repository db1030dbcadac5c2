"""The accelerator catalogue by names as people write them, and the facts of a cluster of one kind of accelerator.

A name's rule: a bare family name means its usual data-centre variant (A100: 80 GB SXM; H100, H200, B200: SXM);
"PCIe", "NVL", "SXM" and a memory size choose another one and must fit. What the catalogue does not have is refused with
the nearest names, never replaced by a cousin (L40 is no L40S, A800 no A100).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from ..errors import InputError, MissingFieldError, UnknownNameError
from .accelerators import Accelerator
from .dtypes import COMPUTE_KEYS, DType

_DATA_PACKAGE = __name__.rpartition(".")[0]

# The family of each entry and its place in the order of preference: the first that fits the qualifiers is meant.
_FAMILIES: dict[str, tuple[str, ...]] = {
    "a100": ("a100-80gb-sxm", "a100-40gb-sxm", "a100-80gb-pcie", "a100-40gb-pcie"),
    "h100": ("h100-sxm", "h100-pcie", "h100-nvl"),
    "h200": ("h200-sxm",),
    "b200": ("b200-sxm",),
    "b300": ("b300-sxm",),
    "v100": ("v100-32gb-sxm",),
    "4090": ("rtx-4090",),
    "5090": ("rtx-5090",),
    "6000ada": ("rtx-6000-ada",),
    "rtxpro6000": ("rtx-pro-6000-blackwell-server",),
    "v5e": ("tpu-v5e",),
    "v5p": ("tpu-v5p",),
    "v6e": ("tpu-v6e",),
    "v7x": ("tpu-v7x",),
}
_SPELLINGS: dict[str, str] = {
    "rtx4090": "4090", "geforcertx4090": "4090", "geforce4090": "4090", "rtx5090": "5090", "geforcertx5090": "5090",
    "geforce5090": "5090", "rtx6000ada": "6000ada", "rtxpro6000blackwell": "rtxpro6000", "pro6000": "rtxpro6000",
    "rtxpro6000blackwellserver": "rtxpro6000", "rtxpro6000server": "rtxpro6000", "rtxpro6000se": "rtxpro6000",
    "tpuv5e": "v5e", "tpuv5litepod": "v5e", "tpuv5p": "v5p", "tpuv6e": "v6e", "trillium": "v6e", "tpuv7x": "v7x",
    "tpuv7": "v7x", "ironwood": "v7x", "instinctmi300x": "mi300x", "instinctmi325x": "mi325x",
    "instinctmi355x": "mi355x", "instinctmi250x": "mi250x", "mi300": "mi300x", "mi325": "mi325x", "mi355": "mi355x",
    "gb200superchip": "gb200", "hpugaudi2": "gaudi2", "hpugaudi3": "gaudi3", "intelgaudi2": "gaudi2",
    "intelgaudi3": "gaudi3",
}  # fmt: skip
_FORMS = ("sxm", "pcie", "nvl")
# Words that may stand around a name and say nothing of the variant.
_NOISE = re.compile(
    r"\b(?:nvidia|tesla|amd|intel|google|tensor core|core|gpus?|cards?|accelerators?|hbm2e?|hbm3e?|oam|server edition|server)\b"
)
_MEMORY = re.compile(r"(?<![a-z0-9.])(\d{1,4})\s?(?:gib|gb|g)(?![a-z0-9])")
_SYSTEM = re.compile(r"\b(dgx|hgx)\b")


@dataclass(frozen=True, slots=True)
class NamedAccelerator:
    """What a name stands for. `gpus_per_node` is set where it names a system (DGX, HGX, NVL72), not only a part."""

    accelerator: Accelerator
    gpus_per_node: int | None


@cache
def all_accelerators() -> tuple[Accelerator, ...]:
    """Every entry of the catalogue, in its order."""
    text = files(_DATA_PACKAGE).joinpath("data/accelerators.json").read_text(encoding="utf-8")
    return tuple(Accelerator.model_validate(row) for row in json.loads(text)["accelerators"])


@cache
def _by_id() -> dict[str, Accelerator]:
    return {accelerator.id: accelerator for accelerator in all_accelerators()}


def find_accelerator(name: str) -> Accelerator:
    """The accelerator that `name` stands for.

    Raises:
        UnknownNameError: the catalogue has none of this name; it carries the nearest known ids.
        InputError: the family is known but not with this memory or form.
    """
    return read_accelerator_name(name).accelerator


def read_accelerator_name(name: str) -> NamedAccelerator:
    """As `find_accelerator`, with the GPUs per node that a system's name implies (DGX and HGX: 8; GB200 trays: 4)."""
    written = name.strip()
    if not written or len(written) > 200:
        raise InputError("an accelerator name must have 1 to 200 characters")
    if written.lower() in _by_id():
        return NamedAccelerator(_by_id()[written.lower()], None)
    words = _NOISE.sub(" ", written.lower().replace("_", " "))
    system = _SYSTEM.search(words) is not None
    words = _SYSTEM.sub(" ", words)
    memory = _MEMORY.search(words)
    words = _MEMORY.sub(" ", words)
    rack = re.search(r"\bnvl\s?\d{1,3}\b", words) is not None
    words = re.sub(r"\bnvl\s?\d{1,3}\b", " ", words)
    form = next((form for form in _FORMS if re.search(rf"{form}\d?\b", words)), None)
    words = re.sub(r"(?:sxm|pcie|nvl)[2-9]?\b", " ", words)
    key = re.sub(r"[^a-z0-9]", "", words)
    key = _SPELLINGS.get(key, key)
    ids = _FAMILIES.get(key, (key,))
    if ids[0] not in _by_id():
        raise UnknownNameError("accelerator", written, _nearest(key))
    fitting = [_by_id()[i] for i in ids if _fits(_by_id()[i], memory[1] if memory else None, form)]
    if not fitting:
        raise InputError(f"unknown accelerator {written!r}: the catalogue has {', '.join(ids)}")
    chosen = fitting[0]
    return NamedAccelerator(chosen, chosen.typical_node_accelerators if system or rack else None)


def _fits(accelerator: Accelerator, memory_gb: str | None, form: str | None) -> bool:
    """Whether the qualifiers of a name fit an entry; the memory may be the marketing or the reported figure."""
    if form is not None and _form(accelerator) not in (form, None):
        return False
    if memory_gb is None:
        return True
    figures = [accelerator.memory_gb_marketing, accelerator.memory_gib_reported]
    figures.append(accelerator.memory_bytes()[0] / 1e9)
    return any(figure is not None and abs(figure - int(memory_gb)) <= 1.0 for figure in figures)


def _form(accelerator: Accelerator) -> str | None:
    words = f"{accelerator.id} {accelerator.form_factor or ''}".lower()
    if "nvlink-bridged" in words or accelerator.id.endswith("-nvl"):
        return "nvl"
    return next((form for form in _FORMS if form in words), None)


def _nearest(key: str) -> tuple[str, ...]:
    keys = {re.sub(r"[^a-z0-9]", "", i): i for i in _by_id()}
    keys |= {family: ids[0] for family, ids in _FAMILIES.items()}
    found = dict.fromkeys(keys[match] for match in get_close_matches(key[:60], list(keys), n=6, cutoff=0.3))
    return tuple(found)[:3]


@dataclass(frozen=True, slots=True)
class HardwareFacts:
    """A cluster of `nodes` with `gpus_per_node` accelerators of one kind. Bandwidths are bytes/s, one way per device."""

    accelerator: Accelerator
    nodes: int
    gpus_per_node: int
    memory_bytes: int
    memory_provenance: str
    memory_bandwidth_bytes_s: float
    stated_intra_bw_bytes_s: float | None
    stated_inter_bw_bytes_s: float | None

    @property
    def intra_bw_bytes_s(self) -> float:
        """Send rate inside a domain.

        Raises:
            MissingFieldError: neither the cluster nor the accelerator states one.
        """
        return self._known(self.stated_intra_bw_bytes_s, "intra_node_bw_gb_s", "collectives inside a node need it")

    @property
    def inter_bw_bytes_s(self) -> float:
        """Send rate between domains.

        Raises:
            MissingFieldError: neither the cluster nor the accelerator states one.
        """
        return self._known(self.stated_inter_bw_bytes_s, "inter_node_bw_gb_s", "traffic between nodes needs it")

    def _known(self, value: float | None, field: str, why: str) -> float:
        if value is None:
            raise MissingFieldError(field, f"hardware ({self.accelerator.id})", why)
        return value

    @property
    def gpus(self) -> int:
        """Accelerators in all."""
        return self.nodes * self.gpus_per_node

    @property
    def scale_up_domain(self) -> int:
        """Accelerators that reach each other at the intra-node rate: the larger of node and scale-up domain."""
        return self.nodes_per_domain * self.gpus_per_node

    @property
    def nodes_per_domain(self) -> int:
        """Whole nodes of one domain (18 in a GB200 NVL72, 1 for most)."""
        return max(1, (self.accelerator.scale_up_domain_accelerators or 1) // self.gpus_per_node)

    def group_is_inside_domain(self, devices: tuple[str, ...] | list[str] | frozenset[str]) -> bool:
        """Whether all `devices` (`n<node>.g<gpu>`) are in one domain; domains are runs of consecutive nodes."""
        return len({self._domain(device) for device in devices}) <= 1

    def _domain(self, device: str) -> int:
        match = _DEVICE.fullmatch(device)
        if match is None:
            raise InputError(f"device {device[:40]!r} is not of the form n<node>.g<gpu>")
        return int(match[1]) // self.nodes_per_domain

    def peak_flops(self, dtype: DType) -> float:
        """Dense peak of one accelerator for matmuls in `dtype`, in FLOP/s.

        A part without units for a format computes at the next wider format that it has: 4-bit floats at fp8, then 16
        bits; fp8 and int8 at 16 bits; weight-only int4 without int units at 16 bits; bf16 and fp16 stand in for each
        other, fp32 for both.

        Raises:
            MissingFieldError: the accelerator states no peak that could stand in.
        """
        peaks = self.accelerator.dense_peak_tflops
        for key in (*COMPUTE_KEYS[dtype], *_FALLBACKS[dtype]):
            found: float | None = getattr(peaks, key)
            if found is not None:
                return found * 1e12
        raise MissingFieldError(f"dense_peak_tflops.{dtype}", f"accelerator {self.accelerator.id}", "compute needs it")


_DEVICE = re.compile(r"n(\d{1,9})\.g(\d{1,9})")
_SIXTEEN = ("bf16", "fp16", "fp32")
_FALLBACKS: dict[DType, tuple[str, ...]] = {
    "fp32": (),
    "bf16": ("fp16", "fp32"),
    "fp16": ("bf16", "fp32"),
    "fp8": _SIXTEEN,
    "mxfp8": _SIXTEEN,
    "int8": _SIXTEEN,
    "int4": _SIXTEEN,
    "fp4": ("fp8", *_SIXTEEN),
    "mxfp4": ("fp8", *_SIXTEEN),
    "nvfp4": ("fp8", *_SIXTEEN),
}


def hardware_facts(
    accelerator: str | Accelerator,
    nodes: int,
    gpus_per_node: int,
    intra_node_bw_gb_s: float | None = None,
    inter_node_bw_gb_s: float | None = None,
) -> HardwareFacts:
    """The facts of a cluster; stated bandwidths (10^9 bytes/s per accelerator, one way) win over the catalogue's.

    Raises:
        UnknownNameError: no such accelerator.
        MissingFieldError: the accelerator states no memory.
        InputError: there are no nodes or no accelerators in them.
    """
    part = find_accelerator(accelerator) if isinstance(accelerator, str) else accelerator
    if nodes < 1 or gpus_per_node < 1:
        raise InputError("hardware needs at least one node and one accelerator per node")
    memory, provenance = part.memory_bytes()
    intra = intra_node_bw_gb_s if intra_node_bw_gb_s is not None else _intra_gb_s(part)
    inter = inter_node_bw_gb_s if inter_node_bw_gb_s is not None else _inter_gb_s(part)
    return HardwareFacts(
        accelerator=part,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        memory_bytes=memory,
        memory_provenance=provenance,
        memory_bandwidth_bytes_s=part.memory_bandwidth_gb_s * 1e9,
        stated_intra_bw_bytes_s=None if intra is None else intra * 1e9,
        stated_inter_bw_bytes_s=None if inter is None else inter * 1e9,
    )


def _intra_gb_s(part: Accelerator) -> float | None:
    if part.intra_node_bw_gb_s_unidirectional_per_accelerator is not None:
        return part.intra_node_bw_gb_s_unidirectional_per_accelerator
    if part.intra_node_bw_gb_s_bidirectional_per_accelerator is not None:
        return part.intra_node_bw_gb_s_bidirectional_per_accelerator / 2
    return part.intra_node_p2p_gb_s_unidirectional or part.host_pcie_gb_s_unidirectional


def _inter_gb_s(part: Accelerator) -> float | None:
    if part.typical_nic_gb_s_unidirectional_per_accelerator is not None:
        return part.typical_nic_gb_s_unidirectional_per_accelerator
    nic_gbit_s = part.typical_nic_gbit_s_per_accelerator
    return None if nic_gbit_s is None else nic_gbit_s / 8
