"""What a behaviour test may rely on, whichever cluster it runs on."""

from __future__ import annotations

from typing import Literal, Protocol

from tests.clusters.client import ApiClient


class Cluster(Protocol):
    """A cluster with an API server: the embedded sandbox or the stock control plane."""

    @property
    def kind(self) -> Literal["sandbox", "real"]: ...

    @property
    def api(self) -> ApiClient:
        """A client that may do everything."""

    @property
    def kubeconfig(self) -> str:
        """Path of a kubeconfig with the same rights as `api`."""
