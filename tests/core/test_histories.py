"""Loops and losses that users of other schedulers reported, played here by the rules of Pumice.

Each test is named after the report. Pods that are made in the stead of victims wait for room as the
others do, unless a test says otherwise.
"""

import pytest

from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.ids import QueueName
from app.model.workload import Queue
from tests.builders import make_gang, make_node, make_queue
from tests.core.actions.rigs import Outcome, amounts_of, members, policies, sized
from tests.core.contended import contended, eviction_for, places, running_gang, victims
from tests.core.crowds import Crowd, Job, boards

BOTH = ("enqueue", "allocate", "reclaim", "preempt", "backfill")
GANGS = ("enqueue", "allocate", "gangreclaim", "gangpreempt", "backfill")
WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})
"""A gang may be a victim, whole."""


def sharing(share: str | PluginConf, actions: tuple[str, ...] = BOTH) -> Policies:
    """The plugin ``share`` tells what queues deserve."""
    return policies((("priority", WHOLE, "conformance"), ("predicates", share)), actions)


def deserving(name: str, cores: float, parent: str = "", **fields: int) -> Queue:
    """A queue that deserves that many cores; 0: it deserves nothing."""
    deserved = amounts_of(cpu=cores) if cores else ()
    return make_queue(name, deserved=deserved, parent=QueueName(parent), **fields)


class TestKueue14543:
    """Victims of its own queue made a preemptor's share look smaller than it was."""

    def crowd(self, share: str | PluginConf) -> Crowd:
        """Both queues deserve 4 of 8 cores; ``a`` runs 3, ``b`` runs 5 and asks for more."""
        return Crowd(
            [
                *(Job(f"a{n}", 1, queue="a", rows=(0,)) for n in range(3)),
                *(Job(f"b{n}", 1, queue="b", rows=(0,)) for n in range(5)),
                Job("more", 4, queue="b"),
                Job("high", 2, queue="a", priority=5),
            ],
            boards(8),
            sharing(share),
            queues=(deserving("a", 4), deserving("b", 4)),
            freezes=False,
        )

    @pytest.mark.parametrize("share", ["proportion", "capacity"])
    def test_a_queue_pays_for_what_it_cannot_take_from_others(self, share: str) -> None:
        crowd = self.crowd(share)
        crowd.round()
        [first] = crowd.evictions
        assert (first.plan.action, first.jobs <= {"a0", "a1", "a2"}) == ("preempt", True)

    @pytest.mark.parametrize("share", ["proportion", "capacity"])
    def test_no_two_jobs_evict_one_another(self, share: str) -> None:
        crowd = self.crowd(share)
        crowd.until_quiet(most=10)
        pairs = {(each.preemptor, job) for each in crowd.evictions for job in each.jobs}
        assert not {(job, preemptor) for preemptor, job in pairs} & pairs
        assert max(crowd.evicted().values()) == 1
        assert {name: int(held[0]) for name, held in crowd.held_by_queues().items()} == {
            "a": 4000,
            "b": 4000,
        }


class TestKueue13662:
    """A victim that was gone got its room back while the other one had not ended."""

    def crowd(self) -> Crowd:
        """A node of 4 cores, half of which each queue deserves; ``a`` holds all."""
        return Crowd(
            [
                Job("quick", 1, queue="a", rows=(0,)),
                Job("slow", 1, queue="a", rows=(0,)),
                Job("rest", 2, queue="a", rows=(0, 0)),
                Job("mine", 2, queue="b"),
            ],
            boards(4),
            sharing("proportion"),
            queues=(make_queue("a"), make_queue("b")),
            freezes=False,
        )

    def test_what_the_first_of_two_victims_leaves_waits_for_the_second(self) -> None:
        crowd = self.crowd()
        [evicts] = crowd.decide().evictions
        quick, slow = sorted(victim.name for victim in evicts.victims)
        assert (quick, slow) == ("quick-0", "slow-0")
        crowd.go([quick])
        for _ in range(5):
            crowd.rounds += 1
            between = crowd.decide(begun=[evicts])
            assert (between.placed, between.evictions) == ((), ())
        crowd.go([slow])
        ready = crowd.decide(begun=[evicts])
        assert (ready.placed, ready.evictions) == ((), ())
        crowd.take(evicts)
        crowd.until_quiet(most=3)
        assert (crowd.runs("mine"), crowd.runs("rest"), crowd.evictions) == (2, 2, [])


class TestKueue7101:
    """Four gangs of 2 on 8 places were preempted 33 times for gangs that never got in."""

    @pytest.mark.parametrize("actions", [BOTH, GANGS])
    @pytest.mark.parametrize("freezes", [True, False])
    @pytest.mark.parametrize("sizes", [(6, 5, 4, 3), (4, 3, 5, 6), (3, 4)])
    def test_only_the_gang_that_fits_the_share_gets_in(
        self, actions: tuple[str, ...], freezes: bool, sizes: tuple[int, ...]
    ) -> None:
        crowd = Crowd(
            [Job(f"runs{n}", 2, queue="a", rows=(n, n)) for n in range(4)],
            boards(2, 2, 2, 2),
            sharing(PluginConf("proportion"), actions),
            queues=(make_queue("a"), make_queue("b")),
            freezes=freezes,
        )
        for size in sizes:
            crowd.submit(Job(f"gang{size}", size, queue="b"))
        crowd.until_quiet(most=10)
        first = next(size for size in sizes if size <= 4)
        assert [each.preemptor for each in crowd.evictions] == [f"gang{first}"]
        assert [crowd.runs(f"gang{size}") for size in sizes if size != first] == [0] * (
            len(sizes) - 1
        )
        assert max(crowd.evicted().values()) == 1


class TestVolcano4947:
    """A pod larger than its queue deserves was evicted, started first, and evicted again."""

    def crowd(self) -> Crowd:
        return Crowd(
            [
                Job("pod1", 1, cpu=4, queue="q1", rows=(0,)),
                Job("pod2", 1, queue="q2", rows=(0,)),
                Job("pod3", 1, cpu=4, queue="q2"),
            ],
            boards(8),
            sharing("capacity"),
            queues=(deserving("q1", 3), deserving("q2", 5)),
            freezes=False,
        )

    def test_the_pod_is_evicted_once(self) -> None:
        crowd = self.crowd()
        crowd.until_quiet(most=10)
        assert [each.victims for each in crowd.evictions] == [["pod1-0"]]
        assert [crowd.runs(job) for job in ("pod1", "pod2", "pod3")] == [0, 1, 1]

    def test_the_room_is_kept_for_the_preemptor_although_the_other_queue_holds_less(self) -> None:
        crowd = self.crowd()
        [evicts] = crowd.decide().evictions
        crowd.go(victim.name for victim in evicts.victims)
        crowd.rounds += 1
        after = crowd.decide(begun=[evicts])
        assert (after.placed, after.evictions) == ((), ())


class TestVolcano4926:
    """Victims were evicted until the sum sufficed, where the preemptor could not go."""

    @staticmethod
    def outcome(zone: str) -> Outcome:
        """Two full nodes, one in zone ``x``; queue ``a`` holds all, ``b`` asks in ``zone``."""
        shape = sized(1, node_selector=(("zone", zone),))
        mine = make_gang("mine", waiting=members("mine", 1, shape=shape), queue=QueueName("b"))
        return contended(
            mine,
            running=[running_gang(f"low{n}", [n % 2], queue="a") for n in range(4)],
            nodes=(make_node("n0", cpu=2000), make_node("n1", cpu=2000, labels={"zone": "x"})),
            queues=(make_queue("a"), make_queue("b")),
            by=sharing("proportion"),
        )

    def test_nothing_is_evicted_where_another_filter_refuses_every_node(self) -> None:
        assert victims(self.outcome("y")) == set()

    def test_only_a_pod_of_a_node_that_all_filters_allow_is_evicted(self) -> None:
        plan = eviction_for(self.outcome("x"), "mine")
        assert [victim.node for victim in plan.victims] == ["n1"]
        assert places(plan) == {"mine-0": "n1"}


class TestVolcano5984:
    """One victim was needed, and ten members of an elastic job were evicted."""

    @pytest.mark.parametrize("gang", ["gang", WHOLE])
    @pytest.mark.parametrize("queue", ["a", "b"])
    @pytest.mark.parametrize("actions", [BOTH, GANGS])
    def test_a_preemptor_of_one_core_takes_one_of_eleven_members(
        self, gang: str | PluginConf, queue: str, actions: tuple[str, ...]
    ) -> None:
        crowd = Crowd(
            [
                Job("elastic", 11, minimum=1, queue="a", rows=(0,) * 11),
                Job("new", 1, queue=queue, priority=5),
            ],
            boards(11),
            policies((("priority", gang, "conformance"), ("predicates", "proportion")), actions),
            queues=(make_queue("a"), make_queue("b")),
            freezes=False,
        )
        crowd.until_quiet(most=10)
        [eviction] = crowd.evictions
        assert eviction.plan.action.reclaims == (queue == "b")
        assert len(eviction.victims) == 1
        assert (crowd.runs("elastic"), crowd.runs("new")) == (10, 1)


class TestVolcano3729:
    """Two jobs whose pods do not make up what their queues deserve took turns at evicting."""

    def test_the_second_queue_gets_its_minimum_and_the_first_one_takes_nothing_back(self) -> None:
        crowd = Crowd(
            [
                Job("job-a", 5, cpu=2, minimum=2, queue="a", rows=(0,) * 5),
                Job("job-b", 5, cpu=2, minimum=2, queue="b"),
            ],
            boards(11),
            sharing("capacity"),
            queues=(deserving("a", 5), deserving("b", 5)),
            freezes=False,
        )
        crowd.until_quiet(most=10)
        assert [(each.preemptor, len(each.victims)) for each in crowd.evictions] == [("job-b", 2)]
        assert (crowd.runs("job-a"), crowd.runs("job-b")) == (3, 2)


class TestVolcano4808:
    """One of four pods of a queue that deserves nothing was left, and the other job waited."""

    def test_the_whole_job_goes_for_one_that_needs_all_the_room(self) -> None:
        crowd = Crowd(
            [
                Job("low", 4, minimum=1, queue="low", rows=(0,) * 4),
                Job("high", 4, queue="high"),
            ],
            boards(4),
            policies((("capacity", "priority", "conformance"), ("gang", "predicates")), BOTH),
            queues=(deserving("low", 0, priority=1), deserving("high", 4, priority=500)),
            freezes=False,
        )
        crowd.until_quiet(most=10)
        assert [len(each.victims) for each in crowd.evictions] == [4]
        assert (crowd.runs("low"), crowd.runs("high")) == (0, 4)


class TestVolcano5881:
    """A job got nothing back although its queue held less than it deserves, and the other more."""

    def test_the_smallest_job_goes_that_makes_room_with_what_is_free(self) -> None:
        crowd = Crowd(
            [
                Job("two", 1, cpu=2, queue="low", rows=(0,)),
                Job("eight", 1, cpu=8, queue="low", rows=(1,)),
                Job("other", 1, cpu=2, queue="low", rows=(0,)),
                Job("service", 1, rows=(0,)),
                Job("new", 1, cpu=5, queue="high"),
            ],
            boards(8, 8),
            sharing("capacity"),
            queues=(
                deserving("low", 10, priority=1),
                deserving("high", 10, priority=10),
                deserving("default", 1),
            ),
            freezes=False,
        )
        crowd.until_quiet(most=10)
        [eviction] = crowd.evictions
        assert len(eviction.victims) == 1
        assert eviction.jobs < {"two", "other"}
        assert (crowd.runs("new"), crowd.runs("eight")) == (1, 1)


class TestVolcano1195:
    """With `drf`, of equal jobs one held all, and the other one was to get its half."""

    @pytest.mark.parametrize("gang", ["gang", WHOLE])
    @pytest.mark.parametrize("minimum", [1, 2, 3])
    def test_a_job_gets_an_equal_share_from_what_the_other_has_beyond_its_minimum(
        self, gang: str | PluginConf, minimum: int
    ) -> None:
        crowd = Crowd(
            [Job("first", 6, minimum=minimum, rows=(0,) * 6), Job("second", 3)],
            boards(6),
            policies(
                (("priority", gang, "conformance"), ("predicates", "drf", "proportion")), BOTH
            ),
            freezes=False,
        )
        crowd.until_quiet(most=10)
        [eviction] = crowd.evictions
        assert len(eviction.victims) == 3
        assert (crowd.runs("first"), crowd.runs("second")) == (3, 3)


class TestKai1750:
    """A protected queue of low priority was looked at first, and its sibling then not at all."""

    @pytest.mark.parametrize("level", [0, 1, 2])
    def test_the_sibling_that_holds_more_than_it_deserves_gives(self, level: int) -> None:
        tree = PluginConf(
            "capacity",
            switches={"enableHierarchy": True},
            arguments={"ancestorReclaimLevel": level},
        )
        crowd = Crowd(
            [
                *(Job(f"batch{n}", 1, queue="batch", rows=(0,)) for n in range(4)),
                *(Job(f"kept{n}", 1, queue="protected", rows=(0,)) for n in range(3)),
                Job("starved", 2, queue="reclaimer"),
            ],
            boards(8),
            sharing(tree),
            queues=(
                deserving("org", 4, priority=110),
                deserving("reclaimer", 4, parent="org"),
                deserving("batch", 0, parent="org"),
                deserving("protected", 4, priority=100),
            ),
        )
        crowd.until_quiet(most=10)
        [eviction] = crowd.evictions
        assert len(eviction.victims) == 1
        assert eviction.jobs < {f"batch{n}" for n in range(4)}
        assert crowd.runs("starved") == 2
