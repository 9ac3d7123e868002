"""CronJobs: starts, what may run beside what, what is kept, and what users are told."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.cronjob.controller import INDEXES, CronJobController
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire import times
from app.wire.kinds import CRON_JOBS, JOBS
from app.wire.unstructured import Key, Object, name, spec, uid
from tests.controllers import play
from tests.controllers.fake_api import Request
from tests.controllers.play import Play, item
from tests.scale import examples
from tests.service import virtual_time

CRON = Key("ns", "cron")
MINUTE = 60.0
FIRST = (virtual_time.START // 60 + 1) * 60
"""The first full minute after the beginning."""


def build(stage: Play) -> list[Controller]:
    return [CronJobController(stage.stores, api=stage.api, events=stage.events, clock=stage.clock)]


def run(scenario: Callable[[Play], Awaitable[None]]) -> Play:
    return play.run(scenario, follows=INDEXES, build=build)


def submit(stage: Play, schedule: str = "* * * * *", **fields: Any) -> Object:
    template = {
        "metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}},
        "spec": {"minAvailable": 1, "tasks": [{"name": "t"}]},
    }
    return stage.fake.put(
        CRON_JOBS,
        item(
            CRON_JOBS,
            "cron",
            spec={
                "schedule": schedule,
                "jobTemplate": template,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
                **fields,
            },
        ),
    )


def job_name(minute: int) -> str:
    """The job of the start so many minutes after the first."""
    return f"cron-{int(FIRST // 60) + minute}"


async def finish(stage: Play, job: str, phase: str = "Completed") -> None:
    state = {"phase": phase, "lastTransitionTime": times.seconds(stage.clock())}
    stage.fake.edit(JOBS, Key("ns", job), {"status": {"state": state}})
    await stage.settle()


def status(stage: Play) -> Object:
    found: Object = stage.stored(CRON_JOBS, CRON).get("status") or {}
    return found


def active(stage: Play) -> list[str]:
    return [reference["name"] for reference in status(stage).get("active", [])]


def test_a_job_is_made_at_its_time_and_looks_like_the_template() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        cron_job = submit(stage)
        await stage.until(FIRST - 1)
        assert stage.names(JOBS) == []
        await stage.until(FIRST + 1)

        (job,) = stage.fake.all(JOBS)
        assert name(job) == job_name(0)
        assert spec(job) == {"minAvailable": 1, "tasks": [{"name": "t"}]}
        metadata = job["metadata"]
        assert metadata["labels"] == {"l": "1"}
        assert metadata["annotations"] == {
            "a": "2",
            "volcano.sh/cronjob-scheduled-timestamp": times.seconds(FIRST),
        }
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": CRON_JOBS.api_version,
                "kind": "CronJob",
                "name": "cron",
                "uid": uid(cron_job),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        (reference,) = status(stage)["active"]
        assert reference.pop("resourceVersion").isdecimal()
        assert reference == {
            "apiVersion": JOBS.api_version,
            "kind": "Job",
            "namespace": "ns",
            "name": job_name(0),
            "uid": uid(job),
        }
        assert status(stage)["lastScheduleTime"] == times.seconds(FIRST)

    assert run(scenario).told.messages("SuccessfulCreate") == [f"Created job {job_name(0)}"]


def test_the_time_stamp_is_in_the_time_zone() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, timeZone="Asia/Tokyo")
        await stage.until(FIRST + 1)
        (job,) = stage.fake.all(JOBS)
        stamp = job["metadata"]["annotations"]["volcano.sh/cronjob-scheduled-timestamp"]
        assert stamp.endswith("+09:00")
        assert times.parse(stamp) == FIRST

    run(scenario)


@pytest.mark.parametrize(
    ("policy", "jobs", "running"),
    [
        ("Allow", [0, 1, 2], [0, 1, 2]),
        ("Forbid", [0], [0]),
        ("Replace", [2], [2]),
    ],
)
def test_the_policy_says_what_runs_beside_what(
    policy: str, jobs: list[int], running: list[int]
) -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, concurrencyPolicy=policy)
        await stage.until(FIRST + 2 * MINUTE + 1)
        assert stage.names(JOBS) == [job_name(n) for n in jobs]
        assert active(stage) == [job_name(n) for n in running]

    warned = [reason for kind, reason, _ in run(scenario).told.told if kind == "Warning"]
    assert ("ForbidConcurrent" in warned) == (policy == "Forbid")
    assert warned.count("ReplaceConcurrent") == (2 if policy == "Replace" else 0)


def test_a_start_that_was_forbidden_is_made_when_the_job_before_it_ends() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, concurrencyPolicy="Forbid")
        await stage.until(FIRST + MINUTE + 10)
        await finish(stage, job_name(0))
        assert active(stage) == [job_name(1)]
        assert status(stage)["lastScheduleTime"] == times.seconds(FIRST + MINUTE)

    run(scenario)


def test_jobs_that_end_leave_the_list_and_the_last_success_is_noted() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage)
        await stage.until(FIRST + MINUTE + 10)
        await finish(stage, job_name(0))
        assert active(stage) == [job_name(1)]
        assert status(stage)["lastSuccessfulTime"] == times.seconds(stage.clock())
        before = stage.clock()
        await stage.later(5)
        await finish(stage, job_name(1), "Failed")
        assert active(stage) == []
        assert status(stage)["lastSuccessfulTime"] == times.seconds(before)

    assert run(scenario).told.messages("SawCompletedJob") == [
        f"Saw completed job: {job_name(0)}, condition: Completed",
        f"Saw completed job: {job_name(1)}, condition: Failed",
    ]


def test_the_oldest_finished_jobs_go_when_there_are_more_than_the_limits() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
        for minute in range(6):
            await stage.until(FIRST + minute * MINUTE + 1)
            await finish(stage, job_name(minute), "Terminated" if minute % 2 else "Completed")
        assert stage.names(JOBS) == [job_name(n) for n in (2, 4, 5)]

    assert run(scenario).reasons().count("SuccessfulDelete") == 3


def test_a_deletion_that_fails_is_told_of_and_tried_again() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, successfulJobsHistoryLimit=0)
        stage.fake.fail(Failure.PASSING, lambda r: r.verb == "delete", message="busy")
        await stage.until(FIRST + 1)
        await finish(stage, job_name(0))
        await stage.later(5)
        assert stage.names(JOBS) == []

    told = run(scenario).told
    assert told.messages("FailedDelete") == ["Deleted job: busy"]
    assert told.messages("SuccessfulDelete") == [f"Deleted job {job_name(0)}"]


def test_nothing_starts_while_it_is_suspended_and_only_the_latest_afterwards() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, suspend=True)
        await stage.until(FIRST + 3 * MINUTE + 1)
        assert stage.names(JOBS) == []
        stage.fake.edit(CRON_JOBS, CRON, {"spec": {"suspend": False}})
        await stage.settle()
        assert stage.names(JOBS) == [job_name(3)]

    run(scenario)


@pytest.mark.parametrize(
    ("schedule", "change"),
    [
        ("30 * * * *", {"schedule": "10 * * * *"}),
        ("30 0 * * *", {"timeZone": "Asia/Tokyo"}),
    ],
)
def test_a_schedule_that_is_changed_starts_nothing_for_the_time_before(
    schedule: str, change: dict[str, str]
) -> None:
    async def scenario(stage: Play) -> None:
        day = (virtual_time.START // 86400 + 1) * 86400
        submit(stage, schedule)
        await stage.later(day + 20 * 3600 - virtual_time.START)
        await stage.start()
        (before,) = stage.names(JOBS)
        await stage.later(1200)
        stage.fake.edit(CRON_JOBS, CRON, {"spec": change})
        await stage.later(120)
        assert stage.names(JOBS) == [before]
        await stage.until(day + 40 * 3600)
        assert len(stage.names(JOBS)) > 1

    run(scenario)


def test_a_start_older_than_its_deadline_is_lost_and_told_of_once() -> None:
    async def scenario(stage: Play) -> None:
        submit(stage, "0 * * * *", startingDeadlineSeconds=10)
        await stage.later(3600)
        await stage.start()
        stage.fake.edit(CRON_JOBS, CRON, {"metadata": {"labels": {"touched": "1"}}})
        await stage.settle()
        assert stage.names(JOBS) == []

    assert run(scenario).reasons() == ["MissSchedule"]


def test_many_missed_starts_are_one_start_and_a_warning() -> None:
    async def scenario(stage: Play) -> None:
        submit(stage)
        await stage.later(102 * MINUTE)
        await stage.start()
        assert len(stage.names(JOBS)) == 1

    assert run(scenario).reasons() == ["TooManyMissedTimes", "SuccessfulCreate"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"schedule": "bad"}, "UnParseableCronJobSchedule"),
        ({"schedule": "0 0 31 2 *"}, "InvalidSchedule"),
        ({"timeZone": "Mars/Base"}, "InvalidTimeZone"),
    ],
)
def test_a_schedule_that_means_nothing_is_told_of(fields: dict[str, str], reason: str) -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, **fields)
        await stage.until(FIRST + 10 * MINUTE)
        assert stage.names(JOBS) == []

    assert run(scenario).reasons() == [reason]


def test_a_zone_in_the_schedule_works_and_is_warned_of() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, "TZ=Asia/Tokyo * * * * *")
        await stage.until(FIRST + 1)
        assert stage.names(JOBS) == [job_name(0)]

    assert "UnsupportedSchedule" in run(scenario).reasons()


@pytest.mark.parametrize("after", [False, True], ids=["before it was done", "although it was done"])
def test_a_start_whose_creation_failed_is_made_once(after: bool) -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage)
        stage.fake.fail(Failure.PASSING, lambda request: request.verb == "create", after=after)
        await stage.until(FIRST + 10)
        assert stage.fake.created == {(JOBS, job_name(0)): 1}
        assert active(stage) == [job_name(0)]

    run(scenario)


def test_a_refused_start_is_told_of_and_tried_again() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, "0 * * * *")
        stage.fake.fail(
            Failure.REFUSED, lambda request: request.verb == "create", message="queue closed"
        )
        hour = (virtual_time.START // 3600 + 1) * 3600
        await stage.until(hour + 10)
        assert stage.names(JOBS) == []
        await stage.until(hour + 40)
        assert len(stage.names(JOBS)) == 1

    assert run(scenario).told.messages("FailedCreate") == ["Error creating job: queue closed"]


def test_a_start_that_a_quota_refuses_keeps_no_old_job_in_the_quota() -> None:
    async def scenario(stage: Play) -> None:
        def is_full(request: Request) -> bool:
            return request.verb == "create" and bool(stage.fake.all(JOBS))

        await stage.start()
        submit(stage, successfulJobsHistoryLimit=0)
        stage.fake.fail(Failure.REFUSED, is_full, times=100, message="exceeded quota")
        await stage.until(FIRST + MINUTE + 1)
        assert stage.names(JOBS) == [job_name(0)]
        await finish(stage, job_name(0))
        assert stage.names(JOBS) == active(stage) == [job_name(1)]

    assert "FailedCreate" in run(scenario).reasons()


@pytest.mark.parametrize("failure", [Failure.REFUSED, Failure.PASSING])
def test_what_has_ended_is_noted_while_starts_fail(failure: Failure) -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage)
        await stage.until(FIRST + 1)
        stage.fake.fail(failure, lambda request: request.verb == "create", times=100)
        await stage.until(FIRST + MINUTE + 1)
        await finish(stage, job_name(0))
        assert active(stage) == []
        assert status(stage)["lastSuccessfulTime"] == times.seconds(stage.clock())

    assert run(scenario).reasons().count("SawCompletedJob") == 1


def test_a_namespace_that_is_going_is_said_to_be() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage)
        message = "unable to create new content in namespace ns because it is being terminated"
        stage.fake.fail(Failure.REFUSED, lambda r: r.verb == "create", message=message)
        await stage.until(FIRST + 10)

    assert "NamespaceTerminating" in run(scenario).reasons()


def test_a_job_of_somebody_else_with_the_name_is_left_alone() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        stage.fake.put(JOBS, item(JOBS, job_name(0), spec={"mine": True}))
        submit(stage)
        await stage.until(FIRST + 1)
        assert spec(stage.stored(JOBS, Key("ns", job_name(0)))) == {"mine": True}
        assert active(stage) == []
        await stage.until(FIRST + MINUTE + 1)
        assert active(stage) == [job_name(1)]

    assert "ForeignJob" in run(scenario).reasons()


def test_a_job_that_exists_and_cannot_be_read_is_told_of_and_looked_at_again() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage)
        stage.fake.fail(Failure.EXISTS, lambda request: request.verb == "create")
        stage.fake.fail(
            Failure.PASSING,
            lambda request: (request.verb, request.resource) == ("get", JOBS),
            message="busy",
        )
        await stage.until(FIRST + 10)
        assert active(stage) == [job_name(0)]

    assert run(scenario).told.messages("FailedGet") == ["Get job: busy"]


def test_a_job_that_is_deleted_leaves_the_list() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage)
        await stage.until(FIRST + 1)
        stage.fake.remove(JOBS, Key("ns", job_name(0)))
        await stage.settle()
        assert active(stage) == []

    told = run(scenario).told.told
    assert ("Warning", "StaleReference") in [(kind, reason) for kind, reason, _ in told]


def test_a_controller_killed_between_the_job_and_the_note_goes_on() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, concurrencyPolicy="Forbid")
        stage.fake.fail(Failure.PASSING, lambda r: r.subresource == "status", times=100)
        await stage.until(FIRST + 1)
        await stage.kill()
        stage.fake.faults.clear()
        await stage.start()
        assert active(stage) == [job_name(0)]
        assert status(stage)["lastScheduleTime"] == times.seconds(FIRST)
        await stage.until(FIRST + MINUTE + 10)
        assert stage.fake.created == {(JOBS, job_name(0)): 1}

    run(scenario)


def test_a_job_put_under_a_cron_job_by_hand_is_told_of() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        cron_job = submit(stage, suspend=True)
        owner = {"controller": True, "uid": uid(cron_job), "kind": "CronJob", "name": "cron"}
        owner["apiVersion"] = CRON_JOBS.api_version
        stage.fake.put(JOBS, item(JOBS, "odd", metadata={"ownerReferences": [owner]}))
        await stage.settle()
        assert active(stage) == []

    assert run(scenario).reasons() == ["OrphanedJob"]


def test_a_cron_job_that_is_being_deleted_starts_nothing() -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage)
        gone = {"metadata": {"deletionTimestamp": times.seconds(stage.clock())}}
        stage.fake.edit(CRON_JOBS, CRON, gone)
        await stage.until(FIRST + MINUTE + 1)
        assert stage.names(JOBS) == []

    run(scenario)


def test_a_clock_that_is_set_is_heeded_within_a_minute() -> None:
    ahead = 0.0

    def set_clock(stage: Play) -> list[Controller]:
        clock = stage.clock
        return [
            CronJobController(
                stage.stores, api=stage.api, events=stage.events, clock=lambda: clock() + ahead
            )
        ]

    async def scenario(stage: Play) -> None:
        nonlocal ahead
        await stage.start()
        submit(stage, "0 0 1 1 *")
        await stage.later(3600)
        assert stage.names(JOBS) == []
        ahead = 366 * 86400.0
        await stage.later(60)
        assert len(stage.names(JOBS)) == 1

    play.run(scenario, follows=INDEXES, build=set_clock)


@examples(40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([Failure.PASSING, Failure.CONFLICT]), st.booleans(), st.booleans()
        ),
        max_size=12,
    ),
    st.sampled_from(["Allow", "Forbid", "Replace"]),
)
def test_whatever_fails_and_whoever_is_killed_each_start_is_made_once(
    faults: list[tuple[Failure, bool, bool]], policy: str
) -> None:
    async def scenario(stage: Play) -> None:
        await stage.start()
        submit(stage, concurrencyPolicy=policy)
        for number, (failure, after, kill) in enumerate(faults):
            at = len(stage.fake.requests) + number % 4
            stage.fake.fail(
                failure, partial(_is_later, stage, at), after=after and failure is Failure.PASSING
            )
            await stage.later(17)
            if kill:
                await stage.kill()
                await stage.start()
        stage.fake.faults.clear()
        await stage.later(MINUTE)
        assert all(count == 1 for count in stage.fake.created.values())
        there = [n for n in stage.names(JOBS) if n in {name for _, name in stage.fake.created}]
        assert active(stage) == there
        if policy != "Allow":
            assert len(there) == 1
        assert status(stage)["lastScheduleTime"] >= times.seconds(FIRST)

    run(scenario)


def _is_later(stage: Play, number: int, request: Request) -> bool:
    """Whether it is a request after the one of that number."""
    return len(stage.fake.requests) > number
