"""Pods evicted at any moment of their jobs' lives, on both clusters: the policy answers, once.

`PUMICE_ROUNDS=20` makes it 400 jobs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import pytest

from tests.clusters.client import Object
from tests.clusters.nodes import in_parallel
from tests.scale import ROUND_S, ROUNDS, dice
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.record import Life, Record
from tests.scenarios.jobs.shapes import make_job, policy, up

__all__ = ["ground"]

_JOBS: Final = 20 * ROUNDS
_SIZES: Final = (2, 3, 6, 12)
_ENDS: Final = {"CompleteJob": "Completed", "AbortJob": "Aborted", "TerminateJob": "Terminated"}
_RESTARTS: Final = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")


class Moment(IntEnum):
    """What becomes of a pod, and of its job."""

    MADE = 1
    BOUND = 2
    RUNS = 3
    JOB_RUNS = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """One pod of `size` is evicted at its `moment`, which is answered by `action`.

    A job that can do without `spare` pods is pending again while the evicted one still goes.
    """

    size: int
    spare: int
    pod: str
    moment: Moment
    action: str

    @property
    def spec(self) -> Object:
        """The job."""
        policies = [policy("PodEvicted", self.action)]
        needs = self.size - self.spare
        parts = {"totalPartitions": self.size, "partitionSize": 1}
        main = up(self.size, "main", minAvailable=needs, partitionPolicy=parts)
        return make_job(main, needs=needs, policies=policies)

    def is_time(self, life: Life) -> bool:
        """Whether the moment has come."""
        pod = life.pods.get(self.pod)
        return pod is not None and _reached(life, pod) >= self.moment

    def is_answered(self, life: Life) -> bool:
        """Whether all has come of it that should."""
        if self.action in _ENDS:
            return life.phase == _ENDS[self.action]
        return bool(life.status.get("retryCount")) and life.counts(running=self.size)

    @property
    def outcome(self) -> tuple[int, int]:
        """How often its version grew, and how often it was restarted."""
        whole = self.action in {*_ENDS, "RestartJob"}
        return int(whole), int(self.action in _RESTARTS)


def _outcome(life: Life) -> tuple[int, int]:
    return life.status.get("version", 0), life.status.get("retryCount", 0)


def _reached(life: Life, pod: Object) -> Moment:
    """How far a job and its pod have come."""
    if life.phase == "Running":
        return Moment.JOB_RUNS
    if pod["status"]["phase"] == "Running":
        return Moment.RUNS
    return Moment.BOUND if "nodeName" in pod["spec"] else Moment.MADE


def _plan(die: random.Random) -> Plan:
    size = die.choice(_SIZES)
    return Plan(
        size,
        spare=die.randrange(2),
        pod=f"main-{die.randrange(size)}",
        moment=die.choice(list(Moment)),
        # All pods of those that are restarted run at the end, and 400 jobs must fit.
        action=die.choice([*_ENDS, *_ENDS, *_RESTARTS]),
    )


@pytest.mark.timeout(ROUNDS * ROUND_S)
def test_whenever_a_pod_is_evicted_its_policy_answers_once(ground: Ground) -> None:
    die = dice()
    plans = {f"job-{number}": _plan(die) for number in range(_JOBS)}
    to_evict, unanswered = set(plans), set(plans)
    deadline = time.monotonic() + ROUNDS * ROUND_S / 2
    with Record(ground) as record:
        in_parallel(lambda name: ground.submit(name, plans[name].spec), plans)
        while unanswered and time.monotonic() < deadline:
            life = record.follow(timeout_s=deadline - time.monotonic())
            if life is None:
                break
            plan = plans[life.name]
            if life.name in to_evict and plan.is_time(life):
                to_evict.remove(life.name)
                ground.evict(f"{life.name}-{plan.pod}")
            elif life.name not in to_evict and plan.is_answered(life):
                unanswered.discard(life.name)
    assert not {name: (plans[name], record.lives[name].status) for name in unanswered}
    outcomes = {name: _outcome(life) for name, life in record.lives.items()}
    assert outcomes == {name: plan.outcome for name, plan in plans.items()}


def test_the_group_of_a_pod_that_is_made_anew_does_not_wait_again(ground: Ground) -> None:
    with Record(ground) as record:
        ground.submit("anew", make_job(up(3, "main"), needs=3))
        _follow(record, _all_run)
        before = record.lives["anew"].staying["main-0"]
        ground.evict("anew-main-0")
        phases = _follow(record, lambda life: _all_run(life) and life.staying["main-0"] != before)
    assert phases <= {"Running", "Unknown"}
    events = ground.api.events_of("anew", namespace=ground.name)
    assert not [event for event in events if event["message"].endswith("reason: ")]


def _follow(record: Record, is_over: Callable[[Life], bool]) -> set[str]:
    """The phases of the group of the job `anew` until it is over with it."""
    phases: set[str] = set()
    deadline = time.monotonic() + ROUND_S / 2
    while life := record.follow(timeout_s=deadline - time.monotonic()):
        if life.name == "anew":
            phases.add(_group_phase(life))
            if is_over(life):
                return phases
    raise AssertionError(phases)


def _all_run(life: Life) -> bool:
    running = [life.pods[name] for name in life.staying if _runs(life.pods[name])]
    return len(running) == 3 and _group_phase(life) == "Running"


def _runs(pod: Object) -> bool:
    return str(pod["status"].get("phase")) == "Running"


def _group_phase(life: Life) -> str:
    group = life.group or {}
    return str((group.get("status") or {}).get("phase") or "")
