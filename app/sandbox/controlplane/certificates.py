"""Certificates of a short-lived cluster: one authority signs the server and every client.

The API server takes the user from a client certificate's common name and the groups from its
organisations, so RBAC tests make a user by issuing a certificate. Keys of the servers are elliptic:
made in milliseconds. Those of clients are RSA keys in the form that kubeadm writes, which every
client reads: the Kubernetes client for Java that Spark uses takes no elliptic one. Nothing here
outlives its folder.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Fixed dates rather than the clock's: a clock-jump test must not invalidate its own cluster.
_NOT_BEFORE = datetime(2020, 1, 1, tzinfo=UTC)
_NOT_AFTER = _NOT_BEFORE + timedelta(days=365 * 80)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Where a certificate and its private key lie, both PEM."""

    certificate: Path
    key: Path


PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def _elliptic() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _private_pem(key: PrivateKey) -> bytes:
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    private = serialization.PrivateFormat
    return key.private_bytes(
        serialization.Encoding.PEM,
        private.TraditionalOpenSSL if is_rsa else private.PKCS8,
        serialization.NoEncryption(),
    )


def _write_secret(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def write_service_account_key(folder: Path) -> KeyPair:
    """Write the key that signs service-account tokens; `certificate` is its public half."""
    key = _elliptic()
    pair = KeyPair(folder / "service-account.pub", folder / "service-account.key")
    _write_secret(pair.key, _private_pem(key))
    pair.certificate.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return pair


class Authority:
    """A certificate authority that keeps what it issues in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.crt"
        self._key = _elliptic()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pumice-authority")])
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, file_name: str, *, dns_names: tuple[str, ...] = ("localhost",)) -> KeyPair:
        """Issue a serving certificate for the loopback address and the given names."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns_names]
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, dns_names[0])])
        return self._issue(
            file_name,
            subject,
            _elliptic(),
            usage=ExtendedKeyUsageOID.SERVER_AUTH,
            names=x509.SubjectAlternativeName(names),
        )

    def client(self, file_name: str, *, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """Issue a client certificate: that user, in those groups."""
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        attributes += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([x509.RelativeDistinguishedName([each]) for each in attributes])
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return self._issue(
            file_name, subject, key, usage=ExtendedKeyUsageOID.CLIENT_AUTH, names=None
        )

    def _issue(
        self,
        file_name: str,
        subject: x509.Name,
        key: PrivateKey,
        *,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        builder = (
            self._builder(subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        pair = KeyPair(self.folder / f"{file_name}.crt", self.folder / f"{file_name}.key")
        certificate = builder.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_secret(pair.key, _private_pem(key))
        return pair

    def _builder(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(_NOT_BEFORE)
            .not_valid_after(_NOT_AFTER)
        )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
