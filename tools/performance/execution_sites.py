"""What one pass runs on a stage, site by site in the order of its devices' streams, for the execution DAG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..plan.blocks import fold_sequence
from .operation import Operation, TokenLoad
from .overlap import Turns
from .overlap_halves import HalvedLayer, split_load
from .programs.writer import shape_of
from .timing import StageTimer

# What cuts a batch in two halves, and what joins them.
SPLIT, MERGE = "overlap.split", "overlap.merge"


@dataclass(frozen=True, slots=True)
class Site:
    """Operations that belong together: those of a layer (folded, of `repeat` of them), or a run of one half of it.

    `half` is set under two-batch overlap, where `on_links` says which of the two streams of a device they are on.
    """

    layer: int | None
    name: str
    operations: tuple[Operation, ...]
    repeat: int | None = None
    half: int | None = None
    on_links: bool = False


def stage_sites(
    timer: StageTimer, load: TokenLoad, following: StageTimer | None, *, with_head: bool, folded: bool
) -> Iterator[Site]:
    """The sites of one pass of `load`. Layers that overlap are written out: the halves of one reach into the next."""
    if timer.stage.embedding_devices:
        yield Site(None, "embedding", timer.embedding(load).operations)
    halved = timer.halved_layers(load)
    if halved is not None:
        yield from _halved_sites(timer, load, halved)
    else:
        yield from _layer_sites(timer, load, folded=folded)
    if timer.stage.head_devices and with_head:
        yield Site(None, "head", timer.head(load).operations)
    if following is not None:
        yield Site(None, "send", timer.send(load, following).operations)


def _layer_sites(timer: StageTimer, load: TokenLoad, *, folded: bool) -> Iterator[Site]:
    keys = tuple((id(spec), following_set) for spec, following_set in timer.layer_sequence)
    blocks = fold_sequence(keys) if folded else ()
    spans = [(b.first + k, (b.last - b.first + 1) // b.period) for b in blocks for k in range(b.period)]
    for place, repeat in spans or [(place, 1) for place in range(len(keys))]:
        spec, following_set = timer.layer_sequence[place]
        layer = timer.stage.layers[0] + place
        operations = timer.layer(spec, following_set, load).operations
        yield Site(layer, f"l{layer}", operations, repeat if folded else None)


def _halved_sites(timer: StageTimer, load: TokenLoad, halved: tuple[HalvedLayer, ...]) -> Iterator[Site]:
    """The batch cut in two, the runs of both halves in turn, and the halves joined again."""
    halves = split_load(load)
    assert halves is not None
    hidden = timer.setting.architecture.hidden_size
    whole = shape_of(load.sequences, load.new_tokens, "hidden", hidden)
    for half, part in enumerate(halves):
        shape = shape_of(part.sequences, part.new_tokens, "hidden", hidden)
        cut = Operation(SPLIT, "Split", "stage", "stage", whole, shape)
        yield Site(None, f"half{half}", (cut,), half=half)
    layers = [halved[number] for number in timer.kind_sequence]
    turns = Turns()
    for place, layer in enumerate(layers):
        for half, items in turns.enter(place, layer):
            yield from _runs(timer, layers, half, items)
    for half, items in turns.close():
        yield from _runs(timer, layers, half, items)
    yield Site(None, "merge", (Operation(MERGE, "Aggregate", "stage", timer.ends_on, whole, whole),))


def _runs(timer: StageTimer, layers: list[HalvedLayer], half: int, items: list[tuple[int, int]]) -> Iterator[Site]:
    for place, number in items:
        run = layers[place].halves[half].runs[number]
        layer = timer.stage.layers[0] + place
        yield Site(layer, f"l{layer}.half{half}", run.operations, half=half, on_links=run.on_links)
