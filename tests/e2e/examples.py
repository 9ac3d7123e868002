"""The files of `examples/`, and the place where all of them are applied beside each other.

What a simulated kubelet cannot tell is given to it here and not in the files: which programs end,
and that none takes long to stop.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.sandbox.commands import RUN_SECONDS
from tests.clusters import installation, nodes
from tests.clusters.client import ApiClient, ApiError, Object, Objects
from tests.clusters.processes import wait_until
from tests.clusters.resources import CLAIMS, PODS, QUEUES, Resource
from tests.clusters.rig import Rig
from tests.controllers.job import stand
from tests.e2e.admission import CONFIGURATIONS, deletion, dry_run, refusal, start, with_key_pair
from tests.webhooks.objects import job

ROOT = installation.ROOT / "examples"
REFUSED = "refused"
LABELS = {"pumice.example/disk": "fast"}
"""What the node selectors of examples ask for."""
RUN_S = 5
_WAIT_S = 60.0
_FIRST = frozenset(
    {
        "ConfigMap",
        "JobTemplate",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "PodGroup",
        "PriorityClass",
        "Queue",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    }
)
"""Kinds that others refer to."""


def files() -> list[str]:
    """All files with objects, by their path below `examples/`."""
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.y*ml"))


def has_configuration(file: str) -> bool:
    """Whether a configuration lies beside it, without which it does not show what it is for."""
    return any((ROOT / file).parent.glob("*.conf"))


def documents(file: str) -> Objects:
    """The objects in a file."""
    return installation.documents(ROOT / file)


@dataclass(slots=True, eq=False)
class Examples:
    """A namespace in which the examples run."""

    api: ApiClient
    namespace: str
    refusals: dict[str, list[str]] = field(default_factory=dict)
    """By file: what was said against it."""
    global_objects: list[tuple[Resource, str]] = field(default_factory=list)
    own_objects: list[tuple[Resource, str]] = field(default_factory=list)

    def apply(self, chosen: Iterable[str], ends: Mapping[str, str]) -> None:
        """Create what is in the files, first what others refer to."""
        pairs = [(file, item) for file in chosen for item in documents(file)]
        for is_first in (True, False):
            for file, item in pairs:
                if (item["kind"] in _FIRST) is is_first:
                    self._create(file, item, ends)
            self._wait_queues_open()

    def _create(self, file: str, item: Object, ends: Mapping[str, str]) -> None:
        resource = self.api.resource_of(item)
        if resource.namespaced:
            item["metadata"]["namespace"] = self.namespace
        try:
            dry_run(self.api, item)
            self.api.create(prepared(item, ends), resource=resource, namespace=self.namespace)
        except ApiError as error:
            name = f"{item['kind']} {item['metadata']['name']}"
            self.refusals.setdefault(file, []).append(f"{name}: {error}")
            return
        made = self.own_objects if resource.namespaced else self.global_objects
        made.append((resource, item["metadata"]["name"]))

    def _wait_queues_open(self) -> None:
        names = {name for resource, name in self.global_objects if resource.kind == "Queue"}

        def are_open(queues: Objects) -> bool:
            states = {
                each["metadata"]["name"]: each.get("status", {}).get("state") for each in queues
            }
            return all(states.get(name) == "Open" for name in names)

        self.api.until(QUEUES, are_open, timeout_s=_WAIT_S, what="open")

    def delete_own(self) -> None:
        """Delete what is in the namespace, those who make pods before the pods."""
        for resource, name in reversed(self.own_objects):
            self.api.delete(resource, name, namespace=self.namespace)

    def delete_global(self) -> None:
        """Delete what is in no namespace; a queue goes once the policies know it has no child."""
        for resource, name in reversed(self.global_objects):
            if resource == QUEUES:
                self._wait_deletable(name)
            self.api.delete(resource, name)

    def _wait_deletable(self, queue: str) -> None:
        wait_until(
            lambda: not deletion(self.api, queue),
            timeout_s=_WAIT_S,
            what=f"queue {queue} may be deleted",
        )


BATCH = {"kubernetes.io/batch-cpu": "8000", "kubernetes.io/batch-memory": str(16 << 30)}
SHARED_GPUS = {
    "volcano.sh/vgpu-number": "20",
    "volcano.sh/vgpu-memory": "163840",
    "volcano.sh/vgpu-cores": "200",
}
"""What a node with two GPUs offers whose device plugin lets pods share them."""


CHIPS = {"huawei.com/npu-core": "16"}


@contextlib.contextmanager
def opened(rig: Rig) -> Iterator[Examples]:
    """A place with room for all examples, with webhooks and controllers at work."""
    plane = rig.controlplane
    with contextlib.ExitStack() as stack:
        flags = with_key_pair(plane)
        stack.callback(_unregister, rig.api)
        trust = plane.authority.certificate
        stack.enter_context(start(plane, *flags, trust=trust, name="webhooks-examples"))
        wait_until(
            lambda: "validatejob.volcano.sh" in refusal(rig.api, job(queue="nowhere")),
            timeout_s=20,
            what="the API server asks the webhooks",
        )
        found = Examples(rig.api, "")
        stack.callback(found.delete_global)
        with stand.opened(rig) as place:
            found.namespace = place.name
            large = nodes.create(
                rig.api,
                2,
                prefix=f"{place.name}-large",
                cpu="64",
                memory="256Gi",
                extra={**SHARED_GPUS, **CHIPS, **BATCH},
                labels=LABELS,
            )
            stack.callback(nodes.delete, rig.api, large)
            yield found
            found.delete_own()


def prepared(item: Object, ends: Mapping[str, str]) -> Object:
    """The object as it is created: one task of the jobs in `ends` ends, and pods stop at once.

    A claim is bound, as there is no controller that binds it to the volume that it names.
    """
    changed = copy.deepcopy(item)
    if item["kind"] == CLAIMS.kind:
        changed["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    for task, template in templates(changed):
        template["spec"]["terminationGracePeriodSeconds"] = 1
        if ends.get(item["metadata"]["name"]) == task:
            template.setdefault("metadata", {})["annotations"] = {RUN_SECONDS: str(RUN_S)}
    return changed


def templates(item: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pod templates of an object, each with the name of its task; of a pod, itself."""
    spec: dict[str, Any] = item.get("spec", {})
    if item["kind"] == PODS.kind:
        yield "", item
    elif "template" in spec:
        yield "", spec["template"]
    else:
        within = spec.get("jobTemplate", item)["spec"] if "spec" in item else {}
        for task in within.get("tasks", ()):
            yield task["name"], task["template"]


def _unregister(api: ApiClient) -> None:
    for resource in CONFIGURATIONS:
        api.delete(resource, "pumice-webhooks")


def is_refused(file: str) -> bool:
    """Whether it is there to show a refusal."""
    return Path(file).parts[0] == REFUSED
