"""Asks pods over HTTP and TCP, a few dozen at a time and each for a second at most."""

import asyncio
import contextlib
from collections.abc import Mapping

import aiohttp

from app.controllers.jobflow.probes import Address, Why

_TIMEOUT_S = 1.0
_AT_ONCE = 64


class PodProber:
    """Everything is closed again after each question."""

    def __init__(self, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def http(self, at: Address, path: str, headers: Mapping[str, str]) -> Why:
        """GET; redirects are answers and are not followed, bodies are not read."""
        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        async with self._turns, aiohttp.ClientSession(timeout=timeout) as session:
            try:
                host = f"[{at.host}]" if ":" in at.host else at.host
                url = f"http://{host}:{at.port}{path}"
                async with session.get(url, headers=headers, allow_redirects=False) as answer:
                    return "" if answer.status < 400 else f"HTTP {answer.status}"
            except TimeoutError:
                return f"no answer within {self._timeout_s:g} s"
            except (aiohttp.ClientError, ValueError, OSError) as error:
                return str(error) or type(error).__name__

    async def tcp(self, at: Address) -> Why:
        """Connect, and hang up."""
        async with self._turns:
            try:
                async with asyncio.timeout(self._timeout_s):
                    _, writer = await asyncio.open_connection(at.host, at.port)
            except TimeoutError:
                return f"no connection within {self._timeout_s:g} s"
            except OSError as error:
                return str(error) or type(error).__name__
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return ""
