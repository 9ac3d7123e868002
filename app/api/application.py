"""What every application has: refusals of one line, and no redirects."""

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from app.api.body import BadRequest, refuse, refuse_http


def application(title: str, *, summary: str) -> FastAPI:
    """An application without routes."""
    app = FastAPI(title=title, summary=summary, redirect_slashes=False)
    app.add_exception_handler(BadRequest, refuse)
    app.add_exception_handler(HTTPException, refuse_http)
    return app
