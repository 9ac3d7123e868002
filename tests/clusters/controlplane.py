"""The stock control plane to test on: the sandbox's launcher, with a client that may do everything.

The programs are compiled first where they are missing. Everything ends with the `with` block, or
with the test run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from app.sandbox.controlplane import kubeconfigs, plane
from app.sandbox.controlplane.certificates import KeyPair
from app.sandbox.controlplane.plane import Scheduler
from tests.clusters import binaries
from tests.clusters.client import ApiClient, tls_context
from tests.clusters.resources import SERVICE_ACCOUNTS

__all__ = ["ControlPlane", "Scheduler"]


class ControlPlane(plane.ControlPlane):
    """etcd and kube-apiserver in a folder; `api` is a member of system:masters."""

    kind: Literal["real"] = "real"

    def __init__(
        self,
        folder: Path,
        *,
        programs: Path | None = None,
        priority_and_fairness: bool = True,
        apiserver_flags: Sequence[str] = (),
    ) -> None:
        super().__init__(
            folder,
            programs=programs or binaries.folder(),
            priority_and_fairness=priority_and_fairness,
            apiserver_flags=apiserver_flags,
        )
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        pki = self.folder / "pki"
        admin = KeyPair(pki / "admin.crt", pki / "admin.key")
        with contextlib.ExitStack() as stack:
            super().__enter__()
            stack.push(super().__exit__)
            trust = tls_context(self.authority.certificate, admin)
            self.api = stack.enter_context(ApiClient(self.url, verify=trust))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def service_account_token(self, namespace: str, name: str) -> str:
        """Ask for a token of an existing service account, as its pods would get it."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self.api.create(
            request,
            resource=SERVICE_ACCOUNTS,
            namespace=namespace,
            subresource_of=name,
            subresource="token",
        )
        token: str = answer["status"]["token"]
        return token

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a fresh token of an existing service account."""
        return kubeconfigs.write(
            self.folder / f"{namespace}-{name}.kubeconfig",
            server=self.url,
            authority=self.authority.certificate,
            token=self.service_account_token(namespace, name),
        )
