"""Asks the server of the plugin ``extender``, over connections that stay open."""

import asyncio
import io
from types import TracebackType
from typing import Final, Self

import aiohttp

from app.controllers.ports import WebError
from app.kube import paths
from app.kube.client import ApiClient
from app.kube.errors import KubeError
from app.main.adapters.web_client import failures_told, read_answer
from app.service.ports import HttpExtenderError

MOST_BYTES: Final = 10 * 1024 * 1024
"""Of an answer, as in Volcano."""
_CONNECTIONS: Final = 32
_LARGE: Final = 1 << 18


class HttpExtenderClient:
    """Implements :class:`app.service.ports.HttpExtender`; an async context manager."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
            headers={"content-type": "application/json", "accept-encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, url: str, body: bytes, *, timeout_s: float) -> bytes:
        """The answer to a POST; raises HttpExtenderError."""
        assert self._session is not None
        # A large body goes in pieces, so that others have turns in between.
        data = body if len(body) < _LARGE else io.BytesIO(body)
        try:
            with failures_told(timeout_s):
                async with (
                    asyncio.timeout(timeout_s),
                    self._session.post(url, data=data, allow_redirects=False) as answer,
                ):
                    return await read_answer(answer, MOST_BYTES)
        except WebError as error:
            raise HttpExtenderError(str(error)) from error

    async def read_manifest(self, namespace: str, name: str) -> bytes | None:
        """The pod as stored."""
        try:
            return await self._client.get(paths.pod(namespace, name))
        except KubeError:
            return None
