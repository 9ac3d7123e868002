"""One informer per kind, all feeding one cache through one mailbox.

One mailbox for all kinds keeps what different kinds say in the order it arrived.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import msgspec

from app.kube.config import Connection
from app.kube.decode import decoder
from app.kube.informer import SILENCE_S, Informer, Watched
from app.kube.mailbox import Mailbox
from app.kube.source import GATHER_S
from app.kube.stream import (
    Added,
    Batch,
    Deleted,
    ListDone,
    ListStarted,
    Malformed,
    Modified,
    PageListed,
)
from app.service.configuration import Configuration
from app.wire.objects.device_claims import decode_claim_template, decode_device_claim
from app.wire.objects.device_configs import decode_device_config
from app.wire.objects.device_slices import decode_device_slice
from app.wire.objects.groups import decode_pod_group
from app.wire.objects.hyper_nodes import decode_hyper_node
from app.wire.objects.jobs import decode_job
from app.wire.objects.nodes import decode_node
from app.wire.objects.npu_cores import HEALTH_LABELS, HEALTH_NAMESPACE, decode_chip_health
from app.wire.objects.numatopologies import decode_numatopology
from app.wire.objects.pods import decode_pod
from app.wire.objects.policies import (
    decode_budget,
    decode_device_class,
    decode_lease,
    decode_namespace,
    decode_priority_class,
    decode_quota,
)
from app.wire.objects.queues import decode_queue
from app.wire.objects.volumes import (
    decode_attachment,
    decode_claim,
    decode_csi_driver,
    decode_csi_node,
    decode_storage_capacity,
    decode_storage_class,
    decode_volume,
)

log = logging.getLogger(__name__)

Decode = Callable[[msgspec.Raw], Any]

_PODS = "/api/v1/pods"
_OTHERS_GATHER_S = 0.05
"""Of pods that are not ours only their room counts, which kube-scheduler checks in any case."""
_LEASE_SILENCE_S = 5.0
"""A leader renews its Lease every 2 s, and it ends after 15 s: were a dead connection noticed any
later, we would stand by while our kube-scheduler leads. A watch that fails is tried twice by then.
"""
_STORAGE = "/apis/storage.k8s.io/v1"
SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """What is followed: its name in the feed, its path, its decoder and which objects of it."""

    name: str
    path: str
    decode: Decode
    fields: str = ""
    """A field selector."""
    labels: str = ""
    """A label selector."""
    gather_s: float = GATHER_S
    """How long an event may wait for others."""
    optional: bool = False
    """Whether the kind may be missing.

    Not all clusters serve it, and accounts made for an older version of ours may not read it.
    """
    silence_s: float = SILENCE_S
    """A watch that says nothing for so long is taken for dead."""

    @property
    def selectors(self) -> dict[str, str]:
        """Both, as parameters of a request."""
        both = {"fieldSelector": self.fields, "labelSelector": self.labels}
        return {name: value for name, value in both.items() if value}


_VOLUMES: tuple[tuple[str, Decode], ...] = (
    ("/api/v1/persistentvolumeclaims", decode_claim),
    ("/api/v1/persistentvolumes", decode_volume),
    (f"{_STORAGE}/storageclasses", decode_storage_class),
    (f"{_STORAGE}/csidrivers", decode_csi_driver),
    (f"{_STORAGE}/csinodes", decode_csi_node),
    (f"{_STORAGE}/csistoragecapacities", decode_storage_capacity),
    (f"{_STORAGE}/volumeattachments", decode_attachment),
)

KINDS: tuple[WatchedKind, ...] = (
    WatchedKind("nodes", "/api/v1/nodes", decode_node),
    WatchedKind("queues", f"{SCHEDULING}/queues", decode_queue),
    WatchedKind("podgroups", f"{SCHEDULING}/podgroups", decode_pod_group),
    WatchedKind("jobs", "/apis/batch.volcano.sh/v1alpha1/jobs", decode_job),
    WatchedKind(
        "priorityclasses", "/apis/scheduling.k8s.io/v1/priorityclasses", decode_priority_class
    ),
    WatchedKind("namespaces", "/api/v1/namespaces", decode_namespace),
    WatchedKind("resourcequotas", "/api/v1/resourcequotas", decode_quota),
    WatchedKind("poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", decode_budget),
    WatchedKind(
        "deviceclasses",
        "/apis/resource.k8s.io/v1/deviceclasses",
        decode_device_class,
        optional=True,
    ),
    WatchedKind(
        "resourceslices",
        "/apis/resource.k8s.io/v1/resourceslices",
        decode_device_slice,
        optional=True,
    ),
    WatchedKind(
        "resourceclaims",
        "/apis/resource.k8s.io/v1/resourceclaims",
        decode_device_claim,
        optional=True,
    ),
    WatchedKind(
        "resourceclaimtemplates",
        "/apis/resource.k8s.io/v1/resourceclaimtemplates",
        decode_claim_template,
        optional=True,
    ),
    WatchedKind(
        "numatopologies",
        "/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies",
        decode_numatopology,
        optional=True,
    ),
    WatchedKind(
        "hypernodes",
        "/apis/topology.volcano.sh/v1alpha1/hypernodes",
        decode_hyper_node,
        optional=True,
    ),
    *(
        WatchedKind(path.rpartition("/")[2], path, decode, optional=True)
        for path, decode in _VOLUMES
    ),
)


def pod_kinds(schedulers: Iterable[str]) -> tuple[WatchedKind, ...]:
    """Pods, ours by scheduler name; of all others only those that take room on a node, or claim it.

    Pods that are not ours are most of a cluster, and half of what is said about them (that they
    were created, that they ended) is nothing to us: the API server keeps it to itself.
    """
    ours = sorted(schedulers)
    others = _of_others(ours)
    placed = ["spec.nodeName!=", "status.phase!=Succeeded", "status.phase!=Failed"]
    nominated = ["spec.nodeName=", "status.nominatedNodeName!="]
    return (
        *(
            WatchedKind(f"pods/{name}", _PODS, decode_pod, f"spec.schedulerName={name}")
            for name in ours
        ),
        WatchedKind(
            "pods/*", _PODS, decode_pod, ",".join(others + placed), gather_s=_OTHERS_GATHER_S
        ),
        WatchedKind("nominated", _PODS, decode_pod, ",".join(others + nominated)),
    )


def waiting_pods(schedulers: Iterable[str]) -> WatchedKind:
    """Pods that are not ours and wait for a node: what evictions ask, which spare room for them."""
    waiting = ["spec.nodeName=", "status.nominatedNodeName=", "status.phase=Pending"]
    selectors = ",".join(_of_others(schedulers) + waiting)
    return WatchedKind("waiting", _PODS, decode_pod, selectors, gather_s=_OTHERS_GATHER_S)


def _of_others(schedulers: Iterable[str]) -> list[str]:
    return [f"spec.schedulerName!={name}" for name in sorted(schedulers)]


def device_kinds(configuration: Configuration) -> list[WatchedKind]:
    """The ConfigMaps in which device plugins tell of the devices that the configuration shares."""
    name = configuration.device_config_map
    found = [] if name is None else [device_config(*name)]
    return [*found, chip_health()] if configuration.devices.npu_cores else found


def device_config(namespace: str, name: str) -> WatchedKind:
    """The ConfigMap of the device plugins."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    fields = f"metadata.name={name}"
    kind = f"deviceconfigs/{namespace}/{name}"
    return WatchedKind(kind, path, decode_device_config, fields, optional=True)


def chip_health() -> WatchedKind:
    """The ConfigMaps of the nodes in which MindCluster's device plugin tells of their chips."""
    return WatchedKind(
        "chiphealth",
        f"/api/v1/namespaces/{HEALTH_NAMESPACE}/configmaps",
        decode_chip_health,
        labels=HEALTH_LABELS,
        optional=True,
    )


def lease_kind(namespace: str) -> WatchedKind:
    """The Leases of one namespace, which say what process leads."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return WatchedKind("leases", path, decode_lease, silence_s=_LEASE_SILENCE_S)


Item = tuple[str, Batch[Any]]

_SHOWN = 300
"""Characters of an object in a log line."""

PIECE = 50
"""Objects of a page that are handed over at a time: a quarter of a millisecond."""


class Sink(Protocol):
    """Where the objects go: the cache's feed, the controllers' intake."""

    def upsert(self, kind: str, value: Any, /) -> None:
        """An object was added, modified or listed."""

    def remove(self, kind: str, value: Any, /) -> None:
        """An object was deleted."""

    def begin_listing(self, kind: str, /) -> None:
        """A full listing starts."""

    def end_listing(self, kind: str, /) -> None:
        """The listing of ``kind`` is complete."""

    def reject(
        self, kind: str, name: str, message: str, /, *, uid: str = "", deleted: bool = False
    ) -> None:
        """An object could not be read."""

    def batch_done(self) -> None:
        """A batch has been handed over whole."""


class Informers:
    """The informer threads of a process; start and stop them together."""

    def __init__(
        self,
        kinds: Sequence[WatchedKind],
        *,
        connection: Connection,
        feed: Sink,
        listed: Callable[[str, bool], object] = lambda _kind, _served: None,
    ) -> None:
        """``listed`` is told of each listing, and whether the API server gave one."""
        self._feed = feed
        self._listed = listed
        self._connection = connection
        self._mailbox: Mailbox[Item] = Mailbox(asyncio.get_running_loop(), self._deliver)
        self._informers = {kind.name: self._informer(kind) for kind in kinds}
        self._awaited = tuple(self._informers)
        self._delivered: set[str] = set()
        self.synced = asyncio.Event()
        """Set once every kind of the start has been listed."""

    def start(self) -> None:
        """Start all threads."""
        for informer in self._informers.values():
            informer.start()

    def add(self, kind: WatchedKind) -> None:
        """Follow one kind more, before the start."""
        self._informers[kind.name] = self._informer(kind)
        self._awaited = (*self._awaited, kind.name)

    def follow(self, kind: WatchedKind) -> None:
        """Follow one kind more from now on, if it is not followed yet."""
        if kind.name not in self._informers:
            self._informers[kind.name] = self._informer(kind)
            self._informers[kind.name].start()

    async def stop(self) -> None:
        """End all threads; what they still had to say is dropped."""
        self._mailbox.close()
        await asyncio.gather(
            *(asyncio.to_thread(informer.stop) for informer in self._informers.values())
        )

    def unsynced(self) -> list[str]:
        """Kinds of the start whose first listing is not in the cache yet."""
        return [kind for kind in self._awaited if kind not in self._delivered]

    def _informer(self, kind: WatchedKind) -> Informer[Any]:
        watched = Watched(
            kind=kind.name,
            path=kind.path,
            decoder=decoder(kind.decode),
            selectors=kind.selectors,
            gather_s=kind.gather_s,
            optional=kind.optional,
            silence_s=kind.silence_s,
        )
        return Informer(watched, connection=self._connection, sink=partial(self._put, kind.name))

    def _put(self, kind: str, batch: Batch[Any]) -> None:
        for piece in _pieces(batch):
            self._mailbox.put((kind, piece))

    def _deliver(self, items: list[Item]) -> None:
        for kind, batch in items:
            for event in batch:
                self._apply(kind, event)
        self._feed.batch_done()

    def _apply(self, kind: str, event: object) -> None:
        feed = self._feed
        match event:
            case Added(obj) | Modified(obj):
                _take_in(feed.upsert, kind, obj)
            case Deleted(obj):
                _take_in(feed.remove, kind, obj)
            case PageListed(objects):
                for obj in objects:
                    _take_in(feed.upsert, kind, obj)
            case ListStarted():
                _take_in(feed.begin_listing, kind)
            case ListDone(version):
                _take_in(feed.end_listing, kind)
                _take_in(self._listed, kind, bool(version))
                self._delivered.add(kind)
                if not self.unsynced():
                    self.synced.set()
            case Malformed():
                reject = partial(feed.reject, uid=event.uid, deleted=event.deleted)
                _take_in(reject, kind, event.key, event.message)


def _take_in(change: Callable[..., object], kind: str, *about: object) -> None:
    try:
        change(kind, *about)
    except Exception:  # a bug with one object must not lose those that follow it
        log.exception("object not taken in", extra={"kind": kind, "object": repr(about)[:_SHOWN]})


def _pieces(batch: Batch[Any]) -> Iterator[Batch[Any]]:
    """``batch``, cut up if it has a page of many objects."""
    if not any(isinstance(event, PageListed) and len(event.objects) > PIECE for event in batch):
        yield batch
        return
    for event in batch:
        objects = event.objects if isinstance(event, PageListed) else ()
        for start in range(0, len(objects), PIECE):
            yield [PageListed(objects[start : start + PIECE])]
        if not isinstance(event, PageListed):
            yield [event]
