"""Bytes of all weights of a model, each held once: what no replica can do without."""

from __future__ import annotations

from ..performance.kv_cache import all_layers
from ..performance.setting import Setting


def weights_bytes(setting: Setting) -> float:
    """Bytes of all weights in the formats of `setting`."""
    architecture = setting.architecture
    vocabulary = (architecture.embedding_tensors, architecture.lm_head_tensors, architecture.final_norm_tensors)
    total = sum(setting.tensor_bytes(tensors).total for tensors in vocabulary)
    for run in setting.runs(*all_layers(setting)):
        dense, moe = [run.spec.attention, run.spec.ffn], run.spec.moe
        if moe is not None:
            dense.append(moe.shared)
            total += run.count * moe.experts * setting.tensor_bytes(moe.expert_tensors).total
            total += run.count * setting.tensor_bytes(moe.router_tensors).total
        total += run.count * sum(setting.tensor_bytes(part.tensors).total for part in dense if part is not None)
    return total
