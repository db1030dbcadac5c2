"""Maps keys and type names of foreign proposals to concepts, in the words of engines, papers and people.

Only whole keys are known, as lower-case words without accents; an unlisted key means nothing. English and Chinese.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

_MAX_KEY = 100
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?:[a-rt-z]|s[a-z]))")  # "GPUs" is one word
_HYPHENS = dict.fromkeys("\u2010\u2011\u2212", "-")
_BREAKS = re.compile(r"[^a-z0-9一-鿿]+")
# Words around the name of a degree that add nothing.
_OF = r"(?: (?:size|degree|world size|group size|group|ways?|width|num|count|parallel|parallelism))?"
_NUM = r"(?:l\d )?(?:(?:num|number of|n|no of|degree of|size of) )?"

# The names of the five degrees.
_DEGREE_WORDS = {
    "tp": r"tp|tensor (?:model )?parallel(?:ism)?|张量并行(?:度|数|大小)?",
    "pp": r"pp|pipeline (?:model )?parallel(?:ism)?|流水线?并行(?:度|数|大小)?",
    "ep": r"ep|expert (?:model )?parallel(?:ism)?|专家并行(?:度|数|大小)?",
    "sp": r"sp|sequence (?:model )?parallel(?:ism)?|序列并行(?:度|数|大小)?",
    "dp": r"dp|data parallel(?:ism)?|数据并行(?:度|数|大小)?",
}
_DEGREES = {
    "attention_dp": rf"(?:attention|attn) (?:{_DEGREE_WORDS['dp']}){_OF}|dp (?:attention|attn) size|注意力数据并行",
    "tp_ffn": rf"(?:ffn|mlp|dense|moe dense) (?:{_DEGREE_WORDS['tp']}){_OF}|tp ffn",
    "tp_expert": rf"(?:moe|expert) (?:{_DEGREE_WORDS['tp']}){_OF}|etp{_OF}|tp expert",
    "kv_sp": rf"(?:decode context parallel|dcp|kv sp){_OF}",
    "tp": rf"{_NUM}(?:(?:attention|attn) )?(?:{_DEGREE_WORDS['tp']}|tensor (?:model )?(?:slicing|shards?)|mp){_OF}"
    r"|tensor|tensor parallel ranks",
    "pp": rf"{_NUM}(?:{_DEGREE_WORDS['pp']}|pipeline (?:model )?(?:stages?|depth)){_OF}|stages count|流水线级数",
    "ep": rf"{_NUM}(?:moe )?(?:{_DEGREE_WORDS['ep']}){_OF}",
    "sp": rf"{_NUM}(?:{_DEGREE_WORDS['sp']}|ulysses){_OF}",
    "dp": rf"{_NUM}(?:{_DEGREE_WORDS['dp']}){_OF}|(?:dp|data parallel) (?:groups|ranks)",
    "replicas": rf"{_NUM}(?:model )?(?:replicas?|instances?|workers?)(?: (?:count|num|number))?"
    r"|(?:dp )?replicas|replica list|副本数?|实例数",
    "cp": rf"(?:(?:prefill )?cp|context parallel(?:ism)?){_OF}|上下文并行",
}
_GPUS = r"(?:gpus?|devices?|cards?|accelerators?|npus?)"
_COUNT = r"(?:count|num|number|total)"
_TOKENS = r"(?:tokens?|len(?:gth)?|seq(?:uence)? len(?:gth)?|token count|sequence length|seqlen)"
_USUAL = r"(?:(?:avg|average|mean|num|max|typical) )?"
_AS_LIMIT = r"(?: (?:ms|limit|target|slo|max|ms max|sla))*"
_DTYPE = r"(?:dtype|precision|data type|quantization)"
_FIELDS = {
    "model": r"(?:(?:base|target|llm|language) )?model(?: (?:name|id|path|name or path|or path|tag|type name|repo))?"
    r"|llm|served model name|hf model(?: id)?|checkpoint|for model|模型(?:名称|名)?",
    "config": r"(?:hf |model )?config(?:uration)?|architecture|model (?:spec|params|architecture)",
    "hardware": r"(?:target )?(?:hardware|hw|cluster|topology|env|system|machines?|infrastructure|environment|platform)"
    r"(?: (?:config|spec|setup|topology|info))?|resources|accelerators|硬件(?:配置)?|集群",
    "accelerator": r"(?:gpu|accelerator|device|card|hardware|node)s? (?:type|model|name|kind|sku)|accelerator|gpu|card"
    r"|gpu型号|显卡(?:型号)?|卡型|加速卡",
    "node_count": rf"{_NUM}(?:nodes|servers|hosts|machines)(?: {_COUNT})?|(?:num|n) node|node {_COUNT}|nnodes"
    r"|节点数?|机器数|服务器数",
    "gpus_per_node": rf"(?:num |n )?{_GPUS} per (?:node|server|host|machine)|nproc per node|ngpus per node|node size"
    r"|每节点(?:gpu|卡)数?|单机卡数|每台卡数",
    "gpu_total": rf"(?:total|num|number of|n) {_GPUS}|(?:total )?{_GPUS} {_COUNT}|gpus|cards|world size"
    r"|卡数|gpu数量?|总卡数",
    "weights": rf"(?:(?:weights?|model|param(?:eter)?s?|torch) )?(?:{_DTYPE}|quant|format)|weights"
    r"|精度|量化|权重精度|数据类型",
    "kv_cache": rf"kv(?: cache)?|(?:kv|kv cache|kvcache|cache) (?:{_DTYPE}|type)|kv缓存精度",
    "activations": r"(?:activations?|compute) (?:dtype|precision|type)|activations|激活精度",
    "input_tokens": rf"{_USUAL}(?:input|prompt|prefill) {_TOKENS}|isl|seq len in|prompt(?:tokens?)?|random input len"
    r"|输入(?:token)?(?:数|长度)?",
    "output_tokens": rf"{_USUAL}(?:output|generation|generated|decode|completion|new|gen) {_TOKENS}|osl|seq len out"
    r"|random output len|输出(?:token)?(?:数|长度)?",
    "concurrency": r"(?:max |num )?(?:concurrency|concurrent (?:requests|users|sequences)|batch(?: size)?|num seqs|"
    r"concurrencies|requests in flight|global batch size)|bs|并发(?:数|量)?|批大小|批次大小",
    "ttft_ms_max": rf"(?:max |target )?(?:ttft|time to first token){_AS_LIMIT}",
    "tpot_ms_max": rf"(?:max |target )?(?:tpot|itl|tbt|time per output token|inter token latency){_AS_LIMIT}",
    "end_to_end_ms_max": rf"(?:max |target )?(?:e2el?|end to end|total latency)(?: latency| time)?{_AS_LIMIT}",
    "objective": r"(?:optimi[sz]ation )?(?:objective|goal|optimi[sz]e(?: for)?|target metric|priority)|目标|优化目标",
    "request_rate": r"request rate|qps|rps|requests per second|arrival rate",
    "memory_utilization": r"(?:gpu )?(?:memory|mem) (?:utili[sz]ation|fraction static|fraction)"
    r"|free gpu memory fraction|kv cache free gpu mem(?:ory)? fraction",
    "engine": r"(?:serving |inference )?(?:engine|framework|runtime|server)|推理引擎|框架",
    "layers": r"(?:layer|block|decoder layer)s?(?: (?:range|ids|indices|span|idx))?|start end layers?|层|层范围",
    "layers_first": r"(?:start|first|from|begin)(?: (?:layers?|idx|index))?|layer (?:start|from|begin|first)|起始层",
    "layers_last": r"(?:end|last|to|stop)(?: (?:layers?|idx|index))?|layer (?:end|to|last)|结束层",
    "layer_count": r"(?:num|n|number of) layers|layer (?:count|num)|层数",
    "bare_dp": r"data",
    "stage_layers": r"(?:num |n )?layers? (?:per|by|in each) (?:pp |pipeline )?(?:stage|rank)s?"
    r"|(?:pipeline |pp )?stage layers|(?:(?:vllm |sglang )?(?:pp|pipeline) )?layers? (?:split|partition(?:ing)?"
    r"|distribution)|pp partition|pipeline split|每级层数",
    "ranks": r"ranks|rank (?:map|table|mapping|list)|workers map|process map|gpu map(?:ping)?|device mapping",
    "devices": r"(?:(?:gpu|device|card)s?(?: (?:ids?|list|indices|set|group|range|assigned|assignment))?)"
    r"|(?:assigned|on|runs on|placement|tp|local) (?:gpus?|devices?)|(?:tp|device|gpu|ep) (?:group|ranks)|on"
    r"|assigned to|cuda visible devices|cuda devices|设备|显卡编号|卡号",
    "experts": r"ids|(?:experts?|hosted experts?|local experts?)(?: (?:ids?|range|list|hosted|indices))?|专家(?:编号)?",
    "expert_placement": r"expert (?:placement|map|mapping|assignment|distribution|location)|experts? (?:per|by|on) "
    r"(?:gpu|device|rank)|experts? to (?:gpus?|devices?|ranks?)|专家分布",
    "stages": r"(?:pipeline |pp )?stages|stage (?:map|assignment|placement|config|list)|pipeline|device map"
    r"|流水线|流水级",
    "phases": r"phases|stages of inference|branches|阶段",
    "nodes": r"nodes|vertices|vertexes|node list|dag nodes|operators|ops|tasks|节点列表|节点",
    "edges": r"edges|links|connections|dependencies|arcs|edge list|dag edges|边",
    "children": r"children|childs|subnodes|sub nodes|child nodes|subgraph|body|contains|members|components|子节点",
    "id": r"id|node id|name|label|uid|identifier|名称|编号|stage name|stage id|replica id|key",
    "type": r"type|kind|op|node|op type|node type|operator|operation|class|category|layer type|类型|stage type",
    "parent": r"parents?|parent id|belongs to|of|inside|in|within|scope|container|父节点",
    "rank": r"rank|shard(?: (?:rank|id|index|idx))?|(?:local )?rank id|tp rank|shard rank",
    "other_rank": r"(?:sp|sequence|pp|pipeline|stage) rank",
    "index": r"index|idx|stage(?: (?:index|idx))?|replica(?: (?:index|idx))?|order|stage number",
    "phase": r"phase|branch|阶段名|inference phase",
    "role": r"role|purpose",
    "enable_ep": r"(?:enable )?expert parallel|enable ep",
    "enable_dp_attention": r"enable (?:dp attention|attention dp)|use dp attention",
    "relaxations": r"relaxations",
    # Ways of serving that no plan of this format has.
    "speculative": r"(?:enable |use )?speculat(?:ive|ion)(?: .*)?|spec(?: decode| decoding)(?: .*)?"
    r"|(?:num )?draft (?:model|tokens|tokens num)(?: .*)?|(?:eagle|medusa)(?: config| model)?|投机(?:解码|采样)",
    "lora": r"(?:(?:enable|use|max|num) )?(?:cpu )?loras?(?: .*)?|max (?:cpu )?loras?(?: .*)?|peft(?: .*)?"
    r"|adapters?",
    # Beside a plan: on another plan, on its results, or on nothing that a plan holds.
    "aside": r"alternatives?|rejected.*|considered.*|baselines?|comparisons?|performance.*|estimates?.*|expected.*|"
    r"metrics|notes?|comments?|rationale|reason(?:ing|s)?|explanation|descriptions?|title|summary|version|format|"
    r"author|date|warnings?|assumptions?|draft.*|tips?|references?|benefits?|risks?|pros|cons|steps|"
    r"memory (?:estimate|usage|breakdown|per gpu.*)|备注|说明|理由|优点|缺点",
}
_CONCEPTS = [(name, re.compile(pattern)) for name, pattern in ({**_DEGREES, **_FIELDS}).items()]
DEGREE_NAMES = frozenset(_DEGREES)

PHASE_WORDS = {
    "prefill": r"pre ?fill(?:ing)?|prompt(?: processing)?|context(?: phase| encoding)?|预填充|预填|首次推理",
    "decode": r"decod(?:e|ing)|generat(?:e|ion|ing)|token generation|incremental(?: decoding)?|解码|生成",
}
_PHASES = {
    phase: re.compile(
        rf"(?:(?:vllm|sglang|trt ?llm|dynamo|llm) )?"
        rf"(?:{words})(?: (?:phase|stage|branch|strategy|config(?:uration)?|plan|workers?|engine|parallel(?:ism)?|graph"
        r"|dag|instances?|pool|cluster|server|nodes?|group|side|model))?"
        rf"|(?:phase|branch) (?:{words})|(?:{words})(?:阶段|节点|实例)"
    )
    for phase, words in PHASE_WORDS.items()
}
OBJECTIVES = {
    "latency": "latency", "throughput": "throughput", "cost": "cost", "low latency": "latency",
    "min latency": "latency", "minimize latency": "latency", "high throughput": "throughput",
    "max throughput": "throughput", "maximize throughput": "throughput", "延迟": "latency", "吞吐": "throughput",
    "吞吐量": "throughput", "成本": "cost", "minimize cost": "cost", "lowest latency": "latency",
}  # fmt: skip
_TYPES = {
    "RequestNode": r"(?:input )?request|root|input|user request|请求",
    "ReplicaNode": r"(?:dp |model |data parallel )?(?:replica|instance)|dp group|副本",
    "PhaseNode": r"(?:inference )?(?:phase|branch)|阶段",
    "PipelineStageNode": r"(?:pipeline |pp )?stage|pipeline|流水级",
    "EmbeddingNode": r"(?:token |word |input )?embed(?:ding|dings)?|embed tokens|embedding layer|嵌入",
    "LMHeadNode": r"lm ?head|output head|head|logits|output (?:projection|layer)|vocab projection",
    "LayerBlockNode": r"(?:transformer |decoder )?(?:layers?|blocks?|layer (?:block|group|stack|range))|层",
    "AttentionNode": r"(?:(?:self|multi head|grouped query|multi query|causal) )*(?:attention|attn)|mha|gqa|mqa|mla"
    r"|attention (?:layer|block|op|operator)|注意力",
    "FFNNode": r"ffn|mlp|feed ?forward(?: network)?|dense(?: (?:ffn|mlp))?|shared experts?"
    r"|(?:ffn|mlp) (?:layer|block)|前馈",
    "MoENode": r"moe|mixture of experts|(?:sparse )?moe (?:layer|block|ffn)|expert layer|混合专家",
    "RouterNode": r"(?:moe |expert )?(?:router|routing|gate|gating)|路由",
    "ExpertNode": r"(?:routed |local )?expert(?: group| shard| set)?|experts|专家",
    "ShardNode": r"(?:(?:tp|sp|tensor|attention|attn|ffn|mlp|sequence) )?(?:shard|slice|partition)|tp rank|分片",
    "KVCacheUpdateNode": r"(?:update )?kv ?cache(?: (?:update|write|store|append))?|cache update"
    r"|(?:update|write) kv(?: ?cache)?",
    "AllReduceNode": r"(?:tp |nccl |attn |ffn )?all ?reduce",
    "AllGatherNode": r"(?:tp |sp |nccl )?all ?gather",
    "ReduceScatterNode": r"(?:tp |nccl )?reduce ?scatter",
    "AllToAllNode": r"(?:ep |nccl |moe |expert )?(?:all ?to ?all|a2a|alltoall)(?: (?:dispatch|combine))?"
    r"|(?:moe |expert |token )?(?:dispatch|combine)(?: (?:all ?to ?all|a2a))?",
    "LinearNode": r"linear|matmul|gemm|(?:q|k|v|o|qkv|gate|up|down) proj(?:ection)?",
}  # fmt: skip
_TYPE_PATTERNS = [(name, re.compile(rf"(?:{pattern})s?")) for name, pattern in _TYPES.items()]


def any_case(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that ignores case."""
    return re.compile(pattern, re.IGNORECASE)


def words_of(key: str) -> str:
    """`tensorParallelSize`, `--tensor-parallel-size` and `tensor_parallel.size` as "tensor parallel size"."""
    return _words(key[:_MAX_KEY])


@lru_cache(maxsize=8192)
def _words(key: str) -> str:
    return _BREAKS.sub(" ", _CAMEL.sub(" ", folded(key)).lower()).strip()


def folded(text: str) -> str:
    """`text` without accents, with plain letters, hyphens and digits for their typographic forms."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    return "".join(_HYPHENS.get(letter, letter) for letter in parts if not unicodedata.combining(letter))


def _named_by(patterns: Iterable[tuple[str, re.Pattern[str]]]) -> Callable[[str], str | None]:
    """A function from words to the first name whose pattern matches all of them; `None` if none does."""

    @lru_cache(maxsize=8192)
    def read(words: str) -> str | None:
        return next((name for name, pattern in patterns if pattern.fullmatch(words)), None)

    return read


_FORMAT_TYPES = {words_of(name): name for name in _TYPES}
_concept, _phase, _foreign_type = map(_named_by, (_CONCEPTS, _PHASES.items(), _TYPE_PATTERNS))


def concept_of(key: str) -> str | None:
    """The concept that a key means; `None` if unknown."""
    return _concept(words_of(key))


def phase_of(key: str) -> str | None:
    """`prefill` or `decode` if the words name a phase, else `None`."""
    return _phase(words_of(key))


def node_type_of(words: str) -> str | None:
    """The node type that `words` name, in the format's spelling or another; `None` if they name none."""
    plain = words_of(words)
    foreign = plain.removesuffix(" node").removesuffix(" op").strip()
    return _FORMAT_TYPES.get(plain) or _foreign_type(foreign)


_FORMATS = {
    "bf16": "bf16", "bfloat16": "bf16", "torch bfloat16": "bf16", "brain float16": "bf16", "fp16": "fp16",
    "float16": "fp16", "half": "fp16", "torch float16": "fp16", "f16": "fp16", "fp32": "fp32", "float32": "fp32",
    "fp8": "fp8", "fp8 e4m3": "fp8", "fp8 e5m2": "fp8", "float8": "fp8", "e4m3": "fp8", "w8a8 fp8": "fp8",
    "float8 e4m3fn": "fp8", "int8": "int8", "w8a8": "int8", "w8a8 int8": "int8", "8bit": "int8", "8 bit": "int8",
    "int4": "int4", "w4a16": "int4", "awq": "int4", "gptq": "int4", "4bit": "int4", "4 bit": "int4", "int4 awq": "int4",
    "fp4": "fp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "mxfp8": "mxfp8",
}  # fmt: skip


def number_format(value: object) -> str | None:
    """The number format that a text names, alone or among other words; `None` if it names none or several."""
    if not isinstance(value, str) or len(value) > 100:
        return None
    words = words_of(value)
    if words in _FORMATS:
        return _FORMATS[words]
    named = {_FORMATS[word] for word in words.split() if word in _FORMATS}
    return named.pop() if len(named) == 1 else None
