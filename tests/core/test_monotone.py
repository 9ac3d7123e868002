"""With more evictions on the ledger the rules of plugins about victims turn yes to no, never back.

The search for victims counts on that: of units in an order, fewer may go whenever more may.
"""

from collections.abc import Iterator
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.core.policy import Policies
from app.core.tiers import open_policies
from app.core.victim_rules import Candidate, EvictionRule, Preemptor
from app.model.eviction import EvictionAction
from tests.core.crowds import Crowd
from tests.core.random_crowds import Rules, crowds
from tests.scale import examples

ACTIONS = (
    EvictionAction.PREEMPT,
    EvictionAction.RECLAIM,
    EvictionAction.GANG_PREEMPT,
    EvictionAction.GANG_RECLAIM,
)


@examples(200)
@given(crowds(freezes=True), st.sampled_from(ACTIONS), st.randoms(use_true_random=False))
def test_with_more_evictions_no_rule_lets_go_what_it_spared(
    crowd_of: tuple[Rules, Crowd], action: EvictionAction, dice: Random
) -> None:
    rules, crowd = crowd_of
    ledger = Ledger(crowd.snapshot())
    waiting = [gang for gang in ledger.snapshot.pending if gang.waiting]
    if not waiting:
        return
    gang = dice.choice(waiting)
    asked = np.sum([task.request for task in gang.waiting], axis=0)
    preemptor = Preemptor(action, gang, gang.waiting, asked)
    asking = list(rules_of(rules.policies(), ledger, action))
    left = [
        Candidate.of(ledger.snapshot, at)
        for at, key in enumerate(ledger.snapshot.running.gangs)
        if key != gang.key
    ]
    dice.shuffle(left)
    before = {(rule, one.at): rule.allows(preemptor, one) for rule in asking for one in left}
    while left:
        ledger.evict(left.pop().at)
        for rule in asking:
            for one in left:
                after = rule.allows(preemptor, one)
                assert after is not True or before[rule, one.at] is True, (rule.name, one.pod.name)
                before[rule, one.at] = after


def rules_of(policies: Policies, ledger: Ledger, action: EvictionAction) -> Iterator[EvictionRule]:
    """The rules that the plugins have for ``action``."""
    opened = open_policies(policies, ledger, now=1000.0, explain=False)
    for tier in opened.configured:
        for _, hooks in tier:
            rule = {
                EvictionAction.PREEMPT: hooks.preemptable,
                EvictionAction.RECLAIM: hooks.reclaimable,
            }.get(action, hooks.unified_evictable)
            if rule is not None:
                yield rule
