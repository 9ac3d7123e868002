"""Where a job goes by itself (volcano.md section 5.1, Sync), played on both clusters."""

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
from tests.scenarios.jobs.shapes import bad, done, held, make_job, policy, slow, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(400)


def _has(*pods: str) -> Callable[[Actor], bool]:
    return lambda actor: sorted(actor.life.staying) == sorted(pods)


def _alone(spec: Mapping[str, Any], end: str, *pods: str) -> Scene:
    """Nothing is done: the whole life counts, and which pods are left."""
    return Scene(spec, [], Then(["Pending", "Running", end], []), until=_has(*pods))


def _one_fails(needs: int, end: str) -> Scene:
    """Both tasks need one pod; two of the one have succeeded when the other's fails."""
    spec = make_job(done(2, minAvailable=1), up(1, "last", minAvailable=1), needs=needs)

    def fail(actor: Actor) -> None:
        actor.ground.ended(actor.pod("last-0"), 1)

    step = Step(is_in("Running", running=1, succeeded=2), fail, acts=True)
    return Scene(spec, [step], Then([end], ["done-0", "done-1", "last-0"]))


def _edited(before: Mapping[str, Any], after: Mapping[str, Any], then: Then, *pods: str) -> Scene:
    """A job that runs with one pod is changed."""

    def edit(actor: Actor) -> None:
        actor.ground.edit(actor.life.name, after)

    step = Step(is_in("Running", running=1), edit, acts=True)
    return Scene(before, [step], then, until=_has(*pods))


def _fails_again(most: int) -> Scene:
    """A job that may be restarted `most` times fails that often."""
    rule = policy("PodFailed", "RestartJob")
    spec = make_job(done(), up(), needs=2, maxRetry=most, policies=[rule])

    def fail(actor: Actor) -> None:
        actor.ground.ended(actor.pod("up-0"), 1)

    steps = [Step(_runs_again(number), fail) for number in range(most - 1)]
    last = Step(_runs_again(most - 1), fail, acts=True)
    then = Then(["Restarting", "Failed"], ["done-0", "up-0"], retries=most, version=most)
    return Scene(spec, [*steps, last], then, until=is_in("Failed", succeeded=1, failed=1))


def _stays_healthy(*commands: str) -> Scene:
    """A job that may not fail once is told to start again, three times over."""
    spec = make_job(done(), up(), needs=2, maxRetry=1)
    at = {"AbortJob": "Running", "ResumeJob": "Aborted", "RestartJob": "Running"}
    steps = [
        Step(
            _runs_again(number) if at[told] == "Running" else is_in("Aborted", succeeded=1),
            orders(told),
        )
        for number in range(3)
        for told in commands
    ]
    last = Step(_runs_again(3), lambda _: None, acts=True)
    then = Then([], ["done-0", "up-0"], retries=3, version=3 * len(commands), group="same")
    return Scene(spec, [*steps, last], then)


def _runs_again(times: int) -> Callable[[Actor], bool]:
    runs = is_in("Running", running=1, succeeded=1)
    return lambda actor: runs(actor) and actor.life.status.get("retryCount", 0) == times


def _enough_left() -> Scene:
    """Two of four pods keep going, and two are enough."""
    spec = make_job(
        held(2, "one"), up(2, "two"), needs=2, policies=[policy("PodEvicted", "RestartTask")]
    )
    steps = [
        Step(is_in("Running", running=4), evicts("one-0"), acts=True),
        Step(is_in("Running", running=2, terminating=2), lambda _: None),
        Step(has_going(2), lambda actor: actor.bury()),
    ]
    phases = ["Restarting", "Pending", "Running"]
    kept = ["two-0", "two-1"]
    then = Then(phases, kept, retries=1, group="same")
    return Scene(spec, steps, then, until=is_in("Running", running=4))


def _resumed() -> Scene:
    """All its pods are needed, and one of them has succeeded before it is aborted."""
    spec = make_job(done(), up(), needs=2)
    steps = [
        Step(is_in("Running", running=1, succeeded=1), orders("AbortJob")),
        Step(is_in("Aborted", succeeded=1), orders("ResumeJob"), acts=True),
    ]
    then = Then(["Restarting", "Pending", "Running"], ["done-0"], retries=1, version=2, group="new")
    return Scene(spec, steps, then, until=is_in("Running", running=1, succeeded=1))


_ONE = make_job(up(), slow(0), needs=1)

_RULES = {
    "a job completes with minSuccess and takes away what still runs": _alone(
        make_job(done(2), up(), needs=3, minSuccess=2), "Completed", "done-0", "done-1"
    ),
    "a job with minSuccess unmet at the end has failed": _alone(
        make_job(done(), bad(), needs=2, minSuccess=2), "Failed", "done-0", "bad-0"
    ),
    "a task with minAvailable unmet fails a job that needs the sum": _one_fails(2, "Failed"),
    "a task with minAvailable unmet does not matter to a job that needs less": _one_fails(
        1, "Completed"
    ),
    "a job of which minAvailable succeeded is complete": _alone(
        make_job(done(2), bad(minAvailable=0), needs=2), "Completed", "done-0", "done-1", "bad-0"
    ),
    "a job of which fewer succeeded has failed": _alone(
        make_job(done(), bad(), needs=2), "Failed", "done-0", "bad-0"
    ),
    "a job without replicas keeps running": _edited(
        _ONE, make_job(up(0), slow(0), needs=0), Then([], [], group="same")
    ),
    "a running job of which too many are pending is pending again": _edited(
        _ONE,
        make_job(up(), slow(2), needs=3),
        Then(["Pending"], ["up-0"], group="same"),
        *("up-0", "slow-0", "slow-1"),
    ),
    "a running job of which enough run may have pending pods": _edited(
        _ONE,
        make_job(up(), slow(2), needs=1),
        Then([], ["up-0"], group="same"),
        *("up-0", "slow-0", "slow-1"),
    ),
    "a running job that needs no pods any more may have pending pods": _edited(
        _ONE,
        make_job(up(), slow(2), needs=0),
        Then([], ["up-0"], group="same"),
        *("up-0", "slow-0", "slow-1"),
    ),
    "a job with maxRetry 1 has failed with its first failure and keeps what ended": _fails_again(1),
    "a job with maxRetry 2 has failed with its second failure": _fails_again(2),
    "a job that is suspended and resumed again and again is healthy": _stays_healthy(
        "AbortJob", "ResumeJob"
    ),
    "a job that Commands restart again and again is healthy": _stays_healthy("RestartJob"),
    "a job that is resumed goes on with what had succeeded": _resumed(),
    "a restart is over when enough pods are left": _enough_left(),
}
_NAMES = {f"rule-{number}": rule for number, rule in enumerate(_RULES)}


@pytest.fixture(scope="module")
def played(ground: Ground) -> Mapping[str, Actor]:
    """All jobs of this module, at rest."""
    return play(ground, {name: _RULES[rule] for name, rule in _NAMES.items()})


@pytest.mark.parametrize(("name", "rule"), _NAMES.items(), ids=_NAMES.values())
def test_each_rule_leads_where_it_says(played: Mapping[str, Actor], name: str, rule: str) -> None:
    actor, scene = played[name], _RULES[rule]
    assert actor.outcome == scene.then
    assert scene.is_over(actor)
