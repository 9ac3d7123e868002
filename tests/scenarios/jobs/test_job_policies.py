"""Lifecycle policies (volcano.md section 5.1): every event with every action, on both clusters.

Each job has a task `main`, to which something happens, and a pod `other-0`. What a kubelet would
report of a pod is written in its place, so that a thing happens once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.clusters.client import Object
from tests.scenarios.jobs.ground import Ground, ground, on_seat
from tests.scenarios.jobs.play import Actor, Scene, Step, Then, evicts, is_in, play
from tests.scenarios.jobs.shapes import in_pairs, make_job, policy, slow, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(400)

_Do = Callable[[Actor], object]

_OF_JOB = ["RestartJob", "AbortJob", "TerminateJob", "CompleteJob"]
_TARGETED = ["RestartTask", "RestartPod", "RestartPartition"]
_ON_THE_WAY = {"AbortJob": "Aborting", "TerminateJob": "Terminating", "CompleteJob": "Completing"}
_AT_THE_END = {"AbortJob": "Aborted", "TerminateJob": "Terminated", "CompleteJob": "Completed"}
_AGAIN = ["Restarting", "Pending", "Running"]


def _gang(
    *policies: Object,
    of_main: Sequence[Object] = (),
    of_other: Sequence[Object] = (),
    pairs: bool = False,
    needs: int | None = None,
    pod: Object | None = None,
) -> Object:
    """A job whose pods run for ever; `pairs`: with four pods in two partitions."""
    size = 4 if pairs else 2
    partitions = {"partitionPolicy": in_pairs()} if pairs else {}
    return make_job(
        up(size, "main", policies=list(of_main), pod=pod, **partitions),
        up(1, "other", policies=list(of_other), pod=pod),
        needs=size + 1 if needs is None else needs,
        policies=list(policies),
    )


def _answered(action: str, *, about: int = 0, ended: Sequence[str] = ()) -> Then:
    """What an action about the pod of `main` with that index leads to."""
    whole = 4 if action == "RestartPartition" else 2
    pods = [f"main-{index}" for index in range(whole)] + ["other-0"]
    if action in _ON_THE_WAY:
        phases = [_ON_THE_WAY[action], _AT_THE_END[action]]
        return Then(phases, [pod for pod in pods if pod in ended], version=1)
    if action == "RestartJob":
        return Then(_AGAIN, [], retries=1, version=1, group="new")
    gone = {
        "RestartTask": range(whole),
        "RestartPod": [about],
        "RestartPartition": range(about - about % 2, about - about % 2 + 2),
    }[action]
    kept = [pod for pod in pods if pod not in {f"main-{index}" for index in gone}]
    return Then(_AGAIN, kept, retries=1, group="same")


# What happens to `main` -------------------------------------------------------------------------


def fails(code: int = 3, pod: str = "main-0") -> _Do:
    return lambda actor: actor.ground.ended(actor.pod(pod), code)


def completes(actor: Actor) -> None:
    """The last pod last."""
    for index in range(_size(actor)):
        actor.ground.ended(actor.pod(f"main-{index}"), 0, after_s=index)


def loops(actor: Actor) -> None:
    """The containers have restarted as often as a task's maxRetry is by default."""
    actor.ground.restarted(actor.pod("main-0"), 3)


def _size(actor: Actor) -> int:
    return sum(name.startswith("main-") for name in actor.life.pods)


_EVENTS: Mapping[str, tuple[Object, _Do]] = {
    "PodFailed": ({"event": "PodFailed"}, fails()),
    "PodEvicted": ({"event": "PodEvicted"}, evicts("main-0")),
    "TaskCompleted": ({"event": "TaskCompleted"}, completes),
    "TaskFailed": ({"event": "TaskFailed"}, loops),
    "* of a failed pod": ({"event": "*"}, fails()),
    "* of an evicted pod": ({"event": "*"}, evicts("main-0")),
    "one of several events": ({"events": ["PodEvicted", "PodFailed"]}, fails()),
    "exit code 3": ({"exitCode": 3}, fails(3)),
}
_ENDED = {"PodFailed", "* of a failed pod", "one of several events", "exit code 3"}


def _runs(actor: Actor) -> bool:
    return is_in("Running", running=_size(actor) + 1)(actor)


def _event(event: str, action: str) -> Scene:
    rule, happens = _EVENTS[event]
    pairs = action == "RestartPartition"
    spec = _gang({**rule, "action": action}, pairs=pairs)
    if event == "TaskCompleted":
        last = 3 if pairs else 1
        all_of_main = [f"main-{index}" for index in range(last + 1)]
        then = _answered(action, about=last, ended=all_of_main)
    else:
        then = _answered(action, ended=["main-0"] if event in _ENDED else [])
    return Scene(spec, [Step(_runs, happens, acts=True)], then)


def _updated(action: str) -> Scene:
    def change(actor: Actor) -> None:
        actor.ground.edit(actor.life.name, {"minAvailable": 2})

    spec = _gang(policy("JobUpdated", action))
    return Scene(spec, [Step(_runs, change, acts=True)], _answered(action))


def _pending(action: str) -> Scene:
    """A pod does not start in time; it is restarted until that is given up."""
    waits = slow(policies=[policy("PodPending", action, timeout="2s")])
    spec = make_job(up(2, "main"), waits, needs=3, maxRetry=1)
    if action in _ON_THE_WAY:
        phases = ["Pending", _ON_THE_WAY[action], _AT_THE_END[action]]
        return Scene(spec, [], Then(phases, [], version=1))
    whole = action == "RestartJob"
    return Scene(
        spec, [], Then(["Pending", "Restarting", "Failed"], [], retries=1, version=int(whole))
    )


_CELLS: dict[tuple[str, str], Scene] = {
    **{
        (event, action): _event(event, action)
        for event in _EVENTS
        for action in [*_OF_JOB, *_TARGETED]
    },
    **{("JobUpdated", action): _updated(action) for action in _OF_JOB},
    **{("PodPending", action): _pending(action) for action in [*_OF_JOB, "RestartPod"]},
}


# Which policy answers ---------------------------------------------------------------------------


def _chosen(action: str, **policies: Any) -> Scene:
    spec = _gang(*policies.pop("of_job", []), **policies)
    return Scene(spec, [Step(_runs, fails(), acts=True)], _answered(action, ended=["main-0"]))


def _nobody(**policies: Any) -> Scene:
    """The failed pod stays where it is."""
    spec = _gang(*policies.pop("of_job", []), **policies)
    then = Then([], ["main-0", "main-1", "other-0"], group="same")
    steps = [Step(_runs, fails(), acts=True)]
    return Scene(spec, steps, then, until=is_in("Running", running=2, failed=1))


def _code(code: int, action: str) -> Object:
    return {"exitCode": code, "action": action}


_FAILED_ABORT = policy("PodFailed", "AbortJob")

_CHOICES: Mapping[str, Scene] = {
    "that of the task before that of the job": _chosen(
        "RestartPod", of_main=[policy("PodFailed", "RestartPod")], of_job=[_FAILED_ABORT]
    ),
    "that of the job where those of the task are about other things": _chosen(
        "AbortJob", of_main=[policy("PodEvicted", "RestartPod")], of_job=[_FAILED_ABORT]
    ),
    "any event for the task before the event for the job": _chosen(
        "RestartTask", of_main=[policy("*", "RestartTask")], of_job=[_FAILED_ABORT]
    ),
    "the exit code for the task before the event for the job": _chosen(
        "RestartPod", of_main=[_code(3, "RestartPod")], of_job=[_FAILED_ABORT]
    ),
    "another exit code is passed over": _chosen(
        "AbortJob", of_main=[_code(4, "RestartPod")], of_job=[_FAILED_ABORT]
    ),
    "the first of two where the event comes first": _chosen(
        "AbortJob", of_job=[_FAILED_ABORT, _code(3, "RestartJob")]
    ),
    "the first of two where the exit code comes first": _chosen(
        "RestartJob", of_job=[_code(3, "RestartJob"), _FAILED_ABORT]
    ),
    "that of another task for nobody": _nobody(of_other=[_FAILED_ABORT]),
    "nobody answers another exit code": _nobody(of_job=[_code(4, "RestartJob")]),
    "nobody answers with ResumeJob": _nobody(of_job=[policy("PodFailed", "ResumeJob")]),
    "nobody answers a pending pod without a timeout": _nobody(
        of_job=[policy("PodPending", "AbortJob")]
    ),
    "nobody goes on where ResumeJob says to": _nobody(
        of_main=[policy("PodFailed", "ResumeJob")], of_job=[_FAILED_ABORT]
    ),
    "each of several pods that are lost at once": Scene(
        make_job(
            *(up(2, name) for name in ("main", "more", "other")),
            needs=6,
            policies=[policy("PodEvicted", "RestartTask")],
        ),
        [
            Step(
                is_in("Running", running=6),
                lambda actor: actor.ground.bury_first(actor.life.name),
                acts=True,
            )
        ],
        Then(_AGAIN, [], retries=1, group="same"),
    ),
    "a pod that fails when it is told to go has failed": Scene(
        _gang(_FAILED_ABORT, needs=1),
        [Step(_runs, evicts("main-0"), acts=True)],
        Then(["Aborting", "Aborted"], [], version=1),
    ),
    "nobody answers an eviction with what is for failures": Scene(
        _gang(_FAILED_ABORT, needs=1),
        [Step(_runs, lambda actor: actor.ground.bury(actor.pod("main-0")), acts=True)],
        Then([], ["main-1", "other-0"], group="same"),
        until=_runs,
    ),
}


# What is answered later -------------------------------------------------------------------------

_DELAY_S = 4
_LONG, _LONGER = "30s", "35s"
"""Pods that run in time do so within the first, on a busy machine too."""
_CLOCK = policy("PodFailed", "CompleteJob", timeout=_LONGER)


def _both(*acts: _Do) -> _Do:
    return lambda actor: [act(actor) for act in acts]


def _late(**more: Any) -> Object:
    """A pod that is pending for a second."""
    waiter = {"name": "w", "image": "busybox", "command": ["sleep", "1"]}
    return up(1, "late", pod={"initContainers": [waiter]}, **more)


_DELAYED: Mapping[str, Scene] = {
    "a failed pod is answered when its time is over": Scene(
        _gang(policy("PodFailed", "AbortJob", timeout=f"{_DELAY_S}s")),
        [Step(_runs, fails(), acts=True)],
        _answered("AbortJob", ended=["main-0"]),
    ),
    "an evicted pod that runs again in time is not answered": Scene(
        _gang(policy("PodEvicted", "TerminateJob", timeout=_LONG), of_other=[_CLOCK], needs=1),
        [Step(_runs, _both(evicts("main-0"), fails(pod="other-0")), acts=True)],
        Then(["Completing", "Completed"], ["other-0"], version=1),
    ),
    "a pending pod that runs in time is not answered": Scene(
        make_job(
            _late(policies=[policy("PodPending", "TerminateJob", timeout=_LONG)]),
            up(1, "other", policies=[_CLOCK]),
            needs=2,
        ),
        [Step(is_in("Running", running=2), fails(pod="other-0"), acts=True)],
        Then(["Completing", "Completed"], ["other-0"], version=1),
    ),
}


# What happens to the group ----------------------------------------------------------------------


def _lost(action: str) -> Scene:
    """A pod is evicted and none fits in its place: too few of the gang run."""
    seat = _key("Unknown", action)

    def lose(actor: Actor) -> None:
        actor.ground.close_seat(seat)
        actor.ground.evict(actor.pod("main-0"))

    then = _answered(action)
    if action == "RestartJob":
        then = Then(["Restarting", "Pending"], [], retries=1, version=1, group="new")
    spec = _gang(policy("Unknown", action), pod=on_seat(seat))
    return Scene(spec, [Step(_runs, lose, acts=True)], then, may_wait=True)


def _key(*words: str) -> str:
    text = "-".join(words).lower().replace("*", "any")
    return "".join(letter if letter.isalnum() else "-" for letter in text)


_LOST = {action: _lost(action) for action in _OF_JOB}

_ALL = {
    **{_key(*cell): scene for cell, scene in _CELLS.items()},
    **{f"choice-{number}": scene for number, scene in enumerate(_CHOICES.values())},
    **{f"delay-{number}": scene for number, scene in enumerate(_DELAYED.values())},
    **{_key("Unknown", action): scene for action, scene in _LOST.items()},
}


@pytest.fixture(scope="module")
def played(ground: Ground) -> Mapping[str, Actor]:
    """All jobs of this module, at rest."""
    for action in _LOST:
        ground.add_seat(_key("Unknown", action))
    return play(ground, _ALL)


@pytest.mark.parametrize(("event", "action"), _CELLS)
def test_each_event_leads_where_the_action_says(
    played: Mapping[str, Actor], event: str, action: str
) -> None:
    assert played[_key(event, action)].outcome == _CELLS[event, action].then


@pytest.mark.parametrize(("number", "which"), list(enumerate(_CHOICES)), ids=list(_CHOICES))
def test_one_policy_answers(played: Mapping[str, Actor], number: int, which: str) -> None:
    actor, scene = played[f"choice-{number}"], _CHOICES[which]
    assert actor.outcome == scene.then
    assert scene.is_over(actor)


@pytest.mark.parametrize(("number", "what"), list(enumerate(_DELAYED)), ids=list(_DELAYED))
def test_a_timeout_delays_and_is_cancelled(
    played: Mapping[str, Actor], number: int, what: str
) -> None:
    assert played[f"delay-{number}"].outcome == _DELAYED[what].then


def test_a_delay_is_told_and_kept(ground: Ground, played: Mapping[str, Actor]) -> None:
    actor = played["delay-0"]
    # The time at which a container ended is in whole seconds.
    assert actor.life.times[-2] - actor.acted >= _DELAY_S - 1
    events = ground.api.events_of(actor.life.name, namespace=ground.name)
    told = [event["message"] for event in events if event["reason"] == "ExecuteAction"]
    assert f"Execute action AbortJob after {_DELAY_S}s" in told


@pytest.mark.parametrize("action", _LOST)
def test_a_gang_of_which_too_few_run_is_answered(played: Mapping[str, Actor], action: str) -> None:
    scene = _LOST[action]
    assert scene.outcome(played[_key("Unknown", action)]) == scene.then
