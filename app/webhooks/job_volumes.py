"""Volumes of a job: claims that are named, or made from a spec (volcano.md §6.2)."""

from collections.abc import Mapping
from typing import Any

from app.webhooks.findings import Findings, at
from app.webhooks.names import listed, subdomain_problems
from app.webhooks.reading import mapping, mappings, text

_EITHER_OR = (
    "conflict: If you want to use an existing PVC, just specify VolumeClaimName. "
    "If you want to create a new PVC, you do not need to specify VolumeClaimName."
)


def check_volumes(spec: Mapping[str, Any], findings: Findings) -> None:
    """``spec.volumes``."""
    seen: set[str] = set()
    for index, volume in enumerate(mappings(spec.get("volumes"))):
        path = at("spec.volumes", index)
        mount_path = text(volume.get("mountPath"))
        if not mount_path:
            findings.refuse(at(path, "mountPath"), "mountPath is required")
        elif ":" in mount_path:
            findings.refuse(at(path, "mountPath"), "mountPath must not contain ':'")
        elif mount_path in seen:
            findings.refuse(at(path, "mountPath"), f"duplicated mountPath: {mount_path}")
        seen.add(mount_path)
        _check_claim(volume, path, findings)


def _check_claim(volume: Mapping[str, Any], path: str, findings: Findings) -> None:
    name, claim = text(volume.get("volumeClaimName")), mapping(volume.get("volumeClaim"))
    if not name and not claim:
        findings.refuse(path, "either VolumeClaim or VolumeClaimName must be specified")
        return
    if name and claim:
        findings.refuse(path, _EITHER_OR)
    problems = subdomain_problems(name) if name else []
    if problems:
        where = at(path, "volumeClaimName")
        findings.refuse(where, f"invalid VolumeClaimName {name} : {listed(problems)}")
