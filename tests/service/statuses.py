"""Statuses of PodGroups while cycles run: what was written, and the watch that shows it."""

from dataclasses import replace
from itertools import groupby
from typing import Any

from app.model.ids import NodeName
from app.model.workload import Condition, GroupPhase
from app.service.effects import statuses as status_module
from app.service.effects.statuses import StatusWriter
from tests.builders import make_shape
from tests.service.rig import Rig

TOLD_S = status_module.FIRST_EVENT_AFTER_S + 1
"""After so long a group that waits has its event."""


def show(rig: Rig, name: str) -> None:
    """The watch shows the last status written for a group."""
    stored = rig.cache.groups[rig.key(name)].pod_group
    assert stored is not None
    status = statuses(rig, name)[-1]
    conditions = tuple(
        Condition(
            type=c["type"],
            status=c["status"],
            reason=c.get("reason", ""),
            message=c.get("message", ""),
            transition_id=c.get("transitionID", ""),
            changed=c.get("lastTransitionTime", ""),
        )
        for c in status["conditions"]
    )
    rig.see(
        "podgroups",
        replace(
            stored,
            resource_version=str(int(stored.resource_version) + 1),
            phase=GroupPhase(status.get("phase", "")),
            running=status["running"],
            succeeded=status["succeeded"],
            failed=status["failed"],
            conditions=conditions,
        ),
    )


def writer_of(rig: Rig) -> StatusWriter:
    """A writer beside those that work: it writes when the test says so."""
    return StatusWriter(
        rig.cache,
        leadership=rig.planning.leadership,
        last_plan=rig.planning.last_plan,
        reasons=rig.parts.reasons,
        groups=rig.api,
        events=rig.api,
        clock=rig.clock,
    )


def statuses(rig: Rig, name: str) -> list[dict[str, Any]]:
    """All statuses written for a group."""
    return [
        write.body["status"]
        for write in rig.api.of("group-status")
        if write.target == f"default/{name}"
    ]


def phases(rig: Rig, name: str) -> list[str]:
    """The phases written for a group, one after the other."""
    written = [status["phase"] for status in statuses(rig, name)]
    return [phase for phase, _ in groupby(written)]


def conditions(rig: Rig, name: str) -> dict[str, tuple[str, str, str]]:
    """The last written conditions by type: status, reason, message."""
    return {
        c["type"]: (c["status"], c.get("reason", ""), c.get("message", ""))
        for c in statuses(rig, name)[-1]["conditions"]
    }


def full(rig: Rig) -> None:
    """One node of 8 CPUs with one to spare."""
    rig.node("n1")
    rig.pod("used", node=NodeName("n1"), shape=make_shape(cpu=7000), phase="Running")
