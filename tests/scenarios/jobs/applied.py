"""Examples as a user applies them: their configuration in force, their jobs run by our controllers.

On the sandbox controllers and kubelets are there; on the real control plane they are processes.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object, Objects
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.resources import JOBS, NODES, POD_GROUPS, PODS, Resource
from tests.clusters.rig import Rig
from tests.controllers.job import stand

EXAMPLES = ROOT / "examples"
_WAIT_S = 60.0


class Applied:
    """A place in which examples are applied."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.api = place.api
        self._global: list[tuple[Resource, str]] = []

    def apply(self, file: str) -> None:
        """Create what is in a file of `examples/`, as it stands."""
        for item in documents(EXAMPLES / file):
            resource = self.api.resource_of(item)
            self.api.create(item, resource=resource, namespace=self.place.name)
            if not resource.namespaced:
                self._global.append((resource, item["metadata"]["name"]))

    def delete(self, job: str) -> None:
        """Delete a job as a user does."""
        self.api.delete(JOBS, job, namespace=self.place.name)

    def tell_load(self, cpu: float, *nodes: str) -> None:
        """Let nodes say that their cpus are that busy, and their memory hardly is."""
        now = datetime.fromtimestamp(time.time(), UTC)  # noqa: TID251 - the node's own clock
        load = {"cpu": cpu, "memory": 10, "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "window": 0}
        for node in nodes:
            told = {"annotations": {"pumice.sh/node-load": json.dumps(load)}}
            self.api.patch(NODES, node, {"metadata": told})

    def pods(self, job: str) -> Objects:
        """The pods of a job."""
        selector = f"volcano.sh/job-name={job}"
        return self.api.list(PODS, namespace=self.place.name, label_selector=selector)

    def running(self, job: str) -> Objects:
        """Its pods that run, and are not about to end."""
        return [pod for pod in self.pods(job) if _runs(pod)]

    def wait_running(self, job: str, count: int) -> list[str]:
        """Wait until so many pods of the job run; returns their nodes, sorted."""
        pods = self.api.until(
            PODS,
            lambda pods: sum(map(_runs, pods)) == count,
            namespace=self.place.name,
            label_selector=f"volcano.sh/job-name={job}",
            timeout_s=_WAIT_S,
            what=f"{count} of {job} run",
        )
        return sorted(workloads.node_of(pod) for pod in pods if _runs(pod))

    def group(self, job: str) -> str:
        """The name of its PodGroup, once it is there."""

        groups = self.api.until(
            POD_GROUPS,
            lambda groups: bool(_owned_by(job, groups)),
            namespace=self.place.name,
            timeout_s=_WAIT_S,
            what=f"a PodGroup of {job}",
        )
        (name,) = _owned_by(job, groups)
        return name

    def phase(self, job: str) -> str:
        """The phase of its PodGroup; empty while it has none."""
        return str(self.place.group(self.group(job)).get("status", {}).get("phase", ""))

    def wait_waits(self, job: str, says: str) -> None:
        """Wait until the story of the job says why it waits."""
        self.place.wait_summary(self.group(job), says)

    def clear(self) -> None:
        """Take the jobs away while the controllers are there, and what is in no namespace."""
        self.api.delete_all(JOBS, namespace=self.place.name)
        for resource in (JOBS, PODS, POD_GROUPS):
            self.api.until(
                resource,
                lambda items: not items,
                namespace=self.place.name,
                timeout_s=_WAIT_S,
                what="gone",
            )
        for resource, name in self._global:
            self.api.delete(resource, name)


def _runs(pod: Object) -> bool:
    is_running = pod.get("status", {}).get("phase") == "Running"
    return is_running and not workloads.is_leaving(pod)


def _owned_by(job: str, groups: Objects) -> list[str]:
    """Names of the groups that this job owns."""
    return [
        group["metadata"]["name"]
        for group in groups
        for owner in group["metadata"].get("ownerReferences", ())
        if (owner["kind"], owner["name"]) == (JOBS.kind, job)
    ]


@pytest.fixture
def applied(place: Place) -> Iterator[Applied]:
    """A place with kubelets and controllers; its nodes are the test's."""
    with contextlib.ExitStack() as stack:
        if isinstance(place.cluster, Rig):
            plane = place.cluster.controlplane
            stack.enter_context(stand.kubelets(plane, f"{place.name}-"))
            stack.enter_context(stand.controllers(place.cluster))
        made = Applied(place)
        yield made
        made.clear()
