"""The test client: paths, refusals, and waiting on a watch."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.clusters.client import ApiClient, ApiError, Object, StateNotReached
from tests.clusters.resources import NODES, PODS, QUEUES

_Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def _server(answer: _Answer) -> Iterator[ApiClient]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with ApiClient(f"http://127.0.0.1:{server.server_port}") as api:
                yield api
        finally:
            server.shutdown()
            thread.join()


def _send(handler: BaseHTTPRequestHandler, code: int, *bodies: Object) -> None:
    handler.send_response(code)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    for body in bodies:
        handler.wfile.write(json.dumps(body).encode() + b"\n")


def _node(name: str, *, ready: bool) -> Object:
    return {"metadata": {"name": name}, "status": {"phase": "Running" if ready else "Pending"}}


def _listing(*items: Object) -> Object:
    return {"metadata": {"resourceVersion": "7"}, "items": list(items)}


def _running(items: list[Object]) -> bool:
    return bool(items) and all(item["status"]["phase"] == "Running" for item in items)


def test_paths_follow_group_namespace_and_subresource() -> None:
    assert (
        PODS.path("a", namespace="b", subresource="status") == "/api/v1/namespaces/b/pods/a/status"
    )
    assert PODS.path() == "/api/v1/pods"
    assert NODES.path("a", namespace="ignored") == "/api/v1/nodes/a"
    assert QUEUES.path("q") == "/apis/scheduling.volcano.sh/v1beta1/queues/q"


def test_a_refusal_carries_the_servers_status() -> None:
    status = {"kind": "Status", "reason": "NotFound", "message": "no such pod", "code": 404}
    with _server(lambda handler: _send(handler, 404, status)) as api:
        with pytest.raises(ApiError, match="404 NotFound: no such pod"):
            api.get(PODS, "a", namespace="b")
        assert api.find(PODS, "a", namespace="b") is None


def test_waiting_follows_the_watch_until_the_condition_holds() -> None:
    asked: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        if "watch=1" in handler.path:
            _send(
                handler,
                200,
                {"type": "ADDED", "object": _node("b", ready=True)},
                {"type": "DELETED", "object": _node("a", ready=False)},
            )
        else:
            _send(handler, 200, _listing(_node("a", ready=False)))

    with _server(answer) as api:
        found = api.until(NODES, _running, timeout_s=5)
    assert [item["metadata"]["name"] for item in found] == ["b"]
    assert [("watch=1" in path, "resourceVersion=7" in path) for path in asked] == [
        (False, False),
        (True, True),
    ]


@pytest.mark.parametrize("code", [200, 410], ids=["event", "status"])
def test_an_expired_watch_is_followed_by_a_new_list(code: int) -> None:
    lists: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "watch=1" in handler.path:
            _send(handler, code, {"type": "ERROR", "object": {"code": 410}})
        else:
            lists.append(handler.path)
            _send(handler, 200, _listing(_node("a", ready=len(lists) > 1)))

    with _server(answer) as api:
        api.until(NODES, _running, timeout_s=5)
    assert len(lists) == 2


def test_a_state_that_is_not_reached_is_shown() -> None:
    with (
        _server(lambda handler: _send(handler, 200, _listing(_node("a", ready=False)))) as api,
        pytest.raises(StateNotReached, match=r"nodes: all up not within 0 s\n  a .*Pending"),
    ):
        api.until(NODES, _running, timeout_s=0, what="all up")


def test_a_server_that_is_not_there_is_not_ready() -> None:
    with ApiClient("http://127.0.0.1:1") as api:
        assert not api.is_ready()


def test_a_read_that_a_server_cannot_answer_yet_is_sent_again() -> None:
    codes = [429, 200]
    with _server(lambda handler: _send(handler, codes.pop(0), _listing())) as api:
        assert api.list(NODES) == []
    assert codes == []
