"""A place of a test's own: a namespace, nodes and queues, with what is asked of them in words.

Everything made through it is taken away at the end, and then the extender must hold nothing back:
no promise, no drift between its ledger and the API server.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from tests.clusters import nodes, workloads
from tests.clusters.client import ApiError, Object, Objects
from tests.clusters.cluster import Scheduling
from tests.clusters.nodes import in_parallel
from tests.clusters.processes import wait_until
from tests.clusters.resources import (
    EVENTS,
    HYPER_NODES,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
)

_numbers = itertools.count(1)
_WAIT_S = 60.0
_NO_GROUP = "PodGroupMissing"
"""Why a group waits whose pods are known, in `/explain`."""


class Place:
    """A namespace on a cluster; `with` makes it and clears it away."""

    def __init__(self, cluster: Scheduling) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.name = f"place-{next(_numbers)}"
        self._nodes: list[str] = []
        self._hyper_nodes: list[str] = []
        self._queues: list[str] = []
        self._priority_classes: list[str] = []

    def __enter__(self) -> Self:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        self.api.create(space, resource=NAMESPACES)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()
        if error is None and self.cluster.extender.status("/readyz") == 200:
            self.wait_nothing_held()

    def clear(self) -> None:
        """Take everything away and wait until it is gone."""
        # Groups first, as in `delete_gang`.
        self.api.delete_all(POD_GROUPS, namespace=self.name)
        self.api.delete_all(PODS, namespace=self.name)
        self.wait_gone()
        self.api.delete(NAMESPACES, self.name)
        nodes.delete(self.api, self._nodes)
        for name in self._hyper_nodes:
            self.api.delete(HYPER_NODES, name)
        for name in reversed(self._queues):  # children before their parents
            what = f"queue {name} deleted"
            wait_until(partial(self._delete_queue, name), timeout_s=_WAIT_S, what=what)
        for name in self._priority_classes:
            self.api.delete(PRIORITY_CLASSES, name)

    def _delete_queue(self, name: str) -> bool:
        """False while the API server's policy is late to see that its children are gone."""
        try:
            self.api.delete(QUEUES, name)
        except ApiError as error:
            if error.code == 403 and "because it has child queues" in str(error):
                return False
            raise
        return True

    # What is made -------------------------------------------------------------------------------

    def add_nodes(self, count: int, **fields: Any) -> list[str]:
        """Nodes named after the place, so that no veto of another test meets them."""
        prefix = f"{self.name}-{len(self._nodes)}"
        made = nodes.create(self.api, count, prefix=prefix, **fields)
        self._nodes += made
        self._wait_for_nodes()
        return made

    def _wait_for_nodes(self) -> None:
        wait_until(
            lambda: set(self._nodes) <= set(self.cluster.extender.get("/debug/snapshot")["nodes"]),
            timeout_s=_WAIT_S,
            what="the extender knows the nodes",
        )

    def drop_node(self, name: str) -> None:
        """Delete a Node object that was added here."""
        nodes.delete(self.api, [name])
        self._nodes.remove(name)
        wait_until(
            lambda: name not in self.cluster.extender.get("/debug/snapshot")["nodes"],
            timeout_s=_WAIT_S,
            what="the extender knows that the node is gone",
        )

    def add_hyper_node(self, name: str, tier: int, *members: str, tier_name: str = "") -> str:
        """A HyperNode of nodes or of HyperNodes; its name gets the place's in front."""
        full = f"{self.name}-{name}"
        kind = "HyperNode" if set(members) <= set(self._hyper_nodes) else "Node"
        self.api.create(
            workloads.hyper_node(full, tier, kind, members, tier_name=tier_name),
            resource=HYPER_NODES,
        )
        self._hyper_nodes.append(full)
        wait_until(
            lambda: full in self.cluster.extender.get("/debug/snapshot")["hyperNodes"],
            timeout_s=_WAIT_S,
            what="the extender knows the HyperNode",
        )
        return full

    def drop_hyper_node(self, full: str) -> None:
        """Delete a HyperNode that was added here."""
        self.api.delete(HYPER_NODES, full)
        self._hyper_nodes.remove(full)
        wait_until(
            lambda: full not in self.cluster.extender.get("/debug/snapshot")["hyperNodes"],
            timeout_s=_WAIT_S,
            what="the extender knows that the HyperNode is gone",
        )

    def add_queue(
        self, name: str, *, annotations: Mapping[str, str] | None = None, **spec: Any
    ) -> str:
        """A queue; queues are global, so its name gets the place's in front."""
        full = f"{self.name}-{name}"
        queue = workloads.queue(full, **spec)
        queue["metadata"]["annotations"] = dict(annotations or {})
        self.api.create(queue, resource=QUEUES)
        self._queues.append(full)
        wait_until(
            lambda: full in self.cluster.extender.get("/debug/queues"),
            timeout_s=_WAIT_S,
            what="the extender knows the queue",
        )
        return full

    def add_priority_class(self, name: str, value: int, *, preempts: bool = True) -> str:
        """A PriorityClass; these are global, so its name gets the place's behind."""
        full = f"{name}-{self.name}"
        body = workloads.priority_class(full, value, preempts=preempts)
        self.api.create(body, resource=PRIORITY_CLASSES)
        self._priority_classes.append(full)
        return full

    def set_state(self, full: str, state: str) -> None:
        """Set the state of a queue, as its controller would, which may still say it is open."""

        def is_known() -> bool:
            if self.api.get(QUEUES, full).get("status", {}).get("state") != state:
                self.api.patch(QUEUES, full, {"status": {"state": state}}, subresource="status")
            known: bool = self.cluster.extender.get("/debug/queues")[full]["state"] == state
            return known

        what = f"the extender knows that {full} is {state}"
        wait_until(is_known, timeout_s=_WAIT_S, what=what)

    def add_group(self, name: str, minimum: int, **spec: Any) -> None:
        """A PodGroup."""
        group = workloads.pod_group(name, min_member=minimum, **spec)
        self.api.create(group, resource=POD_GROUPS, namespace=self.name)

    def submit(self, pods: Iterable[Object]) -> None:
        """Create pods, several at a time."""
        in_parallel(self.submit_one, list(pods))

    def submit_one(self, pod: Object) -> None:
        self.api.create(pod, resource=PODS, namespace=self.name)

    def submit_ungated(self, group: str, count: int, **fields: Any) -> None:
        """Create pods that the policy lets through to the scheduler as they are."""
        pods = workloads.members(group, count, **fields)
        for pod in pods:
            pod["metadata"]["annotations"] |= workloads.UNGATED
        self.submit(pods)

    def add_gang(
        self,
        name: str,
        size: int,
        *,
        minimum: int | None = None,
        rank: str | None = None,
        spec: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """A PodGroup with its pods; `spec` is the group's, `fields` are the pods'.

        `rank` is the priority class of all.
        """
        of_all = {} if rank is None else {"priorityClassName": rank}
        fields |= of_all
        self.add_group(name, size if minimum is None else minimum, **of_all, **(spec or {}))
        self.submit(workloads.members(name, size, **fields))

    def delete_pods(self, group: str) -> None:
        self.api.delete_all(PODS, namespace=self.name, label_selector=f"group={group}")

    def delete_gang(self, group: str) -> None:
        """Take the group and its pods away; without the group first, it would be given slots."""
        self.api.delete(POD_GROUPS, group, namespace=self.name)
        self.delete_pods(group)

    def delete_pod(self, name: str) -> None:
        self.api.delete(PODS, name, namespace=self.name, grace_s=0)

    # What is there ------------------------------------------------------------------------------

    def pods(self, group: str | None = None) -> Objects:
        selector = "" if group is None else f"group={group}"
        return self.api.list(PODS, namespace=self.name, label_selector=selector)

    def pod(self, name: str) -> Object:
        return self.api.get(PODS, name, namespace=self.name)

    def bound(self, group: str | None = None) -> Objects:
        return workloads.bound(self.pods(group))

    def group(self, name: str) -> Object:
        return self.api.get(POD_GROUPS, name, namespace=self.name)

    def condition(self, group: str, kind: str) -> dict[str, Any] | None:
        return condition(self.group(group), kind)

    def events(self, name: str) -> Objects:
        """Events about the object of that name, oldest first."""
        return self.api.events_of(name, namespace=self.name)

    def explain(self, name: str) -> Any:
        """The story of a group or of a pod's group, once the extender knows of it."""
        path = f"/explain/{self.name}/{name}"
        wait_until(
            lambda: self.cluster.extender.status(path) == 200,
            timeout_s=_WAIT_S,
            what=f"{name} is known",
        )
        return self.cluster.extender.get(path)

    def wait_summary(self, name: str, says: str) -> str:
        """Wait until `/explain` says that of a group or a pod; returns the whole sentence."""
        seen = [""]

        def is_said() -> bool:
            seen[0] = self.explain(name)["summary"]
            return says in seen[0]

        with contextlib.suppress(AssertionError):
            wait_until(is_said, timeout_s=_WAIT_S, what=f"{name}: {says}")
        assert says in seen[0], seen[0]
        return seen[0]

    def gang_state(self, group: str) -> Mapping[str, Any]:
        """What `/debug/gangs` says of a group: empty when it holds nothing."""
        found: Mapping[str, Any] = self.cluster.extender.get("/debug/gangs").get(
            f"{self.name}/{group}", {}
        )
        return found

    # What is waited for -------------------------------------------------------------------------

    def wait_bound(self, group: str, count: int, *, timeout_s: float = _WAIT_S) -> Objects:
        """Wait until that many pods of the group are bound; returns them."""
        pods = self.api.until(
            PODS,
            lambda pods: len(workloads.bound(pods)) >= count,
            namespace=self.name,
            label_selector=f"group={group}",
            timeout_s=timeout_s,
            what=f"{count} of {group} bound",
        )
        return workloads.bound(pods)

    def wait_known(self, *groups: str, pods: int) -> None:
        """Wait until the extender knows the groups and that many pods of them together."""

        def are_known() -> bool:
            stories = [self.explain(group) for group in groups]
            lacking = any((story["reason"] or {}).get("cause") == _NO_GROUP for story in stories)
            return not lacking and sum(len(story["members"]) for story in stories) == pods

        what = f"{', '.join(groups)} and {pods} pods of them are known"
        wait_until(are_known, timeout_s=_WAIT_S, what=what)

    def wait_seen(self, pods: Iterable[Object]) -> None:
        """Wait until the extender knows these pods, whose PodGroup may not be there yet."""
        for pod in pods:
            self.explain(pod["metadata"]["name"])

    def wait_gone(self) -> None:
        """Wait until no pod is left."""
        self.api.until(PODS, lambda left: not left, namespace=self.name, what="all pods gone")

    def wait_nominated(self, name: str) -> str:
        """Wait until kube-scheduler has evicted others for the pod; returns from which node."""

        def is_nominated(pod: Object) -> bool:
            return bool(pod.get("status", {}).get("nominatedNodeName"))

        pod = self.api.until_one(PODS, name, is_nominated, namespace=self.name, timeout_s=_WAIT_S)
        node: str = pod["status"]["nominatedNodeName"]
        return node

    def wait_leaving(self, name: str) -> None:
        """Wait until the pod is being deleted."""
        self.api.until_one(PODS, name, workloads.is_leaving, namespace=self.name, timeout_s=_WAIT_S)

    def wait_pod_bound(self, name: str, *, timeout_s: float = _WAIT_S) -> str:
        """Wait until the pod is bound; returns its node."""
        pod = self.api.until_one(
            PODS,
            name,
            lambda pod: bool(workloads.node_of(pod)),
            namespace=self.name,
            timeout_s=timeout_s,
        )
        return workloads.node_of(pod)

    def wait_group(
        self, name: str, holds: Callable[[Object], bool], *, timeout_s: float = _WAIT_S
    ) -> Object:
        """Wait until something holds for the PodGroup."""
        return self.api.until_one(POD_GROUPS, name, holds, namespace=self.name, timeout_s=timeout_s)

    def wait_phase(self, name: str, phase: str, *, timeout_s: float = _WAIT_S) -> Object:
        return self.wait_group(
            name, lambda group: group.get("status", {}).get("phase") == phase, timeout_s=timeout_s
        )

    def wait_condition(
        self, name: str, kind: str, status: str = "True", *, reason: str = "", says: str = ""
    ) -> dict[str, Any]:
        """Wait until the PodGroup has that condition, with that reason and text; returns it."""

        def has(group: Object) -> bool:
            found = condition(group, kind)
            return (
                found is not None
                and found["status"] == status
                and (not reason or found.get("reason") == reason)
                and says in found.get("message", "")
            )

        found = condition(self.wait_group(name, has), kind)
        assert found is not None
        return found

    def wait_event(self, name: str, reason: str, *, says: str = "") -> Object:
        """Wait until the object of that name has such an event; returns the newest."""

        def of_that(events: Objects) -> Objects:
            return [e for e in events if e["reason"] == reason and says in e.get("message", "")]

        events = self.api.until(
            EVENTS,
            lambda events: bool(of_that(events)),
            namespace=self.name,
            field_selector=f"involvedObject.name={name}",
            timeout_s=_WAIT_S,
            what=f"{reason} event of {name}",
        )
        return max(of_that(events), key=lambda event: int(event["metadata"]["resourceVersion"]))

    def wait_pod_condition(self, name: str, kind: str, status: str, *, says: str = "") -> None:
        """Wait until the pod has that condition, with that text."""

        def has(pod: Object) -> bool:
            found = condition(pod, kind)
            return (
                found is not None and found["status"] == status and says in found.get("message", "")
            )

        self.api.until_one(PODS, name, has, namespace=self.name, timeout_s=_WAIT_S)

    def wait_node(self, name: str, *, takes_pods: bool) -> None:
        """Wait until the extender counts the node in, or out."""
        wait_until(
            lambda: (
                self.cluster.extender.get("/debug/snapshot")["nodes"][name]["takesPods"]
                is takes_pods
            ),
            timeout_s=_WAIT_S,
            what=f"{name} takes pods: {takes_pods}",
        )

    def wait_held(self, group: str, count: int, *, timeout_s: float = _WAIT_S) -> None:
        """Wait until the barrier holds that many Bind calls of the group, or more."""
        wait_until(
            lambda: self.gang_state(group).get("heldBinds", 0) >= count,
            timeout_s=timeout_s,
            what=f"{count} Binds of {group} held",
        )

    def wait_nothing_held(self, *, timeout_s: float = _WAIT_S) -> None:
        """Wait until the extender keeps no room back and counts what the API server has."""
        seen: dict[str, Any] = {}

        def is_even() -> bool:
            seen.update(self.cluster.extender.get("/debug/ledger"))
            return not seen["promises"] and not seen["drifts"]

        # Not asked again once it holds: a watch that is late may still say what is over by now.
        try:
            wait_until(is_even, timeout_s=timeout_s, what="nothing held")
        except AssertionError as error:
            raise AssertionError(seen, self.cluster.extender.get("/debug/gangs")) from error

    def set_pod_phase(self, name: str, phase: str) -> None:
        """Let a pod go on as its kubelet would, where there is none."""
        self.api.patch(
            PODS, name, {"status": {"phase": phase}}, namespace=self.name, subresource="status"
        )

    def change_node(self, name: str, change: Mapping[str, Any]) -> None:
        """Merge into a node."""
        self.api.patch(NODES, name, change)


def condition(item: Object, kind: str) -> dict[str, Any] | None:
    """The condition of that type, if the object has it."""
    conditions: list[dict[str, Any]] = item.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), None)
