"""The PodGroup of a pod that names none (volcano.md §5.3).

Pods of one controller share a group; a single pod has its own. How many must run together is said
by the owner, all else by the pod.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.controllers import inherited
from app.core.gangs.stranded import STRANDED_ACTION, STRANDED_AFTER
from app.core.protection.run_time import RUN_TIME
from app.model.amounts import amounts
from app.model.integers import int64
from app.wire import quantity
from app.wire.kinds import POD_GROUPS
from app.wire.objects.claims import claim
from app.wire.objects.owners import least_members
from app.wire.unstructured import (
    Key,
    Object,
    annotations,
    controlled_by,
    labels,
    metadata,
    namespace,
    owner_of,
    spec,
    uid,
)

GROUP: Final = "scheduling.k8s.io/group-name"
QUEUE: Final = "scheduling.volcano.sh/queue-name"
_OWNED_PREFIX: Final = "volcano.sh/"
_COPIED: Final = frozenset({STRANDED_AFTER, STRANDED_ACTION, RUN_TIME})
_MODE: Final = "volcano.sh/network-topology-mode"
_TIER: Final = "volcano.sh/network-topology-highest-tier"
_INHERITING: Final = frozenset(
    {
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
    }
)
_OF_ALL: Final = "deployment.kubernetes.io/desired-replicas"
"""How many pods a Deployment is to have, which it says of each of its ReplicaSets."""
_KEPT_BY_OTHERS: Final = ("subGroupPolicy", "queue")
"""What others may have said where the pod says nothing; admission knows the namespace's queue."""


def is_ours(pod: Object, schedulers: frozenset[str]) -> bool:
    """Whether one of ``schedulers`` places ``pod``."""
    return spec(pod).get("schedulerName") in schedulers


def wants_group(pod: Object, schedulers: frozenset[str]) -> bool:
    """Whether a group is to be made for ``pod``: it is ours, it is to run, it names none."""
    return (
        is_ours(pod, schedulers)
        and not annotations(pod).get(GROUP)
        and not metadata(pod).get("deletionTimestamp")
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    )


def key_for(pod: Object) -> Key:
    """Where the group of ``pod`` is."""
    owner = owner_of(pod)
    return key_of_owner(namespace(pod), owner.uid if owner else uid(pod))


def key_of_owner(in_namespace: str, owner_uid: str) -> Key:
    """Where the group of the pods of one controller is."""
    return Key(in_namespace, f"podgroup-{owner_uid}")


def group_for(pod: Object, owner: Object | None, *, inherit: bool) -> Object:
    """The PodGroup; ``owner`` is the controller where it could be read. DecodeError: bad requests.

    Without ``inherit`` the owner's annotations say nothing; with it, those of ``volcano.sh/`` and
    what it says of stranded gangs and of its run time are copied.
    """
    heard = owner if inherit else None
    least = min_member(heard)
    wanted: Object = {
        "minMember": least,
        "minResources": _times(pod, least),
        **({"queue": queue} if (queue := annotations(pod).get(QUEUE)) else {}),
        **({"priorityClassName": c} if (c := spec(pod).get("priorityClassName")) else {}),
        **_topology(annotations(pod)),
    }
    key = key_for(pod)
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "ownerReferences": _owners(pod),
            "annotations": _annotations(pod, heard),
            "labels": inherited.labels_of(labels(pod)),
        },
        "spec": wanted,
        "status": {"phase": "Pending"},
    }


def difference(stored: Object, wanted: Object) -> Object:
    """The merge patch that makes ``stored`` say what ``wanted`` does; empty: it does."""
    patch: Object = {}
    before, after = spec(stored), spec(wanted)
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    for key in before:
        if key not in after and key not in _KEPT_BY_OTHERS and before[key] is not None:
            changed[key] = None
    if changed:
        patch["spec"] = changed
    for part, read in (("annotations", annotations), ("labels", labels)):
        missing = {k: v for k, v in read(wanted).items() if read(stored).get(k) != v}
        if missing:
            patch.setdefault("metadata", {})[part] = missing
    return patch


def min_member(owner: Object | None) -> int:
    """What the owner's annotation says; 1 where it says nothing that can be used.

    Of a ReplicaSet that a rollout makes larger or smaller step by step it is not more than there
    are pods in the step: no further ones are made before these run, or made anew.
    """
    if owner is None:
        return 1
    least = least_members(annotations(owner))
    replicas = spec(owner).get("replicas") or 0
    of_all = int64(annotations(owner).get(_OF_ALL, "")) or 0
    return replicas if 0 < replicas < min(least, of_all) else least


def _times(pod: Object, count: int) -> dict[str, str]:
    one = claim(spec(pod))
    return quantity.texts(amounts({name: n * count for name, n in one.items()}))


def _owners(pod: Object) -> list[Object]:
    if owner_of(pod) is not None:
        return list(metadata(pod)["ownerReferences"])
    return [controlled_by(pod)]


def _annotations(pod: Object, owner: Object | None) -> dict[str, str]:
    found: dict[str, str] = {}
    if owner is not None and (owner.get("apiVersion"), owner.get("kind")) in _INHERITING:
        found = {k: v for k, v in annotations(owner).items() if _is_copied(k)}
    return found | inherited.annotations_of(annotations(pod))


def _is_copied(annotation: str) -> bool:
    return annotation.startswith(_OWNED_PREFIX) or annotation in _COPIED


def _topology(said: Mapping[str, str]) -> Object:
    mode, tier = said.get(_MODE), said.get(_TIER, "")
    if mode is None and not tier:
        return {}
    topology: dict[str, Any] = {"mode": "soft" if mode and mode.lower() == "soft" else "hard"}
    highest = int64(tier)
    if highest is not None and highest >= 0:
        topology["highestTierAllowed"] = highest
    return {"networkTopology": topology}
