"""EN015: two halves of a batch overlap only if the engine has a setting for it.

It needs a plan that names its engine and chooses `two_batch` overlap.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base import Example, Rule, served_by
from ..legality import Case, DegreeLimit, Fault


def _fault(case: Case) -> Iterator[Fault]:
    engine, degrees = case.conditions.engine, case.degrees
    if engine is None or not case.conditions.overlaps:
        return
    needs = engine.overlap_needs(degrees.ep, degrees.attention_dp, degrees.devices)
    if needs is not None:
        yield Fault(
            "no-overlap",
            f"serving.overlap lets two halves of a batch overlap, but {engine.title} {needs}",
            "two_batch",
            "none",
        )


def _dense(case: Case) -> Iterator[Fault]:
    if not case.conditions.architecture.is_moe:
        yield from _fault(case)


RULE = Rule(
    id="EN015",
    name="unsupported overlap",
    requirement=(
        "In a plan that names its engine, overlap two_batch needs expert parallelism over all devices of a stage, in "
        "vLLM with attention_dp too. A plan that names TensorRT-LLM has none."
    ),
    rationale=(
        "Both engines hide the dispatch and combine of one half of a batch behind the computation of the other, by an "
        "all-to-all of their own for experts: vLLM's dual batch overlap runs in deployments of data and expert "
        "parallelism, and on DeepEP or NIXL alone; SGLang's two-batch overlap on a backend that spans the tensor "
        "group. Without it the servers take longer than the plan says."
    ),
    source=(
        "vLLM design/dbo.md, 0.33.0 config/vllm.py (all2all_backend); SGLang server_args.py (enable_two_batch_overlap, "
        "moe_a2a_backend); TensorRT-LLM llmapi/llm_args.py"
    ),
    fix="report",
    remedy="spread the experts over all devices (and give attention groups in vLLM), or set serving.overlap to none",
    limits=(DegreeLimit(("tp",), _dense), DegreeLimit(("ep", "attention_dp", "devices"), _fault)),
    good=Example("relaxed-attention-dp2-ep4", (served_by("vllm", overlap="two_batch"),)),
    bad=Example("dense-tp2", (served_by("vllm", overlap="two_batch"),)),
)
