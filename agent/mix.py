"""`search` for several kinds of requests at once: the strategy that serves the mixture best, and its plan.

Model, hardware, number formats and the objective are asked for as everywhere; the kinds of requests come beside them,
each with its share. The plan that is built states all of them, as pairs of lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from msgspec.structs import replace
from pydantic import Field

from ..tools.calibration.custom import CustomCalibration
from ..tools.checkpoint import left_out
from ..tools.errors import InputError
from ..tools.frozen import Frozen, Sparse
from ..tools.input.arguments import checks_arguments
from ..tools.input.files import read_bounded, utf8_text
from ..tools.language.briefs.parse import parse_json, parse_yaml
from ..tools.language.file_counts import WrittenTokens
from ..tools.plan.builder import build_plan
from ..tools.plan.document import LatencyLimit, Plan, PrecisionBlock, WorkloadBlock
from ..tools.plan.latency_limits import LATENCY_FIELDS, STATISTIC_FIELDS
from ..tools.plan.lengths import MOST_PAIRS, RequestLengths
from ..tools.search.mix import MixCandidate, MixResult, Part, search_mix
from ..tools.validate import validate
from .intent.intent import Assumption, Intent
from .planning.keeping import pinned
from .runs.time_limit import TIME_LIMIT_S, within
from .stated.arguments import Arguments, HardwareArgument, ModelArgument, checked, said_of_arguments
from .stated.request import stated_intent
from .stated.search_request import architecture_of, build_request, hardware_block, search_request, with_concurrency

MAX_FILE_BYTES = 256 << 10
MAX_KINDS = 64
# What may be said of all kinds at once; a kind's own value wins.
_OF_ALL_KINDS = frozenset({
    "concurrency", "objective", "prefix_cache_hit_rate", "expert_imbalance",
    *LATENCY_FIELDS, *STATISTIC_FIELDS,
})  # fmt: skip
# Shares that differ by less are alike.
_SAME_SHARE = 0.001
_LENGTHS = ("input_tokens", "output_tokens")


class Kind(Frozen):
    """One kind of request: its share of all (any unit), its lengths, and the limits that hold for it."""

    name: str = Field(min_length=1, max_length=100)
    weight: float = Field(gt=0, le=1e9, allow_inf_nan=False)
    input_tokens: WrittenTokens
    output_tokens: WrittenTokens
    ttft_ms_max: LatencyLimit | None = None
    tpot_ms_max: LatencyLimit | None = None
    end_to_end_ms_max: LatencyLimit | None = None
    prefix_cache_hit_rate: float | None = Field(default=None, ge=0, le=1)


class Kinds(Frozen):
    """The kinds of requests of a mix, in the order in which they were given."""

    workloads: tuple[Kind, ...] = Field(min_length=1, max_length=MAX_KINDS)


class MixAnswer(Sparse):
    """What a search for a mix gives back; `plan` is built from the first candidate and passes every hard rule."""

    feasible: bool
    model: str
    hardware: str
    objective: str
    workloads: tuple[Kind, ...]
    candidates: tuple[MixCandidate, ...]
    evaluated: int
    rejected: dict[str, int]
    # The number formats that were chosen, where they were left open.
    precision: PrecisionBlock | None = None
    plan: Plan | None = None
    # Work that the time limit left no time for.
    left_out: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    # Words that sound like a demand and were not acted on.
    not_acted_on: tuple[str, ...] = ()

    @property
    def exit_status(self) -> int:
        """0 where a plan holds every limit."""
        return 0 if self.feasible else 1


def read_kinds(path: Path) -> Kinds:
    """The kinds of requests in a YAML or JSON file: a list, or an object with the list under `workloads`.

    Raises:
        InputError: it cannot be read, or says something that a mix does not know.
    """
    name = path.name
    text = utf8_text(read_bounded(path, MAX_FILE_BYTES, name), name)
    if path.suffix.lower() == ".json":
        value: Any = parse_json(name, text).value
    else:
        documents = parse_yaml(name, text)
        if len(documents) != 1:
            raise InputError(f"{name}: one YAML document is read, not {len(documents)}")
        value = documents[0].value
    return kinds_of(value, name)


def kinds_of(value: Any, where: str = "mix") -> Kinds:
    """Kinds of requests from a list of objects, or an object that holds it under `workloads`.

    Raises:
        InputError: they are none; the message says which field, and why.
    """
    return checked(Kinds, value if isinstance(value, Mapping) else {"workloads": value}, where)


@checks_arguments
def plan_mix(
    request: str | None = None,
    *,
    workloads: Sequence[Mapping[str, object]],
    model: ModelArgument | None = None,
    hardware: HardwareArgument | None = None,
    brief: str | Path | Iterable[str | Path] = (),
    calibration: CustomCalibration | str | Path | None = None,
    time_limit_s: float = TIME_LIMIT_S,
    **stated: Unpack[Arguments],
) -> MixAnswer:
    """One plan for several kinds of requests at once; limits hold for each kind by itself.

    Args:
        request: What else is asked, in words, as `search`.
        workloads: Of each kind its name, weight (its share, in any unit), input_tokens and output_tokens, and where
            there are such ttft_ms_max, tpot_ms_max, end_to_end_ms_max and prefix_cache_hit_rate.
        model: As `plan`.
        hardware: As `plan`, with a number of nodes.
        brief: The path of a deployment brief, or several.
        calibration: Times of your own, or the path of their file.
        time_limit_s: Seconds after which the best so far is the answer; `left_out` says what was not looked at.
        **stated: As `plan`. Limits, and a prefix_cache_hit_rate, hold for each kind that has none of its own.

    Raises:
        InputError: As `plan`, or the hardware is left open, or something is stated that a mix cannot have (a rate,
            spreads of lengths, shared prefixes, phases apart).

    Example:
        >>> import shardwright
        >>> kinds = [{"name": "chat", "weight": 3, "input_tokens": 512, "output_tokens": 64},
        ...          {"name": "summary", "weight": 1, "input_tokens": 4096, "output_tokens": 64}]
        >>> shardwright.plan_mix(workloads=kinds, model="llama-3.2-1b", hardware="1x2:l4").feasible
        True
    """
    said = said_of_arguments(model, hardware, None, stated)
    intent = stated_intent(request, said, brief=brief, calibration=calibration, stated=stated)
    with within(time_limit_s):
        return answer_mix(intent, kinds_of(list(workloads)))


def answer_mix(intent: Intent, kinds: Kinds) -> MixAnswer:
    """The best strategy for the mixture on the hardware of `intent`.

    Raises:
        InputError: the hardware, or its kind, is left open, something is stated that a mix cannot have, or the config
            cannot be read.
    """
    choice = intent.hardware
    if choice is None or choice.nodes is None or len(intent.hardware_choices) > 1:
        raise InputError("a mix of workloads is planned on stated hardware: give --hardware NODESxGPUS:ACCELERATOR")
    _refuse_what_no_mix_has(intent)
    if intent.strategy is not None:
        intent = pinned(intent, intent.strategy)
    architecture = architecture_of(intent.model)
    base = search_request(intent, architecture, hardware_block(choice, choice.nodes))
    parts: list[Part] = []
    for kind in kinds.workloads:
        fields = kind.model_dump(exclude={"name", "weight"}, exclude_none=True)
        parts.append(Part(kind.name, replace(base, workload=base.workload.model_copy(update=fields)), kind.weight))
    result = search_mix(parts)
    return MixAnswer(
        feasible=result.best is not None,
        model=intent.model.name,
        hardware=f"{base.hardware.nodes}x{base.hardware.gpus_per_node}:{base.facts.accelerator.id}",
        objective=base.workload.objective,
        workloads=kinds.workloads,
        candidates=result.candidates,
        evaluated=result.evaluated,
        rejected=result.rejected,
        precision=result.precision,
        plan=_plan(intent, parts, result),
        left_out=left_out(),
        assumptions=tuple(entry for entry in intent.assumptions if entry.field not in _LENGTHS),
        not_acted_on=(*intent.unread, *_lengths_replaced(intent)),
    )


def _refuse_what_no_mix_has(intent: Intent) -> None:
    """Refuse statements on the load that hold for no kind of a mix, or of which there is no answer."""
    load, known = intent.workload, _OF_ALL_KINDS.union(_LENGTHS)
    stated = [name for name in WorkloadBlock.model_fields if name not in known and getattr(load, name) is not None]
    stated += ["compared strategies"] * bool(intent.compared)
    if stated:
        named = ", ".join(dict.fromkeys(f"{intent.words.get(name, name)!r}" for name in stated))
        raise InputError(
            f"a mix of workloads is planned for a number of requests in flight (concurrency) with the lengths of its "
            f"kinds, and has no answer to {named}: leave that out, or plan the kinds one by one"
        )


def _lengths_replaced(intent: Intent) -> Iterator[str]:
    """Lengths stated beside a mix, whose kinds have their own."""
    assumed = {entry.field for entry in intent.assumptions}
    for name in _LENGTHS:
        if name not in assumed:
            yield f"{intent.words.get(name, name)!r}: each kind of a mix has its own lengths"


def _plan(intent: Intent, parts: Sequence[Part], result: MixResult) -> Plan | None:
    best = result.best
    if best is None:
        return None
    request = parts[0].request
    mixed = replace(request, workload=_mixture(parts), precision=result.precision or request.precision)
    plan = build_plan(build_request(intent.model.block, with_concurrency(mixed, best.concurrency), best.strategy))
    report = validate(plan)
    if not report.valid:
        rules = ", ".join(dict.fromkeys(finding.rule for finding in report.violations))
        raise InputError(f"the best strategy for the mix breaks {rules}: no plan is given out")
    return plan


def _mixture(parts: Sequence[Part]) -> WorkloadBlock:
    """The load of all kinds together: pairs of lengths as frequent as their kinds.

    It has no limits: those of a plan are of all its requests, those of a mix of the requests of each kind.
    """
    loads = [part.request.workload for part in parts]
    if len(loads) == 1:
        return loads[0]
    counts = _counts([part.weight for part in parts])
    pairs = [
        (load.input_tokens, load.output_tokens) for load, count in zip(loads, counts, strict=True) for _ in range(count)
    ]
    prompt_tokens, answer_tokens = (sum(side) for side in zip(*pairs, strict=True))
    hit_tokens = sum(
        count * load.input_tokens * (load.prefix_cache_hit_rate or 0.0)
        for load, count in zip(loads, counts, strict=True)
    )
    return loads[0].model_copy(
        update={
            **dict.fromkeys(LATENCY_FIELDS),
            **dict.fromkeys(STATISTIC_FIELDS, "mean"),
            "input_tokens": round(prompt_tokens / len(pairs)),
            "output_tokens": round(answer_tokens / len(pairs)),
            "lengths": RequestLengths(pairs=tuple(pairs)),
            "prefix_cache_hit_rate": hit_tokens / prompt_tokens or None,
        }
    )


def _counts(weights: Sequence[float]) -> list[int]:
    """Requests of each kind in the smallest sample with their shares; each kind has one at least."""
    shares = [weight / sum(weights) for weight in weights]
    counts = [1 for _ in shares]
    for size in range(len(shares), MOST_PAIRS + 1 - len(shares)):
        counts = [max(1, round(share * size)) for share in shares]
        if all(abs(count / sum(counts) - share) < _SAME_SHARE for count, share in zip(counts, shares, strict=True)):
            break
    return counts
