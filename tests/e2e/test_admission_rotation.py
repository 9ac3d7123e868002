"""Certificates change while the API server asks all the time: no question goes unanswered.

What asks is a job of a queue that is not there: only the webhook knows, so whenever the webhook
cannot be asked the job is let through, and that is counted.
"""

from __future__ import annotations

import base64
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.kit import certificates
from tests.clusters.certificates import Authority, KeyPair
from tests.clusters.client import ApiClient
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.clusters.resources import Resource
from tests.e2e.admission import CONFIGURATIONS, NAMESPACE, Webhooks, refusal, start
from tests.webhooks.objects import job

pytestmark = pytest.mark.real

SECRETS = Resource("v1", "secrets", "Secret")
SECRET = "pumice-webhooks-certificate"
ASKERS = 4


@pytest.fixture
def cluster(installed: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane; nothing stays registered."""
    yield installed
    for resource in CONFIGURATIONS:
        installed.api.delete(resource, "pumice-webhooks")


def is_asked(api: ApiClient) -> bool:
    return "validatejob.volcano.sh" in refusal(api, job(queue="nowhere"))


class Asking:
    """Threads that ask without a pause; `unanswered` must stay 0."""

    def __init__(self, api: ApiClient) -> None:
        self.asked = 0
        self.unanswered = 0
        self._api = api
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(ASKERS)]

    def _ask(self) -> None:
        while not self._over.is_set():
            answered = is_asked(self._api)
            self.asked += 1
            self.unanswered += not answered

    def wait_more(self, count: int) -> None:
        """Go on until that many more questions were asked."""
        wanted = self.asked + count
        wait_until(lambda: self.asked >= wanted, timeout_s=60, what=f"{count} more answers")

    @contextmanager
    def under_way(self) -> Iterator[Asking]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join(timeout=30)


def served(url: str) -> bytes:
    """The certificate of a new connection."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with (
        socket.create_connection(address, timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        found = secured.getpeercert(binary_form=True)
    assert found is not None
    return found


def trusted(api: ApiClient) -> set[bytes]:
    """The authorities that the API server was told of, in both configurations."""
    return {
        base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
        for resource in CONFIGURATIONS
        for webhook in api.get(resource, "pumice-webhooks")["webhooks"]
    }


class Files:
    """Where somebody like cert-manager keeps what a process is started with."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.authority = folder / "bundle.crt"
        self.pair = KeyPair(folder / "tls.crt", folder / "tls.key")
        self.trust(authority)
        self.use(authority)

    def trust(self, *authorities: Authority) -> None:
        bundle = b"".join(each.certificate.read_bytes() for each in authorities)
        self.authority.write_bytes(bundle)

    def use(self, authority: Authority) -> bytes:
        """A new certificate of that authority; DER."""
        issued = authority.server("webhooks")
        shutil.copyfile(issued.key, self.pair.key)
        shutil.copyfile(issued.certificate, self.pair.certificate)
        return ssl.PEM_cert_to_DER_cert(issued.certificate.read_text())

    def flags(self) -> tuple[str, ...]:
        return (
            f"--tls-cert-file={self.pair.certificate}",
            f"--tls-private-key-file={self.pair.key}",
            f"--ca-cert-file={self.authority}",
        )


def authority_in(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)


def test_certificate_and_authority_change_without_an_unanswered_question(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    old, new = authority_in(tmp_path / "old"), authority_in(tmp_path / "new")
    files = Files(tmp_path, old)
    api = cluster.api
    with start(cluster, *files.flags(), trust=tmp_path / "none", name="webhooks-rotated") as it:
        wait_until(lambda: is_asked(api), timeout_s=20, what="the webhook is asked")
        with Asking(api).under_way() as asking:
            change(files, it, old, asking=asking)
            files.trust(old, new)
            bundle = files.authority.read_bytes()
            wait_until(lambda: trusted(api) == {bundle}, timeout_s=20, what="both are trusted")
            change(files, it, new, asking=asking)
            files.trust(new)
            bundle = files.authority.read_bytes()
            wait_until(lambda: trusted(api) == {bundle}, timeout_s=20, what="the old one is not")
            asking.wait_more(100)
        assert asking.unanswered == 0


def change(files: Files, process: Webhooks, authority: Authority, *, asking: Asking) -> None:
    """Replace the certificate and see it served while questions are answered."""
    asking.wait_more(50)
    expected = files.use(authority)
    wait_until(lambda: served(process.url) == expected, timeout_s=20, what="the new certificate")
    asking.wait_more(50)


def test_an_authority_near_its_end_is_replaced_without_an_unanswered_question(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """The stored certificate is good for some days, the authority for less than two of them."""
    now = datetime.now(UTC)  # noqa: TID251 - TLS asks the machine's clock
    names = ("127.0.0.1",)
    made = now - certificates.AUTHORITY_LIFE + timedelta(days=96)
    authority = certificates.renewed(None, names, made)
    stored = certificates.renewed(authority, names, now - timedelta(days=85))
    assert stored.authority == authority.authority
    api = cluster.api
    api.create(certificates.secret(stored, namespace=NAMESPACE, name=SECRET), resource=SECRETS)
    try:
        with start(cluster, trust=tmp_path / "none", name="webhooks-renewing") as it:
            wait_until(lambda: is_asked(api), timeout_s=20, what="the webhook is asked")
            with Asking(api).under_way() as asking:
                kept = api.get(SECRETS, SECRET, namespace=NAMESPACE)
                renewed = certificates.from_secret(kept)
                assert renewed is not None
                assert renewed.authority.endswith(stored.authority)
                assert renewed.authority != stored.authority
                expected = ssl.PEM_cert_to_DER_cert(renewed.certificate.decode())
                wait_until(
                    lambda: served(it.url) == expected, timeout_s=20, what="the new certificate"
                )
                asking.wait_more(100)
            assert asking.unanswered == 0
    finally:
        api.delete(SECRETS, SECRET, namespace=NAMESPACE)
