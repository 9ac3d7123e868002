"""What becomes of requests for pods that fail, and of pods that are in the way."""

import math

import pytest

from app.controllers.job.patience import patience_s
from app.controllers.job.pod_writer import texts_of
from app.controllers.ports import ApiError, Failure
from app.wire.kinds import JOBS, PODS
from app.wire.unstructured import Key, Object, controlled_by
from tests.controllers.job.jobs import make_job
from tests.controllers.job.rig import NAMESPACE, Rig, creates_group, creates_pod, play, task

_GANG = {"minAvailable": 2, "tasks": [task()]}
_LAST = "job-main-29"


def test_a_failed_create_is_seen_and_tried_again() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.fail(Failure.PASSING, creates_pod, times=4, message="try later")
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        assert rig.status()["state"]["reason"] == "FailedCreate"
        assert rig.status()["state"]["message"] == "Error creating pods: try later"
        await rig.later(1)

    rig = play(scenario)
    assert len(rig.pods()) == 2
    assert rig.status()["pending"] == 2
    assert "reason" not in rig.status()["state"]
    assert set(rig.events.messages("FailedCreate")) == {"Error creating pods: try later"}


def test_of_many_errors_the_first_are_told() -> None:
    errors = [ApiError(Failure.PASSING, f"e{number % 5}") for number in range(20)]
    assert texts_of(errors) == "e0; e1; e2; and 2 more"
    assert texts_of(errors[:2]) == "e0; e1"


def test_a_pod_that_was_made_although_the_request_failed_is_taken_over() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.fail(Failure.PASSING, creates_pod, times=2, after=True)
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        await rig.later(1)

    rig = play(scenario)
    assert rig.status()["pending"] == 2
    assert "reason" not in rig.status()["state"]


def test_a_pod_of_somebody_else_is_not_taken_over() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.put(PODS, {"metadata": {"name": "job-main-0", "namespace": NAMESPACE}, "spec": {}})
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        assert rig.status()["pending"] == 1
        assert "already exists" in rig.status()["state"]["message"]
        rig.vanish("job-main-0")
        await rig.later(1)

    rig = play(scenario)
    assert rig.status()["pending"] == 2


def _recreated(rig: Rig) -> None:
    """The job is deleted and applied again: its pods take a while to go."""
    pods = rig.api.all(PODS)
    rig.api.remove(JOBS, Key(NAMESPACE, "job"))
    for pod in pods:
        going = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        rig.api.put(PODS, {**pod, "metadata": going})
    rig.submit(_GANG)


def test_a_job_that_is_applied_again_waits_for_the_pods_of_the_earlier_one() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        _recreated(rig)
        await rig.settle()
        await rig.later(60)
        text = (
            "2 pods wait to be created until those of an earlier job of this name are gone:"
            " job-main-0, job-main-1"
        )
        assert rig.status()["state"]["reason"] == "EarlierPods"
        assert rig.status()["state"]["message"] == text
        assert rig.events.messages("EarlierPods") == [text]
        asked = [request for request in rig.api.requests if request.resource == PODS]
        await rig.later(60)
        assert [request for request in rig.api.requests if request.resource == PODS] == asked
        rig.vanish("job-main-1")
        await rig.settle()
        assert rig.status()["pending"] == 1
        rig.vanish("job-main-0")
        await rig.settle()

    rig = play(scenario)
    assert rig.status()["pending"] == 2
    assert "reason" not in rig.status()["state"]
    assert rig.events.messages("FailedCreate") == []
    assert len(rig.events.messages("EarlierPods")) == 1


def _pod_of(job: str) -> Object:
    """A pod with the name of one that the job makes, of a job of that name and another UID."""
    owner = {**controlled_by(make_job({}).item), "name": job, "uid": "earlier"}
    metadata = {"name": "job-main-0", "namespace": NAMESPACE, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {}}


def test_pods_of_an_earlier_job_that_the_watch_does_not_show_are_waited_for_too() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.hide(PODS)
        rig.api.put(PODS, _pod_of("job"))
        rig.submit(_GANG)
        await rig.settle()
        assert rig.status()["state"]["reason"] == "EarlierPods"
        rig.vanish("job-main-0")
        await rig.later(4)
        assert rig.status()["pending"] == 2

    rig = play(scenario)
    assert rig.events.messages("FailedCreate") == []


def test_a_pod_of_a_job_of_another_name_is_no_pod_of_an_earlier_one() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.put(PODS, _pod_of("other"))
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        assert rig.status()["state"]["reason"] == "FailedCreate"

    assert play(scenario).events.messages("EarlierPods") == []


def test_what_is_refused_for_good_ends_the_job_after_a_while() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.fail(Failure.REFUSED, creates_pod, times=1000, message="quota")
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        await rig.later(100)

    rig = play(scenario, max_requeues=5)
    assert rig.phases == ["Pending", "Terminating", "Terminated"]
    text = "Job failed on action SyncJob for retry limit reached"
    assert rig.events.messages("ExecuteAction") == [text]


def test_a_job_whose_pods_change_often_is_not_ended_sooner_by_what_is_refused() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.fail(Failure.REFUSED, lambda r: creates_pod(r) and r.key.name == _LAST, times=1000)
        rig.start()
        rig.submit({"minAvailable": 2, "tasks": [task(replicas=30)]})
        await rig.settle()
        for pod in rig.pods():
            rig.run(pod)
            await rig.settle()
        await rig.later(160)
        assert rig.phase() == "Running"
        assert rig.status()["running"] == 29
        await rig.later(20)
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running", "Terminating", "Terminated"]


def test_a_job_that_is_resumed_is_given_the_whole_time_again() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.fail(Failure.REFUSED, creates_group, times=1000)
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        await rig.later(100)
        rig.command("AbortJob")
        await rig.settle()
        await rig.later(100)
        rig.command("ResumeJob", name="again")
        await rig.settle()
        await rig.later(100)

    assert play(scenario).phases[-1] == "Pending"


def test_a_job_is_refused_as_long_as_repeats_take_in_volcano_before_it_is_ended() -> None:
    assert patience_s(0) == 0.0
    assert patience_s(2) == pytest.approx(0.015)
    assert patience_s(15) == pytest.approx(163.835)
    assert patience_s(20) == pytest.approx(patience_s(18) + 2000.0)
    assert patience_s(-1) == math.inf


@pytest.mark.parametrize("failure", [Failure.REFUSED, Failure.PASSING])
def test_other_failures_and_unlimited_requeues_never_end_it(failure: Failure) -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.fail(failure, creates_pod, times=60)
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        await rig.later(400)

    rig = play(scenario, max_requeues=-1 if failure is Failure.REFUSED else 5)
    assert rig.phases == ["Pending"]
    assert rig.status()["pending"] == 2


def test_a_pod_that_cannot_be_deleted_is_told_and_tried_again() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        rig.api.fail(Failure.PASSING, lambda r: (r.verb, r.resource) == ("delete", PODS))
        rig.command("AbortJob")
        await rig.settle()
        await rig.later(1)
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() == "Aborted"
    assert rig.events.messages("FailedDelete") == ["Error deleting pods: no"]
