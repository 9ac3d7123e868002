"""The stock scheduler preempts for its own pods: beside ours (form A), or as the same (form C)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.clusters import workloads
from tests.clusters.controlplane import Scheduler
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.rig import Rig, Setting, Stage
from tests.e2e.test_forms import STOCK

pytestmark = pytest.mark.real


@pytest.fixture(params=["a", "c"])
def rig(stage: Stage, request: pytest.FixtureRequest) -> Rig:
    return stage.rig(Setting(form=request.param))


@pytest.fixture
def stock(rig: Rig) -> Iterator[Scheduler]:
    """Who schedules the pods of others; in form A without an extender."""
    with contextlib.ExitStack() as stack:
        if rig.setting.form == "a":
            running = stack.enter_context(rig.controlplane.start_scheduler())
        else:
            running = rig.scheduler
        yield running
        running.resume()


@pytest.fixture
def place(rig: Rig) -> Iterator[Place]:
    with Place(rig) as made:
        yield made


def wait_planned(place: Place, *, without: str) -> None:
    """Wait until all was planned with nothing on that node."""
    seen = set()

    def is_planned() -> bool:
        node = place.cluster.extender.get("/debug/snapshot")["nodes"][without]
        if not node["charges"]:
            seen.add(place.cluster.extender.get(f"/plan/{place.name}/older-0")["generation"])
        return len(seen) > 2

    wait_until(is_planned, timeout_s=10, what="two plans since the node is free")


@pytest.mark.parametrize("size", [1, 2], ids=["pods", "gangs"])
def test_what_it_evicted_is_left_to_the_pod_that_it_evicted_for(
    place: Place, stock: Scheduler, size: int
) -> None:
    """It takes a while to come for the room, and others of ours wait for some."""
    urgent = place.add_priority_class("urgent", 1000)
    patient = place.add_priority_class("patient", 1000, preempts=False)
    nodes = place.add_nodes(2, cpu="2")
    for node in nodes:
        low = workloads.pod(
            f"low-{node}", scheduler=STOCK, cpu="2", pin=node, terminationGracePeriodSeconds=60
        )
        place.submit_one(low)
        place.wait_pod_bound(f"low-{node}")
    for number in range(3):
        cpu, spec = f"{2000 // size}m", {"priorityClassName": patient}
        place.add_gang(f"older-{number}", size, cpu=cpu, spec=spec, priorityClassName=patient)
        place.wait_condition(f"older-{number}", "Unschedulable")

    place.submit_one(workloads.pod("urgent", scheduler=STOCK, cpu="2", priorityClassName=urgent))
    victim = place.wait_nominated("urgent")
    place.wait_leaving(f"low-{victim}")
    stock.pause()
    place.delete_pod(f"low-{victim}")
    wait_planned(place, without=victim)
    stock.resume()
    assert place.wait_pod_bound("urgent") == victim
    others = [place.pod(f"low-{node}") for node in nodes if node != victim]
    assert not any(map(workloads.is_leaving, others))
    assert not any(place.bound(f"older-{number}") for number in range(3))


def bring_urgent_to_gang(place: Place) -> None:
    """A gang that fills the only node, then a pod of the stock scheduler that goes before it."""
    urgent = place.add_priority_class("urgent", 1000)
    place.add_nodes(1, cpu="2")
    place.add_gang("gang", 2)
    place.wait_bound("gang", 2)
    place.submit_one(workloads.pod("urgent", scheduler=STOCK, priorityClassName=urgent))


@pytest.mark.parametrize("rig", ["c"], indirect=True)
def test_it_breaks_no_gang_where_it_has_to_ask(place: Place) -> None:
    bring_urgent_to_gang(place)
    says = "no candidate node for preemption"
    place.wait_pod_condition("urgent", "PodScheduled", "False", says=says)
    assert len(place.bound("gang")) == 2
    place.delete_gang("gang")
    place.wait_pod_bound("urgent")


@pytest.mark.parametrize("rig", ["a"], indirect=True)
@pytest.mark.usefixtures("stock")
def test_beside_ours_it_asks_nobody(place: Place) -> None:
    bring_urgent_to_gang(place)
    place.wait_pod_bound("urgent")
    assert len(place.bound("gang")) == 1
