"""capacity: queues take back what they say that they deserve, in a tree as far as branches do."""

from typing import Any

import pytest

from app.core.conf_error import ConfError
from app.core.plugins import catalogue
from app.model.conf import PluginConf
from app.model.eviction import EvictionAction
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.workload import Queue, QueueState
from tests.builders import GIB, make_node, make_queue
from tests.core.contests import RECLAIM, Contest, Runner, cluster, contest, preemptor, runs, wants
from tests.core.plugins.sessions import amounts_of
from tests.core.test_tiers import open_conf

NODES = (make_node("n1", cpu=100_000, memory=100 * GIB),)


def deserving(name: str, parent: str = "", *, cpu: float = 0, gib: float = 0, **f: Any) -> Queue:
    """A queue that deserves so much."""
    deserved = amounts_of(cpu=cpu, gib=gib)
    return make_queue(name, deserved=deserved, parent=QueueName(parent), **f)


def flat(queues: tuple[Queue, ...], *runners: Runner, waits: tuple[Gang, ...]) -> Contest:
    return contest("capacity", cluster(*runners, waits=waits, queues=queues, nodes=NODES))


def tree(
    queues: tuple[Queue, ...], *runners: Runner, waits: tuple[Gang, ...], level: int = 0
) -> Contest:
    return contest(
        "capacity",
        cluster(*runners, waits=waits, queues=queues, nodes=NODES),
        switches={"enableHierarchy": True},
        arguments={"ancestorReclaimLevel": level},
    )


def refusal_of(game: Contest, gang: Gang) -> Cause | None:
    """Why the queue of ``gang`` may not take all that it asks for."""
    assert game.hooks.preemptive
    refusal = game.hooks.preemptive(preemptor(gang, RECLAIM))
    return None if refusal is None else refusal.cause


class TestFlat:
    A, B = deserving("a", cpu=4), deserving("b", cpu=4)

    @pytest.mark.parametrize(("held", "may_go"), [(5, True), (4, False), (3, False)])
    def test_a_pod_goes_while_its_queue_holds_more_than_it_deserves(
        self, held: int, may_go: bool
    ) -> None:
        new = wants("new", 4, queue="a")
        game = flat((self.A, self.B), runs("g", held, queue="b"), waits=(new,))
        assert game.reclaims(new, "g-0") is may_go
        if may_go:
            game.evicts("g-0")
            assert game.reclaims(new, "g-1") is False

    def test_a_queue_that_deserves_nothing_of_a_pod_gives_it_away(self) -> None:
        new = wants("new", 4, queue="a")
        poor = make_queue("b")
        game = flat((self.A, poor), runs("g", 1, queue="b"), waits=(new,))
        assert game.reclaims(new, "g-0")

    def test_a_queue_beyond_its_share_of_something_else_keeps_its_pods(self) -> None:
        new = wants("new", 4, queue="a")
        rich = deserving("b", cpu=8, gib=1)
        game = flat((self.A, rich), runs("g", 4, cpu=1, gib=2, queue="b"), waits=(new,))
        assert game.reclaims(new, "g-0") is False
        hungry = wants("hungry", 1, cpu=1, gib=1, queue="a")
        assert game.reclaims(hungry, "g-0")

    def test_a_pod_without_what_is_asked_for_stays(self) -> None:
        new = wants("new", 1, cpu=0, gib=5, queue="a")
        a = deserving("a", gib=10)
        game = flat((a, make_queue("b")), runs("g", 4, cpu=1, queue="b"), waits=(new,))
        assert game.reclaims(new, "g-0") is False

    @pytest.mark.parametrize(("held", "may_go"), [(3, True), (2, False)])
    def test_what_is_guaranteed_stays(self, held: int, may_go: bool) -> None:
        b = make_queue("b", guarantee=amounts_of(cpu=2))
        new = wants("new", 1, queue="a")
        game = flat((self.A, b), runs("g", held, queue="b"), waits=(new,))
        assert game.reclaims(new, "g-0") is may_go

    def test_one_large_pod_may_take_its_queue_below_its_share_but_not_below_its_guarantee(
        self,
    ) -> None:
        new = wants("new", 1, queue="a")
        for guarantee, may_go in ((0, True), (2, False)):
            b = deserving("b", cpu=2, guarantee=amounts_of(cpu=guarantee))
            game = flat((self.A, b), runs("g", 1, cpu=3, queue="b"), waits=(new,))
            assert game.reclaims(new, "g-0") is may_go

    @pytest.mark.parametrize(
        ("queue", "asks", "why"),
        [
            (deserving("a", cpu=4), 4, None),
            (deserving("a", cpu=4), 5, Cause.QUEUE_OVERUSED),
            (make_queue("a"), 1, Cause.QUEUE_OVERUSED),
            (deserving("a", cpu=4, capability=amounts_of(cpu=3)), 4, Cause.QUEUE_QUOTA),
            (deserving("a", gib=10), 1, Cause.QUEUE_OVERUSED),
        ],
    )
    def test_a_queue_takes_what_it_deserves_within_its_limits(
        self, queue: Queue, asks: int, why: Cause | None
    ) -> None:
        new = wants("new", asks, queue="a")
        game = flat((queue, self.B), runs("g", 8, queue="b"), waits=(new,))
        assert refusal_of(game, new) is why
        assert game.reclaims(new, "g-0") is (why is None)

    def test_a_resource_that_the_taker_does_not_speak_of_is_no_hindrance(self) -> None:
        new = wants("new", 2, cpu=1, gib=1, queue="a")
        game = flat((self.A, make_queue("b")), runs("g", 8, queue="b"), waits=(new,))
        assert refusal_of(game, new) is None

    def test_two_queues_that_deserve_different_things_do_not_take_in_turn(self) -> None:
        a, b = deserving("a", cpu=4), deserving("b", gib=4)
        new, other = wants("new", 1, gib=1, queue="a"), wants("other", 1, gib=1, queue="b")
        game = flat((a, b), runs("g", 1, gib=1, queue="b"), waits=(new,))
        assert game.reclaims(new, "g-0") is False
        game = flat((a, b), runs("g", 1, gib=1, queue="a"), waits=(other,))
        assert game.reclaims(other, "g-0") is False

    def test_pods_of_its_own_queue_are_no_matter_of_shares(self) -> None:
        new = wants("new", 1, queue="b")
        game = flat((self.A, self.B), runs("g", 8, queue="b"), waits=(new,))
        assert game.reclaims(new, "g-0") is None

    def test_actions_that_take_gangs_ask_the_same_between_queues_only(self) -> None:
        new = wants("new", 1, queue="a")
        game = flat((self.A, self.B), runs("g", 8, queue="b"), waits=(new,))
        rule = game.hooks.unified_evictable
        assert game.asks(rule, preemptor(new, EvictionAction.GANG_RECLAIM), "g-0")
        assert game.asks(rule, preemptor(new, EvictionAction.GANG_PREEMPT), "g-0") is None


def forest(*, b: float = 4, c: float = 4) -> tuple[Queue, ...]:
    """Two departments of 8, with two queues each."""
    return (
        deserving("one", cpu=8),
        deserving("two", cpu=8),
        deserving("a", "one", cpu=4),
        deserving("d", "one", cpu=4),
        deserving("b", "two", cpu=b),
        deserving("c", "two", cpu=c),
    )


class TestTree:
    @pytest.mark.parametrize(
        ("runners", "may_go"),
        [
            ((runs("g", 9, queue="b"),), True),
            ((runs("g", 8, queue="b"),), False),
            ((runs("g", 5, queue="b"), runs("h", 4, queue="c")), True),
            ((runs("g", 4, queue="b"), runs("h", 9, queue="c")), False),
            ((runs("g", 9, queue="b"), runs("m", 4, queue="d")), True),
            ((runs("g", 9, queue="b"), runs("m", 5, queue="d")), False),
        ],
    )
    def test_a_branch_gives_beyond_its_share_and_one_within_its_share_takes(
        self, runners: tuple[Runner, ...], may_go: bool
    ) -> None:
        new = wants("new", 4, queue="a")
        game = tree(forest(), *runners, waits=(new,))
        assert game.reclaims(new, "g-0") is may_go

    def test_inside_a_branch_its_leaves_take_from_one_another(self) -> None:
        new = wants("new", 4, queue="a")
        game = tree(forest(), runs("m", 5, queue="d"), waits=(new,))
        assert game.reclaims(new, "m-0")

    @pytest.mark.parametrize(("level", "may_take"), [(0, False), (1, True), (5, True)])
    def test_an_ancestor_takes_for_a_leaf_beyond_its_own_share(
        self, level: int, may_take: bool
    ) -> None:
        new = wants("new", 6, queue="a")
        game = tree(forest(), runs("g", 9, queue="b"), waits=(new,), level=level)
        assert (refusal_of(game, new) is None) is may_take
        assert game.reclaims(new, "g-0") is may_take

    def test_an_ancestor_takes_from_other_branches_only(self) -> None:
        new = wants("new", 6, queue="a")
        runners = (runs("m", 5, queue="d"), runs("g", 9, queue="b"))
        game = tree(forest(), *runners, waits=(new,), level=1)
        assert game.reclaims(new, "m-0") is False
        assert game.reclaims(new, "g-0") is False, "the branch would be beyond its share"

    def test_how_the_taker_stands_does_not_change_by_what_goes_for_it(self) -> None:
        new = wants("new", 4, queue="a")
        runners = (runs("m", 5, queue="d"), runs("g", 9, queue="b"))
        game = tree(forest(), *runners, waits=(new,))
        by, rule = preemptor(new, RECLAIM), game.hooks.reclaimable
        assert game.asks(rule, by, "m-0")
        assert not game.asks(rule, by, "g-0")
        game.evicts("m-0")
        assert not game.asks(rule, by, "g-0")

    def test_branches_that_deserve_nothing_stand_in_no_way(self) -> None:
        queues = (make_queue("two"), deserving("b", "two", cpu=2), deserving("a", cpu=4))
        new = wants("new", 4, queue="a")
        game = tree(queues, runs("g", 3, queue="b"), waits=(new,))
        assert game.reclaims(new, "g-0")

    def test_limits_of_ancestors_count(self) -> None:
        queues = (
            make_queue("one", capability=amounts_of(cpu=3)),
            deserving("a", "one", cpu=4),
            make_queue("b"),
        )
        new = wants("new", 4, queue="a")
        game = tree(queues, runs("g", 3, queue="b"), waits=(new,))
        assert refusal_of(game, new) is Cause.QUEUE_ROOM

    def test_a_broken_tree_takes_nothing(self) -> None:
        queues = (deserving("a", "nowhere", cpu=4), make_queue("b"))
        new = wants("new", 1, queue="a")
        game = tree(queues, runs("g", 3, queue="b"), waits=(new,))
        assert refusal_of(game, new) is Cause.QUEUE_BROKEN
        assert game.hooks.reclaimable is None

    def test_victims_of_lower_priority_and_of_near_branches_go_first(self) -> None:
        queues = (*forest(), deserving("low", cpu=1, priority=-1))
        new = wants("new", 1, queue="a")
        game = tree(queues, waits=(new,))
        order = game.hooks.victim_queue_order
        assert order
        by = preemptor(new, RECLAIM)
        near, far, low = QueueName("d"), QueueName("b"), QueueName("low")
        assert order(by, near, far) < 0 < order(by, far, near)
        assert order(by, low, near) < 0
        assert order(by, far, QueueName("c")) == 0


def test_a_level_below_none_is_refused() -> None:
    with pytest.raises(ConfError):
        catalogue.PLUGINS["capacity"](
            PluginConf("capacity", arguments={"ancestorReclaimLevel": -1})
        )


def test_closed_queues_take_nothing() -> None:
    closed = deserving("a", cpu=4, state=QueueState.CLOSED)
    new = wants("new", 1, queue="a")
    snapshot = cluster(waits=(new,), queues=(closed,), nodes=NODES)
    opened, _ = open_conf(snapshot, (PluginConf("capacity"),))
    refusal = opened.preemptive(preemptor(new, RECLAIM))
    assert refusal is not None
    assert refusal.cause is Cause.QUEUE_CLOSED
