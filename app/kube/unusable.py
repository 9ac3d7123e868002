"""Why a kubeconfig or a certificate is of no use, in words of our own.

The `kubernetes` package stumbles over a file of another shape with whatever Python says then, and
tells of what it misses as places in its own wrappers.
"""

import re
import ssl
from collections.abc import Callable
from typing import Final

import yaml

from app.wire import go_yaml

_SHAPE: Final = "lists of clusters, contexts and users are expected"
_NO_PEM: Final = "a certificate or a key is not PEM"
_CERTIFICATES: Final = {
    "NO_CERTIFICATE_OR_CRL_FOUND": "there is no certificate where one is expected",
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate",
    "NO_START_LINE": _NO_PEM,
    "PEM_LIB": _NO_PEM,
}
_START: Final = r"Invalid kube-config file\. Expected "
_ABSENT: Final = re.compile(_START + r"object with name (.*) in .*/(context|cluster|user)s list")
_MISSING: Final = re.compile(_START + r"key (\S+) in .*")
_DUPLICATE: Final = re.compile(_START + r"only one object with name (.*) in .*/(\w+)s list")


def why(error: Exception) -> str:
    """What is wrong, for a user that can mend the file."""
    if isinstance(error, yaml.YAMLError):
        return f"not YAML: {go_yaml.problem(error)}"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    if isinstance(error, ssl.SSLError):
        return _of_tls(error)
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, (AttributeError, LookupError, TypeError)):
        return _SHAPE
    return _of_package(str(error))


def _of_tls(error: ssl.SSLError) -> str:
    reason = (error.reason or "PEM lib").replace(" ", "_").upper()
    return _CERTIFICATES.get(reason) or reason.replace("_", " ").lower()


def _of_system(error: OSError) -> str:
    words = error.strerror or str(error)
    return f"{error.filename}: {words}" if error.filename else words


def _of_package(text: str) -> str:
    for form, said in _SAID:
        found = form.match(text)
        if found:
            return said(found)
    return text


def _absent(found: re.Match[str]) -> str:
    if not found[1] and found[2] == "context":
        return "it says no current-context, and none is named by --context"
    return f"there is no {found[2]} {found[1]} in it"


_SAID: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (_ABSENT, _absent),
    (_MISSING, lambda found: f"{found[1]} is missing in it"),
    (_DUPLICATE, lambda found: f"there are several of {found[2]} {found[1]} in it"),
)
