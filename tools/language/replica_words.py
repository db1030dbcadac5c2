"""No replica may leave a node: "keep every replica inside one box", "no instance may span servers", "副本不跨机".

All of a replica's groups (TP, EP and the pipeline) then stay in a node.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.constraints import Constraint, PlacementConstraint, Primitive
from .gated import Gated
from .page import Page

_REPLICA = (
    r"(?:(?:model|serving|engine|single|one)\s)?(?:replicas?|instances?|cop(?:y|ies)|pipelines?|deployments?|pods?)"
    r"(?:\sof\s(?:the|a|our|any)\smodel)?"
)
_NODES = (
    r"(?:nodes?|workers?|azs?|zones?|servers?|machines?|box(?:es)?|hosts?|sites?|chassis|instances?|vms?|"
    r"data\s?cent(?:er|re)s?)"
)
_SPAN = (
    r"(?:span(?:s|ning)?|touch(?:es|ing)?|sit(?:s|ting)?\s(?:on|across)|(?:be\s)?split\s(?:over|across)|"
    r"cross(?:es|ing)?|straddl(?:e|es|ing)|leav(?:e|es|ing)|stretch(?:es|ing)?\s(?:over|across)|"
    r"spread(?:s|ing)?\s(?:over|across)|(?:go(?:es|ing)?|run(?:s|ning)?|reach(?:es|ing)?|extend(?:s|ing)?)?\s?(?:across|over|beyond|between))"
)
_MAY = r"(?:(?:may|can|could|must|should|shall|will|is\sto|are\sto|has\sto|have\sto|allowed\sto|be|is|are)\s){0,3}"
_WHICH = (
    r"(?:(?:the|its|their|our|a|one|single|more\sthan\s(?:one|a|1)|two|both|several|multiple|different|physical|"
    r"separate)\s){0,4}"
)
_INSIDE = r"(?:inside|within|in|on|fit(?:s)?\s(?:in|into|on|inside)|stays?\s(?:in|inside|within|on)|local\sto)"
KEPT_WHOLE = Gated(
    rf"(?<![a-z])(?:no|never\s(?:let\s)?(?:an?|one|any)|not\s(?:an?|one|any)(?:\ssingle)?|don't\s(?:let|have)\s(?:an?|one|any))\s{_REPLICA}\s{_MAY}{_SPAN}\s{_WHICH}{_NODES}(?![a-z])|"
    rf"(?<![a-z])(?:an?|one|any|each|every|the|our|single)?\s?{_REPLICA}\s(?:(?:may|can|could|must|should|shall|will|do|does|is|are|has|have)(?:\sto)?(?:\s?(?:not|never)|n't)|cannot|never|goes\snot)\s(?:be\sallowed\sto\s|be\s)?"
    rf"{_SPAN}\s{_WHICH}{_NODES}(?![a-z])|"
    rf"(?<![a-z])(?:keep|put|place|hold|fit|confine|contain|pack)(?:ing|s)?\s(?:each|every|all|any|the|whole|an?|one|entire|our)\s(?:entire\s|whole\s)?{_REPLICA}\s(?:{_MAY})?{_INSIDE}\s(?:a|one|the|its|their|single|same|own|each|exactly|just|\s){{1,4}}\s?{_NODES}(?![a-z])|"
    rf"(?<![a-z])(?:each|every|all|any|an?|one|the|our)\s(?:entire\s|whole\s)?{_REPLICA}\s(?:must|should|shall|has\sto|have\sto|needs?\sto|is\sto|are\sto|will)\s(?:(?:completely|entirely|fully|always|all|be|kept|stay|remain|live|sit|fit|run)\s){{0,4}}{_INSIDE}\s"
    rf"(?:(?:a|one|the|its|their|single|same|own|each|exactly)\s){{1,3}}{_NODES}(?![a-z])|"
    rf"(?<![a-z]){_NODES}\s(?:can't|cannot|can\snot|must\snot|may\snot|don't|do\snot|aren't\sallowed\sto|are\snot\sallowed\sto)\s(?:talk|speak|communicate)\s(?:to|with)\s(?:each\sother|one\sanother)|"
    rf"(?:(?<![a-z])(?:nothing|no\s(?:group|model|parallelism|traffic))|(?:(?<![a-z])not|n't)\s(?:want|like|have|allow|accept|let|use)\s(?:any(?:thing|\s{_REPLICA}|\sgroup)|a\s{_REPLICA}))\s{_MAY}{_SPAN}\s(?:them|both(?:\sof\sthem)?|{_WHICH}{_NODES})(?![a-z])|"
    rf"(?<![a-z])(?:no|without\s(?:any|a))\s(?:configurations?|layouts?|setups?|plans?|splits?)\s(?:where|in\swhich|that|which|with)\s(?:(?:one|a|any|single)\s){{0,2}}(?:requests?|{_REPLICA}|models?)?\s?{_MAY}{_SPAN}\s{_WHICH}{_NODES}(?![a-z])|"
    r"每[台个](?:机器|节点|服务器)?(?:各自|都|单独)?独立(?:部署|跑|服务|运行)|(?:模型|单个?模型|部署|推理)?不(?:做|搞|走|考虑|接受)跨\s?(?:机|节点|服务器|台)(?:器)?(?:部署|切分|通信|并行)?|"
    r"(?:单个?|每个?|任何一?个?|同一个?)?(?:副本|实例|模型实例)(?:都)?(?:不|别|禁)(?:能|要|得|允许|可以?|许|止)?(?:跨|超出)(?:越|过)?(?:节点|机器|服务器|主机|机房|机)|"
    r"(?:不|别|禁)(?:能|要|得|允许|可以?|许|止)?跨(?:越|过)?(?:节点|机器|服务器|机)(?:去)?(?:切|拆|部署|放|切分)?(?:一个)?(?:模型|副本|实例)|"
    r"(?:副本|实例)(?:都)?(?:必须|要|得|只能|须|需)(?:放|落|跑|留|限制)?在(?:同一|单|一)(?:个|台)?(?:节点|机器|服务器|主机)(?:内|里|上|之内)?",
)
_GROUPS: tuple[Primitive, ...] = ("tp", "ep", "pp")


def read_kept_whole(page: Page) -> Iterator[Constraint]:
    """Yield the constraints that keep each replica in a node, and take their words."""
    for match in page.search(KEPT_WHOLE):
        words = page.clause_text(*match.span())[:500]
        page.take(*match.span())
        yield from (PlacementConstraint(kind="within_node", value=group, words=words) for group in _GROUPS)
        return
