"""Who leads: read off kube-scheduler's Lease, whatever the clocks of other machines say."""

import asyncio
from dataclasses import replace

import pytest

from app.model.ids import NodeName, QueueName
from app.model.workload import GroupPhase
from app.service.activity import Activity
from app.service.calls.filtering import Question
from app.telemetry import metrics
from tests.builders import make_amounts, make_pod, make_queue
from tests.service.replicas import lead, lease, replica
from tests.service.rig import FAILING, working
from tests.service.statuses import statuses
from tests.service.virtual_time import advance, settle


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def elected(now: Hand, *, identity: str = "host-a") -> Activity:
    return Activity(
        clock=now, elected=True, namespace="pumice-system", name="scheduler", identity=identity
    )


def test_a_process_that_is_not_elected_always_decides() -> None:
    activity = Activity(clock=Hand(), elected=False, namespace="", name="", identity="")
    assert activity.active


def test_who_does_not_decide_says_why() -> None:
    activity = elected(Hand())
    assert activity.notices == (
        "stands by: no process holds Lease pumice-system/scheduler; the kube-scheduler beside must"
        " elect (leaderElection), or this must not (--leader-elect=false)",
    )
    activity.set_lease(lease("host-b_0b1c"))
    assert activity.notices == (
        "stands by: Lease pumice-system/scheduler is held by host-b_0b1c, not by host-a",
    )
    activity.set_lease(lease("host-a_0b1c"))
    assert not activity.notices


def test_nobody_leads_before_a_lease_is_seen() -> None:
    assert not elected(Hand()).active


@pytest.mark.parametrize(
    ("holder", "leads"),
    [
        ("host-a_0b1c", True),
        ("host-a", True),
        ("host-a2_0b1c", False),
        ("host-b_0b1c", False),
        ("", False),
    ],
)
def test_the_holder_is_our_host_s_scheduler(holder: str, leads: bool) -> None:
    activity = elected(Hand())
    activity.set_lease(lease(holder))
    assert activity.active is leads


def test_other_leases_do_not_matter() -> None:
    activity = elected(Hand())
    activity.set_lease(lease("host-a_1", name="another"))
    assert not activity.active


def test_a_lease_that_is_not_renewed_runs_out() -> None:
    now = Hand()
    activity = elected(now)
    activity.set_lease(lease("host-a_1", renew=1000))
    now.now += 15
    assert activity.active
    now.now += 0.1
    assert not activity.active
    activity.set_lease(lease("host-a_1", renew=1015))
    assert activity.active


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_the_writer_s_clock_does_not_matter(skew: float) -> None:
    now = Hand()
    activity = elected(now)
    activity.set_lease(lease("host-a_1", renew=now.now + skew))
    assert activity.active
    now.now += 15.1
    assert not activity.active


def test_being_listed_again_renews_nothing() -> None:
    now = Hand()
    activity = elected(now)
    activity.set_lease(lease("host-a_1"))
    now.now += 10
    activity.set_lease(lease("host-a_1"))
    now.now += 10
    assert not activity.active


def test_a_deleted_lease_is_held_by_nobody() -> None:
    activity = elected(Hand())
    activity.set_lease(lease("host-a_1"))
    activity.drop_lease("pumice-system/scheduler")
    activity.drop_lease("pumice-system/scheduler")
    assert not activity.active


async def test_a_replica_that_does_not_lead_reserves_and_writes_nothing() -> None:
    rig = replica()
    lead(rig, "host-b")
    rig.gang("g", size=2)
    working = [
        asyncio.create_task(rig.planning.loop.run()),
        asyncio.create_task(rig.parts.actuator.run()),
    ]
    await advance(10)
    assert rig.planning.leadership.first_cycle.is_set(), "it is ready to take over"
    assert rig.has_reservations() == 0
    assert rig.api.writes == []
    for task in working:
        task.cancel()


async def test_a_replica_that_loses_the_lead_gives_its_reservations_back_and_falls_silent() -> None:
    rig = replica()
    lead(rig, "host-a")
    rig.gang("small", size=2)
    rig.gang("big", size=40)
    working = [
        asyncio.create_task(rig.planning.loop.run()),
        asyncio.create_task(rig.parts.actuator.run()),
    ]
    await advance(2)
    call = rig.bind("small-0")
    await settle()
    assert rig.refusals
    lead(rig, "host-b")
    await advance(2)
    assert call.answer == "another replica leads"
    assert rig.has_reservations() == 0
    written, told = len(rig.api.writes), len(rig.api.events)
    await advance(120)
    assert (len(rig.api.writes), len(rig.api.events)) == (written, told)
    for task in working:
        task.cancel()


async def test_a_replica_that_stands_by_counts_nobody_that_it_refused_before() -> None:
    rig = replica()
    lead(rig, "host-a")
    rig.gang("big", size=40)
    with working(rig):
        await advance(2)
        (refusal,) = rig.refusals.values()
        counted = metrics.GROUPS_REFUSED.labels(refusal.cause.value)
        assert counted._value.get() == 1
        for leader, waiting in (("host-b", 0), ("host-a", 1)):
            lead(rig, leader)
            await advance(2)
            assert counted._value.get() == waiting


async def test_only_the_replica_that_leads_and_has_looked_at_everything_answers_calls() -> None:
    rig = replica()
    lead(rig, "host-b")
    rig.gang("g", size=2)
    working = asyncio.create_task(rig.planning.loop.run())
    await advance(2)
    for leader in ("host-a", "host-b", "host-a"):
        answers = leader == "host-a"
        assert rig.planning.leadership.deciding.is_set() is not answers
        lead(rig, leader)
        await advance(4 * rig.limits.cycle_gap_s)
        assert rig.planning.leadership.deciding.is_set() is answers, "at once"
        assert rig.has_reservations() == 2 * answers
    working.cancel()


async def test_a_replica_that_takes_over_begins_with_the_phases_the_other_stored() -> None:
    rig = replica()
    lead(rig, "host-b")
    rig.group("g", minimum=40, phase=GroupPhase.PENDING)
    working = asyncio.create_task(rig.planning.loop.run())
    await advance(2)
    rig.group("g", minimum=40, phase=GroupPhase.INQUEUE)
    lead(rig, "host-a")
    await advance(2)
    assert rig.cache.groups[rig.key("g")].phase is GroupPhase.INQUEUE
    working.cancel()


async def test_a_replica_that_stands_by_keeps_nothing_of_what_comes_and_goes() -> None:
    rig = replica()
    lead(rig, "host-b")
    with working(rig):
        await advance(2)
        for number in range(10):
            rig.gang(f"g{number}", size=1)
            rig.delete(f"g{number}-0")
            rig.unsee("podgroups", rig.cache.groups[rig.key(f"g{number}")].pod_group)
        await advance(2)
        assert not rig.cache.signals.groups


async def test_a_replica_that_stands_by_forgets_a_pod_that_only_filter_had_shown() -> None:
    """It was deleted while this replica led and did not know it yet."""

    rig = replica()
    lead(rig, "host-a")
    gone = make_pod("p")
    with working(rig):
        await advance(2)
        rig.parts.filtering.answer(Question(gone.uid, lambda: gone, [NodeName("n1")]))
        assert gone.uid in rig.cache.members
        lead(rig, "host-b")
        await advance(rig.limits.observed_s + 2 * rig.limits.cycle_idle_s)
        assert not rig.cache.members


async def test_a_replica_that_takes_over_looks_at_every_group() -> None:
    rig = replica()
    lead(rig, "host-b")
    rig.group("g", minimum=1, phase=GroupPhase.RUNNING, running=1)
    pod = rig.pod("g-0", group="g", node=NodeName("n1"), phase="Running")
    with working(rig):
        await advance(2)
        rig.store(replace(pod, phase="Succeeded"))
        await advance(20)
        assert statuses(rig, "g") == []
        lead(rig, "host-a")
        await advance(5)
        assert [status["phase"] for status in statuses(rig, "g")] == ["Completed"]


async def test_a_replica_that_takes_over_again_has_forgotten_what_it_wrote() -> None:
    rig = replica()
    lead(rig, "host-a")
    with working(rig):
        rig.gang("g", size=1, gated=True)
        group = rig.cache.groups[rig.key("g")].pod_group
        await advance(10)
        written = statuses(rig, "g")
        assert len(written) == 1
        lead(rig, "host-b")
        await advance(2)
        rig.delete("g-0")
        rig.unsee("podgroups", group)
        await advance(2)
        lead(rig, "host-a")
        await advance(2)
        rig.gang("g", size=1, gated=True)
        await advance(10)
        assert len(statuses(rig, "g")) == 2, "it is another group of that name"


async def test_a_replica_that_lost_the_lead_writes_no_sums_of_queues_that_failed_before() -> None:
    """The write would come back, with sums of then, over what the other replica wrote since."""

    rig = replica()
    lead(rig, "host-a")
    with working(rig):
        await advance(0.5)
        before = rig.api.of("queue-status")
        rig.api.fails["queue-status"] = [FAILING] * 14
        rig.pod("p", node=NodeName("n1"), phase="Running")
        await advance(2)
        assert rig.api.of("queue-status") == before
        lead(rig, "host-b")
        await advance(0.5)
        rig.delete("p")
        rig.queue(make_queue("default", resource_version="9"))
        await advance(20)
        assert rig.api.of("queue-status") == before


async def test_a_replica_that_takes_over_again_counts_before_it_writes() -> None:
    rig = replica()
    lead(rig, "host-a")
    rig.pod("p", node=NodeName("n1"), phase="Running")
    status = rig.parts.actuator._status
    held = make_amounts(cpu=1000)
    rig.queue(make_queue("default", allocated=held))
    status.stale_queues()
    status.forget()
    await status.write_queue(QueueName("default"))
    assert rig.api.of("queue-status") == []
