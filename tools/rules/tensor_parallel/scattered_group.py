"""TP007 (warning): a TP group stays inside one interconnect domain.

The domain is the larger of node and scale-up domain (an NVL72 rack spans nodes). Domains are runs of consecutive nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.hardware import hardware_facts
from ...performance.collectives import domains_of
from ...performance.layout import read_block
from ...plan.document import HardwareBlock
from ...plan.view import NodeView, PlanView, devices_of, parse_device, places_of
from ..base import Edit, Example, Finding, Rule, set_top
from ..reading import label
from ..sharding import rank_groups, tensor_holders


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every set of devices in several domains that a TP group runs on, with the operators of these groups."""
    block = read_block(HardwareBlock, view.hardware, "hardware")
    facts = hardware_facts(block.accelerator, block.nodes, block.gpus_per_node)
    width = facts.nodes_per_domain
    by_devices: dict[frozenset[str], list[NodeView]] = {}
    for operator in tensor_holders(view):
        for group in rank_groups(operator, "tp"):
            devices = devices_of(group) if any("tp" in shard.rank for shard in group) else frozenset[str]()
            if len(domains_of(filter(parse_device, devices), facts)) > 1:
                by_devices.setdefault(devices, []).append(operator)
    for devices, operators in by_devices.items():
        nodes = sorted({node for node, _ in places_of(devices)})
        yield Finding(
            "several-domains",
            f"a TP group of {label(operators[0])} spans {len(nodes)} nodes ({', '.join(f'n{n}' for n in nodes[:16])}) "
            f"beyond one interconnect domain of {width} node{'s' if width > 1 else ''}",
            where=operators,
            value=sorted(devices),
            expected=f"one domain of {width} node{'s' if width > 1 else ''}",
        )


_LEAVES = (
    *(f"b0.{leaf}" for leaf in ("attn.tp1", "attn.kv", "attn.ar", "ffn.tp1", "ffn.ar")),
    "emb",
    "head",
)


def _moved() -> Iterator[Edit]:
    """Edits that move the second device of the base plan to another node."""
    yield set_top("/hardware/nodes", 2)
    for phase in ("prefill", "decode"):
        for leaf in _LEAVES:
            devices = ["n1.g0"] if leaf.endswith("tp1") else ["n0.g0", "n1.g0"]
            yield Edit("set", f"r0.{phase}.s0.{leaf}", "devices", devices)


RULE = Rule(
    id="TP007",
    name="TP group across interconnect domains",
    severity="warning",
    requirement="A TP group stays inside one interconnect domain (the larger of node and scale-up domain).",
    rationale=(
        "TP runs two AllReduces a layer on the critical path. Between nodes a link is about a ninth as fast as inside "
        "one (450 against 50 GB/s on an H100 system), so the collectives outweigh what the split saves."
    ),
    source="001 §07",
    fix="re-plan",
    remedy="lower tp to the size of a domain and use PP or replicas across domains",
    check=check,
    bad=Example("dense-tp2", tuple(_moved())),
)
