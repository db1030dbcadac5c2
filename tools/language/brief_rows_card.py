"""Rows of the field table about a card of one's own: its peak, its memory, its links' domain."""

from .brief_lexicon import GPU, INTER, INTRA, UTIL, Row

# What is of the host's memory, and of the link to it.
_HOST = r"\bhost\b|\bpci ?e?\b|\bc2c\b|off ?load|主机|卸载|换出|下沉"

CARD_ROWS: tuple[Row, ...] = (
    ("card.tflops", "TFLOPS", r"#", r"total|aggregate|cluster|整机"),
    ("card.tflops", "count",
        r"\b[tp]flops?\b|tera ?flops?|算力|peak compute|compute (?:peak|power|per)",
        UTIL + r"|\bmfu\b"),
    ("card.compute_efficiency", "share count",
        rf"\bmfu\b|model flops? util|(?:compute|flops?|tensor core|算力|计算) ?{UTIL}|<tf>[^<#]{{0,24}}#"
        r"|# (?:% )?of (?:the )?(?:peak|dense|flops|compute)",
        r"memory|bandwidth|显存|带宽|\bmbu\b"),
    ("card.memory_efficiency", "share count",
        rf"\bmbu\b|(?:bandwidth|\bbw\b|带宽|访存) ?{UTIL}|model bandwidth util|(?:memory|\bmem|\bhbm\w*|"
        rf"显存)[^#<]{{0,12}}(?:efficien\w+|效率)|<gbs>[^<#]{{0,24}}#|{UTIL} of (?:the )?(?:memory "
        r")?bandwidth|# (?:% )?of (?:the |its )?(?:peak |hbm |memory )*bandwidth",
        r"\bmfu\b|flops"),
    ("card.memory_bytes", "bytes",
        rf"(?:per|each|every|/) ?{GPU}|每张?卡|memory|\bmem\b|显存|内存|\bhbm\w*|vram|容量|capacity|gddr\w*",
        r"bandwidth|带宽|\bbw\b|host|system|\bcpu\b|主机|\bram\b|ddr[345]\b|kv cache|weights?|权重|disk|ssd|"
        r"total|aggregate|reserved|headroom|\bfree\b|spare|leave|预留|保留|空闲|" + _HOST),
    ("card.memory_bytes", "count",
        r"(?:memory|显存|\bhbm\w*|vram)(?: size| capacity| 容量|容量|大小)?",
        r"bandwidth|带宽|\bbw\b|host|system|\bcpu\b|主机|util|usage|fraction|efficien|利用率|使用率|type|类型|percent|ratio|limit|"
        r"reserved|headroom|\bfree\b|spare|leave|预留|保留|空闲",
    ),
    ("card.memory_bandwidth", "GB/s count",
        r"(?:memory|\bmem\b|显存|内存|\bhbm\w*|vram|gddr\w*|dram|访存)[^#<]{0,6}(?:bandwidth|\bbw\b|带宽|"
        r"throughput|speed)|\bmem(?:ory)? ?bw\b|显存带宽|访存带宽|\bhbm\w*",
        INTRA + "|" + INTER + "|" + UTIL + "|" + _HOST),
    ("card.memory_bandwidth", "GB/s", r"memory|\bmem\b|显存|内存", INTRA + "|" + INTER + "|" + _HOST),
    ("card.memory_bandwidth", "GB/s", r"bandwidth|\bbw\b|带宽", None, rf"^(?!.*(?:{INTRA}|{INTER}|{_HOST}))"),
    ("card.scale_up_domain_accelerators", "count gpus",
        r"scale up domain|nvlink domain|supernode|super ?pod|超节点|\bdomain\b"),
)  # fmt: skip
