"""What does not fit on its node fails there, as with a real kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import SimClock
from app.sandbox.kubelet import Kubelet
from app.sandbox.ports import KubeletApi, Watched, WatchEvent
from app.sandbox.store_kubelet_api import StoreKubeletApi
from app.wire.documents import Document
from tests.sandbox.documents import at, bind_pod, make_server, node, pod, stored_pod

GPU = "nvidia.com/gpu"
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "3", GPU: "1"}

Scenario = Callable[[ApiServer, SimClock], Awaitable[None]]
Api = Callable[[ApiServer], KubeletApi]


def with_room(**room: str) -> Document:
    sized = {**ROOM, **room}
    return {**node("n1"), "status": {"capacity": sized, "allocatable": sized}}


def asking(name: str, *, command: str = "sleep 100", **amounts: str) -> Document:
    resources = {"requests": amounts, "limits": {GPU: amounts[GPU]} if GPU in amounts else {}}
    return pod(name, resources=resources, command=command.split(), restartPolicy="Never")


def resize(server: ApiServer, cpu: str) -> None:
    status = {"capacity": {"cpu": cpu}, "allocatable": {"cpu": cpu}}
    server.patch("/nodes", at("n1", ""), {"status": status}, subresource="status")


async def start(server: ApiServer, clock: SimClock, *pods: Document) -> None:
    for document in pods:
        server.create(document)
        bind_pod(server, document["metadata"]["name"], "n1")
    await clock.settle()


def phases(server: ApiServer) -> dict[str, str]:
    pods = server.store.ordered("/pods")
    return {each["metadata"]["name"]: each["status"]["phase"] for each in pods}


@asynccontextmanager
async def serving(server: ApiServer, clock: SimClock, api: Api) -> AsyncIterator[None]:
    task = asyncio.create_task(Kubelet(api(server), clock=clock).run())
    await clock.settle()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def run(scenario: Scenario, *, api: Api = StoreKubeletApi) -> None:
    async def main() -> None:
        clock = SimClock()
        server = make_server(with_room(), clock=clock)
        async with serving(server, clock, api):
            await scenario(server, clock)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("amounts", "resource", "numbers"),
    [
        ({"cpu": "1500m"}, "cpu", "requested: 1500, used: 3000, capacity: 4000"),
        (
            {"memory": "6Gi"},
            "memory",
            "requested: 6442450944, used: 4294967296, capacity: 8589934592",
        ),
        ({GPU: "1"}, GPU, "requested: 1, used: 1, capacity: 1"),
        ({"cpu": "4", "memory": "8Gi"}, "cpu", "requested: 4000, used: 3000, capacity: 4000"),
    ],
)
def test_the_pod_that_comes_second_fails_for_the_first_thing_that_is_short(
    amounts: dict[str, str], resource: str, numbers: str
) -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        first = asking("first", cpu="3", memory="4Gi", **{GPU: "1"})
        await start(server, clock, first, asking("second", **amounts))
        assert phases(server) == {"first": "Running", "second": "Failed"}
        status = stored_pod(server, "second")["status"]
        why = f"Node didn't have enough resource: {resource}, {numbers}"
        assert (status["reason"], status["message"]) == (
            f"OutOf{resource}",
            f"Pod was rejected: {why}",
        )
        assert "containerStatuses" not in status
        (event,) = server.store.ordered("/events")
        assert (event["type"], event["reason"], event["message"]) == (
            "Warning",
            f"OutOf{resource}",
            why,
        )

    run(scenario)


def test_a_node_takes_so_many_pods() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        await start(server, clock, *(asking(f"p{number}") for number in range(4)))
        status = stored_pod(server, "p3")["status"]
        text = "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"
        assert (status["reason"], status["message"]) == ("OutOfpods", f"Pod was rejected: {text}")

    run(scenario)


def test_devices_that_the_node_does_not_list_are_not_counted_there() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        await start(server, clock, pod(resources={"limits": {"example.com/shared": "1"}}))
        assert phases(server) == {"p": "Running"}

    run(scenario)


def test_one_that_was_rejected_takes_no_room_and_can_be_deleted() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        big, fits = asking("big", cpu="5"), asking("fits", cpu="4")
        await start(server, clock, big, fits)
        assert phases(server) == {"big": "Failed", "fits": "Running"}
        server.delete("/pods", at("big"))
        assert phases(server) == {"fits": "Running"}

    run(scenario)


@pytest.mark.parametrize("ends", [True, False])
def test_the_room_of_one_that_has_ended_or_gone_is_free(ends: bool) -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        await start(server, clock, asking("before", cpu="4", command="sleep 5"))
        if not ends:
            server.delete("/pods", at("before"))
        await clock.advance(6)
        await start(server, clock, asking("after", cpu="4"))
        assert phases(server)["after"] == "Running"

    run(scenario)


async def test_what_runs_stays_though_the_node_shrinks_and_its_kubelet_is_begun_anew() -> None:
    clock = SimClock()
    server = make_server(with_room(), clock=clock)
    async with serving(server, clock, StoreKubeletApi):
        await start(server, clock, asking("one", cpu="2"), asking("two", cpu="2"))
    resize(server, "3")
    await start(server, clock, asking("a-new-one", cpu="1"))
    async with serving(server, clock, StoreKubeletApi):
        assert phases(server) == {"one": "Running", "two": "Running", "a-new-one": "Failed"}


class LateNodes(StoreKubeletApi):
    """Its watch shows nothing of nodes."""

    async def watch(self, what: Watched, revision: str) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(what, revision):
            if what is not Watched.NODES:
                yield event


def test_a_node_that_has_grown_takes_what_fits_though_its_watch_is_late() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        resize(server, "8")
        await start(server, clock, asking("big", cpu="6"))
        assert phases(server) == {"big": "Running"}

    run(scenario, api=LateNodes)


class Unreachable(StoreKubeletApi):
    """Its second listing of nodes does not get through."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self._fails = iter([False, True])

    async def list_all(self, what: Watched) -> tuple[list[Document], str]:
        if what is Watched.NODES and next(self._fails, False):
            raise OSError("no route")
        return await super().list_all(what)


def test_nobody_is_rejected_before_the_node_was_looked_at_again() -> None:
    async def scenario(server: ApiServer, clock: SimClock) -> None:
        await start(server, clock, asking("big", cpu="5"))
        assert phases(server) == {"big": "Pending"}
        await clock.advance(2)
        assert phases(server) == {"big": "Failed"}

    run(scenario, api=Unreachable)
