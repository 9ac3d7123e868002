"""Claims that get their volumes only when kube-scheduler has chosen a node for the pod.

It waits for them in PreBind, before it calls Bind.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import workloads
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.clusters.rig import Setting, Stage
from tests.e2e.claims import ZONE, LateClaims
from tests.e2e.occupancy import Occupancy

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


def test_a_gang_all_of_whose_claims_come_late_is_bound_whole(
    place: Place, claims: LateClaims
) -> None:
    names = [f"data-{number}" for number in range(SIZE)]
    with (
        Partials(place.api, place.name, {GANG: SIZE}) as seen,
        Occupancy(place.api, place.name) as on,
    ):
        place.add_group(GANG, SIZE)
        for number, name in enumerate(names):
            pod = workloads.pod(f"{GANG}-{number}", group=GANG, **claims.add(name))
            place.submit_one(pod)
        chosen = [claims.wait_chosen(name) for name in names]
        for name in names[:-1]:
            claims.provide(name)
        place.wait_held(GANG, SIZE - 1)
        assert not place.bound()
        claims.provide(names[-1])
        bound = place.wait_bound(GANG, SIZE)
        place.wait_phase(GANG, "Running")
        assert sorted(map(workloads.node_of, bound)) == sorted(chosen)
        assert (on.most(), seen.made_twice()) == (1, [])
    assert seen.longest_s() < 1


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
    rig = stage.rig()
    rig.extender.kill()
    rig.restart_extender()
    place.wait_held(GANG, SIZE - 1)
    place.wait_summary(GANG, WAITS)
    claims.provide("data")
    place.wait_bound(GANG, SIZE)


def test_a_gang_goes_where_its_volumes_can_be(place: Place) -> None:
    zone = place.add_nodes(2, cpu="2", labels={ZONE: "b"})
    place.add_nodes(2, cpu="2", labels={ZONE: "c"})
    with LateClaims(place, zones=["b"]) as claims:
        place.add_group("zonal", 4)
        names = [f"zonal-{number}" for number in range(4)]
        for name in names:
            place.submit_one(workloads.pod(name, group="zonal", **claims.add(name)))
        for name in names:
            claims.provide(name)
        bound = place.wait_bound("zonal", 4)
        assert {workloads.node_of(pod) for pod in bound} == set(zone)
