"""Probes: a step that starts beside a target that does not end."""

from collections.abc import Sequence

import pytest

from app.wire.kinds import JOB_TEMPLATES, JOBS, PODS
from app.wire.unstructured import Key, Object, controlled_by
from tests.controllers.jobflow.flows import (
    FakeProber,
    jobs,
    move,
    run,
    step,
    submit,
    template,
)
from tests.controllers.play import Play, item
from tests.service import virtual_time


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


def test_a_target_that_is_complete_and_deleted_needs_no_probe_either() -> None:
    async def scenario(stage: Play, prober: FakeProber) -> None:
        await stage.start()
        template(stage, "server", "next")
        stage.fake.put(JOB_TEMPLATES, item(JOB_TEMPLATES, "load", spec={"tasks": [{"name": "t"}]}))
        probe = {"taskStatusList": [{"taskName": "t"}, {"taskName": "server"}]}
        submit(stage, step("load"), step("server"), step("next", "load", "server", probe=probe))
        await stage.settle()
        await move(stage, "load", "Completed")
        stage.fake.remove(JOBS, Key("ns", "flow-load"))
        await stage.settle()
        assert jobs(stage) == ["flow-server"]
        running = {"server": {"phase": {"Running": 1}}}
        await move(stage, "server", "Running", taskStatusCount=running)
        assert jobs(stage) == ["flow-next", "flow-server"]

    assert "FailedCreate" not in run(scenario).reasons()


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
