"""JobFlows: order, probes, patches, what is told, and what must not happen twice."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.controllers.jobflow import templates
from app.controllers.jobflow.controller import INDEXES, JobFlowController
from app.controllers.jobflow.probes import Address, Why
from app.controllers.jobflow.templates import JobTemplateController
from app.controllers.ports import Failure
from app.controllers.runtime import Controller
from app.wire import times
from app.wire.kinds import JOB_FLOWS, JOB_TEMPLATES, JOBS, PODS
from app.wire.unstructured import Key, Object, annotations, controlled_by, labels, spec
from tests.controllers import play
from tests.controllers.fake_api import Request
from tests.controllers.play import Play, item
from tests.service import virtual_time

FLOW = Key("ns", "flow")
FOLLOWS = {
    **INDEXES,
    JOB_TEMPLATES: {},
    JOBS: {**INDEXES[JOBS], **templates.INDEXES[JOBS]},
}


class FakeProber:
    """Answers what the test says."""

    def __init__(self) -> None:
        self.good: set[str] = set()
        self.asked: list[tuple[str, str]] = []

    async def http(self, at: Address, path: str, headers: Mapping[str, str]) -> Why:
        self.asked.append(("http", f"{at.host}:{at.port}{path} {dict(headers)}"))
        return "" if at.host in self.good else "HTTP 503"

    async def tcp(self, at: Address) -> Why:
        self.asked.append(("tcp", f"{at.host}:{at.port}"))
        return "" if at.host in self.good else "refused"


def run(scenario: Callable[[Play, FakeProber], Awaitable[None]]) -> Play:
    prober = FakeProber()

    def build(stage: Play) -> list[Controller]:
        return [
            JobFlowController(
                stage.stores,
                api=stage.api,
                events=stage.events,
                prober=prober,
                clock=stage.clock,
            ),
            JobTemplateController(stage.stores, api=stage.api),
        ]

    return play.run(lambda stage: scenario(stage, prober), follows=FOLLOWS, build=build)


def template(stage: Play, *names: str) -> None:
    for each in names:
        tasks = [{"name": "server", "replicas": 2, "minAvailable": 1}, {"name": "client"}]
        stage.fake.put(JOB_TEMPLATES, item(JOB_TEMPLATES, each, spec={"tasks": tasks}))


def step(name: str, *targets: str, probe: Any = None, patch: Any = None) -> Object:
    made: Object = {"name": name}
    if targets:
        made["dependsOn"] = {"targets": list(targets)}
    if probe:
        made["dependsOn"]["probe"] = probe
    if patch:
        made["patch"] = {"jobSpec": patch}
    return made


def submit(stage: Play, *flows: Object, **fields: Any) -> Object:
    return stage.fake.put(JOB_FLOWS, item(JOB_FLOWS, "flow", spec={"flows": list(flows), **fields}))


async def move(stage: Play, job: str, phase: str, **more: Any) -> None:
    state = {"phase": phase, "lastTransitionTime": times.seconds(stage.clock())}
    stage.fake.edit(JOBS, Key("ns", f"flow-{job}"), {"status": {"state": state, **more}})
    await stage.settle()


def status(stage: Play) -> Object:
    found: Object = stage.stored(JOB_FLOWS, FLOW).get("status") or {}
    return found


def phase(stage: Play) -> str:
    return str(status(stage)["state"]["phase"])


def jobs(stage: Play) -> list[str]:
    return stage.names(JOBS)


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


def test_the_status_tells_the_history_of_each_job() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a")
        submit(stage, step("a"))
        await stage.settle()
        start = times.seconds(stage.clock())
        await stage.later(10)
        await move(stage, "a", "Running", retryCount=2)
        middle = times.seconds(stage.clock())
        await stage.later(10)
        counts = {"server": {"phase": {"Succeeded": 2}}}
        await move(stage, "a", "Completed", taskStatusCount=counts, runningDuration="10s")
        end = times.seconds(stage.clock())
        assert status(stage)["jobStatusList"] == [
            {
                "name": "flow-a",
                "state": "Completed",
                "startTimestamp": start,
                "endTimestamp": end,
                "restartCount": 2,
                "runningHistories": [
                    {"state": "Pending", "startTimestamp": start, "endTimestamp": middle},
                    {"state": "Running", "startTimestamp": middle, "endTimestamp": end},
                    {"state": "Completed", "startTimestamp": end},
                ],
            }
        ]
        assert status(stage)["conditions"] == {
            "flow-a": {
                "phase": "Completed",
                "createTime": start,
                "runningDuration": "10s",
                "taskStatusCount": counts,
            }
        }

    run(scenario)


@pytest.mark.parametrize(
    ("job", "listed", "ended", "flow"),
    [
        ("", "pendingJobs", False, "Pending"),
        ("Pending", "pendingJobs", False, "Pending"),
        ("Running", "runningJobs", False, "Running"),
        ("Restarting", "unKnowJobs", False, "Pending"),
        ("Completing", "unKnowJobs", False, "Pending"),
        ("Completed", "completedJobs", True, "Running"),
        ("Aborting", "unKnowJobs", False, "Pending"),
        ("Aborted", "unKnowJobs", True, "Pending"),
        ("Terminating", "unKnowJobs", False, "Pending"),
        ("Terminated", "terminatedJobs", True, "Failed"),
        ("Failed", "failedJobs", True, "Failed"),
    ],
)
def test_each_phase_of_a_job_has_its_list(job: str, listed: str, ended: bool, flow: str) -> None:
    lists = ("pendingJobs", "runningJobs", "completedJobs", "failedJobs", "terminatedJobs")

    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b", "c")
        submit(stage, step("a"), step("b"), step("c", "a", "b"))
        await stage.settle()
        await move(stage, "b", "Pending")
        await move(stage, "a", job)
        said = status(stage)
        found = {each: said[each] for each in (*lists, "unKnowJobs") if said[each]}
        expected = {"pendingJobs": ["flow-b"]}
        expected[listed] = ["flow-a", *expected.get(listed, [])]
        assert found == expected
        (entry, _other) = said["jobStatusList"]
        assert ("endTimestamp" in entry) == ended
        assert said["state"]["phase"] == flow

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
        await stage.start()
        template(stage, "a", "b")
        submit(stage, step("a"), step("b", "a"))
        await stage.settle()
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


def pod(stage: Play, name: str, task: str, ip: str) -> None:
    job = stage.stored(JOBS, Key("ns", "flow-a"))
    metadata = {"labels": {"volcano.sh/task-spec": task}, "ownerReferences": [controlled_by(job)]}
    stage.fake.put(PODS, item(PODS, name, metadata=metadata, spec={}, status={"podIP": ip}))


@pytest.mark.parametrize(
    ("probe", "asked"),
    [
        (
            {
                "httpGetList": [
                    {
                        "taskName": "server",
                        "path": "ok",
                        "port": 8080,
                        "httpHeader": {"name": "n", "value": "v"},
                    }
                ]
            },
            [("http", "10.0.0.1:8080/ok {'n': 'v'}"), ("http", "10.0.0.2:8080/ok {'n': 'v'}")],
        ),
        (
            {"tcpSocketList": [{"taskName": "server", "port": 22}]},
            [("tcp", "10.0.0.1:22"), ("tcp", "10.0.0.2:22")],
        ),
    ],
)
def test_a_step_starts_when_enough_pods_answer(
    probe: Object, asked: Sequence[tuple[str, str]]
) -> None:
    async def scenario(stage: Play, prober: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b")
        submit(stage, step("a"), step("b", "a", probe=probe))
        await stage.settle()
        await move(stage, "a", "Running")
        await stage.later(11)
        assert prober.asked == []
        pod(stage, "p1", "server", "10.0.0.1")
        pod(stage, "p2", "server", "10.0.0.2")
        pod(stage, "p3", "client", "10.0.0.3")
        await stage.settle()
        await stage.later(5)
        assert prober.asked == asked
        assert jobs(stage) == ["flow-a"]
        prober.good.add("10.0.0.2")
        await stage.later(5)
        assert jobs(stage) == ["flow-a", "flow-b"]

    said = run(scenario).told.messages("ProbeFailed")
    assert said[0] == "b waits: task server of flow-a: 0 of 1 pods answer (no pod has an address)"
    assert len(said) == 2


def test_a_step_starts_when_enough_pods_are_in_the_phase() -> None:
    async def scenario(stage: Play, prober: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b")
        probe = {"taskStatusList": [{"taskName": "server", "phase": "Running"}]}
        submit(stage, step("a"), step("b", "a", probe=probe))
        await stage.settle()
        await move(stage, "a", "Running", taskStatusCount={"server": {"phase": {"Pending": 2}}})
        assert jobs(stage) == ["flow-a"]
        counts = {"server": {"phase": {"Pending": 1, "Running": 1}}}
        await move(stage, "a", "Running", taskStatusCount=counts)
        assert jobs(stage) == ["flow-a", "flow-b"]
        assert prober.asked == []

    run(scenario)


def test_a_target_that_is_complete_needs_no_probe() -> None:
    async def scenario(stage: Play, prober: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b")
        submit(stage, step("a"), step("b", "a", probe={"tcpSocketList": [{"port": 22}]}))
        await stage.settle()
        asked = len(prober.asked)
        await move(stage, "a", "Completed")
        assert jobs(stage) == ["flow-a", "flow-b"]
        assert len(prober.asked) == asked

    run(scenario)


def test_a_probe_of_a_task_that_no_target_has_is_told_of() -> None:
    async def scenario(stage: Play, _: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b")
        probe = {"tcpSocketList": [{"taskName": "nobody", "port": 22}]}
        submit(stage, step("a"), step("b", "a", probe=probe))
        await stage.later(30)
        assert jobs(stage) == ["flow-a"]

    assert run(scenario).told.messages("FailedCreate") == ["no target of b has a task nobody"]


def test_pods_are_not_asked_more_often_because_their_job_changes() -> None:
    async def scenario(stage: Play, prober: FakeProber) -> None:
        await stage.start()
        template(stage, "a", "b")
        submit(stage, step("a"), step("b", "a", probe={"tcpSocketList": [{"port": 22}]}))
        await stage.settle()
        pod(stage, "p1", "server", "10.0.0.1")
        pod(stage, "p2", "client", "10.0.0.2")
        for count in range(100):
            await move(stage, "a", "Running", running=count)
            await stage.later(0.1)
        assert len(prober.asked) <= 2 * (virtual_time.clock() - virtual_time.START) / 5 + 2

    run(scenario)


@settings(max_examples=40, deadline=None)
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
