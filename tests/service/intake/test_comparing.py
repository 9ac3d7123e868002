"""What differs for a moment only, because a listing is ahead of the watch, is no drift."""

import asyncio
from dataclasses import replace

from app.cache.audit import Drift
from app.model.ids import NodeName
from tests.builders import make_pod
from tests.service.rig import Rig
from tests.service.virtual_time import advance, clock, settle

BOUND = make_pod("p", node=NodeName("n1"), phase="Running")
MISSED = Drift("missed", "uid-p", "default/p", "", "n1")


def ahead() -> Rig:
    """An API server that has a bound pod of which the watch has not told yet."""
    rig = Rig()
    rig.node("n1")
    rig.api.pods[BOUND.key] = BOUND
    return rig


async def test_a_pod_that_the_watch_brings_a_moment_later_is_no_drift() -> None:
    rig = ahead()
    asked = asyncio.ensure_future(rig.parts.audit())
    await settle()
    assert not asked.done()
    rig.store(BOUND)
    await advance(0.25)
    outcome = asked.result()
    assert (outcome.drifts, outcome.pods, outcome.charges) == ((), 1, 1)


async def test_what_differs_in_every_look_is_drift_after_three_seconds() -> None:
    rig = ahead()
    began = clock()
    outcome = await rig.parts.audit()
    assert outcome.drifts == (MISSED,)
    assert clock() - began == 3


async def test_pods_that_differ_one_after_the_other_are_no_drift() -> None:
    rig = ahead()
    asked = asyncio.ensure_future(rig.parts.audit())
    await settle()
    rig.store(BOUND)
    other = replace(make_pod("q"), node=NodeName("n1"), phase="Running")
    rig.api.pods[other.key] = other
    await advance(0.25)
    assert asked.result().drifts == ()


async def test_an_even_ledger_takes_one_listing() -> None:
    rig = Rig()
    assert (await rig.parts.audit()).drifts == ()
    assert rig.api.tries == [("list", "pods")]
