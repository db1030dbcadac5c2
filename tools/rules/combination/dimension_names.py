"""Names of dimensions of parallelism: other names of this format's five, and names of dimensions that it lacks.

Judges a name by its words alone. An ordinary word (`data`, `model`, `layer`) names a dimension only beside the word
"parallel"; an abbreviation stands for itself.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

# Abbreviations and proper names; the degree that each is in this format, if any.
_FIVE = {
    "tp": "tp", "attention_tp": "tp", "attn_tp": "tp", "tp_attention": "tp", "tp_attn": "tp",
    "ffn_tp": "tp_ffn", "mlp_tp": "tp_ffn", "dense_tp": "tp_ffn", "tp_mlp": "tp_ffn", "tp_dense": "tp_ffn",
    "pp": "pp", "sp": "sp", "ulysses": "sp", "ep": "ep", "moe_ep": "ep", "ep_moe": "ep", "dp": "dp", "ddp": "dp",
    "dp_attention": "attention_dp", "attn_dp": "attention_dp", "dp_attn": "attention_dp", "adp": "attention_dp",
    "etp": "tp_expert", "moe_tp": "tp_expert", "tp_moe": "tp_expert", "expert_tp": "tp_expert",
}  # fmt: skip
_OTHERS = {
    "cp": "sp", "pcp": "sp", "ring_attention": "sp", "dcp": "kv_sp", "kvp": "kv_sp", "helix": "kv_sp", "mp": "tp",
    "fsdp": None, "fsdp2": None, "hsdp": None, "edp": None, "hybrid": None, "2d": None, "2_5d": None, "3d": None,
    "4d": None, "5d": None, "vpp": None,
}  # fmt: skip
# Words that name a dimension if "parallel" follows them.
_FIVE_IN_WORDS = {
    "tensor": "tp", "tensor_model": "tp", "attention_tensor": "tp", "ffn_tensor": "tp_ffn", "mlp_tensor": "tp_ffn",
    "pipeline": "pp", "pipeline_model": "pp", "sequence": "sp", "seq": "sp", "expert": "ep", "moe": "ep",
    "data": "dp", "attention_data": "attention_dp", "expert_tensor": "tp_expert", "moe_tensor": "tp_expert",
}  # fmt: skip
_OTHERS_IN_WORDS = {
    "context": "sp", "prefill_context": "sp", "decode_context": "kv_sp", "model": "tp", "layer": "pp", "batch": "dp",
}  # fmt: skip
_ZERO = re.compile(r"(deepspeed_)?zero_?([0-3]|pp|infinity|offload|stage|dp|redundancy(_optimizer)?|optimizer)?")
# Two to four consonants that end in p, as abbreviated dimensions do (`cp`, `vpp`, `wp`), except other abbreviations.
_ABBREVIATION = re.compile(r"(?!(?:mlp|http|ftp|tcp|mcp)$)[b-df-hj-np-tv-z]{1,3}p")
_ENDINGS = re.compile(
    r"_(size|degree|world|world_size|rank|ranks|group|groups|dim|dimension|shard|shards|sharding|enabled|fan_out|"
    r"chain|split|node|stage|ring)"
)
_PARALLEL = re.compile(r"(.+)_parallel(?:ism|ized|ize)?")
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s.\-/]+")
_MAX_NAME_CHARS = 60


class Dimension(Struct, frozen=True):
    """The meaning of a name. `defined`: one of the five dimensions by another name; `degree`: its field, if any."""

    degree: str | None
    defined: bool


def _core(name: str) -> str:
    """`name` in lower case with underscores, without endings for a property of a dimension (size, rank)."""
    word = _WORD_BORDER.sub("_", name).strip("_").lower()
    while True:
        cut = word.rfind("_")
        if cut <= 0 or not _ENDINGS.fullmatch(word[cut:]):
            return word
        word = word[:cut]


def _looked_up(word: str, five: dict[str, str], others: dict[str, str | None]) -> Dimension | None:
    if word in five:
        return Dimension(five[word], defined=True)
    return Dimension(others[word], defined=False) if word in others else None


def read_dimension(name: str) -> Dimension | None:
    """The dimension of parallelism that `name` means; `None` if it means none."""
    return _dimension(name) if len(name) <= _MAX_NAME_CHARS else None


# How shards are ranked along a degree, where the name differs.
_RANKS = {"tp_ffn": "tp", "tp_expert": "tp", "attention_dp": "dp"}


def rank_of(name: str) -> str | None:
    """The name of a rank along the dimension that `name` means; `None` if it means none."""
    dimension = read_dimension(name)
    degree = None if dimension is None else dimension.degree
    return None if degree is None else _RANKS.get(degree, degree)


@lru_cache(maxsize=4096)
def _dimension(name: str) -> Dimension | None:
    word = _core(name)
    known = _looked_up(word, _FIVE, dict(_OTHERS))
    if known is not None:
        return known
    # The capitals of "ZeRO" do not begin words.
    if _ZERO.fullmatch(word.replace("ze_ro", "zero")) or _ABBREVIATION.fullmatch(word):
        return Dimension(None, defined=False)
    before = _PARALLEL.fullmatch(word)
    if before is None:
        return None
    inner = before[1]
    spelled = _looked_up(inner, {**_FIVE, **_FIVE_IN_WORDS}, {**_OTHERS, **_OTHERS_IN_WORDS})
    return spelled or Dimension(None, defined=False)
