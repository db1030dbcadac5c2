"""What a text gives a command beside its flags: a number of GPUs, and the hardware that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..plan.elements import as_int, as_list, as_mapping, as_str

_MOST_GPUS = 100_000
_LISTS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_DEVICE = re.compile(r"\d{1,4}|(?:GPU|MIG)-[\w-]{1,60}")
_LIMITS = ("nvidia.com/gpu", "amd.com/gpu", "gpu")
# Node labels for the accelerator or the cloud machine.
_LABELS = re.compile(
    r"(?:nvidia\.com/gpu\.product|amd\.com/gpu\.product-name|cloud\.google\.com/gke-accelerator"
    r"|(?:beta\.|node\.)?kubernetes\.io/instance-type|accelerator(?:[_-]type)?|gpu(?:[_-](?:type|name|model))?)"
)
# Slurm flags for the GPUs of a node, with a kind before the number.
_GRES = re.compile(r"--(?:gres|gpus-per-node|gpus)[= \t](?:gpu:)?([a-zA-Z][\w-]{1,40}):\d{1,3}\b")


class Allotment(Struct, frozen=True, eq=False):
    """GPUs that a text gives to all processes that share this object; `words` tell where."""

    count: int
    words: str


def listed(environment: Mapping[str, str]) -> Allotment | None:
    """The GPUs that variables list; `None` if none does."""
    for name in _LISTS:
        parts = [part.strip() for part in environment.get(name, "").split(",")]
        if all(_DEVICE.fullmatch(part) for part in parts):
            return Allotment(len(parts), f"{name}={environment[name][:80]}")
    return None


def of_docker(words: Sequence[str]) -> Allotment | None:
    """The GPUs that `docker run` names or counts; `None` if it states none."""
    for place, word in enumerate(words):
        if not word.startswith("--gpus"):
            continue
        value = word.partition("=")[2] if word.startswith("--gpus=") else next(iter(words[place + 1 : place + 2]), "")
        plain = value.strip("\"'").removeprefix("count=")
        devices = plain.removeprefix("device=").split(",") if plain.startswith("device=") else []
        if plain.isdecimal() and 0 < int(plain) < _MOST_GPUS:
            return Allotment(int(plain), f"--gpus {plain}")
        if devices and all(map(_DEVICE.fullmatch, devices)):
            return Allotment(len(devices), f"--gpus {plain[:80]}")
    return None


def of_object(value: Mapping[str, Any]) -> Allotment | None:
    """The GPUs that an object of a manifest requests: limits of Kubernetes, devices of docker-compose."""
    resources = as_mapping(value.get("resources"))
    for part in ("limits", "requests"):
        for name in _LIMITS:
            written = as_mapping(resources.get(part)).get(name)
            count = as_int(written) or (int(written) if isinstance(written, str) and written.isdecimal() else 0)
            if 0 < count < _MOST_GPUS:
                return Allotment(count, f"{part} {name}: {count}")
    reserved = as_mapping(as_mapping(as_mapping(value.get("deploy")).get("resources")).get("reservations"))
    for device in map(as_mapping, as_list(reserved.get("devices"))):
        count = as_int(device.get("count"))
        if count is not None and 0 < count < _MOST_GPUS:
            return Allotment(count, f"count: {count}")
    return None


def hardware_in(value: Mapping[str, Any]) -> Iterator[str]:
    """Names of accelerators or machines that an object selects its nodes by, as `label: name`."""
    yield from _labelled(as_mapping(value.get("nodeSelector")).items())
    affinity = as_mapping(as_mapping(value.get("affinity")).get("nodeAffinity"))
    required = as_mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in map(as_mapping, as_list((required or value).get("nodeSelectorTerms"))):
        for expression in map(as_mapping, as_list(term.get("matchExpressions"))):
            values = as_list(expression.get("values"))
            if expression.get("operator") == "In" and len(values) == 1:
                yield from _labelled([(str(expression.get("key")), values[0])])
    if (kind := as_str(value.get("accelerator_type"))) is not None:
        yield f"accelerator_type: {kind[:80]}"


def _labelled(pairs: Iterable[tuple[str, Any]]) -> Iterator[str]:
    return (f"{name}: {text[:80]}" for name, text in pairs if isinstance(text, str) and _LABELS.fullmatch(name.lower()))


def hardware_of_job(comment: str) -> Iterator[str]:
    """The kind of GPU that a directive in the head of a Slurm script names."""
    if comment.startswith("SBATCH"):
        yield from (f"{match[0].strip()[:40]}: {match[1]}" for match in _GRES.finditer(comment[:400]))
