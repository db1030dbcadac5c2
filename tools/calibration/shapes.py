"""The shapes of all kernels that can be timed: what a kernel does on one device, without its time.

Sizes are those of one device. Fields are floats if they can be expectations (copies of tokens, touched experts) and may
be NumPy arrays where constants are fitted.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..catalog.dtypes import DType
from .forms.elementary import Number

CollectiveOp = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]


class Gemm(Struct, frozen=True):
    """out[m, n] = in[m, k] x weights[n, k]; `weights` is the format they are stored in, `dtype` the one computed in.

    `blockwise`: fp8 weights with a scale for each block (DeepSeek's 128 x 128), which have separate kernels.
    """

    m: Number
    n: Number
    k: Number
    weights: DType
    dtype: DType
    blockwise: bool = False


class Attention(Struct, frozen=True):
    """`sequences` of `new_tokens` each, on `context` cached tokens each; a token sees at most `window` (None: all).

    Head counts are those on the device. `beside_prompts`: they decode in the same call as prompts, by the prompt
    kernel, whose tiles each hold rows of one query head.
    """

    sequences: Number
    new_tokens: Number
    context: Number
    query_heads: Number
    kv_heads: Number
    head_dim: Number
    kv: DType
    window: int | None = None
    beside_prompts: bool = False


class LatentAttention(Struct, frozen=True):
    """The core of MLA: `heads` on the device, latent and rotary widths as cached, nope and value widths as expanded.

    `chosen`: cached tokens that each new token selects (sparse attention); 0 if it sees all of them.
    """

    sequences: Number
    new_tokens: Number
    context: Number
    heads: Number
    latent: int
    rope: int
    nope: int
    value: int
    kv: DType
    chosen: Number = 0


class GroupedGemm(Struct, frozen=True):
    """The routed experts of one device: `copies` of tokens over `touched` experts of `inner` x `hidden` matrices.

    `tokens` are those of the whole group (all ranks), `experts` those of the model; `inner` is the width on the device.
    """

    tokens: Number
    copies: Number
    touched: Number
    experts: Number
    hidden: Number
    inner: Number
    gated: bool
    weights: DType
    dtype: DType
    blockwise: bool = False


class Elementwise(Struct, frozen=True):
    """A kernel bound by memory that moves `moved_bytes` (norms, rope, activations, copies, look-ups, routing)."""

    moved_bytes: Number
    kind: Literal["norm", "activation", "rope", "add", "copy", "routing"]


class Collective(Struct, frozen=True):
    """`op` of `size_bytes` over `ranks` in `nodes`; size as nccl-tests counts it: all_reduce the buffer of one rank,
    all_gather, reduce_scatter and all_to_all the total buffer (ranks x shard), send_recv the message.

    `over_host`: the ranks of a node lie in several islands of fast links, joined by PCIe.
    """

    op: CollectiveOp
    size_bytes: Number
    ranks: Number
    nodes: Number
    over_host: bool = False


class ExpertExchange(Struct, frozen=True):
    """Dispatch or combine of the `tokens` that one rank owns, `copy_bytes` per copy, to `top_k` experts.

    `low_latency`: the kernels for decode that send a copy for each expert; else those that send one for each rank
    inside a node and one for each other node. `nodes` are interconnect domains; routing lets a token reach at most
    `most_nodes` of them (0: any). `over_host` as in `Collective`.
    """

    phase: Literal["dispatch", "combine"]
    tokens: Number
    copy_bytes: Number
    top_k: Number
    ranks: Number
    nodes: Number
    low_latency: bool
    most_nodes: int = 0
    over_host: bool = False


Kernel = Gemm | Attention | LatentAttention | GroupedGemm | Elementwise | Collective | ExpertExchange
