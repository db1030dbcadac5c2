"""Whatever devices an author names, a placement is legal, and keeps as many of them as the new widths allow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.autofix.author_devices import ReplicaDevices
from shardwright.tools.autofix.placing import place_like
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.plan.document import HardwareBlock, Strategy
from shardwright.tools.plan.layout import StageLayout
from shardwright.tools.plan.placement import StageMaker, ffn_width, gpu_count, is_disaggregated, place, stage_width

from ..examples import examples
from ..plan.tiny import MOE
from .settings import any_strategies

# Attention, experts and a shared expert in each of eight layers: every device of a stage runs some operator.
MAKER = StageMaker(read_architecture({**MOE, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 512}))
_NAMES = [f"n{node}.g{gpu}" for node in range(3) for gpu in range(5)] + ["gpu0", "n9.g9", ""]


@st.composite
def stage_devices(draw: st.DrawFn) -> StageLayout:
    """Any devices of a stage, their ranks in any order."""
    devices = tuple(draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=5, unique=True)))
    return StageLayout(0, (0, 0), devices, tuple(draw(st.permutations(devices))), devices[:2])


authors = st.lists(
    st.builds(
        ReplicaDevices,
        st.dictionaries(
            st.sampled_from(["prefill", "decode"]),
            st.dictionaries(st.integers(0, 3), stage_devices(), max_size=3),
        ),
    ),
    max_size=4,
)


@examples(100)
@given(any_strategies(), st.integers(1, 4), st.integers(1, 8), authors)
def test_any_placement_has_the_widths_and_shares_no_device(
    strategy: Strategy, nodes: int, gpus_per_node: int, wanted: list[ReplicaDevices]
) -> None:
    hardware = HardwareBlock(accelerator="h100-sxm", nodes=nodes, gpus_per_node=gpus_per_node)
    layout = place_like(strategy, MAKER, hardware, wanted)
    assert (layout is None) == (gpu_count(strategy) > nodes * gpus_per_node)
    if layout is None:
        return
    inventory = {f"n{node}.g{gpu}" for node in range(nodes) for gpu in range(gpus_per_node)}
    used: set[str] = set()
    for replica in layout.replicas:
        replica_devices: set[str] = set()
        for phase in replica.phases:
            degrees = strategy.prefill if phase.phase == "prefill" else strategy.decode
            assert len(phase.devices) == len(set(phase.devices))
            replica_devices |= set(phase.devices)
            for stage in phase.stages:
                assert len(stage.devices) == stage_width(degrees)
                assert set(stage.attention_devices) <= set(stage.devices) >= set(stage.ffn_devices)
                assert len(set(stage.ffn_devices)) == ffn_width(degrees)
        assert not replica_devices & used
        used |= replica_devices
    assert used <= inventory
    assert len(used) == gpu_count(strategy)
    if is_disaggregated(strategy):
        assert len(layout.prefill_replicas) == strategy.prefill.replicas
        assert len(layout.decode_replicas) == strategy.decode.replicas


@given(any_strategies(), st.integers(1, 4), st.integers(1, 8))
def test_without_an_author_it_is_the_usual_placement(strategy: Strategy, nodes: int, gpus_per_node: int) -> None:
    hardware = HardwareBlock(accelerator="h100-sxm", nodes=nodes, gpus_per_node=gpus_per_node)
    usual = place(strategy, MAKER, nodes=nodes, gpus_per_node=gpus_per_node)
    assert place_like(strategy, MAKER, hardware, ()) == usual
