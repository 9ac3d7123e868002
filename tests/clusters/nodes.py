"""Fake nodes: Node objects that are Ready and have room, with nothing behind them.

A node's status is accepted at creation, so a node costs one request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.clusters.client import ApiClient, Object
from tests.clusters.resources import NODES

_WORKERS = 16
_T = TypeVar("_T")
# The kubelet's heartbeat time is only shown, never compared, while the node lifecycle controller
# is out.
_HEARTBEAT = "2024-01-01T00:00:00Z"


def in_parallel(act: Callable[[_T], object], items: Iterable[_T]) -> None:
    """Call `act` for every item, a few at a time; the first failure is raised."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        for _ in pool.map(act, items):
            pass


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    extra: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
) -> Object:
    """Return a Ready Node; `extra` are further resources such as nvidia.com/gpu."""
    room = {"cpu": cpu, "memory": memory, "pods": str(pods), **(extra or {})}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": _HEARTBEAT,
        "lastTransitionTime": _HEARTBEAT,
    }
    fixed = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**fixed, **(labels or {})}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def names(count: int, *, prefix: str = "node") -> list[str]:
    """Return node-0, node-1, ... as `create` names them."""
    return [f"{prefix}-{index}" for index in range(count)]


def create(
    api: ApiClient,
    count: int,
    *,
    prefix: str = "node",
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    extra: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
) -> list[str]:
    """Create that many equal nodes and return their names."""
    made = names(count, prefix=prefix)

    def create_one(name: str) -> None:
        item = node(
            name,
            cpu=cpu,
            memory=memory,
            pods=pods,
            extra=extra,
            labels=labels,
            taints=taints,
        )
        api.create(item, resource=NODES)

    in_parallel(create_one, made)
    return made


def delete(api: ApiClient, which: Iterable[str]) -> None:
    """Delete the named nodes; one that is gone already is fine."""
    in_parallel(lambda name: api.delete(NODES, name), which)
