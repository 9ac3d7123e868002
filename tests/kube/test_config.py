"""Connections from kubeconfigs and service accounts."""

import asyncio
import base64
import gc
import warnings
from pathlib import Path

import pytest
from kubernetes.client import Configuration
from urllib3 import PoolManager, ProxyManager
from urllib3.exceptions import InsecureRequestWarning

from app.kube import config
from app.kube.client import ApiClient
from app.kube.config import Connection, load
from app.kube.errors import ConfigError, Transport
from app.kube.source import Source
from tests.kube.server import ScriptedServer, answer, silent
from tests.kube.tls import self_signed

NO_PROXY_THERE = "http://127.0.0.1:9"
"""The port of `discard`, on which nobody listens."""


def get_version(connection: Connection) -> bytes:
    async def use() -> bytes:
        async with ApiClient(connection) as client:
            return await client.get("/version")

    return asyncio.run(use())


def test_a_plain_http_server_needs_neither_tls_nor_credentials(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.on("GET", "/version", answer(b"{}"))
    connection = load(server.kubeconfig(tmp_path))
    assert connection.host == server.base
    assert connection.tls() is None
    assert connection.headers() == {}
    assert get_version(connection) == b"{}"
    assert connection.pool().request("GET", f"{connection.host}/version").data == b"{}"


def test_both_clients_trust_the_authority_of_the_kubeconfig_and_send_its_token(
    tmp_path: Path,
) -> None:
    context, authority = self_signed(tmp_path)
    with ScriptedServer(context) as server:
        server.on("GET", "/version", answer(b"{}"))
        data = base64.b64encode(authority).decode()
        connection = load(
            server.kubeconfig(
                tmp_path, cluster={"certificate-authority-data": data}, user={"token": "s3cret"}
            )
        )
        assert get_version(connection) == b"{}"
        pool = connection.pool()
        url = f"{connection.host}/version"
        assert pool.request("GET", url, headers=connection.headers()).data == b"{}"
        pool.clear()
        assert [s.headers["Authorization"] for s in server.seen] == ["Bearer s3cret"] * 2


def test_a_tls_connection_is_closed_with_the_client_though_its_request_was_given_up(
    tmp_path: Path,
) -> None:
    async def give_up(connection: Connection) -> None:
        async with ApiClient(connection) as client:
            with pytest.raises(Transport, match="no answer"):
                await client.get("/version", deadline_s=0.2)

    context, _ = self_signed(tmp_path)
    with ScriptedServer(context) as server:
        server.on("GET", "/version", silent())
        kubeconfig = server.kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True})
        asyncio.run(give_up(load(kubeconfig)))
        with warnings.catch_warnings(record=True) as unclosed:
            warnings.simplefilter("always", ResourceWarning)
            gc.collect()
    assert [str(warning.message) for warning in unclosed] == []


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    context, _ = self_signed(tmp_path)
    with ScriptedServer(context) as server:
        server.on("GET", "/version", answer(b"{}"))
        kubeconfig = server.kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True})
        assert get_version(load(kubeconfig)) == b"{}"


def test_who_switched_verification_off_is_not_warned_of_it(tmp_path: Path) -> None:
    context, _ = self_signed(tmp_path)
    with ScriptedServer(context) as server, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", InsecureRequestWarning)
        server.on("GET", "/version", answer(b"{}"))
        kubeconfig = server.kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True})
        source = Source(load(kubeconfig))
        source.read("/version", {}, silence_s=5.0)
        source.close()
        assert said == []
        with PoolManager(cert_reqs="CERT_NONE") as elsewhere:
            elsewhere.request("GET", server.base.replace("127.0.0.1", "localhost") + "/version")
    assert [warning.category for warning in said] == [InsecureRequestWarning]


def test_a_path_in_the_servers_url_is_kept(server: ScriptedServer, tmp_path: Path) -> None:
    server.on("GET", "/k8s/clusters/c-1/version", answer(b"{}"))
    kubeconfig = server.kubeconfig(tmp_path, cluster={"server": f"{server.base}/k8s/clusters/c-1/"})
    assert get_version(load(kubeconfig)) == b"{}"


def test_what_no_proxy_excepts_is_asked_and_told_directly(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("GET", "/version", answer(b"{}"))
    monkeypatch.setenv("http_proxy", NO_PROXY_THERE)
    monkeypatch.setenv("no_proxy", "10.0.0.0/8,127.0.0.0/8")
    connection = load(server.kubeconfig(tmp_path))
    assert get_version(connection) == b"{}"
    assert connection.pool().request("GET", f"{connection.host}/version").data == b"{}"


def test_what_no_proxy_does_not_name_goes_through_the_proxy(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", NO_PROXY_THERE)
    monkeypatch.setenv("no_proxy", "10.0.0.0/8,.example.org")
    far = {"server": "http://api.invalid:6443"}
    connection = load(server.kubeconfig(tmp_path, cluster=far))
    with pytest.raises(Transport) as caught:
        get_version(connection)
    assert caught.value.message == (
        f"GET http://api.invalid:6443/version through the proxy {NO_PROXY_THERE}: "
        "the proxy cannot be reached: Connection refused"
    )
    assert not caught.value.sent
    assert isinstance(connection.pool(), ProxyManager)
    source = Source(connection)
    with pytest.raises(Transport) as read:
        source.read("/version", {}, silence_s=5.0)
    source.close()
    assert read.value.message == caught.value.message


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    host: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, NO_PROXY_THERE)
    with ScriptedServer() as server:
        connection = load(server.kubeconfig(tmp_path, cluster={"server": f"http://{host}:1"}))
    assert connection.proxy is None
    assert not isinstance(connection.pool(), ProxyManager)


def test_a_proxy_of_the_kubeconfig_is_asked_for_this_machine_too(
    server: ScriptedServer, tmp_path: Path
) -> None:
    connection = load(server.kubeconfig(tmp_path, cluster={"proxy-url": NO_PROXY_THERE}))
    assert connection.proxy == NO_PROXY_THERE
    assert isinstance(connection.pool(), ProxyManager)


def test_a_pod_uses_its_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_cluster(client_configuration: Configuration) -> None:
        client_configuration.host = "http://10.0.0.1:443"
        client_configuration.api_key["BearerToken"] = "bearer abc\n"

    monkeypatch.setenv(config.SERVICE_HOST, "10.0.0.1")
    monkeypatch.setattr(config, "load_incluster_config", in_cluster)
    connection = load()
    assert connection.host == "http://10.0.0.1:443"
    assert connection.headers() == {"authorization": "bearer abc"}


def test_an_unusable_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        ({"server": ""}, "the server '' is no http or https URL"),
        ({"server": None}, "server is missing in it"),
        ({"server": "127.0.0.1:6443"}, "the server '127.0.0.1:6443' is no http or https URL"),
        ({"server": "https://127.0.0.1:notaport"}, "is no http or https URL"),
        ({"proxy-url": "socks5://me:secret@127.0.0.1:1"}, "the proxy is no http or https URL"),
        ({"proxy-url": "127.0.0.1:3128"}, "the proxy is no http or https URL"),
    ],
    ids=str,
)
def test_an_address_that_nobody_can_call_is_a_config_error(
    server: ScriptedServer, tmp_path: Path, *, cluster: dict[str, object], why: str
) -> None:
    file = server.kubeconfig(tmp_path, cluster=cluster)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert str(caught.value).startswith(f"no connection from {file}: ")
    assert why in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_kubeconfig_that_names_no_server_does_not_lead_to_localhost(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(
        "{current-context: x, clusters: [{name: x, cluster: {tls-server-name: x}}],"
        " users: [], contexts: [{name: x, context: {cluster: x, user: x}}]}"
    )
    with pytest.raises(ConfigError, match="the server '' is no http or https URL"):
        load(file)


def test_a_proxy_that_is_not_used_may_be_of_any_kind(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert load(server.kubeconfig(tmp_path)).proxy is None


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority": "nonsense"}, {}),
        ({}, {"client-certificate": "nonsense", "client-key": "server.pem"}),
        ({}, {"client-certificate": "alone.pem"}),
        ({}, {"client-certificate": "alone.pem", "client-key": "server.pem"}),
    ],
    ids=["authority", "certificate", "no key", "the key of another"],
)
def test_certificates_that_cannot_be_used_are_a_config_error(
    server: ScriptedServer, tmp_path: Path, *, cluster: dict[str, str], user: dict[str, str]
) -> None:
    (tmp_path / "nonsense").write_text("nonsense")
    (tmp_path / "alone.pem").write_bytes(self_signed(tmp_path)[1])
    self_signed(tmp_path)
    there = {"server": "https://127.0.0.1:1", **cluster}
    file = server.kubeconfig(tmp_path, cluster=there, user=user)
    with pytest.raises(ConfigError, match=rf"the certificates of {file} cannot be read: "):
        load(file)


def test_a_credential_that_cannot_be_renewed_is_a_config_error() -> None:
    def renew(configuration: Configuration) -> None:
        raise FileNotFoundError("token")

    configuration = Configuration()
    configuration.host = "http://127.0.0.1:1"
    configuration.refresh_api_key_hook = renew  # type: ignore[assignment]  # declared as None
    with pytest.raises(ConfigError, match="token"):
        config.from_configuration(configuration).headers()
