"""Whatever devices an author names, a placement is legal, and keeps what of them the new widths have room for."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from shardwright.tools.autofix.intent_devices import ReplicaDevices, StageDevices
from shardwright.tools.autofix.placing import place_like
from shardwright.tools.plan.document import HardwareBlock, Strategy
from shardwright.tools.plan.placement import ffn_width, gpu_count, is_disaggregated, place, stage_width

from .settings import any_strategies

LAYERS = 8
_NAMES = [f"n{node}.g{gpu}" for node in range(3) for gpu in range(5)] + ["gpu0", "n9.g9", ""]


@st.composite
def stage_devices(draw: st.DrawFn) -> StageDevices:
    """Any devices of a stage, with any order of ranks."""
    devices = tuple(draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=5, unique=True)))
    return StageDevices(devices, attention=tuple(draw(st.permutations(devices))), ffn=devices[:2])


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


@settings(max_examples=100)
@given(any_strategies(), st.integers(1, 4), st.integers(1, 8), authors)
def test_any_placement_has_the_widths_and_shares_no_device(
    strategy: Strategy, nodes: int, gpus_per_node: int, wanted: list[ReplicaDevices]
) -> None:
    hardware = HardwareBlock(accelerator="h100-sxm", nodes=nodes, gpus_per_node=gpus_per_node)
    placement = place_like(strategy, LAYERS, hardware, wanted)
    assert (placement is None) == (gpu_count(strategy) > nodes * gpus_per_node)
    if placement is None:
        return
    inventory = {f"n{node}.g{gpu}" for node in range(nodes) for gpu in range(gpus_per_node)}
    used: set[str] = set()
    for replica in placement:
        own: set[str] = set()
        for degrees, stages in ((strategy.prefill, replica.prefill), (strategy.decode, replica.decode)):
            of_phase = [device for stage in stages or () for device in stage.devices]
            assert len(of_phase) == len(set(of_phase))
            own |= set(of_phase)
            for stage in stages or ():
                assert len(stage.devices) == stage_width(degrees)
                assert set(stage.attention_devices) <= set(stage.devices) >= set(stage.ffn_devices)
                assert len(set(stage.ffn_devices)) == ffn_width(degrees)
        assert not own & used
        used |= own
    assert used <= inventory
    assert len(used) == gpu_count(strategy)
    if is_disaggregated(strategy):
        assert sum(replica.prefill is not None for replica in placement) == strategy.prefill.replicas
        assert sum(replica.decode is not None for replica in placement) == strategy.decode.replicas


@given(any_strategies(), st.integers(1, 4), st.integers(1, 8))
def test_without_an_author_it_is_the_usual_placement(strategy: Strategy, nodes: int, gpus_per_node: int) -> None:
    hardware = HardwareBlock(accelerator="h100-sxm", nodes=nodes, gpus_per_node=gpus_per_node)
    usual = place(strategy, LAYERS, nodes=nodes, gpus_per_node=gpus_per_node)
    assert place_like(strategy, LAYERS, hardware, ()) == usual
