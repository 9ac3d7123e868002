"""The charge on a node follows a pod that is resized in place."""

import pytest

from app.cache.cluster import ClusterCache
from app.model.ids import NodeName, PodUid, group_key
from app.model.pod import GROUP_ANNOTATION, Pod
from tests.builders import make_node
from tests.wire.manifests import Json, container, decoded

N = NodeName("n")
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
OURS, FOREIGN = "volcano", "default-scheduler"


def running(
    asked: str, has: str, *conditions: Json, name: str = "p", scheduler: str = OURS, given: str = ""
) -> Pod:
    """A pod of a gang on node ``n`` that asks for so much and has so much."""
    told = {"resources": {"requests": {"cpu": has}}, "allocatedResources": {"cpu": given or has}}
    return decoded(
        meta={"name": name, "annotations": {GROUP_ANNOTATION: "g"}},
        status={
            "phase": "Running",
            "conditions": list(conditions),
            "containerStatuses": [{"name": "c", **told}],
        },
        nodeName=N,
        schedulerName=scheduler,
        containers=[container(cpu=asked)],
    )


def waiting(asked: str, *, name: str = "q") -> Pod:
    return decoded(
        meta={"name": name, "annotations": {GROUP_ANNOTATION: "g"}},
        containers=[container(cpu=asked)],
    )


@pytest.fixture
def cache() -> ClusterCache:
    cache = ClusterCache(schedulers=frozenset({OURS}))
    cache.set_node(make_node("n", cpu=8000))
    return cache


def free(cache: ClusterCache) -> int:
    return int(cache.node_usage.idle(N)[0])


def news(cache: ClusterCache, pod: Pod) -> bool:
    """Whether somebody may be placed now who could not before."""
    cache.signals.taken_up()
    cache.set_pod(pod, now=1.0)
    return cache.signals.may_place


@pytest.mark.parametrize("scheduler", [OURS, FOREIGN])
def test_room_is_taken_and_given_back_as_a_pod_grows_and_shrinks(
    cache: ClusterCache, scheduler: str
) -> None:
    steps = [
        (running("1", "1", scheduler=scheduler), 7000),
        (running("4", "1", scheduler=scheduler), 4000),
        (running("4", "1", scheduler=scheduler, given="4"), 4000),
        (running("4", "4", scheduler=scheduler), 4000),
        (running("2", "4", scheduler=scheduler), 4000),
        (running("2", "4", scheduler=scheduler, given="2"), 4000),
        (running("2", "2", scheduler=scheduler), 6000),
    ]
    for pod, left in steps:
        cache.set_pod(pod, now=1.0)
        assert free(cache) == left


@pytest.mark.parametrize("scheduler", [OURS, FOREIGN])
def test_what_no_node_can_give_takes_no_room(cache: ClusterCache, scheduler: str) -> None:
    cache.set_pod(running("1", "1", scheduler=scheduler), now=1.0)
    cache.set_pod(running("1000", "1", scheduler=scheduler), now=1.0)
    assert free(cache) < 0
    assert news(cache, running("1000", "1", INFEASIBLE, scheduler=scheduler))
    assert free(cache) == 7000


def test_a_pod_that_has_shrunk_lets_others_be_planned(cache: ClusterCache) -> None:
    cache.set_pod(running("1", "4"), now=1.0)
    assert not news(cache, running("1", "4", given="1"))
    assert news(cache, running("1", "1"))


def test_the_first_report_of_a_pod_that_nobody_resizes_is_no_news(cache: ClusterCache) -> None:
    bare = decoded(
        meta={"name": "p", "annotations": {GROUP_ANNOTATION: "g"}},
        status={"phase": "Running"},
        nodeName=N,
        containers=[container(cpu="1")],
    )
    cache.set_pod(bare, now=1.0)
    assert not news(cache, running("1", "1"))
    assert free(cache) == 7000


def test_members_to_come_ask_for_what_those_ask_that_wait(cache: ClusterCache) -> None:
    cache.set_pod(waiting("1"), now=1.0)
    cache.set_pod(running("1", "4"), now=1.0)
    shapes = cache.groups[group_key("default", "g")].role_shapes
    assert shapes[""] is waiting("1").shape
    assert free(cache) == 4000
    cache.drop_pod(PodUid("uid-q"))
    assert shapes[""] is waiting("1").shape


def test_members_to_come_ask_for_what_one_on_a_node_has_while_none_waits(
    cache: ClusterCache,
) -> None:
    cache.set_pod(running("1", "4"), now=1.0)
    shapes = cache.groups[group_key("default", "g")].role_shapes
    assert dict(shapes[""].requests)["cpu"] == 4000
    cache.set_pod(waiting("1"), now=1.0)
    assert shapes[""] is waiting("1").shape
