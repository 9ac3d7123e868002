"""Client certificates of an exec plugin, which are renewed while we run."""

import asyncio
import datetime
import gc
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.kube.client import ApiClient
from app.kube.config import Connection, load
from app.kube.errors import ConfigError, Unauthorized
from app.kube.source import Source
from tests.kube.plugins import Plugin
from tests.kube.server import Handler, ScriptedServer, failure
from tests.kube.tls import self_signed

NAMES = ("one", "two")
Reads = Callable[[Connection, int], list[object]]


class Owner:
    """A certificate with its key, for whoever has that name."""

    def __init__(self, name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject)
        builder = builder.public_key(key.public_key()).serial_number(1).not_valid_before(begin)
        signed = builder.not_valid_after(begin + datetime.timedelta(days=36_500))
        pem = serialization.Encoding.PEM
        self.certificate = signed.sign(key, hashes.SHA256()).public_bytes(pem).decode()
        self.key = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()

    def status(self, *, lasts_s: float) -> dict[str, str]:
        """What a plugin gives that logs in as this one."""
        now = datetime.datetime.now(datetime.UTC)  # noqa: TID251 - of what the plugin's clock says
        return {
            "clientCertificateData": self.certificate,
            "clientKeyData": self.key,
            "expirationTimestamp": f"{now + datetime.timedelta(seconds=lasts_s):%FT%TZ}",
        }


OWNERS = {name: Owner(name) for name in NAMES}


def whoami() -> Handler:
    """Answers with the name in the certificate of who asks."""

    async def handle(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        return web.Response(body=json.dumps(subject[0][0][1]))

    return handle


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    """Lets in those two only."""
    context, authority = self_signed(tmp_path)
    (tmp_path / "authority").write_bytes(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata="".join(o.certificate for o in OWNERS.values()))
    with ScriptedServer(context) as running:
        running.on("GET", "/version", whoami())
        yield running


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


@pytest.fixture
def connect(server: ScriptedServer, plugin: Plugin, tmp_path: Path) -> Callable[[], Connection]:
    cluster = {"certificate-authority": "authority"}
    return lambda: load(server.kubeconfig(tmp_path, cluster=cluster, user=plugin.user))


def asked(connection: Connection, times: int) -> list[object]:
    """What the client is told; a 401 is None."""

    async def use() -> list[object]:
        async with ApiClient(connection) as client:
            told: list[object] = []
            for _ in range(times):
                try:
                    told.append(json.loads(await client.get("/version")))
                except Unauthorized:
                    told.append(None)
            return told

    return asyncio.run(use())


def read(connection: Connection, times: int) -> list[object]:
    """What the connection of an informer is told; a 401 is None."""
    source, told = Source(connection), list[object]()
    for _ in range(times):
        try:
            told.append(json.loads(source.read("/version", {}, silence_s=5.0)))
        except Unauthorized:
            told.append(None)
    source.close()
    return told


@pytest.mark.parametrize("reads", [asked, read])
def test_a_certificate_is_kept_while_it_may_be(
    connect: Callable[[], Connection], plugin: Plugin, *, reads: Reads
) -> None:
    plugin.says(**OWNERS["one"].status(lasts_s=3600))
    assert reads(connect(), 3) == ["one"] * 3
    assert plugin.runs == 1


@pytest.mark.parametrize("reads", [asked, read])
def test_a_certificate_is_renewed_when_it_is_about_to_expire(
    connect: Callable[[], Connection], plugin: Plugin, *, reads: Reads
) -> None:
    plugin.says(**OWNERS["one"].status(lasts_s=59))
    connection = connect()
    plugin.says(**OWNERS["two"].status(lasts_s=3600))
    assert reads(connection, 2) == ["two"] * 2
    assert plugin.runs == 2


@pytest.mark.parametrize("reads", [asked, read])
def test_a_connection_under_the_old_certificate_is_not_used_after_it_was_refused(
    server: ScriptedServer, connect: Callable[[], Connection], plugin: Plugin, *, reads: Reads
) -> None:
    server.on("GET", "/version", whoami(), failure(401, "Unauthorized"), whoami())
    plugin.says(**OWNERS["one"].status(lasts_s=3600))
    connection = connect()
    answers = reads(connection, 1)
    plugin.says(**OWNERS["two"].status(lasts_s=3600))
    assert [*answers, *reads(connection, 3)] == ["one", None, "two", "two"]
    assert plugin.runs == 2


def test_a_pool_made_before_reads_the_renewed_certificate_too(
    connect: Callable[[], Connection], plugin: Plugin
) -> None:
    plugin.says(**OWNERS["one"].status(lasts_s=59))
    connection = connect()
    pool = connection.pool()
    plugin.says(**OWNERS["two"].status(lasts_s=3600))
    connection.headers()
    assert pool.request("GET", f"{connection.host}/version").json() == "two"
    pool.clear()


def test_a_plugin_may_change_from_a_certificate_to_a_token_and_back(
    connect: Callable[[], Connection], plugin: Plugin
) -> None:
    plugin.says(**OWNERS["one"].status(lasts_s=59))
    connection = connect()
    plugin.says(token="t", expirationTimestamp="2020-01-01T00:00:00Z")
    assert connection.headers() == {"authorization": "Bearer t"}
    plugin.says(**OWNERS["two"].status(lasts_s=3600))
    assert connection.headers() == {}
    assert read(connection, 1) == ["two"]


def test_a_certificate_that_cannot_be_used_is_asked_for_again(
    connect: Callable[[], Connection], plugin: Plugin
) -> None:
    plugin.says(**OWNERS["one"].status(lasts_s=59))
    connection = connect()
    broken = OWNERS["two"].status(lasts_s=3600) | {"clientCertificateData": "nonsense"}
    plugin.says(**broken)
    with pytest.raises(ConfigError, match="the credentials cannot be renewed"):
        connection.headers()
    plugin.says(**OWNERS["two"].status(lasts_s=3600))
    assert read(connection, 1) == ["two"]


def test_a_first_certificate_that_cannot_be_used_is_a_config_error(
    connect: Callable[[], Connection], plugin: Plugin
) -> None:
    plugin.says(clientCertificateData="nonsense", clientKeyData="nonsense")
    with pytest.raises(ConfigError, match="the certificates of"):
        connect()


def test_nobody_else_may_read_the_key_and_it_does_not_stay(
    connect: Callable[[], Connection],
    plugin: Plugin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plugin.says(**OWNERS["one"].status(lasts_s=3600))
    connection = connect()
    (folder,) = tmp_path.glob("pumice-*")
    assert folder.stat().st_mode & 0o077 == 0
    assert read(connection, 1) == ["one"]
    del connection
    gc.collect()
    assert not folder.exists()
