"""What a pod on a node is charged while it is resized in place.

Its owner changes ``spec``; the kubelet accepts that (``allocatedResources``) and acts on it
(``resources``) when it can, and reports both. Until they agree the largest counts, or only what is
reported when no node can give more (``Infeasible``), as in the stock scheduler (``PodRequests`` of
component-helpers 1.36 with ``UseStatusResources``). Where no ``resources`` are reported, as by
older servers, the spec counts alone. Init containers that do not stay cannot be resized.

Nearly every report repeats the spec word for word. That is seen without reading it, so pods that
are not resized cost little, and keep the shape that they had before they got a node.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Raw

from app.wire.objects import asking
from app.wire.objects.containers import WHOLE_AT, ContainerJson
from app.wire.objects.pod_status import ContainerStatusJson, HeldJson, StatusJson, conditions_of

_APP: Final = ("containers", "containerStatuses")
_INIT: Final = ("initContainers", "initContainerStatuses")
_NULL: Final = b"null"


class _Report(NamedTuple):
    """What is said ``at`` a path (with its dot) and differs from the spec at ``asked_at``."""

    asked_at: str
    at: str
    resources: bytes
    allocated: bytes

    def amounts(self) -> dict[str, int]:
        """The larger of what is there and what was accepted, per resource."""
        actual = asking.requested(self.resources, f"{self.at}resources")
        return _larger(actual, asking.listed(self.allocated, f"{self.at}allocatedResources"))


class Resize(NamedTuple):
    """Equal ones make the same of the same spec."""

    infeasible: bool
    reports: tuple[_Report, ...]

    def charged(self, asked: dict[str, int], at: str) -> dict[str, int]:
        """What the pod is charged for what its spec asks for at that path."""
        for report in self.reports:
            if report.asked_at == at:
                held = report.amounts()
                return held if self.infeasible else _larger(asked, held)
        return asked


def resize(
    status: StatusJson,
    app: Sequence[ContainerJson] | None,
    init: Sequence[ContainerJson] | None,
    whole: Raw,
) -> Resize | None:
    """How a pod on a node is being resized; None for nearly all, which have what they ask for."""
    found: list[_Report] = []
    if app and status.container_statuses:
        _compare(app, status.container_statuses, _APP, found)
    if init and status.init_container_statuses:
        _compare(init, status.init_container_statuses, _INIT, found)
    if whole and status.resources and not _agrees(status, whole):
        found.append(_report(status, WHOLE_AT, "status."))
    return Resize(_is_infeasible(status), tuple(found)) if found else None


def _compare(
    asked: Sequence[ContainerJson],
    told: Sequence[ContainerStatusJson],
    fields: tuple[str, str],
    found: list[_Report],
) -> None:
    """Add to ``found`` what is told of containers that ask for something else."""
    for index, held in enumerate(told):
        if not held.resources:
            continue
        place = index
        if index >= len(asked) or asked[index].name != held.name:
            place = _place(asked, held.name)
        if place < 0 or _agrees(held, asked[place].resources):
            continue
        if fields is _APP or asked[place].stays:
            asked_at, at = f"spec.{fields[0]}[{place}].resources", f"status.{fields[1]}[{index}]."
            found.append(_report(held, asked_at, at))


def _place(containers: Sequence[ContainerJson], name: str | None) -> int:
    """Which of the containers has that name; less than nothing where none has it."""
    return next((i for i, one in enumerate(containers) if one.name == name), -1)


def _agrees(held: HeldJson, asked: Raw) -> bool:
    """Whether ``held`` says nothing, or what is asked for word for word.

    What was accepted is looked for at the end of the text, where the API server writes requests;
    claims come after them, and then both are read, which is right too and takes longer.
    """
    if held.resources != asked:
        return bytes(held.resources) == _NULL
    if not held.allocated_resources:
        return True
    text = bytes(asked)
    return text.endswith(b'"requests":%b}' % held.allocated_resources) or text == _NULL


def _report(held: HeldJson, asked_at: str, at: str) -> _Report:
    return _Report(asked_at, at, bytes(held.resources), bytes(held.allocated_resources))


def _is_infeasible(status: StatusJson) -> bool:
    for condition in conditions_of(status):
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one.keys() | other.keys()}
