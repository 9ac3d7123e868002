"""What the HTTP extender is told: the cluster as the cache has it, as bodies of calls."""

import asyncio
from collections.abc import Sequence

from msgspec import Raw

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member
from app.model.amounts import Amounts
from app.model.gang import Gang
from app.model.ids import NO_NODE, NodeName, PodUid, QueueName
from app.model.pod import REVOCABLE_ZONE, Pod
from app.model.resources import Vector
from app.wire.http_extender import (
    ALLOCATED,
    Json,
    ToldTask,
    encode,
    held,
    job_body,
    node_body,
    queue_body,
)


class Bodies:
    """Bodies of one round; nodes are encoded once."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._nodes: dict[NodeName, Raw] = {}

    def begin_anew(self) -> None:
        """The next bodies tell of the cluster as it is by then."""
        self._nodes.clear()

    def task(self, pod: Pod, *, node: NodeName = NO_NODE, manifest: bytes | None = None) -> Json:
        """A pod; with a ``node`` it is told as having its place there."""
        return ToldTask(
            pod,
            self._job_of(pod),
            status=ALLOCATED if node and not pod.node else 0,
            node=node or pod.node,
            manifest=None if manifest is None else Raw(manifest),
        ).body()

    def node(self, name: NodeName) -> Raw:
        """A node, with the pods that have room there."""
        body = self._nodes.get(name)
        if body is None:
            body = self._nodes[name] = self._node(name)
        return body

    def job(self, gang: Gang, *, all_placed: bool = False) -> Json:
        """A group; with ``all_placed`` as it would be with a place for each member that waits."""
        cache = self._cache
        group = cache.groups.get(gang.key)
        members = group.members.values() if group is not None else ()
        tasks = [self._member(member, all_placed=all_placed) for member in members]
        least = None if gang.min_request is None else self._amounts(gang.min_request)
        return job_body(
            gang,
            group.pod_group if group is not None else None,
            tasks,
            allocated=self._amounts(gang.request if all_placed else gang.allocated),
            request=self._amounts(gang.request),
            least=least,
        )

    def queue(self, name: QueueName) -> Json:
        """A queue; raises ``KeyError`` for one that does not exist."""
        cache = self._cache
        usage = cache.registry.usage().get(name)
        return queue_body(cache.queues[name], held(usage, cache.node_usage.axis.names))

    def predicate(self, task: Raw, node: NodeName) -> bytes:
        """The question whether a task may go to a node."""
        return encode({"task": task, "node": self.node(node)})

    async def prioritize(self, task: Raw, nodes: Sequence[NodeName]) -> bytes:
        """The question how much nodes are liked for a task."""
        return encode({"task": task, "nodes": list((await self._all(nodes)).values())})

    def victims(self, evictor: Pod, uids: Sequence[PodUid]) -> bytes:
        """The question which of these pods may go for ``evictor``."""
        members = (self._cache.members.get(uid) for uid in uids)
        evictees = [self.task(member.pod) for member in members if member is not None]
        return encode({"evictor": self.task(evictor), "evictees": evictees})

    async def session(self) -> bytes:
        """The whole cluster, put together with turns for the event loop."""
        cache = self._cache
        jobs: dict[str, Raw] = {}
        for gang in list(cache.registry.refresh().all.values()):
            jobs[gang.called] = Raw(encode(self.job(gang)))
            await asyncio.sleep(0)
        nodes = await self._all(sorted(cache.node_usage.nodes))
        return encode(
            {
                "Jobs": jobs,
                "Nodes": nodes,
                "Queues": {name: self.queue(name) for name in sorted(cache.queues)},
                "NamespaceInfo": {name: {"Name": name} for name in sorted(cache.namespaces)},
                "RevocableNodes": {
                    name: nodes[name]
                    for name, node in cache.node_usage.nodes.items()
                    if name in nodes and REVOCABLE_ZONE in node.labels
                },
                "NodeList": list(nodes),
            }
        )

    async def _all(self, names: Sequence[NodeName]) -> dict[NodeName, Raw]:
        """These nodes, those apart that are gone by now."""
        found: dict[NodeName, Raw] = {}
        for name in names:
            if name in self._cache.node_usage.nodes:
                found[name] = self.node(name)
                await asyncio.sleep(0)
        return found

    def _node(self, name: NodeName) -> Raw:
        usage = self._cache.node_usage
        node = usage.nodes[name]
        used: Vector = usage.axis.vector(())
        releasing = used.copy()
        tasks: list[Json] = []
        for holder in sorted(usage.holders(name)):
            charge = usage.charges[holder]
            used = used + charge.vector
            if charge.releasing:
                releasing += charge.vector
            pod = self._cache.pods.pod(PodUid(holder))
            if pod is not None:
                tasks.append(self.task(pod, node=name))
        return node_body(
            node,
            allocatable=node.allocatable if node.ready else (),
            used=self._amounts(used),
            releasing=self._amounts(releasing),
            tasks=tasks,
        )

    def _member(self, member: Member, *, all_placed: bool) -> ToldTask:
        pod = member.pod
        waits = all_placed and not pod.node and not pod.deleting
        placed = waits or bool(member.node and not pod.node)
        return ToldTask(
            pod, self._job_of(pod), status=ALLOCATED if placed else 0, node=member.node or pod.node
        )

    def _job_of(self, pod: Pod) -> str:
        return f"{pod.group}" if pod.grouped else ""

    def _amounts(self, vector: Vector) -> Amounts:
        names = self._cache.node_usage.axis.names
        return tuple((n, int(v)) for n, v in zip(names, vector.tolist(), strict=False) if v)
