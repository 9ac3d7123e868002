"""The causes why a group waits, each with its meaning, a sentence as it is told, and what helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from app.cli.next_steps import next_step
from app.core.faults import PlanningFault
from app.core.texts import NEVER, describe, filter_text
from app.model.ids import GroupKey
from app.model.reason import (
    Cause,
    Holder,
    NearestDomain,
    Never,
    NodeCount,
    NoDomain,
    Refusal,
    Shortfall,
)
from tests.builders import make_amounts

_QUEUE: Final = "research"
_GROUP: Final = "default/training"
_JOB: Final = Holder("default/other", "cpu", 6000)
_CPU: Final = Shortfall("cpu", asked=8000, free=2000, limit=8000)


def _nodes(cause: Cause, *counts: NodeCount) -> Refusal:
    return Refusal(cause, where="worker", nodes=counts, total_nodes=sum(c.nodes for c in counts))


def _said(cause: Cause, detail: str) -> Refusal:
    return Refusal(cause, where=_GROUP, detail=detail)


_CASES: Final[Mapping[Cause, tuple[str, Refusal]]] = {
    Cause.NOT_ENOUGH_TASKS: (
        "Fewer pods of the group exist than its minimum needs (`minMember`, `minAvailable` of a "
        "job). Pods of another scheduler do not count; the sentence names that scheduler.",
        Refusal(
            Cause.NOT_ENOUGH_TASKS,
            where=_GROUP,
            shortfalls=(Shortfall("pods", asked=4, free=3),),
        ),
    ),
    Cause.NOT_ENOUGH_PODS_OF_TASK: (
        "One task of the job, or one role of the group, has fewer pods than its own minimum "
        "(`minTaskMember`, `minAvailable` of the task) needs.",
        Refusal(
            Cause.NOT_ENOUGH_PODS_OF_TASK,
            where="worker",
            shortfalls=(Shortfall("pods", asked=2, free=1),),
        ),
    ),
    Cause.NOT_ENOUGH_RESOURCES: (
        "The nodes that the pods may go to have too little free for the minimum of the group. The "
        "amounts are those of all members together; free room in pieces that are too small for one "
        "pod does not help.",
        Refusal(Cause.NOT_ENOUGH_RESOURCES, where=_GROUP, shortfalls=(_CPU,), holders=(_JOB,)),
    ),
    Cause.QUEUE_MISSING: (
        "No queue has the name that the group gives.",
        Refusal(Cause.QUEUE_MISSING, where=_QUEUE),
    ),
    Cause.QUEUE_CLOSED: (
        "The queue is closed or closing: it takes no new groups. Groups that run go on.",
        Refusal(Cause.QUEUE_CLOSED, where=_QUEUE),
    ),
    Cause.QUEUE_NOT_LEAF: (
        "The queue has child queues. In a tree only queues without children take groups.",
        _said(
            Cause.QUEUE_NOT_LEAF, f"queue {_QUEUE} has child queues: only leaf queues take groups"
        ),
    ),
    Cause.QUEUE_BROKEN: (
        "The tree of queues cannot be read: a parent is missing, or a queue is above itself.",
        Refusal(Cause.QUEUE_BROKEN, where=_QUEUE, detail=f"queue {_QUEUE} is its own ancestor"),
    ),
    Cause.QUEUE_QUOTA: (
        "The queue, or one above it, may not hold more: its `capability` is used up. Pods that are "
        "terminating count until they are gone.",
        Refusal(Cause.QUEUE_QUOTA, where=_QUEUE, shortfalls=(_CPU,), holders=(_JOB,)),
    ),
    Cause.QUEUE_ROOM: (
        "The capability of the queue is not in the way, but the cluster, less what other queues "
        "are guaranteed, leaves too little to the queue.",
        Refusal(
            Cause.QUEUE_ROOM,
            where=_QUEUE,
            shortfalls=(_CPU,),
            holders=(Holder("guarantee of queue online", "cpu", 6000),),
        ),
    ),
    Cause.QUEUE_OVERUSED: (
        "The queue holds what it deserves, and other queues need the rest of the cluster. See "
        "[Preemption and fairness](fairness.md).",
        Refusal(Cause.QUEUE_OVERUSED, where=_QUEUE),
    ),
    Cause.CLUSTER_OVERUSED: (
        "Groups that were admitted before claim the cluster already. The plugin `overcommit` "
        "bounds the sum of these claims.",
        Refusal(Cause.CLUSTER_OVERUSED, where="cluster", shortfalls=(_CPU,)),
    ),
    Cause.NAMESPACE_QUOTA: (
        "A ResourceQuota of the namespace does not allow the pods of the group.",
        Refusal(
            Cause.NAMESPACE_QUOTA,
            where="team",
            shortfalls=(Shortfall("requests.cpu", asked=8000, free=2000, limit=8000),),
        ),
    ),
    Cause.NO_NODE_FITS: (
        "No node passes all checks for a pod of the group. The sentence counts the nodes by what "
        "keeps the pod away.",
        _nodes(
            Cause.NO_NODE_FITS,
            NodeCount("Insufficient cpu", 3),
            NodeCount("node(s) had untolerated taint", 2),
        ),
    ),
    Cause.NODE_GROUP: (
        "The node groups of the queue, or its limits there, keep the pods from every node. See "
        "[Node groups](node-groups.md).",
        _nodes(Cause.NODE_GROUP, NodeCount("node does not satisfy the node group affinity", 5)),
    ),
    Cause.NODE_LOAD: (
        "Every node that would do is busier than the plugin `usage` allows. See "
        "[Busy nodes](usage.md).",
        _said(Cause.NODE_LOAD, "cpu load of at most 80 % allowed; the least is 95 %"),
    ),
    Cause.NUMA: (
        "The cpus of the pod have to be on few NUMA nodes, and no node has enough free cpus there. "
        "See [NUMA](numa.md).",
        _nodes(Cause.NUMA, NodeCount("container cannot be assigned by numa", 5)),
    ),
    Cause.DEVICES: (
        "No node has the devices free that the pod shares with others. See [Devices](devices.md).",
        _said(Cause.DEVICES, "8 GiB asked of a GPU; 3 GPUs have 4 GiB free, none more"),
    ),
    Cause.VOLUMES: (
        "No node can have the volumes of the pod. See [Volumes](volumes.md).",
        _said(Cause.VOLUMES, "node n1: 3 of 16 volumes of csi.example.com free; 4 asked"),
    ),
    Cause.HTTP_EXTENDER: (
        "The server that the plugin `extender` asks said no, or nothing yet. The sentence has the "
        "words of the server. See [A server that decides too](extender-plugin.md).",
        _nodes(
            Cause.HTTP_EXTENDER,
            NodeCount("node(s) the HTTP extender refuses", 3),
            NodeCount("node(s) the HTTP extender has not answered about", 2),
        ),
    ),
    Cause.DEVICE_CLAIMS: (
        "No node has the devices free that the ResourceClaims of the pod ask for. See "
        "[Claims of devices](dra.md).",
        _said(Cause.DEVICE_CLAIMS, "node n1: 2 devices of class gpu.example.com free; 4 asked"),
    ),
    Cause.VETOED: (
        "A filter of kube-scheduler, such as one for partitions of devices, refused the node that "
        "the planner had chosen, and no other node has room.",
        _nodes(
            Cause.VETOED,
            NodeCount("Insufficient cpu", 4),
            NodeCount("node(s) were refused by the scheduler's own filters", 1),
        ),
    ),
    Cause.SCHEDULER_REFUSES: (
        "kube-scheduler refuses a pod before it asks Pumice, because a volume claim is missing for "
        "instance. The sentence has the words of kube-scheduler.",
        _said(
            Cause.SCHEDULER_REFUSES,
            "kube-scheduler refuses pod default/training-worker-0: "
            'persistentvolumeclaim "data" not found',
        ),
    ),
    Cause.IN_PREBIND: (
        "A pod waits for its volumes or devices for longer than `--prebind-timeout`, so the room "
        "was given back.",
        Refusal(Cause.IN_PREBIND),
    ),
    Cause.GATED: (
        "Pods of the group stand behind a scheduling gate of another controller.",
        Refusal(Cause.GATED, where=_GROUP, shortfalls=(Shortfall("pods", asked=4, free=3),)),
    ),
    Cause.NOT_ADMITTED: (
        "The group was not admitted yet: its phase is still Pending.",
        Refusal(Cause.NOT_ADMITTED, where=_GROUP),
    ),
    Cause.GROUP_MISSING: (
        "The pods name a PodGroup that does not exist, or the controllers have not made the one of "
        "their owner yet.",
        Refusal(Cause.GROUP_MISSING, where=_GROUP),
    ),
    Cause.COOLING_DOWN: (
        "Room was kept for the group and not used in time. Other groups go first for a second, and "
        "for longer each time in a row, up to a minute.",
        Refusal(Cause.COOLING_DOWN, where=_GROUP),
    ),
    Cause.COLLECTING: (
        "The group has waited for long, so free room is kept for it. There is not enough yet.",
        Refusal(
            Cause.COLLECTING,
            where=_GROUP,
            shortfalls=(Shortfall("cpu", asked=8000, free=6000),),
            since=1_790_000_000.0,
        ),
    ),
    Cause.QUEUE_ORDER: (
        "The queue has `dequeueStrategy: fifo`, and an earlier group of it waits.",
        Refusal(
            Cause.QUEUE_ORDER,
            where=_QUEUE,
            detail=f"queue {_QUEUE} keeps the order of its groups: default/first is before it",
        ),
    ),
    Cause.STANDS_BACK: (
        "A higher group evicts pods, and needs what is free beside their room. It has a higher "
        "priority in the same queue, or its queue takes back what it deserves. See "
        "[Who stands back](fairness.md#who-stands-back).",
        Refusal(
            Cause.STANDS_BACK,
            where=f"group {_GROUP}",
            shortfalls=(Shortfall("cpu", asked=2000, free=0, limit=8000),),
            note="it stands back for default/first, which evicts 1 pod for the rest of its room",
        ),
    ),
    Cause.PIPELINED: (
        "Pods were evicted for the group. Its room is kept until they are gone.",
        _said(
            Cause.PIPELINED,
            "room is kept for the group; it waits for 1 pod to go: default/other-worker-0",
        ),
    ),
    Cause.PLANNING_FAILED: (
        "The planner, or a plugin of it, failed at this group by an error that it does not expect. "
        "All other groups are planned without it. It is tried again after a second, then each time "
        "after twice as long, ten times at most; then when the group or the configuration changes. "
        "A plugin that fails before any group is looked at keeps all groups from their places, "
        "unless it only says what is better; it is tried again in each cycle.",
        PlanningFault(group=GroupKey(_GROUP)).refusal,
    ),
    Cause.NO_DOMAIN: (
        "No domain of the network of an allowed tier has room for the whole group. See "
        "[Network topology](network-topology.md).",
        Refusal(
            Cause.NO_DOMAIN,
            where=_GROUP,
            domain=NoDomain(
                asked=8,
                each=make_amounts(cpu=8000),
                alike=True,
                tier=1,
                nearest=NearestDomain("rack-7", takes=6, lacks=make_amounts(cpu=16000)),
            ),
        ),
    ),
    Cause.TOPOLOGY_AFFINITY: (
        "What the group asks for in `topologyAffinity` keeps it from every node that has room. The "
        "sentence names the domains, and the groups that are there. See [Network "
        "topology](network-topology.md).",
        replace(
            _nodes(
                Cause.TOPOLOGY_AFFINITY,
                NodeCount("node(s) didn't match the group's podGroupAntiAffinity", 6),
            ),
            note="podGroupAntiAffinity: default/web has rack-1, rack-2 (2 of 2 domains)",
        ),
    ),
}


def sections() -> Iterator[str]:
    """One section for each cause: its meaning, what is told, and what helps."""
    for cause in sorted(Cause):
        meaning, refusal = _CASES[cause]
        sentence = describe(refusal)
        yield f"### {cause}"
        yield meaning
        yield f"* It says: `{sentence}`"
        yield f"* kube-scheduler is told: `{filter_text(cause)}`"
        yield f"* What helps: {next_step(cause, sentence, queue=_QUEUE)}."


def never() -> Iterator[str]:
    """One row for each end of a sentence that tells of what no end of other pods brings."""
    yield "| a sentence ends in | what helps |"
    yield "|---|---|"
    for each in Never:
        where = f"queue {_QUEUE}"
        step = next_step("", f"{where}: cpu asked 8, free 0; {NEVER[each]}", queue=_QUEUE)
        yield f"| `{NEVER[each]}` | {step} |"
