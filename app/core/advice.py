"""Single changes that might let a waiting gang run now: of its own request, its queue, its limits.

These are candidates only: each is to be held against the planner before it is told. The order is
that of how much of the request a change gives up, the least first.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from app.core.device_changes import device_changes
from app.core.plugins.resourcequota import exceeded, without_pods_of
from app.core.simulation import NO_CHANGE, ClusterChange
from app.kit.quantities import amount_text
from app.model.amounts import PODS, amounts
from app.model.device_families import DeviceSetting
from app.model.gang import Gang, Task
from app.model.ids import NO_NODE, ROOT_QUEUE, QueueName
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import ResourceAxis, Vector
from app.model.shape import PodShape, Toleration
from app.model.snapshot import Snapshot
from app.model.topology import TopologyMode

MOST_QUEUES = 16
"""Other queues that are tried at most."""
MOST_ENDING = 3
"""Groups whose end is tried at most."""
_ABOUT_NODES = frozenset(
    {Cause.DEVICES, Cause.NO_NODE_FITS, Cause.NOT_ENOUGH_RESOURCES, Cause.NO_DOMAIN}
)
_OF_STATE = "node.kubernetes.io/"


class ChangeKind(StrEnum):
    """What is changed."""

    FEWER = "fewerMembers"
    SMALLER = "smallerRequest"
    QUEUE = "otherQueue"
    LIMIT = "higherLimit"
    TIER = "higherTier"
    SELECTOR = "fewerNodeRules"
    NODES = "uncordon"
    TOLERATION = "toleration"
    DEVICES = "fewerDeviceRules"
    END = "endOfAnother"


@dataclass(frozen=True, slots=True, eq=False)
class SingleChange:
    """``text`` is what to do; ``gang`` is as it would be then.

    Of changes that lower the same resource (``lowers``) the first one that helps is enough.
    """

    kind: ChangeKind
    text: str
    gang: Gang
    of_cluster: ClusterChange = NO_CHANGE
    lowers: str = ""


def candidates(
    snapshot: Snapshot, gang: Gang, refusal: Refusal, devices: DeviceSetting
) -> Iterator[SingleChange]:
    """Changes to be tried for ``gang``, which waits because of ``refusal``.

    ``snapshot`` tells what runs where the refusal is by a ResourceQuota. ``devices`` says which
    devices count.
    """
    yield from _fewer_of_a_role(gang, refusal)
    yield from _higher_limits(snapshot, gang, refusal)
    yield from _larger_quotas(snapshot, gang, refusal)
    yield from _freed_quotas(snapshot, gang, refusal)
    yield from _other_devices(snapshot, gang, refusal, devices)
    yield from _uncordoned(snapshot, gang)
    yield from _higher_tiers(snapshot, gang)
    yield from _tolerations(snapshot, gang)
    yield from _fewer_rules(gang)
    yield from _smaller(snapshot, gang, refusal)
    yield from _other_queues(snapshot, gang)


def with_minimum(gang: Gang, least: int) -> SingleChange | None:
    """``gang`` with a smaller minimum; None where its parts do not allow that.

    Roles give up members in the order of their names, the last first.
    """
    if gang.sub_groups or not 0 < least < gang.min_member:
        return None
    roles = dict(gang.role_minimum)
    for role in sorted(roles, reverse=True):
        roles[role] -= min(roles[role], max(sum(roles.values()) - least, 0))
    share = least / gang.min_member
    asked = None if gang.min_request is None else (gang.min_request * share).astype(np.int64)
    made = replace(gang, min_member=least, role_minimum=roles, min_request=asked)
    text = f"run with {least} members at the least instead of {gang.min_member}"
    return SingleChange(ChangeKind.FEWER, text, made)


def _higher_limits(snapshot: Snapshot, gang: Gang, refusal: Refusal) -> Iterator[SingleChange]:
    """The capability that refuses it, raised by what is lacking."""
    queue = snapshot.queues.get(QueueName(refusal.where))
    if queue is None or not refusal.shortfalls:
        return
    limits, texts = dict(queue.capability), []
    for lack in refusal.shortfalls:
        had = limits.get(lack.resource)
        if had is not None:
            limits[lack.resource] = had + lack.asked - lack.free
            texts.append(f"{lack.resource} {amount_text(lack.resource, limits[lack.resource])}")
    if texts:
        text = f"raise the capability of queue {queue.name} to {', '.join(texts)}"
        raised = replace(queue, capability=amounts(limits))
        yield SingleChange(ChangeKind.LIMIT, text, gang, ClusterChange({queue.name: raised}))


def _fewer_of_a_role(gang: Gang, refusal: Refusal) -> Iterator[SingleChange]:
    """The role that lacks members asks for no more than there are."""
    role = refusal.where
    least = gang.role_minimum.get(role, 0)
    there = gang.role_valid.get(role, 0) - gang.role_slots.get(role, 0)
    if refusal.cause is not Cause.NOT_ENOUGH_PODS_OF_TASK or least <= there:
        return
    roles = {**gang.role_minimum, role: there}
    made = replace(gang, role_minimum=roles)
    text = f"run with {there} members of task {role} at the least instead of {least}"
    yield SingleChange(ChangeKind.FEWER, text, made)


def _larger_quotas(snapshot: Snapshot, gang: Gang, refusal: Refusal) -> Iterator[SingleChange]:
    """The ResourceQuotas of its namespace that refuse it, raised by what is lacking."""
    over = exceeded(snapshot, gang) if refusal.cause is Cause.NAMESPACE_QUOTA else []
    larger, texts = [], []
    for quota, lines in over:
        raised = {each.line.resource: each.line.hard + each.more for each in lines}
        told = ", ".join(f"{n} {amount_text(n, most)}" for n, most in sorted(raised.items()))
        larger.append(replace(quota, hard=amounts({**dict(quota.hard), **raised})))
        texts.append(f"the ResourceQuota {quota.name} of namespace {gang.namespace} to {told}")
    if larger:
        change = ClusterChange(quotas=tuple(larger))
        yield SingleChange(ChangeKind.LIMIT, f"raise {' and '.join(texts)}", gang, change)


def _freed_quotas(snapshot: Snapshot, gang: Gang, refusal: Refusal) -> Iterator[SingleChange]:
    """The end of a group that has enough of the ResourceQuotas, those that have least first."""
    over = exceeded(snapshot, gang) if refusal.cause is Cause.NAMESPACE_QUOTA else []
    if not over:
        return
    quota, lines = over[0]
    resource = lines[0].line.resource
    used = dict(quota.used).get(resource, 0)
    enough: list[tuple[int, str, ClusterChange, str]] = []
    for other in snapshot.gangs.values():
        if other.namespace != gang.namespace or other.key == gang.key:
            continue
        change = ClusterChange(
            quotas=without_pods_of(snapshot, other), ended=frozenset({other.key})
        )
        left = next(each for each in change.quotas if each.name == quota.name)
        held = used - dict(left.used).get(resource, 0)
        if held >= lines[0].more:
            enough.append((held, other.key, change, other.called))
    for held, _, change, called in sorted(enough, key=lambda each: each[:2])[:MOST_ENDING]:
        has = f"{resource} {amount_text(resource, held)} of the ResourceQuota {quota.name}"
        yield SingleChange(
            ChangeKind.END, f"wait for the end of {called}, which has {has}", gang, change
        )


def _other_devices(
    snapshot: Snapshot, gang: Gang, refusal: Refusal, setting: DeviceSetting
) -> Iterator[SingleChange]:
    """Less of the devices that its pods share, or other ones."""
    if refusal.cause not in _ABOUT_NODES:
        return
    for change in device_changes(snapshot, gang, setting):
        kind = ChangeKind.SMALLER if change.lowers else ChangeKind.DEVICES
        made = with_shapes(gang, change.changed, snapshot.axis)
        yield SingleChange(kind, change.text, made, lowers=change.lowers)


def _uncordoned(snapshot: Snapshot, gang: Gang) -> Iterator[SingleChange]:
    """One cordoned node, the largest first, and all of them."""
    table = snapshot.table
    rows = sorted(table.cordoned, key=lambda row: (-int(table.allocatable[row][0]), row))
    names = [table.nodes[row].name for row in rows]
    for some in (names[:1], names) if len(names) > 1 else (names,):
        if some:
            told = some[0] if len(some) == 1 else f"all {len(some)} cordoned nodes"
            change = ClusterChange(uncordoned=frozenset(some))
            yield SingleChange(ChangeKind.NODES, f"uncordon {told}", gang, change)


def _higher_tiers(snapshot: Snapshot, gang: Gang) -> Iterator[SingleChange]:
    asked = gang.topology
    if asked is None or not asked.is_hard:
        return
    tiers = () if snapshot.domains is None else sorted(set(snapshot.domains.tiers[:-1].tolist()))
    for tier in tiers:
        if asked.highest_tier is None or tier > asked.highest_tier:
            wider = replace(asked, highest_tier=tier, highest_tier_name="")
            text = f"allow tier {tier} (networkTopology.highestTierAllowed)"
            yield SingleChange(ChangeKind.TIER, text, replace(gang, topology=wider))
    soft = replace(asked, mode=TopologyMode.SOFT)
    text = "ask for the network topology in mode soft"
    yield SingleChange(ChangeKind.TIER, text, replace(gang, topology=soft))


def _tolerations(snapshot: Snapshot, gang: Gang) -> Iterator[SingleChange]:
    taints = {
        (taint.key, taint.value)
        for node in snapshot.table.nodes
        if node.ready and not node.unschedulable
        for taint in node.taints
        if not taint.key.startswith(_OF_STATE)
    }
    for key, value in sorted(taints):
        toleration = Toleration(key=key, value=value)

        def tolerating(shape: PodShape, toleration: Toleration = toleration) -> PodShape:
            return replace(shape, tolerations=(*shape.tolerations, toleration))

        said = f"{key}={value}" if value else key
        text = f"tolerate the taint {said}"
        made = with_shapes(gang, tolerating, snapshot.axis)
        yield SingleChange(ChangeKind.TOLERATION, text, made)


def _fewer_rules(gang: Gang) -> Iterator[SingleChange]:
    shapes = _shapes_of(gang)
    for key, value in sorted({pair for shape in shapes for pair in shape.node_selector}):

        def unselected(shape: PodShape, key: str = key) -> PodShape:
            left = tuple(pair for pair in shape.node_selector if pair[0] != key)
            return replace(shape, node_selector=left)

        text = f"leave out the node selector {key}={value}"
        yield SingleChange(ChangeKind.SELECTOR, text, with_shapes(gang, unselected))
    if any(task.pinned for task in gang.waiting):
        free = tuple(replace(task, pinned=NO_NODE) for task in gang.waiting)
        text = "let its pods go to other nodes than the one that they name"
        yield SingleChange(ChangeKind.SELECTOR, text, replace(gang, waiting=free))
    if any(shape.required_terms is not None for shape in shapes):
        made = with_shapes(gang, lambda shape: replace(shape, required_terms=None))
        text = "leave out the required node affinity"
        yield SingleChange(ChangeKind.SELECTOR, text, made)
    for field, text in (
        ("pod_anti_affinity", "leave out the required pod anti-affinity"),
        ("pod_affinity", "leave out the required pod affinity"),
        ("spread", "leave out the topology spread constraints"),
        ("host_ports", "leave out the host ports"),
    ):
        if any(getattr(shape, field) for shape in shapes):

            def without(shape: PodShape, field: str = field) -> PodShape:
                nothing: Any = {field: ()}
                return replace(shape, **nothing)

            yield SingleChange(ChangeKind.SELECTOR, text, with_shapes(gang, without))


def _smaller(snapshot: Snapshot, gang: Gang, refusal: Refusal) -> Iterator[SingleChange]:
    """Each member asks for no more of what is short than some node has free."""
    for lack in refusal.shortfalls:
        if lack.resource == PODS or not 0 < lack.free < lack.asked:
            continue

        def smaller(shape: PodShape, lack: Shortfall = lack) -> PodShape:
            asked = dict(shape.requests)
            if lack.resource in asked:
                asked[lack.resource] = min(asked[lack.resource], lack.free)
            return replace(shape, requests=amounts(asked))

        text = f"ask for {lack.resource} {amount_text(lack.resource, lack.free)} per pod"
        made = with_shapes(gang, smaller, snapshot.axis)
        yield SingleChange(ChangeKind.SMALLER, text, made)


def _other_queues(snapshot: Snapshot, gang: Gang) -> Iterator[SingleChange]:
    parents = {queue.parent for queue in snapshot.queues.values()}
    others = [
        queue.name
        for queue in snapshot.queues.values()
        if queue.name not in {gang.queue, ROOT_QUEUE, *parents} and queue.is_open
    ]
    for name in sorted(others)[:MOST_QUEUES]:
        text = f"submit it to queue {name}"
        yield SingleChange(ChangeKind.QUEUE, text, replace(gang, queue=name))


def with_shapes(
    gang: Gang, changed: Callable[[PodShape], PodShape], axis: ResourceAxis | None = None
) -> Gang:
    """``gang`` with other shapes of its waiting members and of those to come.

    ``axis`` where requests change too.
    """
    made = {id(shape): changed(shape) for shape in _shapes_of(gang)}

    def changed_task(task: Task) -> Task:
        shape = made[id(task.shape)]
        request = task.request if axis is None else axis.vector(shape.requests)
        return replace(task, shape=shape, request=request)

    waiting = tuple(map(changed_task, gang.waiting))
    saved = np.zeros_like(gang.request)
    for before, after in zip(gang.waiting, waiting, strict=True):
        saved += before.request - after.request
    asked = gang.min_request
    if asked is not None and axis is not None:
        asked = np.maximum(asked - _saved_by_minimum(gang, made, axis), 0)
    return replace(
        gang,
        waiting=waiting,
        queue_first=tuple(map(changed_task, gang.queue_first)),
        role_shapes={role: made[id(shape)] for role, shape in gang.role_shapes.items()},
        request=gang.request - saved,
        min_request=asked,
    )


def _saved_by_minimum(gang: Gang, made: Mapping[int, PodShape], axis: ResourceAxis) -> Vector:
    """What the members of the minimum ask for less, shape ``(R,)``."""
    saved = np.zeros(len(axis), dtype=np.int64)
    shapes = gang.role_shapes
    least = dict(gang.role_minimum) or dict.fromkeys(list(shapes)[:1], gang.min_member)
    for role, count in least.items():
        if role in shapes:
            before, after = shapes[role], made[id(shapes[role])]
            saved += count * (axis.vector(before.requests) - axis.vector(after.requests))
    return saved


def _shapes_of(gang: Gang) -> list[PodShape]:
    shapes = {id(task.shape): task.shape for task in gang.waiting}
    shapes |= {id(shape): shape for shape in gang.role_shapes.values()}
    return list(shapes.values())
