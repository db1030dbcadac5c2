"""Searches in few words, for tests."""

from __future__ import annotations

from typing import Any

from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.catalog.models import find_model
from shardwright.tools.performance.layout import facts_of
from shardwright.tools.plan.document import HardwareBlock, PolicyBlock, PrecisionBlock, WorkloadBlock
from shardwright.tools.search.candidate import SearchRequest


def search_request(model: str, hardware: tuple[int, int, str], **workload: Any) -> SearchRequest:
    """A search of a catalogue model on nodes x GPUs of an accelerator, in bf16; no concurrency leaves it open."""
    nodes, gpus_per_node, accelerator = hardware
    block = HardwareBlock(accelerator=accelerator, nodes=nodes, gpus_per_node=gpus_per_node)
    return SearchRequest(
        architecture=read_architecture(find_model(model).config),
        hardware=block,
        facts=facts_of(block, find_accelerator(accelerator)),
        workload=WorkloadBlock(**workload),
        precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
        policy=PolicyBlock(),
        concurrency_open="concurrency" not in workload,
    )
