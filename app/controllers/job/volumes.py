"""The volumes of a job: claims of its own, or claims that exist, mounted into every container.

One that names no claim and describes none is scratch room of each pod, as jobs of Volcano's first
releases have it (admission refuses new ones, as Volcano does today).

Names that Volcano draws by lot are drawn here from the job's UID, so that a second try draws the
same: a claim is never made twice. A drawn claim name is written back to the spec before the claim
is made.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.controllers.job.view import Job
from app.wire import unstructured
from app.wire.unstructured import Object

_DRAWN: Final = 12
_LONGEST_LABEL: Final = 63


def resource_key(claim: str) -> str:
    """The claim's key in ``status.controlledResources``."""
    return f"volume-pvc-{claim}"


def claim_names(job: Job) -> list[str]:
    """The claims of the job, drawn where the spec names none."""
    return [name for name in _claim_names(job) if name]


def named_volumes(job: Job) -> list[Object] | None:
    """``spec.volumes`` with every claim named; None when they all are."""
    if all(volume.get("volumeClaimName") or _is_scratch(volume) for volume in job.volumes):
        return None
    return [
        {**volume, "volumeClaimName": name} if name else dict(volume)
        for volume, name in zip(job.volumes, _claim_names(job), strict=True)
    ]


def claims(job: Job) -> Iterator[tuple[str, Object | None]]:
    """The name of each claim, and the claim to make where the job makes it."""
    for volume, name in zip(job.volumes, _claim_names(job), strict=True):
        wanted = volume.get("volumeClaim")
        if name:
            yield name, None if wanted is None else _claim(job, name, wanted)


def mount(job: Job, spec: dict[str, Any]) -> None:
    """Add the job's volumes to a pod spec."""
    seen: set[str] = set()
    for at, (volume, claim) in enumerate(zip(job.volumes, _claim_names(job), strict=True)):
        if claim and claim in seen:
            continue
        seen.add(claim)
        drawn = _draw(job, f"volume{at}")
        label = job.key.name.replace(".", "-")
        name = f"{label[: _LONGEST_LABEL - _DRAWN - 1]}-{drawn}"
        kind = {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, **kind}]
        point = {"name": name, "mountPath": volume.get("mountPath")}
        spec["containers"] = [
            {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), point]}
            for container in spec.get("containers") or ()
        ]


def _claim_names(job: Job) -> list[str]:
    """The claim of each volume; empty for scratch room."""
    return [
        ""
        if _is_scratch(volume)
        else str(volume.get("volumeClaimName") or "")
        or f"{job.key.name}-pvc-{_draw(job, f'claim{at}')}"
        for at, volume in enumerate(job.volumes)
    ]


def _is_scratch(volume: Mapping[str, Any]) -> bool:
    return not volume.get("volumeClaimName") and volume.get("volumeClaim") is None


def _claim(job: Job, name: str, spec: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": job.key.namespace,
            "ownerReferences": [unstructured.controlled_by(job.item)],
        },
        "spec": spec,
    }


def _draw(job: Job, what: str) -> str:
    return hashlib.sha256(f"{job.uid}/{what}".encode()).hexdigest()[:_DRAWN]
