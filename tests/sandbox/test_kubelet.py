"""The simulated kubelet against the embedded API server, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import pytest

from app.sandbox.apiserver.deletion import DeleteOptions
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import SimClock
from app.sandbox.kubelet import Kubelet
from app.sandbox.nodes import host_ip
from app.sandbox.ports import KubeletApi, Watched, WatchEvent
from app.sandbox.store_kubelet_api import StoreKubeletApi
from app.wire.documents import Document, ObjectName, condition, is_terminal
from tests.sandbox.documents import at, bind_pod, make_server, node, pod, stored_pod

Scenario: TypeAlias = Callable[[ApiServer, SimClock], Awaitable[None]]


def run(
    scenario: Scenario,
    *,
    start_seconds: float = 0.0,
    stop_seconds: float = 0.0,
    api: Callable[[ApiServer], KubeletApi] = StoreKubeletApi,
) -> None:
    async def main() -> None:
        clock = SimClock()
        server = make_server(node("n1"), clock=clock)
        kubelet = Kubelet(
            api(server), clock=clock, start_seconds=start_seconds, stop_seconds=stop_seconds
        )
        serving = asyncio.create_task(kubelet.run())
        await clock.settle()
        try:
            await scenario(server, clock)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())


def start(server: ApiServer, document: Document) -> None:
    server.create(document)
    bind_pod(server, document["metadata"]["name"], "n1")


def phase(server: ApiServer, name: str = "p") -> str:
    return str(stored_pod(server, name)["status"]["phase"])


def container(server: ApiServer, name: str = "p") -> Document:
    found: Document = stored_pod(server, name)["status"]["containerStatuses"][0]
    return found


def test_a_bound_pod_runs_with_address_conditions_and_container_status() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod())
        await clock.settle()
        status = stored_pod(server, "p")["status"]
        assert status["phase"] == "Running"
        assert status["podIP"].startswith("10.244.")
        assert status["hostIP"] == host_ip("n1")
        assert status["startTime"]
        assert {one["type"]: one["status"] for one in status["conditions"]} == {
            "PodScheduled": "True",
            "Initialized": "True",
            "ContainersReady": "True",
            "Ready": "True",
        }
        assert container(server)["ready"]
        assert "running" in container(server)["state"]

    run(scenario)


def test_a_pod_without_a_node_is_left_alone() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        server.create(pod())
        await clock.advance(60)
        assert phase(server) == "Pending"

    run(scenario)


def test_a_pod_waits_for_its_node_to_exist() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        server.create(pod(nodeName="late"))
        await clock.advance(5)
        assert phase(server) == "Pending"
        server.create(node("late"))
        await clock.settle()
        assert phase(server) == "Running"

    run(scenario)


def test_on_a_node_that_is_gone_nothing_ends_and_nothing_stops() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod("job", command=["sleep", "5"], restartPolicy="Never"))
        start(server, pod("server"))
        await clock.settle()
        server.delete("/nodes", at("n1", ""))
        server.delete("/pods", at("server"))
        await clock.advance(10)
        assert phase(server, "job") == "Running"
        assert stored_pod(server, "server")["metadata"]["deletionTimestamp"]

    run(scenario)


def test_a_node_that_comes_back_begins_its_pods_anew() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sleep", "5"], restartPolicy="Never"))
        await clock.advance(3)
        address = stored_pod(server, "p")["status"]["podIP"]
        server.delete("/nodes", at("n1", ""))
        await clock.advance(1)
        server.create(node("n1"))
        await clock.advance(3)
        assert phase(server) == "Running"
        assert stored_pod(server, "p")["status"]["podIPs"] == [{"ip": address}]
        await clock.advance(3)
        assert phase(server) == "Succeeded"

    run(scenario)


class Late(StoreKubeletApi):
    """Its watch shows no end of a pod, and what has ended cannot run again."""

    async def watch(self, what: Watched, revision: str) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(what, revision):
            if not is_terminal(event.document):
                yield event

    async def patch_pod_status(self, name: ObjectName, *, uid: str, status: Document) -> None:
        stored = self._server.store.get("/pods", name)
        runs = any("running" in one["state"] for one in status.get("containerStatuses", []))
        if runs and stored is not None and is_terminal(stored):
            raise ValueError("422: may not be transitioned to non-terminated state")
        await super().patch_pod_status(name, uid=uid, status=status)


def test_a_pod_that_ended_before_its_node_came_back_stays_as_it_is() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sleep", "1"], restartPolicy="Never"))
        await clock.advance(2)
        assert phase(server) == "Succeeded"
        server.delete("/nodes", at("n1", ""))
        await clock.settle()
        server.create(node("n1"))
        await clock.advance(10)
        assert phase(server) == "Succeeded"

    run(scenario, api=Late)


def test_nodes_that_went_while_nobody_watched_are_noticed() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sleep", "5"], restartPolicy="Never"))
        await clock.settle()
        server.close()
        server.delete("/nodes", at("n1", ""))
        server.store.forget_history()
        await clock.advance(10)
        assert phase(server) == "Running"

    run(scenario)


def test_starting_takes_the_time_that_is_set() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod())
        await clock.advance(2)
        assert phase(server) == "Pending"
        assert container(server)["state"] == {"waiting": {"reason": "ContainerCreating"}}
        await clock.advance(2)
        assert phase(server) == "Running"

    run(scenario, start_seconds=3)


@pytest.mark.parametrize(
    ("script", "phase_after", "reason"),
    [("sleep 5", "Succeeded", "Completed"), ("sleep 5; exit 3", "Failed", "Error")],
)
def test_a_pod_ends_as_its_command_says(script: str, phase_after: str, reason: str) -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sh", "-c", script], restartPolicy="Never"))
        await clock.advance(4.9)
        assert phase(server) == "Running"
        await clock.advance(0.2)
        assert phase(server) == phase_after
        assert container(server)["state"]["terminated"]["reason"] == reason

    run(scenario)


def test_a_pod_that_was_active_for_too_long_fails() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        endless = ["sh", "-c", "sleep 1000"]
        start(
            server,
            pod(command=endless, activeDeadlineSeconds=10, terminationGracePeriodSeconds=5),
        )
        await clock.advance(14.9)
        assert phase(server) == "Running"
        await clock.advance(0.2)
        status = stored_pod(server, "p")["status"]
        assert (status["phase"], status["reason"], status["message"]) == (
            "Failed",
            "DeadlineExceeded",
            "Pod was active on the node longer than the specified deadline",
        )
        assert container(server)["state"]["terminated"]["exitCode"] == 137
        assert [event["message"] for event in told(server, "DeadlineExceeded")] == [
            status["message"]
        ]
        await clock.advance(100)
        assert container(server)["restartCount"] == 0
        server.delete("/pods", at("p"))
        assert server.store.get("/pods", at("p")) is None

    run(scenario)


class Busy(StoreKubeletApi):
    """Takes longer for an event than for a status."""

    async def create_event(self, event: Document) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        await super().create_event(event)


def test_why_a_pod_fails_is_told_by_the_time_that_it_has() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(activeDeadlineSeconds=10))
        await clock.advance(11)
        assert phase(server) == "Failed"
        assert told(server, "DeadlineExceeded")

    run(scenario, api=Busy)


def test_the_time_a_pod_may_be_active_begins_before_it_runs_and_may_change() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(activeDeadlineSeconds=100))
        await clock.advance(4)
        server.patch("/pods", at("p"), {"spec": {"activeDeadlineSeconds": 5}})
        await clock.advance(0.9)
        assert phase(server) == "Running"
        await clock.advance(0.2)
        assert stored_pod(server, "p")["status"]["reason"] == "DeadlineExceeded"

    run(scenario, start_seconds=3)


def test_who_ends_in_time_has_not_been_active_for_too_long() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        ends = pod(activeDeadlineSeconds=10, command=["sleep", "9"], restartPolicy="Never")
        start(server, ends)
        await clock.advance(100)
        status = stored_pod(server, "p")["status"]
        assert (status["phase"], status.get("reason")) == ("Succeeded", None)

    run(scenario)


def test_a_pod_that_begins_anew_has_been_active_since_it_first_began() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(activeDeadlineSeconds=10))
        await clock.advance(5)
        server.delete("/nodes", at("n1", ""))
        server.create(node("n1"))
        await clock.advance(5.1)
        assert stored_pod(server, "p")["status"]["reason"] == "DeadlineExceeded"

    run(scenario)


def test_on_failure_restarts_until_it_succeeds_or_for_ever_with_back_off() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sh", "-c", "sleep 1; exit 1"], restartPolicy="OnFailure"))
        await clock.advance(1.5)
        assert container(server)["restartCount"] == 1
        await clock.advance(1.0)
        assert container(server)["restartCount"] == 2
        assert container(server)["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
        assert container(server)["lastState"]["terminated"]["exitCode"] == 1
        await clock.advance(10.0)
        assert "running" in container(server)["state"]

    run(scenario)


def test_always_restarts_what_succeeded() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sleep", "1"]))
        await clock.advance(1.5)
        assert container(server)["restartCount"] == 1
        assert phase(server) == "Running"

    run(scenario)


def test_init_containers_run_one_after_the_other_before_the_rest() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        inits = [
            {"name": f"i{number}", "image": "x", "command": ["sleep", "2"]} for number in (1, 2)
        ]
        start(server, pod(initContainers=inits))
        await clock.advance(3)
        status = stored_pod(server, "p")["status"]
        assert status["phase"] == "Pending"
        states = [one["state"] for one in status["initContainerStatuses"]]
        assert ["terminated" in states[0], "running" in states[1]] == [True, True]
        await clock.advance(2)
        assert phase(server) == "Running"

    run(scenario)


@pytest.mark.parametrize(
    ("command", "reached"),
    [
        (["sh", "-c", "until nc -z master 22; do sleep 2; done"], "Running"),
        (["/prepare"], "Running"),
        ([], "Running"),
        (["sleep", "infinity"], "Pending"),
        (["sh", "-c", "sleep infinity; exit 1"], "Pending"),
    ],
)
def test_an_init_container_of_which_nothing_is_known_ends(command: list[str], reached: str) -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(initContainers=[{"name": "i", "image": "x", "command": command}]))
        await clock.advance(3600)
        assert phase(server) == reached

    run(scenario)


def test_a_sidecar_runs_beside_the_rest_and_ends_with_it() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        inits = [
            {"name": "proxy", "image": "x", "restartPolicy": "Always"},
            {"name": "i", "image": "x", "command": ["sleep", "5"]},
        ]
        start(server, pod(initContainers=inits, command=["sleep", "20"], restartPolicy="Never"))
        await clock.advance(1)
        status = stored_pod(server, "p")["status"]
        assert status["phase"] == "Pending"
        assert "running" in status["initContainerStatuses"][0]["state"]
        assert "running" in status["initContainerStatuses"][1]["state"]
        await clock.advance(10)
        status = stored_pod(server, "p")["status"]
        assert status["phase"] == "Running"
        assert (condition({"status": status}, "Ready") or {})["status"] == "True"
        assert status["initContainerStatuses"][0]["ready"]
        await clock.advance(20)
        status = stored_pod(server, "p")["status"]
        assert status["phase"] == "Succeeded"
        assert "terminated" in status["initContainerStatuses"][0]["state"]

    run(scenario)


def test_a_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        inits = [{"name": "i", "image": "x", "command": ["false"]}]
        start(server, pod(initContainers=inits, restartPolicy="Never"))
        await clock.settle()
        assert phase(server) == "Failed"

    run(scenario)


def test_a_deleted_server_stops_at_once() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod())
        await clock.settle()
        server.delete("/pods", at("p"))
        await clock.settle()
        assert server.store.get("/pods", at("p")) is None

    run(scenario)


def test_a_deleted_pod_may_be_seen_to_stop() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod())
        await clock.settle()
        server.delete("/pods", at("p"))
        await clock.advance(0.9)
        assert "terminated" in container(server)["state"]
        await clock.advance(0.2)
        assert server.store.get("/pods", at("p")) is None

    run(scenario, stop_seconds=1)


def test_a_deleted_shell_uses_its_whole_grace_period() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sh", "-c", "sleep 1000"], terminationGracePeriodSeconds=20))
        await clock.settle()
        server.delete("/pods", at("p"))
        await clock.advance(19)
        assert stored_pod(server, "p")["metadata"]["deletionTimestamp"]
        await clock.advance(2)
        assert server.store.get("/pods", at("p")) is None

    run(scenario)


@pytest.mark.parametrize(("second", "gone_after"), [(1, 6), (100, 20)])
def test_a_second_deletion_makes_it_go_sooner_and_never_later(
    second: int, gone_after: float
) -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sh", "-c", "sleep 1000"], terminationGracePeriodSeconds=20))
        await clock.settle()
        server.delete("/pods", at("p"))
        await clock.advance(5)
        server.delete("/pods", at("p"), DeleteOptions(grace_seconds=second))
        await clock.advance(gone_after - 5 - 0.1)
        assert stored_pod(server, "p")["metadata"]["deletionTimestamp"]
        await clock.advance(0.2)
        assert server.store.get("/pods", at("p")) is None

    run(scenario)


def test_a_script_that_ends_within_the_grace_period_ends_in_its_own_way() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sh", "-c", "sleep 10; exit 3"], restartPolicy="Never"))
        await clock.advance(5)
        watched = server.store.subscribe("/pods")
        server.delete("/pods", at("p"), DeleteOptions(grace_seconds=20))
        await clock.advance(6)
        last = watched.take()[-1].document
        assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3

    run(scenario)


def test_the_last_status_of_a_deleted_pod_is_final() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["sleep", "1000"]))
        await clock.settle()
        watched = server.store.subscribe("/pods")
        server.delete("/pods", at("p"))
        await clock.settle()
        last = watched.take()[-1].document
        assert last["status"]["phase"] == "Failed"
        assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143

    run(scenario)


def told(server: ApiServer, reason: str) -> list[Document]:
    return [event for event in server.store.ordered("/events") if event["reason"] == reason]


def test_an_annotation_that_cannot_be_read_is_complained_of_and_ignored() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        wrong = {"annotations": {"pumice.sh/sandbox-run-seconds": "abc"}}
        start(server, pod(metadata=wrong))
        await clock.settle()
        assert phase(server) == "Running"
        (event,) = told(server, "UnreadableAnnotation")
        assert (event["type"], event["involvedObject"]["name"]) == ("Warning", "p")
        server.delete("/pods", at("p"))
        await clock.settle()
        assert server.store.get("/pods", at("p")) is None

    run(scenario)


class Flawed(StoreKubeletApi):
    """Says that containers end, and chokes on it."""

    async def patch_pod_status(self, name: ObjectName, *, uid: str, status: Document) -> None:
        if any("terminated" in one["state"] for one in status.get("containerStatuses", [])):
            raise LookupError("no such thing")
        await super().patch_pod_status(name, uid=uid, status=status)


@pytest.mark.parametrize("inits", [[], [{"name": "i", "image": "x", "restartPolicy": "Always"}]])
def test_a_pod_on_which_the_kubelet_fails_has_failed_and_can_be_deleted(
    inits: list[Document],
) -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        ends = {"name": "c", "image": "x", "command": ["sleep", "1"]}
        stays = {"name": "d", "image": "x", "command": ["sleep", "5"]}
        document = pod(restartPolicy="Never", initContainers=inits)
        document["spec"]["containers"] = [ends, stays]
        start(server, document)
        await clock.advance(10)
        status = stored_pod(server, "p")["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "KubeletError")
        assert status["message"] == "LookupError('no such thing')"
        server.delete("/pods", at("p"))
        await clock.settle()
        assert server.store.get("/pods", at("p")) is None

    run(scenario, api=Flawed)


class Overtaking(StoreKubeletApi):
    """Takes a second to write that a container runs beside one that has ended.

    As the real API server, it refuses to let a container run again that has ended.
    """

    clock: SimClock

    async def patch_pod_status(self, name: ObjectName, *, uid: str, status: Document) -> None:
        states = [state for one in status.get("containerStatuses", []) for state in one["state"]]
        if {"terminated", "running"} <= set(states):
            await self.clock.sleep(1)
        before = stored_pod(self._server, name.name)["status"].get("containerStatuses", [])
        for old, new in zip(before, status.get("containerStatuses", []), strict=False):
            if "terminated" in old["state"] and "terminated" not in new["state"]:
                raise ValueError("may not be transitioned to non-terminated state")
        await super().patch_pod_status(name, uid=uid, status=status)


def test_containers_that_end_together_are_written_in_order() -> None:
    made: list[Overtaking] = []

    def overtaking(server: ApiServer) -> KubeletApi:
        made.append(Overtaking(server))
        return made[0]

    async def scenario(server: ApiServer, clock: SimClock) -> None:
        made[0].clock = clock
        document = pod(restartPolicy="Never")
        document["spec"]["containers"] = [
            {"name": name, "image": "x", "command": ["sleep", "5"]} for name in ("wait", "main")
        ]
        start(server, document)
        await clock.advance(10)
        assert phase(server) == "Succeeded"

    run(scenario, api=overtaking)


def test_an_ended_pod_stays_until_it_is_deleted() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod(command=["true"], restartPolicy="Never"))
        await clock.advance(100)
        assert phase(server) == "Succeeded"
        server.delete("/pods", at("p"), DeleteOptions())
        assert server.store.get("/pods", at("p")) is None

    run(scenario)


def test_a_wrong_scheduling_condition_of_a_bound_pod_is_put_right() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        server.create(pod())
        wrong = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
        server.patch("/pods", at("p"), {"status": {"conditions": [wrong]}}, subresource="status")
        bind_pod(server, "p", "n1")
        await clock.settle()
        found = condition(stored_pod(server, "p"), "PodScheduled")
        assert found is not None
        assert (found["status"], found.get("reason")) == ("True", None)

    run(scenario)


def test_after_an_expired_watch_the_kubelet_lists_again() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        start(server, pod("before"))
        await clock.settle()
        server.close()
        server.store.forget_history()
        start(server, pod("after"))
        await clock.settle()
        assert phase(server, "after") == "Running"

    run(scenario)
