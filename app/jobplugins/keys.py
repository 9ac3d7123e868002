"""Key pairs for ssh, as OpenSSH reads them."""

from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two texts; the public one is a line of ``authorized_keys``."""

    private: str
    public: str


MakeKeys = Callable[[str], KeyPair]
"""Make a pair of the type ``rsa`` or ``ed25519``."""


def generate(key_type: str) -> KeyPair:
    """A new pair; RSA keys take tens of milliseconds."""
    if key_type == "ed25519":
        key = Ed25519PrivateKey.generate()
        # OpenSSH reads Ed25519 keys in no other format.
        return KeyPair(_private(key, PrivateFormat.OpenSSH), _public(key))
    pair = generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    return KeyPair(_private(pair, PrivateFormat.TraditionalOpenSSL), _public(pair))


def public_of(private: str) -> str:
    """The public half of a private key; ``ValueError`` when it cannot be read."""
    for load in (load_ssh_private_key, load_pem_private_key):
        try:
            key = load(private.encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
        if isinstance(key, RSAPrivateKey | Ed25519PrivateKey):
            return _public(key)
    raise ValueError("not an RSA or Ed25519 private key without a passphrase")


def _private(key: RSAPrivateKey | Ed25519PrivateKey, how: PrivateFormat) -> str:
    return key.private_bytes(Encoding.PEM, how, NoEncryption()).decode()


def _public(key: RSAPrivateKey | Ed25519PrivateKey) -> str:
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return f"{line.decode()}\n"
