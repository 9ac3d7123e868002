"""Volume claims that pods wait for: kube-scheduler often does not say which one it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.model.reason import Cause
from app.wire.unstructured import Object, name, spec, status

OF_VOLUMES = frozenset(
    {Cause.SCHEDULER_REFUSES, Cause.VETOED, Cause.VOLUMES, Cause.IN_PREBIND, "Unschedulable"}
)
"""Reasons that a claim may be behind."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that pods name; ``item`` None: it does not exist."""

    name: str
    item: Object | None

    @property
    def is_bound(self) -> bool:
        """Whether the claim has its volume."""
        return status(self.item or {}).get("phase") == "Bound"


def claimed(pods: Sequence[Object]) -> list[str]:
    """The names of the claims that ``pods`` use, each once."""
    return list(dict.fromkeys(each for pod in pods for each in _of_pod(pod)))


def advice(claims: Sequence[Claim]) -> str:
    """What to do about the first claim that has no volume; empty: each has one."""
    waiting = next((claim for claim in claims if not claim.is_bound), None)
    if waiting is None:
        return ""
    if waiting.item is None:
        return f"create the PersistentVolumeClaim {waiting.name}, which the pods name"
    kind = spec(waiting.item).get("storageClassName")
    of_class = f" of storage class {kind}" if kind else ""
    return (
        f"see why claim {waiting.name} gets no volume{of_class}: "
        f"kubectl describe persistentvolumeclaim {waiting.name}"
    )


def _of_pod(pod: Object) -> Iterator[str]:
    for volume in spec(pod).get("volumes") or ():
        named: Mapping[str, str] = volume.get("persistentVolumeClaim") or {}
        if named.get("claimName"):
            yield named["claimName"]
        elif volume.get("ephemeral"):
            yield f"{name(pod)}-{volume['name']}"
