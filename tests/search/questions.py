"""Search requests over the catalogue for tests and benchmarks: a model, hardware, load and policy by their names."""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec import Struct

from shardwright.tools.catalog.accelerators import Accelerator
from shardwright.tools.catalog.entry import ModelEntry
from shardwright.tools.catalog.hardware import all_accelerators, find_accelerator
from shardwright.tools.catalog.models import all_models, find_model
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.performance.layout import facts_of
from shardwright.tools.plan.builder import BuildRequest
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    Objective,
    PolicyBlock,
    PrecisionBlock,
    Relaxation,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.search.candidate import SearchRequest

OBJECTIVES: tuple[Objective, ...] = ("latency", "throughput", "cost")
RELAXATIONS: tuple[Relaxation, ...] = ("tp_in_expert", "attention_dp", "kv_sequence_decode", "vocab_parallel")
ENGINES = (None, None, None, *JUDGED)


class Question(Struct, frozen=True):
    """A search, and the model that it is about."""

    entry: ModelEntry
    search: SearchRequest

    @property
    def name(self) -> str:
        """Model, hardware and kind of deployment, on one line."""
        asked, hardware = self.search, self.search.hardware
        kind = "apart" if asked.disaggregated else "together"
        return f"{self.entry.short_name} on {hardware.nodes}x{hardware.gpus_per_node}:{hardware.accelerator} {kind}"

    def plan(self, strategy: Strategy, concurrency: int) -> BuildRequest:
        """The plan of `strategy` with so many requests in flight."""
        asked = self.search
        return BuildRequest(
            model=ModelBlock(name=self.entry.name, config=dict(self.entry.config)),
            hardware=asked.hardware,
            workload=asked.workload.model_copy(update={"concurrency": concurrency}),
            precision=asked.precision,
            strategy=strategy,
            policy=asked.policy,
            serving=asked.serving,
        )


def question(
    model: str,
    hardware: HardwareBlock,
    workload: WorkloadBlock,
    *,
    policy: PolicyBlock | None = None,
    weights: str = "bf16",
    **options: object,
) -> Question:
    """A search of a model of the catalogue; `options` are further fields of the request."""
    entry = find_model(model)
    accelerator = hardware.accelerator
    if not isinstance(accelerator, Accelerator):
        accelerator = find_accelerator(accelerator)
    request = SearchRequest(
        architecture=entry.architecture(),
        hardware=hardware,
        facts=facts_of(hardware, accelerator),
        workload=workload,
        precision=PrecisionBlock.model_validate({"weights": weights, "kv_cache": "bf16", "activations": "bf16"}),
        policy=policy or PolicyBlock(),
        **options,  # pyright: ignore[reportArgumentType] - names and values are checked by the dataclass and its users
    )
    return Question(entry, request)


def _drawn_limits(draw: random.Random) -> dict[str, object]:
    """One more limit for half of the loads: a request rate, or a bound on TTFT, tokens/s or a high percentile."""
    limits: tuple[dict[str, object], ...] = (
        {"request_rate": draw.choice((0.1, 0.5, 2.0, 8.0))},
        {"ttft_ms_max": draw.choice((500.0, 2000.0, 10000.0))},
        {"ttft_ms_max": draw.choice((2000.0, 10000.0)), "ttft_statistic": draw.choice(("p50", "p90", "p99"))},
        {"tpot_ms_max": draw.choice((25.0, 50.0)), "tpot_statistic": draw.choice(("p90", "p95", "p99"))},
        {"min_tokens_per_second": draw.choice((50.0, 500.0))},
    )
    return draw.choice(limits) if draw.random() < 0.5 else {}


def drawn_questions(seed: int, most_gpus: int) -> Iterator[Question]:
    """Endless searches with drawn model, hardware (at most `most_gpus`), load, limits, relaxations and engine."""
    draw, draw_limits = random.Random(seed), random.Random(f"limits of {seed}")
    models = all_models()
    accelerators = [accelerator for accelerator in all_accelerators() if accelerator.vendor in ("NVIDIA", "AMD")]
    while True:
        node = draw.choice([size for size in (1, 2, 3, 4, 6, 8, 16) if size <= most_gpus])
        nodes = draw.choice([count for count in (1, 1, 1, 2, 3, 4, 8) if count * node <= most_gpus])
        hardware = HardwareBlock(
            accelerator=draw.choice(accelerators).id,
            nodes=nodes,
            gpus_per_node=node,
            inter_node_bw_gb_s=draw.choice((12.5, 25.0, 50.0)),
        )
        engine = draw.choice(ENGINES)
        drawn = question(
            draw.choice(models).name,
            hardware,
            WorkloadBlock.model_validate(
                {
                    "input_tokens": draw.choice((128, 1000, 2048, 8192, 30000)),
                    "output_tokens": draw.choice((1, 2, 64, 256, 1000)),
                    "concurrency": draw.choice((1, 2, 3, 7, 16, 50, 128)),
                    "tpot_ms_max": draw.choice((None, None, None, 25.0)),
                    "objective": draw.choice(OBJECTIVES),
                }
                | _drawn_limits(draw_limits)
            ),
            policy=PolicyBlock(relaxations=tuple(name for name in RELAXATIONS if draw.random() < 0.35)),
            weights=draw.choice(("bf16", "fp8")),
            serving=None if engine is None else ServingBlock(engine=engine),
            concurrency_open=draw.random() < 0.25,
            disaggregated=draw.random() < 0.3,
        )
        load, positions = drawn.search.workload, drawn.search.architecture.max_position_embeddings
        if load.input_tokens + load.output_tokens <= positions:
            yield drawn
