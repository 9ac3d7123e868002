"""The FastAPI application of the extender process."""

from fastapi import FastAPI

from app.api.body import BadRequest, refuse
from app.api.debug import debug_router
from app.api.explain import explain_router
from app.api.extender import extender_router
from app.api.health import health_router
from app.api.services import ExtenderServices


def create_app(services: ExtenderServices) -> FastAPI:
    """Every route of one extender process over ``services``."""
    app = FastAPI(title="Pumice", summary="Scheduler extender: gangs, queues and placement.")
    app.add_exception_handler(BadRequest, refuse)
    app.include_router(extender_router(services))
    app.include_router(extender_router(services), prefix="/v1", include_in_schema=False)
    app.include_router(health_router(services))
    app.include_router(explain_router(services))
    app.include_router(debug_router(services))
    return app
