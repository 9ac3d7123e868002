"""reclaim: a queue takes back what it deserves from queues that hold more than they do."""

from dataclasses import replace

import pytest

from app.model.amounts import Amounts
from app.model.conf import PluginConf
from app.model.eviction import EvictionAction
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.running import Protection
from app.model.workload import GroupPhase
from tests.builders import make_amounts, make_queue
from tests.core.actions.rigs import cores, gang_of, members, policies, vector
from tests.core.contended import RunningGang, contended, eviction_for, running_gang, victims
from tests.running import Runs

ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})
BY = policies(
    (("priority", WHOLE, "conformance"), ("overcommit", "predicates", "proportion")), ACTIONS
)
A, B = make_queue("a"), make_queue("b")


def asks(name: str, count: int, *, queue: str = "b") -> Gang:
    """A gang of ``count`` cores in ``queue``."""
    return gang_of(name, count, queue=QueueName(queue))


def amounts(cpu: int) -> Amounts:
    """That many cores."""
    return make_amounts(cpu=1000 * cpu)


def singles(count: int, *, nodes: int, queue: str = "a") -> list[RunningGang]:
    """Single pods of one core, spread over the nodes."""
    return [running_gang(f"low{i}", [i % nodes], queue=queue) for i in range(count)]


def test_a_queue_takes_back_its_share() -> None:
    outcome = contended(
        asks("mine", 2), running=singles(4, nodes=2), nodes=cores(2, 2), queues=(A, B), by=BY
    )
    assert eviction_for(outcome, "mine").action is EvictionAction.RECLAIM
    assert len(victims(outcome)) == 2


def test_a_queue_takes_no_more_than_it_deserves() -> None:
    outcome = contended(
        asks("mine", 3), running=singles(4, nodes=2), nodes=cores(2, 2), queues=(A, B), by=BY
    )
    assert victims(outcome) == set()
    assert outcome.text("mine").endswith(
        "queue b would hold more than it deserves: cpu asked 3, left 2 of 2"
    )


def test_a_group_that_needs_one_pod_does_not_go_whole_where_its_queue_deserves_some() -> None:
    mine = replace(asks("mine", 1), phase=GroupPhase.PENDING, min_request=vector(cpu=3))
    low = running_gang("low", [0, 0, 1, 1], minimum=1, queue="a")
    outcome = contended(mine, running=[low], nodes=cores(2, 2), queues=(A, B), by=BY)
    assert victims(outcome) == set()


def test_a_group_that_asks_for_less_gets_room_where_one_like_it_asked_for_too_much() -> None:
    much, little = (
        replace(asks(name, 1), phase=GroupPhase.PENDING, min_request=vector(cpu=cpu))
        for name, cpu in (("much", 3), ("little", 2))
    )
    low = running_gang("low", [0, 1, 2, 3], minimum=1, queue="a")
    outcome = contended(
        much, little, running=[low], nodes=cores(1, 1, 1, 1), queues=(A, B), by=BY, now=20.0
    )
    assert eviction_for(outcome, "little").places
    assert len(victims(outcome)) == 2


def test_a_queue_that_is_not_reclaimable_gives_nothing() -> None:
    a = make_queue("a", reclaimable=False)
    outcome = contended(
        asks("mine", 2), running=singles(4, nodes=2), nodes=cores(2, 2), queues=(a, B), by=BY
    )
    assert victims(outcome) == set()
    assert "4 of queues that are not reclaimable" in outcome.text("mine")


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_a_gang_that_a_guarantee_covers_does_not_go_whole(plugin: str, action: str) -> None:
    by = policies((("priority", WHOLE), ("predicates", plugin)), ("enqueue", "allocate", action))
    low = running_gang("low", [0, 0, 1], minimum=2, queue="a")
    kept = running_gang("kept", [2, 2], queue="c")
    b = make_queue("b", weight=9, deserved=amounts(3))
    c = make_queue("c", reclaimable=False)
    for guarantee, goes in (0, {"low-0", "low-1", "low-2"}), (2, set()):
        a = make_queue("a", deserved=amounts(2), guarantee=amounts(guarantee))
        outcome = contended(
            asks("mine", 3), running=[low, kept], nodes=cores(2, 2, 2), queues=(a, b, c), by=by
        )
        assert victims(outcome) == goes


def test_priorities_do_not_matter_between_queues() -> None:
    high = [running_gang(f"high{i}", [i], queue="a", priority=9) for i in range(2)]
    outcome = contended(asks("mine", 1), running=high, nodes=cores(1, 1), queues=(A, B), by=BY)
    assert len(victims(outcome)) == 1


def test_no_pod_is_evicted_for_a_gang_whose_queue_must_give_the_room_to_another() -> None:
    high = gang_of("high", 1, queue=QueueName("a"), priority=9)
    outcome = contended(
        high,
        asks("mine", 1),
        running=[running_gang("low", [0], queue="a")],
        nodes=cores(1),
        queues=(make_queue("a", deserved=()), make_queue("b", deserved=(("cpu", 1000),))),
        by=policies((("priority", WHOLE), ("predicates", "capacity")), ACTIONS),
    )
    assert [plan.preemptor for plan in outcome.plan.evictions] == ["default/mine"]


def test_no_queue_gives_what_it_deserves_itself() -> None:
    c = make_queue("c")
    running = [
        *(running_gang(f"a{i}", [0], queue="a") for i in range(4)),
        *(running_gang(f"c{i}", [1], queue="c") for i in range(2)),
    ]
    outcome = contended(
        asks("mine", 2), running=running, nodes=cores(4, 2), queues=(A, B, c), by=BY
    )
    assert {name[0] for name in victims(outcome)} == {"a"}


def test_without_a_plugin_that_shares_the_cluster_no_queue_reclaims() -> None:
    by = policies((("priority", WHOLE, "conformance"), ("predicates",)), ACTIONS)
    outcome = contended(
        asks("mine", 2), running=singles(4, nodes=2), nodes=cores(2, 2), queues=(A, B), by=by
    )
    assert outcome.text("mine").endswith("no plugin says what queues deserve")


def test_a_cut_of_what_a_queue_deserves_evicts_only_when_another_queue_asks() -> None:
    by = policies((("priority", WHOLE), ("predicates", "capacity")), ACTIONS)
    cut = make_queue("a", deserved=(("cpu", 1000),))
    b = make_queue("b", deserved=(("cpu", 3000),))
    quiet = contended(running=singles(4, nodes=2), nodes=cores(2, 2), queues=(cut, b), by=by)
    assert victims(quiet) == set()
    asked = contended(
        asks("mine", 2), running=singles(4, nodes=2), nodes=cores(2, 2), queues=(cut, b), by=by
    )
    assert len(victims(asked)) == 2


def test_a_gang_that_collects_takes_back_its_share_as_well() -> None:
    outcome = contended(
        asks("mine", 2),
        running=singles(4, nodes=2),
        nodes=cores(2, 2),
        queues=(A, B),
        by=BY,
        now=1000.0,
    )
    assert len(victims(outcome)) == 2


def test_an_ancestor_takes_for_a_queue_that_holds_more_than_it_deserves_itself() -> None:
    tree = PluginConf(
        "capacity", switches={"enableHierarchy": True}, arguments={"ancestorReclaimLevel": 1}
    )
    outcome = contended(
        asks("mine", 2, queue="leaf"),
        running=singles(4, nodes=2),
        nodes=cores(2, 2),
        queues=(
            make_queue("branch", deserved=(("cpu", 3000),)),
            make_queue("leaf", deserved=(("cpu", 1000),), parent=QueueName("branch")),
            make_queue("a", deserved=(("cpu", 1000),)),
        ),
        by=policies((("priority", WHOLE), ("predicates", tree)), ACTIONS),
    )
    assert len(victims(outcome)) == 2


def test_what_a_running_gang_asks_beyond_what_it_had_takes_the_turn_of_its_queue() -> None:
    """One pod may go, and the queue that holds nothing goes first."""
    c = make_queue("c")
    had = running_gang("grown", [0], queue="b").gang
    grown = replace(
        had,
        waiting=members("grown-more", 1),
        counts=replace(had.counts, pending=1),
        min_member=2,
        request=had.request * 2,
        created=0.0,
    )
    low = singles(4, nodes=1)
    stay = [replace(one, runs=_protected(one)) for one in low[1:]]
    running = [RunningGang(grown, running_gang("grown", [0], queue="b").runs), low[0], *stay]
    new = replace(asks("new", 1, queue="c"), created=2.0)
    both = {"running": running, "nodes": cores(5), "queues": (A, B, c), "by": BY}
    outcome = contended(new, pending=(grown, new), **both)  # type: ignore[arg-type]
    assert [plan.preemptor for plan in outcome.plan.evictions] == [new.key]
    outcome = contended(pending=(grown,), **both)  # type: ignore[arg-type]
    assert [plan.preemptor for plan in outcome.plan.evictions] == [grown.key]


def _protected(gang: RunningGang) -> tuple[Runs, ...]:
    return tuple(replace(one, protected=Protection.UNPREEMPTABLE) for one in gang.runs)
