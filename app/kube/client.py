"""One HTTP client for everything that is asked of, or written to, the API server.

Bytes go in and bytes come out: bodies are encoded by msgspec, answers are handed back undecoded,
because most are never looked at and the rest have decoders of their own. Each request takes a token
of the client-side rate limit and a connection of a bounded keep-alive pool, and has a deadline from
then on. What is urgent has connections of its own: a write that was found right must not wait
behind other requests, as it is not judged again. Any answer above 2xx, and the lack of one, is a
`KubeError`; nothing is retried here.

Built for thousands of small POSTs a second on one core: the URL is not parsed again, cookies,
redirects and decompression are off.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from prometheus_client import Counter, Histogram
from yarl import URL

from app.kube import errors
from app.kube.config import Connection
from app.kube.connector import connector
from app.kube.credentials import Credentials
from app.kube.envelopes import next_token
from app.kube.failures import failure, shown
from app.kube.limiter import Clock, RateLimiter, Sleep
from app.telemetry import metrics

_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_WARNING: Final = re.compile(rf'\d{{3}} \S+ {_QUOTED}(?: "[^"]*")?')  # code, agent, text, date
_ESCAPED: Final = re.compile(r"\\(.)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")

Body = bytes | Mapping[str, object] | Sequence[object]
Params = Mapping[str, str]

PAGE_LIMIT: Final = 500
_NOT_SENT: Final = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
)


class ContentType(StrEnum):
    """How the body of a PATCH is to be read."""

    MERGE = "application/merge-patch+json"
    JSON_PATCH = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
    PLAIN = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How much the client may ask of the API server."""

    qps: float = 2000.0
    burst: int = 2000
    connections: int = 64
    urgent_connections: int = 64
    deadline_s: float = 10.0
    connect_s: float = 3.0
    user_agent: str = "pumice"


class ApiClient:
    """Asynchronous requests to one API server; an async context manager.

    ``warn`` is told what the API server warns of; without it warnings are dropped.
    """

    def __init__(
        self,
        connection: Connection,
        options: ClientOptions | None = None,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.options = options or ClientOptions()
        self._connection = connection
        self._clock = clock
        self._warn = warn
        self._credentials = Credentials(connection.headers, clock=clock, refused=connection.refused)
        self._limiter = RateLimiter(
            qps=self.options.qps, burst=self.options.burst, clock=clock, sleep=sleep
        )
        self._session: aiohttp.ClientSession | None = None
        self._room = asyncio.Semaphore(self.options.connections)
        self._urgent_room = asyncio.Semaphore(self.options.urgent_connections)
        self._encode = msgspec.json.Encoder().encode

    async def __aenter__(self) -> Self:
        options = self.options
        self._session = aiohttp.ClientSession(
            connector=connector(limit=options.connections + options.urgent_connections),
            timeout=aiohttp.ClientTimeout(total=options.deadline_s, sock_connect=options.connect_s),
            headers={"User-Agent": options.user_agent, "Accept": "application/json"},
            skip_auto_headers=("Accept-Encoding",),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(
        self, path: str, params: Params | None = None, *, deadline_s: float | None = None
    ) -> bytes:
        """The object (or text) at ``path``."""
        return await self._request("GET", path, params=params, deadline_s=deadline_s)

    async def list(
        self, path: str, params: Params | None = None, *, limit: int = PAGE_LIMIT
    ) -> AsyncIterator[bytes]:
        """The pages of a collection, one after another."""
        asked = {**(params or {}), "limit": str(limit)}
        while True:
            page = await self._request("GET", path, params=asked)
            yield page
            token = next_token(page)
            if not token:
                return
            asked["continue"] = token

    async def create(
        self,
        path: str,
        body: Body,
        *,
        params: Params | None = None,
        deadline_s: float | None = None,
        urgent: bool = False,
    ) -> bytes:
        """POST ``body`` to a collection or subresource."""
        return await self._request(
            "POST", path, params=params, body=body, deadline_s=deadline_s, urgent=urgent
        )

    async def replace(self, path: str, body: Body, *, deadline_s: float | None = None) -> bytes:
        """PUT the whole object; its resourceVersion, if it has one, must be the stored one."""
        return await self._request("PUT", path, body=body, deadline_s=deadline_s)

    async def patch(
        self,
        path: str,
        body: Body,
        *,
        content_type: ContentType = ContentType.MERGE,
        params: Params | None = None,
        deadline_s: float | None = None,
    ) -> bytes:
        """PATCH an object or subresource."""
        return await self._request(
            "PATCH",
            path,
            params=params,
            body=body,
            content_type=content_type,
            deadline_s=deadline_s,
        )

    async def delete(
        self,
        path: str,
        body: Body | None = None,
        *,
        params: Params | None = None,
        deadline_s: float | None = None,
    ) -> bytes:
        """DELETE an object, with DeleteOptions as ``body``."""
        return await self._request("DELETE", path, params=params, body=body, deadline_s=deadline_s)

    async def _request(
        self,
        verb: str,
        path: str,
        *,
        params: Params | None = None,
        body: Body | None = None,
        content_type: ContentType = ContentType.PLAIN,
        deadline_s: float | None = None,
        urgent: bool = False,
    ) -> bytes:
        waited_s = await self._limiter.take()
        if waited_s:
            metrics.KUBE_LIMITER_SECONDS.inc(waited_s)
        headers = await self._credentials.current()
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else self._encode(body)
            headers = {**headers, "Content-Type": content_type.value}
        query = f"?{urlencode(params)}" if params else ""
        url = URL(f"{self._connection.host}{path}{query}", encoded=True)
        async with self._urgent_room if urgent else self._room:
            status, answer, answer_headers = await self._exchange(
                verb, url, data=data, headers=headers, deadline_s=deadline_s
            )
        if status < 300:
            return answer
        if status == 401:
            self._credentials.refused(headers)
        raise errors.from_answer(status, answer, answer_headers)

    async def _exchange(
        self,
        verb: str,
        url: URL,
        *,
        data: bytes | None,
        headers: Mapping[str, str],
        deadline_s: float | None,
    ) -> tuple[int, bytes, Mapping[str, str]]:
        if self._session is None:
            raise RuntimeError("the client is not open: use it as an async context manager")
        timeout = _timeout(deadline_s or self.options.deadline_s, self.options.connect_s)
        began, status = self._clock(), 0
        try:
            async with self._session.request(
                verb,
                url,
                data=data,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=self._connection.proxy,
                ssl=self._connection.tls() or True,
                server_hostname=self._connection.server_name,
            ) as answer:
                body = await answer.read()
                status = answer.status
                if self._warn is not None:
                    for text in _warnings_in(answer.headers.getall("Warning", ())):
                        self._warn(text)
                return status, body, answer.headers
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise failure(
                error,
                request=f"{verb} {shown(str(url.with_query(None)))}",
                proxy=self._connection.proxy,
                sent=not isinstance(error, _NOT_SENT),
            ) from error
        finally:
            _requests(verb, status).inc()
            _seconds(verb).observe(self._clock() - began)


@cache
def _timeout(deadline_s: float, connect_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=deadline_s, sock_connect=connect_s)


@cache
def _requests(verb: str, status: int) -> Counter:
    return metrics.KUBE_REQUESTS.labels(verb, str(status))


@cache
def _seconds(verb: str) -> Histogram:
    return metrics.KUBE_REQUEST_SECONDS.labels(verb)


def _warnings_in(headers: Iterable[str]) -> list[str]:
    """The texts of ``Warning: 299 - "unknown field"`` headers, each in one line.

    A header of another form has none.
    """
    return [
        _CONTROL.sub(" ", _ESCAPED.sub(r"\1", text))
        for header in headers
        for text in _WARNING.findall(header)
    ]
