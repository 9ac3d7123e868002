"""Our HTTP server on a real socket: bodies in pieces, bodies too big, TLS both ways."""

import asyncio
import json
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.app import create_app
from app.api.body import MAX_BODY
from app.api.extender import extender_calls
from app.main.serving.server import CONNECTIONS, Bind, listen, server
from app.model.ids import GroupKey, PodUid
from app.sandbox.controlplane.certificates import Authority
from tests.api.stand import args, binding, services_of
from tests.service.rig import Rig

LOCAL = Bind(host="127.0.0.1", port=0)


def application(rig: Rig | None = None) -> ASGIApp:
    rig = rig or Rig()
    rig.node("n1")
    rig.planning.leadership.deciding.set()
    services = services_of(rig)
    return create_app(services, extender_calls(services))


@contextmanager
def served(
    bind: Bind = LOCAL, *, app: ASGIApp | None = None, most: int = CONNECTIONS
) -> Iterator[tuple[str, int]]:
    """Host and port of the running server; calls that come before it runs wait in the socket."""

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(web.serve(sockets=[listener]))

    listener = listen(bind)
    web = server(app or application(), bind, most=most)
    thread = threading.Thread(target=run)
    host, port = listener.getsockname()[:2]
    thread.start()
    try:
        yield host, port
    finally:
        web.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def exchange(where: tuple[str, int], request: bytes) -> bytes:
    """Everything that is answered to raw bytes until the server closes or is done."""
    with socket.create_connection(where, timeout=20) as link:
        link.sendall(request)
        answer = b""
        while piece := link.recv(65536):
            answer += piece
            head, _, body = answer.partition(b"\r\n\r\n")
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length: ") and len(body) >= int(line[16:]):
                    return answer
    return answer


def test_a_body_in_chunks_is_read_whole() -> None:
    text = json.dumps(args("p")).encode()
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(part), part)
        for part in (text[i : i + 100] for i in range(0, len(text), 100))
    )
    with served() as where:
        request = b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = exchange(where, request + chunks + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"NodeNames":["n1"]' in answer


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), str(10**15)])
def test_a_body_that_announces_too_much_is_refused_at_once(length: str) -> None:
    with served() as where:
        request = f"POST /bind HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
        answer = exchange(where, request)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(f"body of {length} bytes is over the limit of {MAX_BODY}\n".encode())


@pytest.mark.parametrize(
    "request_text",
    [
        b"nonsense\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_is_refused(request_text: bytes) -> None:
    with served() as where:
        assert exchange(where, request_text)[9:12] in (b"400", b"")
        assert httpx2.get(f"http://{where[0]}:{where[1]}/livez").status_code == 200


def test_a_connection_serves_many_calls() -> None:
    with served() as (host, port), httpx2.Client(base_url=f"http://{host}:{port}") as client:
        for _ in range(20):
            assert client.post("/filter", json=args("p")).status_code == 200
        assert client.get("/livez").headers.get("server") is None


@contextmanager
def connected(app: ASGIApp) -> Iterator[socket.socket]:
    """A connection to the running server of ``app``."""
    with served(app=app) as where, socket.create_connection(where, timeout=20) as link:
        yield link


def packets(link: socket.socket) -> int:
    """With data, received so far (``tcpi_data_segs_in`` of Linux)."""
    info = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
    return int.from_bytes(info[152:156], sys.byteorder)


def test_an_answer_arrives_in_one_packet() -> None:
    body = json.dumps(args("p")).encode()
    filter_call = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    with connected(application()) as link:
        for sent in range(1, 20):
            link.sendall(filter_call + body)
            assert link.recv(2**20).startswith(b"HTTP/1.1 200 OK\r\n")
            assert packets(link) == sent


def test_a_head_does_not_wait_for_a_body_that_comes_later() -> None:
    seen = threading.Event()

    async def slow(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.to_thread(seen.wait, 20)
        await send({"type": "http.response.body", "body": b"late"})

    with connected(slow) as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert link.recv(2**20).endswith(b"\r\n\r\n")
        seen.set()
        assert link.recv(2**20) == b"4\r\nlate\r\n0\r\n\r\n"


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"])
def test_an_answer_without_a_body_is_sent(more: bytes) -> None:
    async def empty(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    with connected(empty) as link:
        link.sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\n" + more + b"\r\n")
        assert link.recv(2**20).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.real_time
async def test_a_client_that_closes_its_connection_ends_its_hold() -> None:
    """As when kube-scheduler is killed, or its time-out passes."""

    rig = Rig()
    app = application(rig)
    rig.gang("g", size=2)
    await rig.cycle()
    held, left = asyncio.Event(), asyncio.Event()
    barrier = rig.parts.barrier
    hold, leave = barrier.hold, barrier.leave

    def holding(key: GroupKey, uid: PodUid) -> "asyncio.Future[str]":
        held.set()
        return hold(key, uid)

    def leaving(key: GroupKey, uid: PodUid, future: "asyncio.Future[str]") -> None:
        leave(key, uid, future)
        left.set()

    barrier.hold, barrier.leave = holding, leaving  # type: ignore[method-assign]
    listener = listen(LOCAL)
    host, port = listener.getsockname()[:2]
    web = server(app, LOCAL)
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    _, writer = await asyncio.open_connection(host, port)
    body = json.dumps(binding("g-0")).encode()
    writer.write(b"POST /bind HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
    writer.write(body)
    async with asyncio.timeout(20):
        await held.wait()
        assert not left.is_set()
        writer.close()
        await left.wait()
    assert barrier.held() == {}
    assert rig.api.tries == []
    web.should_exit = True
    await serving


def test_a_taken_address_is_an_error() -> None:
    first = listen(LOCAL)
    try:
        with pytest.raises(OSError, match="in use"):
            listen(replace(LOCAL, port=first.getsockname()[1]))
    finally:
        first.close()


def test_it_listens_on_ipv6() -> None:
    try:
        listener = listen(Bind(host="::1", port=0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    assert listener.family is socket.AF_INET6
    listener.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_every_address_is_those_of_both_families(host: str) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    listener = listen(Bind(host=host, port=0))
    with listener:
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, listener.getsockname()[1]), timeout=5) as link:
                assert link.getpeername()[0] == address


def test_https_asks_clients_for_certificates_of_our_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, mine = authority.server("server"), authority.client("client", user="scheduler")
    bind = replace(
        LOCAL,
        cert_file=pair.certificate,
        key_file=pair.key,
        client_ca_file=authority.certificate,
    )
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
    known = ssl.create_default_context(cafile=str(authority.certificate))
    known.verify_flags &= ~ssl.VERIFY_X509_STRICT
    known.load_cert_chain(mine.certificate, mine.key)
    with served(bind) as (host, port):
        url = f"https://{host}:{port}/livez"
        assert httpx2.get(url, verify=known).status_code == 200
        with pytest.raises(httpx2.TransportError):
            httpx2.get(url, verify=trusting)


def test_certificates_that_are_none_are_an_error(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("no certificate")
    with pytest.raises(ssl.SSLError):
        server(application(), replace(LOCAL, cert_file=nothing, key_file=nothing))
