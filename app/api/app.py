"""The application of the extender process."""

from collections.abc import Mapping

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from app.api.application import application, serve
from app.api.audit import audit_router
from app.api.cluster_metrics import ClusterMetrics
from app.api.debug import debug_router
from app.api.device_metrics import DeviceMetrics, DevicesOfPods
from app.api.direct import Direct
from app.api.eta import eta_router
from app.api.explain import explain_router
from app.api.extender import Call, extender_router, over_http
from app.api.fits import fits_router
from app.api.health import MetricsWithNames, health_router
from app.api.network_metrics import NetworkMetrics
from app.api.page import page_router
from app.api.preview import preview_router
from app.api.record import record_router
from app.api.services import ExtenderServices
from app.api.simulate import simulate_router
from app.api.view import view_router
from app.api.volcano_metrics import VolcanoMetrics
from app.wire.paths import PREFIXES, VERB_OF


def create_app(services: ExtenderServices, calls: Mapping[str, Call]) -> ASGIApp:
    """Every route of one extender process over ``services``, and their ``calls``."""
    app = _application()
    handlers = {verb: over_http(call) for verb, call in calls.items()}
    for prefix in PREFIXES:
        serve(app, extender_router(handlers, prefix=prefix, described=prefix == PREFIXES[0]))
    _add_reading(app, services)
    return Direct(app, {path: handlers[verb] for path, verb in VERB_OF.items()})


def create_reading_app(services: ExtenderServices) -> ASGIApp:
    """The routes that change nothing, for an address that others than kube-scheduler reach."""
    app = _application()
    _add_reading(app, services)
    return app


def _application() -> FastAPI:
    return application("Pumice", summary="Scheduler extender: gangs, queues and placement.")


def _add_reading(app: FastAPI, services: ExtenderServices) -> None:
    metrics = CollectorRegistry()
    metrics.register(services.metrics)
    metrics.register(VolcanoMetrics(services.cache, services.planning))
    metrics.register(DeviceMetrics(services.cache, services.planning))
    metrics.register(ClusterMetrics(services.cache, services.planning))
    metrics.register(NetworkMetrics(services.cache, services.planning))
    of_pods = CollectorRegistry()
    of_pods.register(DevicesOfPods(services.cache, services.planning))
    health = health_router(
        services.unready,
        metrics,
        notices=services.notices,
        with_names=MetricsWithNames(of_pods, services.access.is_operator),
    )
    told = (
        explain_router,
        eta_router,
        preview_router,
        simulate_router,
        fits_router,
        audit_router,
        record_router,
        debug_router,
        view_router,
    )
    for router in (health, page_router(), *(each(services) for each in told)):
        serve(app, router)
