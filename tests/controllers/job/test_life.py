"""Jobs from submission to their end, in the words that clients watch for."""

from typing import Any

import pytest

from app.controllers.ports import Failure
from app.wire.kinds import JOBS, POD_GROUPS, PODS
from app.wire.unstructured import uid
from tests.controllers.fake_api import Request
from tests.controllers.job.rig import Rig, play, policy, task


def test_a_job_runs_and_completes() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({"minAvailable": 2, "tasks": [task()]})
        assert rig.phase() == "Running"
        await rig.later(3661)
        rig.succeed()
        await rig.settle()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Completed"]
    assert rig.status()["succeeded"] == 2
    assert rig.status()["runningDuration"] == "1h1m1s"
    assert rig.status()["taskStatusCount"] == {"main": {"phase": {"Succeeded": 2}}}
    assert rig.pods() == ["job-main-0", "job-main-1"]
    assert not rig.api.all(POD_GROUPS)


def test_a_failed_pod_restarts_the_job() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(
            {"minAvailable": 2, "tasks": [task()], "policies": [policy("PodFailed", "RestartJob")]}
        )
        rig.fail("job-main-0")
        await rig.settle()
        assert rig.status()["state"]["reason"] == "RestartJob"
        await rig.drain()
        rig.run()
        await rig.settle()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert "reason" not in rig.status()["state"]
    assert rig.status()["version"] == 1
    assert rig.status()["retryCount"] == 1
    assert rig.events.messages("ExecuteAction") == ["Start to execute action RestartJob "]


def test_a_status_says_all_there_is_to_say() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(
            {
                "minAvailable": 2,
                "tasks": [task("a", 5), task("b", 1)],
                "plugins": {"env": []},
                "volumes": [{"mountPath": "/data", "volumeClaimName": "c", "volumeClaim": {}}],
            }
        )
        rig.command("RestartJob")
        await rig.drain()
        rig.run("job-a-0", "job-a-1", "job-b-0")
        rig.succeed("job-a-2")
        rig.fail("job-a-3")
        rig.change("job-a-4", {"status": {"phase": "Unknown"}})
        rig.evict("job-a-1")
        await rig.settle()

    status = play(scenario).status()
    since = status["state"].pop("lastTransitionTime")
    conditions = status.pop("conditions")
    assert status == {
        "state": {"phase": "Running"},
        "minAvailable": 2,
        "taskStatusCount": {
            "a": {"phase": {"Running": 1, "Succeeded": 1, "Failed": 1, "Unknown": 1}},
            "b": {"phase": {"Running": 1}},
        },
        "running": 2,
        "succeeded": 1,
        "failed": 1,
        "unknown": 1,
        "terminating": 1,
        "version": 1,
        "retryCount": 1,
        "restartsWithoutFailure": 1,
        "runningDuration": "0s",
        "controlledResources": {"plugin-env": "env", "volume-pvc-c": "c"},
    }
    assert [entry["status"] for entry in conditions] == ["Restarting", "Pending", "Running"]
    assert conditions[-1]["lastTransitionTime"] == since


def test_a_job_that_loses_a_pod_waits_again_until_it_runs() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({"minAvailable": 2, "tasks": [task(replicas=3)]})
        rig.vanish("job-main-0")
        await rig.settle()
        assert rig.phase() == "Running"
        rig.vanish("job-main-1")
        await rig.settle()
        assert rig.phase() == "Pending"
        rig.run()
        await rig.settle()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Pending", "Running"]
    assert [entry["status"] for entry in rig.status()["conditions"]] == ["Pending", "Running"]


def test_a_pod_that_is_marked_out_of_sync_is_made_anew() -> None:
    async def scenario(rig: Rig) -> None:
        rules = [policy("*", "AbortJob")]
        await rig.started({"minAvailable": 2, "tasks": [task()], "policies": rules})
        before = uid(rig.pod("job-main-0"))
        mark = {"annotations": {"volcano.sh/controller-out-of-sync": "true"}}
        rig.change("job-main-0", {"metadata": mark})
        await rig.drain()
        assert uid(rig.pod("job-main-0")) != before

    rig = play(scenario)
    assert rig.phases[:2] == ["Pending", "Running"]
    assert not rig.events.messages("ExecuteAction")


def test_pods_of_an_earlier_job_of_that_name_are_not_the_jobs() -> None:
    async def scenario(rig: Rig) -> None:
        rules = [policy("*", "AbortJob")]
        await rig.started({"minAvailable": 2, "tasks": [task()], "policies": rules})
        theirs = rig.pod("job-main-1")
        metadata = {**theirs["metadata"], "name": "job-main-7", "uid": "theirs"}
        metadata["ownerReferences"] = [{**metadata["ownerReferences"][0], "uid": "earlier"}]
        rig.api.put(PODS, {**theirs, "metadata": metadata})
        rig.fail("job-main-7")
        await rig.settle()
        rig.vanish("job-main-7")
        await rig.settle()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running"]
    assert rig.status()["running"] == 2


def test_what_failed_before_a_job_was_resumed_is_answered_no_more() -> None:
    async def scenario(rig: Rig) -> None:
        rules = [policy("PodFailed", "AbortJob")]
        await rig.started({"minAvailable": 2, "tasks": [task()], "policies": rules})
        rig.fail("job-main-0")
        await rig.drain()
        assert rig.pods() == ["job-main-0"]
        rig.command("ResumeJob")
        await rig.drain()
        rig.run("job-main-1")
        await rig.settle()

    rig = play(scenario)
    assert rig.phases[2:] == ["Aborting", "Aborted", "Restarting", "Pending", "Running"]
    assert (rig.status()["failed"], rig.status()["running"]) == (1, 1)


def _two_tasks(*, second: str) -> dict[str, Any]:
    first = [policy(["PodEvicted", "PodFailed"], "RestartTask")]
    tasks = [
        task("a", 2, policies=first),
        task("b", 2, policies=[policy("PodEvicted", second)]),
    ]
    return {"minAvailable": 4, "tasks": tasks}


@pytest.mark.parametrize("happens", ["fail", "vanish"])
def test_two_things_that_happen_at_once_are_both_answered(happens: str) -> None:
    """The first answer's status no longer counts a pod that is gone: that was evicted too."""

    async def scenario(rig: Rig) -> None:
        await rig.started(_two_tasks(second="RestartTask"))
        before = {uid(rig.pod(pod)) for pod in rig.pods()}
        getattr(rig, happens)("job-a-0")
        rig.vanish("job-b-0")
        await rig.drain()
        assert not before & {uid(rig.pod(pod)) for pod in rig.pods()}

    rig = play(scenario)
    assert rig.status()["retryCount"] == 1, "the second comes while the job is restarting"


@pytest.mark.parametrize("leaves", range(1, 8))
@pytest.mark.parametrize("stays_for", range(3))
def test_a_pod_that_goes_while_another_is_answered_for_is_answered_for_too(
    leaves: int, stays_for: int
) -> None:
    """It is evicted just before the request of that number and gone so many later.

    The watch shows both at once.
    """

    async def scenario(rig: Rig) -> None:
        await rig.started(_two_tasks(second="RestartTask"))
        before = {uid(rig.pod(pod)) for pod in rig.pods()}
        requests = 0

        def observe(_request: Request) -> None:
            nonlocal requests
            requests += 1
            if requests == leaves:
                rig.evict("job-b-0")
            if requests == leaves + stays_for:
                rig.vanish("job-b-0")
            while rig.api.deliver():
                pass

        rig.api.observers.append(observe)
        rig.vanish("job-a-0")
        await rig.drain()
        assert requests >= leaves + stays_for
        assert not before & {uid(rig.pod(pod)) for pod in rig.pods()}

    play(scenario)


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_pod_that_goes_while_others_are_made_is_answered_for(is_gone: bool) -> None:
    """No status has counted it yet."""

    async def scenario(rig: Rig) -> None:
        requests = 0

        def observe(request: Request) -> None:
            nonlocal requests
            requests += request.resource is PODS and request.verb == "create"
            if requests == 5 and "job-main-0" in rig.pods():
                rig.run("job-main-0")
                rig.evict("job-main-0")
                if is_gone:
                    rig.vanish("job-main-0")
            while rig.api.deliver():
                pass

        rig.api.observers.append(observe)
        rules = [policy("PodEvicted", "AbortJob")]
        await rig.started({"minAvailable": 2, "tasks": [task(replicas=40)], "policies": rules})
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() == "Aborted"
    assert rig.api.created[PODS, "job-main-0"] == 1


def test_a_pod_that_goes_before_its_status_is_known_to_be_written_is_answered_for() -> None:
    """The write is done and its answer lost, and the watch of jobs lags."""

    async def scenario(rig: Rig) -> None:
        rig.admits = False
        rig.start()
        rules = [policy("PodEvicted", "AbortJob")]
        rig.submit({"minAvailable": 2, "tasks": [task()], "policies": rules})
        await rig.settle()
        rig.hide(JOBS)
        rig.api.fail(Failure.PASSING, lambda request: request.resource is JOBS, after=True)
        rig.admit()
        await rig.settle()
        assert rig.status()["pending"] == 2
        rig.vanish("job-main-0")
        await rig.later(1)
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() in {"Aborting", "Aborted"}
    assert rig.api.created[PODS, "job-main-0"] == 1


def test_what_concerns_the_whole_job_is_not_lost_behind_what_restarts_a_task() -> None:
    """While a job is restarting, AbortJob takes all its pods (volcano.md §5.1, the table)."""

    async def scenario(rig: Rig) -> None:
        await rig.started(_two_tasks(second="AbortJob"))
        before = {uid(rig.pod(pod)) for pod in rig.pods()}
        rig.fail("job-a-0")
        rig.vanish("job-b-0")
        await rig.drain()
        assert not before & {uid(rig.pod(pod)) for pod in rig.pods()}

    assert play(scenario).status()["version"] == 1


def test_evictions_that_one_answer_covers_are_answered_once() -> None:
    async def scenario(rig: Rig) -> None:
        policies = [policy("PodEvicted", "RestartTask")]
        await rig.started({"tasks": [task("a", 3)], "policies": policies})
        rig.vanish("job-a-0", "job-a-2")
        await rig.drain()

    rig = play(scenario)
    assert rig.status()["retryCount"] == 1
    assert set(rig.api.created.values()) >= {2}
