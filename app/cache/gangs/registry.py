"""All groups, what the planner has to decide about, and the queues' sums.

Views are made when they are asked for, and only of groups that changed; a queue's sums change by
the difference of a group's old and new contribution.
"""

from collections.abc import Iterable, Mapping

from app.cache.gangs.foreign_members import ForeignMembers
from app.cache.gangs.gang_views import GangViews, file_under
from app.cache.gangs.groups import Group
from app.cache.gangs.members import PLACED_KINDS, MemberState
from app.cache.gangs.signals import Signals
from app.cache.gangs.sums import QueueSums
from app.cache.gangs.views import gang_view, places_of, task_of, topology_of
from app.cache.nodes.usage import NodeUsage
from app.core.gangs.task_topology import tells_tasks_apart
from app.core.sums import Part, part_of
from app.model.gang import Gang
from app.model.ids import GroupKey, QueueName
from app.model.job import Template
from app.model.pod import QUEUE_ANNOTATION
from app.model.snapshot import MemberPlace, QueueUsage
from app.model.workload import Namespace, PodGroup, PriorityClass


class Registry:
    """Groups by key; ``pending`` want planning, ``reserved`` have room kept for them."""

    outlook: int = 0
    """Counts changes that may help groups that were set aside."""

    def __init__(self, node_usage: NodeUsage, *, default_queue: QueueName) -> None:
        self.default_queue = default_queue
        self.groups: dict[GroupKey, Group] = {}
        self.pending: dict[GroupKey, Group] = {}
        self.reserved: dict[GroupKey, Group] = {}
        self.aside: dict[GroupKey, Group] = {}
        """Groups that want planning, and that no end of other pods helps."""
        self.classes: dict[str, PriorityClass] = {}
        self.templates: dict[str, Mapping[str, Template]] = {}
        self.foreign_members = ForeignMembers()
        self.by_owner: dict[str, dict[GroupKey, Group]] = {}
        """The groups whose PodGroups have an owner, by its UID."""
        self.signals = Signals()
        self.namespaces: dict[str, Namespace] = {}
        self.namespaces_heard_of: set[str] = set()
        """Those, the ones that are gone, and the ones of which only pods were seen so far."""
        self._by_namespace: dict[str, dict[GroupKey, Group]] = {}
        """The groups there, be it known or not."""
        self._node_usage = node_usage
        self._grown = False
        node_usage.grown = self._widen
        self._unviewed: dict[GroupKey, Group] = {}
        self._is_behind = False
        """Whether one of these is no single pod, or is other than just on its way."""
        self._views = GangViews()
        self._limited: set[QueueName] = set()
        self._looking: set[GroupKey] = set()
        """Groups that look at the places of others: while there are any, all tell theirs."""
        self._parts: dict[GroupKey, Part] = {}
        self._sums = QueueSums()

    def open(self, key: GroupKey, *, solo: bool) -> Group:
        """The group of that key, made when there is none."""
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key=key, solo=solo, default_queue=self.default_queue)
            group.namespace_queue = self.queue_of(group.namespace)
            self.namespaces_heard_of.add(group.namespace)
            group.foreign = self.foreign_members.count(key)
            self._by_namespace.setdefault(group.namespace, {})[key] = group
        return group

    def in_namespace(self, namespace: str) -> Mapping[GroupKey, Group]:
        """The groups of a namespace."""
        return self._by_namespace.get(namespace, {})

    def of_pod(self, namespace: str, name: str) -> Group | None:
        """The group of the pod of that name; None: there is no such pod of ours."""
        for group in self.in_namespace(namespace).values():
            if any(member.pod.name == name for member in group.members.values()):
                return group
        return None

    def count_foreign(self, keys: Iterable[GroupKey]) -> None:
        """Other schedulers have bound pods of these groups, or some of those are gone."""
        for key in keys:
            self.signals.note_group(key)
            group, count = self.groups.get(key), self.foreign_members.count(key)
            if group is not None and count > group.foreign:
                group.foreign = count
                self.changed(group)

    def set_namespace(self, name: str, namespace: Namespace | None) -> list[Group]:
        """Add, replace or forget (None) one: it may name the queue of pods that stand alone.

        Returns the groups that are in another one by that, or can be planned only from now on.
        """
        before = self.queue_of(name)
        if namespace is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = namespace
            self.namespaces_heard_of.add(name)
        queue = self.queue_of(name)
        return [] if queue == before else self._follow_queue(name, queue)

    def queue_of(self, namespace: str) -> QueueName | None:
        """The queue that a namespace names, if any; None: the namespace is not known."""
        known = self.namespaces.get(namespace)
        return QueueName(known.annotations.get(QUEUE_ANNOTATION, "")) if known else None

    def _follow_queue(self, namespace: str, queue: QueueName | None) -> list[Group]:
        there = list(self._by_namespace.get(namespace, {}).values())
        before = [(group.queue, group.known) for group in there]
        for group, (was, _) in zip(there, before, strict=True):
            group.namespace_queue = queue
            self.moved(group, was)
        return [g for g, was in zip(there, before, strict=True) if (g.queue, g.known) != was]

    def specify(self, group: Group, pod_group: PodGroup | None) -> None:
        """Let ``group`` be what ``pod_group`` says, its roles as the owner of that describes them.

        The caller says that it changed.
        """
        self._disown(group)
        before = group.queue
        group.follow(pod_group)
        self.moved(group, before)
        owner = pod_group.owner_uid if pod_group is not None else ""
        group.templates = self.templates.get(owner, {})
        if owner:
            self.by_owner.setdefault(owner, {})[group.key] = group
        affinity = pod_group.affinity if pod_group is not None else None
        self._note_looking(group.key, affinity is not None and bool(affinity.of_groups))

    def _note_looking(self, key: GroupKey, looks: bool) -> None:
        before = bool(self._looking)
        (self._looking.add if looks else self._looking.discard)(key)
        if bool(self._looking) is not before:
            self._unviewed.update(self.groups)
            self._is_behind = True

    def moved(self, group: Group, before: QueueName) -> None:
        """Note that what the group holds may count for another queue than ``before``."""
        self.signals.note_overfull(when=bool(group.counted.held) and group.queue != before)

    def _disown(self, group: Group) -> None:
        owner = group.pod_group.owner_uid if group.pod_group is not None else ""
        owned = self.by_owner.get(owner, {})
        owned.pop(group.key, None)
        if not owned:
            self.by_owner.pop(owner, None)

    def changed(self, group: Group, *, replan: bool = True, asks_alike: bool = False) -> None:
        """File ``group`` anew after a change; forget it when nothing is left of it.

        ``replan``: a group may be placed now that could not before (this one, by what it newly
        wants, or others, by what it gave back). ``asks_alike``: it fits where it did before.
        """
        key = group.key
        self.signals.note_group(key)
        if not asks_alike:
            group.version += 1
            self._take_up(group)
        wanting = not group.empty and group.wants_planning and key not in self.aside
        if replan and wanting:
            self.signals.note_dirty()
        elif replan:
            self.signals.note_freed()
        if group.empty:
            self._forget(group)
            return
        self._unviewed[key] = group
        self._is_behind |= not self._is_simple(group)
        file_under(self.pending, key, group, wanted=wanting)
        file_under(self.reserved, key, group, wanted=group.has_reservations)

    def set_aside(self, group: Group) -> None:
        """Take ``group`` out of planning, and its claim with it, until :meth:`look_again`."""
        key = group.key
        if self.pending.pop(key, None) is None:
            return
        self.aside[key] = group
        self.signals.note_freed(when=not group.doubtful)
        group.set_aside = self._is_behind = True
        self._unviewed[key] = group

    def look_again(self) -> None:
        """Something changed that may help groups that were set aside: they are planned again."""
        self.outlook += 1
        self.signals.note_dirty(when=bool(self.aside))
        for key, group in self.aside.items():
            group.set_aside, group.doubtful = False, True
            self._unviewed[key] = group
            file_under(self.pending, key, group, wanted=group.wants_planning)
        self._is_behind |= bool(self.aside)
        self.aside.clear()

    def _take_up(self, group: Group) -> None:
        """Let ``group`` be one that may run, as far as is known."""
        group.set_aside = group.doubtful = False
        self.aside.pop(group.key, None)

    def set_class(self, priority_class: PriorityClass) -> None:
        """Add or replace a PriorityClass; every group's priority is looked up again."""
        self.classes[priority_class.name] = priority_class
        self._all_changed()

    def drop_class(self, name: str) -> None:
        """Forget a PriorityClass."""
        if self.classes.pop(name, None) is not None:
            self._all_changed()

    def set_template(self, owner: str, roles: Mapping[str, Template]) -> None:
        """Each role's pods as the vcjob of UID ``owner`` describes them; empty: forget.

        Templates are planned with before a pod has one, and may ask for resources that are not
        known so far. A job is written at each step of its pods, which mostly says nothing of them.
        """
        if self.templates.get(owner, {}) == roles:
            return
        for template in roles.values():
            self._node_usage.vector(template.shape.requests)
        if roles:
            self.templates[owner] = roles
        else:
            self.templates.pop(owner, None)
        for group in list(self.by_owner.get(owner, {}).values()):
            group.templates = roles
            self.changed(group)

    def refresh(self) -> GangViews:
        """Bring views and sums up to date; returns the views."""
        if self._grown:
            self._recount()
        for key, group in self._unviewed.items():
            group.note_reached()
            before, view = self._views.all.get(key), self._view(group)
            if before is not None and not _counts_alike(before, view):
                for uid in group.members:
                    self._node_usage.tell(uid)
            self._views.put(view, pending=key in self.pending, places=self.places(group))
            self._forget_part(key)
            part = self._parts[key] = part_of(view)
            self._sums.put(part)
        self._unviewed.clear()
        self._is_behind = False
        return self._views

    def usage(self) -> Mapping[QueueName, QueueUsage]:
        """What the groups of each queue amount to, up to date."""
        self.refresh()
        return self._sums.usage()

    def usage_but_for_pods_alone(self) -> Mapping[QueueName, QueueUsage]:
        """What the groups of each queue amount to, but for single pods of late.

        It may lack what single pods ask for and hold since a while. What these hold shows in node
        usage, and those that want some are pending; those that wait for anything else, or are of
        another queue than before, are counted. To count them all takes as long as to give one of
        them a place.
        """
        return self.usage() if self._is_behind else self._sums.usage()

    def view(self, key: GroupKey) -> Gang | None:
        """The planner's view of one group."""
        return self.refresh().all.get(key)

    def _view(self, group: Group) -> Gang:
        return gang_view(group, vector=self._node_usage.vector, classes=self.classes)

    def places(self, group: Group) -> tuple[MemberPlace, ...] | None:
        """Where members of ``group`` are, if that matters; else None."""
        of_group = group.pod_group
        tells = of_group is not None and (
            of_group.looks_at_network
            or of_group.affinity is not None
            or bool(self._looking)
            or topology_of(group) is not None
            or tells_tasks_apart(of_group.annotations)
        )
        if tells or group.queue in self._limited:
            return places_of(group, self._node_usage.vector)
        return None

    def limit_by_node_groups(self, queue: QueueName, *, limited: bool) -> None:
        """Note whether ``queue`` has limits per node group: then its groups tell their places."""
        if (queue in self._limited) is limited:
            return
        (self._limited.add if limited else self._limited.discard)(queue)
        for key, group in self.groups.items():
            if group.queue == queue:
                self._unviewed[key] = group
                self._is_behind = True

    def _forget(self, group: Group) -> None:
        for table in (self.groups, self._unviewed, self.pending, self.reserved, self.aside):
            table.pop(group.key, None)
        there = self._by_namespace[group.namespace]
        del there[group.key]
        if not there:
            del self._by_namespace[group.namespace]
        self._views.drop(group.key)
        self._forget_part(group.key)
        self._note_looking(group.key, False)

    def _all_changed(self) -> None:
        for group in list(self.groups.values()):
            self.changed(group)

    def _widen(self) -> None:
        """Follow the grown axis: members are compared with node usage, so they change at once."""
        self._grown = True
        for group in self.groups.values():
            for member in group.members.values():
                member.task = task_of(member.pod, self._node_usage.vector)

    def _recount(self) -> None:
        """Sums and views are made anew together: all of them are as long as the axis was."""
        self._grown = False
        self._sums.clear()
        self._parts.clear()
        self._unviewed = dict(self.groups)

    def _is_simple(self, group: Group) -> bool:
        """Whether the group is a single pod, behind no gate, that counts for the queue that it did.

        Of one that was not counted so far it shows only where it waits or has room.
        """
        if not (group.solo and group.known) or len(group.members) != 1:
            return False
        [member] = group.members.values()
        part = self._parts.get(group.key)
        if part is None:
            return member.kind is MemberState.WAITING or member.kind in PLACED_KINDS
        return member.kind is not MemberState.GATED and part[0] == group.queue

    def _forget_part(self, key: GroupKey) -> None:
        part = self._parts.pop(key, None)
        if part is not None:
            self._sums.take(part)


def _counts_alike(before: Gang, now: Gang) -> bool:
    """Whether members count for the same as before."""
    return before.queue == now.queue and before.sub_groups == now.sub_groups
