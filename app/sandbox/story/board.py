"""The groups of the story at one moment, as the API server shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.wire.documents import Document, condition, labels_of, section

JOB_NAME = "volcano.sh/job-name"
_ALIVE = frozenset({"Running", "Succeeded"})
_UNDER_WAY = frozenset({"Running", "Completed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group, under the name of its job, and its pods.

    ``why`` is what it waits for, in the words of its condition.
    """

    name: str
    queue: str
    phase: str
    minimum: int
    pods: int
    on_nodes: int
    running: int
    alive: int
    why: str

    def runs(self, count: int) -> bool:
        """Whether ``count`` pods of the group run, or have run, and the group says so."""
        return self.alive == count and self.phase in _UNDER_WAY

    @property
    def waits_for(self) -> str:
        """What the group waits for; empty while its pods are only just being created."""
        is_complete = self.phase == "Pending" or self.pods >= self.minimum
        return self.why if is_complete and not self.on_nodes else ""

    @property
    def waits_with_numbers(self) -> bool:
        """Whether the group waits, and says what is missing in figures."""
        return any(char.isdigit() for char in self.waits_for)

    @property
    def is_partial(self) -> bool:
        """Whether some of the group is on nodes, but less than it needs."""
        return 0 < self.on_nodes < self.minimum


def board(groups: Iterable[Document], pods: Iterable[Document]) -> Mapping[str, GroupView]:
    """The groups by name, in the order in which they are listed."""
    members: dict[str, list[Document]] = {}
    for pod in pods:
        members.setdefault(labels_of(pod).get(JOB_NAME, ""), []).append(pod)
    named = ((_name(group), group) for group in groups)
    return {name: _view(name, group, members.get(name, [])) for name, group in named}


def _name(group: Document) -> str:
    """The name of its job, or its own."""
    for owner in group["metadata"].get("ownerReferences", ()):
        if owner["kind"] == "Job":
            return str(owner["name"])
    return str(group["metadata"]["name"])


def _view(name: str, group: Document, pods: list[Document]) -> GroupView:
    spec = section(group, "spec")
    reserved = condition(group, "Reserved") or {}
    phases = [section(pod, "status").get("phase") for pod in pods]
    return GroupView(
        name=name,
        queue=spec.get("queue") or "default",
        phase=section(group, "status").get("phase") or "",
        minimum=int(spec.get("minMember") or 0),
        pods=len(pods),
        on_nodes=sum(bool(section(pod, "spec").get("nodeName")) for pod in pods),
        running=phases.count("Running"),
        alive=sum(phase in _ALIVE for phase in phases),
        why=reserved.get("message", "") if reserved.get("status") == "False" else "",
    )
