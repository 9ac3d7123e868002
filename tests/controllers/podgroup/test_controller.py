"""PodGroups on the API server: made once, told to pods, kept up to date, and gone with replicas."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from app.controllers.podgroup.confirmed import KEPT_S, Confirmed
from app.controllers.podgroup.controller import INDEXES, Options, PodGrouping, WorkloadGrouping
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire.kinds import (
    DAEMON_SETS,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from app.wire.unstructured import Key, Object, annotations, controlled_by, spec, uid
from tests.controllers import play
from tests.controllers.fake_api import Request
from tests.controllers.play import Play, item
from tests.controllers.quota_names import least

GROUP = "scheduling.k8s.io/group-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
FOLLOWS = {**INDEXES, POD_GROUPS: {}, REPLICA_SETS: {}, STATEFUL_SETS: {}}
OPTIONS = Options(schedulers=frozenset({"volcano"}))


def build(stage: Play) -> list[Controller]:
    confirmed = Confirmed(clock=stage.clock)
    return [
        PodGrouping(
            stage.stores,
            api=stage.api,
            events=stage.events,
            confirmed=confirmed,
            options=OPTIONS,
        ),
        WorkloadGrouping(stage.stores, api=stage.api, confirmed=confirmed, options=OPTIONS),
    ]


def run(scenario: Callable[[Play], Awaitable[None]]) -> Play:
    async def whole(stage: Play) -> None:
        await stage.start()
        await scenario(stage)

    return play.run(whole, follows=FOLLOWS, build=build)


def pod(
    stage: Play,
    name: str,
    owner: Object | None = None,
    *,
    scheduler: str = "volcano",
    cpu: str = "1",
    **metadata: Any,
) -> Object:
    if owner is not None:
        metadata["ownerReferences"] = [controlled_by(owner)]
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    pod_spec = {"schedulerName": scheduler, "containers": [container]}
    return stage.fake.put(PODS, item(PODS, name, metadata=metadata, spec=pod_spec))


def workload(
    stage: Play,
    resource: Resource = REPLICA_SETS,
    *,
    replicas: int = 2,
    said: Mapping[str, str] | None = None,
    revision: str = "",
    scheduler: str = "volcano",
) -> Object:
    template = {"spec": {"schedulerName": scheduler}}
    parts: dict[str, Any] = {"spec": {"replicas": replicas, "template": template}}
    if revision:
        parts["status"] = {"updateRevision": revision}
    return stage.fake.put(
        resource, item(resource, "set", metadata={"annotations": dict(said or {})}, **parts)
    )


def group_of(stage: Play, name: str) -> str:
    return annotations(stage.stored(PODS, Key("ns", name))).get(GROUP, "")


def groups(stage: Play) -> dict[str, Any]:
    return {each["metadata"]["name"]: spec(each) for each in stage.fake.all(POD_GROUPS)}


def test_a_plain_pod_gets_a_group_and_learns_its_name() -> None:
    async def scenario(stage: Play) -> None:
        made = pod(stage, "p")
        pod(stage, "other", scheduler="default-scheduler")
        pod(stage, "grouped", annotations={GROUP: "own"})
        await stage.settle()
        name = f"podgroup-{uid(made)}"
        assert groups(stage) == {name: {"minMember": 1, "minResources": least(1, cpu="1")}}
        assert [group_of(stage, p) for p in ("p", "other", "grouped")] == [name, "", "own"]

    run(scenario)


@pytest.mark.parametrize("resource", [REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS])
def test_pods_of_a_workload_share_a_group(resource: Resource) -> None:
    async def scenario(stage: Play) -> None:
        owner = workload(stage, resource, said={MIN_MEMBER: "2", "volcano.sh/x": "y"})
        for number in range(3):
            pod(stage, f"p{number}", owner)
        await stage.settle()
        name = f"podgroup-{uid(owner)}"
        assert groups(stage) == {name: {"minMember": 2, "minResources": least(2, cpu="2")}}
        assert {group_of(stage, f"p{n}") for n in range(3)} == {name}
        assert stage.fake.created == {(POD_GROUPS, name): 1}
        assert annotations(stage.stored(POD_GROUPS, Key("ns", name))) == {"volcano.sh/x": "y"}

    run(scenario)


def makes_another(stage: Play) -> Callable[[Request], bool]:
    """Whether a request is to create a PodGroup while there is one."""
    return lambda request: request.verb == "create" and bool(groups(stage))


@pytest.mark.parametrize("lagging", [False, True], ids=["seen", "not seen yet"])
def test_pods_learn_of_a_group_that_could_not_be_created_again(lagging: bool) -> None:
    """A quota of one, a queue that closes: the API server refuses before it looks what is there."""

    async def scenario(stage: Play) -> None:
        if lagging:
            stage.fake.lagging.add(POD_GROUPS)
        stage.fake.fail(Failure.REFUSED, makes_another(stage), times=99)
        owner = workload(stage, said={MIN_MEMBER: "3"})
        for number in range(3):
            pod(stage, f"p{number}", owner)
        await stage.settle()
        pod(stage, "late", owner)
        await stage.settle()
        name = f"podgroup-{uid(owner)}"
        assert {group_of(stage, p) for p in ("p0", "p1", "p2", "late")} == {name}

    run(scenario)


def test_a_group_that_is_there_is_not_created_once_more() -> None:
    async def scenario(stage: Play) -> None:
        owner = workload(stage)
        pod(stage, "p0", owner)
        await stage.settle()
        pod(stage, "p1", owner)
        await stage.settle()
        assert [r.verb for r in stage.fake.requests if r.resource is POD_GROUPS][1:] == ["get"]

    run(scenario)


def test_a_group_that_is_gone_before_the_watch_says_so_is_made_anew() -> None:
    async def scenario(stage: Play) -> None:
        owner = workload(stage)
        pod(stage, "p0", owner)
        await stage.settle()
        name = f"podgroup-{uid(owner)}"
        stage.fake.lagging.add(POD_GROUPS)
        stage.fake.remove(POD_GROUPS, Key("ns", name))
        pod(stage, "p1", owner)
        await stage.settle()
        assert list(groups(stage)) == [name]

    run(scenario)


def looks(stage: Play) -> int:
    """How often the API server was asked for a PodGroup."""
    asked = [r for r in stage.fake.requests if (r.verb, r.resource) == ("get", POD_GROUPS)]
    return len(asked)


def test_one_look_is_good_for_all_pods_of_a_moment() -> None:
    async def scenario(stage: Play) -> None:
        owner = workload(stage)
        for number in range(9):
            pod(stage, f"p{number}", owner)
            await stage.settle()
        assert looks(stage) == 1
        await stage.later(KEPT_S)
        pod(stage, "late", owner)
        await stage.settle()
        assert looks(stage) == 2
        assert group_of(stage, "late") == f"podgroup-{uid(owner)}"

    run(scenario)


def test_those_who_want_to_know_at_the_same_time_ask_once_and_again_if_that_fails() -> None:
    async def scenario(stage: Play) -> None:
        owner = workload(stage)
        pod(stage, "first", owner)
        await stage.settle()
        stage.fake.fail(Failure.PASSING, lambda r: r.verb == "get" and r.resource is POD_GROUPS)
        for number in range(2):
            pod(stage, f"p{number}", owner)
        await stage.settle()
        assert looks(stage) == 2
        await stage.later(5)
        assert {group_of(stage, f"p{n}") for n in range(2)} == {f"podgroup-{uid(owner)}"}

    run(scenario)


def test_a_group_that_went_for_want_of_replicas_is_made_anew_at_once() -> None:
    """The watch shows neither that it went nor that it was there lately."""

    async def scenario(stage: Play) -> None:
        owner = workload(stage)
        for number in range(2):
            pod(stage, f"p{number}", owner)
            await stage.settle()
        stage.fake.lagging.add(POD_GROUPS)
        workload(stage, replicas=0)
        await stage.settle()
        assert not groups(stage)
        workload(stage)
        pod(stage, "anew", owner)
        await stage.settle()
        assert list(groups(stage)) == [f"podgroup-{uid(owner)}"]

    run(scenario)


def test_a_group_that_may_not_be_created_is_tried_until_it_may() -> None:
    async def scenario(stage: Play) -> None:
        stage.fake.fail(Failure.REFUSED, lambda r: r.verb == "create", times=3)
        made = pod(stage, "p")
        await stage.settle()
        assert (groups(stage), group_of(stage, "p")) == ({}, "")
        await stage.later(5)
        assert group_of(stage, "p") == f"podgroup-{uid(made)}"

    run(scenario)


def test_a_workload_that_was_made_anew_says_nothing_about_pods_of_the_old_one() -> None:
    async def scenario(stage: Play) -> None:
        gone = {**item(DAEMON_SETS, "set"), "metadata": {"name": "set", "uid": "gone"}}
        workload(stage, DAEMON_SETS, said={MIN_MEMBER: "2"})
        pod(stage, "p", gone)
        await stage.settle()
        assert groups(stage)["podgroup-gone"]["minMember"] == 1

    run(scenario)


@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler"])
def test_the_group_follows_its_workload(scheduler: str) -> None:
    """Also where it is not its template, but a webhook, that gives its pods to us."""

    async def scenario(stage: Play) -> None:
        owner = workload(stage, said={MIN_MEMBER: "1"}, scheduler=scheduler)
        pod(stage, "p", owner)
        await stage.settle()
        name = f"podgroup-{uid(owner)}"
        told = {MIN_MEMBER: "4", "volcano.sh/preemptable": "true"}
        workload(stage, said=told, scheduler=scheduler)
        await stage.settle()
        assert groups(stage)[name] == {"minMember": 4, "minResources": least(4, cpu="4")}
        assert annotations(stage.stored(POD_GROUPS, Key("ns", name))) == {
            "volcano.sh/preemptable": "true"
        }
        workload(stage, replicas=0, scheduler=scheduler)
        await stage.settle()
        assert groups(stage) == {}

    run(scenario)


def test_pods_of_other_schedulers_say_nothing_about_the_group() -> None:
    async def scenario(stage: Play) -> None:
        owner = workload(stage)
        pod(stage, "a", owner, scheduler="default-scheduler", cpu="3")
        pod(stage, "b", owner)
        await stage.settle()
        assert groups(stage)[f"podgroup-{uid(owner)}"]["minResources"] == least(1, cpu="1")

    run(scenario)


def test_the_group_of_a_stateful_set_is_that_of_its_newest_pods() -> None:
    async def scenario(stage: Play) -> None:
        revision = "controller-revision-hash"
        owner = workload(stage, STATEFUL_SETS, revision="old")
        pod(stage, "p0", owner, labels={revision: "old"})
        await stage.settle()
        workload(stage, STATEFUL_SETS, revision="new")
        pod(stage, "p1", owner, labels={revision: "new"}, cpu="3")
        await stage.settle()
        assert groups(stage) == {
            f"podgroup-{uid(owner)}": {"minMember": 1, "minResources": least(1, cpu="3")}
        }

    run(scenario)


def test_pods_that_are_grouped_by_somebody_else_are_left_alone() -> None:
    async def scenario(stage: Play) -> None:
        owner = workload(stage, STATEFUL_SETS)
        pod(stage, "p0", owner, annotations={GROUP: "leader-worker"})
        stage.fake.put(POD_GROUPS, item(POD_GROUPS, "leader-worker", spec={"minMember": 7}))
        await stage.settle()
        assert groups(stage) == {"leader-worker": {"minMember": 7}}

    run(scenario)


def test_a_replica_set_and_a_stateful_set_of_one_name_have_groups_of_their_own() -> None:
    async def scenario(stage: Play) -> None:
        first = workload(stage, REPLICA_SETS)
        second = workload(stage, STATEFUL_SETS)
        pod(stage, "p0", first)
        pod(stage, "p1", second)
        await stage.settle()
        workload(stage, REPLICA_SETS, replicas=0)
        await stage.settle()
        assert list(groups(stage)) == [f"podgroup-{uid(second)}"]

    run(scenario)


@pytest.mark.parametrize("verb", ["create", "patch", "get"])
@pytest.mark.parametrize("after", [False, True], ids=["undone", "done"])
def test_a_request_that_fails_is_made_good(verb: str, after: bool) -> None:
    async def scenario(stage: Play) -> None:
        owner = workload(stage, DAEMON_SETS, said={MIN_MEMBER: "2"})
        stage.fake.fail(Failure.PASSING, lambda r: r.verb == verb, times=2, after=after)
        pod(stage, "p", owner)
        await stage.later(5)
        name = f"podgroup-{uid(owner)}"
        assert groups(stage)[name]["minMember"] == 2
        assert group_of(stage, "p") == name
        assert stage.fake.created == {(POD_GROUPS, name): 1}

    run(scenario)


def test_a_pod_that_goes_meanwhile_is_forgotten() -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p")
        stage.fake.fail(Failure.NOT_FOUND, lambda request: request.resource is PODS, times=9)
        await stage.later(5)
        assert len(told(stage)) == 1

    run(scenario)


def test_a_pod_that_changes_while_it_is_told_is_told_once() -> None:
    async def scenario(stage: Play) -> None:
        def goes_on(request: Request) -> None:
            if request.resource is PODS and len(told(stage)) == 1:
                stage.fake.edit(PODS, request.key, {"status": {"phase": "Running"}})
                stage.fake.deliver()

        stage.fake.observers.append(goes_on)
        made = pod(stage, "p")
        await stage.settle()
        assert group_of(stage, "p") == f"podgroup-{uid(made)}"
        assert len(told(stage)) == 1

    run(scenario)


def told(stage: Play) -> list[Request]:
    """The requests about pods."""
    return [r for r in stage.fake.requests if r.resource is PODS]


def refused_for(stage: Play, why: str, times: int) -> None:
    """The next creations are refused with that text."""
    stage.fake.fail(Failure.REFUSED, lambda r: r.verb == "create", times=times, message=why)


def test_a_pod_is_told_why_its_group_may_not_be_created_once_for_each_reason() -> None:
    async def scenario(stage: Play) -> None:
        refused_for(stage, "exceeded quota: q", 4)
        refused_for(stage, "queue none does not exist", 4)
        pod(stage, "p")
        await stage.later(60)
        assert group_of(stage, "p")

    assert run(scenario).told.told == [
        ("Warning", "FailedCreatePodGroup", "exceeded quota: q"),
        ("Warning", "FailedCreatePodGroup", "queue none does not exist"),
    ]


def test_a_pod_that_is_made_anew_is_told_too() -> None:
    async def scenario(stage: Play) -> None:
        refused_for(stage, "exceeded quota: q", 99)
        pod(stage, "p")
        await stage.later(1)
        stage.fake.remove(PODS, Key("ns", "p"))
        pod(stage, "p")
        await stage.later(1)

    assert run(scenario).reasons() == ["FailedCreatePodGroup"] * 2


@pytest.mark.parametrize("failure", [Failure.PASSING, Failure.CONFLICT])
def test_what_may_succeed_later_is_no_reason_to_tell(failure: Failure) -> None:
    async def scenario(stage: Play) -> None:
        stage.fake.fail(failure, lambda r: r.verb == "create", times=2)
        pod(stage, "p")
        await stage.later(5)

    assert run(scenario).reasons() == []


def test_requests_that_cannot_be_read_are_told_of() -> None:
    async def scenario(stage: Play) -> None:
        pod(stage, "p", cpu="much")
        await stage.settle()
        assert groups(stage) == {}

    assert run(scenario).reasons() == ["FailedCreatePodGroup"]
