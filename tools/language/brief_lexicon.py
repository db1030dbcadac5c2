"""Words that several rows of the field tables share: cards, servers, links, utilisation; English and Chinese.

Patterns only, for lower-case text; the tables are in `brief_rows_*.py`. It refuses to say what a figure means.
"""

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
