"""Changes of a job while it runs: scaled, suspended and resumed, updated, deleted."""

from typing import Any

import pytest

from app.controllers.ports import Failure
from app.wire import times
from app.wire.kinds import COMMANDS, CONFIG_MAPS, JOBS, PODS, QUEUES
from app.wire.unstructured import Key, name
from tests.controllers.job.rig import NAMESPACE, Rig, play, policy, task

_GANG: dict[str, Any] = {"minAvailable": 2, "tasks": [task()]}


def _scaled(replicas: int, least: int = 1, **more: Any) -> dict[str, Any]:
    one = task(replicas=replicas, minAvailable=least)
    return {"spec": {"minAvailable": least, "tasks": [one], **more}}


def test_a_job_is_scaled_up() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "plugins": {"svc": []}})
        rig.edit_job(_scaled(4, least=3))
        await rig.settle()

    rig = play(scenario)
    assert rig.pods() == [f"job-main-{index}" for index in range(4)]
    assert rig.group()["spec"]["minMember"] == 3
    assert rig.status()["minAvailable"] == 3
    (hosts,) = rig.api.all(CONFIG_MAPS)
    assert len(hosts["data"]["main.host"].split()) == 4


def test_a_job_is_scaled_down_and_nobody_calls_it_an_eviction() -> None:
    async def scenario(rig: Rig) -> None:
        svc: dict[str, Any] = {"svc": []}
        await rig.started({**_GANG, "plugins": svc, "policies": [policy("*", "AbortJob")]})
        rig.edit_job(_scaled(1, policies=[policy("*", "AbortJob")]))
        await rig.settle()
        assert rig.status()["terminating"] == 1
        (hosts,) = rig.api.all(CONFIG_MAPS)
        assert hosts["data"]["main.host"] == "job-main-0.job"
        await rig.drain()

    rig = play(scenario)
    assert rig.pods() == ["job-main-0"]
    assert rig.status()["running"] == 1
    assert rig.phases == ["Pending", "Running"]


@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("queue", ["there", "gone"])
def test_lists_of_hosts_follow_before_pods_and_status(queue: str, replicas: int) -> None:
    """A client that sees the new number of pods in either then reads the new lists."""

    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "plugins": {"svc": []}})
        first = len(rig.api.requests)
        if queue == "gone":
            rig.drop(QUEUES, Key("", "default"))
        rig.edit_job(_scaled(replicas))
        await rig.settle()
        writes = [r.resource for r in rig.api.requests[first:] if r.verb != "get"]
        assert writes[0] is CONFIG_MAPS
        assert JOBS in writes or PODS in writes

    (hosts,) = play(scenario).api.all(CONFIG_MAPS)
    assert hosts["data"]["VC_MAIN_NUM"] == str(replicas)


def test_pods_stay_while_lists_of_hosts_cannot_be_written() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "plugins": {"svc": []}})
        rig.api.fail(
            Failure.PASSING,
            lambda request: (request.verb, request.resource) == ("patch", CONFIG_MAPS),
            times=2,
        )
        rig.edit_job(_scaled(1))
        await rig.settle()
        assert len(rig.pods()) == 2
        await rig.later(60)
        await rig.drain()

    rig = play(scenario)
    assert rig.pods() == ["job-main-0"]


def test_a_job_that_is_scaled_up_while_it_shrinks_takes_nothing_for_evicted() -> None:
    rules = [policy("PodEvicted", "AbortJob")]

    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "policies": rules})
        rig.edit_job(_scaled(1, policies=rules))
        await rig.settle()
        rig.edit_job(_scaled(2, policies=rules))
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running"]
    assert len(rig.pods()) == 2


def test_a_job_is_scaled_to_nothing_and_up_again() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        rig.edit_job(_scaled(0, least=0))
        await rig.drain()
        assert rig.pods() == []
        assert rig.phase() == "Running"
        rig.edit_job(_scaled(2, least=2))
        await rig.settle()
        rig.run()
        await rig.settle()

    rig = play(scenario)
    assert rig.status()["running"] == 2
    assert rig.phase() == "Running"


def test_a_job_is_suspended_and_resumed() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        rig.command("AbortJob", name="suspend")
        await rig.drain()
        assert rig.phase() == "Aborted"
        assert not rig.api.all(COMMANDS)
        rig.command("ResumeJob", name="resume")
        await rig.drain()
        rig.run()
        await rig.settle()

    rig = play(scenario)
    resumed = ["Restarting", "Pending", "Running"]
    assert rig.phases == ["Pending", "Running", "Aborting", "Aborted", *resumed]
    assert rig.status()["version"] == 2
    assert rig.status()["retryCount"] == 1
    assert rig.events.messages("CommandIssued") == [
        f"Start to execute command {action}, and clean it up to make sure executed not more than"
        " once."
        for action in ("AbortJob", "ResumeJob")
    ]
    annotations = rig.pod("job-main-0")["metadata"]["annotations"]
    assert annotations["volcano.sh/job-version"] == "2"
    assert annotations["volcano.sh/job-retry-count"] == "1"


def test_a_job_that_waits_can_be_suspended() -> None:
    async def scenario(rig: Rig) -> None:
        rig.admits = False
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        rig.command("AbortJob")
        await rig.drain()

    rig = play(scenario)
    assert rig.phases == ["Pending", "Aborting", "Aborted"]


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_commands_are_executed_in_the_order_in_which_they_were_given(
    first: str, second: str
) -> None:
    """They are of one second."""

    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        await rig.kill()
        rig.command("AbortJob", name=first)
        rig.command("ResumeJob", name=second)
        rig.start()
        await rig.drain()

    rig = play(scenario)
    assert rig.phases[2:] == ["Aborting", "Restarting", "Pending"]


async def _changed_command(rig: Rig, change: dict[str, Any]) -> None:
    await rig.started(_GANG)
    rig.command("AbortJob")
    rig.api.edit(COMMANDS, Key(NAMESPACE, "command"), change)
    await rig.drain()
    assert not rig.api.all(COMMANDS)


def test_a_command_that_makes_no_sense_is_only_deleted() -> None:
    rig = play(lambda rig: _changed_command(rig, {"action": "Fly"}))
    assert rig.phase() == "Running"


def test_a_command_may_name_its_job_without_a_uid() -> None:
    rig = play(lambda rig: _changed_command(rig, {"target": {"uid": ""}}))
    assert rig.phase() == "Aborted"


def test_a_command_for_a_job_of_the_same_name_is_not_executed_and_the_job_says_so() -> None:
    rig = play(lambda rig: _changed_command(rig, {"target": {"uid": "another"}}))
    assert rig.phase() == "Running"
    assert ("Warning", "CommandIgnored") in {told[:2] for told in rig.events.told}
    assert rig.events.messages("CommandIgnored") == [
        "AbortJob of command command is not executed: it is for another job of this name, with the"
        " UID another"
    ]
    assert not rig.events.messages("CommandIssued")


def test_a_command_that_a_finalizer_keeps_is_executed_once() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        rig.command("AbortJob", name="kept")
        key = Key(NAMESPACE, "kept")
        rig.api.edit(COMMANDS, key, {"metadata": {"finalizers": ["tenant/keep"]}})
        await rig.drain()
        rig.command("ResumeJob")
        await rig.drain()
        await rig.kill()
        rig.start()
        await rig.drain()
        assert [name(each) for each in rig.api.all(COMMANDS)] == ["kept"]

    rig = play(scenario)
    assert rig.phases[2:] == ["Aborting", "Aborted", "Restarting", "Pending"]


def test_a_command_for_a_job_that_is_gone_is_deleted_and_told_of() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        rig.command("AbortJob")
        rig.api.remove(JOBS, Key(NAMESPACE, "job"))
        await rig.settle()

    rig = play(scenario)
    assert not rig.api.all(COMMANDS)
    assert rig.events.messages("CommandIgnored") == [
        "AbortJob of command command is not executed: job ns/job is not there"
    ]


@pytest.mark.parametrize("before", ["none", "there", "going"])
@pytest.mark.parametrize("names", ["a UID", "no UID"])
def test_a_command_that_is_seen_before_its_job_waits_for_it(before: str, names: str) -> None:
    async def scenario(rig: Rig) -> None:
        key = Key(NAMESPACE, "job")
        rig.start()
        if before != "none":
            rig.submit(_GANG)
            await rig.settle()
        if before == "going":
            rig.api.edit(JOBS, key, {"metadata": {"deletionTimestamp": times.seconds(0)}})
            await rig.settle()
        rig.api.lagging = {JOBS}
        if before != "none":
            rig.api.remove(JOBS, key)
        rig.submit(_GANG)
        rig.command("AbortJob")
        if names == "no UID":
            rig.api.edit(COMMANDS, Key(NAMESPACE, "command"), {"target": {"uid": ""}})
        await rig.settle()
        rig.api.lagging.clear()
        await rig.drain()
        await rig.later(15)

    rig = play(scenario)
    assert rig.phase() == "Aborted"
    assert not rig.api.all(COMMANDS)
    assert not rig.events.messages("CommandIgnored")


def test_a_command_for_a_queue_is_somebody_elses() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        rig.command("CloseQueue")
        rig.api.edit(COMMANDS, Key(NAMESPACE, "command"), {"target": {"kind": "Queue"}})
        await rig.settle()

    assert play(scenario).api.all(COMMANDS)


@pytest.mark.parametrize(
    ("rule", "phases"),
    [
        (policy("JobUpdated", "RestartJob"), ["Restarting", "Pending"]),
        (policy("JobUpdated", "AbortJob"), ["Aborting", "Aborted"]),
        (policy("JobUpdated", "RestartTask"), []),
        (policy("*", "RestartJob"), []),
    ],
)
def test_a_policy_may_answer_a_changed_size_if_it_says_so(rule: Any, phases: list[str]) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "policies": [rule]})
        rig.phases.clear()
        rig.edit_job(_scaled(3, policies=[rule]))
        await rig.drain()

    rig = play(scenario)
    assert [phase for phase in rig.phases if phase != "Running"] == phases


@pytest.mark.parametrize(
    "change",
    [
        {"minAvailable": 1},
        {"tasks": [task(minAvailable=1)]},
        {"minAvailable": 1, "tasks": [task(replicas=1)]},
    ],
    ids=["the minimum", "the minimum of a task", "replicas"],
)
def test_a_job_is_updated_when_its_size_changes(change: dict[str, Any]) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "policies": [policy("JobUpdated", "AbortJob")]})
        rig.edit_job({"spec": change})
        await rig.drain()

    assert play(scenario).phases[-2:] == ["Aborting", "Aborted"]


def test_a_job_is_not_updated_when_its_priority_changes() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "policies": [policy("JobUpdated", "AbortJob")]})
        rig.edit_job({"spec": {"priorityClassName": "high"}})
        await rig.drain()
        assert rig.group()["spec"]["priorityClassName"] == "high"

    assert play(scenario).phases == ["Pending", "Running"]


def test_a_spec_that_we_complete_ourselves_is_no_change() -> None:
    async def scenario(rig: Rig) -> None:
        volumes = [{"mountPath": "/data", "volumeClaim": {}}]
        rule = policy("JobUpdated", "AbortJob")
        await rig.started({**_GANG, "volumes": volumes, "policies": [rule]})

    rig = play(scenario)
    assert rig.phases == ["Pending", "Running"]
    assert rig.job()["spec"]["volumes"][0]["volumeClaimName"].startswith("job-pvc-")


def test_a_job_that_is_being_deleted_makes_nothing_any_more() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        rig.edit_job({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        await rig.settle()
        rig.vanish("job-main-0")
        rig.command("ResumeJob")
        await rig.settle()

    rig = play(scenario)
    assert rig.pods() == ["job-main-1"]
    assert not rig.api.all(COMMANDS)


def test_a_status_never_overwrites_what_a_user_has_just_changed() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_GANG)
        rig.run("job-main-0", restarts=1)
        rig.api.deliver()
        rig.edit_job(_scaled(3, least=2))
        await rig.settle()
        await rig.later(1)

    rig = play(scenario)
    assert rig.job()["spec"]["tasks"][0]["replicas"] == 3
    assert rig.status()["minAvailable"] == 2
    assert len(rig.pods()) == 3
