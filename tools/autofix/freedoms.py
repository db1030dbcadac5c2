"""Takes over into a reference what an author may decide inside an operator, as far as it is legal.

The author decides which device holds which shard, and which experts a device hosts. Of an illegal decision as little as
possible is changed: what two claim stays with one of them, what nobody claims goes where there is room. If too little
of an operator's hosting is left, its experts are hosted as in the author's other operators, if these agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from ..plan.graph import expert_runs
from ..plan.view import NodeView


class Pair(Struct, frozen=True):
    """A node of the reference, and the author's node that matches it (`None` if none does)."""

    reference: NodeView
    author: NodeView | None


def shard_devices(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Devices of one operator's shards by id of the reference's shard, if they differ from the reference's."""
    allowed = {device for pair in pairs for device in pair.reference.devices}
    stated = [(pair.author.devices, pair.reference.devices) for pair in pairs if pair.author is not None]
    if not any(devices == usual for devices, usual in stated) and any(set(devices) - allowed for devices, _ in stated):
        return {}  # the stage was moved as a whole: no shard's place in it is a decision
    chosen: dict[str, str] = {}
    used: set[str] = set()
    # A shard on the reference's device keeps it even if other shards name it too.
    for pair in sorted(pairs, key=lambda pair: pair.author is None or pair.author.devices != pair.reference.devices):
        preferred = () if pair.author is None else pair.author.devices
        if len(preferred) == 1 and preferred[0] in allowed and preferred[0] not in used:
            chosen[pair.reference.id] = preferred[0]
            used.add(preferred[0])
    unused = [device for pair in pairs for device in pair.reference.devices if device not in used]
    for pair in pairs:
        if pair.reference.id not in chosen and unused:
            preferred = pair.reference.devices[0] if pair.reference.devices else ""
            chosen[pair.reference.id] = unused.pop(unused.index(preferred) if preferred in unused else 0)
    return {
        pair.reference.id: [chosen[pair.reference.id]]
        for pair in pairs
        if pair.reference.id in chosen and (chosen[pair.reference.id],) != pair.reference.devices
    }


class Hostings(Struct, frozen=True):
    """How the author's sound MoE operators host their experts, by number of groups; `None` if they disagree.

    `are_usual`: whether all of them host what the reference has there, so that others would too.
    """

    by_groups: Mapping[int, tuple[tuple[int, ...], ...] | None]
    are_usual: bool

    def of(self, pairs: Sequence[Pair]) -> dict[str, Sequence[int]] | None:
        """The experts of one operator's groups by id, as the other operators host theirs; `None` if unknown."""
        usual = {pair.reference.id: pair.reference.experts or () for pair in pairs}
        if len(pairs) not in self.by_groups:
            return dict(usual) if self.are_usual else None
        hosting = self.by_groups[len(pairs)]
        if hosting is None or sorted(sum(hosting, ())) != sorted(sum(map(tuple, usual.values()), ())):
            return None
        return dict(zip(usual, hosting, strict=True))


def shown_hostings(operators: Iterable[Sequence[Pair]]) -> Hostings:
    """The hostings of those operators that host every expert once."""
    by_groups: dict[int, tuple[tuple[int, ...], ...] | None] = {}
    deviates = False
    for pairs in operators:
        usual = [tuple(sorted(pair.reference.experts or ())) for pair in pairs]
        author_experts = [tuple(sorted(pair.author.experts or ())) if pair.author is not None else () for pair in pairs]
        if not pairs or not all(author_experts) or sorted(sum(author_experts, ())) != sorted(sum(usual, ())):
            continue
        deviates = deviates or author_experts != usual
        hosting = tuple(author_experts)
        by_groups[len(pairs)] = hosting if by_groups.setdefault(len(pairs), hosting) == hosting else None
    return Hostings(by_groups, are_usual=not deviates)


def hosted_experts(pairs: Sequence[Pair], shown: Hostings, *, many: bool) -> dict[str, list[list[int] | int]]:
    """Experts of one MoE operator's groups by id of the reference's group, if they differ from the reference's.

    `shown`: how the author's other operators host theirs; `many`: whether an expert may be hosted more than once.
    """
    usual = {pair.reference.id: pair.reference.experts or () for pair in pairs}
    members = {expert for experts in usual.values() for expert in experts}
    ids = sorted(members)
    named = {pair.reference.id: dict.fromkeys((pair.author and pair.author.experts) or ()) for pair in pairs}
    stated = sorted(chain.from_iterable(named.values()))
    shift = stated[0] - ids[0] if stated and ids else 0
    if stated == [expert + shift for expert in ids]:  # all of them, each once, counted from another number
        named = {name: [expert - shift for expert in experts] for name, experts in named.items()}
    claims = {name: [expert for expert in experts if expert in members] for name, experts in named.items()}
    if many:
        covered = {expert for experts in claims.values() for expert in experts}
        hosted = claims if len(covered) == len(ids) and all(claims.values()) else {}
    else:
        hosted: Mapping[str, Sequence[int]] = _dealt(ids, claims, usual) if any(claims.values()) else usual
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
    """Whether too little of the author's hosting is left for the experts as dealt to be what they decided.

    With `is_shown` the author's other operators state what `elsewhere` has.
    """
    alike = sorted(map(len, hosted.values())) == sorted(map(len, elsewhere.values()))
    if (
        alike
        and any(claims.values())
        and all(sorted(hosted[name]) == sorted(claim) for name, claim in claims.items() if claim)
    ):
        return False  # the groups that are left are whole, and the others follow from them
    claimed = Counter(expert for experts in claims.values() for expert in experts)
    unsettled = sum(
        claimed[expert] != 1 or not claims[name] for name, experts in elsewhere.items() for expert in experts
    )
    is_a_group = unsettled >= max(2, min(map(len, elsewhere.values()), default=1))
    return is_a_group or (is_shown and not alike and bool(unsettled))


def _dealt(
    all_experts: Iterable[int], claims: Mapping[str, Sequence[int]], usual: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """Every expert once, in a group that claims it: the reference's group if possible, else the smallest."""
    home = {expert: name for name, experts in usual.items() for expert in experts}
    claimants: dict[int, list[str]] = {}
    for name, experts in claims.items():
        for expert in experts:
            claimants.setdefault(expert, []).append(name)
    dealt: dict[str, list[int]] = {name: [] for name in usual}
    for expert in all_experts:
        if len(claimants.get(expert, ())) == 1:
            dealt[claimants[expert][0]].append(expert)
    for expert in all_experts:
        if len(claimants.get(expert, ())) != 1:
            rivals = claimants.get(expert, list(usual))
            at_home = home[expert] in rivals and (expert in claimants or not dealt[home[expert]])
            dealt[home[expert] if at_home else min(rivals, key=lambda name: len(dealt[name]))].append(expert)
    for name in (name for name in usual if not dealt[name]):
        _fill(name, dealt, usual)
    return dealt


def _fill(empty: str, dealt: dict[str, list[int]], usual: Mapping[str, Sequence[int]]) -> None:
    """Give an empty group the reference's experts as far as no other group gets empty, else one expert."""
    for expert in usual[empty]:
        holder = next(name for name, experts in dealt.items() if expert in experts)
        if len(dealt[holder]) > 1:
            dealt[holder].remove(expert)
            dealt[empty].append(expert)
    if not dealt[empty]:
        largest = max(dealt, key=lambda name: len(dealt[name]))
        if len(dealt[largest]) > 1:
            dealt[empty].append(dealt[largest].pop())
