"""Worked numbers of memory, links, accelerators, the graph's size and the metrics, computed by the project's own code.

A deployment is written as a model and `name=value` options: degrees of both phases (`tp=8`; of one: `p.tp`, `d.tp`),
`dp`, `on=2x8:h100-sxm`, `weights`, `kv` and `activations` (number formats), `in`, `out`, `users` (requests in flight),
`chunk`, `utilization` and `relax` (joined by commas).
"""

from __future__ import annotations

from typing import Any

from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.dtypes import weight_bytes_per_element
from shardwright.tools.catalog.hardware import HardwareFacts, find_accelerator, hardware_facts
from shardwright.tools.catalog.models import find_model
from shardwright.tools.performance.clock import Roofline
from shardwright.tools.performance.collectives import Group, Links
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import LoadedLayout, make_layout, make_setting
from shardwright.tools.performance.memory import device_memory
from shardwright.tools.performance.request_memory import request_bytes
from shardwright.tools.performance.transfer import kv_transfer_seconds
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import gpu_count

from .registry import number

_DEGREES = frozenset({"pp", "sp", "ep", "tp", "tp_ffn", "replicas", "attention_dp", "tp_expert", "kv_sp"})


def _read(options: tuple[str, ...]) -> dict[str, str]:
    return dict(option.split("=", 1) for option in options)


def _phase(asked: dict[str, str], prefix: str = "") -> PhaseStrategy:
    """Degrees of a phase: those with its prefix (`p.tp=4`), else those without one. A dense FFN follows attention."""
    degrees = {name: int(asked[name]) for name in _DEGREES if name in asked}
    degrees |= {name: int(asked[prefix + name]) for name in _DEGREES if prefix and prefix + name in asked}
    degrees.setdefault("tp_ffn", degrees.get("tp", 1))
    return PhaseStrategy(**degrees)


def _strategy(asked: dict[str, str]) -> Strategy:
    draft = Strategy(dp=int(asked.get("dp", 1)), gpu_count=1, prefill=_phase(asked, "p."), decode=_phase(asked, "d."))
    return draft.model_copy(update={"gpu_count": gpu_count(draft)})


def _hardware(on: str) -> HardwareBlock:
    size, accelerator = on.split(":")
    nodes, gpus = size.split("x")
    return HardwareBlock(accelerator=accelerator, nodes=int(nodes), gpus_per_node=int(gpus))


def _request(model: str, options: tuple[str, ...]) -> BuildRequest:
    asked = _read(options)
    weights = asked.get("weights", "bf16")
    relaxations: Any = tuple(filter(None, asked.get("relax", "").split(",")))
    load: dict[str, Any] = {
        "input_tokens": int(asked.get("in", 2048)),
        "output_tokens": int(asked.get("out", 256)),
        "concurrency": int(asked.get("users", 1)),
    }
    precision: dict[str, Any] = {
        "weights": weights,
        "kv_cache": asked.get("kv", "bf16"),
        "activations": asked.get("activations", "bf16"),
    }
    return BuildRequest(
        model=ModelBlock(name=model, config=find_model(model).config),
        hardware=_hardware(asked.get("on", "1x8:h100-sxm")),
        workload=WorkloadBlock(**load),
        precision=PrecisionBlock(**precision),
        strategy=_strategy(asked),
        policy=PolicyBlock(relaxations=relaxations, memory_utilization=float(asked.get("utilization", 0.9))),
        serving=ServingBlock(prefill_chunk_tokens=int(asked["chunk"])) if "chunk" in asked else None,
    )


def _layout(model: str, options: tuple[str, ...]) -> LoadedLayout:
    asked = _request(model, options)
    architecture = read_architecture(asked.model.config)
    nodes, gpus = asked.hardware.nodes, asked.hardware.gpus_per_node
    accelerator = asked.hardware.accelerator
    facts = hardware_facts(accelerator, nodes, gpus)
    setting = make_setting(architecture, facts, asked.workload, asked.precision, asked.policy, asked.serving)
    return make_layout(setting, asked.strategy)


def _facts(on: str) -> HardwareFacts:
    block = _hardware(on if ":" in on else f"1x{find_accelerator(on).typical_node_accelerators or 1}:{on}")
    return hardware_facts(block.accelerator, block.nodes, block.gpus_per_node)


def _gb(size_bytes: float, digits: str = "1") -> str:
    return f"{size_bytes / 1e9:,.{int(digits)}f}"


@number("memory-gb")
def memory_gb(accelerator: str) -> str:
    """Memory of one accelerator that programs see, in GB."""
    return _gb(find_accelerator(accelerator).memory_bytes()[0])


@number("usable-memory-gb")
def usable_memory_gb(accelerator: str, utilization: str = "0.9") -> str:
    """Memory of an accelerator that a plan may use, in GB."""
    return _gb(find_accelerator(accelerator).memory_bytes()[0] * float(utilization))


@number("device-gb")
def device_gb(term: str, model: str, *options: str) -> str:
    """A term of the memory budget of the fullest device (`weights`, `kv_cache`, `activation`, `total`, …), in GB."""
    return _gb(max(getattr(gpu, f"{term}_bytes") for gpu in device_memory(_layout(model, options)).per_device))


@number("shortfall-gb")
def shortfall_gb(model: str, *options: str) -> str:
    """GB that the fullest device lacks."""
    return _gb(max(gpu.total_bytes - gpu.usable_bytes for gpu in device_memory(_layout(model, options)).per_device))


@number("model-gb")
def model_gb(model: str, weights: str = "bf16") -> str:
    """All weights of a model, each once, in GB."""
    layout = _layout(model, (f"weights={weights}", "on=1x1:mi355x"))
    return _gb(device_memory(layout).per_device[0].weights_bytes)


@number("device-cache-bytes-per-token")
def device_cache_bytes_per_token(model: str, *options: str) -> str:
    """Cache bytes of another token of a request on the first device that decodes."""
    layout = _layout(model, options)
    phase, setting = layout.phase("decode"), layout.setting
    layers, tp = phase.stages[0].layers, phase.degrees.tp
    bytes_4096, bytes_8192 = (request_bytes(setting, layers, tokens, tp, phase.token_parts) for tokens in (4096, 8192))
    return f"{(bytes_8192 - bytes_4096) / 4096:,.0f}"


@number("max-concurrency")
def most_requests(model: str, *options: str) -> str:
    """The most requests of the workload that fit into memory at once."""
    return f"{device_memory(_layout(model, options)).max_concurrency:,}"


@number("weight-bytes")
def bytes_of_a_weight(dtype: str, decimals: str = "") -> str:
    """Bytes of one weight, block scales included."""
    size = weight_bytes_per_element(dtype)  # type: ignore[arg-type]  # the marker's text names a DType
    return f"{size:.{decimals}f}" if decimals else f"{size:.4g}"


@number("link-gb-s")
def link_gb_s(accelerator: str, which: str) -> str:
    """Send rate of one accelerator (`intra` or `inter` a domain), one way, in GB/s."""
    facts = _facts(accelerator)
    return f"{(facts.intra_bw_bytes_s if which == 'intra' else facts.inter_bw_bytes_s) / 1e9:g}"


@number("link-ratio")
def link_ratio(accelerator: str) -> str:
    """How many times faster the link inside a domain is than the one between."""
    facts = _facts(accelerator)
    return f"{facts.intra_bw_bytes_s / facts.inter_bw_bytes_s:.0f}"


@number("domain-accelerators")
def domain_accelerators(on: str) -> str:
    """Accelerators of one interconnect domain of a cluster."""
    facts = _facts(on)
    return str(facts.nodes_per_domain * facts.gpus_per_node)


@number("all-reduce-ms")
def all_reduce_ms(tokens: str, hidden: str, ranks: str, domains: str = "1", accelerator: str = "h100-sxm") -> str:
    """Milliseconds of a bf16 all-reduce by the datasheet model of links."""
    per_domain = int(ranks) // int(domains)
    group = Group(int(ranks), int(domains), per_domain)
    links = Links(_facts(f"{domains}x{per_domain}:{accelerator}"))
    return f"{links.all_reduce(int(tokens) * int(hidden) * 2, group).seconds * 1e3:.2g}"


@number("ridge")
def ridge(accelerator: str, dtype: str = "bf16") -> str:
    """FLOPs per byte at which arithmetic and memory take equally long: dense peak over bandwidth."""
    facts = _facts(accelerator)
    return f"{facts.peak_flops(dtype) / facts.memory_bandwidth_bytes_s:.0f}"  # type: ignore[arg-type]  # a DType's name


@number("attained-tflops")
def attained_tflops(accelerator: str, dtype: str = "bf16") -> str:
    """TFLOP/s that large matmuls reach by the roofline's efficiencies."""
    return f"{Roofline(_facts(accelerator)).flops_per_s(dtype) / 1e12:.0f}"  # type: ignore[arg-type]  # a DType's name


@number("kv-transfer-ms")
def kv_transfer_ms(model: str, *options: str) -> str:
    """Milliseconds of a prompt's cache from a prefill replica to a decode replica."""
    return f"{kv_transfer_seconds(_layout(model, options)) * 1e3:.2g}"


@number("estimate")
def estimated(figure: str, digits: str, model: str, *options: str) -> str:
    """A figure of the estimate (`latency.tpot_ms`, `throughput.…`, `cost.…`) to `digits` significant digits."""
    value: Any = estimate_layout(_layout(model, options), ())
    for name in figure.split("."):
        value = getattr(value, name)
    return f"{float(f'{float(value):.{int(digits)}g}'):,.10g}"


@number("gpu-count")
def devices_used(*options: str) -> str:
    """Devices that a strategy uses."""
    return str(_strategy(_read(options)).gpu_count)


@number("graph-size")
def graph_size(what: str, model: str, *options: str) -> str:
    """Count of the `nodes` or `edges` in the full document of a plan."""
    return f"{len(getattr(build_plan(_request(model, options)), what)):,}"


@number("hidden-bytes")
def hidden_bytes(model: str, tokens: str) -> str:
    """Bytes of the bf16 hidden states of `tokens`, which a pipeline edge carries."""
    return f"{read_architecture(find_model(model).config).hidden_size * int(tokens) * 2:,}"


@number("weights-read-ms")
def weights_read_ms(model: str, *options: str) -> str:
    """Milliseconds of reading all weights of the first device once at the datasheet's bandwidth."""
    layout = _layout(model, options)
    weights = device_memory(layout).per_device[0].weights_bytes
    return f"{weights / layout.setting.hardware.memory_bandwidth_bytes_s * 1e3:.1f}"
