"""Refusals in words: one sentence with its numbers for people, one constant per cause for Filter.

Every new text that Filter answers with costs the stock scheduler a PATCH of the pod, so
:func:`filter_text` never has a number in it; the numbers are in :func:`describe`.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from app.kit.quantities import amount_text
from app.model.amounts import PODS, Amounts
from app.model.conditions import BORROWS
from app.model.ids import CLUSTER
from app.model.reason import (
    Cause,
    Closeness,
    Holder,
    NearestDomain,
    Never,
    NoDomain,
    NoVictims,
    Refusal,
    Shortfall,
)

_NO_HYPER_NODES = "the cluster has no HyperNodes yet"

_FILTER: Mapping[Cause, str] = {
    Cause.NOT_ENOUGH_TASKS: "waiting for the other members of the group",
    Cause.NOT_ENOUGH_PODS_OF_TASK: "waiting for more members of a task of the group",
    Cause.NOT_ENOUGH_RESOURCES: "waiting for room for the whole group",
    Cause.QUEUE_MISSING: "waiting for the group's queue to exist",
    Cause.QUEUE_CLOSED: "waiting for the group's queue to open",
    Cause.QUEUE_NOT_LEAF: "the group's queue has child queues and takes no groups",
    Cause.QUEUE_BROKEN: "waiting for the tree of queues to be mended",
    Cause.QUEUE_QUOTA: "waiting for the queue's quota",
    Cause.QUEUE_ROOM: "waiting for what the cluster leaves to the queue",
    Cause.QUEUE_OVERUSED: "waiting for the queue's share of the cluster",
    Cause.CLUSTER_OVERUSED: "waiting for room in the cluster",
    Cause.NAMESPACE_QUOTA: "waiting for the namespace's resource quota",
    Cause.NO_NODE_FITS: "waiting for a node that fits",
    Cause.NODE_GROUP: "waiting for a node of the queue's node groups",
    Cause.NODE_LOAD: "waiting for a node that is less busy",
    Cause.NUMA: "waiting for free cpus on NUMA nodes as the kubelet wants them",
    Cause.DEVICES: "waiting for GPUs or other devices that it may share",
    Cause.VOLUMES: "waiting for a node that can have the volumes of its claims",
    Cause.HTTP_EXTENDER: "waiting for the server that the plugin extender asks",
    Cause.DEVICE_CLAIMS: "waiting for devices that its ResourceClaims ask for",
    Cause.VETOED: "refused by another filter, waiting for another node",
    Cause.SCHEDULER_REFUSES: "waiting until kube-scheduler's own filters let all members through",
    Cause.IN_PREBIND: "waiting for volumes or devices of a member",
    Cause.GATED: "waiting for a scheduling gate to be removed",
    Cause.NOT_ADMITTED: "waiting for the group to be admitted",
    Cause.GROUP_MISSING: "waiting for the pod group to exist",
    Cause.COOLING_DOWN: "waiting after a reservation that was not used",
    Cause.COLLECTING: "waiting for more room than is kept for the group so far",
    Cause.QUEUE_ORDER: "waiting for an earlier group of the queue",
    Cause.STANDS_BACK: "waiting for a higher group that evicts pods for the rest of its room",
    Cause.PIPELINED: "waiting for evicted pods to go",
    Cause.PLANNING_FAILED: "waiting since planning failed at the group",
    Cause.NO_DOMAIN: "waiting for a domain of the network that has room for the group",
    Cause.TOPOLOGY_AFFINITY: "waiting for a domain of the network beside or away from other groups",
}

_SUBJECT: Mapping[Cause, str] = {
    Cause.NOT_ENOUGH_TASKS: "group",
    Cause.NOT_ENOUGH_PODS_OF_TASK: "task",
    Cause.NOT_ENOUGH_RESOURCES: "group",
    Cause.COLLECTING: "collecting for group",
    Cause.GATED: "group",
    Cause.NO_DOMAIN: "group",
    Cause.QUEUE_MISSING: "queue",
    Cause.QUEUE_CLOSED: "queue",
    Cause.QUEUE_NOT_LEAF: "queue",
    Cause.QUEUE_BROKEN: "queue",
    Cause.QUEUE_QUOTA: "queue",
    Cause.QUEUE_ROOM: "queue",
    Cause.QUEUE_OVERUSED: "share of queue",
    Cause.NAMESPACE_QUOTA: "resource quota of namespace",
}
"""What ``where`` is the name of; it stands alone for the other causes."""

_STATEMENT: Mapping[Cause, str] = {
    Cause.QUEUE_MISSING: "does not exist",
    Cause.QUEUE_CLOSED: "is not open",
    Cause.QUEUE_OVERUSED: "is used up",
}
"""What to say of the subject where there are no numbers."""

NEVER: Mapping[Never, str] = {
    Never.QUEUE: "never: more than the queue may hold",
    Never.GUARANTEES: "never: more than the cluster can leave to the queue",
    Never.NAMESPACE: "never: more than the namespace may hold",
    Never.CLUSTER: "never: more than the whole cluster has",
    Never.ABSENT: "never: no node has that resource",
    Never.NODES: "never: more than any node has that the pod may go to",
    Never.RULED_OUT: "never: selector, affinity or taints rule out every node",
    Never.DOMAINS: "never: more than any domain has that the group may be in",
}
"""How a sentence ends that tells of a request which cannot be met whatever ends."""

ONE_BY_ONE = (
    "a StatefulSet makes a pod when the one before it is ready, "
    "unless its podManagementPolicy is Parallel"
)
"""Why a gang of a StatefulSet may never come together."""

_AVAILABLE: Mapping[Cause, str] = {
    Cause.NOT_ENOUGH_TASKS: "present",
    Cause.NOT_ENOUGH_PODS_OF_TASK: "present",
    Cause.GATED: "ungated",
}


def filter_text(cause: Cause) -> str:
    """What Filter answers for ``cause``: always the same text."""
    return _FILTER[cause]


def is_filter_text(message: str) -> bool:
    """Whether kube-scheduler's ``message`` repeats what Filter answered."""
    return any(text in message for text in _FILTER.values())


def available_word(cause: str) -> str:
    """What the number is called that ``asked`` is compared with, by the cause of the refusal."""
    return next((word for known, word in _AVAILABLE.items() if known == cause), "free")


def never_of(sentence: str) -> Never | None:
    """What a sentence of :func:`describe` ends with, if it tells of a request that is too large."""
    return next((never for never, text in NEVER.items() if sentence.endswith(text)), None)


def describe(refusal: Refusal) -> str:
    """The refusal in a sentence: where, what was asked, what is free, the holders of the rest."""
    where = refusal.where
    subject = f"{_SUBJECT.get(refusal.cause, '')} {where}".strip() if where else ""
    parts: list[str] = []
    if refusal.shortfalls:
        if refusal.cause is Cause.COLLECTING:
            numbers = ", ".join(_collected(lack) for lack in refusal.shortfalls)
            numbers += f" kept since {instant_text(refusal.since)}"
        else:
            word = available_word(refusal.cause)
            numbers = ", ".join(_shortfall(lack, word) for lack in refusal.shortfalls)
        parts.append(f"{subject}: {numbers}" if subject else numbers)
    if refusal.nodes or refusal.total_nodes:
        parts.append(_nodes(refusal))
    if refusal.domain is not None:
        said = _no_domain(refusal.domain)
        parts.append(said if not subject or parts else f"{subject}: {said}")
    if not parts:
        parts.append(_plain(refusal, subject))
    if refusal.holders:
        parts.append("held by " + ", ".join(_holder(h) for h in refusal.holders))
    told = [each for each in refusal.no_victims if each.candidates or each.bound]
    parts += map(_no_victims, told or refusal.no_victims[:1])
    if refusal.note:
        parts.append(refusal.note)
    if refusal.never is not None:
        parts.append(NEVER[refusal.never])
    return "; ".join(parts)


def closeness_text(found: Closeness, holders: Sequence[Holder] = ()) -> str:
    """``spine (tier 2); tier 1 could hold all: rack-7 lacks nvidia.com/gpu 3, held by …``."""
    where = f"{found.domain} (tier {found.tier})"
    best = found.nearest
    if best is None:
        return where
    if best.takes >= found.members:
        return f"{where}; by now {best.name} has room for all"
    by = ", held by " + ", ".join(_holder(each) for each in holders) if holders else ""
    return f"{where}; tier {found.lowest} could hold all: {_nearest(best, found.members)}{by}"


def loan_text(borrowed_from: str, amounts: Amounts) -> str:
    """What a gang holds beyond the share of its queue: ``borrows cpu 8 of queue b``."""
    held = ", ".join(f"{name} {amount_text(name, amount)}" for name, amount in amounts if amount)
    return f"{BORROWS} {held} of queue {borrowed_from}" if borrowed_from else f"{BORROWS} {held}"


def instant_text(at: float) -> str:
    """Seconds since the epoch as RFC 3339 text."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain(refusal: Refusal, subject: str) -> str:
    if refusal.detail:
        return refusal.detail
    statement = _STATEMENT.get(refusal.cause)
    if statement and refusal.where:
        return f"{subject} {statement}"
    return f"{subject}: {filter_text(refusal.cause)}" if subject else filter_text(refusal.cause)


def _collected(lack: Shortfall) -> str:
    asked, kept = amount_text(lack.resource, lack.asked), amount_text(lack.resource, lack.free)
    return f"{lack.resource} {kept} of {asked}"


def _shortfall(lack: Shortfall, available: str) -> str:
    asked, free = amount_text(lack.resource, lack.asked), amount_text(lack.resource, lack.free)
    limit = "" if lack.limit is None else f" of {amount_text(lack.resource, lack.limit)}"
    said = f"{lack.resource} asked {asked}, {available} {free}{limit}"
    return f"{said}{_stretched(lack)}{_going(lack)}"


def _stretched(lack: Shortfall) -> str:
    if lack.stretched_from is None:
        return ""
    real, idle = (amount_text(lack.resource, each) for each in (lack.stretched_from, lack.idle))
    return f" ({real} stretched by overcommit, {idle} idle)"


def _going(lack: Shortfall) -> str:
    if not lack.terminating:
        return ""
    amount = amount_text(lack.resource, lack.terminating)
    if lack.limit is None:
        return f" ({amount} terminating)"
    return f", of which {amount} {'is' if amount == '1' else 'are'} terminating"


def _nodes(refusal: Refusal) -> str:
    said = f"0/{refusal.total_nodes} nodes are available"
    if not refusal.nodes:
        return said
    ordered = sorted(refusal.nodes, key=lambda count: (-count.nodes, count.text))
    verdicts = ", ".join(f"{count.nodes} {count.text}" for count in ordered)
    of_all = sum(count.nodes for count in ordered) == refusal.total_nodes
    return f"{said}: {verdicts}" if of_all else verdicts


def _no_domain(found: NoDomain) -> str:
    """``no domain of tier <= 1 has room for 8 pods of cpu 8; rack-7 lacks cpu 3``."""
    if found.tier is None:
        known = ", ".join(found.named_tiers)
        others = f"its tiers are {known}" if known else "none of its tiers has a name"
        others = _NO_HYPER_NODES if found.is_bare else others
        return f"the network has no tier {found.tier_name}; {others}"
    tier = f"tier <= {found.tier}" + (f" ({found.tier_name})" if found.tier_name else "")
    if found.placed_members_are_too_far_apart:
        return f"no domain of {tier} has the nodes of all its running members"
    if found.nearest is None:
        why = f"; {_NO_HYPER_NODES}" if found.is_bare else ""
        return f"there is no domain of {tier}{why}"
    pods = "1 pod" if found.asked == 1 else f"{found.asked} pods"
    of = f" of {_amounts(found.each)}" if found.alike else ""
    best = found.nearest
    if best.name == CLUSTER:
        parts = f"{best.parts} of {found.parts} sub-groups of {pods}{of}"
        return f"domains of {tier} {_would_have(best)} room for {parts}{_if_empty(best)}"
    if best.parts is not None:
        parts = f"{best.parts} of {found.parts} sub-groups"
        told = f"{best.name} {_would_have(best)} room for {parts}{_if_empty(best)}"
    else:
        told = _nearest(best, found.asked)
    return f"no domain of {tier} has room for {pods}{of}; {told}"


def _would_have(best: NearestDomain) -> str:
    plural = "have" if best.name == CLUSTER else "has"
    return "would have" if best.empty else plural


def _if_empty(best: NearestDomain) -> str:
    return " if nothing ran there" if best.empty else ""


def _nearest(best: NearestDomain, asked: int) -> str:
    """``rack-7 lacks cpu 3``, or that its room lies in pieces or behind rules."""
    lacks = _amounts(best.lacks)
    if best.empty:
        said = f"would lack {lacks}" if lacks else f"would have room for {best.takes}"
        return f"{best.name} {said} if nothing ran there"
    if lacks:
        return f"{best.name} lacks {lacks}"
    if best.takes >= asked:
        return f"the members do not fit side by side in {best.name}"
    if best.takes:
        return f"{best.name} has nodes for {best.takes} of {asked}"
    return f"no node of {best.name} takes any of them"


def _amounts(amounts: Amounts) -> str:
    """``nvidia.com/gpu 8, cpu 4``; pods only where there is nothing else."""
    told = [(name, amount) for name, amount in amounts if amount and name != PODS]
    return ", ".join(f"{n} {amount_text(n, a)}" for n, a in told or amounts if a)


def _no_victims(found: NoVictims) -> str:
    """``preempt: 12 candidates: 7 same priority, 2 protected by a PodDisruptionBudget``."""
    pods = "1 candidate" if found.candidates == 1 else f"{found.candidates} candidates"
    spared = ", ".join(f"{each.pods} {each.reason}" for each in found.spared)
    said = f"{found.action}: {pods}: {spared}" if spared else f"{found.action}: {pods}"
    return f"{said}; {found.bound}" if found.bound else said


def _holder(holder: Holder) -> str:
    return f"{holder.who} ({holder.resource} {amount_text(holder.resource, holder.amount)})"
