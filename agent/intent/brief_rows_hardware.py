"""Rows of the field table about hardware: counts, links, the figures of a card."""

from .brief_lexicon import GPU, INTER, INTRA, NODE, PER_NODE, UTIL, Row

HARDWARE_ROWS: tuple[Row, ...] = (
    (
        "gpus_per_node",
        "count gpus",
        rf"<n> ?(?:x|of|with|,|each with|\() ?#|<n> ?#|<c> x # {GPU}|# ?(?:x )?{GPU} x <n>"
        rf"|# ?(?:{GPU} )?(?:x )?(?:{GPU} )?(?:for |in )?{PER_NODE}|{PER_NODE}[^#<]{{0,12}}#|# ?{GPU} "
        rf"{NODE}|# ?{GPU}? ?(?:each|apiece)\b"
        rf"|{GPU} (?:count )?{PER_NODE}|{PER_NODE}[^#<]{{0,8}}{GPU}",
        r"total|overall|in all|总|共|bandwidth|memory|# gpus? in total",
    ),
    ("nodes", "nodes", r"#", r"(?:per|each|every|/) ?#"),
    (
        "nodes",
        "count",
        rf"(?:num(?:ber)?|n|count|total|how many)?(?: of)? ?{NODE}\b|{NODE} ?(?:count|num(?:ber)?|数量?)|台数|"
        r"节点数|机器数|# x <g>|# x <c> gpu",
        rf"{PER_NODE}|inter|intra|bandwidth|between|id\b|index|rank",
    ),
    (
        "gpus",
        "count gpus",
        rf"{GPU}(?: ?(?:count|num(?:ber)?|total|数量?|数))?|world size|总卡数|卡数|# ?张|(?:hardware|硬件|cluster) : "
        r"(?:total )?(?:count|number|quantity|amount|数量)\b",
        rf"{PER_NODE}|memory|bandwidth|price|cost|hour|\bid\b|index",
    ),
    (
        "card.scale_up_domain_accelerators",
        "count gpus",
        r"scale up domain|nvlink domain|supernode|super ?pod|超节点|\bdomain\b",
    ),
)

CARD_ROWS: tuple[Row, ...] = (
    ("card.tflops", "TFLOPS", r"#", r"total|aggregate|cluster|整机"),
    (
        "card.tflops",
        "count",
        r"\b[tp]flops?\b|tera ?flops?|\btops\b|算力|peak compute|compute (?:peak|power|per)",
        UTIL + r"|\bmfu\b",
    ),
    (
        "card.compute_efficiency",
        "share count",
        rf"\bmfu\b|model flops? util|(?:compute|flops?|tensor core|算力|计算) ?{UTIL}|<tf>[^<#]{{0,24}}#"
        r"|# (?:% )?of (?:the )?(?:peak|dense|flops|compute)",
        r"memory|bandwidth|显存|带宽|\bmbu\b",
    ),
    (
        "card.memory_efficiency",
        "share count",
        rf"\bmbu\b|(?:bandwidth|\bbw\b|带宽|访存) ?{UTIL}|model bandwidth util|(?:memory|\bmem|\bhbm\w*|"
        rf"显存)[^#<]{{0,12}}(?:efficien\w+|效率)|<gbs>[^<#]{{0,24}}#|{UTIL} of (?:the )?(?:memory "
        r")?bandwidth|# (?:% )?of (?:the |its )?(?:peak |hbm |memory )*bandwidth",
        r"\bmfu\b|flops",
    ),
    (
        "memory_utilization",
        "share count",
        rf"(?:memory|显存|内存|vram|hbm|\bmem\b)[^#<]{{0,16}}{UTIL}|{UTIL}[^#<]{{0,16}}(?:memory|显存|内存|vram|"
        r"hbm)|(?:memory|显存) ?(?:limit|budget|cap|ratio|上限)|of (?:the )?(?:gpu |device )?memory",
        r"bandwidth|带宽|\bbw\b|<gbs>|efficien|效率|headroom|\bfree\b|spare|reserv|unused|\bleave|预留|"
        r"保留|空闲|余量",
    ),
    (
        "memory_free",
        "share count",
        r"headroom|(?:free|spare|reserv\w+|unused|left over|leave|预留|保留|空闲|余量)",
        r"bandwidth|带宽|cost",
    ),
    (
        "card.memory_bytes",
        "bytes",
        rf"(?:per|each|every|/) ?{GPU}|每张?卡|memory|\bmem\b|显存|内存|\bhbm\w*|vram|容量|capacity|gddr\w*",
        r"bandwidth|带宽|\bbw\b|host|system|\bcpu\b|主机|\bram\b|ddr[345]\b|kv cache|weights?|权重|disk|ssd|"
        r"total|aggregate|reserved",
    ),
    (
        "card.memory_bytes",
        "count",
        r"(?:memory|显存|\bhbm\w*|vram)(?: size| capacity| 容量|容量|大小)?",
        r"bandwidth|带宽|\bbw\b|host|system|\bcpu\b|主机|util|usage|fraction|efficien|利用率|使用率|type|"
        r"类型|percent|"
        r"ratio|limit",
    ),
    (
        "card.memory_bandwidth",
        "GB/s count",
        r"(?:memory|\bmem\b|显存|内存|\bhbm\w*|vram|gddr\w*|dram|访存)[^#<]{0,6}(?:bandwidth|\bbw\b|带宽|"
        r"throughput|speed)|\bmem(?:ory)? ?bw\b|显存带宽|访存带宽|\bhbm\w*",
        INTRA + "|" + INTER + "|" + UTIL,
    ),
    ("card.memory_bandwidth", "GB/s", r"memory|\bmem\b|显存|内存", INTRA + "|" + INTER),
    (
        "intra_node_bw",
        "GB/s bytes count",
        rf"(?:{INTRA})",
        rf"# x <|memory|显存|\bhbm|latency|version|gen\b|domain|{INTER}",
    ),
    (
        "inter_node_bw",
        "GB/s bytes count",
        rf"(?:{INTER})",
        r"# x\b|memory|显存|\bhbm|latency|nvlink|intra|机内|count|number of",
    ),
    ("card.memory_bandwidth", "GB/s", r"bandwidth|\bbw\b|带宽", None, rf"^(?!.*(?:{INTRA}|{INTER}))"),
    (
        "usd_per_gpu_hour",
        "usd count",
        r"(?:/|per|an?|each|every)[^#<]{0,14}(?:hour|\bhr?\b|小时)|price|hourly|\bcost\b|单价|价格|每卡时|卡时|usd "
        r"per",
        r"month|year|token|total|budget|monthly",
    ),
)
