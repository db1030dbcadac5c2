"""The slow way to search: build the DAG of every strategy in plain loops, check it with all rules and estimate it.

It shares no code with `tools/search` but the cut of a pipeline, which is proved separately. The rules decide what is
legal. Left out are only replicas whose phases have two layouts (EN010; tensor ranks may be traded for sequence ranks),
stages and replicas that straddle nodes without need, and all cuts but the even one and the one with the fastest
slowest stage. `is_in_space` tells which of the remaining strategies the search promises to cover.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce

from msgspec import Struct
from msgspec.structs import replace

from shardwright.tools.catalog.architecture import Architecture
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.engines.names import EngineName as Engine
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import LoadedLayout, layout_from_view
from shardwright.tools.performance.setting import Setting
from shardwright.tools.performance.timing import StageTimer
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import PhaseStrategy, ServingBlock, Strategy
from shardwright.tools.plan.layout import Layout, PhaseLayout, StageLayout
from shardwright.tools.plan.placement import StageMaker, place
from shardwright.tools.plan.reader import read_document
from shardwright.tools.search.pipelines import BestCuts, StageCosts, phase_costs
from shardwright.tools.validate import validate, validate_read

Cut = tuple[int, ...] | None
# Two plans within this share of each other are a tie.
TIE_SHARE = 0.005
SP_MIN_INPUT_TOKENS = 8192


def chosen_cut(setting: Setting, phases: Sequence[PhaseLayout], batch: int) -> tuple[int, ...] | None:
    """Layers of each stage of a replica that serves `phases`, with `batch` sequences in a stage; `None`: the even cut.

    The cut makes the slowest stage as fast as it can be.
    """
    parts: list[StageCosts] = []
    for phase in phases:
        first, last = (StageTimer(setting, phase, stage) for stage in (phase.stages[0], phase.stages[-1]))
        parts.append(phase_costs(first, last, batch))
    return BestCuts(reduce(StageCosts.plus, parts)).cut(len(phases[0].stages))


class Degrees(Struct, frozen=True):
    """Degrees of one stage in one phase."""

    sp: int
    ep: int
    tp: int
    tp_ffn: int
    attention_dp: int
    tp_expert: int
    kv_sp: int

    @property
    def attention(self) -> int:
        """Devices of attention."""
        return self.attention_dp * self.sp * self.kv_sp * self.tp

    @property
    def ffn(self) -> int:
        """Devices of a dense FFN or shared expert."""
        return self.tp_ffn * (self.attention_dp if self.tp_ffn <= self.tp else 1)

    @property
    def width(self) -> int:
        """Devices of the stage."""
        return max(self.attention, self.ffn, self.ep * self.tp_expert)

    @property
    def loaded(self) -> tuple[int, ...]:
        """Degrees that an engine fixes when it loads the weights."""
        return self.sp * self.kv_sp * self.tp, self.ep, self.tp_ffn, self.attention_dp, self.tp_expert

    def phase(self, pp: int, replicas: int | None = None, cut: Cut = None) -> PhaseStrategy:
        """The degrees as the document states them."""
        relaxed = {name: getattr(self, name) for name in ("attention_dp", "tp_expert", "kv_sp")}
        return PhaseStrategy(
            pp=pp, sp=self.sp, ep=self.ep, tp=self.tp, tp_ffn=self.tp_ffn, replicas=replicas, stage_layers=cut,
            **{name: value for name, value in relaxed.items() if value > 1},
        )  # fmt: skip


class Point(Struct, frozen=True):
    """A plan that every rule accepts, with the figures of its DAG."""

    strategy: Strategy
    warned: tuple[str, ...]
    gpus: int
    billed: int
    ttft_ms: float
    tpot_ms: float
    rate: float

    @property
    def rate_per_gpu(self) -> float:
        """Output tokens per second and GPU."""
        return self.rate / self.gpus

    @property
    def complexity(self) -> int:
        """Powers of two in each degree (`pp`, `sp`, `kv_sp` twice), 1 for a stated cut, 4 for a second layout."""
        prefill, decode = self.strategy.prefill, self.strategy.decode
        two_layouts = prefill != decode or prefill.replicas is not None
        return _log2(self.strategy.dp) + _phase_complexity(prefill) + _phase_complexity(decode) + 4 * two_layouts

    def worth(self, objective: str, output_tokens: int) -> float:
        """The figure to minimise: ms of a request, seconds per output token, or billed GPU-seconds per output token."""
        if objective == "latency":
            return self.ttft_ms + (output_tokens - 1) * self.tpot_ms
        return (1 if objective == "throughput" else self.billed) / self.rate


def _log2(degree: int | None) -> int:
    return (degree or 1).bit_length() - 1


def _phase_complexity(phase: PhaseStrategy) -> int:
    widths = (phase.tp, phase.tp_ffn, phase.ep, phase.attention_dp, phase.tp_expert)
    lengths = (phase.pp, phase.sp, phase.kv_sp)
    return sum(map(_log2, widths)) + 2 * sum(map(_log2, lengths)) + (phase.stage_layers is not None)


class Enumeration:
    """All strategies of one setting; `request.strategy` is replaced by each in turn.

    `engine` must be able to start each strategy, though the plan does not name it.
    """

    def __init__(
        self, request: BuildRequest, *, disaggregated: bool, all_cuts: bool = False, engine: Engine | None = None
    ) -> None:
        self.request, self.disaggregated, self.all_cuts = request, disaggregated, all_cuts
        self.engine: Engine | None = engine
        self.node = request.hardware.gpus_per_node
        self.gpus = request.hardware.nodes * self.node
        # Rules that each refused strategy breaks.
        self.refused: dict[Strategy, frozenset[str]] = {}

    @cached_property
    def architecture(self) -> Architecture:
        """The model, layer by layer."""
        return read_architecture(self.request.model.config)

    def points(self) -> Iterator[Point]:
        """Every plan without an error."""
        for strategy in self.disaggregated_strategies() if self.disaggregated else self.colocated_strategies():
            point = self.judged(strategy)
            if point is not None:
                yield point

    def judged(self, strategy: Strategy) -> Point | None:
        """The strategy's DAG, checked by every rule and estimated; `None` where a rule refuses it."""
        read = read_document(build_plan(replace(self.request, strategy=strategy)))
        report = validate_read(read)
        refused = {fault.rule for fault in report.violations if fault.severity == "error"} | self._en_errors(strategy)
        if refused:
            self.refused[strategy] = frozenset(refused)
            return None
        layout = layout_from_view(read.view)
        estimate = estimate_layout(layout, ())
        read.view.release()
        return Point(
            strategy,
            tuple(sorted({fault.rule for fault in report.violations})),
            len(layout.devices),
            len({device.split(".")[0] for device in layout.devices}) * self.node,
            estimate.latency.ttft_ms,
            estimate.latency.tpot_ms,
            estimate.throughput.dp_scaled_tokens_per_s,
        )

    def _en_errors(self, strategy: Strategy) -> set[str]:
        """Engine rules that the plan breaks once it names the engine."""
        if self.engine is None:
            return set()
        named = replace(self.request, strategy=strategy, serving=ServingBlock(engine=self.engine))
        violations = validate(build_plan(named)).violations
        return {fault.rule for fault in violations if fault.severity == "error" and fault.rule.startswith("EN")}

    def degrees(self, *, prefill: bool) -> Iterator[Degrees]:
        """All degrees of a stage; what heads, widths and experts allow is left to the rules."""
        relaxed, model = self.request.policy.relaxations, self.architecture
        many, single = range(1, self.gpus + 1), (1,)
        split = any(layer.ffn or (layer.moe and layer.moe.shared) for layer in model.layers)
        for sp in many if prefill and self.request.workload.input_tokens >= SP_MIN_INPUT_TOKENS else single:
            for kv_sp in many if not prefill and "kv_sequence_decode" in relaxed else single:
                for attention_dp in many if "attention_dp" in relaxed and model.is_moe else single:
                    for tp in range(1, self.gpus // (sp * kv_sp * attention_dp) + 1):
                        for tp_ffn in many if split else single:
                            for ep in many if model.is_moe else single:
                                for tp_expert in many if model.is_moe and "tp_in_expert" in relaxed else single:
                                    degrees = Degrees(sp, ep, tp, tp_ffn, attention_dp, tp_expert, kv_sp)
                                    if self._is_stage(degrees):
                                        yield degrees

    def _is_stage(self, degrees: Degrees) -> bool:
        width = degrees.width
        if width > self.gpus or (width > self.node and width % self.node):
            return False
        return not self.architecture.is_moe or degrees.ep * degrees.tp_expert == width

    def is_in_space(self, strategy: Strategy) -> bool:
        """Whether the search promises to cover the strategy.

        Degrees divide the stage; attention groups fill it, without sequence ranks beside them; a replica wider than a
        node starts at a node's start.
        """
        for phase in (strategy.prefill, strategy.decode):
            groups, lengths = phase.attention_dp or 1, phase.sp * (phase.kv_sp or 1)
            attention, ffn = groups * lengths * phase.tp, phase.tp_ffn * (groups if phase.tp_ffn <= phase.tp else 1)
            width = max(attention, ffn, phase.ep * (phase.tp_expert or 1))
            if width % attention or width % ffn:
                return False
            if groups > 1 and (lengths > 1 or attention < width or phase.tp < phase.tp_ffn < width):
                return False
        layout = self.placed(strategy)
        parts = [_devices(replica.phases[0].stages) for replica in (layout.replicas if layout is not None else ())]
        return all(len(part) <= self.node or part[0].endswith(".g0") for part in parts)

    def placed(self, strategy: Strategy) -> Layout | None:
        """The strategy's layout; `None` if devices are too few or a part that fits into a node straddles two."""
        layout = place(
            strategy, StageMaker(self.architecture), nodes=self.request.hardware.nodes, gpus_per_node=self.node
        )
        if layout is None:
            return None
        for replica in layout.replicas:
            stages = replica.phases[0].stages
            if not all(self._is_together(part) for part in (_devices(stages), *(stage.devices for stage in stages))):
                return None
        return layout

    def _is_together(self, devices: Sequence[str]) -> bool:
        return len(devices) > self.node or len({device.split(".")[0] for device in devices}) == 1

    def colocated_strategies(self) -> Iterator[Strategy]:
        """Replicas that serve both phases."""
        decodes = list(self.degrees(prefill=False))
        for first in self.degrees(prefill=True):
            for second in (other for other in decodes if other.loaded == first.loaded and other.width == first.width):
                for pp in range(1, min(self.architecture.num_layers, self.gpus // first.width) + 1):
                    yield from self._replicated(first, second, pp)

    def _replicated(self, first: Degrees, second: Degrees, pp: int) -> Iterator[Strategy]:
        def strategy(dp: int, cut: Cut) -> Strategy:
            count = dp * pp * first.width
            return Strategy(
                dp=dp, gpu_count=count, prefill=first.phase(pp, None, cut), decode=second.phase(pp, None, cut)
            )

        room = 0
        while self.placed(strategy(room + 1, None)) is not None:
            room += 1
        if room == 0:
            return
        share = -(-self.request.workload.concurrency // room)
        batch = -(-share // (pp * second.attention_dp))
        for cut in self.cuts(pp, strategy(1, None), batch, ("prefill", "decode")):
            yield from (strategy(dp, cut) for dp in range(1, room + 1))

    def cuts(self, pp: int, strategy: Strategy, batch: int, phases: Sequence[str]) -> Iterator[Cut]:
        """The even cut (`None`) and the one whose slowest stage is the fastest, or all cuts."""
        yield None
        if pp == 1:
            return
        if self.all_cuts:
            yield from compositions(self.architecture.num_layers, pp)
            return
        layout = self.layout(strategy)
        served = [layout.phase("prefill" if name == "prefill" else "decode") for name in phases]
        cut = chosen_cut(layout.setting, served, batch)
        if cut is not None:
            yield cut

    def layout(self, strategy: Strategy) -> LoadedLayout:
        """The layout that the strategy's DAG shows."""
        return layout_from_view(read_document(build_plan(replace(self.request, strategy=strategy))).view)

    def disaggregated_strategies(self) -> Iterator[Strategy]:
        """Every number of prefill-only and of decode-only replicas."""
        prefills, decodes = (list(self._sides(prefill=prefill)) for prefill in (True, False))
        for first in prefills:
            for second in decodes:
                for x in range(1, self.gpus):
                    for y in range(1, self.gpus):
                        strategy = split(first, x, second, y)
                        if strategy.gpu_count <= self.gpus and self.placed(strategy) is not None:
                            yield strategy

    def _sides(self, *, prefill: bool) -> Iterator[tuple[Degrees, int, Cut]]:
        for degrees in self.degrees(prefill=prefill):
            for pp in range(1, min(self.architecture.num_layers, self.gpus // degrees.width) + 1):
                yield from ((degrees, pp, cut) for cut in self._side_cuts(degrees, pp, prefill=prefill))

    def _side_cuts(self, degrees: Degrees, pp: int, *, prefill: bool) -> Iterator[Cut]:
        phase = degrees.phase(pp)
        alone = Strategy(dp=1, gpu_count=pp * degrees.width, prefill=phase, decode=phase)
        room = 0
        while self.placed(alone.model_copy(update={"dp": room + 1, "gpu_count": (room + 1) * alone.gpu_count})):
            room += 1
        if room:
            batch = -(-self.request.workload.concurrency // (pp * room * degrees.attention_dp))
            yield from self.cuts(pp, alone, batch, ("prefill",) if prefill else ("decode",))


def split(first: tuple[Degrees, int, Cut], x: int, second: tuple[Degrees, int, Cut], y: int) -> Strategy:
    """The strategy of x prefill and y decode replicas."""
    count = x * first[0].width * first[1] + y * second[0].width * second[1]
    prefill, decode = first[0].phase(first[1], x, first[2]), second[0].phase(second[1], y, second[2])
    return Strategy(dp=x + y, gpu_count=count, prefill=prefill, decode=decode)


def _devices(stages: Sequence[StageLayout]) -> list[str]:
    return [device for stage in stages for device in stage.devices]


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `total` as a sum of `parts` positive numbers, in order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(1, total - parts + 2):
        yield from ((first, *rest) for rest in compositions(total - first, parts - 1))


def best_of(points: Sequence[Point], objective: str, output_tokens: int) -> list[Point]:
    """The leading points: unwarned before warned, in a tie the fewest GPUs, then the quickest, then the simplest."""
    clean = [point for point in points if not point.warned] or list(points)
    least = min(point.worth(objective, output_tokens) for point in clean)
    tied = [point for point in clean if point.worth(objective, output_tokens) <= least * (1 + TIE_SHARE)]
    # Cost counts whole nodes: in a tie, servers of one kind beat servers of two.
    first = min((objective == "cost" and point.strategy.prefill.replicas is not None, point.gpus) for point in tied)
    few = [
        point
        for point in tied
        if (objective == "cost" and point.strategy.prefill.replicas is not None, point.gpus) == first
    ]
    soonest = min(point.worth("latency", output_tokens) for point in few)
    quick = [point for point in few if point.worth("latency", output_tokens) <= soonest * (1 + TIE_SHARE)]
    key = min((point.complexity, point.worth("latency", output_tokens)) for point in quick)
    return [
        point
        for point in quick
        if point.complexity == key[0] and point.worth("latency", output_tokens) <= key[1] * (1 + 1e-9)
    ]


def front_of(points: Sequence[Point]) -> list[tuple[float, float]]:
    """(TPOT in ms, output tokens/s per GPU) that no other point beats in both, slowest user first."""
    front: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda point: (point.tpot_ms, -point.rate_per_gpu)):
        if not front or point.rate_per_gpu > front[-1][1] * (1 + 1e-12):
            front.append((point.tpot_ms, point.rate_per_gpu))
    return front[::-1]
