"""The one table of what planners call things: words and units, English and Chinese, to the field that they state.

A rule matches a clause in which the figure at hand stands as `#`, other figures as marks (`<n>` nodes, `<g>` cards, `<c>` a bare number, …) and catalogue names as
`gpu` or `llm`. Words are lower case, underscores and hyphens are spaces. It refuses nothing; the readers do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from .quantities import Unit

GPU = r"(?:gpus?|cards?|accelerators?|devices?|npus?|dcus?|xpus?|tpus?|chips?|显卡|加速卡|加速器|芯片|卡)"
NODE = r"(?:nodes?|servers?|hosts?|machines?|boxes|box|chassis|instances?|节点|服务器|机器|主机|整机)"
PER_NODE = (
    rf"(?:(?:per|each|every|/|in (?:a|each|every|one)|inside (?:a|each)|on each) ?{NODE}"
    rf"|{NODE} (?:each|of|with|has|have|holds?|holding|contains?|carr(?:y|ies)|houses?) |每个?(?:台|节点|服务器|机器|机)|单(?:机|节点|台))"
)
INTRA = (
    r"nvlink|nvswitch|xgmi|infinity fabric|hccs|ualink|pcie|intra|scale up|gpu to gpu|p2p"
    rf"|(?:inside|within|in|on) (?:a |each |one |the |every )?(?:same )?{NODE}|(?:single|same) {NODE}|机内|节点内|卡间|片间|服务器内|机器内"
)
INTER = (
    rf"inter (?:node|server|host|machine)|(?:between|across|among) (?:the )?{NODE}|cross {NODE}|{NODE} to {NODE}|internode"
    r"|network|infini ?band|\bib\b|roce|\bnics?\b|ethernet|rdma|scale out|fabric|\bndr\b|\bhdr\b|\bxdr\b|off node"
    r"|机间|节点间|跨机|跨节点|跨服务器|服务器间|服务器之间|机器间|机器之间|节点之间|网络|网卡|组网"
)
_IN = r"\binputs?\b|\bprompts?\b|\bisl\b|\bprefill (?:len\w*|tokens|size)|\bquer(?:y|ies) len|# ?(?:tokens? )?(?:coming |going )?in\b|\bcontext\b|输入|提示词?|上文|上下文"
_OUT = (
    r"\boutputs?\b|\bcompletions?\b|\bgenerat\w+|\bresponses?\b|\brepl(?:y|ies)\b|\banswers?\b|\bosl\b|\bnew tokens"
    r"|\bmax tokens\b|\bdecode (?:len\w*|tokens)|\bgen (?:len\w*|tokens)|# ?(?:tokens? )?(?:coming |going )?out\b|输出|生成|回答|回复"
)
_TTFT = r"\bttft\b|time to (?:the )?first|first (?:output )?tokens?|首 ?个? ?(?:tokens?|字|词|包)|prefill (?:latency|time|delay)|(?:预填充|prefill) ?(?:时延|延迟|耗时)"
_TPOT = (
    r"\btpot\b|\bitl\b|\btbt\b|inter ?token|per (?:output |generated |decoded )?tokens?\b|between tokens|token to token"
    r"|decode (?:step )?(?:latency|time|delay)|(?:subsequent|next|following|each|every) (?:output )?tokens?"
    r"|每个? ?(?:输出|后续)? ?(?:tokens?|词元|字)|(?:tokens?|词元) ?间隔?|(?:解码|decode) ?(?:时延|延迟|耗时)|单 ?tokens?"
)
_HEADS = r"\bheads?\b|注意力头|头数"
_KV = r"\bkv\b|\bk/v\b|key value|键值"
_UTIL = r"(?:utili[sz]ation|utili[sz]ed|efficien\w+|usage|used|fraction|achieved|achievable|effective|reached|利用率|使用率|效率|占用率?|占比)"


@dataclass(frozen=True, slots=True)
class FieldRule:
    """What a figure is about: it has one of `units`, stands near `words`, and nowhere near `unless`.

    `scope` must match somewhere in the headings, keys or words; `field` is a field of `Said`, or of the card
    (`card.`), of the model (`model.`), of the strategy (`strategy.`).
    """

    field: str
    units: frozenset[Unit]
    words: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    scope: re.Pattern[str] | None = None


_Row = tuple[str, str, str] | tuple[str, str, str, str | None] | tuple[str, str, str, str | None, str]

_HARDWARE: tuple[_Row, ...] = (
    ("gpus_per_node", "count gpus", rf"<n> ?(?:x|of|with|,|each with|\() ?#|<n> ?#|<c> x # {GPU}|# ?(?:x )?{GPU} x <n>"
     rf"|# ?(?:{GPU} )?(?:x )?(?:{GPU} )?(?:for |in )?{PER_NODE}|{PER_NODE}[^#<]{{0,12}}#|# ?{GPU} {NODE}|# ?{GPU}? ?(?:each|apiece)\b"
     rf"|{GPU} (?:count )?{PER_NODE}|{PER_NODE}[^#<]{{0,8}}{GPU}", r"total|overall|in all|总|共|bandwidth|memory|# gpus? in total"),
    ("nodes", "nodes", r"#", rf"(?:per|each|every|/) ?#"),
    ("nodes", "count", rf"(?:num(?:ber)?|n|count|total|how many)?(?: of)? ?{NODE}\b|{NODE} ?(?:count|num(?:ber)?|数量?)|台数|节点数|机器数|# x <g>|# x <c> gpu",
     rf"{PER_NODE}|inter|intra|bandwidth|between|id\b|index|rank"),
    ("gpus", "count gpus", rf"{GPU}(?: ?(?:count|num(?:ber)?|total|数量?|数))?|world size|总卡数|卡数|# ?张|(?:hardware|硬件|cluster) : (?:total )?(?:count|number|quantity|amount|数量)\b", rf"{PER_NODE}|memory|bandwidth|price|cost|hour|\bid\b|index"),
    ("card.scale_up_domain_accelerators", "count gpus", r"scale up domain|nvlink domain|supernode|super ?pod|超节点|\bdomain\b"),
)  # fmt: skip

_CARD: tuple[_Row, ...] = (
    ("card.tflops", "TFLOPS", r"#", r"total|aggregate|cluster|整机"),
    ("card.tflops", "count", r"\b[tp]flops?\b|tera ?flops?|\btops\b|算力|peak compute|compute (?:peak|power|per)", _UTIL + r"|\bmfu\b"),
    ("card.compute_efficiency", "share count", rf"\bmfu\b|model flops? util|(?:compute|flops?|tensor core|算力|计算) ?{_UTIL}|<tf>[^<#]{{0,24}}#", r"memory|bandwidth|显存|带宽|\bmbu\b"),
    ("card.memory_efficiency", "share count", rf"\bmbu\b|(?:bandwidth|\bbw\b|带宽|访存) ?{_UTIL}|model bandwidth util|(?:memory|\bmem|\bhbm\w*|显存)[^#<]{{0,12}}(?:efficien\w+|效率)|<gbs>[^<#]{{0,24}}#|{_UTIL} of (?:the )?(?:memory )?bandwidth", r"\bmfu\b|flops"),
    ("memory_utilization", "share count", rf"(?:memory|显存|内存|vram|hbm|\bmem\b)[^#<]{{0,16}}{_UTIL}|{_UTIL}[^#<]{{0,16}}(?:memory|显存|内存|vram|hbm)|(?:memory|显存) ?(?:limit|budget|cap|ratio|上限)|of (?:the )?(?:gpu |device )?memory",
     r"bandwidth|带宽|\bbw\b|<gbs>|efficien|效率|headroom|\bfree\b|spare|reserv|unused|\bleave|预留|保留|空闲|余量"),
    ("memory_free", "share count", r"headroom|(?:free|spare|reserv\w+|unused|left over|leave|预留|保留|空闲|余量)", r"bandwidth|带宽|cost"),
    ("card.memory_bytes", "bytes", rf"(?:per|each|every|/) ?{GPU}|每张?卡|memory|\bmem\b|显存|内存|\bhbm\w*|vram|容量|capacity|gddr\w*", r"bandwidth|带宽|\bbw\b|host|system|\bcpu\b|主机|\bram\b|ddr[345]\b|kv cache|weights?|权重|disk|ssd|total|aggregate|reserved"),
    ("card.memory_bytes", "count", r"(?:memory|显存|\bhbm\w*|vram)(?: size| capacity| 容量|容量|大小)?", r"bandwidth|带宽|\bbw\b|host|system|\bcpu\b|主机|util|usage|fraction|efficien|利用率|使用率|type|类型|percent|ratio|limit"),
    ("card.memory_bandwidth", "GB/s count", r"(?:memory|\bmem\b|显存|内存|\bhbm\w*|vram|gddr\w*|dram|访存)[^#<]{0,6}(?:bandwidth|\bbw\b|带宽|throughput|speed)|\bmem(?:ory)? ?bw\b|显存带宽|访存带宽|\bhbm\w*", INTRA + "|" + INTER + "|" + _UTIL),
    ("card.memory_bandwidth", "GB/s", r"memory|\bmem\b|显存|内存", INTRA + "|" + INTER),
    ("intra_node_bw", "GB/s bytes count", rf"(?:{INTRA})", rf"# x <|memory|显存|\bhbm|latency|version|gen\b|domain|{INTER}"),
    ("inter_node_bw", "GB/s bytes count", rf"(?:{INTER})", r"# x\b|memory|显存|\bhbm|latency|nvlink|intra|机内|count|number of"),
    ("card.memory_bandwidth", "GB/s", r"bandwidth|\bbw\b|带宽", None, rf"^(?!.*(?:{INTRA}|{INTER}))"),
    ("usd_per_gpu_hour", "usd count", rf"(?:/|per|an?|each|every)[^#<]{{0,14}}(?:hour|\bhr?\b|小时)|price|hourly|\bcost\b|单价|价格|每卡时|卡时|usd per", r"month|year|token|total|budget|monthly"),
)  # fmt: skip

_LOAD: tuple[_Row, ...] = (
    ("input_tokens", "tokens count", _IN, r"window|price|cost|cach|max model len|\brate\b|\bkv\b|hit"),
    ("output_tokens", "tokens count", _OUT, r"price|cost|per s|\brate\b|tokens/s|throughput|吞吐"),
    ("length_tokens", "tokens count", r"\bseq(?:uence)? ?len\w*|sequence lengths?|\blengths?\b|# ?tokens? (?:each|long)|tokens? (?:each|per (?:sequence|request))|sequences?|序列长度|文本长度|长度", r"block|chunk|page|batched|\brate\b|输入|输出|\binput|\boutput|prompt|completion|generat|response"),
    ("concurrency", "count requests", r"concurren\w+|in flight|at (?:a|the same|one) time|at once|simultaneous\w*|parallel (?:requests|users|sessions|streams)|batch(?:es)?(?: ?sizes?)?|max num seqs|max (?:batch|seqs|running)|\bbs\b"
     r"|\busers?\b|\bsessions?\b|\bstreams?\b|\bsequences?\b|\brequests?\b|并发(?:数|量|用户数?|请求数?)?|批(?:次|量)?大?小?|同时|在线用户", r"batched tokens|tokens? per batch|per s\b|/s\b|per day|\brate\b|prefill batch|chunk|microbatch|length|tokens? (?:per|each)"),
    ("request_rate", "requests/s", r"#"),
    ("request_rate", "count", r"requests? ?(?:per|/) ?s(?:ec(?:ond)?)?\b|\brps\b|\bqps\b|(?:request|arrival) rate|queries per s\w*|每秒请求数?|请求速率|到达率"),
    ("min_tokens_per_second", "tokens/s", r"#", rf"(?:per|/|each) ?{GPU}|per user|单卡|每卡"),
    ("min_tokens_per_second", "count", r"tokens? ?(?:per|/) ?s(?:ec(?:ond)?)?\b|\btps\b|tok/s|(?:output |token |total |decode |generation |system |min )throughput|吞吐", rf"(?:per|/|each) ?{GPU}|per user|request|单卡|每卡|每用户"),
    ("throughput_per_gpu", "tokens/s/gpu", r"#"),
    ("throughput_per_gpu", "tokens/s count", rf"(?:tokens?|throughput|tps|吞吐)[^#<]*(?:(?:per|/|each) ?{GPU})|单卡吞吐|每卡"),
    ("user_rate", "tokens/s/user", r"#"),
    ("user_rate", "tokens/s count", r"tokens?[^#<]{0,20}per (?:user|request|stream|session)|per user[^#<]{0,20}tokens?|单用户|每用户|interactivity"),
    ("prefix_cache_hit_rate", "share count", r"prefix|cache hit|cached|hit ?rate|reuse|前缀|缓存命中|命中率"),
    ("ttft_ms_max", "ms count", _TTFT, rf"{GPU} count|\bgpus\b"),
    ("tpot_ms_max", "ms ms/token count", _TPOT, r"tokens/s|tokens per s|\brate\b|\btps\b"),
    ("tpot_ms_max", "ms/token", r"#"),
    ("ttft_ms_max", "ms", r"latency|delay|时延|延迟|p\d\d|#", r"end to end|\be2e\b|total|per token|端到端|总|network|\blink\b|transfer|startup|load time", r"prefill|预填充|first token|首"),
    ("tpot_ms_max", "ms", r"latency|delay|时延|延迟|p\d\d|#", r"end to end|\be2e\b|total|端到端|总|first token|首|network|\blink\b|transfer", r"decode|decoding|解码|per token"),
)  # fmt: skip

_MODEL: tuple[_Row, ...] = (
    ("model.first_k_dense_replace", "count", r"(?:first|leading|initial|前) ?#|first k dense|dense layers|# ?(?:leading |initial |first )?dense (?:layers?|blocks?)|稠密层", r"experts?\b"),
    ("model.num_hidden_layers", "count", r"\blayers?\b|层数?|\b(?:decoder |transformer )?blocks\b|n layers?|depth", r"first|leading|dense layers?|stage|per layer|offload|每层|head|前 ?#|moe layers"),
    ("model.head_dim", "count", rf"(?:{_HEADS}|heads?) of (?:dim\w*|size|width)? ?#|head ?(?:dim\w*|size|width)|d head|(?:dim\w*|size|width|elements)(?: of| per)? (?:each )?head|# (?:dim\w* )?(?:per|each) head|头维度?|每头|每个头", r"\bv head|value head|rope|nope|\bqk\b|latent"),
    ("model.num_key_value_heads", "count", rf"(?:{_KV})[^#<]{{0,12}}(?:heads?|头|groups?)|(?:query|kv) groups?|num key value heads|kv 头数?", r"dim|size|width|维"),
    ("model.num_attention_heads", "count", rf"(?:query |attention |\bq )?{_HEADS}|查询头", rf"(?:{_KV}) ?(?:heads|头)|dim|size|width|维|linear|index"),
    ("model.moe_intermediate_size", "count", r"expert[^#<]{0,14}(?:width|ffn|hidden|intermediate|dim\w*|size|inner)|(?:width|ffn|hidden|intermediate|inner)[^#<]{0,14}(?:each |per |of (?:an|each) )expert|专家[^#<]{0,8}(?:宽度|维度|中间|隐藏|大小)|moe (?:intermediate|ffn|hidden)"
     r"|experts? of (?:width|size|dim\w*)? ?#|# wide|each # wide|of (?:width|size) #|每个?专家[^#<]{0,8}", r"shared|共享|number"),
    ("model.shared_expert_intermediate_size", "count", r"shared expert[^#<]{0,14}(?:width|ffn|hidden|intermediate|dim\w*|size)|共享专家[^#<]{0,8}(?:宽度|维度|中间|隐藏|大小)"),
    ("model.n_shared_experts", "count", r"(?:shared|always on) experts?|共享专家数?", r"width|ffn|intermediate|dim|size|宽度|维度"),
    ("model.num_experts_per_tok", "count", r"top ?k|top ?#|(?:active|activated|chosen|selected|routed to)\b[^#<]{0,12}(?:experts?|per tok\w*)?|experts? (?:per|each) tok\w*|per tok\w*|激活|每个? ?tokens?|选[中取择]?", r"shared|param|width"),
    ("model.num_experts", "count", r"(?:routed |total |moe )?experts?\b|num experts|路由专家数?|专家数?", r"shared|active|activated|per tok|top|width|ffn|intermediate|dim\b|size|parallel|共享|激活|宽度|维度|heads"),
    ("model.kv_lora_rank", "count", rf"(?:{_KV})[^#<]{{0,12}}(?:lora|latent|compress\w*|rank|压缩|低秩)|latent (?:dim\w*|width|rank|size|kv)|压缩维度?|latent of #|kv latent", r"\bq (?:lora|latent)|query"),
    ("model.q_lora_rank", "count", r"(?:\bq\b|query|queries)[^#<]{0,12}(?:lora|latent|compress\w*|rank|压缩|低秩)"),
    ("model.qk_rope_head_dim", "count", r"rope (?:head )?(?:dim\w*|part|size|width)|rotary|qk rope|decoupled rope|rope #|# rope", r"nope|non ?ro|without|theta|scaling|base"),
    ("model.qk_nope_head_dim", "count", r"nope|non ?rotary|non ?rope|without rope|content (?:dim|part)"),
    ("model.v_head_dim", "count", r"\bv head (?:dim\w*|size|width)|value (?:heads? )?(?:dim\w*|width|heads? of|size)|值头维度?"),
    ("model.sliding_window", "count tokens", r"sliding window|attention window|local window|滑动窗口"),
    ("model.vocab_size", "count tokens", r"vocab\w*|词表|词汇表?"),
    ("model.intermediate_size", "count", r"\bffn\b|\bd ff\b|feed ?forward|\bmlp\b|intermediate|inner|中间层?|前馈", r"expert|专家|moe|heads"),
    ("model.hidden_size", "count", r"\bhidden\b|d model|model (?:dim\w*|width)|embedding (?:dim\w*|size|width)|residual (?:dim\w*|width)|\bwidth\b|隐藏|隐层|模型维度|隐含", r"expert|ffn|feed|intermediate|mlp|layers?\b|专家|中间|head"),
    ("model.max_position_embeddings", "count tokens", r"max (?:position|model len|seq|context)\w*|context (?:length|window|limit)|上下文(?:长度|窗口)|最大长度|position embeddings", r"input|output", r"model|架构|模型"),
)  # fmt: skip

_SERVING: tuple[_Row, ...] = (
    ("max_model_len", "count tokens", r"max model len\w*|context window|max context|上下文窗口"),
    (
        "ignored",
        "count tokens",
        r"max num batched tokens|chunk(?:ed prefill)?(?: size)?|block size|page size|num speculative",
    ),
)


@cache
def field_rules() -> tuple[FieldRule, ...]:
    """The table, in order of preference among rules that match equally near."""
    return tuple(_rule(row) for row in (*_SERVING, *_MODEL, *_HARDWARE, *_CARD, *_LOAD))


def _rule(row: _Row) -> FieldRule:
    field, units, words = row[:3]
    unless = re.compile(row[3]) if len(row) > 3 and row[3] else None
    scope = re.compile(row[4]) if len(row) > 4 else None
    return FieldRule(field, frozenset(units.split()), re.compile(words), unless, scope)  # type: ignore[arg-type]
