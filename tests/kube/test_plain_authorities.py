"""Authorities without the extensions that Python 3.13 began to insist on, as many clusters have."""

import base64
import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.kube.config import load
from tests.kube.server import ScriptedServer, answer
from tests.kube.test_config import get_version

PEM = serialization.Encoding.PEM
BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
KEY = ec.generate_private_key(ec.SECP256R1())
"""Of both."""


def unsigned(subject: str) -> x509.CertificateBuilder:
    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("authority"))
    builder = builder.public_key(KEY.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(BEGIN).not_valid_after(BEGIN + datetime.timedelta(days=36_500))


def signed(builder: x509.CertificateBuilder, extension: x509.ExtensionType) -> bytes:
    """As PEM, with that extension and no other: no key identifiers, no key usage."""
    builder = builder.add_extension(extension, critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(PEM)


AUTHORITY = signed(unsigned("authority"), x509.BasicConstraints(ca=True, path_length=None))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    key = KEY.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "server.pem").write_bytes(signed(unsigned("server"), host) + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with ScriptedServer(context) as running:
        running.on("GET", "/version", answer(b"{}"))
        yield running


def test_who_writes_and_who_watches_trust_them(server: ScriptedServer, tmp_path: Path) -> None:
    data = base64.b64encode(AUTHORITY).decode()
    connection = load(server.kubeconfig(tmp_path, cluster={"certificate-authority-data": data}))
    assert get_version(connection) == b"{}"
    pool = connection.pool()
    assert pool.request("GET", f"{connection.host}/version", retries=False).data == b"{}"
    pool.clear()
