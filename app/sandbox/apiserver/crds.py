"""CustomResourceDefinition -> rows of the registry, and the status that says it is served."""

from __future__ import annotations

from app.sandbox.apiserver.columns import custom_columns
from app.sandbox.apiserver.errors import FieldError, required
from app.sandbox.apiserver.registry import ResourceKind, ScalePaths
from app.sandbox.apiserver.schema import parse_schema
from app.sandbox.clock import timestamp
from app.wire.documents import Document, items, section

_CONDITIONS = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)


def served_kinds(crd: Document) -> list[ResourceKind]:
    """One row per served version."""
    spec, names = section(crd, "spec"), section(crd, "spec", "names")
    return [
        ResourceKind(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec.get("scope") == "Namespaced",
            singular=names.get("singular") or names["kind"].lower(),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=frozenset(section(version, "subresources")),
            scale=_scale_paths(section(version, "subresources", "scale")),
            columns=custom_columns(items(version, "additionalPrinterColumns")),
            schema=parse_schema(section(version, "schema", "openAPIV3Schema")),
            custom=True,
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _scale_paths(scale: Document) -> ScalePaths:
    usual = ScalePaths()
    return ScalePaths(
        wanted=scale.get("specReplicasPath") or usual.wanted,
        found=scale.get("statusReplicasPath") or usual.found,
        selector=scale.get("labelSelectorPath") or usual.selector,
    )


def crd_errors(crd: Document) -> list[FieldError]:
    """What must be there before the definition can be served."""
    spec = section(crd, "spec")
    found = [required(f"spec.{name}") for name in ("group", "scope") if not spec.get(name)]
    names = section(spec, "names")
    found += [required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name)]
    if not items(spec, "versions"):
        found.append(required("spec.versions"))
    for index, version in enumerate(items(spec, "versions")):
        if not section(version, "schema", "openAPIV3Schema"):
            path = f"spec.versions[{index}].schema.openAPIV3Schema"
            found.append(required(path, "schemas are required"))
    return found


def established(crd: Document, *, now: float) -> Document:
    """The definition with the status of one that is served."""
    spec = section(crd, "spec")
    names = section(spec, "names")
    accepted = {
        "singular": names["kind"].lower(),
        "listKind": f"{names['kind']}List",
        **names,
    }
    conditions = [
        {
            "type": kind,
            "status": "True",
            "lastTransitionTime": timestamp(now),
            "reason": reason,
            "message": message,
        }
        for kind, reason, message in _CONDITIONS
    ]
    status = {
        "conditions": items(crd, "status", "conditions") or conditions,
        "acceptedNames": accepted,
        "storedVersions": [one["name"] for one in spec["versions"] if one.get("storage")],
    }
    conversion = spec.get("conversion") or {"strategy": "None"}
    served = {**spec, "conversion": conversion, "names": accepted}
    return {**crd, "spec": served, "status": status}
