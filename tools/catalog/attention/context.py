"""What the attention of every layer is read from: the config's fields, the traits of its type, shared sizes."""

from __future__ import annotations

from dataclasses import dataclass

from ..config_fields import ConfigFields, Profile
from ..dtypes import WeightTensor, vector


@dataclass(frozen=True, slots=True)
class AttentionContext:
    """What every attention reader needs: the fields, the traits of the type, and the sizes that all layers share."""

    fields: ConfigFields
    profile: Profile
    hidden_size: int
    query_heads: int

    @property
    def norms(self) -> WeightTensor:
        """The norms around the operator: one vector of H each, twice that with a bias."""
        return norm_tensor(self.profile, self.hidden_size, "attention_norms")

    def flag(self, field: str) -> bool:
        """A switch as the config states it, else as the type has it."""
        return self.fields.flag(field, bool(self.profile.traits.get(field)))

    @property
    def head_dim(self) -> int:
        """`head_dim`, or H / a where the config leaves it out (noted)."""
        fields, width, heads = self.fields, self.hidden_size, self.query_heads
        stated = fields.optional_size("head_dim")
        if stated is not None:
            return stated
        if width % heads:
            raise fields.missing("head_dim", f"hidden_size {width} is no multiple of {heads} attention heads")
        fields.assume(f"head_dim = hidden_size / num_attention_heads = {width // heads}: not stated")
        return width // heads


def norm_tensor(profile: Profile, hidden_size: int, trait: str) -> WeightTensor:
    """The norms that `trait` counts (1 where the type does not say), as one replicated tensor."""
    vectors = profile.traits.get(trait, 1) * (2 if profile.traits.get("norm_bias") else 1)
    return vector(trait.replace("_norms", "_norm"), vectors * hidden_size)
