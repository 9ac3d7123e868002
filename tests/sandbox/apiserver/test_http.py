"""The API server over HTTP: what clients other than kubectl rely on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from httpx2 import Client, Response

from app.sandbox.apiserver.server import ApiServer
from app.wire.documents import Document
from tests.clusters.client import WITHOUT_TLS
from tests.sandbox.documents import bind_pod, make_server, node, pod, widget
from tests.sandbox.serving import serving

PODS = "/api/v1/namespaces/default/pods"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@pytest.fixture
def server() -> ApiServer:
    return make_server(node("n1"))


@pytest.fixture
def client(server: ApiServer) -> Iterator[Client]:
    with serving(server) as url, Client(base_url=url, timeout=10, verify=WITHOUT_TLS) as client:
        yield client


def watch_lines(client: Client, path: str, count: int) -> list[Document]:
    found: list[Document] = []
    with client.stream("GET", path) as response:
        for line in response.iter_lines():
            found.append(json.loads(line))
            if len(found) == count:
                break
    return found


def shape(events: list[Document]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def status(response: Response) -> tuple[int, str, str]:
    body = response.json()
    return response.status_code, body["reason"], body["message"]


def test_objects_are_created_read_replaced_patched_and_deleted(client: Client) -> None:
    created = client.post(PODS, json=pod())
    assert created.status_code == 201
    assert client.get(f"{PODS}/p").json() == created.json()
    document = created.json() | {"metadata": created.json()["metadata"] | {"labels": {"a": "b"}}}
    assert client.put(f"{PODS}/p", json=document).json()["metadata"]["labels"] == {"a": "b"}
    patched = client.patch(
        f"{PODS}/p",
        content=json.dumps({"metadata": {"labels": {"c": "d"}}}),
        headers={"content-type": "application/merge-patch+json"},
    )
    assert patched.json()["metadata"]["labels"] == {"a": "b", "c": "d"}
    assert client.delete(f"{PODS}/p").status_code == 200
    assert status(client.get(f"{PODS}/p")) == (404, "NotFound", 'pods "p" not found')


def test_a_list_is_paged(client: Client) -> None:
    for name in ("a", "b", "c"):
        client.post(PODS, json=pod(name))
    first = client.get(PODS, params={"limit": 2}).json()
    assert [one["metadata"]["name"] for one in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    token = first["metadata"]["continue"]
    rest = client.get(PODS, params={"limit": 2, "continue": token}).json()
    assert [one["metadata"]["name"] for one in rest["items"]] == ["c"]
    assert "continue" not in rest["metadata"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_broken_continue_token_is_refused(client: Client) -> None:
    assert client.get(PODS, params={"continue": "x"}).status_code == 400


def test_a_watch_resumes_from_a_revision(client: Client) -> None:
    revision = client.get(PODS).json()["metadata"]["resourceVersion"]
    client.post(PODS, json=pod("a"))
    client.delete(f"{PODS}/a")
    events = watch_lines(client, f"{PODS}?watch=true&resourceVersion={revision}", 3)
    assert shape(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_a_watch_without_a_revision_begins_with_what_is_there(client: Client) -> None:
    client.post(PODS, json=pod("a"))
    assert shape(watch_lines(client, f"{PODS}?watch=true", 1)) == [("ADDED", "a")]


def test_a_watch_list_ends_its_beginning_with_a_bookmark(client: Client) -> None:
    client.post(PODS, json=pod("a"))
    query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
    events = watch_lines(client, f"{PODS}?{query}", 2)
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    metadata = events[1]["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(metadata["resourceVersion"]) >= 1


def test_a_live_watch_sees_a_write(client: Client) -> None:
    revision = client.get(PODS).json()["metadata"]["resourceVersion"]
    with client.stream("GET", f"{PODS}?watch=true&resourceVersion={revision}") as response:
        assert client.post(PODS, json=pod("late")).status_code == 201
        assert json.loads(next(response.iter_lines()))["object"]["metadata"]["name"] == "late"


def test_objects_enter_and_leave_a_selected_watch(client: Client) -> None:
    client.post(PODS, json=pod("a"))
    revision = client.get(PODS).json()["metadata"]["resourceVersion"]
    for label in ("x", "y"):
        client.patch(
            f"{PODS}/a",
            content=json.dumps({"metadata": {"labels": {"k": label}}}),
            headers={"content-type": "application/merge-patch+json"},
        )
    query = f"watch=true&labelSelector=k%3Dx&resourceVersion={revision}"
    assert shape(watch_lines(client, f"{PODS}?{query}", 2)) == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_from_a_forgotten_revision_is_told_to_list_again(
    client: Client, server: ApiServer
) -> None:
    client.post(PODS, json=pod("a"))
    server.store.forget_history()
    event = watch_lines(client, f"{PODS}?watch=true&resourceVersion=1", 1)[0]
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )


def test_a_watch_from_nonsense_is_refused(client: Client) -> None:
    assert client.get(f"{PODS}?watch=true&resourceVersion=x").status_code == 400


def test_the_server_stops_although_a_watch_is_open() -> None:
    server = make_server()
    ended: list[bool] = []
    started = threading.Event()

    def follow(url: str) -> None:
        with (
            Client(base_url=url, timeout=20, verify=WITHOUT_TLS) as client,
            client.stream("GET", f"{PODS}?watch=true&resourceVersion=1") as response,
        ):
            started.set()
            ended.append(list(response.iter_lines()) == [])

    with serving(server) as url:
        thread = threading.Thread(target=follow, args=(url,), daemon=True)
        thread.start()
        assert started.wait(10)
    thread.join(10)
    assert ended == [True]


def table(client: Client, path: str) -> tuple[list[str], list[list[Any]]]:
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    body = client.get(path, headers=accept).json()
    assert body["kind"] == "Table"
    names = [column["name"] for column in body["columnDefinitions"]]
    return names, [row["cells"] for row in body["rows"]]


def test_a_table_has_the_columns_of_the_definition(client: Client) -> None:
    client.post(WIDGETS, json=widget())
    assert table(client, WIDGETS) == (["Name", "Size", "Age"], [["w", 1, "0s"]])


def test_a_table_of_pods_has_the_stock_columns(client: Client) -> None:
    client.post(PODS, json=pod())
    names, rows = table(client, f"{PODS}/p")
    assert names[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert rows[0][:5] == ["p", "0/1", "Pending", "0", "0s"]


def test_discovery_has_both_forms(client: Client) -> None:
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    answer = client.get("/apis", headers=accept)
    assert answer.headers["content-type"].endswith("as=APIGroupDiscoveryList")
    groups = {group["metadata"]["name"] for group in answer.json()["items"]}
    assert {"apps", "example.com"} <= groups
    listed = client.get("/apis/example.com/v1").json()["resources"]
    assert [one["name"] for one in listed] == ["widgets", "widgets/status"]
    assert client.get("/apis/example.com").json()["preferredVersion"]["version"] == "v1"
    assert client.get("/apis/none.example.com").status_code == 404


def test_binding_and_eviction_are_posted_to_the_pod(client: Client) -> None:
    client.post(PODS, json=pod())
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert client.post(f"{PODS}/p/binding", json=binding).status_code == 201
    assert client.post(f"{PODS}/p/binding", json=binding).status_code == 409
    assert client.post(f"{PODS}/p/eviction", json={"metadata": {"name": "p"}}).status_code == 201
    assert client.get(f"{PODS}/p").json()["metadata"]["deletionTimestamp"]


def test_a_binding_may_be_posted_to_the_namespace(client: Client) -> None:
    client.post(PODS, json=pod())
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert client.post("/api/v1/namespaces/default/bindings", json=binding).status_code == 201
    assert client.get(f"{PODS}/p").json()["spec"]["nodeName"] == "n1"


def test_events_have_two_shapes(client: Client) -> None:
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p"},
        "note": "hello",
        "reason": "Test",
        "type": "Normal",
    }
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    assert client.post(path, json=event).status_code == 201
    core = client.get(
        "/api/v1/namespaces/default/events", params={"fieldSelector": "involvedObject.name=p"}
    ).json()["items"]
    assert [(one["message"], one["involvedObject"]["name"]) for one in core] == [("hello", "p")]
    assert client.get(f"{path}/e").json()["note"] == "hello"


def test_a_collection_is_deleted(client: Client) -> None:
    for name in ("a", "b"):
        client.post(PODS, json=pod(name, metadata={"labels": {"n": name}}))
    client.delete(PODS, params={"labelSelector": "n=a"})
    assert [one["metadata"]["name"] for one in client.get(PODS).json()["items"]] == ["b"]


def test_logs_are_what_the_command_echoes(client: Client, server: ApiServer) -> None:
    client.post(PODS, json=pod(command=["sh", "-c", "echo one; echo two; sleep 9"]))
    assert status(client.get(f"{PODS}/p/log"))[2] == "pod p does not have a host assigned"
    bind_pod(server, "p", "n1")
    assert status(client.get(f"{PODS}/p/log"))[2] == (
        'container "c" in pod "p" is waiting to start: ContainerCreating'
    )
    ran = {"containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "now"}}}]}
    client.patch(
        f"{PODS}/p/status",
        content=json.dumps({"status": ran}),
        headers={"content-type": "application/merge-patch+json"},
    )
    assert client.get(f"{PODS}/p/log").text.splitlines()[:2] == ["one", "two"]
    assert len(client.get(f"{PODS}/p/log?tailLines=1").text.splitlines()) == 1


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/apis/example.com/v1/gadgets", 404),
        ("POST", f"{PODS}/p", 405),
        ("PUT", PODS, 405),
        ("GET", "/readyz", 200),
        ("GET", "/version", 200),
        ("GET", "/openapi/v3", 200),
        ("GET", "/openapi/v3/apis/example.com/v1", 200),
        ("GET", "/openapi/v2", 200),
    ],
)
def test_paths_and_methods(client: Client, method: str, path: str, code: int) -> None:
    assert client.request(method, path).status_code == code


def test_a_body_that_is_not_json_is_refused(client: Client) -> None:
    headers = {"content-type": "application/json"}
    assert client.post(PODS, content=b"{", headers=headers).status_code == 400


@pytest.mark.parametrize(
    "query", ["limit=some", "timeoutSeconds=some", "watch=true&timeoutSeconds=some"]
)
def test_a_query_with_a_word_for_a_number_is_refused(client: Client, query: str) -> None:
    assert status(client.get(f"{PODS}?{query}")) == (
        400,
        "BadRequest",
        'strconv.ParseInt: parsing "some": invalid syntax',
    )


def test_a_negative_limit_is_none(client: Client) -> None:
    client.post(PODS, json=pod())
    assert len(client.get(f"{PODS}?limit=-1").json()["items"]) == 1


def test_namespaces_are_deleted_one_at_a_time(client: Client) -> None:
    assert client.delete("/api/v1/namespaces").status_code == 405
    found = client.get("/api/v1").json()["resources"]
    (namespaces,) = (one for one in found if one["name"] == "namespaces")
    assert "deletecollection" not in namespaces["verbs"]


@pytest.mark.parametrize("kind", ["merge-patch", "strategic-merge-patch", "json-patch"])
@pytest.mark.parametrize("body", [5, ["x"]], ids=str)
def test_what_is_no_patch_is_refused(client: Client, kind: str, body: object) -> None:
    client.post(PODS, json=pod())
    headers = {"content-type": f"application/{kind}+json"}
    answer = client.patch(f"{PODS}/p", content=json.dumps(body), headers=headers)
    assert answer.status_code == 400
    assert "json: cannot unmarshal" in answer.json()["message"]
