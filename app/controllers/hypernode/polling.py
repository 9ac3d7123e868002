"""Servers that tell the topology of a network, each asked again and again.

A server that does not answer, or answers what cannot be meant, changes nothing: what it told last
holds. It is asked again after a pause that doubles, and no longer than its interval.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from app.controllers.hypernode import by_document, by_ufm
from app.controllers.hypernode.making import Known, TopologyError
from app.controllers.ports import Api, ApiError, Clock, Failure, Web, WebError, WebRequest
from app.kit.workqueue import Backoff
from app.wire.controller_conf import REST, UFM, Server
from app.wire.kinds import SECRETS
from app.wire.unstructured import Key, Object, annotations

MOST_BYTES: Final = 100 * 1024 * 1024
"""As in Volcano."""

BACKOFF: Final = Backoff(base_s=5.0, max_s=300.0)

AUTHORITY: Final = "ca.crt"
CONSENT: Final = "pumice.sh/discovery"
"""Annotation by which a Secret in another namespace than the configuration allows its use.

The controllers may read any Secret, as jobs have some. Rights to write the configuration alone
must not suffice to have them sent to a server.
"""
_ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"

Build = Callable[[Iterable[Object], Known], Mapping[str, Object]]
"""HyperNodes by name, of nodes and of HyperNodes that are there; raises `TopologyError`."""


class PollError(Exception):
    """A server did not tell the topology; the text says why."""


@dataclass(frozen=True, slots=True)
class _Login:
    user: str = ""
    password: str = ""
    token: str = ""
    authority: str = ""


class Poll:
    """One server. ``build`` is None until it has answered."""

    def __init__(self, server: Server, *, home: str, api: Api, web: Web, clock: Clock) -> None:
        """``home``: the namespace of the configuration."""
        self.server = server
        self._home = home
        self.build: Build | None = None
        self.due = 0.0
        """When it is to be asked next."""
        self._api = api
        self._web = web
        self._clock = clock
        self.answered_at = 0.0
        """When it told the topology last."""
        self._failures = 0

    @property
    def has_answered(self) -> bool:
        """Whether the server told the topology when it was asked last."""
        return self.build is not None and self._failures == 0

    def is_due(self) -> bool:
        """Whether the time has come to ask."""
        return self._clock() >= self.due

    async def ask(self) -> None:
        """Ask once; raises `PollError`."""
        try:
            login = await self._login()
            request, read = _SPEECHES[self.server.source](self.server, login)
            self.build = await self._web.get(request, read)
        except (PollError, WebError, TopologyError) as error:
            self._failures += 1
            pause = min(BACKOFF.pause(self._failures), self.server.interval_s)
            self.due = self._clock() + pause
            raise PollError(f"{self.server.url}: {error}") from error
        self._failures = 0
        self.answered_at = self._clock()
        self.due = self.answered_at + self.server.interval_s

    async def _login(self) -> _Login:
        key = self.server.secret
        if key is None:
            return _Login()
        try:
            secret = await self._api.get(SECRETS, key)
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                raise PollError(f"there is no Secret {key}") from error
            raise PollError(f"Secret {key} cannot be read: {error}") from error
        foreign = key.namespace != self._home
        if foreign and annotations(secret).get(CONSENT) != "true":
            why = f'is in another namespace and has no annotation {CONSENT}: "true"'
            raise PollError(f"Secret {key} {why}")
        if secret.get("type") == _ACCOUNT_TOKEN:
            raise PollError(f"Secret {key} is the token of a ServiceAccount, which is not sent")
        return _read_login(key, secret)


def _read_login(key: Key, secret: Object) -> _Login:
    data: Mapping[str, Any] = secret.get("data") or {}

    def field(name: str) -> str:
        try:
            return base64.b64decode(data.get(name) or "", validate=True).decode().strip()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise PollError(f"{name} of Secret {key} is no text") from error

    found = _Login(field("username"), field("password"), field("token"), field(AUTHORITY))
    if any(not each.isprintable() for each in (found.user, found.password, found.token)):
        raise PollError(f"Secret {key} has a user, password or token of more than one line")
    if ":" in found.user:
        raise PollError(f"username of Secret {key} has a colon, which basic authentication has not")
    if bool(found.user) != bool(found.password):
        lacks = "password" if found.user else "username"
        raise PollError(f"Secret {key} has no {lacks}")
    return found


def _basic(login: _Login) -> str:
    both = f"{login.user}:{login.password}".encode()
    return f"Basic {base64.b64encode(both).decode()}"


def _request(server: Server, url: str, login: _Login, authorization: str) -> WebRequest:
    headers = {"accept": "application/json"}
    if authorization:
        headers["authorization"] = authorization
    return WebRequest(
        url=url,
        headers=headers,
        authority=login.authority,
        insecure=server.insecure,
        most_bytes=MOST_BYTES,
    )


def _to_ufm(server: Server, login: _Login) -> tuple[WebRequest, Callable[[bytes], Build]]:
    """UFM takes a token under another path, and as if it were basic authentication."""
    if login.token:
        base, authorization = by_ufm.BY_TOKEN, f"Basic {login.token}"
    elif login.user:
        base, authorization = by_ufm.BY_USER, _basic(login)
    else:
        raise PollError(f"Secret {server.secret} has no username and password, and no token")
    url = f"{server.url.rstrip('/')}{base}{by_ufm.PORTS}"

    def read(body: bytes) -> Build:
        return partial(by_ufm.hyper_nodes, by_ufm.read_fabric(body))

    return _request(server, url, login, authorization), read


def _to_rest(server: Server, login: _Login) -> tuple[WebRequest, Callable[[bytes], Build]]:
    authorization = ""
    if login.token:
        authorization = f"Bearer {login.token}"
    elif login.user:
        authorization = _basic(login)

    def read(body: bytes) -> Build:
        return partial(by_document.hyper_nodes, by_document.read_document(body))

    return _request(server, server.url, login, authorization), read


_SPEECHES: Final[
    Mapping[str, Callable[[Server, _Login], tuple[WebRequest, Callable[[bytes], Build]]]]
] = {UFM: _to_ufm, REST: _to_rest}
