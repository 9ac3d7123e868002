"""How seldom statuses and events of PodGroups are written."""

import asyncio
from dataclasses import replace

import pytest

from app.kit.workqueue import Again
from app.model.ids import NodeName
from app.model.workload import GroupPhase
from app.service.effects import statuses as status_module
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import Rig, working
from tests.service.statuses import TOLD_S, conditions, full, show, statuses, writer_of
from tests.service.virtual_time import advance, settle


async def test_nothing_is_written_when_nothing_changes() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    with working(rig):
        await advance(1)
        show(rig, "g")
        await advance(1)
        written = len(rig.api.writes)
        for _ in range(8):
            rig.node("n1", labels={"x": str(len(rig.api.tries))})
            await advance(3)
        assert rig.api.writes[written:] == []
        assert rig.api.events == []


async def test_the_same_is_not_written_twice_while_the_watch_is_behind() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    with working(rig):
        await advance(1)
        rig.cache.registry.changed(rig.cache.groups[rig.key("g")])
        await advance(5)
        assert len(statuses(rig, "g")) == 1


async def test_what_somebody_else_overwrote_is_written_again() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    with working(rig):
        await advance(1)
        show(rig, "g")
        stored = rig.cache.groups[rig.key("g")].pod_group
        assert stored is not None
        rig.see("podgroups", replace(stored, resource_version="9", phase=GroupPhase.PENDING))
        await advance(1)
        assert len(statuses(rig, "g")) == 2
        assert statuses(rig, "g")[-1]["phase"] == "Inqueue"


async def test_texts_that_change_all_the_time_are_written_now_and_then() -> None:
    rig = Rig()
    full(rig)
    rig.gang("g", size=3)
    with working(rig):
        for step in range(30):
            rig.store(replace(rig.api.pods["default/used"], shape=make_shape(cpu=7000 - 10 * step)))
            rig.cache.registry.changed(rig.cache.groups[rig.key("g")])
            await advance(1)
            if statuses(rig, "g"):
                show(rig, "g")
    assert 2 <= len(statuses(rig, "g")) <= 30 / status_module.TEXT_EVERY_S + 1
    assert 2 <= len(rig.api.events) <= 30 / status_module.TEXT_EVERY_S + 1


async def told_a_cause(rig: Rig, cpu: int) -> None:
    """A gang that has just come is told that its queue may hold no more."""
    full(rig)
    rig.queue(make_queue("default", capability=make_amounts(cpu=cpu)))
    rig.gang("g", size=3)
    await advance(0.5)
    show(rig, "g")
    assert conditions(rig, "g")["Reserved"][1] == "QueueQuota"


async def test_a_cause_of_a_moment_gives_way_to_another_one_soon() -> None:
    rig = Rig()
    with working(rig):
        await told_a_cause(rig, 1000)
        rig.queue(make_queue("default"))
        await advance(status_module.SETTLING_S + 0.5)
        assert conditions(rig, "g")["Reserved"][1] == "Collecting"
        assert len(statuses(rig, "g")) == 2


async def test_a_text_settles_in_the_time_until_it_may_be_written() -> None:
    rig = Rig()
    with working(rig):
        await told_a_cause(rig, 1000)
        rig.queue(make_queue("default", capability=make_amounts(cpu=2000)))
        await advance(status_module.TEXT_EVERY_S - 1)
        assert len(statuses(rig, "g")) == 1
        await advance(1)
        assert len(statuses(rig, "g")) == 2
        assert "of 2" in conditions(rig, "g")["Reserved"][2]


async def test_causes_that_come_and_go_are_written_now_and_then() -> None:
    rig = Rig()
    with working(rig):
        await told_a_cause(rig, 1000)
        for step in range(60):
            rig.queue(
                make_queue("default", capability=make_amounts(cpu=1000 + 99_000 * (step % 2)))
            )
            await advance(1)
            show(rig, "g")
    assert len(statuses(rig, "g")) <= 60 / status_module.SETTLING_S + 1


async def test_a_reason_that_stays_is_told_again_at_long_intervals() -> None:
    rig = Rig()
    full(rig)
    rig.gang("g", size=3)
    with working(rig):
        await advance(TOLD_S + 60)
    told = [event for event in rig.api.events if event.event_type == "Warning"]
    assert len(told) == 1 + 60 // status_module.EVENT_EVERY_S
    assert len({event.message for event in told}) == 1


async def test_a_refusal_that_is_over_at_once_is_no_event() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2)
    with working(rig):
        await advance(0.3)
        for name in ("g-0", "g-1"):
            rig.pod(name, group="g")
        await advance(5)
    assert [event for event in rig.api.events if event.event_type == "Warning"] == []


async def test_a_gang_that_runs_soon_after_it_was_placed_is_written_once() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2)
    with working(rig):
        await advance(1)
        show(rig, "g")
        names = ["g-0", "g-1"]
        for name in names:
            rig.pod(name, group="g")
        await advance(status_module.SETTLING_S / 2)
        written = len(statuses(rig, "g"))
        for name in names:
            rig.bind(name)
        await settle()
        rig.show_bindings()
        await advance(1)
        assert len(statuses(rig, "g")) == written + 1
    assert conditions(rig, "g")["Reserved"] == ("True", "Placed", "")
    assert statuses(rig, "g")[-1]["phase"] == "Running"


async def test_a_gang_that_waits_long_to_be_bound_is_told_that_it_has_its_room() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2)
    with working(rig):
        await advance(1)
        show(rig, "g")
        for name in ("g-0", "g-1"):
            rig.pod(name, group="g")
        await advance(status_module.PLACED_SETTLING_S - 1)
        assert len(statuses(rig, "g")) == 1
        await advance(2)
    assert len(statuses(rig, "g")) == 2
    assert statuses(rig, "g")[-1]["phase"] == "Inqueue"
    assert conditions(rig, "g")["Reserved"] == ("True", "Placed", "")


async def test_a_new_group_is_first_written_when_the_planner_has_looked_at_it() -> None:
    rig = Rig()
    rig.node("n1")
    writer = writer_of(rig)
    rig.group("g", minimum=1, phase=GroupPhase.NEW)
    with pytest.raises(Again):
        await writer.write_group(rig.key("g"))
    assert statuses(rig, "g") == []
    rig.pod("g-0", group="g")
    await rig.cycle()
    await writer.write_group(rig.key("g"))
    assert [status["phase"] for status in statuses(rig, "g")] == ["Inqueue"]


async def test_a_new_group_that_the_planner_says_nothing_about_becomes_pending() -> None:
    rig = Rig()
    rig.node("n1")
    writer = writer_of(rig)
    rig.group("g", minimum=2, phase=GroupPhase.NEW)
    with pytest.raises(Again):
        await writer.write_group(rig.key("g"))
    await advance(status_module.FIRST_LOOK_S)
    await writer.write_group(rig.key("g"))
    assert [status["phase"] for status in statuses(rig, "g")] == ["Pending"]


async def test_members_that_start_one_by_one_are_counted_together() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=8)
    with working(rig):
        for number in range(8):
            rig.pod(f"g-{number}", group="g", node=NodeName("n1"), phase="Running")
            await advance(0.05)
        await advance(2)
    assert statuses(rig, "g")[-1]["running"] == 8
    assert len(statuses(rig, "g")) <= 4


async def runs(rig: Rig) -> list[str]:
    """A gang runs, and says so; the names of its members."""
    rig.node("n1")
    names = ["g-0", "g-1"]
    rig.group("g", minimum=2)
    for name in names:
        rig.pod(name, group="g", node=NodeName("n1"), phase="Running")
    await advance(1)
    show(rig, "g")
    assert [status["phase"] for status in statuses(rig, "g")] == ["Running"]
    return names


async def test_a_gang_that_loses_all_its_pods_waits_again_by_one_write() -> None:
    rig = Rig()
    with working(rig):
        rig.delete(*await runs(rig))
        for _ in range(20):
            await advance(0.1)
            show(rig, "g")
    assert [status["phase"] for status in statuses(rig, "g")] == ["Running", "Inqueue"]


async def test_nothing_is_said_of_a_gang_that_is_deleted_after_its_pods() -> None:
    rig = Rig()
    with working(rig):
        rig.delete(*await runs(rig))
        await advance(status_module.REPLACED_S / 2)
        group = rig.cache.groups[rig.key("g")].pod_group
        assert group is not None
        rig.unsee("podgroups", group)
        await advance(1)
    assert [status["phase"] for status in statuses(rig, "g")] == ["Running"]


async def test_a_long_backlog_costs_no_more_texts_than_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_module, "TEXTS_PER_S", 1.0)

    rig = Rig()
    rig.node("n1", cpu=100)
    for number in range(60):
        rig.group(f"g{number}", minimum=1, min_resources=make_amounts(cpu=1000))
        rig.pod(f"g{number}-0", group=f"g{number}")
    with working(rig):
        await advance(5)
        began = len(rig.api.events)
        await advance(60)
    assert 60 <= len(rig.api.events) - began <= 70


async def test_the_groups_of_one_namespace_hold_up_no_group_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    rig.node("n1")
    written: list[str] = []

    async def patch(namespace: str, _name: str, _merge: object) -> None:
        await asyncio.sleep(0.1)
        written.append(namespace)

    monkeypatch.setattr(rig.api, "patch_pod_group", patch)
    for number in range(1000):
        rig.group(f"g{number}", minimum=1, phase=GroupPhase.NEW)
    rig.see("podgroups", replace(rig.group("g", minimum=1, phase=GroupPhase.NEW), namespace="team"))
    with working(rig):
        await advance(2)
    assert "team" in written
    assert len(written) < 1000
