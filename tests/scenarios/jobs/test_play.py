"""Jobs and pods have watches of their own, of which one may be behind."""

from __future__ import annotations

from typing import cast

from tests.clusters.client import Object
from tests.scenarios.jobs.ground import Ground
from tests.scenarios.jobs.play import Actor, is_in
from tests.scenarios.jobs.record import Life

_NO_GROUND = cast("Ground", None)
_restarts = is_in("Restarting", terminating=1)


def _actor(*pods: str) -> Actor:
    life = Life("job", phases=["Restarting"], job={"status": {"terminating": 1}})
    pod: Object = {"metadata": {}}
    life.pods = dict.fromkeys(pods, pod)
    return Actor(_NO_GROUND, life)


def test_a_job_is_where_its_status_and_its_pods_say() -> None:
    assert _restarts(_actor("up-0"))


def test_it_is_not_there_while_pods_are_not_seen_to_have_come_or_gone() -> None:
    assert not _restarts(_actor())
    assert not _restarts(_actor("done-0", "up-0"))
