"""EN002 (warning, an error for vLLM and SGLang): a slice of a quantised matrix is a whole number of scale blocks.

Blocks are those of FP8 checkpoints (128 x 128 as a rule) and the groups of AWQ, GPTQ and W4A16 ones (128 in a row).

It looks at the widths that FFN degrees split: dense FFN, shared expert, and experts under `tp_in_expert`. A width that
the degree does not divide at all is TP005's; attention projections are left to the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, get_args

from ...catalog.architecture import LayerSpec, WeightDTypes
from ...catalog.dtypes import DType
from ...catalog.precision import weight_dtypes
from ...catalog.tensors import WeightTensor
from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..engines import named_engine, title
from ..layer_specs import operator_specs
from ..sharding import misranked_dimension, tensor_degree

_MAX_NAMED = 64
_SCALED: dict[DType, str] = {"fp8": "FP8 blocks", "int4": "INT4 groups", "int8": "INT8 groups"}
# What is split, by which degree, and the width of it.
_Slice = tuple[str, str, int]


def _is_scaled(dtypes: WeightDTypes, tensors: tuple[WeightTensor, ...]) -> bool:
    # The operator's norm, which stays in 16 bits, is one of its tensors.
    return any(dtypes.of(tensor.tensor_class) in _SCALED for tensor in tensors)


def _slices(operator: NodeView, layer: LayerSpec, dtypes: WeightDTypes) -> Iterator[tuple[NodeView, _Slice]]:
    if operator.type == "FFNNode" and layer.ffn is not None and _is_scaled(dtypes, layer.ffn.tensors):
        yield operator, ("the FFN", "tp_ffn", layer.ffn.width)
    if operator.type != "MoENode" or layer.moe is None:
        return
    moe = layer.moe
    if moe.shared is not None and _is_scaled(dtypes, moe.shared.tensors):
        for shared in operator.children_of_type("FFNNode"):
            yield shared, ("the shared expert", "tp_ffn", moe.shared.width)
    if _is_scaled(dtypes, moe.expert_tensors):
        for expert in operator.children_of_type("ExpertNode"):
            yield expert, ("an expert", "tp_expert", moe.width)


def _weight_dtypes(view: PlanView) -> WeightDTypes | None:
    weights = view.precision.get("weights")
    if view.architecture is None or weights not in get_args(DType):
        return None
    return weight_dtypes(view.architecture, cast("DType", weights))


def _fitting(width: int, block: int) -> list[int]:
    blocks = width // block if width % block == 0 else 1
    return [degree for degree in range(1, min(blocks, 1024) + 1) if blocks % degree == 0]


def check(view: PlanView) -> Iterator[Finding]:
    """Yield each degree of a phase that cuts through the blocks of what it splits."""
    dtypes, block = _weight_dtypes(view), view.architecture.scale_block if view.architecture is not None else None
    engine = named_engine(view)
    severity = "error" if engine is not None and engine.refuses_split_blocks else "warning"
    if dtypes is None or block is None or block < 1:
        return
    kind = _SCALED.get(cast("DType", view.precision.get("weights")), "scale blocks")
    found: dict[tuple[str, _Slice, int], dict[int, NodeView]] = {}
    for phase in view.phases:
        for operator, specs in operator_specs(view, phase):
            for _, layer in specs:
                for node, part in _slices(operator, layer, dtypes):
                    degree = tensor_degree(node)
                    cut = degree > 1 and part[2] % degree == 0 and (part[2] // degree) % block
                    if cut and misranked_dimension(node) is None:
                        found.setdefault((phase.phase or "", part, degree), {})[node.position] = node
    for (phase_name, (what, name, width), degree), operators in found.items():
        nodes = list(operators.values())
        yield Finding(
            f"{phase_name}: {name} {degree} cuts the {width} columns of {what} into slices of {width // degree}, no "
            f"whole number of the checkpoint's {kind} of {block}; {title(view)} may refuse to load them",
            where=nodes[0],
            nodes=nodes[:_MAX_NAMED],
            value={name: degree, "slice": width // degree, "block": block},
            expected=_fitting(width, block),
            severity=severity,
        )


_BASE = "dense-tp4"
_FP8 = (
    Edit("set_top", field="/precision/weights", value="fp8"),
    Edit(
        "set_top",
        field="/model/config/quantization_config",
        value={"quant_method": "fp8", "weight_block_size": [128, 128]},
    ),
)

RULE = Rule(
    id="EN002",
    name="split scale blocks",
    severity="warning",
    requirement=(
        "Where the weights run in block-quantised FP8 or in INT4 or INT8 groups, each device's slice of a dense FFN, a "
        "shared expert or a split expert is a whole number of the checkpoint's blocks."
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
    remedy="choose a degree that leaves whole blocks, or serve the weights in bf16",
    check=check,
    good=Example(_BASE, _FP8),
    bad=Example(_BASE, (*_FP8, Edit("set_top", field="/model/config/intermediate_size", value=1280))),
)
