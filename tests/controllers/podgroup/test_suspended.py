"""The PodGroup of a Kubernetes Job that is suspended goes when its pods are gone."""

from collections.abc import Awaitable, Callable

import pytest

from app.controllers.podgroup.confirmed import Confirmed
from app.controllers.podgroup.controller import INDEXES, Options, PodGrouping
from app.controllers.podgroup.suspended import SuspendedJobs
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire.kinds import KUBERNETES_JOBS, POD_GROUPS, PODS, REPLICA_SETS, Resource
from app.wire.unstructured import Key, Object, controlled_by, uid
from tests.controllers import play
from tests.controllers.play import Play, item

JOB = Key("ns", "job")


def build(stage: Play) -> list[Controller]:
    confirmed = Confirmed(clock=stage.clock)
    of_pods = PodGrouping(
        stage.stores,
        api=stage.api,
        events=stage.events,
        confirmed=confirmed,
        options=Options(schedulers=frozenset({"volcano"})),
    )
    return [of_pods, SuspendedJobs(stage.stores, api=stage.api, confirmed=confirmed)]


def run(scenario: Callable[[Play], Awaitable[None]]) -> None:
    async def whole(stage: Play) -> None:
        await stage.start()
        await scenario(stage)

    play.run(whole, follows={**INDEXES, POD_GROUPS: {}}, build=build)


def owner(stage: Play, resource: Resource = KUBERNETES_JOBS) -> Object:
    return stage.fake.put(resource, item(resource, JOB.name, spec={"suspend": False}))


async def create(stage: Play, job: Object, *names: str) -> None:
    metadata = {"ownerReferences": [controlled_by(job)]}
    for name in names:
        pod_spec = {"schedulerName": "volcano", "containers": [{"name": "c"}]}
        stage.fake.put(PODS, item(PODS, name, metadata=metadata, spec=pod_spec))
    await stage.settle()


async def remove(stage: Play, *names: str) -> None:
    for name in names:
        stage.fake.remove(PODS, Key("ns", name))
    await stage.settle()


def suspend(stage: Play, *, resource: Resource = KUBERNETES_JOBS, to: bool = True) -> None:
    stage.fake.edit(resource, JOB, {"spec": {"suspend": to}})


def test_it_goes_with_the_last_pod_and_comes_again_with_the_first() -> None:
    async def scenario(stage: Play) -> None:
        job = owner(stage)
        await create(stage, job, "a", "b")
        groups = [f"podgroup-{uid(job)}"]
        suspend(stage)
        await remove(stage, "a")
        assert stage.names(POD_GROUPS) == groups
        await remove(stage, "b")
        assert not stage.names(POD_GROUPS)
        suspend(stage, to=False)
        await create(stage, job, "c")
        assert stage.names(POD_GROUPS) == groups

    run(scenario)


def test_that_of_a_job_that_goes_on_stays() -> None:
    async def scenario(stage: Play) -> None:
        await create(stage, owner(stage), "a")
        await remove(stage, "a")
        assert stage.names(POD_GROUPS)

    run(scenario)


def test_that_of_another_kind_of_owner_stays() -> None:
    async def scenario(stage: Play) -> None:
        await create(stage, owner(stage, REPLICA_SETS), "a")
        suspend(stage, resource=REPLICA_SETS)
        await remove(stage, "a")
        assert stage.names(POD_GROUPS)

    run(scenario)


def test_a_namesake_of_the_job_says_nothing() -> None:
    async def scenario(stage: Play) -> None:
        job = owner(stage)
        predecessor = {**job, "metadata": {**job["metadata"], "uid": "gone"}}
        await create(stage, predecessor, "a")
        suspend(stage)
        await remove(stage, "a")
        assert stage.names(POD_GROUPS)

    run(scenario)


@pytest.mark.parametrize("verb", ["get", "delete"])
def test_a_request_that_fails_is_made_good(verb: str) -> None:
    async def scenario(stage: Play) -> None:
        await create(stage, owner(stage), "a")
        suspend(stage)
        stage.fake.fail(Failure.PASSING, lambda r: r.verb == verb, times=2)
        await remove(stage, "a")
        await stage.later(5)
        assert not stage.names(POD_GROUPS)

    run(scenario)


def test_it_goes_also_when_the_pods_went_while_nobody_looked() -> None:
    async def scenario(stage: Play) -> None:
        await create(stage, owner(stage), "a")
        await stage.kill()
        suspend(stage)
        stage.fake.remove(PODS, Key("ns", "a"))
        await stage.start()
        assert not stage.names(POD_GROUPS)

    run(scenario)
