"""gang: members go as long as their gang keeps its minimum."""

import pytest

from app.model.gang import Counts
from app.model.parts import Part, SubGroup, SubGroupPolicy
from tests.builders import make_gang, make_snapshot
from tests.core.contests import Runner, cluster, contest, runs, wants
from tests.core.plugins.sessions import open_plugin, sized_task

MASTER, WORKER = Part("master"), Part("worker")
POLICY = SubGroupPolicy("p", keys=("k",), size=2, least=1)


def in_sub_group(value: str) -> Part:
    return Part("", SubGroup("p", value))


TORN = runs("torn", minimum=4, parts=[in_sub_group(v) for v in "aabb"], sub_groups=(POLICY,))


@pytest.mark.parametrize(
    ("runner", "pod", "may_go"),
    [
        (runs("all", 2, minimum=2), "all-0", False),
        (runs("grown", 3, minimum=2), "grown-0", True),
        (runs("short", 2, minimum=3), "short-0", False),
        (runs("single", 1, minimum=1), "single-0", False),
        (runs("loose", 1, minimum=0), "loose-0", True),
        (
            runs(
                "roles",
                minimum=2,
                parts=(MASTER, WORKER, WORKER),
                role_minimum={"master": 1, "worker": 1},
            ),
            "roles-0",
            False,
        ),
        (
            runs(
                "roles",
                minimum=2,
                parts=(MASTER, WORKER, WORKER),
                role_minimum={"master": 1, "worker": 1},
            ),
            "roles-1",
            True,
        ),
        (
            runs(
                "few",
                minimum=1,
                parts=(MASTER, WORKER),
                role_minimum={"master": 1, "worker": 1},
            ),
            "few-0",
            True,
        ),
        (
            runs("parted", minimum=2, parts=[in_sub_group(v) for v in "aab"], sub_groups=(POLICY,)),
            "parted-0",
            False,
        ),
        (
            runs("parted", minimum=2, parts=[in_sub_group(v) for v in "aab"], sub_groups=(POLICY,)),
            "parted-2",
            True,
        ),
        (TORN, "torn-0", False),
    ],
    ids=lambda value: value.name if isinstance(value, Runner) else str(value),
)
def test_a_member_may_go_while_its_gang_keeps_its_minimum(
    runner: Runner, pod: str, may_go: bool
) -> None:
    other = wants(queue="other")
    game = contest("gang", cluster(runner, waits=(other,)))
    assert game.preempts(other, pod) is may_go
    assert game.reclaims(other, pod) is may_go


def test_each_eviction_leaves_fewer_to_spare() -> None:
    new = wants()
    game = contest("gang", cluster(runs("grown", 4, minimum=2), waits=(new,)))
    game.evicts("grown-0")
    assert game.preempts(new, "grown-1")
    game.evicts("grown-1")
    assert not game.preempts(new, "grown-2")


def test_members_of_other_roles_make_room_in_their_own_gang() -> None:
    parts = (WORKER, WORKER, WORKER)
    master = sized_task("g-master", role="master")
    runner = runs("g", minimum=3, parts=parts, role_minimum={"master": 1}, waiting=(master,))
    game = contest("gang", cluster(runner))

    assert game.preempts(runner.gang, "g-0")
    game.evicts("g-0")
    assert not game.preempts(runner.gang, "g-1")


def test_a_gang_starves_while_it_lacks_members_of_its_minimum() -> None:
    waiting = (sized_task("t-0"), sized_task("t-1"))
    hooks, ledger = open_plugin("gang", make_snapshot())
    assert hooks.starving
    assert hooks.pipelined
    lacks = make_gang("a", waiting=waiting, min_member=1)
    has = make_gang("b", waiting=waiting, min_member=1, counts=Counts(running=1, pending=2))

    assert hooks.starving(lacks)
    assert not hooks.starving(has)
    assert not make_gang("c", min_member=0).waiting
    assert hooks.starving(make_gang("unmade", min_member=2))
    assert hooks.pipelined(lacks).vote < 0 < hooks.pipelined(has).vote
    ledger.gang(lacks).ready += 1
    assert not hooks.starving(lacks)
    assert hooks.pipelined(lacks).vote > 0
