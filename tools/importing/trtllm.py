"""What the options of TensorRT-LLM start."""

from __future__ import annotations

from collections.abc import Mapping

from ..engines.trtllm import ENGINE
from ..errors import InputError
from ..plan.document import Phase
from .flags import Flags
from .group import Dialect, Group, layers_of

_ROLES: Mapping[str, Phase] = {"context": "prefill", "prefill": "prefill", "generation": "decode", "decode": "decode"}


def _group(flags: Flags, environment: Mapping[str, str], is_moe: bool) -> Group:
    """The server that the flags start; attention DP is on or off, with the whole tensor group as its degree."""
    ranks, context = flags.degree("tp"), flags.degree("context")
    groups = ranks if flags.on("attention_dp") else 1
    ep, tp_expert = flags.count("ep"), flags.count("tp_expert")
    if is_moe:
        ep = ep or max(1, ranks // (tp_expert or ranks))
        tp_expert = tp_expert or max(1, ranks // ep)
        if ep * tp_expert != ranks:
            raise InputError(
                f"moe_expert_parallel_size {ep} x moe_tensor_parallel_size {tp_expert} is not the tensor_parallel_size "
                f"{ranks}: TensorRT-LLM refuses that"
            )
    ulysses = (flags.text("sequence_kind") or "").upper() == "ULYSSES"
    return Group(
        groups=groups,
        tp=ranks // groups,
        context=context,
        sequence_kind="ulysses" if ulysses and context > 1 else None,
        pp=flags.degree("pp"),
        cut=layers_of(flags.text("cut")),
        ep=(ep or 1) if is_moe else 1,
        tp_expert=(tp_expert or 1) if is_moe else 1,
    )


DIALECT = Dialect(
    engine=ENGINE,
    group=_group,
    follows=lambda _: False,
    role=lambda flags: _ROLES.get((flags.text("role") or "").lower()),
    hands_over=lambda flags: flags.text("transfer") is not None,
)
