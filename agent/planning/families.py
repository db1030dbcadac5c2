"""Why each family of strategies lost, and which kinds of parallelism no strategy of the space has.

It judges nothing by itself: figures and ranks are the search's, reasons those of `reasons`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...tools.catalog.attention.spec import AttentionSpec
from ...tools.engines.names import JUDGED
from ...tools.plan.describe import describe, family, number
from ...tools.rules.registry import all_rules
from ...tools.rules.sequence_parallel.short_context import LONG_PROMPT_TOKENS
from ...tools.rules.tensor_parallel.uneven_split import divides
from ...tools.search.candidate import MOST_APART, Candidate, SearchRequest, SearchResult
from ...tools.search.sizing import least_weights_bytes
from ...tools.search.space import Replica, SpaceRequest, colocated_replicas, stage_widths
from ..search_results import Excluded, FamilyLost
from .reasons import named
from .rejected import Lost, why_lost

_DEGREES_SHOWN = 6


def family_lost(name: str, candidate: Candidate, best: Candidate | None, objective: str) -> FamilyLost:
    """The family `name` by its best, `candidate`, with what decided for `best`."""
    lost = why_lost(candidate, best, objective)
    return FamilyLost(
        family=name, strategy=candidate.strategy, summary=named(candidate), reason=lost.reason, rule=lost.rule
    )


def families_lost(request: SearchRequest, result: SearchResult) -> Iterator[FamilyLost]:
    """The best of each family but the winner's, best first, with the number and the rule that decided against it."""
    best = result.best
    seen = set[str]() if best is None else {family(best.strategy)}
    # Candidates that are only on the front are listed last, and would come too late.
    for candidate in sorted(result.candidates, key=lambda ranked: not ranked.feasible):
        name = family(candidate.strategy)
        if name not in seen:
            seen.add(name)
            yield family_lost(name, candidate, best, request.workload.objective)
    if not request.disaggregated:
        yield from _not_listed(request, result, seen)


def _not_listed(request: SearchRequest, result: SearchResult, seen: set[str]) -> Iterator[FamilyLost]:
    """Families of one replica that no listed candidate is of, by their widest layout: most cannot hold the weights."""
    layouts: dict[str, list[Replica]] = {}
    for replica in colocated_replicas(request.space):
        layouts.setdefault(family(replica.strategy(1)), []).append(replica)
    need = least_weights_bytes(request)
    usable = request.usable_bytes_per_gpu
    for name, replicas in layouts.items():
        if name in seen or f"DP × {name}" in seen:
            continue
        widest = max(replicas, key=lambda replica: replica.gpus)
        lost = Lost(f"none of its {len(replicas)} layouts is among the {len(result.candidates)} best")
        if widest.gpus * usable < need:
            capacity = f"{number(widest.gpus * usable / 1e9)} GB"
            lost = Lost(f"ME001: the weights take {number(need / 1e9)} GB, its replicas have {capacity}", "ME001")
        strategy = widest.strategy(1)
        yield FamilyLost(family=name, strategy=strategy, summary=describe(strategy), reason=lost.reason, rule=lost.rule)


def excluded(request: SearchRequest) -> Iterator[Excluded]:
    """The kinds of parallelism that no strategy of the space has, with the rule or the wish that excludes them."""
    space = request.space
    model = request.architecture
    if space.input_tokens < LONG_PROMPT_TOKENS:
        reason = f"prompts of {space.input_tokens:,} tokens are shorter than {LONG_PROMPT_TOKENS:,}"
        yield Excluded(family="SP", rule="SP004", reason=reason)
    if not model.is_moe:
        yield Excluded(family="EP", rule="EP001", reason="the model has no experts")
    yield from _relaxable(request)
    uneven = [tp for tp in stage_widths(space) if not divides(model, "tp", tp)]
    if uneven:
        yield _uneven(space, uneven)
    if request.disaggregated:
        yield Excluded(family="replicas that serve both phases", reason="separate prefill and decode was asked for")
    elif not request.looks_apart:
        few = f"it was not asked for, and is searched unasked on 2 to {MOST_APART} GPUs only"
        if not request.can_hand_over:
            few = "the stated release of the engine has no option by which servers hand caches over"
        why = "it was ruled out" if request.disaggregated is False else few
        yield Excluded(family="separate prefill and decode", reason=why)
    if space.engine is not None:
        title = JUDGED[space.engine].title
        why = f"{title} was named" if request.named_engine else f"no engine was named, and {title} is assumed"
        of_engines = (rule for rule in all_rules() if rule.id.startswith("EN"))
        judges = (rule.id for rule in of_engines if rule.limits or rule.pipeline_faults or rule.pair_faults)
        reason = f"{why} (rules {', '.join(judges)})"
        yield Excluded(family=f"what {title} has no settings for", reason=reason)


def _relaxable(request: SearchRequest) -> Iterator[Excluded]:
    moe = request.architecture.is_moe
    for kind, relaxation, rule, applies in (
        ("attention DP", "attention_dp", "DP001", moe),
        ("TP in experts", "tp_in_expert", "TP006", moe),
        ("KV-SP", "kv_sequence_decode", "SP003", True),
    ):
        if applies and relaxation not in request.policy.relaxations:
            yield Excluded(family=kind, rule=rule, reason=f"only with the relaxation {relaxation}")


def _uneven(space: SpaceRequest, degrees: list[int]) -> Excluded:
    shown = ", ".join(str(tp) for tp in degrees[:_DEGREES_SHOWN])
    more = f" and {len(degrees) - _DEGREES_SHOWN} more" if len(degrees) > _DEGREES_SHOWN else ""
    attention = (layer.attention for layer in space.architecture.layer_kinds if layer.attention is not None)
    heads = "; ".join(dict.fromkeys(map(_heads, attention)))
    return Excluded(family=f"TP {shown}{more}", rule="TP005", reason=f"heads do not divide: {heads}")


def _heads(spec: AttentionSpec) -> str:
    counts = " and ".join(f"{size.size} {size.what.removesuffix(' heads')}" for size in spec.split_sizes())
    return f"{counts} heads{f' ({spec.kind})' if spec.is_recurrent else ''}"
