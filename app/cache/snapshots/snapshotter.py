"""Immutable snapshots of the live cluster for the planner.

Copied are the used and releasing arrays and the mapping of views, and of placed pods the columns
that changed; everything else is shared, since views, nodes and queues are replaced and never
changed in place.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.gang_views import GangViews
from app.cache.gangs.groups import Group
from app.cache.gangs.imagined import Imagined, usage_with, views_with
from app.cache.neighbours.identities import Identities
from app.cache.neighbours.pods_with_rules import keys_asked
from app.cache.snapshots.running import RunningTable
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.placed_pods import NOBODY
from app.model.running import NOT_ASKED
from app.model.shape import HostPort, PodShape
from app.model.snapshot import Claim, NominatedRoom, Snapshot, Veto

_SHAPES_LOOKED_AT: Final = 64
"""Of those that foreign pods wait with: for each all nodes are looked at."""
NOBODY_PREEMPTS: Mapping[PodUid, NominatedRoom] = MappingProxyType({})


class Snapshotter:
    """Makes numbered snapshots of one cache."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._generation = 0
        self._identities = Identities()
        self._running = RunningTable(cache)

    def snapshot(
        self,
        *,
        vetoes: frozenset[Veto] = frozenset(),
        preemptors: Mapping[PodUid, NominatedRoom] = NOBODY_PREEMPTS,
        running: bool = False,
        imagined: Sequence[Imagined] = (),
    ) -> Snapshot:
        """The cluster now; ``vetoes`` are nodes that the stock scheduler refused for a shape.

        ``preemptors`` are pods that others are evicted for; they may not be nominated yet.
        ``running``: the snapshot is for a question about evictions. It tells what runs all the same
        while pods are being evicted. ``imagined`` are groups as they would be, which stand in place
        of those of their names.
        """
        cache, rules = self._cache, self._cache.rules
        cache.node_usage.set_offered(cache.device_claims.settle())
        begun = cache.pipelined.plans()
        running = running or bool(begun)
        views, usage = cache.registry.refresh(), cache.registry.usage()
        groups: Mapping[GroupKey, Group] = cache.groups
        if imagined:
            usage = usage_with(usage, views.all, [each.view for each in imagined])
            views = views_with(cache.registry, imagined)
            groups = ChainMap({each.view.key: each.group for each in imagined}, cache.groups)
        self._generation += 1
        table = cache.node_usage.table()
        used, releasing = cache.node_usage.sorted_used()
        inter_pod = rules.are_between_pods or bool(views.pods_with_rules)
        pending, placed_pods = views.pending, NOBODY
        if inter_pod:
            asked = rules.pods_with_rules.keys() | _keys_of_unseen(views)
            pending = self._identities.of(
                views.pending.values(), groups, asked=asked | rules.repelling.keys()
            )
            placed_pods = cache.pods.table.placed_pods(table, asked)
        else:
            cache.pods.table.follow()
        if not running:
            self._running.follow()
        return Snapshot(
            generation=self._generation,
            table=table,
            used=used,
            releasing=releasing,
            gangs={**views.all, **pending} if inter_pod else dict(views.all),
            pending=tuple(pending.values()),
            awaited=tuple(pending[key] for key in views.awaited),
            torn=tuple(pending[key] for key in views.torn),
            shown=tuple(pending[key] for key in views.shown),
            nominated_room=self._nominated_room(views, preemptors),
            collected=cache.collected,
            claims=self._claims(preemptors),
            queues=dict(cache.queues),
            usage=usage,
            placed_pods=placed_pods,
            inter_pod=inter_pod,
            ports=self._ports(table.index),
            outlook=cache.registry.outlook,
            vetoes=vetoes,
            places=dict(views.places),
            loads=cache.loads.nodes(),
            http_extender=cache.http_extender,
            numa=cache.numa.nodes(),
            numa_taken=cache.numa.taken() if running else {},
            devices=cache.devices.nodes(),
            devices_taken=cache.devices.taken() if running else {},
            device_config=cache.devices.config,
            volumes=cache.volumes.volumes(),
            affine=tuple(views.affine.values()),
            claimed_devices=cache.device_claims.facts(cache.pods.foreign),
            domains=cache.network.domains(table),
            quotas=tuple(cache.quotas.values()),
            namespaces=dict(cache.namespaces),
            asked_of_cordoned=views.asked_of_cordoned if table.cordoned else None,
            running=self._running.running(table) if running else NOT_ASKED,
            budgets=tuple(cache.budgets.values()) if running else (),
            begun=begun,
            stuck=cache.pipelined.stuck,
            paused=cache.pipelined.paused,
            coveting=self._coveting() if running else (),
            shuffled=cache.pipelined.shuffled,
            revoked=cache.pipelined.revoked,
            classes={name: each.value for name, each in cache.registry.classes.items()},
        )

    def _coveting(self) -> tuple[PodShape, ...]:
        """Of the shapes that foreign pods wait with, each once, as many as are looked at."""
        alike = {id(shape): shape for shape in self._cache.pods.waiting.values()}
        return tuple(islice(alike.values(), _SHAPES_LOOKED_AT))

    def _nominated_room(
        self, views: GangViews, preemptors: Mapping[PodUid, NominatedRoom]
    ) -> dict[GroupKey, dict[PodUid, NominatedRoom]]:
        members = self._cache.members
        keys = {members[uid].group for uid in preemptors if uid in members}
        found: dict[GroupKey, dict[PodUid, NominatedRoom]] = {}
        for key in sorted(views.nominated.keys() | keys & views.pending.keys()):
            gang = views.pending[key]
            made = {
                task.uid: preemptors.get(task.uid) or NominatedRoom(on, done=True)
                for task in gang.waiting
                if (on := members[task.uid].evicted_for_on) or task.uid in preemptors
            }
            if made and gang.is_of_one:
                found[key] = made
        return found

    def _claims(self, preemptors: Mapping[PodUid, NominatedRoom]) -> tuple[Claim, ...]:
        """Claims of foreign pods, and of ours whose group does not show yet.

        A controller gives a pod one at about the time when kube-scheduler evicts for it.
        """
        cache = self._cache
        early = (
            (member.pod, made.node)
            for uid, made in preemptors.items()
            if (member := cache.members.get(uid)) and not cache.groups[member.group].known
        )
        return cache.pods.nominated.claims(cache.node_usage.vector, besides=early)

    def _ports(self, index: Mapping[NodeName, int]) -> dict[int, frozenset[HostPort]]:
        taken: dict[int, frozenset[HostPort]] = {}
        for uid, ports in self._cache.rules.ports.items():
            charge = self._cache.node_usage.charges.get(uid)
            row = index.get(charge.node) if charge else None
            if row is not None:
                taken[row] = taken.get(row, frozenset()) | ports
        return taken


def _keys_of_unseen(views: GangViews) -> frozenset[str]:
    """Groups with members that the watch has not shown yet."""
    return keys_asked(
        s for gang in views.pods_with_rules.values() for s in gang.role_shapes.values()
    )
