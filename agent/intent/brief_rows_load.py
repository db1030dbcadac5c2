"""Rows of the field table about the load and its limits: lengths, rates, TTFT and TPOT."""

from .brief_lexicon import GPU, Row

_IN = (
    r"\binputs?\b|\bprompts?\b|\bisl\b|\bprefill (?:len\w*|tokens|size)|\bquer(?:y|ies) len"
    r"|# ?(?:tokens? )?(?:coming |going )?in\b|\bcontext\b|输入|提示词?|上文|上下文"
)
_OUT = (
    r"\boutputs?\b|\bcompletions?\b|\bgenerat\w+|\bresponses?\b|\brepl(?:y|ies)\b|\banswers?\b|\bosl\b|\bnew tokens"
    r"|\bmax tokens\b|\bdecode (?:len\w*|tokens)|\bgen (?:len\w*|tokens)|# ?(?:tokens? )?(?:coming |"
    r"going )?out\b|输出|生成|回答|回复"
)
_TTFT = (
    r"\bttft\b|time to (?:the )?first|first (?:output )?tokens?|首 ?个? ?(?:tokens?|字|词|包)"
    r"|prefill (?:latency|time|delay)|(?:预填充|prefill) ?(?:时延|延迟|耗时)"
)
_TPOT = (
    r"\btpot\b|\bitl\b|\btbt\b|inter ?token|per (?:output |generated |decoded )?tokens?\b|between "
    r"tokens|token to token"
    r"|decode (?:step )?(?:latency|time|delay)|(?:subsequent|next|following|each|every) (?:output )?tokens?"
    r"|每个? ?(?:输出|后续)? ?(?:tokens?|词元|字)|(?:tokens?|词元) ?间隔?|(?:解码|decode) ?(?:时延|"
    r"延迟|耗时)|单 ?tokens?"
)

LOAD_ROWS: tuple[Row, ...] = (
    ("input_tokens", "tokens count", _IN, r"window|price|cost|cach|max model len|\brate\b|\bkv\b|hit"),
    ("output_tokens", "tokens count", _OUT, r"price|cost|per s|\brate\b|tokens/s|throughput|吞吐"),
    (
        "length_tokens",
        "tokens count",
        r"\bseq(?:uence)? ?len\w*|sequence lengths?|\blengths?\b|# ?tokens? (?:each|long)|tokens? (?:each|"
        r"per (?:sequence|request))|sequences?|序列长度|文本长度|长度",
        r"block|chunk|page|batched|\brate\b|输入|输出|\binput|\boutput|prompt|completion|generat|response",
    ),
    (
        "concurrency",
        "count requests",
        r"concurren\w+|in flight|at (?:a|the same|one) time|at once|simultaneous\w*|parallel (?:requests|"
        r"users|sessions|streams)|batch(?:es)?(?: ?sizes?)?|max num seqs|max (?:batch|seqs|running)|\bbs\b"
        r"|\busers?\b|\bsessions?\b|\bstreams?\b|\bsequences?\b|\brequests?\b|并发(?:数|量|用户数?|"
        r"请求数?)?|批(?:次|"
        r"量)?大?小?|同时|在线用户",
        r"batched tokens|tokens? per batch|per s\b|/s\b|per (?:s|sec|min|minute|hour|day)\b|per day|"
        r"\brate\b|prefill batch|chunk|microbatch|"
        r"length|tokens? (?:per|each)",
    ),
    ("request_rate", "requests/s", r"#"),
    (
        "request_rate",
        "count",
        r"requests? ?(?:per|/) ?s(?:ec(?:ond)?)?\b|\brps\b|\bqps\b|(?:request|arrival) rate|queries per "
        r"s\w*|每秒请求数?|请求速率|到达率",
    ),
    ("min_tokens_per_second", "tokens/s", r"#", rf"(?:per|/|each) ?{GPU}|per user|单卡|每卡"),
    (
        "min_tokens_per_second",
        "count",
        r"tokens? ?(?:per|/) ?s(?:ec(?:ond)?)?\b|\btps\b|tok/s|(?:output |token |total |decode |generation "
        r"|system |min )throughput|吞吐",
        rf"(?:per|/|each) ?{GPU}|per user|request|单卡|每卡|每用户",
    ),
    ("throughput_per_gpu", "tokens/s/gpu", r"#"),
    (
        "throughput_per_gpu",
        "tokens/s count",
        rf"(?:tokens?|throughput|tps|吞吐)[^#<]*(?:(?:per|/|each) ?{GPU})|单卡吞吐|每卡",
    ),
    ("user_rate", "tokens/s/user", r"#"),
    (
        "user_rate",
        "tokens/s count",
        r"tokens?[^#<]{0,20}per (?:user|request|stream|session)|per user[^#<]{0,20}tokens?|单用户|每用户|"
        r"interactivity",
    ),
    ("expert_imbalance", "count", r"experts?\b[^#<]{0,12}im ?balance|专家[^#<]{0,6}不(?:均衡|平衡|均)"),
    ("prefix_cache_hit_rate", "share count", r"prefix|cache hit|cached|hit ?rate|reuse|前缀|缓存命中|命中率"),
    ("ttft_ms_max", "ms count", _TTFT, rf"{GPU} count|\bgpus\b"),
    ("tpot_ms_max", "ms ms/token count", _TPOT, r"tokens/s|tokens per s|\brate\b|\btps\b"),
    ("tpot_ms_max", "ms/token", r"#"),
    (
        "ttft_ms_max",
        "ms",
        r"latency|delay|时延|延迟|p\d\d|#",
        r"end to end|\be2e\b|total|per token|端到端|总|network|\blink\b|transfer|startup|load time",
        r"prefill|预填充|first token|首",
    ),
    (
        "tpot_ms_max",
        "ms",
        r"latency|delay|时延|延迟|p\d\d|#",
        r"end to end|\be2e\b|total|端到端|总|first token|首|network|\blink\b|transfer",
        r"decode|decoding|解码|per token",
    ),
)

ENGINE_ROWS: tuple[Row, ...] = (
    ("max_model_len", "count tokens", r"max model len\w*|context window|max context|上下文窗口"),
    (
        "ignored",
        "count tokens",
        r"max num batched tokens|chunk(?:ed prefill)?(?: size)?|block size|page size|num speculative",
    ),
)
