"""A replica that does not lead any more does nothing from that moment on, however busy it was."""

from app.model.ids import NodeName
from app.model.workload import GroupPhase
from app.service.effects.statuses import SETTLING_S
from app.service.limits import Limits
from tests.service.cycle.test_planning_cycle import during_a_cycle
from tests.service.replicas import lead, replica
from tests.service.rig import FAILING, Rig, working
from tests.service.statuses import show, statuses
from tests.service.virtual_time import advance, settle

LEASE_S = 15.0


async def long_ago(rig: Rig) -> None:
    """The last cycle took long: the next one is late."""
    lead(rig, "host-a")
    await rig.cycle()
    rig.planning.log.last_s = 10.0


async def test_it_answers_no_calls_though_its_last_cycle_took_long() -> None:
    rig = replica()
    rig.gang("g", size=2)
    await long_ago(rig)
    with working(rig):
        held = rig.bind("g-0")
        await settle()
        lead(rig, "host-b")
        await settle()
        assert held.answer == "another replica leads"
        assert not rig.planning.leadership.deciding.is_set()
        assert not rig.has_reservations()


async def test_it_takes_over_again_at_once() -> None:
    rig = replica()
    rig.gang("g", size=2)
    await long_ago(rig)
    with working(rig):
        await settle()
        for leader, has_reservations in (("host-b", 0), ("host-a", 2)):
            lead(rig, leader)
            await advance(4 * rig.limits.cycle_gap_s)
            assert rig.has_reservations() == has_reservations


async def test_a_plan_that_was_under_way_comes_to_nothing() -> None:
    rig = replica(Limits(slice_s=-1.0))
    rig.gang("g", size=2)
    lead(rig, "host-a")
    await during_a_cycle(rig, lambda: lead(rig, "host-b"))
    assert not rig.has_reservations()
    assert not rig.planning.leadership.deciding.is_set()


async def test_so_it_does_when_this_replica_leads_again_by_then() -> None:
    """It was made without what the other one did."""

    rig = replica(Limits(slice_s=-1.0))
    rig.gang("g", size=2)
    lead(rig, "host-a")
    await rig.cycle()
    rig.gang("h", size=2)

    def flap() -> None:
        lead(rig, "host-b")
        lead(rig, "host-a")

    await during_a_cycle(rig, flap)
    assert not rig.has_reservations()
    with working(rig):
        await advance(2)
        assert rig.has_reservations() == 4


async def test_it_sends_no_binding_when_its_time_ran_out_while_it_stood_still() -> None:
    """As a machine does that is paused: nothing has told it yet that another one leads."""

    rig = replica()
    rig.pod("p")
    lead(rig, "host-a")
    await rig.cycle()
    await advance(LEASE_S + 1)
    assert rig.planning.leadership.deciding.is_set()
    call = rig.bind("p")
    await settle()
    assert call.answer == "another replica leads"
    assert not rig.api.bound()


async def test_it_answers_no_calls_either() -> None:
    rig = replica()
    lead(rig, "host-a")
    await rig.cycle()
    await advance(LEASE_S + 1)
    rig.planning.leadership.follow()
    assert not rig.planning.leadership.deciding.is_set()


async def test_it_does_not_go_on_with_bindings_that_failed() -> None:
    rig = replica()
    names = rig.gang("g", size=2)
    rig.api.fails["bind"] = [FAILING] * 3
    lead(rig, "host-a")
    with working(rig):
        await advance(0.1)
        calls = [rig.bind(name) for name in names]
        await settle()
        lead(rig, "host-b")
        await advance(10)
        assert all(call.answer for call in calls)
        assert not rig.api.bound()
        assert not rig.has_reservations()


async def test_a_status_that_falls_due_while_the_lease_has_lapsed_is_written_at_its_renewal() -> (
    None
):
    """No event came and no cycle began meanwhile, so nothing else has noticed."""

    rig = replica()
    on = NodeName("n1")
    rig.group("g", minimum=1, phase=GroupPhase.RUNNING)
    rig.pod("g-0", group="g", node=on, phase="Running")
    lead(rig, "host-a")
    with working(rig):
        await advance(0.2)
        lead(rig, "host-a")
        show(rig, "g")
        await advance(LEASE_S - SETTLING_S + 0.1)
        rig.pod("g-1", group="g", node=on, phase="Running")
        await advance(SETTLING_S + 0.1)
        assert not rig.parts.activity.active
        lead(rig, "host-a")
        await advance(SETTLING_S + 2)
    assert [status["running"] for status in statuses(rig, "g")] == [1, 2]
