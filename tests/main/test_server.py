"""Our HTTP server on a real socket: bodies in pieces, bodies too big, TLS both ways."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from starlette.types import ASGIApp

from app.api.app import create_app
from app.api.services import MAX_BODY, ExtenderServices
from app.main.server import Bind, listen, server
from app.model.ids import GroupKey, PodUid
from app.sandbox.controlplane.certificates import Authority
from app.telemetry.metrics import REGISTRY
from tests.api.stand import args, binding
from tests.service.rig import Rig

LOCAL = Bind(host="127.0.0.1", port=0)


def application(rig: Rig | None = None) -> ASGIApp:
    rig = rig or Rig()
    rig.node("n1")
    rig.planning.first_cycle.set()
    parts = rig.parts
    return create_app(
        ExtenderServices(
            cache=parts.cache,
            planning=parts.planning,
            filtering=parts.filtering,
            barrier=parts.barrier,
            binding=parts.binding,
            feed=parts.feed,
            audit=parts.audit,
            unready=list,
            notices=tuple,
            metrics=REGISTRY,
        )
    )


@contextmanager
def served(bind: Bind = LOCAL) -> Iterator[tuple[str, int]]:
    """Host and port of the running server; calls that come before it runs wait in the socket."""
    listener = listen(bind)
    web = server(application(), bind)
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]})
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


def test_a_client_that_closes_its_connection_ends_its_hold() -> None:
    """As when kube-scheduler is killed, or its time-out passes."""

    async def scenario() -> None:
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

    asyncio.run(scenario())


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
