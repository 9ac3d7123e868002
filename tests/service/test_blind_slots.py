"""Room kept for a vcjob's members before the watch has shown the job: nobody is pinned to it."""

import pytest

from app.model.amounts import amounts
from app.model.job import JobTemplate, Template
from app.model.pod import TASK_SPEC
from app.model.shape import PodShape
from app.service.telling.explanations import slots_to_pin
from tests.builders import GIB, make_shape
from tests.service.rig import Rig

CHOOSY = make_shape(node_selector=(("disk", "ssd"),))


def job(rig: Rig, shape: PodShape) -> None:
    """The watch shows the job."""
    rig.see("jobs", JobTemplate("uid-job", "default", "job", {"worker": Template(shape, {})}))


def group(rig: Rig, *, owner: str = "Job") -> None:
    """A PodGroup that asks for two workers, and nodes of which one would take them."""
    rig.node("plain")
    rig.node("ssd", labels={"disk": "ssd"})
    rig.group(
        "g",
        minimum=2,
        role_minimum={"worker": 2},
        min_resources=amounts({"cpu": 2000, "memory": 2 * GIB}),
        owner_kind=owner,
        owner_uid="uid-job",
    )


def to_pin(rig: Rig) -> dict[str, tuple[str, ...]]:
    return slots_to_pin(rig.cache, rig.cache.groups[rig.key("g")])


async def test_slots_of_a_job_that_is_not_known_yet_are_not_pinned_to() -> None:
    """Nothing tells where its pods may not go; kube-scheduler would refuse them there."""

    rig = Rig()
    group(rig)
    await rig.cycle()
    assert len(rig.cache.groups[rig.key("g")].slots) == 2
    assert to_pin(rig) == {}
    job(rig, CHOOSY)
    await rig.cycle()
    assert to_pin(rig) == {}, "they were made before the job was known"


@pytest.mark.parametrize("known_by", ["its job", "one of its pods"])
async def test_slots_of_a_role_that_is_known_are_pinned_to(known_by: str) -> None:
    rig = Rig()
    count = 2
    if known_by == "its job":
        job(rig, CHOOSY)
    group(rig)
    if known_by == "one of its pods":
        rig.pod("w0", group="g", shape=CHOOSY, annotations={TASK_SPEC: "worker"})
        count = 1
    await rig.cycle()
    assert to_pin(rig) == {"worker": ("ssd",) * count}


async def test_slots_of_a_group_without_a_job_are_pinned_to_all_the_same() -> None:
    """Whoever asks for them knows what the pods will be."""

    rig = Rig()
    group(rig, owner="TFJob")
    await rig.cycle()
    assert sum(map(len, to_pin(rig).values())) == 2
