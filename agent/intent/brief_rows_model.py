"""Rows of the field table about a model's dimensions; the fields are Hugging Face config keys."""

from .brief_lexicon import Row

_HEADS = r"\bheads?\b|注意力头|头数"
_KV = r"\bkv\b|\bk/v\b|key value|键值"

MODEL_ROWS: tuple[Row, ...] = (
    (
        "model.first_k_dense_replace",
        "count",
        r"(?:first|leading|initial|前) ?#|first k dense|dense layers|# ?(?:leading |initial |first )?dense "
        r"(?:layers?|blocks?)|稠密层",
        r"experts?\b",
    ),
    (
        "model.num_hidden_layers",
        "count",
        r"\blayers?\b|层数?|\b(?:decoder |transformer )?blocks\b|n layers?|depth",
        r"隐藏层|隐层|中间层|first|leading|dense layers?|stage|pipeline|per layer|offload|每层|head|前 ?#|moe layers",
    ),
    (
        "model.head_dim",
        "count",
        rf"(?:{_HEADS}|heads?) of (?:dim\w*|size|width)? ?#|head ?(?:dim\w*|size|width)|d head|(?:dim\w*|"
        r"size|width|elements)(?: of| per)? (?:each )?head|# (?:dim\w* )?(?:per|each) head|头维度?|每头|"
        r"每个头",
        r"\bv head|value head|rope|nope|\bqk\b|latent",
    ),
    (
        "model.num_key_value_heads",
        "count",
        rf"(?:{_KV})[^#<]{{0,12}}(?:heads?|头|groups?)|(?:query|kv) groups?|num key value heads|kv 头数?",
        r"dim|size|width|维",
    ),
    (
        "model.num_attention_heads",
        "count",
        rf"(?:query |attention |\bq )?{_HEADS}|查询头",
        rf"(?:{_KV}) ?(?:heads|头)|dim|size|width|维|linear|index",
    ),
    (
        "model.moe_intermediate_size",
        "count",
        r"expert[^#<]{0,14}(?:width|ffn|hidden|intermediate|dim\w*|size|inner)|(?:width|ffn|hidden|"
        r"intermediate|inner)[^#<]{0,14}(?:each |per |of (?:an|each) )expert|专家[^#<]{0,8}(?:宽度|维度|中间|隐藏|"
        r"大小)|moe (?:intermediate|ffn|hidden)"
        r"|experts? of (?:width|size|dim\w*)? ?#|# wide|each # wide|of (?:width|size) #|每个?专家[^#<]{0,8}",
        r"shared|共享|number",
    ),
    (
        "model.shared_expert_intermediate_size",
        "count",
        r"shared expert[^#<]{0,14}(?:width|ffn|hidden|intermediate|dim\w*|size)|共享专家[^#<]{0,8}(?:宽度|维度|中间|"
        r"隐藏|大小)",
    ),
    (
        "model.n_shared_experts",
        "count",
        r"(?:shared|always on) experts?|共享专家数?",
        r"width|ffn|intermediate|dim|size|宽度|维度",
    ),
    (
        "model.num_experts_per_tok",
        "count",
        r"top ?k|top ?#|(?:active|activated|chosen|selected|routed to)\b[^#<]{0,12}(?:experts?|per "
        r"tok\w*)?|experts? (?:per|each) tok\w*|per tok\w*|激活|每个? ?tokens?|选[中取择]?",
        r"shared|param|width",
    ),
    (
        "model.num_experts",
        "count",
        r"(?:routed |total |moe )?experts?\b|num experts|路由专家数?|专家数?",
        r"shared|active|activated|per tok|top|width|ffn|intermediate|dim\b|size|parallel|共享|激活|宽度|维度|heads",
    ),
    (
        "model.kv_lora_rank",
        "count",
        rf"(?:{_KV})[^#<]{{0,12}}(?:lora|latent|compress\w*|rank|压缩|低秩)|latent (?:dim\w*|width|rank|size|"
        r"kv)|压缩维度?|latent of #|kv latent",
        r"\bq (?:lora|latent)|query",
    ),
    ("model.q_lora_rank", "count", r"(?:\bq\b|query|queries)[^#<]{0,12}(?:lora|latent|compress\w*|rank|压缩|低秩)"),
    (
        "model.qk_rope_head_dim",
        "count",
        r"rope (?:head )?(?:dim\w*|part|size|width)|rotary|qk rope|decoupled rope|rope #|# rope",
        r"nope|non ?ro|without|theta|scaling|base",
    ),
    ("model.qk_nope_head_dim", "count", r"nope|non ?rotary|non ?rope|without rope|content (?:dim|part)"),
    (
        "model.v_head_dim",
        "count",
        r"\bv head (?:dim\w*|size|width)|value (?:heads? )?(?:dim\w*|width|heads? of|size)|值头维度?",
    ),
    ("model.sliding_window", "count tokens", r"sliding window|attention window|local window|滑动窗口"),
    ("model.vocab_size", "count tokens", r"vocab\w*|词表|词汇表?"),
    (
        "model.intermediate_size",
        "count",
        r"\bffn\b|\bd ff\b|feed ?forward|\bmlp\b|intermediate|inner|中间层?|前馈",
        r"expert|专家|moe|heads",
    ),
    (
        "model.hidden_size",
        "count",
        r"\bhidden\b|d model|model (?:dim\w*|width)|embedding (?:dim\w*|size|width)|residual (?:dim\w*|"
        r"width)|\bwidth\b|隐藏层?(?:维度?|大小)?|隐层|模型维度|隐含",
        r"expert|ffn|feed|intermediate|mlp|layers?\b|专家|中间|head",
    ),
    (
        "model.max_position_embeddings",
        "count tokens",
        r"max (?:position|model len|seq|context)\w*|context (?:length|window|limit|#)|上下文(?:长度|窗口)|最大长度|"
        r"position embeddings",
        r"input|output",
        r"model|架构|模型",
    ),
)
