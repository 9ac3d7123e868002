"""What the API server may answer instead of doing it, divided by how to react.

::

    KubeError
    ├── Refused            the same request will be refused again; change it or give up
    │   ├── Forbidden        403: the account lacks the right
    │   │   └── Terminating    403: nothing is created in a namespace that is being deleted
    │   ├── NotFound         404: no such object (for a delete: done)
    │   └── Invalid          400, 405, 413, 415, 422 …: the body or the path is wrong
    ├── Outdated           what we believed is old; read again, then decide anew
    │   ├── Conflict         409: another version, or a precondition (uid) does not hold
    │   ├── AlreadyExists    409 AlreadyExists: another writer made it first
    │   ├── Replaced         422 metadata.uid: a patch named the UID of an object that is gone, and
    │   │                    another has its name
    │   └── Gone             410: that resourceVersion is no longer kept; list again
    └── Transient          the same request may succeed later
        ├── Unauthorized     401: the credentials are old; they are fetched anew for the next call
        ├── Throttled        429: too many requests
        ├── Protected        429 or 500: a PodDisruptionBudget, or several, forbid an eviction
        ├── ServerError      5xx
        ├── Unreadable       2xx, but not what was asked for: another server answered
        └── Transport        no whole answer; ``sent`` tells whether the request may have been done
            └── Silence        it began, and then nothing more came

Nothing in this package retries: that is the decision of the caller, which knows what the request is
for.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

MESSAGE_LIMIT = 4096
"""Characters of the server's message that an error keeps."""
LONGEST_WAIT_S: Final = 30.0
"""A server that asks for an hour is back much sooner, and a thread cannot sleep for ages at all."""


class ConfigError(Exception):
    """There is no usable address or credential; the message names what was tried."""


class KubeError(Exception):
    """Any answer but success, and the lack of one (then ``status`` is 0)."""

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", retry_after_s: float | None = None
    ) -> None:
        self.message = message[:MESSAGE_LIMIT]
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s
        """How long the server asks to wait, where it says so: at most `LONGEST_WAIT_S`."""
        super().__init__(f"{status or 'no answer'} {reason}: {self.message}".replace(" :", ":"))


class Refused(KubeError):
    """A refusal: the same request will be refused again."""


class Forbidden(Refused):
    """403."""


class Terminating(Forbidden):
    """403 with the cause NamespaceTerminating."""


class NotFound(Refused):
    """404."""


class Invalid(Refused):
    """The request itself is wrong: 422 and the other 4xx."""


class Outdated(KubeError):
    """What the request was built on has changed."""


class Conflict(Outdated):
    """409, a version or a precondition."""


class AlreadyExists(Outdated):
    """409, reason AlreadyExists."""


class Replaced(Outdated):
    """422, as no patch may change a UID: the one that it named is not the object's."""


class Gone(Outdated):
    """410, also reason Expired."""


class Transient(KubeError):
    """A failure that may pass: the same request may succeed later."""


class Unauthorized(Transient):
    """401."""


class Throttled(Transient):
    """429."""


class Protected(Transient):
    """An eviction that budgets forbid; the message has the budget's own words."""


class ServerError(Transient):
    """5xx."""


class Unreadable(Transient):
    """2xx, but the body is not what was asked for: a proxy's login page, say."""


class Transport(Transient):
    """No whole answer came: refused, reset, timed out."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent
        """Whether the server may have got the request, and so may have done it."""


class Silence(Transport):
    """An answer began, and nothing more of it came for as long as we listen."""


class Status(msgspec.Struct):
    """The part of a ``v1.Status`` that is read."""

    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: msgspec.Raw = msgspec.Raw()


class _Cause(msgspec.Struct):
    field: str | None = None
    reason: str | None = None
    message: str | None = None


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


_BY_STATUS: dict[int, type[KubeError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: Throttled,
}
_BY_CAUSE: dict[tuple[int, str], type[KubeError]] = {
    (403, "NamespaceTerminating"): Terminating,
    (429, "DisruptionBudget"): Protected,
}
_SEVERAL_BUDGETS: Final = "more than one PodDisruptionBudget"
"""Such an answer is a 500 without a reason."""
_BY_REASON: dict[str, type[KubeError]] = {"AlreadyExists": AlreadyExists, "Expired": Gone}

_decode_status = msgspec.json.Decoder(Status, strict=False).decode
"""A code may be a text: to list again for no reason is better than never."""
_decode_details = msgspec.json.Decoder(_Details).decode


def from_answer(status: int, body: bytes, headers: Mapping[str, str]) -> KubeError:
    """The error that an answer with this status means, whatever its body is."""
    return from_status(
        status, read_status(body), retry_after_s=_seconds(headers.get("Retry-After"))
    )


def read_status(body: bytes) -> Status:
    """What ``body`` says; where it is no ``v1.Status``, the message is its text."""
    try:
        return _decode_status(body)
    except (ValueError, RecursionError):
        return Status(message=body[:MESSAGE_LIMIT].decode(errors="replace").strip())


def from_status(status: int, said: Status, *, retry_after_s: float | None = None) -> KubeError:
    """The error that this status code and ``v1.Status`` mean (also inside a watch)."""
    causes = _causes(said)
    kind, message = _kind(status, said, causes), said.message or ""
    if kind is Protected:
        message = " ".join((message, *(cause.message or "" for cause in causes))).strip()
    return kind(message, status=status, reason=said.reason or "", retry_after_s=retry_after_s)


def _kind(status: int, said: Status, causes: list[_Cause]) -> type[KubeError]:
    if status == 422 and any(cause.field == "metadata.uid" for cause in causes):
        return Replaced
    if status == 500 and _SEVERAL_BUDGETS in (said.message or ""):
        return Protected
    of_cause = (_BY_CAUSE.get((status, cause.reason or "")) for cause in causes)
    found = next((kind for kind in of_cause if kind is not None), None)
    found = found or _BY_REASON.get(said.reason or "") or _BY_STATUS.get(status)
    return found or (ServerError if status >= 500 else Invalid)


def _causes(said: Status) -> list[_Cause]:
    try:
        return _decode_details(said.details).causes or []
    except (ValueError, RecursionError):
        return []


def _seconds(text: str | None) -> float | None:
    return min(float(text), LONGEST_WAIT_S) if text and text.isdecimal() else None
