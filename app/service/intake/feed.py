"""From what informers saw to the cache.

Each kind has an entry in a table: how an object is put in and how one is taken out by its key. A
full listing is bracketed: objects arrive page by page, and when the listing is done everything of
that kind that was not in it has gone while the watch was down.

A kind may come from several sources, each of which lists a part of it: pods of each scheduler name
of ours and foreign pods (``pods/volcano``, ``pods/*``). A listing tells about its part only.
Foreign pods that are nominated to a node are a kind of their own: those do not take room there. So
are those that wait for a node and have no nomination.

Objects that could not be decoded are counted and kept with the field path for ``/debug``; one of
them never stops anything.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.cache.cluster import ClusterCache
from app.cache.nodes.volumes import VolumeUsage
from app.kit.listings import Listings, take_out
from app.model.ids import GroupKey, PodUid
from app.service.activity import Activity
from app.service.ports import Clock
from app.wire.objects.npu_cores import node_of


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that could not be read, and what is wrong with it at which path."""

    kind: str
    name: str
    """``namespace/name``, or the name alone; empty when not even that could be read."""
    uid: str
    message: str


@dataclass(frozen=True, slots=True)
class KindFeed:
    """``put`` stores an object, ``take`` removes it by key, ``key`` tells its key.

    ``by_uid``: the key is the UID, not the name.
    """

    put: Callable[[Any], object]
    take: Callable[[Any], object]
    key: Callable[[Any], str]
    by_uid: bool = False


Settled = Callable[[Iterable[GroupKey]], None]

_CLAIMS = "persistentvolumeclaims"
MALFORMED_KEPT = 200
"""For ``/debug``; all of them are counted."""


def kind_of(source: str) -> str:
    """``pods`` of ``pods/volcano``."""
    return source.partition("/")[0]


class Feed:
    """Applies batches; ``settled`` is told the groups that changed after each one."""

    def __init__(
        self, cache: ClusterCache, *, activity: Activity, clock: Clock, settled: Settled
    ) -> None:
        self._cache = cache
        self._settled = settled
        self._listings: Listings[str] = Listings()
        self._observed: dict[str, frozenset[PodUid]] = {}
        self.malformed: dict[tuple[str, str], Malformed] = {}
        self._kinds = _kinds(cache, activity, clock)

    def kinds(self) -> Mapping[str, KindFeed]:
        """The kinds that the feed understands."""
        return self._kinds

    def upsert(self, kind: str, value: Any) -> None:
        """An object was added, modified or listed."""
        feed = self._kinds[kind_of(kind)]
        key = feed.key(value)
        self._listings.show(kind, key)
        self.malformed.pop((kind, key), None)
        feed.put(value)

    def remove(self, kind: str, value: Any) -> None:
        """An object was deleted."""
        self._remove(kind, self._kinds[kind_of(kind)].key(value))

    def _remove(self, kind: str, key: str) -> None:
        self._listings.lose(kind, key)
        self.malformed.pop((kind, key), None)
        self._kinds[kind_of(kind)].take(key)

    def begin_listing(self, kind: str) -> None:
        """A full listing of ``kind`` starts."""
        self._listings.begin(kind)
        if kind_of(kind) == "pods":
            self._observed[kind] = self._cache.pods.observed(kind.partition("/")[2])

    def note_listed(self, kind: str, served: bool, /) -> None:
        """Note a listing of ``kind``; not ``served``: there is no such kind, or none for us."""
        if kind == _CLAIMS:
            self._cache.volumes.set_known(known=served)

    def end_listing(self, kind: str) -> None:
        """Complete the listing of ``kind``: drop what was not in it.

        So are pods that a Filter call had shown before it began and that it does not have. Raises
        :class:`ExceptionGroup` with what went wrong, once all others are dropped.
        """
        listed = self._listings.end(kind)
        if listed is None:
            return
        for rejected in [k for k in self.malformed if k[0] == kind and k[1] not in listed.there]:
            del self.malformed[rejected]
        shown = self._observed.pop(kind, frozenset()) - listed.there
        take_out(listed.gone | shown, self._kinds[kind_of(kind)].take)

    def reject(
        self, kind: str, name: str, message: str, *, uid: str = "", deleted: bool = False
    ) -> None:
        """An object could not be read: what was known of it stays, unless it was deleted."""
        key = uid if uid and self._kinds[kind_of(kind)].by_uid else name
        if deleted:
            self._remove(kind, key)
            return
        if (kind, key) in self.malformed or len(self.malformed) < MALFORMED_KEPT:
            self.malformed[kind, key] = Malformed(kind_of(kind), name, uid, message)
        self._listings.name(kind, key)

    def batch_done(self) -> None:
        """A batch is in: let held calls and the planner know what changed."""
        self._settled(self._cache.signals.groups)


def _kinds(cache: ClusterCache, activity: Activity, clock: Clock) -> dict[str, KindFeed]:
    return {
        "pods": KindFeed(
            lambda pod: cache.set_pod(pod, now=clock()),
            cache.drop_pod,
            lambda pod: pod.uid,
            by_uid=True,
        ),
        "nominated": KindFeed(
            cache.pods.set_nominated, cache.pods.drop_nominated, lambda pod: pod.uid, by_uid=True
        ),
        "waiting": KindFeed(
            cache.pods.set_waiting, cache.pods.drop_waiting, lambda pod: pod.uid, by_uid=True
        ),
        "nodes": KindFeed(cache.set_node, cache.drop_node, lambda node: node.name),
        "podgroups": KindFeed(cache.set_group, cache.drop_group, lambda group: group.key),
        "queues": KindFeed(cache.set_queue, cache.drop_queue, lambda queue: queue.name),
        "priorityclasses": KindFeed(
            cache.registry.set_class, cache.registry.drop_class, lambda c: c.name
        ),
        "namespaces": KindFeed(cache.set_namespace, cache.drop_namespace, lambda ns: ns.name),
        "resourcequotas": KindFeed(
            lambda quota: cache.quotas.__setitem__(f"{quota.namespace}/{quota.name}", quota),
            lambda key: cache.quotas.pop(key, None),
            lambda quota: f"{quota.namespace}/{quota.name}",
        ),
        "poddisruptionbudgets": KindFeed(
            lambda budget: cache.budgets.__setitem__(f"{budget.namespace}/{budget.name}", budget),
            lambda key: cache.budgets.pop(key, None),
            lambda budget: f"{budget.namespace}/{budget.name}",
        ),
        "deviceclasses": KindFeed(
            cache.device_claims.set_class, cache.device_claims.drop_class, lambda each: each.name
        ),
        "resourceslices": KindFeed(
            cache.device_claims.set_slice, cache.device_claims.drop_slice, lambda each: each.name
        ),
        "resourceclaims": KindFeed(
            cache.device_claims.set_claim, cache.device_claims.drop_claim, lambda each: each.key
        ),
        "resourceclaimtemplates": KindFeed(
            cache.device_claims.set_template,
            cache.device_claims.drop_template,
            lambda each: each.key,
        ),
        **_kinds_of_volumes(cache.volumes),
        "hypernodes": KindFeed(cache.set_hyper_node, cache.drop_hyper_node, lambda each: each.name),
        "numatopologies": KindFeed(cache.set_numa, cache.numa.drop_topology, lambda n: n.name),
        "deviceconfigs": KindFeed(
            lambda each: cache.set_device_config(*each),
            lambda key: cache.set_device_config(key, None),
            lambda each: each[0],
        ),
        "chiphealth": KindFeed(
            lambda each: cache.set_chip_health(node_of(each.key), each.ill),
            lambda key: cache.set_chip_health(node_of(key), None),
            lambda each: each.key,
        ),
        "leases": KindFeed(
            activity.set_lease, activity.drop_lease, lambda lease: f"{lease.namespace}/{lease.name}"
        ),
        "jobs": KindFeed(
            cache.device_claims.set_job,
            cache.device_claims.drop_job,
            lambda job: job.uid,
            by_uid=True,
        ),
    }


def _kinds_of_volumes(volumes: VolumeUsage) -> dict[str, KindFeed]:
    return {
        _CLAIMS: KindFeed(volumes.set_claim, volumes.drop_claim, lambda each: each.key),
        "persistentvolumes": KindFeed(
            volumes.set_volume, volumes.drop_volume, lambda each: each.name
        ),
        "storageclasses": KindFeed(volumes.set_class, volumes.drop_class, lambda each: each.name),
        "csidrivers": KindFeed(volumes.set_driver, volumes.drop_driver, lambda each: each.name),
        "csinodes": KindFeed(volumes.set_csi_node, volumes.drop_csi_node, lambda each: each.name),
        "volumeattachments": KindFeed(
            volumes.set_attachment, volumes.drop_attachment, lambda each: each.name
        ),
        "csistoragecapacities": KindFeed(
            volumes.set_capacity, volumes.drop_capacity, lambda each: each.key
        ),
    }
