"""Pods beyond the minimum of a job where a ResourceQuota counts those that wait."""

from collections.abc import Mapping
from typing import Any

from app.controllers.job.controller import HELD_BACK_S
from app.controllers.job.slots import Slots
from app.model.pod import QUEUE_GATE
from app.wire.unstructured import Object
from tests.controllers.job.rig import Rig, play, task

_JOB = {"minAvailable": 1, "tasks": [task(replicas=4, minAvailable=1)]}
_ALL = [f"job-main-{index}" for index in range(4)]


def bears(rig: Rig, **tasks: int) -> None:
    """What the extender says that the queue can hold."""
    rig.slots.slots = Slots(1, {}, tasks)


def bind(rig: Rig, *pods: str) -> None:
    for pod in pods:
        rig.change(pod, {"spec": {"nodeName": "n"}})


def test_those_are_made_that_the_queue_can_hold_and_the_others_later() -> None:
    async def scenario(rig: Rig) -> None:
        bears(rig, main=1)
        rig.start()
        rig.submit(_JOB)
        await rig.settle()
        assert rig.pods() == _ALL[:2], "its minimum, and one more"
        bears(rig, main=0)
        bind(rig, *rig.pods())
        await rig.later(HELD_BACK_S)
        assert rig.pods() == _ALL[:2]
        bears(rig, main=9)
        await rig.later(HELD_BACK_S)
        assert rig.pods() == _ALL

    rig = play(scenario)
    [told] = rig.events.messages("PodsHeldBack")
    assert told.startswith("2 pods beyond the minimum wait to be created: queue default cannot")


def test_pods_that_have_no_node_yet_come_first() -> None:
    async def scenario(rig: Rig) -> None:
        bears(rig, main=2)
        rig.start()
        rig.submit(_JOB)
        await rig.settle()
        assert rig.pods() == _ALL[:3]
        bind(rig, *_ALL[:2])
        await rig.later(HELD_BACK_S)
        assert rig.pods() == _ALL, "one has no node yet, and two fit"

    play(scenario)


def test_all_are_made_where_no_quota_counts_them_or_nobody_tells() -> None:
    for slots in (Slots(1, {}, None), None):
        assert made(_JOB, slots=slots) == _ALL


def test_they_are_held_back_while_nobody_tells_once_they_were() -> None:
    async def scenario(rig: Rig) -> None:
        bears(rig, main=0)
        rig.start()
        rig.submit(_JOB)
        await rig.settle()
        rig.slots.slots = None
        await rig.later(HELD_BACK_S)
        assert rig.pods() == _ALL[:1]

    play(scenario)


def test_pods_that_autoscalers_are_to_see_and_those_of_other_schedulers_are_made() -> None:
    shown = task(replicas=4, minAvailable=1)
    shown["template"]["metadata"] = {"annotations": {QUEUE_GATE: "true"}}
    foreign = {"schedulerName": "default-scheduler"}
    for one in (shown, task(replicas=4, minAvailable=1, spec=foreign)):
        assert made({"minAvailable": 1, "tasks": [one]}, slots=Slots(1, {}, {"main": 0})) == _ALL


def test_a_partition_is_made_whole() -> None:
    parted = task(
        replicas=6,
        partitionPolicy={"totalPartitions": 3, "partitionSize": 2, "minPartitions": 1},
    )
    job: Object = {"minAvailable": 2, "tasks": [parted]}
    assert len(made(job, slots=Slots(1, {}, {"main": 1}))) == 2
    assert len(made(job, slots=Slots(1, {}, {"main": 3}))) == 4


def made(job: Mapping[str, Any], *, slots: Slots | None) -> list[str]:
    """The pods that are made at once."""

    async def scenario(rig: Rig) -> None:
        rig.slots.slots = slots
        rig.start()
        rig.submit(job)
        await rig.settle()

    return play(scenario).pods()
