"""Whether a checkpoint has the weights that `--quantization` names.

vLLM and SGLang compare it with the `quant_method` of the checkpoint's config and refuse one that differs
(`ModelConfig._verify_quantization` of both), except where a method reads the files of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..catalog.dtypes import DType
from ..catalog.names import named_format
from ..engines.names import ENGINES
from ..plan.elements import as_mapping, as_str
from .caveats import Told
from .group import format_of
from .launch import Launch

# Which methods read a checkpoint, by its own (`override_quantization_method` of vLLM's methods, SGLang's table).
_READ_BY: Mapping[str, frozenset[str]] = {
    "awq": frozenset({"awq", "awq_marlin", "marlin", "moe_wna16"}),
    "gptq": frozenset({"gptq", "gptq_marlin", "gptq_bitblas", "marlin", "moe_wna16"}),
    "auto-round": frozenset({"auto-round", "inc"}),
    "fp8": frozenset({"fp8"}),
    "mxfp4": frozenset({"mxfp4", "gpt_oss_mxfp4"}),
    "bitsandbytes": frozenset({"bitsandbytes"}),
    "gguf": frozenset({"gguf"}),
    "compressed-tensors": frozenset({"compressed-tensors", "w8a8_int8", "w8a8_fp8"}),
    "modelopt": frozenset({"modelopt", "modelopt_fp4", "modelopt_fp8", "modelopt_mixed", "petit_nvfp4"}),
}
_METHODS = frozenset[str]().union(*_READ_BY.values())
# Ways of storing any format: what the name of a checkpoint says of its weights does not tell them apart.
_CONTAINERS = _READ_BY["compressed-tensors"] | _READ_BY["modelopt"]
# Methods whose weights are made beforehand, with data: a checkpoint has them, or they are not there.
_OFFLINE = _READ_BY["awq"] | _READ_BY["gptq"] | _READ_BY["gguf"] | {"compressed-tensors"}
# What engines make of 16-bit weights when they load them, beside what exports ask of each.
_ONLINE = frozenset({"fp8", "fp8_per_tensor", "fp8_per_block", "experts_int8", "bitsandbytes"})
_NONE = frozenset({"", "none", "auto"})
_MEND = "leave the flag out, or name a checkpoint that has such weights"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A published checkpoint: as it was `written`, what it is called here, its config and the format by that."""

    written: str
    name: str
    config: Mapping[str, Any]
    native: DType

    @property
    def method(self) -> str | None:
        """How its weights are quantised, by its config; `None` where they are not."""
        own = as_mapping(self.config.get("quantization_config"))
        method = as_str(own.get("quant_method") or own.get("quant_algo"))
        return None if method is None else method.lower().replace("compressed_", "compressed-")


def told_of_method(launch: Launch, checkpoint: Checkpoint) -> Iterator[Told]:
    """Why the engine refuses the methods that commands name, or what is not known of them, for a checkpoint."""
    for flags in (one.flags for one in launch.commands):
        method = (flags.text("quantization") or "").lower()
        if method not in _NONE:
            shown = f"{flags.written['quantization']} {method}"
            stated = named_format(checkpoint.written)
            if stated is not None and stated != checkpoint.native:
                yield from _beside_name(shown, method, checkpoint.written, stated)
            elif (own := checkpoint.method) is not None:
                yield from _beside_own(shown, method, checkpoint.name, own)
            else:
                made = _ONLINE.union(ENGINES[launch.engine].makes.values())
                yield from _of_plain(shown, method, checkpoint, is_made=method in made)


def _beside_name(shown: str, method: str, name: str, stated: DType) -> Iterator[Told]:
    """Of a checkpoint whose name alone says what its weights are."""
    made = format_of(method)
    if made is not None and made != stated and not (made.endswith("fp4") and stated.endswith("fp4")):
        yield "refused", f"{shown}: {name} has {stated} weights by its name; {_MEND}"


def _beside_own(shown: str, method: str, name: str, own: str) -> Iterator[Told]:
    """Of a checkpoint whose weights are quantised by its `own` method."""
    if method in _READ_BY.get(own, {own}):
        return
    if own in _READ_BY and method in _METHODS - _CONTAINERS:
        yield "refused", f"{shown}: {name} has {own} weights; {_MEND}"
    else:
        yield "unknown", f"{shown} (whether it reads {name}, whose own method is {own}, is not known here)"


def _of_plain(shown: str, method: str, checkpoint: Checkpoint, *, is_made: bool) -> Iterator[Told]:
    """Of a checkpoint that is not quantised."""
    name = checkpoint.name
    if method in _OFFLINE:
        why = f"{name} is no quantised checkpoint, and {method} weights are made beforehand"
        yield "refused", f"{shown}: {why}; {_MEND}"
        return
    if not is_made:
        yield "unknown", f"{shown} (whether it makes such weights of {name} is not known here)"
    if format_of(method) is None:
        yield "remark", f"{shown}: judged with {checkpoint.native} weights, for what it makes of them is not known here"
