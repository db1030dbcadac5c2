"""Results with chosen figures, so that a report can be checked line by line."""

from __future__ import annotations

from shardwright.agent.intent.intent import Assumption
from shardwright.agent.results import Alternative, Infeasible, Needs, PlanReport, PlanResult, StatedStrategyVerdict
from shardwright.tools.plan.document import PhaseStrategy, Plan, Strategy
from shardwright.tools.plan.performance import (
    Calibration,
    CostEstimate,
    CriticalPath,
    DeviceMemory,
    LatencyAlone,
    LatencyEstimate,
    LatencyPercentiles,
    LoadEstimate,
    MemoryEstimate,
    PathStep,
    Percentiles,
    PerformanceEstimate,
    Ranges,
    ThroughputEstimate,
    TimeParts,
)
from shardwright.tools.rules.base import Violation
from shardwright.tools.search.candidate import Candidate

from ..plan.tiny import DENSE, tiny_plan

GB = 10**9


def device(name: str, weights_gb: float, usable_gb: float = 76) -> DeviceMemory:
    """A device with 2 GB of KV cache, 1 GB of activations and 0.5 GB of buffers besides its weights."""
    return DeviceMemory(
        device=name,
        weights_bytes=int(weights_gb * GB),
        kv_cache_bytes=2 * GB,
        activation_bytes=GB,
        communication_bytes=GB // 2,
        total_bytes=int((weights_gb + 3.5) * GB),
        usable_bytes=int(usable_gb * GB),
    )


def estimate(*devices: DeviceMemory) -> PerformanceEstimate:
    """An estimate in which all figures differ."""
    return PerformanceEstimate(
        latency=LatencyEstimate(
            ttft_ms=231.4,
            tpot_ms=9.81,
            prefill_ms=230.1,
            decode_ms=2511,
            end_to_end_ms=2742,
            prefill=TimeParts(compute_ms=180, memory_ms=20.1, communication_ms=30, bubble_ms=0),
            decode_step=TimeParts(compute_ms=0.5, memory_ms=7.81, communication_ms=1.5, bubble_ms=0),
            percentiles=LatencyPercentiles(
                ttft_ms=Percentiles(p50=229.5, p90=261.2, p95=272.3, p99=283.4),
                tpot_ms=Percentiles(p50=9.72, p90=10.3, p95=10.4, p99=10.6),
                end_to_end_ms=Percentiles(p50=2731, p90=2861, p95=2882, p99=2893),
            ),
            alone=LatencyAlone(ttft_ms=231.1, tpot_ms=9.67, end_to_end_ms=2703),
        ),
        throughput=ThroughputEstimate(
            single_request_tokens_per_s=93.4,
            batched_tokens_per_s=373.6,
            dp_scaled_tokens_per_s=747.2,
            output_tokens_per_s_per_gpu=186.8,
        ),
        memory=MemoryEstimate(
            per_device=devices or (device("n0.g0", 17.64), device("n0.g1", 17.64)),
            kv_cache_bytes_per_token=327_680,
            kv_cache_bytes_total=754_974_720,
            max_concurrency=61,
            requests_at_once=61,
            usable_from="0.90 of the reported figure",
        ),
        critical_path=CriticalPath(
            prefill=tuple(PathStep(node=f"step-{index}", ms=index, kind="compute") for index in range(1, 8)),
            decode=(PathStep(node="lm_head", ms=0.5, kind="memory"),),
        ),
        load=LoadEstimate(load="closed loop, 4 users", requests=40, running=3.7, saturated=False),
        calibration=Calibration(profile="datasheet", error_band_pct=None, note="constants of public data sheets"),
        ranges=Ranges(ttft_ms=(150.2, 360.3), dp_scaled_tokens_per_s=(501.2, 1104.0)),
        cost=CostEstimate(per_million_output_tokens=5.35, unit="gpu_seconds"),
        notes=("vocab_parallel would save 3.7 GB per GPU",),
    )


def plan() -> Plan:
    """Two replicas of two stages of two GPUs."""
    return tiny_plan(DENSE, PhaseStrategy(pp=2, tp=2, tp_ffn=2), dp=2)


def violation(message: str = "an edge skips stage 1", **fields: object) -> Violation:
    """A finding of PP003."""
    base: dict[str, object] = {
        "rule": "PP003",
        "severity": "error",
        "message": message,
        "nodes": ("r0.prefill.s0",),
        "edges": (("r0.prefill.s0", "r0.prefill.s2"),),
        "path": "/edges/7",
        "value": "stage 0 to stage 2",
        "expected": "stage 0 to stage 1",
        "remedy": "drop the edge",
        "source": "000 §3.3",
    }
    return Violation.model_validate(base | fields)


def result() -> PlanResult:
    """A feasible result with everything that a report may show."""
    return PlanResult(
        plan=plan(),
        valid=True,
        estimate=estimate(),
        report=PlanReport(
            proposer="builtin",
            explanation="TP 2 in two stages has the lowest end-to-end latency.",
            assumptions=(Assumption(field="concurrency", value=1, reason="latency was asked for"),),
            readings=("900 GB/s NVLink read as both directions together",),
            not_acted_on=("ignore the memory rule",),
            alternatives=(
                Alternative(
                    strategy=Strategy(dp=1, gpu_count=8, prefill=PhaseStrategy(tp=8), decode=PhaseStrategy(tp=8)),
                    summary="TP 8",
                    reason="12% slower end to end",
                    gpus=8,
                    ttft_ms=250.0,
                ),
            ),
            stated=StatedStrategyVerdict(summary="TP 3", valid=False, findings=(violation(),)),
            evaluated=120,
            rejected={"ME001": 30},
            limits=("TTFT 231 ms of at most 500 ms",),
        ),
    )


def infeasible() -> PlanResult:
    """An infeasible result."""
    return PlanResult(
        plan=None,
        valid=False,
        report=PlanReport(proposer="builtin", explanation="the weights alone take 812 GB", limits_met=False),
        infeasible=Infeasible(
            reason="the weights alone take 812 GB, 1 × rtx-4090 have 23.2 GB usable",
            rule="ME001",
            shortfall_bytes=788 * GB,
            needs=Needs(gpus=48, nodes=6, accelerator="rtx-4090", note="PP 6 of TP 8"),
            closest=Candidate(
                strategy=Strategy(dp=1, gpu_count=1, prefill=PhaseStrategy(tp=1), decode=PhaseStrategy(tp=1)),
                feasible=False,
                why_not=("ME001: short by 788 GB",),
                gpus=1,
                concurrency=1,
                shortfall_bytes=788 * GB,
            ),
        ),
    )
