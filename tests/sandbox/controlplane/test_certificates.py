"""The clusters' certificates do what the API server expects of them."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from app.sandbox.controlplane.certificates import Authority, write_service_account_key
from tests.clusters.client import tls_context


def test_client_and_server_of_one_authority_accept_each_other(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.server("server")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate)
    serving.verify_mode = ssl.CERT_REQUIRED
    serving.load_cert_chain(server.certificate, server.key)
    asking = tls_context(authority.certificate, authority.client("jane", user="jane"))
    ours, theirs = socket.socketpair()
    seen: list[object] = []

    def serve() -> None:
        with serving.wrap_socket(theirs, server_side=True) as connection:
            seen.append(connection.getpeercert())
            connection.sendall(b"hello")

    with ours, theirs:
        serving_thread = threading.Thread(target=serve)
        serving_thread.start()
        with asking.wrap_socket(ours, server_hostname="127.0.0.1") as connection:
            assert connection.recv(5) == b"hello"
        serving_thread.join()
    assert "jane" in str(seen)


def test_a_client_has_a_key_of_the_kind_that_every_client_reads(tmp_path: Path) -> None:
    """Clients for Java guess the algorithm from the first line and read only RSA by themselves."""
    pair = Authority(tmp_path).client("jane", user="jane")
    key = pair.key.read_bytes()

    assert key.startswith(b"-----BEGIN RSA PRIVATE KEY-----\n")
    assert isinstance(load_pem_private_key(key, None), RSAPrivateKey)


def test_user_and_groups_are_common_name_and_organisations(tmp_path: Path) -> None:
    pair = Authority(tmp_path).client("jane", user="jane", groups=("readers", "writers"))
    subject = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).subject
    assert [each.value for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["jane"]
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [each.value for each in groups] == ["readers", "writers"]


@pytest.mark.parametrize("make", [lambda at: Authority(at).server("x"), write_service_account_key])
def test_private_keys_are_readable_by_their_owner_only(make: object, tmp_path: Path) -> None:
    assert callable(make)
    assert make(tmp_path).key.stat().st_mode & 0o077 == 0
