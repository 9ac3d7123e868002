"""Serving certificates made by ourselves, and the Secret that they are kept in.

One authority signs the serving certificate. Both are replaced in time, the authority by a new one
that is trusted beside the old one, so that for a while either is good and processes need not change
at the same moment. Whether something is due is judged by the time that is handed in.
"""

import base64
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Object = dict[str, Any]

AUTHORITY_LIFE: Final = timedelta(days=3650)
SERVING_LIFE: Final = timedelta(days=90)
BACKDATED: Final = timedelta(hours=1)
"""Clocks of machines differ."""

_FIELDS: Final = {
    "authority": "ca.crt",
    "authority_key": "ca.key",
    "certificate": "tls.crt",
    "key": "tls.key",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything in PEM; ``authority`` is the one that signs now, then those it replaced."""

    authority: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


class BadMaterial(ValueError):
    """Certificates or keys that cannot be used; the text says why."""


def renewed(material: Material | None, names: Sequence[str], now: datetime) -> Material:
    """``material`` itself while it is good for ``names``, else what takes its place."""
    try:
        authority = _Authority.read(material, now)
    except BadMaterial:
        authority = _Authority.made(now)
        return authority.signed(names, now)
    assert material is not None
    if authority.left(now) < SERVING_LIFE * 2:
        return _Authority.made(now, before=authority.chain).signed(names, now)
    if _serves(material, authority, names, now):
        return material
    return authority.signed(names, now)


def secret(material: Material, *, namespace: str, name: str) -> Object:
    """The Secret that holds it."""
    data = {
        key: base64.b64encode(getattr(material, field)).decode() for field, key in _FIELDS.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def from_secret(item: Object) -> Material | None:
    """What a Secret holds; None when it is not all there."""
    data = item.get("data") or {}
    try:
        found = {
            field: base64.b64decode(data[key], validate=True) for field, key in _FIELDS.items()
        }
    except (KeyError, TypeError, ValueError):
        return None
    return Material(**found)


@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: bytes
    """The authority's own certificate, then those of its predecessors that still are valid."""

    @classmethod
    def read(cls, material: Material | None, now: datetime) -> "_Authority":
        if material is None:
            raise BadMaterial("there is none")
        certificate, key = _certificate(material.authority), _key(material.authority_key)
        if certificate.public_key() != key.public_key() or certificate.not_valid_after_utc <= now:
            raise BadMaterial("the authority's key is another's, or its time is over")
        return cls(certificate, key, _valid(material.authority, now))

    @classmethod
    def made(cls, now: datetime, *, before: bytes = b"") -> "_Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, f"pumice-webhooks {now:%Y-%m-%d}")]
        )
        certificate = (
            _builder(name, name, now, AUTHORITY_LIFE)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key, _pem(certificate) + before)

    def left(self, now: datetime) -> timedelta:
        return self.certificate.not_valid_after_utc - now

    def signed(self, names: Sequence[str], now: datetime) -> Material:
        """A new serving certificate for ``names``."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
        certificate = (
            _builder(subject, self.certificate.subject, now, SERVING_LIFE)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName(_general(names)), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Material(
            authority=self.chain,
            authority_key=_key_pem(self.key),
            certificate=_pem(certificate),
            key=_key_pem(key),
        )


def _serves(material: Material, authority: _Authority, names: Sequence[str], now: datetime) -> bool:
    """Whether the certificate is ours, for these names, and has a third of its time left."""
    try:
        certificate, key = _certificate(material.certificate), _key(material.key)
        certificate.verify_directly_issued_by(authority.certificate)
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (BadMaterial, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    fresh = certificate.not_valid_after_utc - now > SERVING_LIFE / 3
    ours = certificate.public_key() == key.public_key()
    return fresh and ours and set(extension.value) == set(_general(names))


def _builder(
    subject: x509.Name, issuer: x509.Name, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + life)
    )


def _general(names: Sequence[str]) -> list[x509.GeneralName]:
    return [_general_name(name) for name in names]


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _valid(chain: bytes, now: datetime) -> bytes:
    found = [c for c in x509.load_pem_x509_certificates(chain) if c.not_valid_after_utc > now]
    return b"".join(map(_pem, found))


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise BadMaterial(f"not a certificate: {error}") from error


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise BadMaterial(f"not a key: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadMaterial("not a key that we made")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
