"""Certificates that we make: what they are good for, when they are renewed, how they are kept."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from app.kit.certificates import (
    AUTHORITY_LIFE,
    SERVING_LIFE,
    Material,
    from_secret,
    renewed,
    secret,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NAMES = ("127.0.0.1", "webhooks.pumice-system.svc")
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def made() -> Material:
    return renewed(None, NAMES, NOW)


def handshake(served: Material, trusted: bytes, folder: Path, *, name: str = NAMES[1]) -> None:
    """A TLS connection over a pair of sockets; raises where the client does not trust."""
    (folder / "crt").write_bytes(served.certificate)
    (folder / "key").write_bytes(served.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "crt", folder / "key")
    client = ssl.create_default_context(cadata=trusted.decode())
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            server.wrap_socket(theirs, server_side=True).close()
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        client.wrap_socket(ours, server_hostname=name).close()
    finally:
        ours.close()
        thread.join()


def current() -> datetime:
    """Handshakes know no other time."""
    return datetime.now(UTC)  # noqa: TID251 - TLS asks the machine's clock


@pytest.mark.parametrize("name", NAMES)
def test_a_client_that_knows_the_authority_trusts_it(name: str, tmp_path: Path) -> None:
    made = renewed(None, NAMES, current())
    handshake(made, made.authority, tmp_path, name=name)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(made, made.authority, tmp_path, name="other")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(made, renewed(None, NAMES, current()).authority, tmp_path)


def test_it_stays_while_two_thirds_of_its_time_last(made: Material) -> None:
    assert renewed(made, NAMES, NOW) is made
    assert renewed(made, NAMES, NOW + SERVING_LIFE * 2 / 3 - DAY) is made


def test_the_same_authority_signs_the_next_one(made: Material) -> None:
    later = renewed(made, NAMES, NOW + SERVING_LIFE * 2 / 3)
    assert later.certificate != made.certificate
    assert later.key != made.key
    assert (later.authority, later.authority_key) == (made.authority, made.authority_key)


def test_other_names_need_another_certificate(made: Material) -> None:
    other = renewed(made, (*NAMES, "new"), NOW)
    assert other.authority == made.authority
    assert other.certificate != made.certificate
    assert renewed(made, NAMES[::-1], NOW) is made


def test_a_new_authority_is_trusted_beside_the_old_one(tmp_path: Path) -> None:
    now = current()
    old = renewed(None, NAMES, now - AUTHORITY_LIFE + SERVING_LIFE)
    new = renewed(old, NAMES, now)
    assert new.authority_key != old.authority_key
    assert len(x509.load_pem_x509_certificates(new.authority)) == 2
    handshake(new, new.authority, tmp_path)
    serving = renewed(replace(old, certificate=b""), NAMES, now - DAY)
    assert serving.authority.endswith(old.authority)
    after = renewed(new, NAMES, now + SERVING_LIFE)
    assert len(x509.load_pem_x509_certificates(after.authority)) == 1


def test_what_still_is_served_with_the_old_authority_stays_trusted(tmp_path: Path) -> None:
    now = current()
    old = renewed(None, NAMES, now - AUTHORITY_LIFE + SERVING_LIFE * 3)
    still = renewed(old, NAMES, now - DAY)
    assert still.authority == old.authority
    new = renewed(still, NAMES, now + SERVING_LIFE)
    handshake(still, new.authority, tmp_path)


@pytest.mark.parametrize("field", ["authority", "authority_key"])
@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_an_authority_that_cannot_be_used_is_made_anew(
    made: Material, field: str, content: bytes
) -> None:
    assert renewed(replace(made, **{field: content}), NAMES, NOW).authority != made.authority


def test_an_authority_with_another_s_key_is_made_anew(made: Material) -> None:
    other = renewed(None, NAMES, NOW)
    mixed = replace(made, authority_key=other.authority_key)
    assert renewed(mixed, NAMES, NOW).authority not in {made.authority, other.authority}


@pytest.mark.parametrize("field", ["certificate", "key"])
@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_certificate_that_cannot_be_used_is_made_anew(
    made: Material, field: str, content: bytes
) -> None:
    again = renewed(replace(made, **{field: content}), NAMES, NOW)
    assert again.authority == made.authority
    assert again.certificate not in {made.certificate, content}


def test_a_certificate_that_another_signed_or_has_another_s_key_is_made_anew(
    made: Material,
) -> None:
    other = renewed(None, NAMES, NOW)
    for mixed in (replace(made, certificate=other.certificate), replace(made, key=other.key)):
        again = renewed(mixed, NAMES, NOW)
        assert again.certificate not in {made.certificate, other.certificate}


def test_a_secret_keeps_it_whole(made: Material) -> None:
    kept = secret(made, namespace="pumice-system", name="certificate")
    assert kept["type"] == "kubernetes.io/tls"
    assert kept["metadata"] == {"name": "certificate", "namespace": "pumice-system"}
    assert from_secret(kept) == made


def test_a_secret_that_lacks_a_part_is_none(made: Material) -> None:
    kept = secret(made, namespace="n", name="s")
    for key in list(kept["data"]):
        part = {name: value for name, value in kept["data"].items() if name != key}
        assert from_secret({**kept, "data": part}) is None
    assert from_secret({"metadata": {}}) is None
    assert from_secret({"data": {**kept["data"], "ca.crt": "=no base64="}}) is None
    assert base64.b64decode(kept["data"]["tls.crt"]) == made.certificate
