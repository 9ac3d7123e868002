"""What an object has made that waits: found by the owner references, whatever it is called.

Operators (of RayClusters, MPIJobs, PyTorchJobs, TrainJobs, SparkApplications, …) make PodGroups and
pods with names of their own. These tell their owners; of an owner that was itself made by another
object (a RayCluster by a RayJob, a ReplicaSet by a Deployment, a job by a JobFlow) the owners are
read in turn. Names of what is made begin with the name of what made it, so few are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.cli.cluster import Cluster
from app.cli.endings import CommandFailed
from app.kube import errors
from app.wire.kinds import POD_GROUPS, PODS, Resource
from app.wire.unstructured import Key, Object, age, key_of, metadata, spec, status

_GENERATIONS = 4
_WAITING = ("Pending", "Inqueue", "Unknown", "")


@dataclass(frozen=True, slots=True)
class Owned:
    """``items`` of ``resource`` that an object of ``kind`` has made, the one to look at first."""

    kind: str
    resource: Resource
    items: Sequence[Object]


Reference = Mapping[str, str]


async def owned(cluster: Cluster, key: Key, *, kind: str = "") -> Owned | None:
    """The PodGroups, else the pods, of the object of that name (and ``kind``); None: none."""
    wanted = _Wanted(cluster, key, kind.lower().partition(".")[0])
    for resource in (POD_GROUPS, PODS):
        items = await _seen(cluster, resource, key.namespace)
        found = [(item, of) for item in items if (of := await wanted.among(item))]
        if found:
            ordered = sorted((item for item, _ in found), key=_urgency)
            return Owned(found[0][1], resource, ordered)
    return None


class _Wanted:
    """The object that is looked for, among the owners of items."""

    def __init__(self, cluster: Cluster, key: Key, kind: str) -> None:
        self._cluster = cluster
        self._key = key
        self._kind = kind
        self._known: dict[str, Sequence[Reference]] = {}
        """The owner references of owners that were read, by UID."""

    async def among(self, item: Object) -> str:
        """The kind of the owner of ``item``: a wanted one, or owned by one; empty: neither."""
        references = _references(item)
        for _ in range(_GENERATIONS):
            for reference in references:
                if reference["name"] == self._key.name and self._is_kind(reference["kind"]):
                    return reference["kind"]
            near = [r for r in references if r["name"].startswith(self._key.name)]
            references = [above for each in near for above in await self._above(each)]
        return ""

    def _is_kind(self, kind: str) -> bool:
        return self._kind in {"", kind.lower(), _plural(kind)}

    async def _above(self, reference: Reference) -> Sequence[Reference]:
        uid = reference.get("uid", "")
        if uid not in self._known:
            self._known[uid] = await self._read(reference)
        return self._known[uid]

    async def _read(self, reference: Reference) -> Sequence[Reference]:
        kind = reference["kind"]
        resource = Resource(kind, reference["apiVersion"], _plural(kind))
        try:
            owner = await self._cluster.get(resource, Key(self._key.namespace, reference["name"]))
        except (errors.Refused, CommandFailed):
            return ()  # it is gone, or not to be seen, or its kind has an unusual plural
        return _references(owner)


async def _seen(cluster: Cluster, resource: Resource, namespace: str) -> Sequence[Object]:
    try:
        return await cluster.list(resource, namespace=namespace)
    except errors.Forbidden:
        return ()


def _references(item: Object) -> Sequence[Reference]:
    return metadata(item).get("ownerReferences") or ()


def _plural(kind: str) -> str:
    """As Kubernetes makes plurals of kinds."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"


def _urgency(item: Object) -> tuple[bool, bool, str, int, str]:
    """What waits comes first, the oldest of it before the others."""
    waits = status(item).get("phase", "") in _WAITING
    return (not waits, bool(spec(item).get("nodeName")), *age(item), str(key_of(item)))


def uids_of_owners(items: Iterable[Object]) -> set[str]:
    """The UIDs of the objects that own ``items``."""
    return {str(owner.get("uid")) for item in items for owner in _references(item)}
