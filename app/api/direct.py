"""kube-scheduler's calls, past the framework.

Two calls per pod are all the load there is. FastAPI's middleware, route matching and dependencies
cost twice as much as the calls themselves (0.09 of 0.13 ms), so they go straight to their handlers,
which are the same functions that FastAPI has as routes. All else is FastAPI's.
"""

from collections.abc import Mapping

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.body import BadRequest, refuse
from app.api.extender import Handler


class Direct:
    """An ASGI application: ``POST`` to one of the paths of ``handlers``, or else ``app``."""

    def __init__(self, app: ASGIApp, handlers: Mapping[str, Handler]) -> None:
        self._app = app
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        handler = self._handlers.get(scope["path"]) if scope["type"] == "http" else None
        if handler is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await handler(request)
        except BadRequest as error:
            response = await refuse(request, error)
        except ClientDisconnect:
            return
        await response(scope, receive, send)
