"""Asks the API server for the owner of a token, and for what that account may do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from app.api.access import GROUP, Account, Right
from app.kube import errors
from app.kube.answers import decoded
from app.kube.client import ApiClient
from app.main.serving.translation import translated

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _ReviewKind:
    version: str
    name: str
    plural: str


_TOKEN: Final = _ReviewKind("authentication.k8s.io/v1", "TokenReview", "tokenreviews")
_RIGHT: Final = _ReviewKind(
    "authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews"
)


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _TokenReview(msgspec.Struct):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _RightStatus(msgspec.Struct):
    allowed: bool = False


class _RightReview(msgspec.Struct):
    status: _RightStatus = msgspec.field(default_factory=_RightStatus)


class ClusterReviews:
    """Implements :class:`app.api.access.Reviews`.

    ``audiences``: tokens have to be meant for one of them; none: for the API server.
    """

    def __init__(self, client: ApiClient, *, audiences: Sequence[str] = ()) -> None:
        self._client = client
        self._audiences = list(audiences)

    async def owner_of(self, token: str) -> Account | None:
        """The owner of the token; raises WriteError."""
        spec: dict[str, Any] = {"token": token}
        if self._audiences:
            spec["audiences"] = self._audiences
        status = (await self._review(_TokenReview, _TOKEN, spec)).status
        if not status.authenticated or not status.user.username:
            return None
        user = status.user
        extra = {name: tuple(values) for name, values in (user.extra or {}).items()}
        return Account(
            user.username, user.uid, tuple(user.groups or ()), tuple(sorted(extra.items()))
        )

    async def may(self, account: Account, right: Right) -> bool:
        """Whether the account has that right; raises WriteError."""
        spec = {
            "user": account.name,
            "uid": account.uid,
            "groups": list(account.groups),
            "extra": {name: list(values) for name, values in account.extra},
            "resourceAttributes": {
                "group": GROUP,
                "resource": right.resource,
                "verb": right.verb,
                "namespace": right.namespace,
            },
        }
        return (await self._review(_RightReview, _RIGHT, spec)).status.allowed

    async def _review(self, kind: type[T], about: _ReviewKind, spec: dict[str, Any]) -> T:
        body = {"apiVersion": about.version, "kind": about.name, "metadata": {}, "spec": spec}
        try:
            answer = await self._client.create(f"/apis/{about.version}/{about.plural}", body)
            return decoded(answer, msgspec.json.Decoder(kind).decode)
        except errors.KubeError as error:
            raise translated(error) from error
