"""Why there was no answer: the same words from both clients, and none of a library's."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.kube import config
from app.kube.client import ApiClient, ClientOptions
from app.kube.config import Connection, load
from app.kube.errors import Transport
from app.kube.failures import shown
from app.kube.source import Source
from app.kube.unusable import why
from tests.kube.server import ScriptedServer
from tests.kube.tls import self_signed

LIBRARIES = ("ssl:", "HTTPConnection", "Errno", "Cannot connect", "Max retries", "urllib", "[None]")


@contextmanager
def answering(data: bytes | None) -> Iterator[str]:
    """The address of a server that says this to each caller and hangs up; None: says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer, args=(listener, data), daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _answer(listener: socket.socket, data: bytes | None) -> None:
    callers = []
    while True:
        try:
            caller, _ = listener.accept()
        except OSError:
            break
        callers.append(caller)
        if data is not None:
            caller.recv(1 << 16)
            caller.sendall(data)
            caller.close()
    for caller in callers:
        caller.close()


def said(connection: Connection) -> set[str]:
    """What the client and the reader of a watch say, which ask for the same."""

    async def ask() -> None:
        async with ApiClient(connection, ClientOptions(deadline_s=1.0)) as client:
            await client.get("/version")

    with pytest.raises(Transport) as of_client:
        asyncio.run(ask())
    source = Source(connection)
    with pytest.raises(Transport) as of_reader:
        source.read("/version", {}, silence_s=1.0)
    source.close()
    return {of_client.value.message, of_reader.value.message}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_a_port_that_nobody_listens_at() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert said(config.at(url)) == {f"GET {url}/version: Connection refused"}


def test_a_name_that_leads_nowhere() -> None:
    why = "the name of the host cannot be resolved"
    assert said(config.at("http://api.invalid")) == {f"GET http://api.invalid/version: {why}"}


@pytest.mark.parametrize(
    ("scheme", "data", "said_of_it"),
    [
        ("http", b"", "the connection was closed before an answer came"),
        ("http", b"SSH-2.0-x\r\n\r\n", "the answer is not HTTP"),
        ("http", b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nabc", "the answer broke off"),
        ("http", None, "no answer in time"),
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", "what answers does not speak TLS"),
    ],
    ids=["hangs up", "other language", "cut", "silent", "no TLS"],
)
def test_a_server_that_is_none(scheme: str, data: bytes | None, said_of_it: str) -> None:
    with answering(data) as address:
        url = f"{scheme}://{address}"
        assert said(config.at(url)) == {f"GET {url}/version: {said_of_it}"}


def test_a_certificate_of_an_unknown_authority_is_called_untrusted(tmp_path: Path) -> None:
    context, _ = self_signed(tmp_path)
    why = "the certificate is not trusted: self-signed certificate"
    with ScriptedServer(context) as server:
        assert said(config.at(server.base)) == {f"GET {server.base}/version: {why}"}


def test_a_certificate_for_another_name_is_called_untrusted(tmp_path: Path) -> None:
    context, certificate = self_signed(tmp_path)
    (tmp_path / "ca.pem").write_bytes(certificate)
    with ScriptedServer(context) as server:
        other = server.base.replace("127.0.0.1", "localhost")
        cluster = {"server": other, "certificate-authority": str(tmp_path / "ca.pem")}
        messages = said(load(server.kubeconfig(tmp_path, cluster=cluster)))
    why = "Hostname mismatch, certificate is not valid for 'localhost'."
    assert messages == {f"GET {other}/version: the certificate is not trusted: {why}"}


def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    with answering(refusing) as address:
        monkeypatch.setenv("https_proxy", f"http://me:secret@{address}")
        messages = said(config.at("https://api.invalid"))
    for message in messages:
        start = f"GET https://api.invalid/version through the proxy http://{address}: the proxy "
        assert message.startswith(start)
        assert "403 Forbidden" in message


def test_a_server_that_wants_a_client_certificate(tmp_path: Path) -> None:
    context, certificate = self_signed(tmp_path)
    (tmp_path / "ca.pem").write_bytes(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with ScriptedServer(context) as server:
        cluster = {"certificate-authority": str(tmp_path / "ca.pem")}
        messages = said(load(server.kubeconfig(tmp_path, cluster=cluster)))
    assert not [text for text in messages for word in LIBRARIES if word in text]


def test_a_certificate_that_is_none_is_not_told_in_the_words_of_a_library(tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    file.write_text("nonsense")
    with pytest.raises(ssl.SSLError) as caught:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file, file)
    assert why(caught.value) == "a certificate or a key is not PEM"


def test_passwords_in_urls_are_not_shown() -> None:
    assert shown("http://me:secret@proxy:3128/x") == "http://proxy:3128/x"
