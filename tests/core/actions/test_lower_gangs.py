"""A lower gang leaves free room to a higher one that evicts for the rest in the same cycle."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.running import Protection
from app.model.workload import Queue
from tests.builders import make_queue
from tests.core.actions.rigs import Outcome, amounts_of, cores, gang_of, members, policies, vector
from tests.core.contended import (
    RunningGang,
    contended,
    eviction_for,
    running_gang,
    terminating,
    victims,
)
from tests.core.crowds import Crowd, Job, boards

WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})
PREEMPT = ("enqueue", "allocate", "preempt", "backfill")
RECLAIM = ("enqueue", "allocate", "reclaim", "backfill")
BOTH = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
GANGS = ("enqueue", "allocate", "gangpreempt", "gangreclaim", "backfill")
A, B = make_queue("a"), make_queue("b")


def by(*share: str | PluginConf, actions: tuple[str, ...] = BOTH) -> Policies:
    """The plugins ``share`` tell what queues deserve."""
    return policies((("priority", WHOLE, "conformance"), ("predicates", *share)), actions)


def singles(
    count: int, *, queue: str = "default", name: str = "runs", **fields: Any
) -> list[RunningGang]:
    """So many single pods of one core on the first node."""
    return [running_gang(f"{name}{n}", [0], queue=queue, **fields) for n in range(count)]


def high(size: int, *, queue: str = "default", **fields: Any) -> Gang:
    return gang_of("high", size, queue=QueueName(queue), **({"priority": 9} | fields))


def low(size: int = 1, *, queue: str = "default", name: str = "low", **fields: Any) -> Gang:
    return gang_of(name, size, queue=QueueName(queue), **fields)


def deserving(name: str, cpu: float, **fields: Any) -> Queue:
    return make_queue(name, deserved=amounts_of(cpu=cpu), **fields)


class TestPreempt:
    """In one queue the priority says which gang is lower."""

    @staticmethod
    def beside(
        *gangs: Gang, runs: int = 2, actions: tuple[str, ...] = PREEMPT, **fields: Any
    ) -> Outcome:
        """A node with a core free beside the single pods that run."""
        nodes, running = cores(runs + 1), singles(runs)
        world: dict[str, Any] = {"running": running, "nodes": nodes, "by": by(actions=actions)}
        return contended(*gangs, **world | fields)

    @pytest.mark.parametrize("actions", [PREEMPT, BOTH, GANGS])
    def test_the_free_part_of_a_placement_is_not_given_to_a_lower_gang(
        self, actions: tuple[str, ...]
    ) -> None:
        outcome = self.beside(low(), high(2), actions=actions)
        assert len(eviction_for(outcome, "high").victims) == 1
        assert outcome.order == []

    def test_the_reason_says_for_which_gang_it_stands_back(self) -> None:
        outcome = self.beside(low(), high(2))
        assert outcome.refusal("low").cause is Cause.STANDS_BACK
        assert outcome.text("low") == (
            "group default/low: cpu asked 1, free 0 of 3; 0/1 nodes are available: 1 Insufficient "
            "cpu; held by default/runs0 (cpu 1), default/runs1 (cpu 1); it stands back for "
            "default/high, which evicts 1 pod for the rest of its room"
        )

    def test_a_gang_evicts_where_its_free_part_and_that_of_its_victims_make_the_whole(self) -> None:
        outcome = self.beside(low(), high(2), runs=1)
        assert victims(outcome) == {"runs0-0"}

    def test_a_gang_of_equal_priority_does_not_stand_back(self) -> None:
        outcome = self.beside(low(priority=9, created=5.0), high(2))
        assert outcome.order == ["low"]

    def test_members_beyond_a_minimum_stand_back(self) -> None:
        elastic = running_gang("elastic", [0], minimum=1)
        wants = replace(
            elastic.gang,
            waiting=members("elastic-more", 1),
            counts=replace(elastic.gang.counts, pending=1),
            request=elastic.gang.request + vector(cpu=1, pods=1),
        )
        grows = replace(elastic, gang=wants)
        outcome = contended(
            high(2),
            running=[grows],
            nodes=cores(2),
            by=by(actions=PREEMPT),
            pending=(wants, high(2)),
        )
        assert outcome.order == []
        assert victims(outcome) == {"elastic-0"}

    def test_a_gang_that_fits_beside_gets_its_places_in_the_same_cycle(self) -> None:
        outcome = self.beside(low(), high(3), nodes=cores(4))
        assert len(victims(outcome)) == 1
        assert outcome.order == []
        outcome = self.beside(low(), high(2, cpu=2), nodes=cores(2, 3))
        assert (len(victims(outcome)), outcome.order) == (2, ["low"])

    def test_room_that_terminating_pods_leave_for_a_higher_gang_is_not_waited_for_in_vain(
        self,
    ) -> None:
        going = terminating(running_gang("going", [0]))
        outcome = contended(low(), high(2), running=[going], nodes=cores(2), by=by(actions=PREEMPT))
        assert outcome.order == []
        assert outcome.refusal("high").cause is Cause.PIPELINED

    def test_a_gang_that_has_waited_long_stands_back_too(self) -> None:
        old, new = low(created=1.0), high(2, created=900.0)
        outcome = self.beside(old, new, by=by("proportion"), now=1000.0)
        assert len(eviction_for(outcome, "high").victims) == 1
        assert outcome.order == []

    def test_a_gang_that_collects_keeps_nothing_from_a_higher_one_that_evicts(self) -> None:
        old, new = low(3, created=1.0), high(2, created=900.0)
        outcome = self.beside(old, new, by=by("proportion"), now=1000.0)
        assert len(eviction_for(outcome, "high").victims) == 1

    def test_the_limit_of_a_queue_is_room_as_well(self) -> None:
        queue = make_queue("q", capability=amounts_of(cpu=3))
        outcome = contended(
            low(queue="q"),
            high(2, queue="q"),
            running=singles(2, queue="q"),
            nodes=cores(9),
            queues=(queue,),
            by=by("capacity"),
        )
        assert len(victims(outcome)) == 1
        assert outcome.order == []
        assert outcome.refusal("low").cause is Cause.STANDS_BACK
        assert outcome.text("low") == (
            "queue q: cpu asked 1, free 0 of 3; held by default/runs0 (cpu 1), default/runs1 "
            "(cpu 1); it stands back for default/high, which evicts 1 pod for the rest of its room"
        )

    def test_a_gang_that_would_have_no_room_without_the_higher_one_does_not_stand_back(
        self,
    ) -> None:
        outcome = self.beside(low(2), high(2))
        assert outcome.refusal("low").cause is Cause.NOT_ENOUGH_RESOURCES
        assert len(victims(outcome)) == 1
        queue = make_queue("q", capability=amounts_of(cpu=3))
        outcome = contended(
            low(2, queue="q"),
            high(2, queue="q"),
            running=singles(2, queue="q"),
            nodes=cores(9),
            queues=(queue,),
            by=by("capacity"),
        )
        assert outcome.refusal("low").cause is Cause.QUEUE_QUOTA


class TestReclaim:
    """Between queues a gang is lower with which its queue holds more than it deserves."""

    @staticmethod
    def beside(*gangs: Gang, runs: int = 3, **fields: Any) -> Outcome:
        """Queue ``b`` holds three of four cores, of which ``a`` deserves two."""
        world: dict[str, Any] = {
            "running": singles(runs, queue="b"),
            "nodes": cores(runs + 1),
            "queues": (A, B),
            "by": by("proportion", actions=RECLAIM),
        }
        return contended(*gangs, **world | fields)

    @pytest.mark.parametrize("actions", [RECLAIM, BOTH, GANGS])
    @pytest.mark.parametrize("share", ["proportion", "capacity"])
    def test_a_queue_does_not_borrow_the_free_part_of_a_placement(
        self, share: str, actions: tuple[str, ...]
    ) -> None:
        outcome = self.beside(
            low(queue="b"),
            high(2, queue="a", priority=0),
            queues=(deserving("a", 2), deserving("b", 2)),
            by=by(share, actions=actions),
        )
        assert len(victims(outcome)) == 1
        assert outcome.order == []
        assert "stands back for default/high, which evicts 1 pod" in outcome.text("low")

    def test_a_lower_gang_of_the_queue_that_takes_back_stands_back_too(self) -> None:
        outcome = self.beside(low(queue="a"), high(2, queue="a"))
        assert len(victims(outcome)) == 1
        assert outcome.order == []

    def test_a_queue_borrows_what_the_other_one_may_not_take_back(self) -> None:
        outcome = self.beside(low(queue="b"), high(3, queue="a", priority=0))
        assert victims(outcome) == set()
        assert outcome.order == ["low"]

    def test_a_gang_within_the_share_of_its_queue_does_not_stand_back(self) -> None:
        queues = (A, B, make_queue("c"))
        outcome = self.beside(low(queue="c"), high(2, queue="a"), runs=4, queues=queues)
        assert outcome.order == ["low"]
        assert len(victims(outcome)) == 2

    def test_a_queue_whose_turn_comes_first_does_not_go_beyond_its_share(self) -> None:
        """``b`` holds nothing, and so goes first, but deserves one core only."""
        outcome = contended(
            low(queue="b", name="low", size=2),
            high(3, queue="a", priority=0),
            running=[*singles(3, queue="a", name="mine"), *singles(3, queue="c")],
            nodes=cores(8),
            queues=(deserving("a", 6), deserving("b", 1), deserving("c", 2)),
            by=by("capacity"),
        )
        assert outcome.order == []
        assert len(victims(outcome)) == 1


class TestNoRoomStaysIdle:
    """A gang that cannot evict holds no other back."""

    @pytest.mark.parametrize(
        ("gang", "running"),
        [
            pytest.param(high(2), singles(2, priority=9), id="no victims"),
            pytest.param(
                high(2), singles(2, protected=Protection.UNPREEMPTABLE), id="protected ones"
            ),
            pytest.param(high(2, preempts=False), singles(2), id="never preempts"),
            pytest.param(high(4), singles(2), id="too large"),
            pytest.param(high(2, cool_down_until=99.0), singles(2), id="cools down"),
        ],
    )
    def test_a_lower_gang_gets_the_room_in_the_same_cycle(
        self, gang: Gang, running: list[RunningGang]
    ) -> None:
        outcome = contended(low(), gang, running=running, nodes=cores(3), by=by(actions=PREEMPT))
        assert victims(outcome) == set()
        assert outcome.order == ["low"]

    def test_a_gang_whose_victims_have_not_gone_holds_no_room_but_its_own(self) -> None:
        first = contended(
            low(), high(2), running=singles(2), nodes=cores(3), by=by(actions=PREEMPT)
        )
        again = contended(
            low(),
            high(2),
            running=singles(2),
            nodes=cores(4),
            by=by(actions=PREEMPT),
            begun=first.plan.evictions,
        )
        assert again.order == ["low"]

    @pytest.mark.parametrize(
        "actions",
        [
            ("enqueue", "allocate", "backfill"),
            ("enqueue", "allocate", "shuffle"),
            ("enqueue", "preempt", "allocate"),
            ("enqueue", "reclaim", "preempt", "allocate", "backfill"),
            ("allocate",),
        ],
    )
    def test_where_no_action_evicts_after_allocate_no_gang_stands_back(
        self, actions: tuple[str, ...]
    ) -> None:
        outcome = contended(
            low(), high(2), running=singles(2), nodes=cores(3), by=by(actions=actions)
        )
        assert victims(outcome) == set()
        assert outcome.order == ["low"]

    def test_on_demand_no_gang_stands_back(self) -> None:
        outcome = contended(
            low(), high(2), running=singles(2), nodes=cores(3), by=by(), on_demand="low"
        )
        assert outcome.order == ["low"]


ORDERS = [
    ("allocate", "preempt"),
    ("enqueue", "allocate", "backfill", "preempt"),
    ("preempt", "allocate", "preempt"),
    ("enqueue", "allocate", "preempt", "allocate", "backfill"),
    ("enqueue", "reclaim", "allocate", "gangreclaim", "preempt"),
    ("allocate", "allocate", "reclaim", "shuffle", "preempt", "backfill"),
]


@pytest.mark.parametrize("actions", ORDERS)
def test_gangs_stand_back_in_every_order_of_the_actions(actions: tuple[str, ...]) -> None:
    outcome = contended(
        low(), high(2), running=singles(2), nodes=cores(3), by=by("proportion", actions=actions)
    )
    assert len(victims(outcome)) == 1
    assert outcome.order == []


@pytest.mark.parametrize("actions", ORDERS)
def test_a_gang_that_stood_back_evicts_in_the_same_cycle(actions: tuple[str, ...]) -> None:
    """``mid`` waits for ``high``, ``low`` for both."""
    outcome = contended(
        low(),
        gang_of("mid", 2, priority=5),
        high(3),
        running=singles(6),
        nodes=cores(8),
        by=by("proportion", actions=actions),
    )
    assert len(eviction_for(outcome, "high").victims) == 1
    assert len(eviction_for(outcome, "mid").victims) == 2
    assert outcome.order == []


def test_no_gang_waits_for_ever_nor_is_evicted_at_once() -> None:
    crowd = Crowd(
        [
            *(Job(f"runs{n}", 1, rows=(0,)) for n in range(3)),
            Job("low", 1),
            Job("mid", 2, priority=5),
            Job("high", 3, priority=9),
        ],
        boards(5),
        by(actions=PREEMPT),
        freezes=False,
    )
    crowd.until_quiet(most=10)
    assert [(each.preemptor, len(each.victims)) for each in crowd.evictions] == [
        ("high", 1),
        ("mid", 2),
    ]
    crowd.end("high", "mid")
    crowd.until_quiet(most=10)
    assert [crowd.runs(f"runs{n}") for n in range(3)] == [1, 1, 1]
    assert crowd.runs("low") == 1


def test_a_gang_that_has_waited_in_vain_takes_what_comes_free_before_a_lower_one() -> None:
    """``low`` would have settled there, and ``high`` waited for five minutes more."""
    crowd = Crowd(
        [
            Job("runs", 1, rows=(0,)),
            *(Job(name, 1, priority=9, rows=(0,)) for name in ("done", "stays")),
            Job("high", 2, priority=9),
            Job("low", 1),
        ],
        boards(3),
        by(actions=PREEMPT),
    )
    crowd.until_quiet(most=3)
    assert "preempt: 3 candidates: 2 same priority" in crowd.text("high")
    crowd.end("done")
    crowd.until_quiet(most=3)
    assert [(each.preemptor, each.victims) for each in crowd.evictions] == [("high", ["runs-0"])]
    assert (crowd.runs("high"), crowd.runs("low")) == (2, 0)
