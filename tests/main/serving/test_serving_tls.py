"""A server takes the certificates that are put into the place of its own."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.kit.certificates import Material, renewed
from app.main.serving.serving_tls import CertificateFiles, follow_files
from app.sandbox.controlplane.certificates import Authority, KeyPair

NAMES = ("127.0.0.1", "webhooks")
START = datetime(2026, 6, 1, tzinfo=UTC)


def written(folder: Path, material: Material) -> CertificateFiles:
    files = CertificateFiles(folder / "crt", folder / "key")
    files.certificate.write_bytes(material.certificate)
    files.key.write_bytes(material.key)
    return files


def greeted(context: ssl.SSLContext, *, shown: KeyPair | None = None) -> bool:
    """Whether a server of that context gets through a handshake with somebody who trusts it."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    if shown is not None:
        trusting.load_cert_chain(shown.certificate, shown.key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return client.version() is not None


async def test_a_server_takes_a_new_pair_when_both_files_are_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (renewed(None, NAMES, START + timedelta(days=n)) for n in range(2))
    files = written(tmp_path, first)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files.load_into(context)
    assert greeted(context)

    def taken() -> int:
        return sum(record.message == "certificate taken" for record in caplog.records)

    with caplog.at_level("INFO"):
        following = asyncio.create_task(follow_files(files, context))
        await asyncio.sleep(3)
        assert taken() == 0
        files.certificate.write_bytes(second.certificate)
        await asyncio.sleep(3)
        assert taken() == 0
        assert greeted(context)
        files.key.write_bytes(second.key)
        await asyncio.sleep(3)
        assert taken() == 1
        assert greeted(context)
        files.key.unlink()
        await asyncio.sleep(3)
        assert not following.done()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert taken() == 1


async def test_clients_of_a_new_authority_are_accepted_beside_those_of_the_old_one(
    tmp_path: Path,
) -> None:
    first, second, foreign = (Authority(tmp_path / n) for n in folders(tmp_path, 3))
    pair = first.server("extender")
    clients = [each.client("scheduler", user="s") for each in (first, second, foreign)]
    files = CertificateFiles(pair.certificate, pair.key, tmp_path / "clients.crt")
    assert files.client_authority is not None
    files.client_authority.write_bytes(first.certificate.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    files.load_into(context)

    def accepted() -> list[bool]:
        return [greeted(context, shown=client) for client in clients]

    assert files.client_authority is not None
    following = asyncio.create_task(follow_files(files, context))
    assert accepted() == [True, False, False]
    files.client_authority.write_bytes(b"")
    await asyncio.sleep(3)
    assert accepted() == [True, False, False]
    files.client_authority.write_bytes(second.certificate.read_bytes())
    await asyncio.sleep(3)
    assert accepted() == [True, True, False]
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def folders(above: Path, count: int) -> list[str]:
    names = [f"authority-{number}" for number in range(count)]
    for name in names:
        (above / name).mkdir()
    return names
