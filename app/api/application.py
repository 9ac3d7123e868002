"""What every application has: refusals of one line, no redirects, a description made when asked."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from app.api.body import BadRequest, refuse, refuse_http

Responses = Mapping[int | str, Mapping[str, Any]]


class Route(APIRoute):
    """A route that looks at the types of its answers once its description is asked for.

    They only describe, and FastAPI's look at all of them takes 0.05 s of each start.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        responses: Responses | None = None,
        **given: Any,
    ) -> None:
        told = {status: dict(response) for status, response in (responses or {}).items()}
        untyped = {
            status: {name: value for name, value in response.items() if name != "model"}
            for status, response in told.items()
        }
        super().__init__(path, endpoint, responses=untyped, **given)
        self._told = told
        self._given = given

    def described(self) -> APIRoute:
        """A route like this one, with the types of its answers."""
        return APIRoute(self.path, self.endpoint, responses=self._told, **self._given)


class Router(APIRouter):
    """A router whose routes are each a `Route`; ``given`` is what `APIRouter` takes."""

    def __init__(self, *, dependencies: Sequence[Any] = (), **given: Any) -> None:
        depends = [Depends(asked_once), *dependencies]
        super().__init__(route_class=Route, dependencies=depends, **given)


async def asked_once(request: Request) -> None:
    """Refuse a question with a parameter that is there twice: which one counts is not known."""
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if count > 1:
            raise BadRequest(f"{name} is asked twice; write it once")


class Application(FastAPI):
    """An application whose ``/openapi.json`` has the types of all answers."""

    def openapi(self) -> dict[str, Any]:
        """The description, made when it is first asked for."""
        if self.openapi_schema is None:
            routes = [each.described() if isinstance(each, Route) else each for each in self.routes]
            self.openapi_schema = get_openapi(
                title=self.title, version=self.version, summary=self.summary, routes=routes
            )
        return self.openapi_schema


def application(title: str, *, summary: str) -> FastAPI:
    """An application without routes."""
    app = Application(title=title, summary=summary, redirect_slashes=False)
    app.add_exception_handler(BadRequest, refuse)
    app.add_exception_handler(HTTPException, refuse_http)
    return app


def serve(app: FastAPI, router: APIRouter) -> None:
    """Have an application serve the routes of a router, as they are.

    FastAPI's own way makes each route again when a request first looks for it. With the types that
    the routes describe, the first look at the page then took 0.1 s.
    """
    app.router.routes.extend(router.routes)
