"""Rules over a graph and the space of the search judge degrees alike: both ask the same limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.engines.defaults import engine_relaxations
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    PHASES,
    HardwareBlock,
    ModelBlock,
    Phase,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import StageDegrees, attention_width, ffn_groups, gpu_count, stage_width
from shardwright.tools.rules.registry import all_rules
from shardwright.tools.search.space import SpaceRequest, stage_degrees
from shardwright.tools.validate import validate

from ..examples import examples
from ..plan.tiny import DENSE, MLA, MOE

FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
SHARED = {**MOE, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 512}
ODD = {**MOE, "num_experts": 18, "num_attention_heads": 12, "num_key_value_heads": 12, "vocab_size": 1000}
CONFIGS = [DENSE, MOE, MLA, SHARED, ODD, {**DENSE, **FP8}, {**MLA, **FP8}]
RELAXATIONS = ("attention_dp", "tp_in_expert", "kv_sequence_decode")
# GP003 judges experts that all lie on a number of devices other than their stage's.
OF_DEGREES = {rule.id for rule in all_rules() if rule.limits} | {"GP003"}


@st.composite
def requests(draw: st.DrawFn) -> tuple[dict[str, Any], SpaceRequest]:
    """A small model, an engine or none, and what is allowed."""
    config, engine = draw(st.sampled_from(CONFIGS)), draw(st.sampled_from([None, *JUDGED]))
    model, named = read_architecture(config), draw(st.frozensets(st.sampled_from(RELAXATIONS)))
    tokens, weights = draw(st.sampled_from([1024, 16384])), draw(st.sampled_from(["bf16", "fp8"]))
    # Relaxations that an engine brings are in force wherever it is named.
    relaxations = named | engine_relaxations(engine, model).keys()
    return config, SpaceRequest(model, 1, 8, tokens, relaxations, engine=engine, weights=weights)


@st.composite
def stages(draw: st.DrawFn, request: SpaceRequest, phase: Phase) -> PhaseStrategy:
    """The degrees of a stage, some of them in the space and most of them not."""
    devices = draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
    if draw(st.booleans()):
        options = list(stage_degrees(request, devices, phase))
        if options:
            return draw(st.sampled_from(options))
    part = st.sampled_from([divisor for divisor in range(1, devices + 1) if devices % divisor == 0])
    names = ("sp", "tp", "kv_sp", "attention_dp") if draw(st.booleans()) else ("tp",)
    degrees = PhaseStrategy(**{name: draw(part) for name in names})
    model = request.architecture
    ffn = {"tp_ffn": draw(part) if model.has_split_ffn else 1}
    experts = {"ep": devices // (split := draw(part)), "tp_expert": split} if model.is_moe else {}
    return degrees.model_copy(update={**ffn, **experts})


def is_of_the_shape(degrees: PhaseStrategy) -> bool:
    """Whether the space looks at such a stage at all: degrees divide it, and attention groups fill it by themselves."""
    width, attention, groups = stage_width(degrees), attention_width(degrees), degrees.attention_dp or 1
    if width > 8 or width % attention or any(width % (getattr(degrees, name) or 1) for name in ("tp_ffn", "ep")):
        return False
    beside = degrees.sp > 1 or (degrees.kv_sp or 1) > 1 or attention < width
    return groups == 1 or not (beside or (ffn_groups(degrees) == 1 and degrees.tp < degrees.tp_ffn < width))


def findings(
    config: dict[str, Any], request: SpaceRequest, phase: Phase, degrees: PhaseStrategy
) -> set[tuple[str, str]]:
    """(rule, severity) of each rule on degrees that a plan with these breaks, its other phase on one device."""
    sides = {name: PhaseStrategy(replicas=1) for name in PHASES}
    sides[phase] = degrees.model_copy(update={"replicas": 1})
    strategy = Strategy(dp=2, gpu_count=1, prefill=sides["prefill"], decode=sides["decode"])
    plan = build_plan(
        BuildRequest(
            model=ModelBlock(name="tiny", config=config),
            hardware=HardwareBlock(accelerator="h100-sxm", nodes=600, gpus_per_node=8),
            workload=WorkloadBlock(input_tokens=request.input_tokens, output_tokens=64),
            precision=PrecisionBlock(weights=request.weights or "bf16", kv_cache="bf16", activations="bf16"),
            strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
            policy=PolicyBlock.model_validate({"relaxations": tuple(request.relaxations)}),
            serving=ServingBlock(engine=request.engine),
        )
    )
    report = validate(plan)
    return {(violation.rule, violation.severity) for violation in report.violations if violation.rule in OF_DEGREES}


@pytest.mark.thorough
@examples(150)
@given(data=st.data(), asked=requests(), phase=st.sampled_from(PHASES))
def test_the_space_holds_what_no_rule_on_degrees_forbids(
    data: st.DataObject, asked: tuple[dict[str, Any], SpaceRequest], phase: Phase
) -> None:
    config, request = asked
    degrees = data.draw(stages(request, phase))
    faults = list(request.judge.faults(StageDegrees.of(degrees, phase)))
    stated = PhaseStrategy.model_validate({key: value for key, value in degrees.model_dump().items() if value != 1})
    in_space = stated in {*stage_degrees(request, stage_width(degrees), phase)}
    assert in_space == (is_of_the_shape(degrees) and all(fault.is_proposed for _, fault in faults))
    broken = findings(config, request, phase, degrees)
    assert any(fault.severity == "error" for _, fault in faults) == ("error" in {severity for _, severity in broken})
    if in_space:
        # A stage of the space breaks no rule on degrees, and has the warnings of its plan.
        assert {rule for rule, _ in broken} == request.judge.warned(StageDegrees.of(degrees, phase))
