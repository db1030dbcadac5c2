"""What an author may decide inside an operator, taken over into a reference where it is legal.

Which device holds which shard, and which experts a device hosts, are the author's. Where what he says is not legal,
as little as can be is changed: what two claim stays with one of them, what nobody has goes where there is room. Experts
of which that leaves too little are hosted as the author hosts those of his other operators, where these agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from ..plan.graph import expert_runs
from ..plan.view import NodeView


class Pair(Struct, frozen=True):
    """A node of the reference, and the author's that stands for it (`None` where there is none)."""

    reference: NodeView
    author: NodeView | None


def shard_devices(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Devices of the shards of one operator by id of the reference's shard, where they are not the reference's."""
    allowed = {device for pair in pairs for device in pair.reference.devices}
    chosen: dict[str, str] = {}
    used: set[str] = set()
    # A shard that stands where the reference has it keeps its device before others that name it too.
    for pair in sorted(pairs, key=lambda pair: pair.author is None or pair.author.devices != pair.reference.devices):
        own = () if pair.author is None else pair.author.devices
        if len(own) == 1 and own[0] in allowed and own[0] not in used:
            chosen[pair.reference.id] = own[0]
            used.add(own[0])
    left = [device for pair in pairs for device in pair.reference.devices if device not in used]
    for pair in pairs:
        if pair.reference.id not in chosen and left:
            own = pair.reference.devices[0] if pair.reference.devices else ""
            chosen[pair.reference.id] = left.pop(left.index(own) if own in left else 0)
    return {
        pair.reference.id: [chosen[pair.reference.id]]
        for pair in pairs
        if pair.reference.id in chosen and (chosen[pair.reference.id],) != pair.reference.devices
    }


class Hostings(Struct, frozen=True):
    """How the author's sound MoE operators host their experts: by the number of their groups, where all agree.

    `are_usual`: whether none of them hosts anything but what the reference has there, so that others would not.
    """

    by_groups: Mapping[int, tuple[tuple[int, ...], ...] | None]
    are_usual: bool

    def of(self, pairs: Sequence[Pair]) -> dict[str, Sequence[int]] | None:
        """The experts of the groups of one operator by these; `None` where they show none."""
        usual = {pair.reference.id: pair.reference.experts or () for pair in pairs}
        if len(pairs) not in self.by_groups:
            return dict(usual) if self.are_usual else None
        shown = self.by_groups[len(pairs)]
        if shown is None or sorted(sum(shown, ())) != sorted(sum(map(tuple, usual.values()), ())):
            return None
        return dict(zip(usual, shown, strict=True))


def shown_hostings(operators: Iterable[Sequence[Pair]]) -> Hostings:
    """How the operators host their experts that host each of them once."""
    by_groups: dict[int, tuple[tuple[int, ...], ...] | None] = {}
    deviates = False
    for pairs in operators:
        usual = [tuple(sorted(pair.reference.experts or ())) for pair in pairs]
        own = [tuple(sorted(pair.author.experts or ())) if pair.author is not None else () for pair in pairs]
        if not pairs or not all(own) or sorted(sum(own, ())) != sorted(sum(usual, ())):
            continue
        deviates = deviates or own != usual
        hosting = tuple(own)
        by_groups[len(pairs)] = hosting if by_groups.setdefault(len(pairs), hosting) == hosting else None
    return Hostings(by_groups, are_usual=not deviates)


def hosted_experts(pairs: Sequence[Pair], shown: Hostings, *, many: bool) -> dict[str, list[list[int] | int]]:
    """Experts of the groups of one MoE operator by id of the reference's group, where they are not the reference's.

    `shown`: how the author's other operators host theirs; `many`: whether an expert may be hosted more than once.
    """
    usual = {pair.reference.id: pair.reference.experts or () for pair in pairs}
    members = {expert for experts in usual.values() for expert in experts}
    every = sorted(members)
    named = {pair.reference.id: dict.fromkeys((pair.author and pair.author.experts) or ()) for pair in pairs}
    stated = sorted(chain.from_iterable(named.values()))
    shift = stated[0] - every[0] if stated and every else 0
    if stated == [expert + shift for expert in every]:  # all of them, each once, counted from another number
        named = {name: [expert - shift for expert in experts] for name, experts in named.items()}
    claims = {name: [expert for expert in experts if expert in members] for name, experts in named.items()}
    if many:
        covered = {expert for experts in claims.values() for expert in experts}
        hosted = claims if len(covered) == len(every) and all(claims.values()) else {}
    else:
        hosted: Mapping[str, Sequence[int]] = _dealt(every, claims, usual) if any(claims.values()) else usual
        elsewhere = shown.of(pairs)
        if elsewhere is not None and _is_guessed(hosted, claims, elsewhere, is_shown=bool(shown.by_groups)):
            hosted = elsewhere
    return {name: expert_runs(hosted[name]) for name in hosted if sorted(hosted[name]) != sorted(usual[name])}


def _is_guessed(
    hosted: Mapping[str, Sequence[int]],
    claims: Mapping[str, Sequence[int]],
    elsewhere: Mapping[str, Sequence[int]],
    *,
    is_shown: bool,
) -> bool:
    """Whether too little is left of what the author said of an operator for the experts that were dealt to be his.

    With `is_shown` other operators of his say what `elsewhere` has.
    """
    alike = sorted(map(len, hosted.values())) == sorted(map(len, elsewhere.values()))
    if (
        alike
        and any(claims.values())
        and all(sorted(hosted[name]) == sorted(own) for name, own in claims.items() if own)
    ):
        return False  # what is left of it is whole, and what is not follows
    claimed = Counter(expert for experts in claims.values() for expert in experts)
    unsettled = sum(
        claimed[expert] != 1 or not claims[name] for name, experts in elsewhere.items() for expert in experts
    )
    is_a_group = unsettled >= max(2, min(map(len, elsewhere.values()), default=1))
    return is_a_group or (is_shown and not alike and bool(unsettled))


def _dealt(
    every: Iterable[int], claims: Mapping[str, Sequence[int]], usual: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """Every expert once: with one of those that claim it, the reference's own before the one that has least."""
    home = {expert: name for name, experts in usual.items() for expert in experts}
    claimants: dict[int, list[str]] = {}
    for name, experts in claims.items():
        for expert in experts:
            claimants.setdefault(expert, []).append(name)
    dealt: dict[str, list[int]] = {name: [] for name in usual}
    for expert in every:
        if len(claimants.get(expert, ())) == 1:
            dealt[claimants[expert][0]].append(expert)
    for expert in every:
        if len(claimants.get(expert, ())) != 1:
            rivals = claimants.get(expert, list(usual))
            at_home = home[expert] in rivals and (expert in claimants or not dealt[home[expert]])
            dealt[home[expert] if at_home else min(rivals, key=lambda name: len(dealt[name]))].append(expert)
    for name in (name for name in usual if not dealt[name]):
        _fill(name, dealt, usual)
    return dealt


def _fill(empty: str, dealt: dict[str, list[int]], usual: Mapping[str, Sequence[int]]) -> None:
    """Give an empty group what the reference has there, as far as no other group is left empty, else one expert."""
    for expert in usual[empty]:
        holder = next(name for name, experts in dealt.items() if expert in experts)
        if len(dealt[holder]) > 1:
            dealt[holder].remove(expert)
            dealt[empty].append(expert)
    if not dealt[empty]:
        largest = max(dealt, key=lambda name: len(dealt[name]))
        if len(dealt[largest]) > 1:
            dealt[empty].append(dealt[largest].pop())
