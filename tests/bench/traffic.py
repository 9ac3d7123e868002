"""The benchmark's own requests: many small POSTs, a watch, and what is needed around them.

It shares two cores with what it measures, so it is built to be cheap: bodies are encoded before
the clock starts, answers are not read as JSON, and the watch asks only for pods with a node (one
line per pod instead of four) of which it decodes three fields.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
import msgspec

from tests.bench.gangs import Binds
from tests.clusters.client import Object
from tests.clusters.resources import PODS, Resource
from tests.clusters.workloads import GROUP

_IN_FLIGHT = 32
_POLL_S = 0.1
_WATCH_S = 600
_JSON = {"Content-Type": "application/json"}
_BOUND_ONLY = {"fieldSelector": "spec.nodeName!="}


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str
    annotations: dict[str, str] = {}


class _Pod(msgspec.Struct):
    metadata: _Metadata


class _Line(msgspec.Struct):
    type: str
    object: _Pod


decode_line = msgspec.json.Decoder(_Line).decode


@dataclass(frozen=True, slots=True)
class Request:
    """A POST that only has to be sent."""

    path: str
    body: bytes


def post_of(item: Object, resource: Resource, *, namespace: str) -> Request:
    """The request that creates ``item``."""
    return Request(resource.path(namespace=namespace), msgspec.json.encode(item))


class Refused(Exception):
    """The API server did not take a request of the benchmark."""


class Traffic:
    """Requests to one API server; an asynchronous context manager."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        self._url = url
        self._context = context

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            self._url,
            connector=aiohttp.TCPConnector(limit=_IN_FLIGHT + 8, ssl=self._context),
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=("Accept-Encoding",),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=2**20,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def post_all(self, requests: Iterable[Request], *, pace: float = math.inf) -> None:
        """Send them in order, 32 at a time and at most ``pace`` a second."""
        queue = enumerate(requests)
        began = time.monotonic()

        async def send() -> None:
            for number, request in queue:
                await asyncio.sleep(max(0.0, began + number / pace - time.monotonic()))
                async with self._session.post(
                    request.path, data=request.body, headers=_JSON
                ) as answer:
                    text = await answer.read()
                    if answer.status >= 300:
                        raise Refused(f"{request.path}: {answer.status} {text[:300]!r}")

        async with asyncio.TaskGroup() as group:
            for _ in range(_IN_FLIGHT):
                group.create_task(send())

    async def get(self, path: str, **params: str) -> Any:
        """The JSON at a path."""
        async with self._session.get(path, params=params) as answer:
            return msgspec.json.decode(await answer.read())

    async def clear(self, resources: Sequence[Resource], *, namespace: str) -> None:
        """Delete everything of these kinds and wait until it is gone."""
        for resource in resources:
            path = resource.path(namespace=namespace)
            options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
            body = msgspec.json.encode(options)
            async with self._session.delete(path, data=body, headers=_JSON) as answer:
                await answer.read()
            while (await self.get(path, limit="1"))["items"]:  # noqa: ASYNC110 - it has to be asked
                await asyncio.sleep(_POLL_S)

    @asynccontextmanager
    async def watch_binds(self, binds: Binds, *, namespace: str) -> AsyncIterator[None]:
        """Feed ``binds`` while the block runs."""
        path = PODS.path(namespace=namespace)
        listed = await self.get(path, limit="1")
        reader = asyncio.create_task(
            self._follow(path, listed["metadata"]["resourceVersion"], binds)
        )
        try:
            yield
        finally:
            reader.cancel()
            await asyncio.wait({reader})
        if not reader.cancelled():
            reader.result()

    async def _follow(self, path: str, version: str, binds: Binds) -> None:
        """Watch for ever: the API server closes watches that are not read fast enough."""
        seen: set[str] = set()
        while True:
            params = {
                **_BOUND_ONLY,
                "watch": "1",
                "resourceVersion": version,
                "timeoutSeconds": str(_WATCH_S),
            }
            async with self._session.get(path, params=params) as answer:
                resumed = False
                async for line in _lines(answer.content):
                    if not resumed:
                        resumed = True
                        binds.resume(at=time.perf_counter())
                    pod = decode_line(line).object.metadata
                    version = pod.resource_version
                    if pod.uid not in seen:
                        seen.add(pod.uid)
                        binds.add(pod.annotations.get(GROUP, ""), at=time.perf_counter())


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
