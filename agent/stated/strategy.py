"""A parallel strategy that a person stated: turned into a plan as it stands and judged by the rules.

It is not mended here: an impossible GPU count, a degree that divides nothing, devices that do not exist all go into
the document as they were said, and the validator names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ...tools.catalog.architecture import Architecture
from ...tools.errors import InputError
from ...tools.input.bounds import DEGREE
from ...tools.language.said import StatedDegrees, StatedStrategy
from ...tools.plan.builder import BuildRequest, build_plan
from ...tools.plan.constraints import Constraint, DegreeBound, DegreeConstraint, ReplicasConstraint
from ...tools.plan.describe import describe
from ...tools.plan.document import PHASES, HardwareBlock, ModelBlock, PhaseStrategy, Plan, Strategy
from ...tools.plan.placement import gpu_count, phase_width, place
from ...tools.plan.view import as_int, as_list, as_mapping
from ...tools.rules.tensor_parallel.uneven_split import divides
from ...tools.search.candidate import SearchRequest
from ...tools.validate import validate
from ..judgement import judged
from ..results import StatedStrategyVerdict
from .search_request import build_request

# A stated strategy larger than this is not laid out, only refused.
MAX_STATED_GPUS = 4096
_DEGREES = tuple(StatedDegrees.model_fields)
_STATED = "as was stated"
# What a phase of a plan has beside the degrees that people state for engines.
_FURTHER = ("tp_expert", "kv_sp", "sp_kind", "stage_layers")


def read_strategy(stated: StatedStrategy, architecture: Architecture, hardware: HardwareBlock) -> Strategy:
    """The strategy that was stated; what it leaves open is as a serving engine would take it.

    TP of the FFN is attention's, EP of a MoE model is the stage's width, DP fills the stated GPUs.

    Raises:
        InputError: the strategy is larger than anything that can be laid out.
    """
    prefill = _phase(stated.prefill, stated.decode, architecture)
    decode = _phase(stated.decode, stated.prefill, architecture)
    width = max(phase_width(prefill), phase_width(decode))
    replicas = prefill.replicas is not None and decode.replicas is not None
    dp = stated.dp or 1
    if replicas:
        dp = (prefill.replicas or 0) + (decode.replicas or 0)
    elif stated.dp is None and stated.gpus is not None and stated.gpus % width == 0:
        dp = stated.gpus // width
    elif stated.dp is None and stated.gpus is None:
        dp = max(1, hardware.nodes * hardware.gpus_per_node // width)
    strategy = Strategy(dp=dp, gpu_count=1, prefill=prefill, decode=decode)
    used = gpu_count(strategy)
    if used > MAX_STATED_GPUS:
        raise InputError(f"the stated strategy needs {used} GPUs; at most {MAX_STATED_GPUS} can be laid out")
    return strategy.model_copy(update={"gpu_count": stated.gpus or used})


def pinning(stated: StatedStrategy) -> Iterator[Constraint]:
    """The constraints that pin every degree and number of replicas that was stated."""
    if stated.dp is not None:
        yield ReplicasConstraint(kind="replicas", value=stated.dp, words=_STATED)
    for phase in PHASES:
        for name, degree in getattr(stated, phase).model_dump(exclude_none=True).items():
            if name == "sp" and phase == "decode":
                continue  # SP belongs to prefill: asked for in general, decode stays without it
            if name == "replicas":
                yield ReplicasConstraint(kind="replicas", value=degree, phase=phase, words=_STATED)
            else:
                bound = DegreeBound(name=name, relation="=", degree=degree)
                yield DegreeConstraint(kind="degree", value=bound, phase=phase, words=_STATED)


def read_block(block: Mapping[str, Any], architecture: Architecture, hardware: HardwareBlock) -> Strategy | None:
    """A `strategy` block in the words of plans, in whole or in part, what is left out filled in as by `read_strategy`.

    Degrees may stand in each phase, or beside them for both. What no strategy has, and what is no degree, counts as
    not said; `None` where nothing is left.

    Raises:
        InputError: the strategy is larger than anything that can be laid out.
    """
    shared = _fields(block, architecture)
    phases = {name: {**shared, **_fields(as_mapping(block.get(name)), architecture)} for name in PHASES}
    if not any(phases.values()) and _degree(block.get("dp")) is None:
        return None
    for phase_name, other in (("prefill", "decode"), ("decode", "prefill")):
        _share_cut(phases[phase_name], phases[other])
    for phase in phases.values():
        if "tp_expert" in phase and "ep" not in phase:
            width = (phase.get("tp") or 1) * (phase.get("sp") or 1) * (phase.get("attention_dp") or 1)
            phase["ep"] = max(1, width // phase["tp_expert"])
    degrees = {name: StatedDegrees(**{key: own[key] for key in own if key in _DEGREES}) for name, own in phases.items()}
    stated = StatedStrategy(
        # With `dp` the number of GPUs follows: a wrong number is no reason to refuse the rest.
        gpus=_degree(block.get("gpus", block.get("gpu_count"))) if block.get("dp") is None else None,
        dp=_degree(block.get("dp")),
        prefill=degrees["prefill"],
        decode=degrees["decode"],
    )
    strategy = read_strategy(stated, architecture, hardware)
    whole = strategy.model_copy(
        update={
            "prefill": _with(strategy.prefill, phases["prefill"]),
            "decode": _with(strategy.decode, phases["decode"]),
        }
    )
    return whole.model_copy(update={"gpu_count": stated.gpus or gpu_count(whole)})


def _share_cut(phase: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Give `phase` the stages of `other` if it has as many and states no layers of its own."""
    if "stage_layers" in other and phase.get("pp", other["pp"]) == other["pp"]:
        phase.setdefault("stage_layers", other["stage_layers"])


def _degree(value: Any) -> int | None:
    """`value` as a degree; a minus sign before it is a dash, since no degree is negative."""
    is_text = isinstance(value, str) and len(value) < 10 and value.strip().isdecimal()
    number = int(value) if is_text else as_int(value)
    return abs(number) if number is not None and DEGREE.hold(abs(number)) else None


def _fields(block: Mapping[str, Any], architecture: Architecture) -> dict[str, Any]:
    """The fields of a phase's block that can be laid out."""
    fields: dict[str, Any] = {name: _degree(block.get(name)) for name in (*_DEGREES, "tp_expert", "kv_sp")}
    sizes = [as_int(size) for size in as_list(block.get("stage_layers"))]
    cut = [size for size in sizes if size is not None and size > 0]
    pp = fields["pp"] or len(cut)
    if len(cut) == len(sizes) == pp and sum(cut) == architecture.num_layers:
        fields |= {"stage_layers": tuple(cut), "pp": pp}
    if block.get("sp_kind") in ("all_gather", "ulysses"):
        fields["sp_kind"] = block["sp_kind"]
    return {name: value for name, value in fields.items() if value is not None}


def _with(phase: PhaseStrategy, fields: Mapping[str, Any]) -> PhaseStrategy:
    further = {name: fields[name] for name in _FURTHER if name in fields}
    # One group is none: the field is absent then.
    further["attention_dp"] = phase.attention_dp if (phase.attention_dp or 1) > 1 else None
    return PhaseStrategy.model_validate({**phase.model_dump(), **further})


def _phase(stated: StatedDegrees, other: StatedDegrees, architecture: Architecture) -> PhaseStrategy:
    """The degrees of one phase.

    Raises:
        InputError: its attention alone is larger than anything that can be laid out.
    """

    def degree(name: str) -> int | None:
        value: int | None = getattr(stated, name)
        # A phase that states TP is a stage of its own: what goes with the other's TP is not shared.
        is_shared = name == "pp" or stated.tp is None
        return value if value is not None or not is_shared else getattr(other, name)

    tp, attention_dp = degree("tp") or 1, degree("attention_dp")
    sp = stated.sp or 1
    width = tp * sp * (attention_dp or 1)
    if width > MAX_STATED_GPUS:
        raise InputError(
            f"the stated strategy needs {width} GPUs in a stage; at most {MAX_STATED_GPUS} can be laid out"
        )
    # Beside a degree of attention that is not legal either, the same was meant. Blocks that it cuts through are no
    # reason to mean another one: the rules say so of the one that was stated.
    is_legal = divides(architecture, "tp_ffn", tp) or not divides(architecture, "tp", tp)
    follows = architecture.has_split_ffn and is_legal
    tp_ffn = degree("tp_ffn") or (tp if follows else 1)
    ep = degree("ep") or (width if architecture.is_moe else 1)
    # Experts in fewer groups than there are devices are cut over the others, as engines do.
    tp_expert = width // ep if architecture.is_moe and width % ep == 0 and ep < width else None
    return PhaseStrategy(
        pp=degree("pp") or 1, sp=sp, ep=ep, tp=tp, tp_ffn=tp_ffn, attention_dp=attention_dp, replicas=stated.replicas,
        tp_expert=tp_expert,
    )  # fmt: skip


def judge(stated: StatedStrategy, model: ModelBlock, request: SearchRequest) -> StatedStrategyVerdict:
    """The verdict of the rules and the estimate on the strategy as it was stated."""
    architecture, hardware = request.architecture, request.hardware
    try:
        strategy = read_strategy(stated, architecture, hardware)
    except InputError as error:
        return StatedStrategyVerdict(summary="", valid=False, findings=(), why_not_built=str(error))
    summary = describe(strategy, has_split_ffn=architecture.has_split_ffn)
    try:
        plan = build_stated(build_request(model, request, strategy), architecture)
    except InputError as error:
        return StatedStrategyVerdict(summary=summary, valid=False, findings=(), why_not_built=str(error))
    try:
        report, figures = judged(plan, None, request.calibration)
    except InputError:  # a fact that only this strategy needs is not known: the rules say which
        report, figures = validate(plan), None
    return StatedStrategyVerdict(summary=summary, valid=report.valid, findings=report.violations, estimate=figures)


def build_stated(request: BuildRequest, architecture: Architecture) -> Plan:
    """The plan of a stated strategy; devices that the inventory lacks are handed out all the same (rule GP004).

    Raises:
        InputError: no document can be built of it.
    """
    strategy, hardware = request.strategy, request.hardware
    pp = max(strategy.prefill.pp, strategy.decode.pp)
    if pp > architecture.num_layers:
        raise InputError(f"PP {pp} on {architecture.num_layers} layers leaves empty stages")
    layout, maker = None, request.maker(architecture)
    for nodes in (hardware.nodes, max(hardware.nodes, gpu_count(strategy))):
        layout = layout or place(strategy, maker, nodes=nodes, gpus_per_node=hardware.gpus_per_node)
    return build_plan(replace(request, layout=layout))
