"""Rows of the field table about a model's dimensions; the fields are Hugging Face config keys."""

from typing import cast

from .brief_lexicon import Row

_HEADS = r"\bheads?\b|注意力头|头数"
_KV = r"\bkv\b|\bk/v\b|key value|键值"
_DIMENSIONS: dict[str, tuple[str, ...]] = {
    "first_k_dense_replace": (
        r"(?:first|leading|initial|前) ?#|first k dense|dense layers|# ?(?:leading |initial |first )?dense "
        r"(?:layers?|blocks?)|稠密层",
        r"experts?\b"),
    "num_hidden_layers": (r"\blayers?\b|层数?|\b(?:decoder|transformer) blocks\b|n layers?|depth",
        r"隐藏层|隐层|中间层|first|leading|dense layers?|stage|pipeline|per layer|offload|每层|head|前 ?#|moe layers"),
    "head_dim": (rf"(?:{_HEADS}|heads?) of (?:dim\w*|size|width)? ?#|head ?(?:dim\w*|size|width)|d head|(?:dim\w*|"
        r"size|width|elements)(?: of| per)? (?:each )?head|# (?:dim\w* )?(?:per|each) head|头维度?|每头|每个头",
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
        r"max (?:position|model len|seq|context)\w*|context (?:length|window|limit|#)|上下文(?:长度|窗口)|最大长度|"
        r"position embeddings",
        r"input|output",
        r"model|架构|模型"),
}  # fmt: skip
# Lengths among them, which may be told in tokens.
_IN_TOKENS = ("sliding_window", "vocab_size", "max_position_embeddings")
MODEL_ROWS = cast(
    "tuple[Row, ...]",
    tuple(
        (f"model.{name}", "count tokens" if name in _IN_TOKENS else "count", *words)
        for name, words in _DIMENSIONS.items()
    ),
)
