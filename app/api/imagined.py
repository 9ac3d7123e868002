"""Manifests as groups that could come: what admission and the controllers would make of them.

The same functions are used that admission and the controllers use. Objects get a UID of their own,
and ``now`` as their time of creation.
"""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar
from uuid import NAMESPACE_OID, uuid5

from app.cache.cluster import ClusterCache
from app.controllers.job import group as job_group
from app.controllers.job import pods as job_pods
from app.controllers.job.sync import Replica
from app.controllers.job.view import Job
from app.controllers.podgroup.group import GROUP, group_for, is_ours
from app.model.ids import ROOT_QUEUE, QueueName, group_key
from app.model.pod import Pod
from app.model.workload import Queue
from app.service.cycle.simulations import NewGroup
from app.webhooks.admission import WEBHOOKS, Webhook
from app.webhooks.gate import gated
from app.webhooks.object_types import KINDS, SHAPES, is_readable, is_whole
from app.webhooks.world import Options, Request, World
from app.wire import times
from app.wire.errors import DecodeError
from app.wire.findings import Findings
from app.wire.kinds import (
    JOBS,
    KUBERNETES_JOBS,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from app.wire.objects.groups import decode_pod_group
from app.wire.objects.jobs import decode_job
from app.wire.objects.pods import decode_pod
from app.wire.quantity import texts
from app.wire.shapes import check_shape, shapes_of
from app.wire.unstructured import Object, annotations, controlled_by, metadata, spec

MOST_PODS: Final = 20_000
"""Of all manifests of a question together."""

_DEPLOYMENTS: Final = Resource("Deployment", "apps/v1", "deployments")
_KINDS: Final = (
    JOBS,
    POD_GROUPS,
    PODS,
    KUBERNETES_JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    _DEPLOYMENTS,
)


_SHAPES: Final = shapes_of(
    {
        "Pod": {"Metadata": "metadata", "PodSpec": "spec"},
        "Metadata": {"{text}": "annotations labels", "[Owner]": "ownerReferences"},
        "Owner": {"text": "apiVersion kind name uid", "flag": "controller"},
        "PodSpec": {
            "text": "priorityClassName schedulerName preemptionPolicy",
            "number": "priority",
        },
        "Workload": {"Metadata": "metadata", "WorkloadSpec": "spec"},
        "WorkloadSpec": {"number": "replicas parallelism", "Pod": "template"},
        "Job": {"Metadata": "metadata", "JobSpec": "spec"},
        "JobSpec": {"[Task]": "tasks"},
        "Task": {"Pod": "template"},
        "PodGroup": {"Metadata": "metadata"},
    }
)
_SHAPE_OF: Final = {JOBS: "Job", POD_GROUPS: "PodGroup", PODS: "Pod"}

T = TypeVar("T")
Steps = Generator[None, None, T]


class CannotImagine(ValueError):
    """A manifest of which no group can be made: which, and why. ``status`` is the HTTP code."""

    status = 400


class IsMissing(CannotImagine):
    """A manifest names something that is not there."""

    status = 404


class IsThere(CannotImagine):
    """An object of that name exists already."""

    status = 409


class Refused(CannotImagine):
    """Admission would refuse the object."""

    status = 400


@dataclass(frozen=True, slots=True)
class Imagining:
    """The groups, and what admission would warn of."""

    groups: Sequence[NewGroup]
    warnings: Sequence[str] = ()


def imagined(
    manifests: Iterable[Any], cache: ClusterCache, *, namespace: str, now: float
) -> Steps[Imagining]:
    """What would come of ``manifests``, in steps; one that names no namespace is in ``namespace``.

    Raises `CannotImagine` and `DecodeError`.
    """
    maker = _Maker(cache, namespace=namespace, now=now)
    for number, manifest in enumerate(manifests, start=1):
        yield from maker.take(manifest, f"document {number}")
    groups = yield from maker.groups()
    return Imagining(groups, maker.warnings)


@dataclass(eq=False)
class _Maker:
    cache: ClusterCache
    namespace: str
    now: float
    warnings: list[str] = field(default_factory=list)
    _groups: list[NewGroup] = field(default_factory=list)
    _pod_groups: dict[tuple[str, str], Object] = field(default_factory=dict)
    _pods: list[Object] = field(default_factory=list)
    _count: int = 0
    _made: int = 0

    def take(self, manifest: Any, where: str) -> Steps[None]:
        yield
        resource, item = self._object(manifest, where)
        if resource == JOBS:
            yield from self._take_job(item, where)
        elif resource == POD_GROUPS:
            self._pod_groups[metadata(item)["namespace"], metadata(item)["name"]] = item
        elif resource == PODS:
            self._charge(1, where)
            self._pods.append(self._admitted(PODS, item, where))
        else:
            yield from self._take_workload(resource, item, where)

    def groups(self) -> Steps[list[NewGroup]]:
        """All groups; single pods and PodGroups get together only now."""
        members: dict[tuple[str, str], list[Pod]] = {key: [] for key in self._pod_groups}
        alone: list[NewGroup] = []
        for pod in (yield from self._read(self._pods)):
            name = pod.annotations.get(GROUP, "")
            if not name:
                alone.append(NewGroup(None, (pod,)))
            elif (pod.namespace, name) in members:
                members[pod.namespace, name].append(pod)
            else:
                raise CannotImagine(
                    f"pod {pod.key} names PodGroup {name}, which is in none of the documents"
                )
        made = [self._group(self._pod_groups[key], pods) for key, pods in members.items()]
        return [*self._groups, *made, *alone]

    def _object(self, manifest: Any, where: str) -> tuple[Resource, Object]:
        if not isinstance(manifest, dict):
            raise CannotImagine(f"{where} is no object")
        said = (manifest.get("apiVersion"), manifest.get("kind"))
        resource = next((each for each in _KINDS if (each.api_version, each.kind) == said), None)
        if resource is None:
            kinds = ", ".join(f"{each.kind} ({each.api_version})" for each in _KINDS)
            if None in said:
                raise CannotImagine(f"{where} has no kind or apiVersion; write one of {kinds}")
            raise CannotImagine(f"{where}: {said[1]} ({said[0]}) is none of {kinds}")
        about = manifest.get("metadata")
        if not isinstance(about, dict) or not isinstance(manifest.get("spec"), dict):
            raise CannotImagine(f"{where}: metadata or spec is missing, or no object")
        name = about.get("name") or about.get("generateName")
        if not isinstance(name, str):
            raise CannotImagine(f"{where}: metadata.name is missing")
        _check(resource, manifest, where)
        at = about.get("namespace") or self.namespace
        if not isinstance(at, str) or at not in self.cache.namespaces:
            raise IsMissing(f"{where}: there is no namespace {at}")
        return resource, self._stored(manifest, name, at)

    def _stored(self, item: Object, name: str, namespace: str) -> Object:
        """``item`` as the API server would have stored it."""
        self._made += 1
        about = {
            **metadata(item),
            "name": name,
            "namespace": namespace,
            "uid": str(uuid5(NAMESPACE_OID, f"{namespace}/{name}/{self._made}")),
            "resourceVersion": "0",
            "generation": 1,
            "creationTimestamp": times.seconds(self.now),
        }
        return {**item, "metadata": about}

    @cached_property
    def _world(self) -> World:
        return World(
            _CachedFacts(self.cache), Options(schedulers=tuple(sorted(self.cache.pods.schedulers)))
        )

    def _admitted(self, resource: Resource, item: Object, where: str) -> Object:
        """``item`` as admission changes it; raises `Refused` where it refuses it."""
        for webhook in (each for each in WEBHOOKS if each.resource == resource):
            if "CREATE" in webhook.operations and is_whole(item):
                item = self._seen_by(webhook, item, where)
        return item

    def _seen_by(self, webhook: Webhook, item: Object, where: str) -> Object:
        about = metadata(item)
        request = Request(
            operation="CREATE",
            item=item,
            old={},
            namespace=about["namespace"],
            name=about["name"],
        )
        if webhook.mutate is not None:
            return webhook.mutate(request, self._world)
        assert webhook.validate is not None
        if is_readable(webhook.resource, item):
            findings = webhook.validate(request, self._world)
            if findings.errors:
                raise Refused(f"{where}: admission refuses it: {findings.message()}")
            self.warnings += findings.told()
        return item

    def _take_job(self, item: Object, where: str) -> Steps[None]:
        job = Job(self._admitted(JOBS, item, where), self._world.options.schedulers[0])
        self._charge(job.replicas, where)
        classes = self.cache.registry.classes
        priorities = {name: each.value for name, each in classes.items()}
        key, _ = job_group.keys(job)
        stored = job_group.pod_group(job, name=key.name, priorities=priorities)
        seat = job_pods.Seat(gate=True)
        replicas = (Replica(task, index) for task in job.tasks for index in range(task.replicas))
        pods = yield from self._read(
            job_pods.pod(job, each, group=key.name, seat=seat) for each in replicas
        )
        template = decode_job(_text(job.item))
        self._groups.append(self._group(stored, pods, templates=template.roles))

    def _take_workload(self, resource: Resource, item: Object, where: str) -> Steps[None]:
        """Pods of a workload of Kubernetes, in the group that the controller makes for them."""
        count = spec(item).get("parallelism" if resource == KUBERNETES_JOBS else "replicas")
        wanted: int = 1 if count is None else count
        template = spec(item).get("template")
        if template is None:
            raise CannotImagine(f"{where}: spec.template is missing")
        self._charge(wanted, where)
        if wanted < 1:
            return
        about = metadata(item)
        said = {**(template.get("metadata") or {}), "ownerReferences": [controlled_by(item)]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": said, "spec": template.get("spec")}
        if not is_ours(pod, frozenset(self._world.options.schedulers)):
            named, ours = spec(pod).get("schedulerName", "missing"), self._world.options.schedulers
            raise CannotImagine(f"{where}: its schedulerName is {named}, not {ours[0]}")
        first = self._stored(pod, f"{about['name']}-0", about["namespace"])
        group = group_for(first, item, inherit=True)
        member = _in_group(pod, metadata(group)["name"])
        pods = yield from self._read(
            self._stored(member, f"{about['name']}-{index}", about["namespace"])
            for index in range(wanted)
        )
        self._groups.append(self._group(group, pods))

    def _group(
        self, item: Object, pods: Sequence[Pod], *, templates: Mapping[str, Any] | None = None
    ) -> NewGroup:
        about = metadata(item)
        stored = self._stored({**item, "status": {}}, about["name"], about["namespace"])
        if group_key(about["namespace"], about["name"]) in self.cache.groups:
            raise IsThere(
                f"PodGroup {about['namespace']}/{about['name']} is there already: ask about it "
                "under another name"
            )
        where = f"PodGroup {about['name']}"
        return NewGroup(
            decode_pod_group(_text(self._admitted(POD_GROUPS, stored, where))),
            pods,
            templates or {},
        )

    def _read(self, items: Iterable[Object]) -> Steps[list[Pod]]:
        pods: list[Pod] = []
        for item in items:
            pods.append(self._pod(item))
            yield
        return pods

    def _pod(self, item: Object) -> Pod:
        """The pod as the API server would show it: with its priority, and behind our gate."""
        about = metadata(item)
        stored = item if about.get("uid") else self._stored(item, about["name"], about["namespace"])
        body = spec(stored)
        name = body.get("priorityClassName") or ""
        classes = self.cache.registry.classes
        known = classes.get(name) or next((c for c in classes.values() if c.is_default), None)
        if known is not None and body.get("priority") is None:
            body = {**body, "priority": known.value}
            if not known.preempts:
                body.setdefault("preemptionPolicy", "Never")
        pod = {**stored, "spec": body, "status": {"phase": "Pending"}}
        ours = frozenset(self._world.options.schedulers)
        return decode_pod(_text(gated(pod, schedulers=ours) or pod))

    def _charge(self, pods: int, where: str) -> None:
        self._count += max(pods, 0)
        if self._count > MOST_PODS:
            raise CannotImagine(f"{where}: more than {MOST_PODS} pods are asked about")


@dataclass(eq=False)
class _CachedFacts:
    """What admission asks, as far as the scheduler's cache knows it."""

    cache: ClusterCache

    def queue(self, name: str) -> Object | None:
        found = self.cache.queues.get(QueueName(name))
        return None if found is None else _as_object(found)

    def queues(self) -> Iterator[Object]:
        return map(_as_object, self.cache.queues.values())

    def groups_in(self, queue: str) -> int:
        return sum(group.queue == queue for group in self.cache.groups.values())

    def has_priority_class(self, name: str) -> bool:
        return name in self.cache.registry.classes

    def priority(self, name: str) -> int:
        known = self.cache.registry.classes.get(name)
        return known.value if known is not None else 0

    def node_sizes(self) -> Iterator[Mapping[str, int]]:
        sizes = {node.allocatable for node in self.cache.node_usage.nodes.values()}
        return (dict(size) for size in sizes)

    def total(self) -> Mapping[str, int]:
        axis = self.cache.node_usage.axis
        return dict(axis.amounts(self.cache.total()))

    def namespace_annotations(self, namespace: str) -> Mapping[str, str]:
        known = self.cache.namespaces.get(namespace)
        return known.annotations if known is not None else {}


def _as_object(queue: Queue) -> Object:
    return {
        "metadata": {"name": queue.name, "annotations": dict(queue.annotations)},
        "spec": {
            "weight": queue.weight,
            "parent": queue.parent or ("" if queue.name == ROOT_QUEUE else ROOT_QUEUE),
            "capability": texts(queue.capability),
            "deserved": texts(queue.deserved),
            "reclaimable": queue.reclaimable,
        },
        "status": {"state": queue.state.value},
    }


def _check(resource: Resource, item: Object, where: str) -> None:
    """Raise `CannotImagine` with the first field that is of another type than it is read as."""
    findings = Findings()
    kind, whole = _SHAPE_OF.get(resource, "Workload"), ("Owner", "Task", "text")
    check_shape(item, kind, _SHAPES, path="", findings=findings, whole=whole)
    if not findings.errors and resource in KINDS:
        check_shape(item, KINDS[resource], SHAPES, path="", findings=findings, whole=whole)
    if not findings.errors and resource == POD_GROUPS and (spec(item).get("minMember") or 0) >> 31:
        findings.refuse("spec.minMember", "must be from 0 to 2147483647")
    if findings.errors:
        raise CannotImagine(f"{where}: {findings.message().removeprefix('.')}")


def _in_group(pod: Object, name: str) -> Object:
    said = {**annotations(pod), GROUP: name}
    return {**pod, "metadata": {**metadata(pod), "annotations": said}}


def _text(item: Object) -> bytes:
    try:
        return json.dumps(item, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise DecodeError("", f"cannot be said in JSON: {error}") from error
