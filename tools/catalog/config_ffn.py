"""The dense FFN and the mixture of experts of one layer from a config, and the vision encoder, which engines load onto
every rank beside the decoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..errors import InputError
from .architecture import FFNSpec, MoESpec
from .attention.compressed import hyper_connection
from .attention.spec import OperatorContext, norm_tensor
from .config_fields import MAX_EXPERTS, ConfigFields, Profile
from .dtypes import TensorClass, WeightTensor, vector


class FFNContext(OperatorContext, frozen=True):
    """What the FFN readers need."""

    @property
    def gated(self) -> bool:
        """Whether the FFN multiplies an activated gate with the up projection (SwiGLU and its like)."""
        return self.flag("mlp_gated", default=True)

    @property
    def _bias(self) -> bool:
        return self.flag("mlp_bias") or self.has_bias_everywhere or self.fields.flag("bias")

    def around(self) -> list[WeightTensor]:
        """The tensors around an FFN or MoE operator: norms, and what single model types add."""
        traits = self.profile.traits
        tensors = [norm_tensor(self.profile, self.hidden_size, "ffn_norms")]
        if traits.get("short_convolutions"):
            kernel = self.fields.size("conv_kernel_size", "the short convolutions have this width")
            tensors.append(vector("ffn_sconv", self.hidden_size * kernel + 1))
        if traits.get("residual_streams"):
            tensors.append(hyper_connection(self.fields, self.hidden_size, "ffn_hyper_connection"))
        return tensors

    def matrices(self, width: int, inner: int, tensor_class: TensorClass = "linear") -> list[WeightTensor]:
        """The two or three matrices of one FFN between `width` and `inner`, with their biases."""
        ups = 2 if self.gated else 1
        names = ("gate_up_proj" if self.gated else "up_proj", "down_proj")
        tensors = [
            WeightTensor(names[0], ups * width * inner, "sharded", tensor_class),
            WeightTensor(names[1], inner * width, "sharded", tensor_class),
        ]
        if self._bias and tensor_class == "linear":
            tensors += [vector("up_bias", ups * inner, sharded=True), vector("down_bias", width)]
        return tensors


def dense_width(context: FFNContext) -> int:
    """I of the dense layers; types whose `intermediate_size` is the experts' width use another field."""
    fields, traits = context.fields, context.profile.traits
    field = traits.get("dense_width_field", "intermediate_size")
    if field == "intermediate_size" and traits.get("ffn_is_4h") and fields.stated(field) is None:
        # GPT-2, GPT-J, BLOOM, Falcon and their like.
        fields.assume(f"intermediate_size = 4 x hidden_size = {4 * context.hidden_size}: not stated")
        return 4 * context.hidden_size
    return fields.size(field, "a dense FFN layer has this width")


def dense_ffn(context: FFNContext) -> FFNSpec:
    """The dense FFN of one layer."""
    width = dense_width(context)
    tensors = [*context.around(), *context.matrices(context.hidden_size, width)]
    if context.profile.traits.get("activation_parameters"):
        tensors.append(vector("activation", 2))
    return FFNSpec(width, context.gated, tuple(tensors))


def num_experts(fields: ConfigFields, profile: Profile) -> int:
    """Routed experts of a MoE layer, 0 for a dense model.

    Raises MissingFieldError: the model type always has experts and the config does not say how many.
    """
    experts = fields.count("num_experts", MAX_EXPERTS)
    if experts is None and profile.needs_experts:
        raise fields.missing("num_experts", f"a {profile.model_type} model has routed experts")
    return experts or 0


def _expert_width(context: FFNContext) -> int:
    fields = context.fields
    stated = fields.optional_size("moe_intermediate_size")
    if stated is not None:
        return stated
    field = context.profile.traits.get("expert_width_field")
    if field is None and context.profile.model_type is None:
        field = "intermediate_size"
        fields.assume("moe_intermediate_size = intermediate_size: not stated")
    if field is None:
        raise fields.missing("moe_intermediate_size", "an expert has this width")
    return fields.size(field, "an expert has this width")


def mixture(context: FFNContext) -> MoESpec:
    """The MoE operator of one layer: router, one routed expert's tensors, the shared expert."""
    fields, width = context.fields, context.hidden_size
    experts = num_experts(fields, context.profile)
    top_k = fields.size("num_experts_per_tok", "each token goes to this many experts", MAX_EXPERTS)
    if top_k > experts:
        raise fields.refuse(f"num_experts_per_tok {top_k} is more than num_experts {experts}")
    inner = _expert_width(context)
    latent = fields.optional_size("moe_latent_size")
    expert = context.matrices(latent or width, inner, "expert")
    if context.flag("expert_bias"):
        expert.append(vector("expert_bias", (2 if context.gated else 1) * inner + width))
    groups = fields.optional_size("n_group", MAX_EXPERTS) or 1
    topk_groups = fields.optional_size("topk_group", MAX_EXPERTS) or groups
    if experts % groups or topk_groups > groups:
        raise fields.refuse(f"{experts} experts do not fall into {groups} groups of which {topk_groups} are taken")
    return MoESpec(
        experts=experts,
        top_k=top_k,
        width=inner,
        gated=context.gated,
        expert_tensors=tuple(expert),
        router_tensors=(*context.around(), *_router(context, experts, latent)),
        shared=_shared(context, inner),
        groups=groups,
        topk_groups=topk_groups,
    )


def _router(context: FFNContext, experts: int, latent: int | None) -> list[WeightTensor]:
    fields, traits, width = context.fields, context.profile.traits, context.hidden_size
    outputs = experts
    if traits.get("short_convolutions"):
        # Inkling's router scores the shared experts too, and scales by one learned number.
        outputs += fields.count("n_shared_experts", MAX_EXPERTS) or 0
    tensors = [WeightTensor("router", width * outputs, "replicated", "router")]
    if context.flag("router_bias"):
        tensors.append(WeightTensor("router_bias", experts, "replicated", "router"))
    if latent is not None:
        tensors.append(WeightTensor("latent_proj", 2 * width * latent, "replicated"))
    return tensors


def _shared(context: FFNContext, expert_width: int) -> FFNSpec | None:
    """The always-on expert: `n_shared_experts` times its own width; Gemma 4's dense FFN beside the experts is one."""
    fields, traits, width = context.fields, context.profile.traits, context.hidden_size
    if traits.get("dense_beside_experts"):
        inner = dense_width(context)
        return FFNSpec(inner, context.gated, tuple(context.matrices(width, inner)))
    stated_width = fields.count("shared_expert_intermediate_size")
    copies = fields.count("n_shared_experts", MAX_EXPERTS)
    if copies is None:
        # A stated width without a count is one expert (Qwen2-MoE); types that always have some have a default.
        copies = traits.get("n_shared_experts", 1 if stated_width else 0)
    inner = copies * (expert_width if stated_width is None else stated_width)
    if copies == 0 or stated_width == 0:
        return None
    tensors = context.matrices(width, inner)
    if context.flag("shared_expert_gate"):
        tensors.append(WeightTensor("shared_expert_gate", width, "replicated", "router"))
    return FFNSpec(inner, context.gated, tuple(tensors))


# Matrices of the FFN in each kind of encoder whose layers are known: two of SigLIP's, CLIP's and Qwen3-VL's, gated ones
# of Gemma 4 (569,550,384 parameters with its positions; counted here: 545 million), Pixtral and Qwen2.5-VL.
_FFN_MATRICES = {
    "siglip_vision_model": 2, "clip_vision_model": 2, "gemma4_vision": 3, "pixtral": 3, "qwen2_5_vl": 3, "qwen3_vl": 2,
    "qwen3_vl_moe": 2,
}  # fmt: skip


def encoder_params(config: Mapping[str, Any], where: str) -> int:
    """Parameters of the layers of the encoder that `config` describes; 0 where it has none or one of an unknown kind.

    Raises InputError: it is no object, or a dimension of it is absent or no positive number.
    """
    part: Any = config.get("vision_config")
    if part is None:
        return 0
    if not isinstance(part, Mapping):
        raise InputError(f"{where}: field 'vision_config' must be an object")
    values = cast("Mapping[str, Any]", part)
    matrices = _FFN_MATRICES.get(str(values.get("model_type")))
    if matrices is None:
        return 0
    fields = ConfigFields(values, {}, None, f"{where}, vision_config")
    why = "the vision encoder takes memory beside the decoder"
    width, inner = fields.size("hidden_size", why), fields.size("intermediate_size", why)
    return fields.size("num_hidden_layers", why) * width * (4 * width + matrices * inner)
