"""What vLLM's flags start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..engines.vllm import ENGINE
from ..engines.vocabulary import is_open
from ..plan.document import Phase
from .flags import Flags
from .group import Dialect, Group, layers_of

_ROLES: Mapping[str, Phase] = {
    "kv_producer": "prefill",
    "kv_consumer": "decode",
    "prefill": "prefill",
    "decode": "decode",
}
# All-to-all backends that dual batch overlap takes; what runs by default; what named a backend before the flag.
_OVERLAPPING = ("deepep", "nixl_ep")
_USUAL_BACKEND = "allgather_reducescatter"
_BACKEND_VARIABLE = "VLLM_ALL2ALL_BACKEND"


def _group(flags: Flags, environment: Mapping[str, str], is_moe: bool) -> Group:
    """One number sets the tensor parallelism of all layers; data-parallel ranks of a MoE model share its experts."""
    tp, context, dp = flags.degree("tp"), flags.degree("context"), flags.degree("dp")
    groups = dp if is_moe else 1
    width = groups * context * tp
    has_groups = is_moe and flags.on("expert_parallel")
    return Group(
        servers=1 if is_moe else dp,
        groups=groups,
        tp=tp,
        context=context,
        cache_parts=flags.degree("cache_parts"),
        pp=flags.degree("pp"),
        cut=layers_of(environment.get(ENGINE.cut_variable)),
        ep=width if has_groups else 1,
        tp_expert=width if is_moe and not has_groups else 1,
        tp_ffn=context * tp,
        redundant_experts=(flags.count("redundant") or 0) if flags.on("eplb") else 0,
    )


def _follows(flags: Flags) -> bool:
    later = any(flags.text(concept) not in (None, "0") for concept in ("node_rank", "rank", "first_rank"))
    return later or flags.on("headless")


def _role(flags: Flags) -> Phase | None:
    if flags.on("is_prefill"):
        return "prefill"
    if flags.on("is_decode"):
        return "decode"
    return _ROLES.get(flags.text("kv_role") or flags.text("mode") or "")


def _refusals(flags: Flags, environment: Mapping[str, str], group: Group, is_moe: bool) -> Iterator[str]:
    """Refusals of vLLM's checks (`config/model.py`, `config/parallel.py`, `config/scheduler.py`, `config/vllm.py`)."""
    named = environment.get(_BACKEND_VARIABLE)
    if named and (why := ENGINE.vocabulary.refuses("all2all-backend", named)) is not None:
        yield f"{_BACKEND_VARIABLE}: {why}"
    backend = flags.text("all_to_all") or named or _USUAL_BACKEND
    if flags.on("two_batch") and not is_open(backend) and not backend.startswith(_OVERLAPPING):
        yield (
            f"{flags.written['two_batch']} with --all2all-backend {backend}: it overlaps halves of a batch on DeepEP "
            "or NIXL alone; name deepep_low_latency (decode) or deepep_high_throughput (prefill), which has to be "
            "installed, or leave it out"
        )
    if flags.on("expert_parallel") and not is_moe:
        yield f"{flags.written['expert_parallel']}: it needs a model with experts, and this one has none"
    if flags.on("eplb") and is_moe and not (flags.on("expert_parallel") and group.width > 1):
        yield f"{flags.written['eplb']} needs --enable-expert-parallel and several ranks"
    if (copies := flags.count("redundant")) and not flags.on("eplb"):
        yield f"{flags.written['redundant']} {copies} needs --enable-eplb: turn that on, or leave the copies out"
    tokens, sequences = flags.count("token_budget"), flags.count("max_sequences")
    if tokens is not None and sequences is not None and tokens < sequences:
        names = flags.written["token_budget"], flags.written["max_sequences"]
        yield f"{names[0]} {tokens:,} is less than {names[1]} {sequences:,}"
    nodes, ranks = flags.degree("nodes"), group.width * group.pp * group.servers
    if ranks % nodes:
        yield f"{flags.written['nodes']} {nodes} does not divide the {ranks} ranks"


def _local_groups(flags: Flags) -> int:
    """All data-parallel groups, unless a flag says which are local (`data_parallel_size_local`, `arg_utils.py`)."""
    is_told = any(flags.written.get(concept) for concept in ("local", "rank", "first_rank"))
    return 1 if is_told or flags.text("dp_backend") not in (None, "mp") else flags.degree("dp")


DIALECT = Dialect(
    engine=ENGINE,
    group=_group,
    follows=_follows,
    role=_role,
    hands_over=lambda flags: flags.on("transfer"),
    refusals=_refusals,
    joined=lambda group: group.context * group.tp * group.pp,
    joins_nodes_by="--nnodes and --node-rank on each node, or --distributed-executor-backend ray on a Ray cluster",
    joins_nodes_since=(0, 12),
    local_groups=_local_groups,
    joins_groups_by=(
        "--data-parallel-size-local, --data-parallel-start-rank and --data-parallel-address on each node, or "
        "--data-parallel-backend ray"
    ),
    of_further_nodes="headless",
    # `_init_kv_cache_quant` (`layers/attention/attention.py`).
    without_e5m2=frozenset({"fp8", "modelopt"}),
    # `get_supported_act_dtypes` of `awq.py`; later releases have one method for AWQ and its Marlin kernels.
    half_before={"awq": (0, 24)},
)
