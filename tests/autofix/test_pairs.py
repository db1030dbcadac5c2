"""Two faults at once: the order of mending makes no difference, or the pair is declared to be in conflict."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import pytest

from shardwright.tools.autofix.autofix import autofix

from .pairs import Pair, agree, broken_by_both, conflicts, in_both_orders, pairs

pytestmark = pytest.mark.thorough

# All of them take minutes: `benchmarks/repair.py --pairs` looks at every one.
SOME = Random(11).sample([pair for pair in pairs() if pair not in conflicts()], 80)
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_the_order_of_two_repairs_means_nothing(part: int) -> None:
    broken = ((pair, document) for pair in SOME[part::PARTS] if (document := broken_by_both(pair)) is not None)
    looked_at = list(islice(broken, 4))
    assert len(looked_at) == 4
    for pair, document in looked_at:
        assert agree(in_both_orders(document, pair)), pair


@pytest.mark.parametrize("pair", sorted(conflicts())[::2], ids=str)
def test_rules_in_conflict_have_a_reason_and_end_valid_in_both_orders(pair: Pair) -> None:
    assert len(conflicts()[pair]) > 40
    document = broken_by_both(pair)
    assert document is not None
    assert all(result.valid for result in in_both_orders(document, pair))


# The first has no node to begin at, or is mended in a wide scope that holds the fault of the second too.
_APART = [("GP001", "PP007"), ("PH001", "PP001"), ("CO002", "ST005"), ("DE004", "ST002"), ("EP006", "DP002")]


@pytest.mark.parametrize("pair", _APART, ids=str)
def test_a_fix_in_a_wide_scope_leaves_what_others_find(pair: Pair) -> None:
    rule, other = pair
    document = broken_by_both((min(pair), max(pair)))
    assert document is not None
    before = Counter(finding.rule for finding in autofix(document, rules=["CO006"]).remaining)
    result = autofix(document, rules=[rule])
    after = Counter(finding.rule for finding in result.remaining)
    assert after[rule] == 0 and after[other] == before[other] > 0
    assert {fix.rule for fix in result.fixes} == {rule}


def test_only_findings_of_the_named_rule_are_mended() -> None:
    document = broken_by_both(("CO007", "TP003"))
    assert document is not None
    for rule, other in (("CO007", "TP003"), ("TP003", "CO007")):
        result = autofix(document, rules=[rule])
        assert {fix.rule for fix in result.fixes} == {rule}
        assert other in {finding.rule for finding in result.remaining} and not result.valid
