"""What every application has: refusals of one line, and no redirects."""

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException

from app.api.body import BadRequest, refuse, refuse_http


def application(title: str, *, summary: str) -> FastAPI:
    """An application without routes."""
    app = FastAPI(title=title, summary=summary, redirect_slashes=False)
    app.add_exception_handler(BadRequest, refuse)
    app.add_exception_handler(HTTPException, refuse_http)
    return app


def serve(app: FastAPI, router: APIRouter) -> None:
    """Have an application serve the routes of a router, as they are.

    FastAPI's own way makes each route again when a request first looks for it. With the types that
    the routes describe, the first look at the page then took 0.1 s.
    """
    app.router.routes.extend(router.routes)
