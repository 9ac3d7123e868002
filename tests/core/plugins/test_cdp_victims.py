"""cdp: a pod stays until its cooldown time is over."""

import pytest

from app.core.victim_rules import EvictionRule
from tests.core.contests import cluster, contest, preemptor, runs, wants

KEY = "volcano.sh/cooldown-time"


@pytest.mark.parametrize(
    ("pod", "may_go"),
    [
        ({"labels": {KEY: "61s"}}, False),
        ({"labels": {KEY: "1m"}}, True),
        ({"annotations": {KEY: "61s"}}, False),
        ({"annotations": {KEY: "1m"}}, True),
        ({"labels": {KEY: "1m"}, "annotations": {KEY: "1h"}}, True),
        ({"labels": {KEY: "1h"}, "annotations": {KEY: "1m"}}, False),
        ({"labels": {KEY: "soon"}}, True),
        ({"labels": {KEY: "-1h"}}, True),
        ({}, True),
        ({"labels": {KEY: "1s"}, "started": 0.0}, False),
        ({"started": 0.0}, True),
    ],
)
def test_a_pod_stays_for_its_cooldown_time(pod: dict[str, object], may_go: bool) -> None:
    new = wants()
    runner = runs("g", pod={"started": 100.0} | pod)
    game = contest("cdp", cluster(runner, waits=(new,)), now=160.0)
    said = None if may_go else False
    assert game.preempts(new, "g-0") is said
    assert game.reclaims(new, "g-0") is said
    assert game.asks(game.hooks.unified_evictable, preemptor(new), "g-0") is said


def test_no_tier_lets_such_a_pod_go() -> None:
    rule = contest("cdp", cluster(waits=(wants(),))).hooks.preemptable
    assert isinstance(rule, EvictionRule)
    assert rule.by_pod
