"""Jobs on the real control plane: our controllers and the kubelets are processes.

Extender and kube-scheduler are a rig's; kube-controller-manager collects what has lost its owner.
The controllers run with the rights of their service account in `manifests/install.yaml`.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench import usage
from tests.clusters import nodes, workloads
from tests.clusters.client import Object, Objects
from tests.clusters.controlplane import ControlPlane
from tests.clusters.ports import free_port
from tests.clusters.processes import Process
from tests.clusters.pumice import COMMAND
from tests.clusters.resources import (
    CLAIMS,
    COMMANDS,
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    QUEUES,
    Resource,
)
from tests.clusters.rig import Rig, account

_KUBELETS = Path(__file__).with_name("kubelets.py")
_WAIT_S = 60.0
_numbers = itertools.count(1)


class Stand:
    """A namespace with nodes, kubelets, and controllers that can be killed."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.api = rig.api
        self.name = f"jobs-{next(_numbers)}"
        self._controllers: Process | None = None
        self.cpu_s, self.rss_mib = 0.0, 0.0
        """What the controllers that were killed had used."""
        self._nodes = nodes.create(self.api, 2, prefix=self.name)

    def replace_nodes(self) -> None:
        """Take the nodes away and put others in their place."""
        gone = self._nodes
        self._nodes = nodes.create(self.api, 2, prefix=f"{self.name}-new")
        nodes.delete(self.api, gone)

    def clear(self) -> None:
        """Take everything away."""
        self.kill_controllers()
        self.api.delete_all(POD_GROUPS, namespace=self.name)
        self.api.delete_all(PODS, namespace=self.name)
        self.api.delete(NAMESPACES, self.name)
        nodes.delete(self.api, self._nodes)

    def start_controllers(self, *flags: str) -> None:
        """Start a process that runs the controllers."""
        self._controllers = controllers(self.rig, *flags)

    def kill_controllers(self) -> None:
        """End it as by kill -9."""
        if self._controllers is not None:
            used = usage.of(self._controllers.pid)
            self.cpu_s, self.rss_mib = self.cpu_s + used.cpu_s, max(self.rss_mib, used.rss_mib)
            self._controllers.kill()
            self._controllers = None

    def submit(self, name: str, spec: Mapping[str, Any]) -> Object:
        """Create a job; returns it as stored."""
        return self.api.create(workloads.job(name, spec), resource=JOBS, namespace=self.name)

    def create(self, resource: Resource, name: str, spec: Mapping[str, Any]) -> Object:
        """Create an object of any kind; returns it as stored."""
        body = workloads.item(resource, name, spec=spec)
        return self.api.create(body, resource=resource, namespace=self.name)

    def command(self, job: str, action: str) -> None:
        """Create a Command as the command line does."""
        command = workloads.command(self.job(job), action)
        self.api.create(command, resource=COMMANDS, namespace=self.name)

    def job(self, name: str) -> Object:
        return self.api.get(JOBS, name, namespace=self.name)

    def delete_whole(self, name: str) -> None:
        """Delete a job in the foreground: it goes when all it made is gone."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground",
        }
        self.api.request("DELETE", JOBS.path(name, namespace=self.name), body=options)

    def told(self, name: str) -> list[str]:
        """What events say of the object of that name."""
        return [event["message"] for event in self.api.events_of(name, namespace=self.name)]

    def all(self, resource: Resource) -> Objects:
        return self.api.list(resource, namespace=self.name)

    def wait_phase(self, phase: str, *names: str, timeout_s: float = _WAIT_S) -> None:
        """Wait until all jobs, or those of these names, are in the phase."""

        def reached(jobs: Objects) -> bool:
            chosen = [j for j in jobs if not names or j["metadata"]["name"] in names]
            return bool(chosen) and all(phase_of(job) == phase for job in chosen)

        self._until(JOBS, reached, what=phase, timeout_s=timeout_s)

    def wait_none(self, *resources: Resource) -> None:
        """Wait until there are none of these."""
        for resource in resources:
            self._until(resource, lambda items: not items, what="gone")

    def let_go_claims(self) -> None:
        """Wait until all claims are deleted, and let them go, as their protection would."""

        def going(items: Objects) -> bool:
            return all(item["metadata"].get("deletionTimestamp") for item in items)

        self._until(CLAIMS, going, what="deleted")
        for claim in self.all(CLAIMS):
            name = claim["metadata"]["name"]
            free = {"metadata": {"finalizers": None}}
            self.api.patch(CLAIMS, name, free, namespace=self.name)

    def wait_pods(self, condition: Callable[[Objects], bool], *, what: str) -> None:
        """Wait until the pods are so."""
        self._until(PODS, condition, what=what)

    def _until(
        self,
        resource: Resource,
        condition: Callable[[Objects], bool],
        *,
        what: str,
        timeout_s: float = _WAIT_S,
    ) -> None:
        self.api.until(resource, condition, namespace=self.name, timeout_s=timeout_s, what=what)


@contextlib.contextmanager
def opened(rig: Rig) -> Iterator[Stand]:
    """A stand, taken away afterwards with all that is on it."""
    stand = Stand(rig)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stand.name}}
    rig.api.create(space, resource=NAMESPACES)
    rig.api.until(QUEUES, _have_default, timeout_s=_WAIT_S, what="the default queue")
    try:
        with kubelets(rig.controlplane, stand.name):
            stand.start_controllers()
            yield stand
            rig.api.delete_all(JOBS, namespace=stand.name)
            stand.wait_none(JOBS, POD_GROUPS, PODS)
    finally:
        stand.clear()


def phase_of(job: Object) -> str:
    """Its phase."""
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


def _have_default(queues: Objects) -> bool:
    """Whether the extender has made the queue of those that name none."""
    return any(queue["metadata"]["name"] == "default" for queue in queues)


def controllers(rig: Rig, *flags: str) -> Process:
    """Start a process that runs the controllers."""
    plane = rig.controlplane
    argv: list[str | Path] = [
        COMMAND,
        "controllers",
        f"--kubeconfig={account(plane, 'pumice-controllers')}",
        "--leader-elect=false",
        f"--extender-url={rig.extender.url}",
        f"--healthz-address=127.0.0.1:{free_port()}",
        *flags,
    ]
    return Process(argv, log=plane.log("controllers"), name="controllers")


def kubelets(plane: ControlPlane, prefix: str) -> Process:
    """Start a process that plays the kubelets of all nodes whose name begins so."""
    argv: list[str | Path] = [sys.executable, _KUBELETS, plane.kubeconfig, prefix]
    return Process(argv, log=plane.log("kubelets"), name="kubelets")
