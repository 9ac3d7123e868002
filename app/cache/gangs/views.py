"""The planner's picture of a group, made from its running counts."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from app.cache.gangs.groups import Group
from app.cache.gangs.members import (
    PLACED_KINDS,
    READY_KINDS,
    SCHEDULED_KINDS,
    VALID_KINDS,
    MemberState,
)
from app.cache.gangs.missing import awaits_nobody, hidden_by_role
from app.cache.nodes.usage import read_only
from app.model.amounts import Amounts, amounts, is_best_effort, is_of_class
from app.model.gang import Counts, Gang, Task
from app.model.ids import NodeName, PodUid
from app.model.integers import int32
from app.model.parts import NO_SUB_GROUP, SubGroup, by_sub_group
from app.model.pod import Pod
from app.model.resources import Vector
from app.model.snapshot import MemberPlace
from app.model.topology import NetworkTopology, strictest
from app.model.workload import PriorityClass

ToVector = Callable[[Amounts], Vector]


def task_priority(pod: Pod) -> int:
    """A task's priority: the annotation, else the pod's (volcano.md §3.1).

    The API server gives every pod one, so no pod has Volcano's 1 for a pod without.
    """
    text = pod.annotations.get("volcano.sh/task-priority")
    said = int32(text) if text is not None else None
    return pod.priority if said is None else said


def task_of(pod: Pod, vector: ToVector) -> Task:
    """``pod`` as a task that wants a node."""
    return Task(
        uid=pod.uid,
        name=pod.name,
        role=pod.role,
        shape=pod.shape,
        request=vector(pod.shape.requests),
        priority=task_priority(pod),
        created=pod.created,
        best_effort=is_best_effort(pod.shape.requests),
        pinned=pod.pinned,
        nominated=pod.nominated,
        exchange=pod.exchange,
        queue_first=pod.queue_first,
        shown=pod.queue_first and not pod.gates,
        after=pod.after,
    )


def group_priority(group: Group, classes: Mapping[str, PriorityClass]) -> int:
    """Value of the PodGroup's priority class, else the cluster's default one, else 0."""
    if group.pod_group is None:
        return max((m.pod.priority for m in group.members.values()), default=0)
    priority_class = _class_of(group.pod_group.priority_class, classes)
    return priority_class.value if priority_class is not None else 0


def may_preempt(group: Group, classes: Mapping[str, PriorityClass]) -> bool:
    """Whether others may be evicted for ``group``.

    Not if its own class, a member that waits, or a template of a member to come says ``Never``.
    """
    named = [template.priority_class for template in group.templates.values()]
    if group.pod_group is not None:
        named.append(group.pod_group.priority_class)
    of_group = (_class_of(name, classes) for name in named)
    return (
        all(each is None or each.preempts for each in of_group)
        and all(template.preempts for template in group.templates.values())
        and all(member.pod.preempts for member in group.waiting.values())
    )


def _class_of(name: str, classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    """The class of that name, else the cluster's default one."""
    named = classes.get(name)
    return named or next((each for each in classes.values() if each.is_default), None)


def gang_view(group: Group, *, vector: ToVector, classes: Mapping[str, PriorityClass]) -> Gang:
    """``group`` as the planner sees it. Cost: the number of waiting members, not of all."""
    counted = group.counted
    allocated = _sum(counted.held, vector)
    gated = _sum(counted.gated, vector)
    waiting = tuple(member.task for member in group.waiting.values())
    wanted = _sum(counted.wanted, vector)
    # as a rule all of a gang wait or none do, so there is nothing to add up
    request = wanted if counted.wanted else allocated
    if counted.held and counted.wanted:
        request = allocated + wanted
    if counted.gated:
        request = request + gated
    pod_group = group.pod_group
    minimum = _minimum(group)
    counts = counts_of(group)
    owed = group.owed
    roles, parted = _roles(group), _parted(group)
    described = {role: template.shape for role, template in group.templates.items()}
    namespace, _, name = group.key.partition("/")
    return Gang(
        key=group.key,
        uid=pod_group.uid if pod_group else name.partition(":")[2],
        namespace=namespace,
        name=_name_alone(group) if group.solo else name,
        queue=group.queue,
        priority=group_priority(group, classes),
        created=_created(group),
        min_member=group.min_member,
        phase=group.phase,
        counts=counts,
        allocated=allocated,
        kept=_sum(counted.kept, vector),
        request=read_only(request),
        min_request=None if minimum is None else vector(minimum),
        min_limits=pod_group.min_limits if pod_group else (),
        gated_request=gated,
        releasing=_sum(counted.lingering, vector),
        waiting=waiting,
        queue_first=_queue_first(group, waiting),
        role_minimum=group.role_minimum,
        role_ready=roles.ready,
        role_valid=roles.valid,
        role_slots=roles.slots,
        role_hidden=hidden_by_role(group) if group.role_minimum else {},
        role_scheduled=roles.scheduled,
        role_shapes={**described, **group.role_shapes},
        role_replicas=_replicas(group),
        sub_groups=group.sub_groups,
        topology=topology_of(group),
        affinity=pod_group.affinity if pod_group else None,
        sub_group_of=parted.of,
        sub_group_ready=parted.ready,
        sub_group_valid=parted.valid,
        sub_group_scheduled=parted.scheduled,
        annotations=pod_group.annotations if pod_group else {},
        labels=pod_group.labels if pod_group else {},
        solo=group.solo,
        partial=bool(owed),
        owed=owed,
        reached=group.reached,
        cool_down_until=group.cool_down_until,
        collecting_since=group.collecting_since,
        refused_since=group.refused_since,
        given_up=awaits_nobody(group),
        set_aside=group.set_aside,
        unplaced_claim=bool(group.claim_since) and not counted.held,
        doubtful=group.doubtful,
        waits_for_nodes=_waits_for_nodes(group),
        version=group.version,
        unused=frozenset(group.unused),
        yields_until=group.yields_until,
        preempts=may_preempt(group, classes),
        ends_whole=pod_group is not None and pod_group.ends_whole,
        preemptable=pod_group.preemptable if pod_group else None,
    )


def places_of(group: Group, vector: ToVector) -> tuple[MemberPlace, ...]:
    """Where members and slots of ``group`` are that hold room. Cost: the number of all members."""
    held = [
        MemberPlace(
            member.charged_node,
            member.pod.role,
            vector(member.pod.shape.requests),
            member.part.sub_group,
        )
        for member in group.members.values()
        if member.kind in PLACED_KINDS
    ]
    held += [
        MemberPlace(slot.node, slot.role, vector(slot.request), slot.sub_group)
        for slot in group.slots.values()
    ]
    return tuple(held)


def nodes_of(group: Group) -> set[NodeName]:
    """The nodes on which members and slots of ``group`` hold room."""
    held = {each.charged_node for each in group.members.values() if each.kind in PLACED_KINDS}
    return held | {slot.node for slot in group.slots.values()}


def topology_of(group: Group) -> NetworkTopology | None:
    """What the group asks of the network: what its PodGroup says, else what its pods say.

    A PodGroup that says something of sub-groups has said it: what pods say does not count then.
    """
    if group.pod_group is None or group.pod_group.looks_at_network:
        return group.pod_group.topology if group.pod_group else None
    if not (group.counted.topologies or group.templates):
        return None
    to_come = (template.topology for template in group.templates.values())
    return strictest([*group.counted.topologies, *(each for each in to_come if each)])


def asks_like(group: Group, view: Gang) -> bool:
    """Whether ``view`` is an earlier one of the group, of the same queue and the same minimum."""
    return (
        (group.pod_group is None or group.pod_group.uid == view.uid)
        and group.queue == view.queue
        and group.min_member == view.min_member
        and group.role_minimum == view.role_minimum
        and group.sub_groups == view.sub_groups
        and topology_of(group) == view.topology
        and (group.pod_group.affinity if group.pod_group else None) == view.affinity
    )


def counts_of(group: Group) -> Counts:
    """The group's counts in the planner's terms."""
    counted, of = group.counted, group.counted.kinds
    return Counts(
        pending=of[MemberState.WAITING] + of[MemberState.GATED],
        placed=of[MemberState.PLACED],
        bound=of[MemberState.BOUND],
        running=of[MemberState.RUNNING],
        releasing=of[MemberState.RELEASING] + of[MemberState.RELEASING_PLACED],
        releasing_placed=of[MemberState.RELEASING_PLACED],
        succeeded=of[MemberState.SUCCEEDED],
        failed=of[MemberState.FAILED],
        unknown=of[MemberState.UNKNOWN],
        pending_best_effort=counted.best_effort_waiting,
        gated=of[MemberState.GATED],
        slots=len(group.slots),
        lost=counted.lost,
        foreign=group.foreign,
    )


def _waits_for_nodes(group: Group) -> bool:
    """Whether members that wait, or are to come, are to be seen by an autoscaler."""
    described = group.templates.values()
    return bool(group.counted.queue_first) or any(t.queue_first for t in described)


def _replicas(group: Group) -> dict[str, int]:
    told = ((role, template.replicas) for role, template in group.templates.items())
    return {role: replicas for role, replicas in told if replicas is not None}


def _queue_first(group: Group, waiting: tuple[Task, ...]) -> tuple[Task, ...]:
    return tuple(task for task in waiting if task.queue_first) if group.counted.queue_first else ()


def _name_alone(group: Group) -> str:
    """The name of a single pod's group: the pod's own; the key has its UID."""
    return next((m.pod.name for m in group.members.values()), "")


def _minimum(group: Group) -> Amounts | None:
    """The ``minResources`` of the group, with the devices that its members claim.

    Controllers work them out from manifests, which do not tell what is claimed. Where they name
    devices all the same, they are meant.
    """
    pod_group = group.pod_group
    if pod_group is None:
        return _solo_request(group)
    told = pod_group.min_resources
    if told is None or any(is_of_class(name) for name, _ in told):
        return told
    claimed = _claimed(group)
    return amounts({**dict(told), **claimed}) if claimed else told


def _claimed(group: Group) -> dict[str, int]:
    """The devices that members of the minimum claim, by class: of those that claim some, first."""
    found: dict[str, int] = {}
    left = group.min_member
    for requests in (group.counted.held, group.counted.wanted, group.counted.gated):
        for request, count in requests.items():
            devices = [each for each in request if is_of_class(each[0])]
            taken = min(count, left) if devices else 0
            left -= taken
            for name, amount in devices:
                found[name] = found.get(name, 0) + amount * taken
    return found


def _solo_request(group: Group) -> Amounts | None:
    """A single pod asks for itself, as the group made for a plain pod does (volcano.md §5.3).

    Pods whose PodGroup is gone claim nothing.
    """
    if not group.solo:
        return None
    return next((m.pod.shape.requests for m in group.members.values()), None)


def _created(group: Group) -> float:
    if group.pod_group is not None:
        return group.pod_group.created
    return min((m.pod.created for m in group.members.values()), default=0.0)


def _sum(requests: Mapping[Amounts, int], vector: ToVector) -> Vector:
    """The sum of the requests, shape ``(R,)``; read-only, and shared when it is one or none."""
    if len(requests) == 1:
        [(request, count)] = requests.items()
        return vector(request) if count == 1 else read_only(vector(request) * count)
    total = vector(())
    for request, count in requests.items():
        total = total + vector(request) * count
    return read_only(total)


class _Roles(NamedTuple):
    """How many members and slots each role has, as in :class:`Gang`."""

    ready: dict[str, int]
    valid: dict[str, int]
    scheduled: dict[str, int]
    slots: dict[str, int]


def _roles(group: Group) -> _Roles:
    found = _Roles({}, {}, {}, {})
    for (part, kind), count in group.counted.part_kinds.items():
        role = part.role
        if kind in READY_KINDS:
            found.ready[role] = found.ready.get(role, 0) + count
        if kind in VALID_KINDS:
            found.valid[role] = found.valid.get(role, 0) + count
        if kind in SCHEDULED_KINDS:
            found.scheduled[role] = found.scheduled.get(role, 0) + count
    for role, count in group.open_slots.counts().items():
        for counts in (found.ready, found.valid, found.slots):
            counts[role] = counts.get(role, 0) + count
    return found


class _SubGroups(NamedTuple):
    """The sub-groups of members, and how many members each has, as in :class:`Gang`."""

    of: Mapping[PodUid, SubGroup]
    ready: Mapping[SubGroup, int]
    valid: Mapping[SubGroup, int]
    scheduled: Mapping[SubGroup, int]


_UNPARTED = _SubGroups({}, {}, {}, {})


def _parted(group: Group) -> _SubGroups:
    if not group.sub_groups:
        return _UNPARTED
    of = {uid: member.part.sub_group for uid, member in group.waiting.items()}
    return _SubGroups(
        {uid: sub_group for uid, sub_group in of.items() if sub_group != NO_SUB_GROUP},
        by_sub_group(group.counted.parts(READY_KINDS)),
        by_sub_group(group.counted.parts(VALID_KINDS)),
        by_sub_group(group.counted.parts(SCHEDULED_KINDS)),
    )
