"""What a container asks for: amounts that can be, of resources that there can be.

Devices and huge pages are never shared: of them the request is the limit, and devices are whole.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.model.names import qualified_problems
from app.wire.findings import Findings, invalid
from app.wire.reading import amount, mapping

_STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"


def check_resources(resources: Mapping[str, Any], path: str, findings: Findings) -> None:
    """``resources`` of a container."""
    requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
    for kind, written in (("limits", limits), ("requests", requests)):
        check_amounts(written, f"{path}.{kind}", findings)
    for name, value in requests.items():
        _check_share(name, value, limits, path=path, findings=findings)


def check_amounts(amounts: Mapping[str, Any], path: str, findings: Findings) -> None:
    """``amounts`` of resources, by their names."""
    for name, value in amounts.items():
        _check_amount(name, value, f"{path}[{name}]", findings)


def _check_amount(name: str, value: object, path: str, findings: Findings) -> None:
    if not _is_resource(name):
        findings.refuse(
            path, f'Invalid value: "{name}": must be a standard resource type or fully qualified'
        )
    number = amount(name, value)
    if number is None:
        return
    if number < 0:
        findings.refuse(path, invalid(value, "must be greater than or equal to 0"))
    elif is_device(name) and not is_whole(value):
        findings.refuse(path, invalid(value, "must be an integer"))


def _check_share(
    name: str, value: object, limits: Mapping[str, Any], *, path: str, findings: Findings
) -> None:
    asked, most = amount(name, value), amount(name, limits.get(name))
    if most is None:
        if _is_exclusive(name) and asked is not None:
            findings.refuse(
                f"{path}.limits[{name}]",
                "Required value: Limit must be set for non overcommitable resources",
            )
    elif asked is not None and (asked > most or (_is_exclusive(name) and asked != most)):
        relation = "equal to" if _is_exclusive(name) else "less than or equal to"
        findings.refuse(
            f"{path}.requests[{name}]",
            f'Invalid value: "{value}": must be {relation} {name} limit of {limits[name]}',
        )


def is_whole(value: object) -> bool:
    """Whether a quantity has no fraction."""
    thousandths = amount("cpu", value)
    return thousandths is not None and thousandths % 1000 == 0


def _is_resource(name: str) -> bool:
    if "/" in name:
        return not qualified_problems(name)
    return name in _STANDARD or name.startswith(_HUGE_PAGES)


def is_device(name: str) -> bool:
    """Whether the resource ``name`` comes in whole pieces that are not shared."""
    return "/" in name and _NATIVE not in name


def _is_exclusive(name: str) -> bool:
    return is_device(name) or name.startswith(_HUGE_PAGES)
