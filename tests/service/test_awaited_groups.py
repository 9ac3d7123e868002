"""Pods of other controllers: their PodGroup is made after them, and may make a gang of them."""

from dataclasses import replace

from app.core.texts import filter_text
from app.model.ids import NodeName
from app.model.pod import GROUP_ANNOTATION, Owner
from app.model.reason import Cause
from app.service.filtering import Chosen, Wait
from tests.service.rig import Rig
from tests.service.virtual_time import advance, clock, run

REPLICA_SET = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
ALONE = Chosen(NodeName("n1"))


def test_a_pod_of_a_controller_waits_to_be_given_to_a_group() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1")
        await rig.cycle()
        rig.pod("web-0", owner=REPLICA_SET, created=clock())
        await rig.cycle()
        assert rig.filter("web-0") == Wait(filter_text(Cause.GROUP_MISSING))
        assert rig.promises() == 0

    run(scenario())


def test_it_is_bound_with_its_gang_once_it_has_one() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1", cpu=2000)
        await rig.cycle()
        names = ["web-0", "web-1", "web-2"]
        for name in names:
            rig.pod(name, owner=REPLICA_SET, created=clock())
        await rig.cycle()
        rig.group("auto", minimum=3)
        for name in names:
            pod = rig.api.pods[f"default/{name}"]
            rig.store(replace(pod, annotations={GROUP_ANNOTATION: "auto"}))
        await advance(rig.limits.group_s + 1)
        await rig.cycle()
        assert rig.promises() == 0, "two of three fit"
        rig.node("n2")
        await rig.cycle()
        assert rig.promises() == 3

    run(scenario())


def test_one_that_nobody_groups_stands_alone_after_a_while() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1")
        await rig.cycle()
        rig.pod("web-0", owner=REPLICA_SET, created=clock())
        await advance(rig.limits.group_s + 1)
        await rig.cycle()
        assert rig.filter("web-0") == ALONE

    run(scenario())


def test_one_that_has_waited_before_we_started_does_not_wait_again() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1")
        rig.pod("web-0", owner=REPLICA_SET, created=clock() - rig.limits.group_s - 1)
        await rig.cycle()
        assert rig.filter("web-0") == ALONE

    run(scenario())


def test_a_pod_of_nobody_does_not_wait() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1")
        rig.pod("p", created=clock())
        assert rig.filter("p") == ALONE

    run(scenario())
