"""A controller that dies at any request changes nothing in the end.

Each story is played once undisturbed; then again for each of its requests, with the controller
killed there and another one started on what the API server has.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from app.wire.kinds import (
    CLAIMS,
    COMMANDS,
    CONFIG_MAPS,
    NETWORK_POLICIES,
    POD_GROUPS,
    SERVICES,
)
from app.wire.unstructured import name
from tests.controllers.fake_api import Trap
from tests.controllers.job.rig import Rig, play, policy, task

_PLUGINS: dict[str, list[str]] = {"svc": [], "env": []}


def _spec(*policies: Any, **more: Any) -> dict[str, Any]:
    return {
        "minAvailable": 2,
        "tasks": [task()],
        "policies": list(policies),
        "plugins": _PLUGINS,
        "volumes": [{"mountPath": "/data", "volumeClaim": {"resources": {}}}],
        **more,
    }


@dataclass(frozen=True)
class Story:
    """A job, and what happens to it once it runs."""

    spec: Mapping[str, Any]
    happens: Callable[[Rig], Awaitable[None]]


async def _ends_well(rig: Rig) -> None:
    rig.succeed()


async def _fails(rig: Rig) -> None:
    rig.fail("job-main-0")
    await rig.drain()
    if rig.pods() == ["job-main-0", "job-main-1"] and rig.phase() != "Failed":
        rig.run()


async def _is_evicted(rig: Rig) -> None:
    rig.evict("job-main-0")
    await rig.drain()
    if rig.pods() == ["job-main-0", "job-main-1"]:
        rig.run()


async def _is_drained(rig: Rig) -> None:
    """As every kubelet does it: the pod has failed before it is gone."""
    rig.evict("job-main-0")
    await rig.settle()
    rig.fail("job-main-0", code=137)
    await _is_evicted(rig)


async def _vanishes(rig: Rig) -> None:
    rig.vanish("job-main-1")
    await rig.drain()
    if rig.pods() == ["job-main-0", "job-main-1"]:
        rig.run()


async def _is_suspended_and_resumed(rig: Rig) -> None:
    rig.succeed("job-main-0")
    await rig.settle()
    rig.command("AbortJob")
    await rig.drain()
    rig.command("ResumeJob")
    await rig.drain()
    rig.run("job-main-1")


async def _is_scaled(rig: Rig) -> None:
    rig.edit_job({"spec": {"minAvailable": 1, "tasks": [task(replicas=1)]}})
    await rig.drain()
    rig.edit_job({"spec": {"minAvailable": 1, "tasks": [task(replicas=3)]}})
    await rig.drain()
    rig.run()


async def _is_unschedulable(rig: Rig) -> None:
    rig.admit("Unknown")
    await rig.drain()
    rig.run()


_STORIES = {
    "ends well": Story(_spec(), _ends_well),
    "fails and restarts": Story(_spec(policy("PodFailed", "RestartJob")), _fails),
    "fails and restarts a pod": Story(_spec(policy("PodFailed", "RestartPod")), _fails),
    "fails and restarts a task": Story(_spec(policy("PodFailed", "RestartTask")), _fails),
    "fails for good": Story(_spec(policy("PodFailed", "RestartJob"), maxRetry=1), _fails),
    "fails and terminates": Story(_spec(policy("PodFailed", "TerminateJob")), _fails),
    "is evicted and restarts": Story(_spec(policy("PodEvicted", "RestartJob")), _is_evicted),
    "is evicted and restarts a pod": Story(_spec(policy("PodEvicted", "RestartPod")), _is_evicted),
    "is evicted and aborts": Story(_spec(policy("PodEvicted", "AbortJob")), _is_evicted),
    "is evicted": Story(_spec(), _is_evicted),
    "is drained and restarts": Story(_spec(policy("PodFailed", "RestartJob")), _is_drained),
    "is drained and restarts a pod": Story(_spec(policy("*", "RestartPod")), _is_drained),
    "is drained and aborts": Story(_spec(policy("PodFailed", "AbortJob")), _is_drained),
    "vanishes and restarts": Story(_spec(policy("PodEvicted", "RestartJob")), _vanishes),
    "vanishes and restarts a task": Story(_spec(policy("PodEvicted", "RestartTask")), _vanishes),
    "vanishes": Story(_spec(), _vanishes),
    "is suspended and resumed": Story(
        _spec(policy("PodEvicted", "TerminateJob")), _is_suspended_and_resumed
    ),
    "is scaled": Story(_spec(policy("PodEvicted", "TerminateJob")), _is_scaled),
    "is unschedulable": Story(_spec(policy("Unknown", "RestartJob")), _is_unschedulable),
}


def _play(story: Story, *, number: int = 0, after: bool = False) -> Rig:
    async def scenario(rig: Rig) -> None:
        if number:
            rig.api.trap = Trap(number, after)
        rig.start()
        rig.submit(story.spec)
        await rig.drain()
        rig.run()
        await rig.settle()
        await story.happens(rig)
        await rig.drain()
        await rig.later(30)
        rig.api.trap = None

    return play(scenario)


def _outcome(rig: Rig) -> dict[str, Any]:
    status = rig.status()
    kinds = (CLAIMS, COMMANDS, CONFIG_MAPS, NETWORK_POLICIES, POD_GROUPS, SERVICES)
    return {
        "phases": rig.phases,
        "numbers": {key: value for key, value in status.items() if isinstance(value, int)},
        "tasks": status.get("taskStatusCount"),
        "resources": status.get("controlledResources"),
        "pods": {name(pod): pod["status"]["phase"] for pod in map(rig.pod, rig.pods())},
        "objects": {kind.kind: len(rig.api.all(kind)) for kind in kinds},
        "note": rig.job()["metadata"].get("annotations"),
    }


@pytest.mark.parametrize("story", _STORIES.values(), ids=_STORIES.keys())
def test_a_crash_after_any_request_changes_nothing(story: Story) -> None:
    undisturbed = _play(story)
    expected = _outcome(undisturbed)
    for number, request in enumerate(undisturbed.api.requests, start=1):
        outcome = _outcome(_play(story, number=number, after=True))
        assert outcome == expected, f"killed after request {number}: {request}"


def test_a_crash_before_any_request_changes_nothing() -> None:
    story = _STORIES["fails and restarts"]
    undisturbed = _play(story)
    expected = _outcome(undisturbed)
    for number, request in enumerate(undisturbed.api.requests, start=1):
        assert _outcome(_play(story, number=number)) == expected, f"killed before {request}"
