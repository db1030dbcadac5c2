"""Worked numbers of model semantics, inference phases and parallel primitives.

A deployment is written as `MODEL HARDWARE key=value…` (HARDWARE: `accelerator` or `NODESxGPUS:accelerator`); keys are
degrees of both phases (`tp`, `tp_ffn`, `ep`, `pp`, `sp`; `p.` or `d.` before one means prefill or decode alone), `dp`,
`in`, `out`, `n` (requests in flight), `w`, `kv` and `act` (number formats), `chunk` and `relax` (joined by commas).
"""

from __future__ import annotations

from functools import cache

from shardwright.tools.calibration.shapes import LatentAttention
from shardwright.tools.catalog.architecture import LayerSpec
from shardwright.tools.catalog.attention.spec import AttentionSpec, causal_pairs
from shardwright.tools.catalog.hardware import hardware_facts
from shardwright.tools.catalog.models import load_model
from shardwright.tools.performance.collectives import ExpertRoutes, Group, Links
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import LoadedLayout, make_layout, make_setting
from shardwright.tools.performance.memory import device_memory, usable_bytes
from shardwright.tools.performance.programs.attention_core import absorbed_flops, naive_flops
from shardwright.tools.performance.programs.expert_delivery import Routing, active_experts, slowest_load
from shardwright.tools.performance.request_memory import all_layers, bytes_per_token, layer_request_bytes, request_bytes
from shardwright.tools.performance.setting import Setting
from shardwright.tools.plan.document import PhaseStrategy, PolicyBlock, PrecisionBlock, ServingBlock, Strategy
from shardwright.tools.plan.document import WorkloadBlock as Workload
from shardwright.tools.plan.performance import PerformanceEstimate
from shardwright.tools.plan.placement import gpu_count

from .registry import number

_DEGREES = ("pp", "sp", "ep", "tp", "tp_ffn", "attention_dp", "kv_sp", "tp_expert", "sp_kind")


def _phase(options: dict[str, str], prefix: str) -> PhaseStrategy:
    values: dict[str, int | str] = {}
    for name in _DEGREES:
        setting = options.get(f"{prefix}.{name}", options.get(name))
        if setting is not None:
            values[name] = int(setting) if setting.isdigit() else setting
    return PhaseStrategy.model_validate(values)


@cache
def _deployment(model: str, hardware: str, *settings: str) -> LoadedLayout:
    options = dict(option.split("=", 1) for option in settings)
    shape, _, accelerator = hardware.rpartition(":")
    nodes, gpus = (int(count) for count in (shape or "1x8").split("x"))
    architecture = load_model(model).architecture()
    relaxations = tuple(name for name in options.get("relax", "").split(",") if name)
    setting = make_setting(
        architecture,
        hardware_facts(accelerator, nodes, gpus),
        Workload(
            input_tokens=int(options.get("in", "2048")),
            output_tokens=int(options.get("out", "256")),
            concurrency=int(options.get("n", "1")),
        ),
        PrecisionBlock.model_validate(
            {"weights": options.get("w", "bf16"), "kv_cache": options.get("kv", "bf16"),
             "activations": options.get("act", "bf16")}
        ),
        PolicyBlock.model_validate({"relaxations": relaxations}),
        ServingBlock(prefill_chunk_tokens=int(options["chunk"])) if "chunk" in options else None,
    )  # fmt: skip
    draft = Strategy(
        dp=int(options.get("dp", "1")), gpu_count=1, prefill=_phase(options, "p"), decode=_phase(options, "d")
    )
    strategy = draft.model_copy(update={"gpu_count": gpu_count(draft)})
    return make_layout(setting, strategy)


def _setting(model: str, kv: str = "bf16", tokens: int = 1024) -> Setting:
    return _deployment(model, "h100-sxm", f"kv={kv}", f"in={tokens - 1}", "out=1").setting


def _attentions(model: str) -> list[tuple[int, AttentionSpec]]:
    setting = _setting(model)
    runs = setting.runs(*all_layers(setting))
    return [(run.count, run.spec.attention) for run in runs if run.spec.attention is not None]


def _layer(model: str, at: str) -> LayerSpec:
    return load_model(model).architecture().layers[int(at)]


def _plain(value: float, decimals: int = 0) -> str:
    return f"{value:,.{decimals}f}"


@number("kv-bytes-per-token")
def kv_bytes_per_token(model: str, kv: str = "bf16") -> str:
    """Bytes that another token adds to the cache over all layers, before parallelism."""
    return _plain(bytes_per_token(_setting(model, kv)))


@number("kv-bytes-per-token-on-gpu")
def kv_bytes_per_token_on_gpu(model: str, tp: str, kv: str = "bf16") -> str:
    """Cache bytes of one token of a long request on one of `tp` tensor ranks."""
    setting = _setting(model, kv, 8192)
    return _plain(request_bytes(setting, all_layers(setting), 8192, int(tp)) / 8192)


@number("kv-gb")
def kv_gb(model: str, tokens: str, kv: str = "bf16", decimals: str = "2") -> str:
    """Cache of one request of `tokens`, in GB, before parallelism."""
    setting = _setting(model, kv, int(tokens))
    return _plain(request_bytes(setting, all_layers(setting), int(tokens)) / 1e9, int(decimals))


@number("kv-kind-bytes")
def kv_kind_bytes(model: str, kind: str, tokens: str, kv: str = "bf16", unit: str = "MB") -> str:
    """Cache of one request of `tokens` in all layers of one attention kind."""
    setting = _setting(model, kv, int(tokens))
    total = sum(
        count * layer_request_bytes(setting, spec, int(tokens), 1, 1)
        for count, spec in _attentions(model)
        if spec.kind == kind
    )
    return _plain(total / {"MB": 1e6, "GB": 1e9}[unit], 1)


@number("layers-of-kind")
def layers_of_kind(model: str, kind: str) -> str:
    """Count of the layers with attention of `kind`."""
    return str(sum(count for count, spec in _attentions(model) if spec.kind == kind))


@number("attention-fact")
def attention_fact(model: str, at: str, field: str) -> str:
    """A field of the attention of layer `at`."""
    return _plain(getattr(_layer(model, at).attention, field))


@number("attention-weights-m")
def attention_weights_m(model: str, at: str, tp: str, part: str = "device") -> str:
    """Millions of attention weights of layer `at`: on one of `tp` ranks, whole, or those that every rank repeats."""
    spec = _layer(model, at).attention
    assert spec is not None
    ranks, sums = int(tp), {"sharded": 0, "kv_heads": 0, "replicated": 0}
    for tensor in spec.tensors:
        sums[tensor.split] += tensor.elements
    elements = {
        "whole": sum(sums.values()),
        "replicated": sums["replicated"],
        "device": sums["sharded"] / ranks + sums["kv_heads"] / min(ranks, spec.kv_heads) + sums["replicated"],
    }[part]
    return _plain(elements / 1e6, 1)


@number("expert-mb")
def expert_mb(model: str, weights: str) -> str:
    """One routed expert of one layer, in MB."""
    setting = _deployment(model, "h100-sxm", f"w={weights}").setting
    moe = setting.architecture.layers[-1].moe
    assert moe is not None
    return _plain(setting.tensor_bytes(moe.expert_tensors).total / 1e6, 1)


def _latent(model: str) -> LatentAttention:
    spec = _layer(model, "-1").attention
    assert spec is not None
    assert spec.latent is not None
    return LatentAttention(
        1, 1, 0, spec.query_heads, latent=spec.latent.latent, rope=spec.latent.rope,
        nope=spec.latent.nope, value=spec.v_head_dim, kv="bf16",
    )  # fmt: skip


@number("mla-flops-per-pair")
def mla_flops_per_pair(model: str, form: str) -> str:
    """FLOPs for one query token and one cached token in one layer."""
    shape = _latent(model)
    return _plain(naive_flops(shape, 1.0, 0.0) if form == "naive" else absorbed_flops(shape, 1.0))


def _linear_weights(layer: LayerSpec) -> float:
    """Weights that one token is multiplied with."""
    total = sum(t.elements for t in layer.attention.tensors if t.tensor_class != "norm") if layer.attention else 0
    total += sum(t.elements for t in layer.ffn.tensors if t.tensor_class != "norm") if layer.ffn else 0
    if layer.moe is not None:
        total += layer.moe.top_k * sum(t.elements for t in layer.moe.expert_tensors)
        total += sum(t.elements for t in layer.moe.router_tensors if t.tensor_class != "norm")
        total += sum(t.elements for t in layer.moe.shared.tensors) if layer.moe.shared else 0
    return total


def _core_flops(spec: AttentionSpec, tokens: int) -> float:
    return 2.0 * causal_pairs(tokens, 0) * spec.query_heads * (spec.qk_head_dim + spec.v_head_dim)


@number("prefill-tflop")
def prefill_tflop(model: str, tokens: str, part: str) -> str:
    """TFLOP of a whole prefill pass over all layers: of the `linear` parts, the attention `core`, or `all`."""
    count, layers = int(tokens), load_model(model).architecture().layers
    linear = sum(2.0 * count * _linear_weights(layer) for layer in layers)
    core = sum(_core_flops(layer.attention, count) for layer in layers if layer.attention is not None)
    return _plain({"linear": linear, "core": core, "all": linear + core}[part] / 1e12)


@number("core-share-percent")
def core_share_percent(model: str, tokens: str) -> str:
    """Share of the attention core in the FLOPs of a layer's prefill."""
    layer = _layer(model, "-1")
    assert layer.attention is not None
    core, linear = _core_flops(layer.attention, int(tokens)), 2.0 * int(tokens) * _linear_weights(layer)
    return _plain(100 * core / (core + linear))


@number("ridge-tokens")
def ridge_tokens(accelerator: str) -> str:
    """Tokens of a pass from which a bf16 matmul is bound by compute: peak FLOP/s x 2 bytes / (2 x bytes/s)."""
    facts = hardware_facts(accelerator, 1, 1)
    return _plain(facts.peak_flops("bf16") / facts.memory_bandwidth_bytes_s)


def _streamed_weights(layout: LoadedLayout) -> float:
    """Weight bytes that one device reads in a decode step: all but the embedding table."""
    weight_bytes = max(device.weights_bytes for device in device_memory(layout).per_device)
    architecture = layout.setting.architecture
    table = layout.setting.tensor_bytes(architecture.embedding_tensors).total
    shards = layout.phase("decode").stages[0].vocab_shards
    return weight_bytes - (0 if architecture.tied_embeddings else table / shards)


@number("decode-bytes")
def decode_bytes(figure: str, model: str, hardware: str, *settings: str) -> str:
    """GB of `weights` or `cache` that a dense model's decode step reads on a device, or `ms` of reading both.

    The cache is taken at the input length.
    """
    layout = _deployment(model, hardware, *settings)
    setting, degrees = layout.setting, layout.phase("decode").degrees
    weights = _streamed_weights(layout)
    cache = setting.workload.concurrency * request_bytes(
        setting, all_layers(setting), setting.workload.input_tokens, degrees.tp
    )
    seconds = (weights + cache) / setting.hardware.memory_bandwidth_bytes_s
    return _plain({"weights": weights / 1e9, "cache": cache / 1e9, "ms": seconds * 1e3}[figure], 1)


@number("weights-gb")
def weights_gb(model: str, hardware: str, *settings: str) -> str:
    """Weights of the fullest device, in GB."""
    memory = device_memory(_deployment(model, hardware, *settings))
    return _plain(max(device.weights_bytes for device in memory.per_device) / 1e9, 1)


@number("plan-usable-gb")
def usable_gb(model: str, hardware: str, *settings: str) -> str:
    """Usable memory of one device, in GB."""
    return _plain(usable_bytes(_deployment(model, hardware, *settings)) / 1e9, 1)


@number("most-requests")
def most_requests(model: str, hardware: str, *settings: str) -> str:
    """The most requests in flight that fit into memory."""
    return _plain(device_memory(_deployment(model, hardware, *settings)).max_concurrency)


@number("devices")
def devices(model: str, hardware: str, *settings: str) -> str:
    """Distinct devices that a deployment uses."""
    return str(len(_deployment(model, hardware, *settings).devices))


@cache
def _estimate(model: str, hardware: str, *settings: str) -> PerformanceEstimate:
    return estimate_layout(_deployment(model, hardware, *settings), ())


@number("estimate-ms")
def estimate_ms(field: str, decimals: str, model: str, hardware: str, *settings: str) -> str:
    """A time of the estimate in ms: `ttft_ms`, `tpot_ms`, or a part such as `decode_step.communication_ms`."""
    value: object = _estimate(model, hardware, *settings).latency
    for name in field.split("."):
        value = getattr(value, name)
    assert isinstance(value, float)
    return _plain(value, int(decimals))


@number("estimate-tokens-per-s")
def estimate_tokens_per_s(field: str, model: str, hardware: str, *settings: str) -> str:
    """A throughput of the estimate, to three digits."""
    value = getattr(_estimate(model, hardware, *settings).throughput, field)
    return _plain(float(f"{value:.3g}"))


@number("collective-ms")
def collective_ms(op: str, model: str, tokens: str, accelerator: str, *groups: str) -> str:
    """A collective over the hidden states of `tokens` in bf16 by the bandwidth formula; groups: RANKS [DOMAINS]."""
    ranks, domains = int(groups[0]), int(groups[1]) if len(groups) > 1 else 1
    size = int(tokens) * load_model(model).architecture().hidden_size * 2
    links = Links(hardware_facts(accelerator, 2, 8))
    collective = {"all_reduce": links.all_reduce, "all_gather": links.all_gather}[op](
        size, Group(ranks, domains, ranks // domains)
    )
    return _plain(collective.seconds * 1e3, 2)


@number("hidden-mb")
def hidden_mb(model: str, tokens: str) -> str:
    """The hidden states of `tokens` in bf16, in MB."""
    return _plain(int(tokens) * load_model(model).architecture().hidden_size * 2 / 1e6, 1)


@number("send-ms")
def send_ms(model: str, tokens: str, accelerator: str, where: str, parts: str = "1") -> str:
    """The hidden states of `tokens`, `parts` links sharing them, from one stage to the next."""
    size = int(tokens) * load_model(model).architecture().hidden_size * 2 / int(parts)
    links = Links(hardware_facts(accelerator, 2, 8))
    return _plain(links.send(size, "network" if where == "between" else "link").seconds * 1e3, 2)


@number("experts-read")
def touched_experts(experts: str, top_k: str, tokens: str) -> str:
    """Distinct experts of a layer that a batch touches under uniform routing."""
    return _plain(active_experts(int(experts), int(top_k), int(tokens)))


@number("slowest-over-mean-load")
def imbalance(experts: str, top_k: str, groups: str, tokens: str) -> str:
    """Load of the slowest expert group over the mean one."""
    hosted = int(experts) // int(groups)
    load = slowest_load(int(tokens), Routing(int(experts), int(top_k)), hosted, 1 / int(groups), int(groups))
    return _plain(load.imbalance, 2)


@number("copies-sent")
def copies_sent(top_k: str, ranks: str, domains: str = "1", most_domains: str = "0") -> str:
    """Other ranks (one domain) or other domains (several) that a token is sent to."""
    group = Group(int(ranks), int(domains), int(ranks) // int(domains))
    routes = ExpertRoutes(group, int(top_k), int(most_domains))
    return _plain(routes.remote_ranks if int(domains) == 1 else routes.remote_domains, 1)


@number("bubble-percent")
def bubble_percent(stages: str, batches: str) -> str:
    """Share of a fill-drain schedule in which a stage waits: (p - 1) / (m + p - 1)."""
    return _plain(100 * (int(stages) - 1) / (int(batches) + int(stages) - 1))


@number("sp-exchange-mb")
def sp_exchange_mb(model: str, tokens: str, sp: str, tp: str) -> str:
    """Bytes of keys and values that a rank receives in one layer when sequence ranks gather them, in MB (bf16)."""
    spec = _layer(model, "-1").attention
    assert spec is not None
    share = max(1, spec.cache_shards // int(tp)) / spec.cache_shards
    gathered_bytes = int(tokens) * spec.cache_elements_per_token * share * 2
    return _plain(gathered_bytes * (int(sp) - 1) / int(sp) / 1e6, 1)
