"""What a behaviour test may rely on, whichever cluster it runs on."""

from __future__ import annotations

from typing import Literal, Protocol

from tests.clusters.client import ApiClient
from tests.clusters.pages import Pages


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


class Scheduling(Protocol):
    """A cluster on which Pumice schedules."""

    @property
    def kind(self) -> Literal["sandbox", "real"]: ...

    @property
    def api(self) -> ApiClient: ...

    @property
    def extender(self) -> Pages:
        """Pages of the extender in charge."""
