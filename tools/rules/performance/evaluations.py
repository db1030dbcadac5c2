"""PE001 to PE005 and PE007 to PE009: an evaluation is complete, and each of its figures is what the graph takes.

One table of what an evaluation has to give, and of messages on figures that are off. The rule of a figure
(`attribution.py`) and what an evaluation lacks (`claims.py`) are computed once for all of them; other figures that are
off are PE006's. A plan without an evaluation claims nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypedDict, Unpack

from msgspec import Struct

from ...plan.view import PlanView, as_mapping
from ..base import Edit, Example, Finding, Rule, set_top
from .attribution import faults_of, finding_of, replicas_serving
from .claims import (
    claim_of,
    fields_of,
    lacking_cache,
    lacking_latency,
    lacking_memory_term,
    lacking_throughput,
    recomputed,
)


class _Wanted(Struct, frozen=True):
    """What a block of an evaluation has to give: `missing` returns what it lacks, `says` is the message."""

    message_id: str
    block: str
    missing: Callable[[PlanView], tuple[str, ...]]
    says: str

    def findings(self, view: PlanView, _: str) -> Iterator[Finding]:
        """One finding on everything that is missing."""
        missing = self.missing(view)
        if not missing:
            return
        claimed: object = claim_of(view)
        for name in self.block.split("/"):
            claimed = as_mapping(claimed).get(name)
        yield Finding(
            self.message_id,
            self.says.format(missing=", ".join(missing)),
            where=f"/performance/{self.block}" if as_mapping(claimed) else "/performance",
            value=sorted(fields_of(claimed)),
            expected=list(missing),
        )


class _Right(Struct, frozen=True):
    """Figures that have to match the graph; `says` is the message on one that does not, or a function that makes it."""

    message_id: str
    says: str | Callable[[PlanView], str]
    remedy: str = ""

    def findings(self, view: PlanView, rule: str) -> Iterator[Finding]:
        """Findings on the figures of `rule` that are off."""
        for fault in faults_of(view, rule):
            says = self.says if isinstance(self.says, str) else self.says(view)
            yield finding_of(self.message_id, fault, says, self.remedy)


class _Words(TypedDict):
    id: str
    name: str
    requirement: str
    rationale: str
    source: str
    remedy: str


def _claim(*demands: _Wanted | _Right, good: str, bad: Edit, **words: Unpack[_Words]) -> Rule:
    """The rule that an evaluation meets `demands`, which are checked in order."""

    def check(view: PlanView) -> Iterator[Finding]:
        for demand in demands:
            yield from demand.findings(view, words["id"])

    return Rule(
        **words,
        check=check,
        good=Example(good, (Edit("evaluate"),)),
        bad=Example(good, (Edit("evaluate"), bad)),
        rests_on_estimate=any(isinstance(demand, _Right) for demand in demands),
        mend=recomputed,
    )


def _replicas_do_as_much(view: PlanView) -> str:
    counts = {phase: replicas_serving(view, phase) for phase in ("prefill", "decode")}
    replicas = " and ".join(f"{count} that serve {phase}" for phase, count in counts.items())
    return f"replicas do as much together as each of them does: there are {replicas}"


def _set(field: str, value: object) -> Edit:
    return set_top(f"/performance/{field}", value)


RULES = (
    _claim(
        _Wanted(
            "not-taken-apart",
            "latency",
            lacking_latency,
            "the claimed latency is not taken apart: it lacks {missing}",
        ),
        _Right("parts-off", "the parts do not add up to the phase", "compute the parts again: they are the phase"),
        id="PE001",
        name="latency not taken apart",
        requirement=(
            "Latency is given as prefill + decode, each with compute, memory and communication parts that add up to it."
        ),
        rationale=(
            "latency = prefill + (output tokens - 1) × decode step. The two phases have other limits: prefill is bound "
            "by arithmetic, decode by memory and communication; one figure for both hides which of them a strategy "
            "helps."
        ),
        source="004 §2.1, §8",
        remedy="give prefill_ms and decode_ms, and the parts of prefill and decode_step, as `estimate` prints them",
        good="dense-tp2",
        bad=_set("latency", {"end_to_end_ms": 100.0}),
    ),
    _claim(
        _Wanted(
            "left-out",
            "memory",
            lacking_cache,
            "the evaluation does not give the KV cache in full: it lacks {missing}",
        ),
        _Right("cache-off", "that is not the KV cache of this model and these shards, in bytes"),
        id="PE002",
        name="KV cache not estimated",
        requirement="The KV cache is estimated in bytes, per token and per device.",
        rationale=(
            "Bytes per token = layers × 2 × KV heads × head size × bytes of an element (MLA: its latent); a device "
            "holds its layers and heads of it, heads repeated where there are more tensor ranks than heads. The cache "
            "decides how many requests run at once, and what each decode step reads."
        ),
        source="004 §2.3, §8",
        remedy="give kv_cache_bytes_per_token and the kv_cache_bytes of each device, as `estimate` prints them",
        good="dense-tp2",
        bad=_set("memory/kv_cache_bytes_per_token", None),
    ),
    _claim(
        _Wanted("left-out", "throughput", lacking_throughput, "the evaluation leaves out {missing}"),
        id="PE003",
        name="throughput left out",
        requirement="Throughput is given in tokens/s for a single request, batched, and DP-scaled.",
        rationale=(
            "The three answer different questions: what one user sees (output tokens / latency), what one replica "
            "sustains (requests × output tokens / their time), and what the deployment does (replicas × that). None "
            "follows from another one by a fixed factor."
        ),
        source="004 §2.2",
        remedy="give the throughput of a single request, of a batch and over all replicas, as `estimate` prints it",
        good="dense-dp2-tp2",
        bad=_set("throughput/batched_tokens_per_s", None),
    ),
    _claim(
        _Right("no-communication-time", "the collectives and transfers of the graph take time"),
        id="PE004",
        name="communication free of charge",
        requirement="Communication is accounted: there is no multi-device operator with zero communication time.",
        rationale=(
            "A collective costs a latency and bytes over bandwidth, t = alpha + bytes × (n - 1) / (n × bandwidth) or "
            "more. In decode the latency alone is paid twice a layer; without it a plan looks faster the more devices "
            "it takes."
        ),
        source="004 §8",
        remedy="count the collectives of every operator on more than one device, as `estimate` does",
        good="dense-tp4",
        bad=_set("latency/decode_step/communication_ms", 0.0),
    ),
    _claim(
        _Wanted(
            "no-memory-term",
            "latency/decode_step",
            lacking_memory_term,
            "the claimed decode step has no memory term: reading the weights and the KV cache is left out",
        ),
        _Right("no-memory-time", "each decode step reads the weights and the KV cache"),
        id="PE005",
        name="decode of FLOPs alone",
        requirement="FLOPs-only estimates are rejected: decode carries its memory term.",
        rationale=(
            "A decode step does 2 FLOPs with each weight that it reads: at small batches it takes (weights + cache) / "
            "memory bandwidth, some hundred times as long as FLOPs / peak."
        ),
        source="004 §8",
        remedy="give memory_ms of the decode step: the bytes of weights and cache over memory bandwidth",
        good="dense-tp2",
        bad=_set("latency/decode_step/memory_ms", 0.0),
    ),
    _claim(
        _Right("other-factor", _replicas_do_as_much),
        id="PE007",
        name="throughput out of step with the replicas",
        requirement=(
            "DP scales throughput only: over all replicas it is the number of those that serve a phase × the rate of "
            "one (disaggregated: the lower of the two phases)."
        ),
        rationale=(
            "Throughput = DP × that of one replica, since replicas share nothing; where prefill and decode have "
            "replicas of their own, a request needs both, and the slower kind sets the rate."
        ),
        source="004 §4.1",
        remedy="multiply the batched throughput of one replica by the replicas that serve it",
        good="dense-dp2-tp2",
        bad=Edit("scale", field="/performance/throughput/dp_scaled_tokens_per_s", value=2.0),
    ),
    _claim(
        _Right("expert-time-off", "a MoE layer takes its router and its slowest expert group"),
        id="PE008",
        name="experts taken as balanced",
        requirement="MoE time counts the router and the slowest active expert group, with the load imbalance stated.",
        rationale=(
            "t = router + max over groups: of n groups with a mean load of m token copies each the largest has by "
            "chance m + sqrt(2 m ln n), which for the small batches of decode is more than twice the mean, and a "
            "measured half more than m on 32 ranks, since tokens prefer some experts."
        ),
        source="004 §4.4",
        remedy="count router and routing, and the load of the slowest expert group, as `estimate` does",
        good="moe-ep4",
        bad=_set("explanation/decode/expert_imbalance", 1.0),
    ),
    _claim(
        _Right("no-bubbles", "the stages follow one another, and wait for one another"),
        id="PE009",
        name="pipeline without its bubbles",
        requirement=(
            "With PP prefill counts the fill and decode its bubbles; a single request gains nothing in decode from PP."
        ),
        rationale=(
            "A pass takes the sum of its stages: prefill = stages + fill, and a token needs the one before it, so that "
            "with m microbatches a step takes max(sum of the stages, m × the slowest). PP saves memory, not time."
        ),
        source="004 §4.3",
        remedy="count the time in which a stage waits for the others, as `estimate` does",
        good="dense-pp4",
        bad=_set("latency/prefill/bubble_ms", 0.0),
    ),
)
