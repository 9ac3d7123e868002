"""What the client asks, and what it makes of the answers."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from aiohttp import web

from app.kube import errors
from app.kube.client import ApiClient, ClientOptions, ContentType
from app.kube.config import Connection
from app.telemetry import metrics
from tests.kube.server import (
    LOGIN_PAGE,
    TOO_DEEP,
    ScriptedServer,
    answer,
    answer_once,
    cut_off,
    failure,
    page,
    silent,
    too_deep,
)
from tests.service.virtual_time import settle

T = TypeVar("T")
POD = "/api/v1/namespaces/ns/pods/p"
PODS = "/api/v1/pods"


def run(
    connection: Connection,
    use: Callable[[ApiClient], Awaitable[T]],
    options: ClientOptions | None = None,
) -> T:
    async def opened() -> T:
        async with ApiClient(connection, options) as client:
            return await use(client)

    return asyncio.run(opened())


def test_get_hands_back_the_bytes_as_they_came(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("GET", POD, answer(b'{"a":  1}'))
    assert run(connection, lambda c: c.get(POD, {"x": "a=b,c"})) == b'{"a":  1}'
    assert server.seen[0].query == {"x": "a=b,c"}


def test_warnings_are_told_with_a_refusal_too(
    server: ScriptedServer, connection: Connection
) -> None:
    async def handle(_server: ScriptedServer, _request: web.BaseRequest) -> web.StreamResponse:
        refused = web.json_response({"message": "no"}, status=422)
        for warning in (
            '299 - "unknown field \\"spec.a\\""',
            '199 me "first" "Tue, 15 Nov 1994 08:12:31 GMT", 299 - "second"',
            "of another form",
        ):
            refused.headers.add("Warning", warning)
        return refused

    server.on("POST", PODS, handle)
    told: list[str] = []

    async def use() -> None:
        async with ApiClient(connection, warn=told.append) as client:
            await client.create(PODS, {})

    with pytest.raises(errors.Invalid):
        asyncio.run(use())
    assert told == ['unknown field "spec.a"', "first", "second"]


def test_list_follows_the_continue_tokens(server: ScriptedServer, connection: Connection) -> None:
    server.on("GET", PODS, page([1, 2], version=7, token="t 1"), page([3], version=7, token=""))

    async def collect(client: ApiClient) -> int:
        return len([p async for p in client.list(PODS, {"fieldSelector": "a!=b"}, limit=2)])

    assert run(connection, collect) == 2
    assert [dict(s.query) for s in server.seen] == [
        {"fieldSelector": "a!=b", "limit": "2"},
        {"fieldSelector": "a!=b", "limit": "2", "continue": "t 1"},
    ]


@pytest.mark.parametrize("content_type", list(ContentType))
def test_patch_names_its_content_type(
    server: ScriptedServer, connection: Connection, content_type: ContentType
) -> None:
    server.on("PATCH", POD, answer({}))
    run(connection, lambda c: c.patch(POD, {"a": 1}, content_type=content_type))
    assert server.seen[0].headers["Content-Type"] == content_type.value
    assert server.seen[0].json() == {"a": 1}


def test_bytes_are_sent_as_they_are(server: ScriptedServer, connection: Connection) -> None:
    server.on("PUT", POD, answer({}))
    run(connection, lambda c: c.replace(POD, b'{ "z": 1 }'))
    assert server.seen[0].body == b'{ "z": 1 }'


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (410, "Gone", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.Throttled),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
    ],
)
def test_a_failure_is_the_error_of_its_reaction(
    server: ScriptedServer,
    connection: Connection,
    *,
    code: int,
    reason: str,
    expected: type[errors.KubeError],
) -> None:
    server.on("POST", PODS, failure(code, reason, "why " * 200))
    with pytest.raises(errors.KubeError) as caught:
        run(connection, lambda c: c.create(PODS, {}))
    assert type(caught.value) is expected
    assert (caught.value.status, caught.value.reason) == (code, reason)
    assert caught.value.message.startswith("why why")
    assert len(caught.value.message) <= errors.MESSAGE_LIMIT


def invalid(*fields: str) -> bytes:
    """The API server's refusal of an object with these wrong fields."""
    causes = [{"reason": "FieldValueInvalid", "message": "why", "field": each} for each in fields]
    return json.dumps({"reason": "Invalid", "code": 422, "details": {"causes": causes}}).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(invalid("metadata.uid", "metadata.uid"), errors.Replaced, id="uid"),
        pytest.param(invalid("spec", "metadata.uid"), errors.Replaced, id="uid among others"),
        pytest.param(invalid("spec.nodeName"), errors.Invalid, id="another field"),
        pytest.param(invalid("metadata.ownerReferences[0].uid"), errors.Invalid, id="owner"),
        pytest.param(invalid(), errors.Invalid, id="no field"),
        pytest.param(b'{"reason": "Invalid", "details": {}}', errors.Invalid, id="no causes"),
        pytest.param(b'{"reason": "Invalid", "details": "a"}', errors.Invalid, id="odd details"),
        pytest.param(b'{"reason": "Invalid"}', errors.Invalid, id="no details"),
    ],
)
def test_a_patch_that_names_another_uid_was_for_an_object_that_is_gone(
    server: ScriptedServer, connection: Connection, body: bytes, expected: type[errors.KubeError]
) -> None:
    server.on("PATCH", POD, answer(body, status=422))
    with pytest.raises(errors.KubeError) as caught:
        run(connection, lambda c: c.patch(POD, {"metadata": {"uid": "old"}}))
    assert type(caught.value) is expected
    assert caught.value.reason == "Invalid"


def test_who_is_not_known_any_more_says_anew_who_it_is(
    server: ScriptedServer, connection: Connection
) -> None:
    said = iter(("old", "new"))
    renewing = replace(connection, headers=lambda: {"authorization": next(said)})
    server.on("GET", POD, failure(401, "Unauthorized"), answer({}))

    async def twice(client: ApiClient) -> None:
        with pytest.raises(errors.Unauthorized):
            await client.get(POD)
        await client.get(POD)

    run(renewing, twice)
    assert [seen.headers["Authorization"] for seen in server.seen] == ["old", "new"]


def test_throttled_tells_how_long_the_server_asks_to_wait(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", PODS, failure(429, "TooManyRequests", "slow", {"Retry-After": "3"}))
    with pytest.raises(errors.Throttled) as caught:
        run(connection, lambda c: c.create(PODS, {}))
    assert caught.value.retry_after_s == 3.0


@pytest.mark.parametrize(
    ("said", "waited_s"),
    [
        ("99999999999", 30.0),
        ("9" * 400, 30.0),
        ("0", 0.0),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_nobody_waits_long_because_a_server_says_so(said: str, waited_s: float | None) -> None:
    error = errors.from_answer(503, b"", {"Retry-After": said})
    assert error.retry_after_s == waited_s


def test_a_failure_that_is_no_status_object_keeps_its_text(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("GET", PODS, answer(b"404 page not found\n", status=404))
    with pytest.raises(errors.NotFound, match="404 page not found"):
        run(connection, lambda c: c.get(PODS))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"message": "caf\xe9"}', id="not UTF-8"),
        pytest.param(TOO_DEEP, id="too deep"),
        pytest.param(b"null", id="null"),
        pytest.param(b"", id="empty"),
    ],
)
def test_no_body_of_a_failure_is_more_than_a_failure(
    server: ScriptedServer, connection: Connection, body: bytes
) -> None:
    server.on("GET", PODS, answer(body, status=502))
    with pytest.raises(errors.ServerError) as caught:
        run(connection, lambda c: c.get(PODS))
    assert caught.value.message == body[: errors.MESSAGE_LIMIT].decode(errors="replace")


def test_list_goes_on_after_an_object_too_deep_to_be_read(
    server: ScriptedServer, connection: Connection
) -> None:
    deep = b'{"items": [%s], "metadata": {"continue": "t"}}' % too_deep("a", 1)
    server.on("GET", PODS, answer(deep), page([], version=7))

    async def collect(client: ApiClient) -> int:
        return len([p async for p in client.list(PODS)])

    assert run(connection, collect) == 2
    assert server.seen[1].query["continue"] == "t"


def test_a_success_that_is_no_listing_may_be_one_later(
    server: ScriptedServer, connection: Connection
) -> None:
    async def collect(client: ApiClient) -> int:
        return len([p async for p in client.list(PODS)])

    server.on("GET", PODS, answer(LOGIN_PAGE))
    with pytest.raises(errors.Unreadable, match="not what was asked for"):
        run(connection, collect)


def test_nothing_is_tried_twice(server: ScriptedServer, connection: Connection) -> None:
    server.on("POST", PODS, failure(503, "ServiceUnavailable"), answer({}))
    with pytest.raises(errors.ServerError):
        run(connection, lambda c: c.create(PODS, {}))
    assert len(server.seen) == 1


def test_a_deadline_ends_a_request_that_may_have_been_done(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", PODS, silent())
    with pytest.raises(errors.Transport) as caught:
        run(connection, lambda c: c.create(PODS, {}, deadline_s=0.05))
    assert caught.value.sent
    assert caught.value.status == 0


class Leaping(asyncio.SelectorEventLoop):
    """Its time is what it is told to be, and goes on from there."""

    leapt_s = 0.0

    def time(self) -> float:
        return super().time() + self.leapt_s


def test_waiting_for_a_connection_is_not_of_the_deadline(
    server: ScriptedServer, connection: Connection
) -> None:
    """A gang's Bindings are sent at once, and there are more of them than connections."""
    free = threading.Event()

    server.on("POST", PODS, answer_once(free), answer({}))

    async def all_at_once() -> list[bytes]:
        options = ClientOptions(connections=1, deadline_s=60.0)
        async with ApiClient(connection, options) as client:
            first = asyncio.create_task(client.create(PODS, {}, deadline_s=600.0))
            await asyncio.to_thread(server.wait_for, bool)
            others = [asyncio.create_task(client.create(PODS, {})) for _ in range(3)]
            await settle()
            loop.leapt_s = 120.0
            await settle()
            free.set()
            return await asyncio.gather(first, *others)

    loop = Leaping()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(all_at_once()) == [b"{}"] * 4


def test_a_connection_that_breaks_is_a_transport_error(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("POST", PODS, cut_off())
    with pytest.raises(errors.Transport) as caught:
        run(connection, lambda c: c.create(PODS, {}))
    assert caught.value.sent


def test_a_server_that_is_not_there_got_nothing(
    server: ScriptedServer, connection: Connection
) -> None:
    server.end()
    with pytest.raises(errors.Transport) as caught:
        run(connection, lambda c: c.create(PODS, {}))
    assert not caught.value.sent


def test_requests_are_counted_by_verb_and_code(
    server: ScriptedServer, connection: Connection
) -> None:
    def count(code: str) -> float:
        labels = {"verb": "DELETE", "code": code}
        return metrics.REGISTRY.get_sample_value("pumice_kube_requests_total", labels) or 0.0

    before = count("200"), count("404")
    server.on("DELETE", POD, answer({}), failure(404, "NotFound"))

    async def twice(client: ApiClient) -> None:
        await client.delete(POD)
        with pytest.raises(errors.NotFound):
            await client.delete(POD)

    run(connection, twice)
    assert (count("200"), count("404")) == (before[0] + 1, before[1] + 1)


def test_a_client_that_was_not_opened_says_so(connection: Connection) -> None:
    with pytest.raises(RuntimeError, match="not open"):
        asyncio.run(ApiClient(connection).get(PODS))


def test_the_rate_limit_delays_what_exceeds_the_burst(
    server: ScriptedServer, connection: Connection
) -> None:
    server.on("GET", PODS, answer({}))
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def thrice() -> None:
        options = ClientOptions(qps=10, burst=2)
        async with ApiClient(connection, options, clock=lambda: 5.0, sleep=sleep) as client:
            for _ in range(4):
                await client.get(PODS)

    asyncio.run(thrice())
    assert slept == [pytest.approx(0.1), pytest.approx(0.2)]
