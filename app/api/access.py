"""Rights of readers: from elsewhere than the machine itself they show a bearer token.

The API server tells the owner of a token (TokenReview), and what that account may ask
(SubjectAccessReview). An account that may ``get debug.pumice.sh`` in all namespaces is an operator
and is told everything. One that may ``get decisions.pumice.sh`` in a namespace is a tenant of it:
answers name no object of another namespace (:mod:`app.service.telling.hiding`). With the verb
``create`` it may try something out too, such as ``POST /simulate``.

Both answers are kept for a short time, and equal questions at a time are asked once. Tokens are
kept as hashes only.
"""

import hashlib
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from fastapi import Request

from app.api.body import BadRequest
from app.kit.shared import Shared
from app.model.viewer import EVERYONE, NEARBY, Viewer
from app.service.ports import Clock, WriteError

GROUP: Final = "pumice.sh"
"""The API group of rights that no object of the API server stands for."""
DECISIONS: Final = "decisions"
DEBUG: Final = "debug"

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"

KNOWN_S: Final = 60.0
"""How long a right and the owner of a token are believed."""
UNKNOWN_S: Final = 10.0
"""How long a refusal is: a right may have been given in the meantime."""
KEPT: Final = 1_024
"""Of tokens, and of rights, so many answers are kept at most, and as many refusals."""
ASKED_AT_ONCE: Final = 16
"""More questions of readers at a time are refused: the API server has other things to do.

Not so about a token or a right that there was, which guessed ones cannot keep from being renewed.
"""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Account:
    """The owner of a token, as the API server names it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Right:
    """To do ``verb`` with the ``resource`` of our group in a namespace; empty: in all."""

    resource: str
    namespace: str
    verb: str = "get"


class Reviews(Protocol):
    """What the API server knows of tokens and rights."""

    async def owner_of(self, token: str) -> Account | None:
        """The owner of the token, None for one that is not valid; raises WriteError."""

    async def may(self, account: Account, right: Right) -> bool:
        """Whether the account has that right; raises WriteError."""


@dataclass(slots=True, eq=False)
class _Answers(Generic[K, V]):
    """Answers that are kept for a time; each question is asked once at a time."""

    clock: Clock
    _granted: dict[K, tuple[V, float]] = field(default_factory=dict)
    _refused: dict[K, tuple[V, float]] = field(default_factory=dict)
    _asked: dict[K, Shared[V]] = field(default_factory=dict)

    async def of(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """The answer that is kept, or that of ``ask``, whose error goes to all that wait."""
        kept = self._granted.get(key) or self._refused.get(key)
        if kept is not None and self.clock() < kept[1]:
            return kept[0]
        if key not in self._asked:
            if len(self._asked) >= ASKED_AT_ONCE and key not in self._granted:
                raise BadRequest("too many tokens are looked at; ask again", status=429)
            self._asked[key] = Shared(partial(self._ask, key, ask))
        return await self._asked[key].get()

    async def _ask(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        try:
            found = await ask()
        finally:
            del self._asked[key]
        self._granted.pop(key, None)
        self._refused.pop(key, None)
        kept = self._granted if found else self._refused
        while len(kept) >= KEPT:
            del kept[next(iter(kept))]
        kept[key] = (found, self.clock() + (KNOWN_S if found else UNKNOWN_S))
        return found


class Access:
    """Judges readers; without ``reviews`` all of them are told everything."""

    def __init__(self, reviews: Reviews | None, *, clock: Clock) -> None:
        self._reviews = reviews
        self._owners: _Answers[bytes, Account | None] = _Answers(clock)
        self._rights: _Answers[tuple[Account, Right], bool] = _Answers(clock)

    async def identified(self, request: Request) -> None:
        """Look whether the token has an owner; BadRequest 401, 429 or 503 if not."""
        if self._reviews is None or is_nearby(request):
            return
        try:
            await self._owner(self._reviews, _token_of(request.headers))
        except WriteError as error:
            raise _cannot_look(error) from error

    async def operator(self, request: Request) -> Viewer:
        """The reader, if it may be told everything; BadRequest 401, 403, 429 or 503 if not."""
        found = await self._judged(request, namespace=None)
        assert found.is_operator
        return found

    async def is_operator(self, request: Request) -> bool:
        """Whether the reader may be told everything, as far as that can be judged now."""
        try:
            await self.operator(request)
        except BadRequest:
            return False
        return True

    async def tenant(self, request: Request, namespace: str) -> Viewer:
        """The reader of ``namespace``: an operator or a tenant of it; BadRequest as above."""
        return await self._judged(request, namespace=namespace)

    async def readers(
        self, request: Request, namespaces: frozenset[str]
    ) -> tuple[str, frozenset[str] | None]:
        """The reader's name, and the namespaces that it is told of; None: all.

        Without ``namespaces`` an operator is told of all, and a service account that is none of its
        own. BadRequest as above; 403 says to name some.
        """
        if namespaces:
            found = [await self.tenant(request, each) for each in sorted(namespaces)]
            return found[0].user, namespaces
        try:
            return (await self.operator(request)).user, None
        except BadRequest as error:
            if error.status != 403 or self._reviews is None:
                raise
            account = await self._owner(self._reviews, _token_of(request.headers))
            home = account.name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
            if home != account.name:
                return await self.readers(request, frozenset({home}))
            raise BadRequest(f"{error}; name namespaces: ?namespace=…", status=403) from None

    async def _judged(self, request: Request, *, namespace: str | None) -> Viewer:
        if is_nearby(request):
            return NEARBY
        if self._reviews is None:
            return EVERYONE
        try:
            account = await self._owner(self._reviews, _token_of(request.headers))
            if await self._may(self._reviews, account, Right(DEBUG, "")):
                return Viewer(account.name)
            if namespace is None:
                raise _forbidden(account, Right(DEBUG, ""))
            right = Right(DECISIONS, namespace, "get" if request.method == "GET" else "create")
            if await self._may(self._reviews, account, right):
                return Viewer(account.name, namespace)
        except WriteError as error:
            raise _cannot_look(error) from error
        raise _forbidden(account, right)

    async def _owner(self, reviews: Reviews, token: str) -> Account:
        key = hashlib.sha256(token.encode()).digest()
        found = await self._owners.of(key, lambda: reviews.owner_of(token))
        if found is None:
            raise BadRequest("the token is not valid", status=401)
        return found

    async def _may(self, reviews: Reviews, account: Account, right: Right) -> bool:
        return await self._rights.of((account, right), lambda: reviews.may(account, right))


def is_nearby(request: Request) -> bool:
    """Whether the request came over loopback: from the same machine or pod, or port-forward.

    One for another name than ``localhost`` is none: a page of another site may let a name of its
    own mean this machine, and have the browser of an operator ask for it.
    """
    if request.client is None or not _is_of_no_site(request.headers.get("host", "")):
        return False
    address = _address(request.client.host)
    return address is not None and address.is_loopback


def _is_of_no_site(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    is_local = name in ("", "localhost") or name.endswith(".localhost")
    return is_local or _address(name) is not None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address as text tells it, that of IPv4 where it is one; None: it is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _token_of(headers: Mapping[str, str]) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise BadRequest("show a token: Authorization: Bearer …", status=401)
    return token.strip()


def _cannot_look(error: WriteError) -> BadRequest:
    return BadRequest(f"the token cannot be looked at now: {error}", status=503)


def _forbidden(account: Account, right: Right) -> BadRequest:
    where = f"namespace {right.namespace}" if right.namespace else "all namespaces"
    what = f"{right.verb} {right.resource}.{GROUP}"
    return BadRequest(f"{account.name} may not {what} in {where}", status=403)
