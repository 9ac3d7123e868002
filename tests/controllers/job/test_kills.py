"""What a kill does, step by step (volcano.md section 5.1, "Kill (full)")."""

from collections.abc import Callable
from typing import Any

import pytest

from app.controllers.ports import Failure
from app.wire.kinds import (
    CLAIMS,
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    POD_GROUPS,
    PODS,
    SECRETS,
    SERVICES,
)
from tests.controllers.fake_api import Request
from tests.controllers.job.rig import Rig, play, policy, task

_OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"
_BESIDE = (CONFIG_MAPS, NETWORK_POLICIES, SECRETS, SERVICES)
_SPEC: dict[str, Any] = {
    "minAvailable": 2,
    "tasks": [task(replicas=3, minAvailable=2)],
    "plugins": {"svc": [], "ssh": []},
    "volumes": [{"mountPath": "/data", "volumeClaim": {}}],
    "policies": [policy("PodFailed", "RestartPod"), policy("PodEvicted", "RestartTask")],
}


def _marked(rig: Rig) -> list[str]:
    return [p for p in rig.pods() if _OUT_OF_SYNC in rig.pod(p)["metadata"]["annotations"]]


def _going(rig: Rig) -> list[str]:
    return [p for p in rig.pods() if "deletionTimestamp" in rig.pod(p)["metadata"]]


def _beside(rig: Rig) -> int:
    return sum(len(rig.api.all(kind)) for kind in _BESIDE)


@pytest.mark.parametrize("action", ["RestartJob", "AbortJob", "TerminateJob", "CompleteJob"])
def test_a_whole_kill_takes_pods_group_and_objects_but_no_claims(action: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)
        assert _beside(rig) == 4
        rig.succeed("job-main-0")
        await rig.settle()
        rig.command(action)
        await rig.later(3661)
        assert _going(rig) == _marked(rig) == ["job-main-1", "job-main-2"]
        assert not rig.api.all(POD_GROUPS)
        assert _beside(rig) == 0
        assert len(rig.api.all(CLAIMS)) == 1
        status = rig.status()
        assert status["terminating"] == 2
        assert status["version"] == 1
        assert status["runningDuration"] == "1h1m1s"
        assert [key for key in status["controlledResources"] if key.startswith("plugin")] == []

    rig = play(scenario)
    assert rig.status()["conditions"][-1]["status"] == rig.phase()


@pytest.mark.parametrize(
    ("happens", "gone"),
    [("fail", ["job-main-0"]), ("evict", ["job-main-0", "job-main-1", "job-main-2"])],
    ids=["RestartPod", "RestartTask"],
)
def test_a_kill_of_single_pods_leaves_group_objects_and_version(
    happens: str, gone: list[str]
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)
        before = rig.group()["metadata"]["uid"]
        getattr(rig, happens)("job-main-0")
        await rig.settle()
        assert _marked(rig) == _going(rig) or happens == "fail"
        await rig.drain()
        assert rig.group()["metadata"]["uid"] == before
        assert _beside(rig) == 4

    rig = play(scenario)
    made = {pod: rig.api.created[PODS, pod] for pod in rig.pods()}
    assert made == {pod: 2 if pod in gone else 1 for pod in made}
    assert "version" not in rig.status()
    assert rig.status()["retryCount"] == 1


@pytest.mark.parametrize(
    "end",
    [Rig.bury, lambda rig: rig.expire("job-main-0")],
    ids=["gone before its mark", "gone by its mark"],
)
def test_a_pod_that_is_gone_when_it_is_marked_was_evicted_once(end: Callable[[Rig], None]) -> None:
    """The watch shows that it ended, and later that it is gone; the job is pending by then."""

    async def scenario(rig: Rig) -> None:
        policies = [policy("PodEvicted", "RestartPod")]
        await rig.started({"minAvailable": 1, "tasks": [task(replicas=2, policies=policies)]})

        def end_first(request: Request) -> None:
            if (request.verb, request.resource) == ("patch", PODS):
                rig.api.observers.remove(end_first)
                rig.api.lagging.add(PODS)
                rig.fail("job-main-0")
                end(rig)

        rig.api.observers.append(end_first)
        rig.evict("job-main-0")
        await rig.settle()
        assert rig.pods() == ["job-main-1"]
        await rig.see_next(PODS)
        await rig.see_next(PODS)
        rig.api.lagging.clear()
        await rig.settle()

    rig = play(scenario)
    assert rig.pods() == ["job-main-0", "job-main-1"]
    assert rig.status()["retryCount"] == 1


def test_what_happened_to_a_task_restarts_one_pod_of_it_once() -> None:
    """While that pod goes, the task must not look as if it had happened to the next one."""

    async def scenario(rig: Rig) -> None:
        policies = [policy("TaskCompleted", "RestartPod")]
        await rig.started({"tasks": [task(replicas=2, policies=policies)]})
        rig.succeed("job-main-0")
        await rig.later(1)
        rig.succeed("job-main-1")
        await rig.drain()

    rig = play(scenario)
    assert rig.api.created[PODS, "job-main-0"] == 1
    assert rig.api.created[PODS, "job-main-1"] == 2
    assert rig.status()["retryCount"] == 1


@pytest.mark.parametrize("refused", [False, True], ids=["", "though nobody may change pods"])
def test_pods_are_marked_before_they_are_deleted(refused: bool) -> None:
    def marks(request: Request) -> bool:
        return (request.verb, request.resource) == ("patch", PODS)

    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)
        if refused:
            rig.api.fail(Failure.REFUSED, marks, times=1000)
        rig.command("AbortJob")
        await rig.drain()

    rig = play(scenario)
    steps = [r for r in rig.api.requests if r.resource is PODS and r.verb in {"patch", "delete"}]
    for pod in ("job-main-0", "job-main-1", "job-main-2"):
        assert [r.verb for r in steps if r.key.name == pod] == ["patch", "delete"]
    assert rig.phase() == "Aborted"


def test_a_command_is_deleted_before_it_is_executed() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)
        rig.api.requests.clear()
        rig.command("AbortJob")
        await rig.settle()

    steps = [(r.verb, r.resource, r.subresource) for r in play(scenario).api.requests]
    assert steps.index(("delete", COMMANDS, "")) < steps.index(("patch", JOBS, "status"))


def test_the_objects_of_plugins_are_gone_when_the_phase_is_left() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_SPEC)

        def deletes(request: Request) -> bool:
            return (request.verb, request.resource) == ("delete", SERVICES)

        rig.api.fail(Failure.PASSING, deletes, times=1000)
        rig.command("TerminateJob")
        await rig.drain()
        assert rig.phase() == "Terminating"
        rig.api.faults.clear()
        await rig.later(60)
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() == "Terminated"
    assert _beside(rig) == 0
