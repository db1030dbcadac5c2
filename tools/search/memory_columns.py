"""Memory of the fullest device of a replica under many loads at once, from the few devices that can be the fullest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..performance.budget import DeviceTerms, Load, distinct_terms, most_prompts
from ..performance.setting import Setting
from ..performance.shape import ReplicaLayout, StageLayout
from .phase_columns import Whole


class MemoryColumns:
    """Memory of a replica that was laid out from a strategy: its stages are alike but for layers and vocabulary."""

    def __init__(self, setting: Setting, replica: ReplicaLayout) -> None:
        self.setting, self.replica = setting, replica
        self.terms: tuple[DeviceTerms, ...] = distinct_terms(setting, replica, _telling_devices(setting, replica))

    def fullest(self, requests: Whole) -> Whole:
        """Bytes of the fullest device with so many requests in the replica's share."""
        held = requests
        if self.replica.decode is None and self.replica.prefill is not None:
            held = np.minimum(requests, most_prompts(self.replica.prefill))
        totals = [term.total_bytes(self.setting, Load(held)) for term in self.terms]
        fullest: Any = np.maximum.reduce([np.broadcast_to(total, held.shape) for total in totals])
        return fullest.astype(np.int64)


def _telling_devices(setting: Setting, replica: ReplicaLayout) -> frozenset[str]:
    """One device of each sort, of one of each kind of stage: those with as many of each kind of layer are alike."""
    found: set[str] = set()
    seen: set[object] = set()
    degrees = [phase.degrees.model_copy(update={"replicas": None}) for phase in replica.phases]
    alike = all(one == degrees[0] for one in degrees)
    for stages in zip(*(phase.stages for phase in replica.phases), strict=True):
        runs = tuple(tuple((id(run.spec), run.count) for run in setting.runs(*stage.layers)) for stage in stages)
        key = (runs, bool(stages[0].embedding_devices), bool(stages[0].head_devices))
        if key not in seen:
            seen.add(key)
            # Where phases cut operators differently, what a device holds of both depends on its rank.
            found.update(_sorts(stages[0]) if alike else stages[0].devices)
    return frozenset(found)


def _sorts(stage: StageLayout) -> set[str]:
    """The first device of each sort: in attention or not, in the FFN or not, with so many experts."""
    first: dict[tuple[bool, bool, int], str] = {}
    heads, ffn = len(stage.attention_devices), len(stage.ffn_devices)
    for place, device in enumerate(stage.devices):
        experts = len(stage.experts[place]) if stage.experts else 0
        first.setdefault((place < heads, place < ffn, experts), device)
    return set(first.values())
