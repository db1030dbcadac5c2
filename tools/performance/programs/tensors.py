"""The weights of one operator on one device, sorted by the role of the matmul that reads them."""

from __future__ import annotations

from ...catalog.tensors import WeightTensor
from ...kept import Cache
from ..kv_cache import heads_share
from ..operation import Role
from ..operators.linear import Matrix
from ..roofline import rate_dtype
from ..setting import Setting

_ROLES: dict[str, Role] = {
    "q_a_proj": "q_a",
    "q_b_proj": "q_b",
    "kv_a_proj": "kv_a",
    "kv_b_proj": "kv_b",
    "o_proj": "out",
    "o_a_proj": "out",
    "o_b_proj": "out",
    "out_proj": "out",
    "gate_up_proj": "gate_up",
    "up_proj": "gate_up",
    "shared_expert_gate": "gate_up",
    "down_proj": "down",
    "router": "router",
    "router_bias": "router",
    "latent_proj": "router",
}


def role_of(tensor: WeightTensor) -> Role | None:
    """The matmul that reads `tensor` (a matrix without a name here projects attention's input); `None`: a vector."""
    if tensor.tensor_class == "norm":
        return None
    return _ROLES.get(tensor.name, "qkv")


def share_on_device(tensor: WeightTensor, tp: int, kv_heads: int) -> float:
    """Share of `tensor` on one of `tp` devices."""
    if tensor.split == "sharded":
        return 1.0 / tp
    return heads_share(tp, kv_heads) if tensor.split == "kv_heads" else 1.0


_MATRICES = Cache[tuple[int, int, int], "dict[Role | None, Matrix]"](
    "weights by role of a tuple of tensors on a device"
)


def weights_by_role(
    setting: Setting, tensors: tuple[WeightTensor, ...], tp: int, kv_heads: int = 1
) -> dict[Role | None, Matrix]:
    """`tensors` on one of `tp` devices, by role; `None` is what the norm kernel reads. Kept per tuple (by identity)."""
    return _MATRICES.get(setting.caches, (id(tensors), tp, kv_heads), lambda: _by_role(setting, tensors, tp, kv_heads))


def _by_role(setting: Setting, tensors: tuple[WeightTensor, ...], tp: int, kv_heads: int) -> dict[Role | None, Matrix]:
    found: dict[Role | None, Matrix] = {}
    for tensor in tensors:
        role = role_of(tensor)
        share = share_on_device(tensor, tp, kv_heads)
        before = found.get(role)
        elements, size = (before.elements, before.weight_bytes) if before else (0.0, 0.0)
        stored = setting.weight_dtype(tensor.tensor_class)
        found[role] = Matrix(
            elements + tensor.elements * share,
            size + tensor.elements * share * setting.weight_bytes(tensor.tensor_class),
            stored,
            rate_dtype(stored, setting.precision.activations),
            blockwise=stored == "fp8" and setting.architecture.scale_block is not None,
        )
    return found
