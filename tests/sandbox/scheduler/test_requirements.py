"""What the loop charges pods: on a node, as kube-scheduler, also what a kubelet reports."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.nodes import NodeSpec
from app.sandbox.scheduler.requirements import requirements_of
from app.wire.documents import Document
from tests.sandbox.documents import cpu, pod
from tests.sandbox.scheduler.scripted import Stage, play

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


def reporting(actual: Document, *, allocated: Document | None = None, **fields: Any) -> Document:
    """The status of a pod whose one container has that, and was granted ``allocated``."""
    told = {"name": "c", "resources": {"requests": actual}}
    granted = {} if allocated is None else {"allocatedResources": allocated}
    return {"containerStatuses": [told | granted], **fields}


def running(asked: str, status: Document) -> Document:
    document = pod(resources=cpu(asked), nodeName="n", metadata={"uid": "p"})
    return {**document, "status": status}


def charged(document: Document) -> int:
    return requirements_of(document).resources.get("cpu", 0)


@pytest.mark.parametrize(
    ("asked", "actual", "allocated", "charge"),
    [
        pytest.param("2", "2", "2", 2000, id="at rest"),
        pytest.param("3", "1", "1", 3000, id="to grow"),
        pytest.param("1", "3", "1", 3000, id="shrinking"),
        pytest.param("1", "1", "3", 3000, id="granted and taken back"),
    ],
)
def test_the_largest_of_asked_granted_and_actual_is_charged(
    asked: str, actual: str, allocated: str, charge: int
) -> None:
    status = reporting({"cpu": actual}, allocated={"cpu": allocated})
    assert charged(running(asked, status)) == charge


def test_what_no_node_can_give_is_not_charged() -> None:
    status = reporting({"cpu": "1"}, conditions=[INFEASIBLE])
    assert charged(running("100", status)) == 1000


def test_memory_is_charged_in_thousandths_as_all_is() -> None:
    status = reporting({"memory": "2Ki"})
    assert requirements_of(running("1", status)).resources["memory"] == 2048 * 1000


def test_a_pod_is_charged_for_itself_whatever_is_reported() -> None:
    assert requirements_of(running("1", reporting({"cpu": "2"}))).resources["pods"] == 1000


def test_a_report_that_cannot_be_read_counts_for_nothing() -> None:
    assert charged(running("1", reporting({"cpu": "many"}))) == 1000


def test_room_that_a_resized_pod_still_has_is_given_to_nobody() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(pod("first", resources=cpu("1")))
        await stage.clock.settle()
        told = reporting({"cpu": "3"}, allocated={"cpu": "1"})
        stage.patch("first", {"status": told}, subresource="status")
        stage.create(pod("second", resources=cpu("2")))
        await stage.clock.settle()
        assert stage.node_of("second") == ""
        assert "Insufficient cpu" in stage.told("second")[1]

    play(scenario, nodes=NodeSpec(count=1, cpu="4"))
