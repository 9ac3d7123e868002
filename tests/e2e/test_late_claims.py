"""Claims that get their volumes only when kube-scheduler has chosen a node for the pod.

It waits for them in PreBind, before it calls Bind. What holds on the sandbox too is in
`tests/scenarios/test_late_volumes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.rig import Setting, Stage
from tests.e2e.claims import LateClaims

pytestmark = pytest.mark.real

GANG = "gang"
SIZE = 3
LATE = f"{GANG}-0"
HELD_S = 4
PATIENT = Setting(flags=("--barrier-timeout=2", f"--barrier-limit={HELD_S}"))
"""So patient only with what does not come; with members in PreBind as by default."""
IMPATIENT = Setting(flags=(*PATIENT.flags, "--prebind-timeout=6"))
SENT_BACK = "the places of the gang are kept"
WAITS = "kube-scheduler waits for volumes or devices of pod"


@pytest.fixture
def place(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Nodes for one pod each, as many as the gang has members."""
    with Place(stage.rig(getattr(request, "param", PATIENT))) as made:
        made.add_nodes(SIZE, cpu="1")
        yield made


@pytest.fixture
def claims(place: Place) -> Iterator[LateClaims]:
    with LateClaims(place) as made:
        yield made


def submit_with_one_claim(place: Place, claims: LateClaims) -> None:
    """The others are held at Bind then, as the claim's pod does not come."""
    place.add_group(GANG, SIZE)
    place.submit_one(workloads.pod(LATE, group=GANG, **claims.add("data")))
    claims.wait_chosen("data")
    place.submit([workloads.pod(f"{GANG}-{n}", group=GANG) for n in range(1, SIZE)])
    place.wait_held(GANG, SIZE - 1)


def test_nobody_takes_the_room_of_a_gang_one_of_whose_claims_is_later_than_its_binds_are_held(
    place: Place, claims: LateClaims
) -> None:
    submit_with_one_claim(place, claims)
    place.add_gang("rival", SIZE - 1)
    place.wait_event(f"{GANG}-1", "FailedScheduling", says=SENT_BACK)
    place.wait_held(GANG, SIZE - 1)
    place.wait_summary(GANG, f"has its places; {WAITS}")
    assert not place.bound()

    claims.provide("data")
    place.wait_bound(GANG, SIZE)
    assert not place.bound("rival")


@pytest.mark.parametrize("place", [IMPATIENT], indirect=True)
def test_a_gang_whose_claim_never_comes_loses_its_places(place: Place, claims: LateClaims) -> None:
    submit_with_one_claim(place, claims)
    place.add_gang("rival", SIZE - 1)
    place.wait_bound("rival", SIZE - 1)
    assert not place.bound(GANG)
    place.delete_gang("rival")

    place.wait_condition(GANG, "Unschedulable", says=WAITS)
    place.wait_summary(GANG, WAITS)
    claims.provide("data")
    place.wait_bound(GANG, SIZE, timeout_s=60)


@pytest.mark.parametrize("place", [Setting()], indirect=True)
def test_the_next_extender_knows_what_the_gang_waits_for(
    stage: Stage, place: Place, claims: LateClaims
) -> None:
    submit_with_one_claim(place, claims)
    rig = stage.rig(Setting())
    rig.extender.kill()
    rig.restart_extender()
    place.wait_held(GANG, SIZE - 1)
    place.wait_summary(GANG, WAITS)
    claims.provide("data")
    place.wait_bound(GANG, SIZE)
