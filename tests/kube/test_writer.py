"""What each write puts on the wire."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from itertools import count

import pytest

from app.kube import paths
from app.kube.client import ApiClient, ClientOptions
from app.kube.config import Connection
from app.kube.errors import Conflict, NotFound, Unreadable
from app.kube.events import EventRecorder
from app.kube.writer import ClusterWriter
from app.service.limits import Limits
from tests.kube.server import (
    LOGIN_PAGE,
    PATIENCE_S,
    Handler,
    ScriptedServer,
    answer,
    answer_once,
    failure,
)

POD = "/api/v1/namespaces/ns/pods/p"
GROUP = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
EVENTS = "/api/v1/namespaces/ns/events"


def clock() -> Callable[[], datetime]:
    ticks: Iterator[int] = count()
    return lambda: datetime(2026, 1, 2, 3, 4, next(ticks), 987654, tzinfo=UTC)


def writer(client: ApiClient) -> ClusterWriter:
    suffixes = count()
    events = EventRecorder(
        client, component="pumice", now=clock(), suffix=lambda: f"s{next(suffixes)}"
    )
    return ClusterWriter(client, events=events)


def write(connection: Connection, *uses: Callable[[ClusterWriter], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with ApiClient(connection) as client:
            writes = writer(client)
            for use in uses:
                await use(writes)

    asyncio.run(opened())


def told(server: ScriptedServer) -> list[tuple[str, str, object]]:
    return [(s.method, s.path, s.json() if s.body else None) for s in server.seen]


def discovery(*names: str) -> Handler:
    return answer({"kind": "APIResourceList", "resources": [{"name": n} for n in names]})


def test_a_binding_carries_the_uid_as_its_precondition(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", f"{POD}/binding", answer({}, status=201))
    write(connection, lambda w: w.bind("ns", "p", uid="u1", node="n1", annotations={"a": "b"}))
    assert told(server) == [
        (
            "POST",
            f"{POD}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {
                    "name": "p",
                    "namespace": "ns",
                    "uid": "u1",
                    "annotations": {"a": "b"},
                },
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
        )
    ]


def test_a_binding_waits_for_no_connection_of_others(
    server: ScriptedServer, connection: Connection
) -> None:
    """Whether it may leave was decided just before, and may not be so any more later."""
    free = threading.Event()

    server.on("GET", POD, answer_once(free))
    server.on("POST", f"{POD}/binding", answer({}, status=201))

    async def beside_others() -> None:
        async with ApiClient(connection, ClientOptions(connections=2)) as client:
            others = [asyncio.create_task(client.get(POD)) for _ in range(4)]
            await asyncio.to_thread(server.wait_for, lambda seen: len(seen) == 2)
            try:
                async with asyncio.timeout(PATIENCE_S / 4):
                    await writer(client).bind("ns", "p", uid="u1", node="n1")
            finally:
                free.set()
                await asyncio.gather(*others)

    asyncio.run(beside_others())


def test_there_are_as_many_connections_for_bindings_as_are_sent_at_once() -> None:
    assert Limits().bindings_in_flight <= ClientOptions().urgent_connections


def test_a_pod_that_was_bound_or_replaced_is_a_conflict(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", f"{POD}/binding", failure(409, "Conflict", "uid is another"))
    with pytest.raises(Conflict, match="uid is another"):
        write(connection, lambda w: w.bind("ns", "p", uid="u1", node="n1"))


def test_pods_are_patched_by_operations_and_their_status_by_keyed_merge(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("PATCH", POD, answer({}))
    server.on("PATCH", f"{POD}/status", answer({}))
    operations = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    status = {"status": {"conditions": [{"type": "Reserved", "status": "True"}]}}
    write(
        connection,
        lambda w: w.patch_pod("ns", "p", operations),
        lambda w: w.patch_pod_status("ns", "p", status, uid="u1"),
    )
    assert [s.json() for s in server.seen] == [operations, status | {"metadata": {"uid": "u1"}}]
    assert [s.headers["Content-Type"] for s in server.seen] == [
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
    ]


def test_a_status_without_subresource_goes_to_the_object_in_one_write(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("GET", paths.SCHEDULING, discovery("podgroups", "queues", "queues/status"))
    server.on("PATCH", GROUP, answer({}))
    merge = {"metadata": {"annotations": {"a": "b"}}, "status": {"phase": "Inqueue"}}
    write(connection, *[lambda w: w.patch_pod_group("ns", "g", merge)] * 2)
    assert told(server) == [
        ("GET", paths.SCHEDULING, None),
        ("PATCH", GROUP, merge),
        ("PATCH", GROUP, merge),
    ]


def test_a_status_with_subresource_is_split_from_the_rest(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("GET", paths.SCHEDULING, discovery("podgroups", "podgroups/status"))
    server.on("PATCH", GROUP, answer({}))
    server.on("PATCH", f"{GROUP}/status", answer({}))
    rest: dict[str, object] = {"metadata": {"labels": {"a": "b"}}}
    status: dict[str, object] = {"status": {"phase": "Inqueue"}}
    write(
        connection,
        lambda w: w.patch_pod_group("ns", "g", rest | status),
        lambda w: w.patch_pod_group("ns", "g", status),
        lambda w: w.patch_pod_group("ns", "g", rest),
    )
    assert told(server) == [
        ("GET", paths.SCHEDULING, None),
        ("PATCH", GROUP, rest),
        ("PATCH", f"{GROUP}/status", status),
        ("PATCH", f"{GROUP}/status", status),
        ("PATCH", GROUP, rest),
    ]


def test_a_status_that_was_not_found_makes_the_next_write_look_again(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on(
        "GET", paths.SCHEDULING, discovery("podgroups", "podgroups/status"), discovery("podgroups")
    )
    server.on("PATCH", GROUP, answer({}))
    status = {"status": {"phase": "Inqueue"}}

    async def missing(writer: ClusterWriter) -> None:
        with pytest.raises(NotFound):
            await writer.patch_pod_group("ns", "g", status)

    write(connection, missing, lambda w: w.patch_pod_group("ns", "g", status))
    assert told(server)[-2:] == [("GET", paths.SCHEDULING, None), ("PATCH", GROUP, status)]


def test_a_discovery_that_somebody_else_answered_is_tried_again(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("GET", paths.SCHEDULING, answer(LOGIN_PAGE), discovery("podgroups"))
    server.on("PATCH", GROUP, answer({}))
    status = {"status": {"phase": "Inqueue"}}

    async def unreadable(writer: ClusterWriter) -> None:
        with pytest.raises(Unreadable):
            await writer.patch_pod_group("ns", "g", status)

    write(connection, unreadable, lambda w: w.patch_pod_group("ns", "g", status))
    assert told(server)[-1] == ("PATCH", GROUP, status)


def test_queues_are_created_and_their_status_is_patched(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", QUEUES, answer({}, status=201))
    server.on("GET", paths.SCHEDULING, discovery("queues", "queues/status"))
    server.on("PATCH", f"{QUEUES}/q/status", answer({}))
    write(
        connection,
        lambda w: w.create_queue({"metadata": {"name": "q"}}),
        lambda w: w.patch_queue_status("q", {"status": {"state": "Open"}}),
    )
    assert [(s.method, s.path) for s in server.seen] == [
        ("POST", QUEUES),
        ("GET", paths.SCHEDULING),
        ("PATCH", f"{QUEUES}/q/status"),
    ]


async def tell(writer: ClusterWriter, message: str = "2 of 3", name: str = "g") -> None:
    await writer.record_event(
        kind="PodGroup",
        api_version="scheduling.volcano.sh/v1beta1",
        namespace="ns",
        name=name,
        uid="u",
        event_type="Warning",
        reason="Unschedulable",
        message=message,
    )


def test_an_event_has_the_times_and_count_that_clients_show(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", EVENTS, answer({}, status=201))
    write(connection, tell)
    assert server.seen[0].json() == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "g.s0", "namespace": "ns"},
        "involvedObject": {
            "kind": "PodGroup",
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "namespace": "ns",
            "name": "g",
            "uid": "u",
        },
        "type": "Warning",
        "reason": "Unschedulable",
        "message": "2 of 3",
        "source": {"component": "pumice"},
        "reportingComponent": "pumice",
        "firstTimestamp": "2026-01-02T03:04:00Z",
        "lastTimestamp": "2026-01-02T03:04:00Z",
        "count": 1,
    }


def test_the_same_event_is_counted_and_another_message_is_another_event(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", EVENTS, answer({}, status=201))
    server.on("PATCH", f"{EVENTS}/g.s0", answer({}))
    write(connection, tell, tell, tell, lambda w: tell(w, "1 of 3"))
    assert [(s.method, s.path) for s in server.seen] == [
        ("POST", EVENTS),
        ("PATCH", f"{EVENTS}/g.s0"),
        ("PATCH", f"{EVENTS}/g.s0"),
        ("POST", EVENTS),
    ]
    assert server.seen[2].json() == {"count": 3, "lastTimestamp": "2026-01-02T03:04:02Z"}


def test_an_event_that_expired_is_begun_anew(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", EVENTS, answer({}, status=201))
    server.on("PATCH", f"{EVENTS}/g.s0", failure(404, "NotFound"))
    server.on("PATCH", f"{EVENTS}/g.s1", answer({}))
    write(connection, tell, tell, tell)
    assert [(s.method, s.path) for s in server.seen] == [
        ("POST", EVENTS),
        ("PATCH", f"{EVENTS}/g.s0"),
        ("POST", EVENTS),
        ("PATCH", f"{EVENTS}/g.s1"),
    ]


def test_an_event_about_an_object_with_the_longest_name_has_a_name_of_its_own(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", EVENTS, answer({}, status=201))
    server.on("PATCH", f"{EVENTS}/s0", answer({}))
    longest = "g" * 253
    write(connection, lambda w: tell(w, name=longest), lambda w: tell(w, name=longest))
    event = server.seen[0].json()
    assert isinstance(event, dict)
    assert event["metadata"]["name"] == "s0"
    assert event["involvedObject"]["name"] == longest
    assert server.seen[1].path == f"{EVENTS}/s0"


def test_events_of_objects_without_namespace_are_kept_in_default(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", "/api/v1/namespaces/default/events", answer({}, status=201))
    write(
        connection,
        lambda w: w.record_event(
            kind="Queue",
            api_version="scheduling.volcano.sh/v1beta1",
            namespace="",
            name="q",
            uid="u",
            event_type="Normal",
            reason="Open",
            message="open",
        ),
    )
    event = server.seen[0].json()
    assert isinstance(event, dict)
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "a?b=c", "a#b", "a%2Fb"])
def test_a_name_cannot_leave_its_segment_of_the_path(
    server: ScriptedServer, connection: Connection, name: str
) -> None:
    with pytest.raises(NotFound):
        write(connection, lambda w: w.bind("ns", name, uid="u", node="n"))
    assert server.seen[0].path == f"/api/v1/namespaces/ns/pods/{name}/binding"
    assert not server.seen[0].query
