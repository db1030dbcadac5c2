"""What SGLang's flags start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..engines.sglang import ENGINE
from ..errors import InputError
from ..plan.document import Phase
from .flags import Flags
from .group import Dialect, Group, layers_of

# Backends without a token group of their own: experts stay in the groups that `--ep-size` states.
_LOCAL = frozenset({"none", ""})
# What earlier releases name a backend by.
_DEEPEP = "--enable-deepep-moe"


def _group(flags: Flags, environment: Mapping[str, str], is_moe: bool) -> Group:
    """`tp` is the width of a stage; attention groups, context and expert parallelism lie inside of it."""
    width, context, copies = flags.degree("tp"), flags.degree("context"), flags.degree("dp")
    groups = flags.degree("attention_dp")
    if flags.on("dp_attention"):
        groups, copies = max(groups, copies), 1
    if width % (groups * context):
        raise InputError(
            f"--tp-size {width} is no multiple of the {groups * context} parts of attention: SGLang refuses that"
        )
    has_backend = (flags.text("all_to_all") or "").lower() not in _LOCAL or flags.written.get("over_all") == _DEEPEP
    ep = (width if has_backend or flags.on("over_all") else flags.degree("ep")) if is_moe else 1
    if width % ep:
        raise InputError(f"--ep-size {ep} does not divide --tp-size {width}: SGLang refuses that")
    return Group(
        servers=copies,
        groups=groups,
        tp=width // groups // context,
        context=context,
        cache_parts=flags.degree("cache_parts"),
        pp=flags.degree("pp"),
        cut=layers_of(environment.get(ENGINE.cut_variable)),
        ep=ep,
        tp_expert=width // ep if is_moe else 1,
        tp_ffn=1 if flags.text("dense_tp") == "1" else width,
        # `parallel_group="replicated"` of `shared_experts` in its models (`deepseek_v2.py`, `glm4_moe.py`).
        shared_is_whole=has_backend,
        redundant_experts=(flags.count("redundant") or 0) if flags.on("eplb") else 0,
    )


def _role(flags: Flags) -> Phase | None:
    mode = flags.text("mode")
    return "prefill" if mode == "prefill" else "decode" if mode == "decode" else None


def _refusals(flags: Flags, _: Mapping[str, str], group: Group, is_moe: bool) -> Iterator[str]:
    """Refusals of SGLang's own checks (`server_args.py`, `arg_groups/validation_hook.py`)."""
    if (flags.text("kv_cache") or "").lower() == "fp8":
        yield f"{flags.written['kv_cache']} fp8: it takes fp8_e4m3 or fp8_e5m2"
    if {"enable-hierarchical-cache", "disable-radix-cache"} <= flags.known.keys():
        yield "--enable-hierarchical-cache with --disable-radix-cache: it keeps what that cache holds; leave one out"
    nodes = flags.degree("nodes")
    if group.servers > 1 and nodes > 1:
        yield f"{flags.written['dp']} {group.servers} on {nodes} nodes: it starts replicas on one node only"
    if group.width * group.pp % nodes:
        yield f"{flags.written['nodes']} {nodes} does not divide the {group.width * group.pp} ranks"


DIALECT = Dialect(
    engine=ENGINE,
    group=_group,
    follows=lambda flags: flags.text("node_rank") not in (None, "0"),
    role=_role,
    hands_over=lambda flags: flags.text("transfer") is not None,
    refusals=_refusals,
    joins_nodes_by="--nnodes, --node-rank and --dist-init-addr on each node",
)
