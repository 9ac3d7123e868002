"""JobFlows: order, patches, what is told, and what must not happen twice."""

import asyncio
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.jobflow.controller import JobFlowController
from app.controllers.ports import Failure
from app.controllers.runtime import ObjectChange
from app.controllers.store import Store
from app.wire import times
from app.wire.kinds import JOB_FLOWS, JOB_TEMPLATES, JOBS, Resource
from app.wire.unstructured import (
    Key,
    Object,
    annotations,
    controlled_by,
    key_of,
    labels,
    spec,
    uid,
)
from tests.controllers.fake_api import FakeApi, FakeEvents, Request
from tests.controllers.jobflow.flows import (
    FLOW,
    FOLLOWS,
    FakeProber,
    jobs,
    move,
    phase,
    run,
    status,
    step,
    submit,
    template,
)
from tests.controllers.play import Play, item
from tests.scale import examples
from tests.service.virtual_time import clock


async def start_a_then_b(stage: Play) -> None:
    """The controllers, and a flow of two steps: b once a is complete."""
    await stage.start()
    template(stage, "a", "b")
    submit(stage, step("a"), step("b", "a"))
    await stage.settle()


def test_each_job_is_made_when_its_targets_are_complete() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b", "c")
        submit(stage, step("a"), step("b", "a"), step("c", "a", "b"))
        await stage.settle()
        assert (jobs(stage), phase(stage)) == (["flow-a"], "Pending")
        await move(stage, "a", "Running")
        assert (jobs(stage), phase(stage)) == (["flow-a"], "Running")
        await move(stage, "a", "Completed")
        assert jobs(stage) == ["flow-a", "flow-b"]
        await move(stage, "b", "Completed")
        await move(stage, "c", "Running")
        assert status(stage)["completedJobs"] == ["flow-a", "flow-b"]
        assert status(stage)["runningJobs"] == ["flow-c"]
        await move(stage, "c", "Completed")
        assert phase(stage) == "Succeed"
        assert jobs(stage) == ["flow-a", "flow-b", "flow-c"]

    assert run(scenario).told.messages("Created") == [
        "create a job named flow-a!",
        "create a job named flow-b!",
        "create a job named flow-c!",
    ]


def test_a_job_is_its_template_with_the_patch_and_says_where_it_is_from() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        patch = {"queue": "q", "tasks": [{"name": "server", "replicas": 5}]}
        flow = submit(stage, step("a", patch=patch))
        await stage.settle()
        (job,) = stage.fake.all(JOBS)
        assert spec(job) == {
            "queue": "q",
            "tasks": [{"name": "server", "replicas": 5, "minAvailable": 1}, {"name": "client"}],
        }
        assert labels(job) == job["metadata"]["annotations"]
        assert labels(job) == {
            "volcano.sh/createdByJobTemplate": "ns.a",
            "volcano.sh/createdByJobFlow": "ns.flow",
        }
        assert job["metadata"]["ownerReferences"] == [controlled_by(flow)]
        assert stage.stored(JOB_TEMPLATES, Key("ns", "a"))["status"] == {
            "jobDependsOnList": ["flow-a"]
        }
        stage.fake.remove(JOBS, Key("ns", "flow-a"))
        stage.fake.remove(JOB_FLOWS, FLOW)
        await stage.settle()
        assert stage.stored(JOB_TEMPLATES, Key("ns", "a"))["status"] == {"jobDependsOnList": []}

    run(scenario)


def test_what_has_ended_is_told_while_a_job_cannot_be_made() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await start_a_then_b(stage)
        stage.fake.fail(Failure.PASSING, lambda request: request.verb == "create", times=100)
        await move(stage, "a", "Completed")
        assert status(stage)["completedJobs"] == ["flow-a"]
        stage.fake.faults.clear()
        await stage.later(10)
        assert jobs(stage) == ["flow-a", "flow-b"]

    run(scenario)


def test_a_flow_that_is_being_deleted_makes_no_more_jobs() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await start_a_then_b(stage)
        gone = {"metadata": {"deletionTimestamp": times.seconds(stage.clock())}}
        stage.fake.edit(JOB_FLOWS, FLOW, gone)
        await move(stage, "a", "Completed")
        assert jobs(stage) == ["flow-a"]

    run(scenario)


def test_a_job_that_is_being_deleted_is_made_anew_when_it_is_gone() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        submit(stage, step("a"))
        await stage.settle()
        await move(stage, "a", "Running")
        key = Key("ns", "flow-a")
        old = uid(stage.stored(JOBS, key))
        going = {"metadata": {"deletionTimestamp": times.seconds(stage.clock())}}
        stage.fake.edit(JOBS, key, going)
        await stage.later(1)
        assert status(stage)["runningJobs"] == []
        assert uid(stage.stored(JOBS, key)) == old
        stage.fake.remove(JOBS, key)
        await stage.later(10)
        assert uid(stage.stored(JOBS, key)) != old

    run(scenario)


def test_a_flow_whose_jobs_only_go_on_sends_nothing() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await start_a_then_b(stage)
        await move(stage, "a", "Running", running=1)
        before = len(stage.fake.requests)
        stage.fake.edit(JOBS, Key("ns", "flow-a"), {"status": {"running": 2}})
        await stage.later(60)
        assert stage.fake.requests[before:] == []

    run(scenario)


def test_a_flow_without_steps_stays_pending() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        submit(stage)
        await stage.settle()
        assert phase(stage) == "Pending"

    assert run(scenario).told.told == []


@pytest.mark.parametrize(("length", "fits"), [(63, True), (64, False)])
def test_an_origin_too_long_for_a_label_is_an_annotation_alone(length: int, fits: bool) -> None:
    long = "t" * (length - len("ns."))

    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, long)
        submit(stage, step(long))
        await stage.settle()
        (job,) = stage.fake.all(JOBS)
        by_template = {"volcano.sh/createdByJobTemplate": f"ns.{long}"}
        by_flow = {"volcano.sh/createdByJobFlow": "ns.flow"}
        assert annotations(job) == by_template | by_flow
        assert labels(job) == (by_template if fits else {}) | by_flow
        told = stage.stored(JOB_TEMPLATES, Key("ns", long))["status"]["jobDependsOnList"]
        assert told == [f"flow-{long}"]

    run(scenario)


@pytest.mark.parametrize("end", ["Failed", "Terminated"])
def test_a_job_that_fails_fails_the_flow_and_nothing_follows(end: str) -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b", "c")
        submit(stage, step("a"), step("b"), step("c", "a"))
        await stage.settle()
        await move(stage, "b", end)
        await move(stage, "a", "Completed")
        assert phase(stage) == "Failed"
        assert jobs(stage) == ["flow-a", "flow-b"]
        assert status(stage)["failedJobs" if end == "Failed" else "terminatedJobs"] == ["flow-b"]

    run(scenario)


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        ([step("a", "b"), step("b", "a")], "jobflow Flow is not DAG: a cycle holds a, b"),
        ([step("a", "a")], "jobflow Flow is not DAG: a cycle holds a"),
        ([step("a", "x")], "jobflow Flow is not DAG: vertex is not defined: x"),
        ([step("a"), step("b", "a"), step("a", "b")], "a cycle holds"),
    ],
)
def test_a_flow_that_cannot_end_is_refused(flows: Sequence[Object], message: str) -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b")
        submit(stage, *flows)
        await stage.settle()
        assert jobs(stage) == []
        assert phase(stage) == "Failed"

    (said,) = run(scenario).told.messages("InvalidJobFlow")
    assert message in said


def test_a_flow_waits_for_its_template_and_says_so_once() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        submit(stage, step("a"))
        await stage.later(60)
        assert jobs(stage) == []
        template(stage, "a")
        await stage.settle()
        assert jobs(stage) == ["flow-a"]

    assert run(scenario).told.messages("FailedCreate") == ["there is no JobTemplate a"]


def test_a_flow_that_is_applied_together_with_its_template_is_not_warned_of() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        submit(stage, step("a"))
        await stage.later(1)
        template(stage, "a")
        await stage.settle()
        assert jobs(stage) == ["flow-a"]

    assert run(scenario).told.messages("FailedCreate") == []


def test_jobs_go_when_all_have_succeeded_if_they_are_not_to_be_kept() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        submit(stage, step("a"), jobRetainPolicy="delete")
        await stage.settle()
        await move(stage, "a", "Completed")
        assert jobs(stage) == []
        assert phase(stage) == "Succeed"
        assert status(stage)["completedJobs"] == ["flow-a"]

    run(scenario)


def test_a_step_that_is_done_is_not_repeated_when_its_job_is_deleted() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await start_a_then_b(stage)
        await move(stage, "a", "Completed")
        stage.fake.remove(JOBS, Key("ns", "flow-a"))
        await stage.settle()
        assert jobs(stage) == ["flow-b"]
        await stage.kill()
        await stage.start()
        assert jobs(stage) == ["flow-b"]
        await move(stage, "b", "Completed")
        assert phase(stage) == "Succeed"

    run(scenario)


@pytest.mark.parametrize("end", ["Completed", "Failed"])
def test_a_job_that_goes_before_its_end_is_noted_is_not_made_again(end: str) -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await start_a_then_b(stage)
        stage.fake.fail(Failure.CONFLICT, lambda request: request.verb == "update", times=99)
        await move(stage, "a", end)
        stage.fake.remove(JOBS, Key("ns", "flow-a"))
        await stage.later(1)
        stage.fake.faults.clear()
        await stage.later(10)
        assert stage.fake.created[JOBS, "flow-a"] == 1
        assert jobs(stage) == (["flow-b"] if end == "Completed" else [])
        assert status(stage)["completedJobs" if end == "Completed" else "failedJobs"] == ["flow-a"]

    run(scenario)


def test_a_job_that_is_being_deleted_after_its_end_is_not_made_again() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await start_a_then_b(stage)
        await stage.kill()
        key = Key("ns", "flow-a")
        now = times.seconds(stage.clock())
        going = {"deletionTimestamp": now}
        ended = {"state": {"phase": "Completed", "lastTransitionTime": now}}
        stage.fake.edit(JOBS, key, {"metadata": going, "status": ended})
        await stage.start()
        stage.fake.remove(JOBS, key)
        await stage.later(10)
        assert jobs(stage) == ["flow-b"]
        assert status(stage)["completedJobs"] == ["flow-a"]

    run(scenario)


def test_a_note_that_the_watch_has_not_shown_yet_is_known() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await start_a_then_b(stage)
        stage.fake.lagging.add(JOB_FLOWS)
        await move(stage, "a", "Completed")
        stage.fake.remove(JOBS, Key("ns", "flow-a"))
        await stage.later(10)
        stage.fake.lagging.clear()
        await stage.later(10)
        assert stage.fake.created[JOBS, "flow-a"] == 1
        assert jobs(stage) == ["flow-b"]

    run(scenario)


def test_an_older_note_that_the_watch_shows_late_tells_nothing() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await start_a_then_b(stage)
        stage.fake.lagging.add(JOB_FLOWS)
        await move(stage, "a", "Running")
        await move(stage, "a", "Completed")
        stage.fake.remove(JOBS, Key("ns", "flow-a"))
        await stage.later(10)
        stage.fake.lagging.clear()
        for _turn in range(10):
            stage.fake.deliver(1)
            await asyncio.sleep(1)
        assert not stage.fake.deliver()
        assert stage.fake.created[JOBS, "flow-a"] == 1
        assert jobs(stage) == ["flow-b"]

    run(scenario)


def test_a_step_that_is_added_after_the_end_does_not_run_and_is_told_of_once() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b")
        submit(stage, step("a"))
        await stage.settle()
        await move(stage, "a", "Completed")
        assert phase(stage) == "Succeed"
        for replicas in (1, 2):
            patched = step("b", patch={"jobSpec": {"minAvailable": replicas}})
            stage.fake.edit(JOB_FLOWS, FLOW, {"spec": {"flows": [step("a"), patched]}})
            await stage.settle()
        assert jobs(stage) == ["flow-a"]
        assert stage.told.messages("FlowIgnored") == [
            "b does not run: the JobFlow has ended, create another one for it"
        ]

    run(scenario)


def test_a_step_that_is_taken_out_counts_no_more() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b")
        submit(stage, step("a"), step("b"))
        await stage.settle()
        await move(stage, "b", "Completed")
        stage.fake.edit(JOB_FLOWS, FLOW, {"spec": {"flows": [step("a")]}})
        await stage.settle()
        assert phase(stage) == "Running"
        await move(stage, "a", "Completed")
        assert phase(stage) == "Succeed"
        assert status(stage)["completedJobs"] == ["flow-a"]

    run(scenario)


def test_a_job_that_was_deleted_unfinished_is_made_again() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        submit(stage, step("a"))
        await stage.settle()
        await move(stage, "a", "Running")
        stage.fake.remove(JOBS, Key("ns", "flow-a"))
        await stage.settle()
        assert jobs(stage) == ["flow-a"]
        assert status(stage)["pendingJobs"] == ["flow-a"]

    run(scenario)


@pytest.mark.parametrize("after", [False, True], ids=["before it was done", "although it was done"])
def test_a_job_whose_creation_failed_is_made_once(after: bool) -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        stage.fake.fail(Failure.PASSING, lambda request: request.verb == "create", after=after)
        submit(stage, step("a"))
        await stage.later(5)
        assert stage.fake.created == {(JOBS, "flow-a"): 1}
        assert status(stage)["pendingJobs"] == ["flow-a"]

    run(scenario)


def test_a_refused_job_is_told_of_once_and_tried_again() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        stage.fake.fail(
            Failure.REFUSED, lambda request: request.verb == "create", times=3, message="closed"
        )
        submit(stage, step("a"))
        await stage.later(29)
        assert jobs(stage) == []
        await stage.later(61)
        assert jobs(stage) == ["flow-a"]

    assert run(scenario).told.messages("FailedCreate") == [
        "cannot create a job named flow-a: closed"
    ]


def test_a_job_of_somebody_else_with_the_name_is_left_alone() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        stage.fake.put(JOBS, item(JOBS, "flow-a", spec={"mine": True}))
        submit(stage, step("a"))
        await stage.settle()
        assert spec(stage.stored(JOBS, Key("ns", "flow-a"))) == {"mine": True}

    assert run(scenario).told.messages("FailedCreate") == [
        "job flow-a does not belong to this JobFlow"
    ]


@examples(40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([Failure.PASSING, Failure.CONFLICT]), st.booleans(), st.booleans()
        ),
        max_size=12,
    )
)
def test_whatever_fails_and_whoever_is_killed_each_job_is_made_once(
    faults: list[tuple[Failure, bool, bool]],
) -> None:
    async def scenario(stage: Play, prober: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b", "c", "d")
        submit(stage, step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
        for number, (failure, after, kill) in enumerate(faults):
            at = len(stage.fake.requests) + number % 4
            stage.fake.fail(
                failure, partial(_is_later, stage, at), after=after and failure is Failure.PASSING
            )
            await stage.later(1)
            if kill:
                await stage.kill()
                await stage.start()
            if number % 2:
                await _complete(stage)
        stage.fake.faults.clear()
        for _ in range(5):
            await stage.later(10)
            await _complete(stage)
        assert {name: count for (_, name), count in stage.fake.created.items()} == {
            f"flow-{name}": 1 for name in "abcd"
        }
        assert phase(stage) == "Succeed"
        assert status(stage)["completedJobs"] == jobs(stage)

    run(scenario)


async def _complete(stage: Play) -> None:
    for job in jobs(stage):
        await move(stage, job.removeprefix("flow-"), "Completed")


def _is_later(stage: Play, number: int, request: Request) -> bool:
    """Whether it is a request after the one of that number."""
    return len(stage.fake.requests) > number


class Ended(dict[str, Any]):
    """A job, of which one can tell whether anybody keeps it."""


@pytest.mark.parametrize("first", [JOBS, JOB_FLOWS], ids=["the job", "the flow"])
def test_who_does_not_lead_keeps_no_jobs_of_flows_that_are_gone(first: Resource) -> None:
    stores = {kind: Store(indexes) for kind, indexes in FOLLOWS.items()}
    controller = JobFlowController(
        stores, api=FakeApi(clock), events=FakeEvents(), prober=FakeProber(), clock=clock
    )
    flow = item(JOB_FLOWS, "flow", metadata={"uid": "flow"})
    owned = {"uid": "job", "ownerReferences": [controlled_by(flow)]}
    job = Ended(item(JOBS, "flow-a", metadata=owned, status={"state": {"phase": "Completed"}}))
    kept = weakref.ref(job)

    gone: dict[Resource, Object] = {JOBS: job, JOB_FLOWS: flow}
    for resource, each in gone.items():
        stores[resource].put(each)
    for resource in sorted(gone, key=lambda kind: kind is not first):
        stores[resource].drop(key_of(gone[resource]))
        assert controller.keys(ObjectChange(resource, gone[resource], None)) == (FLOW,)
    del job, each, gone

    assert kept() is None
