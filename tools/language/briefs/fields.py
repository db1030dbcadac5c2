"""The table of what planners call things: words and units, English and Chinese, to the field that they state.

A rule matches a clause in which the figure at hand stands as `#`, other figures as marks (`<gbs>` a rate in bytes,
`<tf>` a peak, `<x>` any other) and catalogue names as `gpu` or `llm`. Words are lower case, underscores and hyphens are
spaces. It refuses nothing; the readers do.
"""

from __future__ import annotations

import re
from functools import cache
from typing import cast

from msgspec import Struct

from ..patterns.quantities import Unit

# A row: field, units, words, words that must not stand near, words that must stand somewhere.
Row = tuple[str, str, str] | tuple[str, str, str, str | None] | tuple[str, str, str, str | None, str]

GPU = r"(?:gpus?|cards?|accelerators?|devices?|npus?|dcus?|xpus?|tpus?|chips?|显卡|加速卡|加速器|芯片|卡)"
NODE = r"(?:nodes?|servers?|hosts?|machines?|boxes|box|chassis|instances?|节点|服务器|机器|主机|整机)"
INTRA = (
    r"nvlink|nvswitch|xgmi|infinity fabric|hccs|ualink|pcie|intra|scale up|gpu to gpu|p2p"
    rf"|(?:inside|within|in|on) (?:a |each |one |the |every )?(?:same )?{NODE}|(?:single|same) {NODE}|"
    r"机内|节点内|卡间|片间|服务器内|机器内"
)
INTER = (
    rf"inter (?:node|server|host|machine)|(?:between|across|among) (?:the )?{NODE}|cross {NODE}|{NODE} "
    rf"to {NODE}|internode"
    r"|network|infini ?band|\bib\b|roce|\bnics?\b|ethernet|rdma|scale out|fabric|\bndr\b|\bhdr\b|\bxdr\b|off node"
    r"|机间|节点间|跨机|跨节点|跨服务器|服务器间|服务器之间|机器间|机器之间|节点之间|网络|网卡|组网"
)
UTIL = (
    r"(?:utili[sz]ation|utili[sz]ed|efficien\w+|usage|used|fraction|achieved|achievable|effective|reached"
    r"|利用率|使用率|效率|占用率?|占比)"
)

_HEADS = r"\bheads?\b|注意力头|头数"
_KV = r"(?<![a-z])kv(?![a-z])|\bk/v\b|key value|键值"
_DIMENSIONS: dict[str, tuple[str, ...]] = {
    "first_k_dense_replace": (
        r"(?:first|leading|initial|前) ?#|first k dense|dense layers|# ?(?:leading |initial |first )?dense "
        r"(?:layers?|blocks?)|稠密层",
        r"experts?\b"),
    "num_hidden_layers": (r"\blayers?\b|层数?|\b(?:decoder|transformer) blocks\b|(?:^|: )(?:n(?:um)? )?blocks :|"
        r"n layers?|depth",
        r"隐藏层|隐层|中间层|first|leading|dense layers?|stage|pipeline|per layer|offload|每层|head|前 ?#|moe layers"),
    "head_dim": (rf"(?:{_HEADS}|heads?) of (?:dim\w*|size|width)? ?#|head ?(?:dim\w*|size|width)|d head|(?:dim\w*|"
        r"size|width|elements)(?: of| per)? (?:each )?head|# (?:dim\w* )?(?:per|each) head|heads? : of # dim|"
        r"头维度?|每头|每个头",
        r"\bv head|value head|rope|nope|\bqk\b|latent"),
    "num_key_value_heads": (
        rf"(?:{_KV})[^#<]{{0,12}}(?:heads?|头|groups?)|(?:query|kv) groups?|num key value heads|kv 头数?",
        r"dim|size|width|维"),
    "num_attention_heads": (rf"(?:query |attention |\bq )?{_HEADS}|查询头",
        rf"(?:{_KV}) ?(?:heads|头)|dim|size|width|维|linear|index"),
    "moe_intermediate_size": (
        r"expert[^#<]{0,14}(?:width|ffn|hidden|intermediate|dim\w*|size|inner)|(?:width|ffn|hidden|"
        r"intermediate|inner)[^#<]{0,14}(?:each |per |of (?:an|each) )expert|专家[^#<]{0,8}(?:宽度|维度|中间|隐藏|"
        r"大小)|moe (?:intermediate|ffn|hidden)"
        r"|experts? of (?:width|size|dim\w*)? ?#|# wide|each # wide|of (?:width|size) #|每个?专家[^#<]{0,8}",
        r"shared|共享|number"),
    "shared_expert_intermediate_size": (
        r"shared expert[^#<]{0,14}(?:width|ffn|hidden|intermediate|dim\w*|size)|共享专家[^#<]{0,8}(?:宽度|维度"
        r"|中间|隐藏|大小)",),
    "n_shared_experts": (r"(?:shared|always on) experts?|共享专家数?",
        r"width|ffn|intermediate|dim|size|宽度|维度"),
    "num_experts_per_tok": (r"top ?k|top ?#|(?:active|activated|chosen|selected|routed to)\b[^#<]{0,12}(?:experts?|per "
        r"tok\w*)?|experts? (?:per|each) tok\w*|per tok\w*|激活|每个? ?tokens?|选[中取择]?",
        r"shared|param|width"),
    "num_experts": (r"(?:routed |total |moe )?experts?\b|num experts|路由专家数?|专家数?",
        r"shared|active|activated|per tok|top|width|ffn|intermediate|dim\b|size|parallel|共享|激活|宽度|维度|heads"),
    "kv_lora_rank": (
        rf"(?:{_KV})[^#<]{{0,12}}(?:lora|latent|compress\w*|rank|压缩|低秩)|latent (?:dim\w*|width|rank|size|"
        r"kv)|压缩维度?|latent of #|kv latent",
        r"\bq (?:lora|latent)|query"),
    "q_lora_rank": (r"(?:\bq\b|query|queries)[^#<]{0,12}(?:lora|latent|compress\w*|rank|压缩|低秩)",),
    "qk_rope_head_dim": (r"rope (?:head )?(?:dim\w*|part|size|width)|rotary|qk rope|decoupled rope|rope #|# rope",
        r"nope|non ?ro|without|theta|scaling|base"),
    "qk_nope_head_dim": (r"nope|non ?rotary|non ?rope|without rope|content (?:dim|part)",),
    "v_head_dim": (r"\bv head (?:dim\w*|size|width)|value (?:heads? )?(?:dim\w*|width|heads? of|size)|值头维度?",),
    "sliding_window": (r"sliding window|attention window|local window|滑动窗口",),
    "vocab_size": (r"vocab\w*|词表|词汇表?",),
    "intermediate_size": (r"\bffn\b|\bd ff\b|feed ?forward|\bmlp\b|intermediate|inner|中间层?|前馈",
        r"expert|专家|moe|heads"),
    "hidden_size": (r"\bhidden\b|d model|model (?:dim\w*|width)|embedding (?:dim\w*|size|width)|residual (?:dim\w*|"
        r"width)|\bwidth\b|隐藏层?(?:维度?|大小)?|隐层|模型维度|隐含",
        r"expert|ffn|feed|intermediate|mlp|layers?\b|专家|中间|head"),
    "max_position_embeddings": (
        r"max (?:position|model len|seq|context)\w*|context(?: :)? ?(?:length|window|limit|#)|"
        r"上下文(?:长度|窗口)|最大长度|position embeddings",
        r"input|output",
        r"model|architect|network|decoder|transformer|架构|模型"),
}  # fmt: skip
# Lengths among them, which may be stated in tokens.
_IN_TOKENS = ("sliding_window", "vocab_size", "max_position_embeddings")
_MODEL_ROWS = cast(
    "tuple[Row, ...]",
    tuple(
        (f"model.{name}", "count tokens" if name in _IN_TOKENS else "count", *words)
        for name, words in _DIMENSIONS.items()
    ),
)

# Words for the host's memory and the link to it.
_HOST = r"\bhost\b|\bpci ?e?\b|\bc2c\b|off ?load|主机|卸载|换出|下沉"

_CARD_ROWS: tuple[Row, ...] = (
    ("card.tflops", "TFLOPS", r"#", r"total|aggregate|cluster|整机"),
    ("card.tflops", "count",
        r"\b[tp]flops?\b|tera ?flops?|算力|peak compute|compute (?:peak|power|per)",
        UTIL + r"|\bmfu\b|数量|[卡台张]数"),
    ("card.compute_efficiency", "share count",
        rf"\bmfu\b|model flops? util|(?:compute|flops?|tensor core|算力|计算) ?{UTIL}"
        r"|# (?:% )?of (?:the )?(?:peak|dense|flops|compute)",
        r"memory|bandwidth|显存|带宽|\bmbu\b"),
    ("card.memory_efficiency", "share count",
        rf"\bmbu\b|(?:bandwidth|\bbw\b|带宽|访存) ?{UTIL}|model bandwidth util|(?:memory|\bmem|\bhbm\w*|"
        rf"显存)[^#<]{{0,12}}(?:efficien\w+|效率)|{UTIL} of (?:the )?(?:memory "
        r")?bandwidth|# (?:% )?of (?:the |its )?(?:peak |hbm |memory )*bandwidth",
        r"\bmfu\b|flops"),
    ("card.compute_efficiency", "share", r"<tf>[^<#]{0,24}#", r"memory|bandwidth|显存|带宽|\bmbu\b"),
    ("card.memory_efficiency", "share", r"<gbs>[^<#]{0,24}#", r"\bmfu\b|flops|" + INTER),
    ("card.memory_bytes", "bytes",
        rf"(?:per|each|every|/) ?{GPU}|每张?卡|memory|\bmem\b|显存|内存|\bhbm\w*|vram|容量|capacity|gddr\w*|"
        r"on ?board ram|(?:card|gpu|device) ram|板载",
        r"bandwidth|带宽|\bbw\b|host|system|\bcpu\b|主机|"
        r"(?<!onboard )(?<!on board )(?<!card )(?<!gpu )(?<!device )\bram\b|"
        r"ddr[345]\b|kv cache|weights?|权重|disk|ssd|"
        r"total|aggregate|reserved|headroom|\bfree\b|spare|leave|预留|保留|空闲|[空留]出|空余|余量|留给|" + _HOST),
    ("card.memory_bytes", "count",
        r"(?:memory|显存|\bhbm\w*|vram)(?: size| capacity| 容量|容量|大小)?",
        r"bandwidth|带宽|\bbw\b|host|system|\bcpu\b|主机|util|usage|fraction|efficien|利用率|使用率|type|类型|percent|ratio|limit|"
        r"reserved|headroom|\bfree\b|spare|leave|预留|保留|空闲|[空留]出|空余|余量|留给",
    ),
    ("card.memory_bandwidth", "GB/s count",
        r"(?:memory|\bmem\b|显存|内存|\bhbm\w*|vram|gddr\w*|d?ram|访存)[^#<]{0,6}(?:bandwidth|\bbw\b|带宽|"
        r"throughput|speed|rate|速[度率])|\bmem(?:ory)? ?bw\b|显存带宽|访存带宽|\bhbm\w*",
        INTRA + "|" + INTER + "|" + UTIL + "|" + _HOST),
    ("card.memory_bandwidth", "GB/s", r"memory|\bmem\b|显存|内存", INTRA + "|" + INTER + "|" + _HOST),
    ("card.memory_bandwidth", "GB/s", r"bandwidth|\bbw\b|带宽", None, rf"^(?!.*(?:{INTRA}|{INTER}|{_HOST}))"),
    ("card.scale_up_domain_accelerators", "count gpus",
        r"scale up domain|nvlink domain|supernode|super ?pod|超节点|\bdomain\b"),
)  # fmt: skip


class FieldRule(Struct, frozen=True):
    """What a figure is about: it has one of `units`, stands near `words`, and nowhere near `unless`.

    `scope` must match somewhere in the headings, keys or words; `field` is one of the card (`card.`) or of the model
    (`model.`).
    """

    field: str
    units: frozenset[Unit]
    words: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    scope: re.Pattern[str] | None = None


@cache
def field_rules() -> tuple[FieldRule, ...]:
    """The table, in order of preference among rules that match equally near."""
    return tuple(_rule(row) for row in (*_MODEL_ROWS, *_CARD_ROWS))


def _rule(row: Row) -> FieldRule:
    field, units, words = row[:3]
    unless = re.compile(row[3]) if len(row) > 3 and row[3] else None
    scope = re.compile(row[4]) if len(row) > 4 else None
    return FieldRule(field, frozenset(cast("list[Unit]", units.split())), re.compile(words), unless, scope)
