"""A queue whose capability was cut: whom it would give up is shown, and given up when asked for."""

from __future__ import annotations

from typing import Any

from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import QUEUES

OVER = "pumice.sh/evict-over-capability"


def preview(place: Place, queue: str, query: str = "") -> Any:
    """What the extender says that the queue would give up."""
    return place.cluster.extender.get(f"/preview/queue/{queue}{query}")


def names(place: Place) -> set[str]:
    return {pod["metadata"]["name"] for pod in place.bound()}


def test_a_queue_gives_up_what_its_preview_said_once_it_is_asked_to(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    queue = place.add_queue("cut", capability={"cpu": "6"})
    place.add_gang("whole", 2, spec={"queue": queue})
    place.wait_bound("whole", 2)
    place.add_gang("grown", 4, minimum=2, spec={"queue": queue})
    place.wait_bound("grown", 4)
    before = names(place)

    foretold = preview(place, queue, "?capability=cpu%3D4")
    assert {pod["kind"] for pod in foretold["pods"]} == {"surplus"}
    assert (len(foretold["pods"]), foretold["over"]) == (2, {"cpu": 2000})

    place.api.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "4"}}})
    wait_until(
        lambda: preview(place, queue)["over"] == {"cpu": 2000}, timeout_s=30, what="it is cut"
    )
    assert names(place) == before

    place.api.patch(QUEUES, queue, {"metadata": {"annotations": {OVER: "true"}}})
    wait_until(lambda: len(place.bound("grown")) == 2, timeout_s=30, what="pods are evicted")
    gone = {f"{place.name}/{name}" for name in before - names(place)}
    assert gone == {pod["pod"] for pod in foretold["pods"]}
    assert len(place.bound("whole")) == 2
    assert preview(place, queue)["pods"] == []
    [evicted, _] = [pod["pod"].partition("/")[2] for pod in foretold["pods"]]
    said = f"Pod is evicted, because of over-capability: {OVER} allows it"
    place.wait_event(evicted, "Evict", says=said)


def test_gangs_go_whole_when_no_member_can_be_spared(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    queue = place.add_queue("cut", annotations={OVER: "true"})
    place.add_gang("first", 3, spec={"queue": queue})
    place.wait_bound("first", 3)
    place.add_gang("second", 2, spec={"queue": queue})
    place.wait_bound("second", 2)
    place.api.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "3"}}})
    wait_until(lambda: len(place.bound()) == 3, timeout_s=30, what="a gang is evicted")
    assert len(place.bound("first")) == 3
