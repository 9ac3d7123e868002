"""The certificate of the webhooks: kept in a Secret by one, read by all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from app.controllers.ports import Failure
from app.kit.certificates import (
    AUTHORITY_LIFE,
    SERVING_LIFE,
    Material,
    from_secret,
    renewed,
    secret,
)
from app.main.admission import certificate as webhooks_tls
from app.main.admission.certificate import KeptCertificate
from app.wire import kinds
from app.wire.unstructured import Key
from tests.controllers.fake_api import FakeApi, Request

KEY = Key("pumice-system", "certificate")
NAMES = ("127.0.0.1", "webhooks")
START = datetime(2026, 6, 1, tzinfo=UTC)


class Cluster:
    """An API server, a time, and who was told whom to trust."""

    def __init__(self) -> None:
        self.api = FakeApi(lambda: 0.0)
        self.now = START
        self.told: list[tuple[bytes, Material | None]] = []
        """The authority, and what was stored when it was told."""

    def kept(self) -> KeptCertificate:
        return KeptCertificate(self.api, KEY, names=NAMES, now=lambda: self.now)

    def stored(self) -> Material | None:
        found = self.api.find(kinds.SECRETS, KEY)
        return None if found is None else from_secret(found)

    async def register(self, authority: bytes) -> None:
        self.told.append((authority, self.stored()))

    async def keep(self, kept: KeptCertificate, *, for_s: float = 1.0) -> None:
        """Let it keep the certificate for a while."""
        task = asyncio.create_task(kept.keep(self.register))
        await asyncio.sleep(for_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_certificate_is_made_stored_told_and_written() -> None:
    cluster = Cluster()
    kept = cluster.kept()
    await cluster.keep(kept)
    stored = cluster.stored()
    assert stored is not None
    assert cluster.told == [(stored.authority, stored)]
    assert kept.present.is_set()
    assert kept.files.certificate.read_bytes() == stored.certificate
    assert kept.files.key.read_bytes() == stored.key
    assert kept.files.key.stat().st_mode & 0o077 == 0
    folder = kept.files.key.parent
    kept.close()
    assert not folder.exists()


async def test_it_is_told_again_and_again_and_written_once() -> None:
    cluster = Cluster()
    kept = cluster.kept()
    await cluster.keep(kept, for_s=webhooks_tls.KEEP_EVERY_S * 3 + 1)
    assert len(cluster.told) == 4
    writes = [each for each in cluster.api.requests if each.verb != "get"]
    assert [each.verb for each in writes] == ["create"]
    kept.close()


async def test_a_serving_certificate_is_renewed_in_time() -> None:
    cluster = Cluster()
    kept = cluster.kept()
    await cluster.keep(kept)
    first = cluster.stored()
    cluster.now += SERVING_LIFE * 3 / 4
    await cluster.keep(kept)
    second = cluster.stored()
    assert first is not None
    assert second is not None
    assert second.certificate != first.certificate
    assert second.authority == first.authority
    assert kept.files.certificate.read_bytes() == second.certificate
    kept.close()


async def test_a_new_authority_is_told_before_anything_it_signed_is_stored() -> None:
    cluster = Cluster()
    cluster.now = START - AUTHORITY_LIFE + SERVING_LIFE
    old = renewed(None, NAMES, cluster.now)
    cluster.api.put(kinds.SECRETS, secret(old, namespace=KEY.namespace, name=KEY.name))
    cluster.now = START
    kept = cluster.kept()
    await cluster.keep(kept)
    new = cluster.stored()
    assert new is not None
    assert new.authority != old.authority
    assert new.authority.endswith(old.authority)
    assert cluster.told == [(new.authority, old)]
    kept.close()


async def test_a_secret_that_holds_something_else_is_taken_over() -> None:
    cluster = Cluster()
    broken = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "data": {"tls.crt": "eA=="},
    }
    cluster.api.put(kinds.SECRETS, broken)
    kept = cluster.kept()
    await cluster.keep(kept)
    stored = cluster.api.find(kinds.SECRETS, KEY)
    assert stored is not None
    assert from_secret(stored) is not None
    # The type of a Secret cannot be changed.
    assert stored["type"] == "Opaque"
    kept.close()


@pytest.mark.parametrize("verb", ["get", "create"])
@pytest.mark.parametrize("failure", [Failure.PASSING, Failure.EXISTS, Failure.REFUSED])
async def test_a_failure_is_tried_again(verb: str, failure: Failure) -> None:
    cluster = Cluster()

    def matches(request: Request) -> bool:
        return request.verb == verb

    cluster.api.fail(failure, matches, times=2)
    kept = cluster.kept()
    await cluster.keep(kept, for_s=webhooks_tls.RETRY_S * 2.5)
    assert kept.present.is_set()
    assert len(cluster.told) == 1
    kept.close()


async def test_all_processes_serve_what_is_stored() -> None:
    cluster = Cluster()
    reader, keeper = cluster.kept(), cluster.kept()
    following = asyncio.create_task(reader.follow())
    await asyncio.sleep(1)
    assert not reader.present.is_set()
    cluster.api.fail(Failure.PASSING, lambda request: request.verb == "get", times=1)
    await cluster.keep(keeper, for_s=3)
    async with asyncio.timeout(2):
        await reader.present.wait()
    first = reader.files.certificate.read_bytes()
    assert first == keeper.files.certificate.read_bytes()

    cluster.now += SERVING_LIFE
    await cluster.keep(keeper)
    await asyncio.sleep(webhooks_tls.READ_EVERY_S)
    assert reader.files.certificate.read_bytes() == keeper.files.certificate.read_bytes()
    assert reader.files.certificate.read_bytes() != first
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    reader.close()
    keeper.close()
