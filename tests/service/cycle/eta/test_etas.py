"""ETAs of a service: forecasts, their errors, and why they change."""

from dataclasses import replace

import pytest

from app.core.eta.causes import ChangeKind
from app.core.eta.forecast import EtaOutcome
from app.model.ids import NodeName
from app.service.cycle.eta.etas import FRESH_S, EtaAnswer, Etas
from tests.builders import make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import advance

FULL = make_shape(cpu=8000)


def etas(rig: Rig) -> Etas:
    return rig.planning.etas


async def eta(rig: Rig, name: str) -> EtaAnswer:
    await advance(FRESH_S)
    found = await etas(rig).of(rig.key(name))
    assert found is not None
    return found


def submit(rig: Rig, name: str, *, seconds: str = "", node: str = "", priority: int = 0) -> None:
    """A gang of one pod that needs a whole node; with ``node`` it runs there from now on."""
    annotations = {"pumice.sh/run-time": seconds} if seconds else {}
    rig.group(name, minimum=1, annotations=annotations, created=rig.clock())
    where = {"node": NodeName(node), "phase": "Running"} if node else {}
    rig.pod(name, group=name, shape=FULL, created=rig.clock(), priority=priority, **where)


def starts(rig: Rig, name: str, node: str) -> None:
    pod = rig.api.pods[f"default/{name}"]
    rig.store(replace(pod, node=NodeName(node), phase="Running"))


def ends(rig: Rig, name: str) -> None:
    rig.store(replace(rig.api.pods[f"default/{name}"], phase="Succeeded"))


async def test_a_gang_waits_for_the_end_that_is_declared() -> None:
    rig = Rig()
    rig.node("n1")
    submit(rig, "runs", seconds="20s", node="n1")
    began = rig.clock()
    await rig.cycle()
    submit(rig, "next")
    await rig.cycle()
    found = (await eta(rig, "next")).eta
    assert (found.outcome, found.nodes) == (EtaOutcome.LATER, ("n1",))
    assert found.p50 == found.p90 == pytest.approx(began + 20)
    assert found.after == (rig.key("runs"),)


async def test_nothing_is_decided_or_written_by_it() -> None:
    rig = Rig()
    rig.node("n1")
    submit(rig, "next")
    await rig.cycle()
    writes, place = len(rig.api.writes), rig.place("next")
    assert (await etas(rig).all()) == {}
    submit(rig, "later")
    found = (await eta(rig, "later")).eta
    assert found.outcome is EtaOutcome.UNKNOWN
    assert found.lasting == (rig.key("next"),)
    assert (len(rig.api.writes), rig.place("next"), rig.place("later")) == (writes, place, "")


async def test_all_are_answered_by_one_forecast_and_told_again_for_some_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    rig.node("n1")
    submit(rig, "runs", seconds="20s", node="n1")
    for name in ("a", "b", "c"):
        submit(rig, name, seconds="5s")
    await rig.cycle()
    asked = 0
    real = Etas._ask

    async def counted(self: Etas, wanted: object) -> object:
        nonlocal asked
        asked += 1
        return await real(self, wanted)  # type: ignore[arg-type]

    monkeypatch.setattr(Etas, "_ask", counted)
    found = await etas(rig).all()
    now = rig.clock()
    waits = [round(found[rig.key(name)].eta.p50 or 0.0) for name in ("a", "b", "c")]
    assert waits == [round(now + 20), round(now + 25), round(now + 30)]
    assert await etas(rig).of(rig.key("b")) is found[rig.key("b")]
    assert asked == 1
    await advance(FRESH_S)
    await etas(rig).all()
    assert asked == 2


async def test_the_first_answer_is_compared_with_the_real_start() -> None:
    rig = Rig()
    rig.node("n1")
    submit(rig, "runs", seconds="20s", node="n1")
    await rig.cycle()
    submit(rig, "next", seconds="10s")
    assert (await eta(rig, "next")).errors is None
    await advance(22)
    ends(rig, "runs")
    await rig.cycle()
    starts(rig, "next", "n1")
    await rig.cycle()
    submit(rig, "third")
    errors = (await eta(rig, "third")).errors
    assert errors is not None
    assert errors.answers == 1
    assert errors.median_s == pytest.approx(5.0, abs=0.1)
    assert errors.inside_p90 == 0.0


async def test_a_gang_that_is_gone_before_it_starts_counts_for_no_error() -> None:
    rig = Rig()
    rig.node("n1")
    submit(rig, "runs", seconds="20s", node="n1")
    submit(rig, "next")
    await rig.cycle()
    await eta(rig, "next")
    rig.unsee("podgroups", rig.cache.groups[rig.key("next")].pod_group)
    rig.delete("next")
    await rig.cycle()
    assert etas(rig).answers.all() == []
    assert await etas(rig).of(rig.key("next")) is None


# --- why it changes -------------------------------------------------------------------------------


async def waiting(*, nodes: int = 1) -> Rig:
    """A gang that waits for a job of 100 s, and what was said of it."""
    rig = Rig()
    rig.node(*(f"n{number}" for number in range(1, nodes + 1)))
    for number in range(1, nodes + 1):
        submit(rig, f"runs{number}", seconds="100s", node=f"n{number}")
    submit(rig, "next", seconds="10s")
    await rig.cycle()
    assert (await eta(rig, "next")).change is None
    return rig


async def test_the_same_answer_has_no_change() -> None:
    rig = await waiting()
    await advance(60)
    assert (await eta(rig, "next")).change is None


async def test_a_gang_that_comes_before_is_the_cause() -> None:
    rig = await waiting()
    group = rig.group("urgent", minimum=1, annotations={"pumice.sh/run-time": "50s"}, created=-1.0)
    rig.pod("urgent", group="urgent", shape=FULL)
    change = (await eta(rig, "next")).change
    assert change is not None
    assert (change.kind, change.groups) == (ChangeKind.CAME_BEFORE, (group.key,))
    assert change.after - change.before == pytest.approx(50.0)


async def test_a_job_that_runs_longer_is_the_cause() -> None:
    rig = await waiting()
    await advance(50)
    group = rig.cache.groups[rig.key("runs1")].pod_group
    assert group is not None
    rig.see("podgroups", replace(group, annotations={"pumice.sh/run-time": "200s"}))
    change = (await eta(rig, "next")).change
    assert change is not None
    assert (change.kind, change.groups) == (ChangeKind.OVERRAN, (rig.key("runs1"),))


async def test_a_job_that_ends_early_is_the_cause_and_stays_told() -> None:
    rig = await waiting()
    submit(rig, "last", seconds="5s")
    await eta(rig, "last")
    ends(rig, "runs1")
    await rig.cycle()
    starts(rig, "next", "n1")
    await rig.cycle()
    change = (await eta(rig, "last")).change
    assert change is not None
    assert (change.kind, change.groups) == (ChangeKind.ENDED_EARLY, (rig.key("runs1"),))
    assert (await eta(rig, "last")).change == change


async def test_a_node_that_goes_is_the_cause() -> None:
    rig = await waiting()
    rig.node("n2", unschedulable=False)
    came = (await eta(rig, "next")).change
    assert came is not None
    assert (came.kind, came.nodes) == (ChangeKind.NODES_CAME, ("n2",))
    rig.node("n2", ready=False)
    gone = (await eta(rig, "next")).change
    assert gone is not None
    assert (gone.kind, gone.nodes) == (ChangeKind.NODES_GONE, ("n2",))
