"""What would help, by the reason why something waits.

The advice follows from the sentence of the reason, which is the same in the conditions and from the
extender. So a user with few rights gets the same advice.
"""

import re
from collections.abc import Mapping
from typing import Final

from app.core.texts import ONE_BY_ONE, never_of
from app.model.reason import GUARANTEE, MEMBERS_MISSING, SCHEDULER, Never

_NEXT: Final[Mapping[str, str]] = {
    "QueueMissing": "create the queue, or name another one",
    "QueueNotOpen": "open the queue: pumice queue operate --action open --name {queue}",
    "QueueNotLeaf": "name one of the child queues of that queue",
    "QueueTreeInvalid": "mend the parents of the queue",
    "QueueQuota": "wait for jobs of {limiting} to end, or raise its capability",
    "QueueRoom": "wait for jobs of {limiting} to end, {guarantees}or add nodes",
    "QueueOverused": "wait for jobs of the queue to end, or raise what it deserves",
    "ClusterOverused": "wait for running jobs to end, or add nodes",
    "ResourceQuota": "raise the ResourceQuota of the namespace",
    "NotEnoughResources": "wait for running jobs to end, or ask for less per pod",
    "NoNodeFits": "compare node selectors, tolerations and requests with the nodes",
    "NodeGroup": "compare the affinity of {limiting} and its limits per node group with the label "
    "volcano.sh/nodegroup-name of the nodes",
    "NodeLoad": "wait until nodes are less busy, or raise the thresholds of the plugin usage",
    "NumaTopology": "wait for pods with whole cpus of their own to end, ask for fewer cpus per "
    "container, or compare the topology policy of the task with those of the kubelets "
    "(kubectl get numatopologies --output=yaml)",
    "Devices": "wait for pods with devices to end, ask for less of each, or compare the types and "
    "UUIDs that the annotations of the pod name with what the nodes list (docs/devices.md)",
    "Volumes": "compare the claims of the pod with what there is "
    "(kubectl get pvc,pv,storageclass,csinode), "
    "or wait for pods with volumes to end (docs/volumes.md)",
    "HttpExtender": "see what the server of the plugin extender says, and whether it answers "
    "(/readyz of the extender tells; docs/extender-plugin.md)",
    "DeviceClaims": "wait for pods with devices to end, or compare what the claims ask for with "
    "kubectl get resourceslices --output=yaml (docs/dra.md)",
    "NoDomain": "wait for jobs in the domain named to end, or allow a higher tier "
    "(networkTopology.highestTierAllowed)",
    "TopologyAffinity": "wait for the groups named to end or to come, or ask for less in "
    "topologyAffinity (preferred in place of required, another tier)",
    "Vetoed": "see in the events of the pods which filter of kube-scheduler refuses; "
    "Pumice tries these nodes again by itself, within a minute (--veto-time)",
    "SchedulerRefuses": "mend what kube-scheduler says of the pod; "
    "kube-scheduler tries the pod again by itself",
    "InPreBind": "see in the events of the pod's claims why there is no volume or device yet; "
    "Pumice binds the pod by itself once there is one",
    "NotAdmitted": "wait for the next cycle, or see that volcano-scheduler.conf has the actions "
    "enqueue, allocate and backfill",
    "CoolingDown": "wait, Pumice plans the group again by itself; "
    "see in the events of the pods why they were not bound",
    "Collecting": "wait, Pumice keeps what comes free until the whole group fits",
    "Pipelined": "wait, Pumice binds the group by itself when these pods have gone; "
    "pumice explain names them and tells which rule let them go",
    "PlanningFailed": "tell the operator of Pumice: the log of the extender has the error; Pumice "
    "tries again by itself some times, and whenever the group or the configuration changes",
    "QueueOrder": "wait for the earlier group of the queue, or set its dequeueStrategy to traverse",
    "StandsBack": "wait, the group named goes first; Pumice gives this one what is left, or what "
    "comes free, by itself",
    "NotEnoughTasks": "create the missing pods, or lower minMember",
    "NotEnoughPodsOfTask": "create the missing pods, or lower minAvailable of the task",
    "Gated": "remove the scheduling gates of other controllers from the pods",
    "PodGroupMissing": "create the PodGroup that the pods name",
    "FailedCreate": "mend what refuses the pods, as the message says: a ResourceQuota, a policy, "
    "a webhook or a field of the pod template; the controllers try again by themselves",
    "EarlierPods": "wait, Pumice creates the pods when those are gone; kubectl describe pod tells "
    "what keeps one of them",
    "SchedulingGated": "see that the extender runs and that its /readyz answers: it opens the gate "
    "of pods that have a place, and says of the others why they wait",
    "NoScheduler": "see that a kube-scheduler with a profile of that name runs, and that all pods "
    "of the group have that schedulerName",
}
_GOING: Final = (
    "wait for pods of {limiting} to end (some are terminating already), or raise its capability"
)
_INSTEAD: Final[Mapping[Never, str]] = {
    Never.QUEUE: "raise the capability of {limiting}, or ask for less",
    Never.GUARANTEES: "{guarantees}add nodes, or ask for less",
    Never.NAMESPACE: "raise the ResourceQuota of the namespace, or ask for less",
    Never.CLUSTER: "add nodes, or ask for less",
    Never.ABSENT: "add nodes that have the resource (a device plugin lists it there), "
    "or ask for another one",
    Never.NODES: "add a larger node, or ask for less per pod",
    Never.DOMAINS: "allow a higher tier (networkTopology.highestTierAllowed), or ask for less",
    Never.RULED_OUT: "compare node selectors, affinity and tolerations with the nodes",
}
_NO_END_HELPS: Final = "; no end of other jobs is enough"
_MADE_FOR_PODS: Final = (
    "see in the events of its pods why the controllers do not make it, and that they run"
)
_OF_OWNER: Final = re.compile(r": waiting for the pod group of \S+ \S+ to exist$")
_AT_ONCE: Final = (
    "make the StatefulSet anew with podManagementPolicy: Parallel, "
    "or lower scheduling.volcano.sh/group-min-member"
)
_TERMINATING: Final = re.compile(r"\bterminating\b")
_LIMITING: Final = re.compile(r"\bqueue (\S+): ")
_TAKEN: Final = "set schedulerName in the template of its pods: they are those of {schedulers}"
_SCHEDULERS: Final = re.compile(rf"\b({SCHEDULER} \S+) \(")
_GUARANTEES: Final = re.compile(rf"\b{GUARANTEE} (queue \S+) \(")


def next_step(reason: str, summary: str, *, queue: str) -> str:
    """What to do about the reason, empty where that is unknown; ``queue`` is the group's queue."""
    if reason == "PodGroupMissing" and _OF_OWNER.search(summary):
        return _MADE_FOR_PODS
    schedulers = _SCHEDULERS.findall(summary) if reason in MEMBERS_MISSING else ()
    if schedulers:
        return _TAKEN.format(schedulers=" and ".join(schedulers))
    if ONE_BY_ONE in summary:
        return _AT_ONCE
    never = never_of(summary)
    step = _waiting(reason, summary) if never is None else _INSTEAD[never] + _NO_END_HELPS
    return step.format(
        queue=queue, limiting=_limiting(summary, queue), guarantees=_guarantees(summary)
    )


def _waiting(reason: str, summary: str) -> str:
    if reason == "QueueQuota" and _TERMINATING.search(summary):
        return _GOING
    return _NEXT.get(reason, "")


def _limiting(summary: str, queue: str) -> str:
    """The queue whose limit is meant: in a tree it may be one above."""
    named = _LIMITING.search(summary)
    return f"queue {named[1]}" if named and named[1] != queue else "the queue"


def _guarantees(summary: str) -> str:
    holders = " and ".join(_GUARANTEES.findall(summary))
    return f"lower the guarantee of {holders}, " if holders else ""
