"""The vision encoder of a composite checkpoint: engines load it beside the decoder, onto every rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..errors import InputError
from .config_fields import ConfigFields

# Matrices of the FFN in each kind of encoder whose layers are known: two of SigLIP's and CLIP's, a gated one of Gemma 4
# (569,550,384 parameters with its positions; counted here: 545 million).
_FFN_MATRICES = {"siglip_vision_model": 2, "clip_vision_model": 2, "gemma4_vision": 3}


def encoder_params(config: Mapping[str, Any], where: str) -> int:
    """Parameters of the layers of the encoder that `config` describes; 0 where it has none or one of an unknown kind.

    Raises:
        InputError: it is no object, or a dimension of it is absent or no positive number.
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
