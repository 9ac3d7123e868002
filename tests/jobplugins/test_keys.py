"""Key pairs."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from app.jobplugins import keys


def test_rsa_keys_are_those_that_openssh_has_always_read() -> None:
    pair = keys.generate("rsa")
    assert pair.private.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert pair.private.endswith("\n-----END RSA PRIVATE KEY-----\n")
    assert pair.public.startswith("ssh-rsa ")
    assert pair.public.count("\n") == 1
    key = load_pem_private_key(pair.private.encode(), password=None)
    assert isinstance(key, RSAPrivateKey)
    assert key.key_size == 2048


def test_ed25519_keys_are_in_the_format_of_openssh() -> None:
    pair = keys.generate("ed25519")
    assert pair.private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert pair.public.startswith("ssh-ed25519 ")
    assert pair.public.endswith("\n")
    load_ssh_private_key(pair.private.encode(), password=None)


@pytest.mark.parametrize("key_type", ["rsa", "ed25519"])
def test_every_pair_is_another_and_its_halves_belong_together(key_type: str) -> None:
    one, other = keys.generate(key_type), keys.generate(key_type)
    assert one != other
    assert keys.public_of(one.private) == one.public


def _encoded(encryption: NoEncryption | BestAvailableEncryption) -> str:
    key = generate_ec(SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", _encoded(NoEncryption()), _encoded(BestAvailableEncryption(b"secret"))],
    ids=["empty", "nonsense", "another type", "with a passphrase"],
)
def test_other_texts_have_no_public_half(text: str) -> None:
    with pytest.raises(ValueError, match="not an RSA or Ed25519 private key"):
        keys.public_of(text)
