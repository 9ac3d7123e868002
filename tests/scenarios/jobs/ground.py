"""Where jobs are played: a namespace on the sandbox or on the real control plane.

On both there are nodes with kubelets that are played, our extender with its scheduler, and our
controllers; on the real one kube-controller-manager runs beside them. What a user or a kubelet does
to a job or a pod is a method here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from app.sandbox.clock import WallClock
from app.wire import times
from tests.clusters import nodes, workloads
from tests.clusters.client import ApiClient, Object, Objects
from tests.clusters.embedded import Sandboxes
from tests.clusters.place import Place
from tests.clusters.resources import COMMANDS, JOBS, NODES, POD_GROUPS, PODS, QUEUES, Resource
from tests.clusters.rig import Stage
from tests.controllers.job import stand

_CLOCK = WallClock()
_NODES = 4
_WAIT_S = 100.0


@dataclass(frozen=True, slots=True)
class Ground:
    """A namespace of its own, with a queue in which nothing fits."""

    api: ApiClient
    name: str

    @property
    def full(self) -> str:
        """The queue without room."""
        return f"{self.name}-full"

    # What a user does ---------------------------------------------------------------------------

    def submit(self, name: str, spec: Mapping[str, Any]) -> None:
        """Create a job."""
        self.api.create(workloads.job(name, spec), resource=JOBS, namespace=self.name)

    def command(self, job: Object, action: str) -> str:
        """Create a Command as the command line does; returns its UID."""
        command = workloads.command(job, action)
        made = self.api.create(command, resource=COMMANDS, namespace=self.name)
        uid: str = made["metadata"]["uid"]
        return uid

    def edit(self, job: str, spec: Mapping[str, Any]) -> None:
        """Merge into the spec of a job."""
        self.api.patch(JOBS, job, {"spec": spec}, namespace=self.name)

    def evict(self, pod: str) -> None:
        """Delete a pod as anybody may."""
        self.api.delete(PODS, pod, namespace=self.name)

    def bury(self, pod: str) -> None:
        """Delete a pod by force, without waiting for its containers."""
        self.api.delete(PODS, pod, namespace=self.name, grace_s=0)

    def bury_first(self, job: str) -> None:
        """Delete the first pod of every task by force, all at once, as of a node that is lost."""
        selector = f"volcano.sh/job-name={job},volcano.sh/task-index=0"
        self.api.delete_all(PODS, namespace=self.name, label_selector=selector)

    def add_seat(self, name: str) -> None:
        """A node beside the common ones, for pods that ask for it (`on_seat`)."""
        seat = {_SEAT: name}
        nodes.create(self.api, 1, prefix=self._seat(name), labels=seat, taints=(_TAKEN,))

    def close_seat(self, name: str) -> None:
        """Let no more pods in."""
        self.api.patch(NODES, f"{self._seat(name)}-0", {"spec": {"unschedulable": True}})

    def _seat(self, name: str) -> str:
        return f"{self.name}-seat-{name}"

    # What a kubelet does ------------------------------------------------------------------------

    def ended(self, pod: str, code: int, *, after_s: int = 0) -> None:
        """Report that the container of a pod has ended, just now or a little later."""
        at = times.seconds(_CLOCK.now() + after_s)
        state = {"terminated": {"exitCode": code, "finishedAt": at, "startedAt": at}}
        self._report(pod, "Failed" if code else "Succeeded", state, restarts=0)

    def restarted(self, pod: str, times: int) -> None:
        """Report that the container of a pod runs again."""
        self._report(pod, "Running", {"running": {}}, restarts=times)

    def _report(self, pod: str, phase: str, state: Object, *, restarts: int) -> None:
        container = {
            "name": "c",
            "image": "busybox",
            "imageID": "",
            "ready": phase == "Running",
            "restartCount": restarts,
            "state": state,
        }
        status = {"phase": phase, "containerStatuses": [container]}
        self.api.patch(PODS, pod, {"status": status}, namespace=self.name, subresource="status")

    # What is there ------------------------------------------------------------------------------

    def wait(self, resource: Resource, condition: Callable[[Objects], bool], *, what: str) -> None:
        """Wait until the objects of that kind are so."""
        self.api.until(resource, condition, namespace=self.name, timeout_s=_WAIT_S, what=what)

    def wait_none(self, *resources: Resource) -> None:
        """Wait until there are none of these."""
        for resource in resources:
            self.wait(resource, lambda items: not items, what="gone")


def names_of(items: Objects) -> set[str]:
    """The names of objects."""
    return {item["metadata"]["name"] for item in items}


_SEAT = "seat"
_TAKEN = {"key": _SEAT, "effect": "NoSchedule"}


def on_seat(name: str) -> Object:
    """What keeps a pod on the node of that name."""
    return {
        "nodeSelector": {_SEAT: name},
        "tolerations": [{"key": _SEAT, "operator": "Exists"}],
    }


@contextlib.contextmanager
def on_the_sandbox(sandboxes: Sandboxes) -> Iterator[Ground]:
    """A namespace on the sandbox that the session shares."""
    with Place(sandboxes.of("")) as place:
        place.add_nodes(_NODES, cpu="64", memory="256Gi", pods=250)
        with _opened(Ground(place.api, place.name)) as made:
            yield made


@contextlib.contextmanager
def on_the_real_one(stage: Stage) -> Iterator[Ground]:
    """A namespace on the real control plane, with our controllers and kubelets as processes."""
    with stand.opened(stage.rig()) as made:
        prefix = f"{made.name}-more"
        more = nodes.create(made.api, _NODES, prefix=prefix, cpu="64", memory="256Gi", pods=250)
        try:
            with _opened(Ground(made.api, made.name)) as ground:
                yield ground
        finally:
            nodes.delete(made.api, more)


@contextlib.contextmanager
def _opened(ground: Ground) -> Iterator[Ground]:
    """The ground with its queue; afterwards all jobs go with all they made."""
    ground.api.create(workloads.queue(ground.full, capability={"cpu": "1m"}), resource=QUEUES)
    try:
        yield ground
    finally:
        ground.api.delete_all(JOBS, namespace=ground.name)
        ground.wait_none(JOBS)
        ground.api.delete_all(PODS, namespace=ground.name)
        ground.wait_none(PODS, POD_GROUPS)
        ground.api.delete(QUEUES, ground.full)
        nodes.delete(ground.api, names_of(ground.api.list(NODES, label_selector=_SEAT)))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sandbox", marks=pytest.mark.sandbox),
        pytest.param("real", marks=pytest.mark.real),
    ],
)
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    """A ground of the module's own on either cluster."""
    if request.param == "sandbox":
        opened = on_the_sandbox(request.getfixturevalue("sandboxes"))
    else:
        opened = on_the_real_one(request.getfixturevalue("stage"))
    with opened as made:
        yield made
