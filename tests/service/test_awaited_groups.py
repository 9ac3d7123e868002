"""Pods of other controllers: their PodGroup is made after them, and may make a gang of them."""

import logging
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from app.core.texts import filter_text
from app.model.ids import NodeName
from app.model.pod import GROUP_ANNOTATION, Owner
from app.model.reason import Cause
from app.service.calls.filtering import Chosen, Wait
from app.service.intake.owners import AGAIN_AFTER_S
from tests.service.rig import FAILING, REFUSED, Rig, running
from tests.service.virtual_time import advance

WEB = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
ALONE = Chosen(NodeName("n1"))
WAITS = Wait(filter_text(Cause.GROUP_MISSING))
NAMES = ("web-0", "web-1", "web-2")
LONG_S = 3600.0


def working(rig: Rig) -> AbstractContextManager[None]:
    """Cycles run and owners are asked."""
    return running(rig.planning.loop.run(), rig.parts.owners.run(2))


def give(rig: Rig, group: str) -> None:
    """The controller of PodGroups makes one and tells the pods."""
    rig.group(group, minimum=3)
    for name in NAMES:
        rig.store(replace(rig.api.pods[f"default/{name}"], annotations={GROUP_ANNOTATION: group}))


async def test_pods_of_an_owner_that_wants_a_gang_wait_for_it_as_long_as_it_takes() -> None:
    rig = Rig()
    rig.api.owners["web"] = 3
    rig.node("n1", cpu=2000)
    with working(rig):
        for name in NAMES:
            rig.pod(name, owner=WEB)
        assert rig.filter("web-0") == WAITS
        await advance(LONG_S)
        assert rig.has_reservations() == 0
        give(rig, "auto")
        await advance(1)
        assert rig.has_reservations() == 0, "two of three fit"
        rig.node("n2")
        await advance(1)
        assert rig.has_reservations() == 3


async def test_pods_of_one_that_does_not_are_scheduled_at_once_each_alone() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    with working(rig):
        for name in NAMES:
            rig.pod(name, owner=WEB)
        await advance(0.2)
        assert rig.has_reservations() == 2
        assert rig.api.tries == [("owner", "default/web")], "asked once for all"


async def test_an_owner_that_is_known_is_not_asked_about_its_next_pods() -> None:
    rig = Rig()
    rig.node("n1")
    with working(rig):
        rig.pod("web-0", owner=WEB)
        await advance(1)
        rig.pod("web-1", owner=WEB)
        assert rig.filter("web-1") == ALONE
        assert len(rig.api.tries) == 1


@pytest.mark.parametrize(
    "owner",
    [
        None,
        Owner("v1", "ReplicationController", "rc", "uid-rc"),
        Owner("kubeflow.org/v1", "PyTorchJob", "train", "uid-train"),
        Owner("example.com/v1", "ReplicaSet", "theirs", "uid-theirs"),
    ],
)
async def test_pods_of_nobody_and_of_kinds_that_make_no_gangs_do_not_wait(
    owner: Owner | None,
) -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", owner=owner)
    assert rig.filter("p") == ALONE
    assert rig.api.tries == []


async def test_an_owner_is_asked_again_until_it_answers_and_when_its_pods_wait_for_long() -> None:
    rig = Rig()
    rig.api.owners["web"] = 3
    rig.api.fails["owner"] = [FAILING, FAILING]
    rig.node("n1")
    with working(rig):
        rig.pod("web-0", owner=WEB)
        await advance(5)
        assert len(rig.api.tries) == 3
        del rig.api.owners["web"]
        await advance(AGAIN_AFTER_S)
        assert rig.filter("web-0") == ALONE


async def test_an_owner_that_may_not_be_read_leaves_its_pods_waiting_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    rig.api.fails["owner"] = [REFUSED]
    rig.node("n1")
    with working(rig), caplog.at_level(logging.WARNING):
        rig.pod("web-0", owner=WEB)
        await advance(5)
        assert rig.has_reservations() == 0
    (told,) = caplog.records
    assert told.__dict__["pod"] == "default/web-0"


async def test_pods_that_go_or_are_bound_are_waited_for_no_longer() -> None:
    rig = Rig()
    rig.api.owners["web"] = 3
    rig.node("n1")
    with working(rig):
        for name in NAMES:
            rig.pod(name, owner=WEB)
        await advance(1)
        assert set(rig.cache.pods.awaited.by_owner) == {"uid-web"}
        rig.delete("web-0")
        rig.store(replace(rig.api.pods["default/web-1"], node=NodeName("n1")))
        give_one = replace(rig.api.pods["default/web-2"], annotations={GROUP_ANNOTATION: "g"})
        rig.store(give_one)
        assert rig.cache.pods.awaited.by_owner == {}


def let_go(rig: Rig, name: str, *, owner: Owner | None = None) -> None:
    """Somebody changes the labels of a pod: its ReplicaSet wants it no more, another one may."""
    rig.store(replace(rig.api.pods[f"default/{name}"], owner=owner))


async def test_pods_are_freed_whatever_became_of_their_siblings() -> None:
    rig = Rig()
    rig.api.owners["web"] = 3
    rig.node("n1")
    with working(rig):
        for name in NAMES:
            rig.pod(name, owner=WEB)
        await advance(1)
        let_go(rig, "web-0")
        rig.delete("web-0")
        del rig.api.owners["web"]
        await advance(AGAIN_AFTER_S + 2)
        assert rig.has_reservations() == 2


async def test_an_owner_without_pods_is_asked_no_more() -> None:
    rig = Rig()
    rig.api.owners["web"] = 3
    with working(rig):
        rig.pod("web-0", owner=WEB)
        await advance(1)
        let_go(rig, "web-0")
        rig.delete("web-0")
        await advance(LONG_S)
        assert rig.cache.pods.awaited.by_owner == {}
        assert len(rig.api.tries) == 1


async def test_a_pod_that_its_owner_let_go_waits_for_nobody() -> None:
    rig = Rig()
    rig.api.owners["web"] = 3
    rig.node("n1")
    with working(rig):
        rig.pod("web-0", owner=WEB)
        await advance(1)
        let_go(rig, "web-0")
        await advance(1)
        assert rig.filter("web-0") == ALONE


async def test_a_pod_that_another_owner_took_waits_for_that_one() -> None:
    rig = Rig()
    rig.api.owners["web"] = rig.api.owners["next"] = 3
    rig.node("n1")
    with working(rig):
        rig.pod("web-0", owner=WEB)
        await advance(1)
        let_go(rig, "web-0", owner=replace(WEB, name="next", uid="uid-next"))
        await advance(1)
        assert set(rig.cache.pods.awaited.by_owner) == {"uid-next"}
        assert rig.api.tries == [("owner", "default/web"), ("owner", "default/next")]
        assert rig.filter("web-0") == WAITS
