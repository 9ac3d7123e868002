"""The extender over HTTPS: kube-scheduler shows a certificate, who has none is turned away."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx2
import pytest

from tests.clusters import pumice
from tests.clusters.certificates import Authority, KeyPair
from tests.clusters.client import ApiClient, tls_context
from tests.clusters.place import Place
from tests.clusters.ports import free_port
from tests.clusters.pumice import Extender
from tests.clusters.rig import Stage, account

pytestmark = pytest.mark.real


@dataclass(frozen=True, slots=True)
class Secured:
    """An extender that speaks HTTPS, and plain HTTP at `extender.url` to those who only read."""

    api: ApiClient
    extender: Extender
    url: str
    authority: Authority
    client: KeyPair
    kind: Literal["sandbox", "real"] = "real"


@pytest.fixture(scope="module")
def secured(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    stage.clear()
    plane, authority = stage.controlplane, Authority(tmp_path_factory.mktemp("pki"))
    server, client = authority.server("extender"), authority.client("scheduler", user="scheduler")
    port, reading = free_port(), free_port()
    with ExitStack() as stack:
        extender = pumice.start_extender(
            plane,
            port=port,
            kubeconfig=account(plane, "pumice-extender"),
            flags=(
                f"--tls-cert-file={server.certificate}",
                f"--tls-private-key-file={server.key}",
                f"--client-ca-file={authority.certificate}",
                f"--listen-address=127.0.0.1:{reading}",
            ),
            ready=False,
        )
        stack.callback(extender.stop)
        extender.url = f"http://127.0.0.1:{reading}"
        extender.wait_ready(lambda: extender.status("/readyz") == 200, timeout_s=60)
        config = pumice.scheduler_config(
            plane,
            f"https://127.0.0.1:{port}/v1",
            name="secured",
            kubeconfig=account(plane, "pumice-scheduler"),
            options=(
                f"--extender-ca-file={authority.certificate}",
                f"--extender-cert-file={client.certificate}",
                f"--extender-key-file={client.key}",
            ),
        )
        scheduler = plane.start_scheduler(config, name="secured-scheduler")
        stack.callback(scheduler.stop)
        yield Secured(plane.api, extender, f"https://127.0.0.1:{port}", authority, client)


def test_gangs_are_scheduled_over_https(secured: Secured) -> None:
    with Place(secured) as place:
        place.add_nodes(2, cpu="4")
        place.add_gang("gang", 6)
        place.wait_bound("gang", 6)
        place.submit_ungated("late", 2)
        place.add_group("late", 2)
        place.wait_bound("late", 2)


def test_who_shows_the_certificate_is_answered(secured: Secured) -> None:
    context = tls_context(secured.authority.certificate, secured.client)
    with httpx2.Client(verify=context, trust_env=False) as client:
        assert client.get(f"{secured.url}/livez").status_code == 200
        refused = client.post(f"{secured.url}/v1/filter", content=b"{}")
    assert refused.status_code == 400


@pytest.mark.parametrize("path", ["/v1/bind", "/v1/filter", "/debug/ledger", "/livez"])
def test_who_shows_none_is_turned_away(secured: Secured, path: str) -> None:
    nobody = ssl.create_default_context(cafile=secured.authority.certificate)
    with (
        httpx2.Client(verify=nobody, trust_env=False) as client,
        pytest.raises(httpx2.TransportError),
    ):
        client.post(f"{secured.url}{path}", content=b"{}")


def test_a_certificate_of_somebody_else_is_no_good(secured: Secured, tmp_path: Path) -> None:
    stranger = Authority(tmp_path).client("stranger", user="scheduler")
    context = tls_context(secured.authority.certificate, stranger)
    with (
        httpx2.Client(verify=context, trust_env=False) as client,
        pytest.raises(httpx2.TransportError),
    ):
        client.get(f"{secured.url}/livez")


def test_plain_http_is_not_answered(secured: Secured) -> None:
    with pytest.raises(httpx2.TransportError):
        httpx2.get(secured.url.replace("https", "http") + "/livez", trust_env=False)
    bind = httpx2.post(f"{secured.extender.url}/v1/bind", content=b"{}", trust_env=False)
    assert bind.status_code == 404
