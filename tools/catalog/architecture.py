"""What a model *is*, layer by layer, in the quantities that splitting it needs.

An `Architecture` is read once from a Hugging Face style config (`config.py`) and does not depend on file formats.
Every weight tensor of every operator is listed with its size and the way tensor parallelism may cut it, so that the
parameter count, the memory of a device and the bytes that a step reads are all sums over the same list.

Symbols as in the field: H hidden size, a query heads, g KV heads, d head dim, I FFN width, E experts, k top-k.
"""

from functools import cached_property

from msgspec import Struct

from .attention.spec import AttentionSpec
from .dtypes import DType, TensorClass, WeightTensor


class FFNSpec(Struct, frozen=True):
    """One dense FFN, or the shared expert of a MoE operator: H x `width` matrices, gated or not."""

    width: int
    gated: bool
    tensors: tuple[WeightTensor, ...]


class MoESpec(Struct, frozen=True):
    """One MoE operator. `expert_tensors` are those of *one* routed expert (`width` is the expert's own)."""

    experts: int
    top_k: int
    width: int
    gated: bool
    expert_tensors: tuple[WeightTensor, ...]
    router_tensors: tuple[WeightTensor, ...]
    # The always-on expert beside the routed ones (its width is the sum over n_shared_experts), or None.
    shared: FFNSpec | None = None
    # Node-limited routing (DeepSeek): a token's experts come from at most `topk_groups` of `groups`.
    groups: int = 1
    topk_groups: int = 1


class LayerSpec(Struct, frozen=True):
    """One decoder layer: the operators that it has, in order. At least one of the three is set.

    A layer with both `ffn` and `moe` (Gemma 4 A4B) runs the dense FFN beside the experts: it is read as the shared
    expert of the MoE operator, so `ffn` and `moe` are never both set here.
    """

    attention: AttentionSpec | None
    ffn: FFNSpec | None
    moe: MoESpec | None

    @property
    def shared(self) -> FFNSpec | None:
        """The shared expert of its MoE operator."""
        return None if self.moe is None else self.moe.shared

    @property
    def split_ffn(self) -> FFNSpec | None:
        """What `tp_ffn` splits: the dense FFN, or the shared expert."""
        return self.ffn or self.shared


class WeightDTypes(Struct, frozen=True):
    """The number format of each tensor class for one precision request; `linear` is every other matmul."""

    attention: DType
    linear: DType
    expert: DType
    vocabulary: DType
    router: DType
    norm: DType

    def of(self, tensor_class: TensorClass) -> DType:
        """The format of tensors of `tensor_class`."""
        return getattr(self, tensor_class)


class Architecture(Struct, frozen=True, dict=True, weakref=True):
    """A decoder-only transformer. `layers[i]` is layer i; equal layers are the same object (compare with `is`/`==`)."""

    model_type: str
    hidden_size: int
    vocab_size: int
    tied_embeddings: bool
    max_position_embeddings: int
    layers: tuple[LayerSpec, ...]
    embedding_tensors: tuple[WeightTensor, ...]
    # Empty when the embedding table is tied: the head then reads the embedding's own tensor.
    lm_head_tensors: tuple[WeightTensor, ...]
    final_norm_tensors: tuple[WeightTensor, ...]
    # The checkpoint's own formats; the documented defaults that were taken are among the `assumptions`.
    native_dtypes: WeightDTypes
    native_precision: DType
    # How many weights in a row share a scale, where a device must hold all of them (fp8 blocks, int4 groups).
    scale_block: int | None = None
    # Parameters of a vision encoder, which engines load onto every rank and no plan splits.
    encoder_params: int = 0
    assumptions: tuple[str, ...] = ()

    @property
    def num_layers(self) -> int:
        """Number of decoder layers."""
        return len(self.layers)

    @cached_property
    def layer_kinds(self) -> tuple[LayerSpec, ...]:
        """The layers that differ, each once."""
        return tuple({id(layer): layer for layer in self.layers}.values())

    @cached_property
    def is_moe(self) -> bool:
        """Whether any layer has routed experts."""
        return any(layer.moe is not None for layer in self.layers)

    @cached_property
    def num_experts(self) -> int:
        """Routed experts of a MoE layer (the largest, should layers differ); 0 for a dense model."""
        return max((layer.moe.experts for layer in self.layers if layer.moe is not None), default=0)

    @cached_property
    def has_split_ffn(self) -> bool:
        """Whether `tp_ffn` applies: some layer has a dense FFN or a shared expert."""
        return any(layer.split_ffn is not None for layer in self.layers)

    @cached_property
    def total_params(self) -> int:
        """Parameters of the whole decoder, every expert counted."""
        total = sum(t.elements for t in (*self.embedding_tensors, *self.lm_head_tensors, *self.final_norm_tensors))
        return total + sum(layer_params(layer) for layer in self.layers)


def layer_params(layer: LayerSpec) -> int:
    """Parameters of one layer, every expert counted."""
    tensors = [tensor for part in (layer.attention, layer.split_ffn) if part is not None for tensor in part.tensors]
    routed = 0
    if layer.moe is not None:
        tensors += layer.moe.router_tensors
        routed = layer.moe.experts * sum(tensor.elements for tensor in layer.moe.expert_tensors)
    return routed + sum(tensor.elements for tensor in tensors)


def active_params(layer: LayerSpec) -> int:
    """Weights of a layer that a token uses: of the routed experts only those that it is sent to."""
    if layer.moe is None:
        return layer_params(layer)
    expert = sum(tensor.elements for tensor in layer.moe.expert_tensors)
    return layer_params(layer) - (layer.moe.experts - layer.moe.top_k) * expert
