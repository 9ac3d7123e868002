"""Volumes of a job: claims that are named, or made from a spec (volcano.md §6.2).

Volcano's first releases took two forms that today's refuses: without a claim a volume is scratch
room of each pod, and a claim that is described is made under the name that is given. The job
controller knows both, so where the operator says so they are only warned about.
"""

from collections.abc import Mapping
from typing import Any

from app.model.names import subdomain_problems
from app.webhooks.world import Options
from app.wire.findings import Findings, at, listed
from app.wire.pod_types import check_claim_types
from app.wire.reading import mapping, mappings, text

_EITHER_OR = (
    "conflict: If you want to use an existing PVC, just specify VolumeClaimName. "
    "If you want to create a new PVC, you do not need to specify VolumeClaimName."
)


def check_volumes(spec: Mapping[str, Any], options: Options, findings: Findings) -> None:
    """``spec.volumes``."""
    tell = findings.warn if options.loose_volumes else findings.refuse
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
        check_claim_types(volume.get("volumeClaim"), at(path, "volumeClaim"), findings)
        name, claim = text(volume.get("volumeClaimName")), mapping(volume.get("volumeClaim"))
        if not name and not claim:
            tell(path, "either VolumeClaim or VolumeClaimName must be specified")
        elif name and claim:
            tell(path, _EITHER_OR)
        _check_claim_name(name, path, findings)


def _check_claim_name(name: str, path: str, findings: Findings) -> None:
    problems = subdomain_problems(name) if name else []
    if problems:
        where = at(path, "volumeClaimName")
        findings.refuse(where, f"invalid VolumeClaimName {name} : {listed(problems)}")
