"""The table of the job state machine (volcano.md section 5.1), played on both clusters.

Every cell is a job of its own that is brought to its phase, is told something there, and is watched
until it rests. Commands tell what they can; what is done to single pods is what a policy says about
an evicted one. Phases that only pass are held by pods that do not go when they are told to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.play import (
    Actor,
    Scene,
    Step,
    Then,
    evicts,
    has_going,
    is_in,
    orders,
    play,
)
from tests.scenarios.jobs.shapes import bad, done, held, in_pairs, make_job, policy, slow, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(400)

_JOB_ACTIONS = ["RestartJob", "AbortJob", "TerminateJob", "CompleteJob", "ResumeJob"]
_TARGETED = ["RestartTask", "RestartPod", "RestartPartition"]
_ENDED = ["bad-0", "done-0"]


_LET_GO = Step(has_going(1), lambda actor: actor.bury())


# One, two or all pods of the task `up` are restarted where its first pod is evicted.
_LEFT = {
    "RestartTask": [],
    "RestartPod": ["up-1", "up-2", "up-3"],
    "RestartPartition": ["up-2", "up-3"],
}


def _alive(phase: str, action: str) -> Scene:
    """A job with pods that have ended and others that run; one that is pending keeps it so.

    The one that fails is not needed: a gang that lacks a member for good never runs again.
    """
    targeted = action in _TARGETED
    running = 4 if targeted else 1
    of_up: dict[str, Any] = {"partitionPolicy": in_pairs()} if targeted else {}
    waiting = 2 if phase == "Pending" else 0
    spec = make_job(
        done(),
        bad(minAvailable=0),
        up(running, **of_up),
        *([slow(waiting)] if waiting else []),
        needs=1 + running + waiting,
        policies=[policy("PodEvicted", action)] if targeted else [],
    )
    at = is_in(phase, pending=waiting, running=running, succeeded=1, failed=1)
    again = ["Restarting", "Pending", *([] if waiting else ["Running"])]
    stay = [*_ENDED, *(f"slow-{index}" for index in range(waiting))]
    thens = {
        "RestartJob": Then(again, [], retries=1, version=1, group="new"),
        "AbortJob": Then(["Aborting", "Aborted"], _ENDED, version=1),
        "TerminateJob": Then(["Terminating", "Terminated"], _ENDED, version=1),
        "CompleteJob": Then(["Completing", "Completed"], _ENDED, version=1),
        "ResumeJob": Then([], sorted([*stay, "up-0"]), group="same"),
    }
    if targeted:
        left = sorted([*stay, *_LEFT[action]])
        then = Then(again, left, retries=1, group="same")
        return Scene(spec, [Step(at, evicts("up-0"), acts=True)], then)
    return Scene(spec, [Step(at, orders(action), acts=True)], thens[action])


def _without_room(action: str) -> Scene:
    """A job whose group is not let in has no pods."""
    thens = {
        "RestartJob": Then(["Restarting", "Pending"], [], retries=1, version=1, group="new"),
        "AbortJob": Then(["Aborting", "Aborted"], [], version=1),
        "TerminateJob": Then(["Terminating", "Terminated"], [], version=1),
        "CompleteJob": Then(["Completing", "Completed"], [], version=1),
        "ResumeJob": Then([], [], group="same"),
    }
    steps = [Step(_has_group, orders(action), acts=True)]
    return Scene(make_job(up(), needs=1), steps, thens[action], without_room=True)


def _has_group(actor: Actor) -> bool:
    return actor.life.phase == "Pending" and bool(actor.life.group)


def _restarting(action: str) -> Scene:
    """A restart goes on until its pods are gone, or until the job is to end another way.

    What was to be restarted goes all the same.
    """
    if action in _TARGETED:
        return _restarting_some(action)
    steps = [
        Step(is_in("Running", running=1, succeeded=1), orders("RestartJob")),
        Step(is_in("Restarting", terminating=1), orders(action), acts=True),
        _LET_GO,
    ]
    again = ["Pending", "Running"]
    thens = {
        "RestartJob": Then(again, [], retries=1, version=2, group="new"),
        "AbortJob": Then(["Aborting", "Aborted"], [], retries=1, version=2),
        "TerminateJob": Then(["Terminating", "Terminated"], [], retries=1, version=2),
        "CompleteJob": Then(["Completing", "Completed"], [], retries=1, version=2),
        "ResumeJob": Then(again, [], retries=1, version=1, group="new"),
    }
    return Scene(make_job(done(), held(), needs=2), steps, thens[action])


def _restarting_some(action: str) -> Scene:
    """A second pod is evicted while those of the first are still going."""
    second, first_takes, both_take, left = {
        "RestartTask": ("two-0", 4, 6, []),
        "RestartPod": ("up-1", 1, 2, ["two-0", "two-1", "up-2", "up-3"]),
        "RestartPartition": ("up-2", 2, 4, ["two-0", "two-1"]),
    }[action]
    spec = make_job(
        done(),
        held(4, partitionPolicy=in_pairs()),
        held(2, "two"),
        needs=7,
        policies=[policy("PodEvicted", action)],
    )
    going = {
        count: is_in("Restarting", running=6 - count, succeeded=1, terminating=count)
        for count in (first_takes, both_take)
    }
    steps = [
        Step(is_in("Running", running=6, succeeded=1), evicts("up-0")),
        Step(going[first_takes], evicts(second), acts=True),
        Step(going[both_take], lambda _: None),
        Step(has_going(both_take), lambda actor: actor.bury()),
    ]
    kept = sorted(["done-0", *left])
    return Scene(spec, steps, Then(["Pending", "Running"], kept, retries=1, group="same"))


_RESUMED = Then(["Restarting", "Pending", "Running"], _ENDED, retries=1, version=2, group="new")


def _draining(by: str, phase: str, end: str, action: str) -> Scene:
    """What is told while the pods go changes nothing, but that an abortion can be taken back."""
    steps = [
        Step(is_in("Running", running=1, succeeded=1, failed=1), orders(by)),
        Step(is_in(phase, succeeded=1, failed=1, terminating=1), orders(action), acts=True),
        _LET_GO,
    ]
    taken_back = phase == "Aborting" and action == "ResumeJob"
    then = _RESUMED if taken_back else Then([end], _ENDED, version=1)
    return Scene(make_job(done(), bad(minAvailable=0), held(), needs=2), steps, then)


def _drained(by: str, phase: str, action: str) -> Scene:
    steps = [
        Step(is_in("Running", running=1, succeeded=1, failed=1), orders(by)),
        Step(is_in(phase, succeeded=1, failed=1), orders(action), acts=True),
    ]
    taken_back = phase == "Aborted" and action == "ResumeJob"
    then = _RESUMED if taken_back else Then([], _ENDED, version=1)
    return Scene(make_job(done(), bad(minAvailable=0), up(), needs=2), steps, then)


def _ended(phase: str, action: str) -> Scene:
    ways: dict[str, Any] = {
        "Completed": (done(2), is_in(phase, succeeded=2), ["done-0", "done-1"]),
        "Failed": (bad(2), is_in(phase, failed=2), ["bad-0", "bad-1"]),
    }
    pods, at, kept = ways[phase]
    steps = [Step(at, orders(action), acts=True)]
    return Scene(make_job(pods, needs=2), steps, Then([], kept))


_ROWS: dict[str, tuple[list[str], Callable[[str], Scene]]] = {
    "Pending": ([*_JOB_ACTIONS, *_TARGETED], lambda action: _alive("Pending", action)),
    "Pending without pods": (_JOB_ACTIONS, _without_room),
    "Running": ([*_JOB_ACTIONS, *_TARGETED], lambda action: _alive("Running", action)),
    "Restarting": ([*_JOB_ACTIONS, *_TARGETED], _restarting),
    "Aborting": (_JOB_ACTIONS, lambda a: _draining("AbortJob", "Aborting", "Aborted", a)),
    "Aborted": (_JOB_ACTIONS, lambda a: _drained("AbortJob", "Aborted", a)),
    "Terminating": (
        _JOB_ACTIONS,
        lambda a: _draining("TerminateJob", "Terminating", "Terminated", a),
    ),
    "Terminated": (_JOB_ACTIONS, lambda a: _drained("TerminateJob", "Terminated", a)),
    "Completing": (_JOB_ACTIONS, lambda a: _draining("CompleteJob", "Completing", "Completed", a)),
    "Completed": (_JOB_ACTIONS, lambda a: _ended("Completed", a)),
    "Failed": (_JOB_ACTIONS, lambda a: _ended("Failed", a)),
}
_CELLS = {(phase, action): row(action) for phase, (told, row) in _ROWS.items() for action in told}


def _key(phase: str, action: str) -> str:
    return f"{phase}-{action}".lower().replace(" ", "-")


@pytest.fixture(scope="module")
def played(ground: Ground) -> Mapping[str, Actor]:
    """All jobs of this module, at rest."""
    return play(ground, {_key(*cell): scene for cell, scene in _CELLS.items()})


@pytest.mark.parametrize(("phase", "action"), _CELLS, ids=lambda part: part)
def test_each_action_does_in_each_phase_what_the_table_says(
    played: Mapping[str, Actor], phase: str, action: str
) -> None:
    assert played[_key(phase, action)].outcome == _CELLS[phase, action].then


@pytest.mark.parametrize("phase", _ROWS)
def test_the_status_lists_the_phases_that_were_seen(
    played: Mapping[str, Actor], phase: str
) -> None:
    for action in _ROWS[phase][0]:
        life = played[_key(phase, action)].life
        told = [entry["status"] for entry in life.status["conditions"]]
        assert told[-1] == life.phase
        assert set(told) == set(life.phases)
