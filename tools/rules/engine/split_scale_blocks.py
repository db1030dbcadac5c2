"""EN002 (warning, an error for vLLM and SGLang): a slice of a quantised matrix is a whole number of scale blocks.

Blocks are those of FP8 checkpoints (128 x 128 as a rule) and the groups of AWQ, GPTQ and W4A16 ones (128 in a row).

It looks at the widths that FFN degrees split: dense FFN, shared expert, and experts under `tp_in_expert`. Attention
projections are left to the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...catalog.dtypes import DType, WeightTensor
from ...catalog.precision import weight_dtypes
from ..base import Example, Rule, set_top
from ..legality import Case, Conditions, DegreeLimit, Fault

_SCALED: dict[DType, str] = {"fp8": "FP8 blocks", "int4": "INT4 groups", "int8": "INT8 groups"}


def _is_scaled(conditions: Conditions, tensors: Sequence[WeightTensor]) -> bool:
    if conditions.weights is None:
        return False
    dtypes = weight_dtypes(conditions.architecture, conditions.weights)
    # The operator's norm, which stays in 16 bits, is one of its tensors.
    return any(dtypes.of(tensor.tensor_class) in _SCALED for tensor in tensors)


def _fitting(width: int, block: int) -> list[int]:
    blocks = width // block if width % block == 0 else 1
    return [degree for degree in range(1, min(blocks, 1024) + 1) if blocks % degree == 0]


def _cut(case: Case, name: str, degree: int, width: int, what: str) -> Iterator[Fault]:
    conditions, block = case.conditions, case.conditions.architecture.scale_block or 0
    if degree == 1 or width % degree or block < 1 or not (width // degree) % block:
        return
    kind = _SCALED.get(conditions.weights, "scale blocks") if conditions.weights is not None else "scale blocks"
    is_refused = conditions.engine is not None and conditions.engine.refuses_split_blocks
    yield Fault(
        "cut-block",
        f"{name} {degree} cuts the {width} columns of {what} into slices of {width // degree}, no whole number of the "
        f"checkpoint's {kind} of {block}; {conditions.engine_title} may refuse to load them",
        value={name: degree, "slice": width // degree, "block": block},
        expected=_fitting(width, block),
        severity="error" if is_refused else "warning",
    )


def _ffn(case: Case) -> Iterator[Fault]:
    if _is_scaled(case.conditions, case.ffn.tensors):
        yield from _cut(case, "tp_ffn", case.degrees.tp_ffn, case.ffn.width, case.ffn_name)


def _expert(case: Case) -> Iterator[Fault]:
    if _is_scaled(case.conditions, case.moe.expert_tensors):
        yield from _cut(case, "tp_expert", case.degrees.tp_expert, case.moe.width, "an expert")


_FP8 = (
    set_top("/precision/weights", "fp8"),
    set_top("/model/config/quantization_config", {"quant_method": "fp8", "weight_block_size": [128, 128]}),
)

RULE = Rule(
    id="EN002",
    name="split scale blocks",
    severity="warning",
    requirement=(
        "Where the weights run in block-quantised FP8 or in INT4 or INT8 groups, each device's slice of a dense FFN, a "
        "shared expert or a split expert is a whole number of the checkpoint's blocks. An error in a plan that names "
        "vLLM or SGLang."
    ),
    rationale=(
        "One scale belongs to one block (128 × 128 of FP8, 128 in a row of AWQ and GPTQ as a rule). A slice that ends "
        "inside a block has no scale of its own; vLLM and SGLang stop at loading: width / degree must be a multiple "
        "of the block."
    ),
    source=(
        "vLLM 0.33.0 layers/quantization/utils/fp8_utils.py and utils/marlin_utils.py; "
        "SGLang 0.5.23 layers/quantization/fp8.py and awq.py"
    ),
    fix="re-plan",
    remedy=(
        "keep experts whole by EP instead of cutting them (vLLM: --enable-expert-parallel, SGLang: --ep-size), choose "
        "a degree that leaves whole blocks, or serve the weights in bf16"
    ),
    limits=(DegreeLimit(("tp_ffn",), _ffn), DegreeLimit(("tp_expert",), _expert)),
    good=Example(edits=_FP8),
    bad=Example("dense-tp4", (*_FP8, set_top("/model/config/intermediate_size", 1280))),
)
