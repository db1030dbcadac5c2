"""Questions that the current plan itself answers: what lies where, over which link, and for how many there is room."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ....tools.language.patterns.gated import Gated
from ....tools.performance.layout import facts_of, layout_from_view
from ....tools.plan.devices import devices_text
from ....tools.plan.elements import places_of
from ....tools.plan.layout import Layout
from ....tools.plan.reader import read_document
from ...languages.say import say
from ...report.layout import layout_section
from ...report.memory import memory_section
from ...report.text import Bullets, Section, render, section
from ..outcome import Outcome
from ..words import request_facts, title_of
from .work import Work

_LEAD = r"(?:(?:and|but|so|ok(?:ay)?|now)[\s,]{1,3}){0,2}"
_PLAN = r"(?:it|this|that|we|i|(?:the|this|our)\s(?:plan|layout|deployment|system|server))"
_USERS = r"(?:(?:concurrent|simultaneous|parallel)\s)?(?:users?|requests?|sequences?|clients?|sessions?)"
_TAIL = r"(?:\s(?:at\s(?:most|once|a\stime)|in\smemory|here|now|there|currently))*"


def _room(work: Work, match: re.Match[str]) -> Iterator[Section]:
    """For how many requests there is room, and what takes it."""
    del match
    now, figures = work.now, work.figures()
    memory, load = figures.memory, work.plan.workload
    held = memory.max_concurrency if memory.kv_cache_capacity_requests is None else memory.kv_cache_capacity_requests
    yield section("", title_of(now.result))
    yield section(
        "",
        say(
            "Room for {held:,} requests of {tokens:,} tokens at once, by memory for KV cache; the load has {load:,}.",
            held=held,
            tokens=load.input_tokens + load.output_tokens,
            load=load.concurrency,
        ),
        say(
            "A limit on TPOT may bind before memory, since steps take longer with more of them: "
            "{tpot:.1f} ms at this load, {alone:.1f} ms for a request alone.",
            tpot=figures.latency.tpot_ms,
            alone=figures.latency.alone.tpot_ms,
        ),
    )
    yield memory_section(figures, work.width)


def _places(work: Work, match: re.Match[str]) -> Iterator[Section]:
    """Where a part of the plan lies."""
    del match
    yield section("", title_of(work.now.result))
    yield layout_section(work.plan)


def _expert(work: Work, match: re.Match[str]) -> Iterator[Section]:
    """The GPUs that hold an expert, replica by replica."""
    expert = int(match["expert"] or match["where"])
    lines: dict[str, None] = {}
    for replica in _layout(work).replicas:
        for phase in replica.phases:
            for stage in phase.stages:
                holders = [device for device, ids in zip(stage.devices, stage.experts, strict=False) if expert in ids]
                if holders:
                    layers = f"{stage.layers[0]}–{stage.layers[1]}"
                    where = say("layers {layers}: {devices}", layers=layers, devices=devices_text(holders))
                    lines[say("replica {index}, {where}", index=replica.index, where=where)] = None
    hosts = Bullets(tuple(lines)) if lines else say("No GPU of the plan holds a routed expert {expert}.", expert=expert)
    cut = work.plan.strategy.decode.tp_expert or 1
    is_cut = say("Each of these GPUs holds a part of it: experts are cut over {cut} ranks.", cut=cut)
    yield section(title_of(work.now.result), hosts, is_cut if lines and cut > 1 else "")


def _links(work: Work, match: re.Match[str]) -> Iterator[Section]:
    """Over which link the collectives of each phase go."""
    del match
    facts = facts_of(work.plan.hardware)
    inside = facts.accelerator.intra_node_interconnect or say("the link inside a node")
    # The widest group of each kind: the domains that it spans, and its GPUs.
    widest: dict[tuple[str, str], tuple[int, int]] = {}
    for replica in _layout(work).replicas:
        for phase in replica.phases:
            group = phase.degrees.tp * phase.token_parts
            for stage in phase.stages:
                attention = stage.attention_devices
                groups = [("attention", attention[at : at + group]) for at in range(0, len(attention), group)]
                experts = "experts" if phase.degrees.ep > 1 else "cut experts"
                for kind, devices in (*groups, (experts, stage.devices if stage.experts else ())):
                    row = (len({_node(device) // facts.nodes_per_domain for device in devices}), len(devices))
                    if devices:
                        widest[phase.phase, kind] = max(widest.get((phase.phase, kind), row), row)
    yield section(title_of(work.now.result), Bullets(tuple(_link_lines(widest, inside, facts.island_gpus))))


def _node(device: str) -> int:
    return places_of((device,))[0][0]


_EXCHANGES = {
    "attention": "all-reduce of attention",
    "experts": "all-to-all of experts",
    "cut experts": "all-reduce of experts",
}


def _link_lines(widest: Mapping[tuple[str, str], tuple[int, int]], inside: str, bridged: int | None) -> Iterator[str]:
    for (phase, kind), (domains, width) in widest.items():
        link = "PCIe" if bridged is not None and width > bridged else inside
        said = {"phase": phase, "what": say(_EXCHANGES[kind]), "width": width, "domains": domains, "link": link}
        if width == 1:
            yield say("{phase}, {what}: none, it is on one GPU", **said)
        elif domains == 1:
            yield say("{phase}, {what}: {width} GPUs in one node or rack, over {link}", **said)
        else:
            across = (
                "{phase}, {what}: {width} GPUs in {domains} nodes or racks, over {link} inside and the network between"
            )
            yield say(across, **said)


def _request(work: Work, match: re.Match[str]) -> Iterator[Section]:
    """What the plan was asked for with."""
    del match
    facts = tuple(f"{title}: {value}" for title, value in request_facts(work.now.intent).items())
    yield section(title_of(work.now.result), Bullets(facts))


def _layout(work: Work) -> Layout:
    return layout_from_view(read_document(work.plan).view)


_COLLECTIVE = (
    r"(?:all[\s-]?(?:to[\s-]?all|reduces?|gathers?)|collectives?|ep|tp|dispatch(?:es)?|expert\s(?:traffic|exchange))"
)
_ANSWERS: tuple[tuple[Gated, Callable[[Work, re.Match[str]], Iterator[Section]]], ...] = tuple(
    (Gated(rf"{_LEAD}(?:{pattern}){_TAIL}[\s?.!]*"), answer)
    for pattern, answer in (
        (
            r"what\s(?:limits|bounds|binds|caps)\s(?:the\s|its\s|my\s)?(?:max(?:imum)?\s)?(?:batch(?:\ssize)?|concurrency|number\sof\s\w+)"
            rf"|how\smany\s{_USERS}\s(?:can\s(?:{_PLAN}\s)?)?(?:fit|hold|take|handle)"
            rf"|what(?:'s|\sis)\sthe\s(?:highest|largest|max(?:imum|imal)?|most)\s(?:(?:number|count)\sof\s)?(?:{_USERS}|concurrency|batch(?:\ssize)?)"
            rf"(?:\s(?:that\s)?{_PLAN}\s(?:can\s(?:take|hold|fit|serve|handle)|fits?|holds?|takes?))?"
            r"|最多(?:能|可以?)?(?:支持|容纳|放下?|跑|服务)?多少(?:个)?(?:并发)?(?:用户|请求|并发)?",
            _room,
        ),
        (
            r"(?:which|what)\s(?:gpus?|devices?|cards?|ranks?|nodes?)\s(?:hold|have|host|store|run|own)s?\s(?:the\s)?expert\s(?:no\.?\s|number\s|#\s?)?(?P<expert>\d{1,4})"
            r"|where\s(?:is|does)\s(?:the\s)?expert\s#?(?P<where>\d{1,4})(?:\s(?:lie|live|sit|go))?",
            _expert,
        ),
        (
            r"(?:which|what)\s(?:gpus?|devices?|cards?|nodes?)\s(?:do|does|run|runs|serve|serves|hold|holds|are\s(?:for|used\sfor))\s(?:the\s)?"
            r"(?:prefill|decode|layers?(?:\s\d{1,4})?|stages?(?:\s\d{1,3})?|replicas?(?:\s\d{1,4})?|which\s\w+|what)"
            r"|how\smany\s(?:gpus?|cards?|nodes?|replicas?|stages?)\s(?:are\s(?:used|there)|(?:does|do|will)\s"
            rf"{_PLAN}\s(?:use|have|need|take))",
            _places,
        ),
        (
            rf"(?:is|are|does|do)\s(?:\w{{1,12}}\s){{0,5}}(?:nvlink|nvswitch|infiniband|the\snetwork|pcie|xgmi)(?:\s\w{{1,12}}){{0,3}}\s(?:the\s)?{_COLLECTIVE}"
            rf"|(?:is|are|does|do)\s(?:the\s)?{_COLLECTIVE}\s(?:\w{{1,12}}\s){{0,4}}(?:nvlink|nvswitch|nodes?|infiniband|(?:the\s)?network|pcie)"
            rf"|(?:over\s)?(?:which|what)\slinks?\s(?:do|does|is|are)\s(?:the\s)?{_COLLECTIVE}(?:\s\w{{1,12}}){{0,3}}",
            _links,
        ),
        (
            r"(?:which|what)\s(?:serving\s)?(?:engine|model|card|accelerator|precision|(?:number\s)?format|quantization|objective)s?\s"
            rf"(?:is|are|do|does)(?:\s(?:{_PLAN}|used|in\suse|planned|use|run|running|on|for|with|chosen)){{0,4}}"
            rf"|is\s{_PLAN}\s(?:quanti[sz]ed|in\s(?:fp8|bf16|int8|int4|fp4))",
            _request,
        ),
    )
)


def of_own_plan(work: Work, text: str) -> Outcome | None:
    """The answer out of the current plan; `None` where `text` is no such question.

    Raises:
        InputError: there is no plan.
    """
    for pattern, answer in _ANSWERS:
        if (match := pattern.fullmatch(text)) is not None:
            return Outcome("show", render(list(answer(work, match)), width=work.width))
    return None
