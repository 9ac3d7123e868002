"""A big cluster as its API server would list it, and what happens in it: bytes, made beforehand.

Nodes are nearly full but for a few free ones. Half of the pods are ours, in gangs that run; the
others belong to Deployments. Some gangs wait: those that fit on the free nodes, and more that do
not fit anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

Json = dict[str, Any]

GANG = 20
NAMESPACE = "default"
FREE_NODES = 100
RUNNING_CPU, WAITING_CPU = "3", "6"
"""Nine or ten running pods on a node of 32 cores leave too little for one that waits."""
CREATED = "2026-11-20T08:00:00Z"
STARTED = "2026-11-20T08:00:05Z"

encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Place:
    """What differs between two pods: who made it, how far it is, how much it asks for."""

    name: str
    gang: str = ""
    """Empty: a pod of a Deployment, for the default scheduler."""
    node: str = ""
    phase: str = "Pending"
    cpu: str = RUNNING_CPU
    gate: str = ""
    version: int = 1

    @property
    def uid(self) -> str:
        return str(uuid5(NAMESPACE_URL, self.name))


def node_name(index: int) -> str:
    return f"node-{index:05d}.cluster.internal"


def node(index: int, *, version: int = 1) -> bytes:
    """A node of 32 cores as its kubelet keeps it."""
    name = node_name(index)
    room = {
        "cpu": "32",
        "memory": "131072Mi",
        "pods": "110",
        "ephemeral-storage": "95551679124",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
    }
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"Kubelet{kind}",
            "message": f"kubelet says {kind}",
            "lastHeartbeatTime": f"2026-11-20T{version % 24:02d}:00:00Z",
            "lastTransitionTime": CREATED,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {
            "names": [f"registry.cluster.internal/team-{n}/app@sha256:{n:064x}", f"app-{n}:v1"],
            "sizeBytes": 50_000_000 + n,
        }
        for n in range(8)
    ]
    return encode(
        {
            "metadata": {
                "name": name,
                "uid": f"node-uid-{index}",
                "resourceVersion": str(version),
                "creationTimestamp": CREATED,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/os": "linux",
                    "node.kubernetes.io/instance-type": "m32",
                    "topology.kubernetes.io/region": "here",
                    "topology.kubernetes.io/zone": f"zone-{index % 3}",
                },
                "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            },
            "spec": {"podCIDR": f"10.{index % 250}.0.0/24", "providerID": f"cloud:///{name}"},
            "status": {
                "capacity": room,
                "allocatable": room,
                "conditions": conditions,
                "addresses": [{"type": "Hostname", "address": name}],
                "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Linux", "machineID": name},
                "images": images,
            },
        }
    )


def pod(place: Place, *, restarts: int = 0) -> bytes:
    """A pod with what the API server and a kubelet add to it."""
    return encode(
        {
            "metadata": _pod_metadata(place),
            "spec": _pod_spec(place),
            "status": _pod_status(place, restarts),
        }
    )


def _pod_metadata(place: Place) -> Json:
    owner = place.gang or place.name.rpartition("-")[0]
    kind = ("batch.volcano.sh/v1alpha1", "Job") if place.gang else ("apps/v1", "ReplicaSet")
    labels = {"app": owner, "pod-template-hash": owner[-10:], "team": "research"}
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"}
    if place.gang:
        annotations |= {
            "scheduling.k8s.io/group-name": place.gang,
            "volcano.sh/task-spec": "worker",
            "volcano.sh/job-name": place.gang,
            "volcano.sh/queue-name": "default",
        }
    return {
        "name": place.name,
        "generateName": f"{owner}-",
        "namespace": NAMESPACE,
        "uid": place.uid,
        "resourceVersion": str(place.version),
        "generation": 1,
        "creationTimestamp": CREATED,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [
            {
                "apiVersion": kind[0],
                "kind": kind[1],
                "name": owner,
                "uid": f"uid-of-{owner}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def _pod_spec(place: Place) -> Json:
    token = f"kube-api-access-{place.uid[-5:]}"
    spec: Json = {
        "volumes": [
            {
                "name": token,
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt"}},
                    ],
                    "defaultMode": 420,
                },
            }
        ],
        "containers": [
            {
                "name": "main",
                "image": f"app-{len(place.gang) % 8}:v1",
                "command": ["python", "-m", "train", "--rank", place.name.rpartition("-")[2]],
                "env": [
                    {"name": "RANK", "value": place.name.rpartition("-")[2]},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "MASTER_ADDR", "value": f"{place.gang}-0.svc"},
                ],
                "resources": {
                    "requests": {"cpu": place.cpu, "memory": "1Gi"},
                    "limits": {"memory": "1Gi"},
                },
                "volumeMounts": [
                    {"name": token, "mountPath": "/var/run/secrets", "readOnly": True}
                ],
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
            }
        ],
        "restartPolicy": "Never" if place.gang else "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "securityContext": {},
        "schedulerName": "volcano" if place.gang else "default-scheduler",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    if place.node:
        spec["nodeName"] = place.node
    if place.gate:
        spec["schedulingGates"] = [{"name": place.gate}]
    return spec


def _pod_status(place: Place, restarts: int) -> Json:
    if place.phase == "Pending":
        return {"phase": "Pending", "qosClass": "Burstable"}
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": STARTED}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    container = {
        "name": "main",
        "state": {"running": {"startedAt": STARTED}},
        "ready": True,
        "restartCount": restarts,
        "image": "app:v1",
        "imageID": f"registry.cluster.internal/app@sha256:{1:064x}",
        "containerID": f"containerd://{place.uid}",
        "started": True,
    }
    return {
        "phase": place.phase,
        "conditions": conditions,
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "startTime": STARTED,
        "containerStatuses": [container],
        "qosClass": "Burstable",
    }


def group(name: str, *, running: int, phase: str = "Running", version: int = 1) -> bytes:
    """A PodGroup whose status is what Pumice would have written."""
    conditions = [
        {
            "type": "Scheduled",
            "status": "True",
            "reason": "tasks in gang are ready to be scheduled",
            "transitionID": "1",
            "lastTransitionTime": STARTED,
        },
        {
            "type": "Reserved",
            "status": "True",
            "reason": "Placed",
            "transitionID": "1",
            "lastTransitionTime": STARTED,
        },
    ]
    return encode(
        {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": f"uid-of-group-{name}",
                "resourceVersion": str(version),
                "generation": 1,
                "creationTimestamp": CREATED,
            },
            "spec": {"minMember": GANG, "queue": "default", "minTaskMember": {"worker": GANG}},
            "status": {
                "phase": phase,
                "running": running,
                "conditions": conditions if running else [],
            },
        }
    )


def queue(name: str) -> bytes:
    """An open queue."""
    return encode(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
            "spec": {"weight": 1, "reclaimable": name != "root"},
            "status": {"state": "Open"},
        }
    )


@dataclass(frozen=True, slots=True)
class Crowd:
    """How much of everything there is."""

    nodes: int
    pods: int

    def __post_init__(self) -> None:
        if not 9 <= self.running / (self.nodes - FREE_NODES) <= 10:
            raise ValueError("there must be 9 to 10 running pods for each node that is not free")

    @property
    def waiting_gangs(self) -> int:
        """As many that fit as that do not."""
        return 2 * self.fitting_gangs

    @property
    def fitting_gangs(self) -> int:
        """Five pods fill a free node."""
        return FREE_NODES * 5 // GANG

    @property
    def running(self) -> int:
        return self.pods - self.waiting_gangs * GANG

    @property
    def running_gangs(self) -> int:
        return self.running // 2 // GANG

    def node_of(self, index: int) -> str:
        """Where the running pod of that number is."""
        return node_name(FREE_NODES + index % (self.nodes - FREE_NODES))

    def places(self) -> Iterator[Place]:
        """All pods: of running gangs, of Deployments, of waiting gangs."""
        ours = self.running_gangs * GANG
        for index in range(self.running):
            owner, rank = divmod(index, GANG)
            mine = index < ours
            name = f"{'train' if mine else 'web'}-{owner:05d}"
            yield Place(
                f"{name}-{rank}",
                gang=name if mine else "",
                node=self.node_of(index),
                phase="Running",
            )
        for gang in range(self.waiting_gangs):
            for rank in range(GANG):
                name = f"wait-{gang:05d}"
                yield Place(f"{name}-{rank}", gang=name, cpu=WAITING_CPU)

    def listed(self) -> dict[str, list[bytes]]:
        """Every object by kind; pods of ours apart."""
        groups = [group(f"train-{n:05d}", running=GANG) for n in range(self.running_gangs)]
        groups += [
            group(f"wait-{n:05d}", running=0, phase="Inqueue") for n in range(self.waiting_gangs)
        ]
        return {
            "nodes": [node(index) for index in range(self.nodes)],
            "pods of ours": [pod(place) for place in self.places() if place.gang],
            "pods of others": [pod(place) for place in self.places() if not place.gang],
            "podgroups": groups,
            "queues": [queue("root"), queue("default")],
        }
