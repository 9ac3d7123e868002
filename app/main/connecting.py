"""The one way a process of ours is connected to the API server for what it writes."""

from app.kube import config
from app.kube.client import ApiClient, ClientOptions
from app.settings.process import ProcessSettings


def open_client(settings: ProcessSettings) -> ApiClient:
    """The client that ``settings`` describe, an async context manager. Raises ConfigError."""
    return ApiClient(
        config.load(settings.kubeconfig),
        ClientOptions(qps=settings.kube_api_qps, burst=settings.kube_api_burst),
    )
