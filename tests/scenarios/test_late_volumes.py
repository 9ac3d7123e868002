"""Volumes that claims get once a pod has its node: made there, or free ones that are there."""

from __future__ import annotations

from app.model.volumes import NO_PROVISIONER
from tests.clusters import workloads
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.e2e.claims import ZONE, LateClaims
from tests.e2e.occupancy import Occupancy

GANG = "gang"
SIZE = 3


def test_a_gang_all_of_whose_claims_come_late_is_bound_whole(place: Place) -> None:
    names = [f"data-{number}" for number in range(SIZE)]
    place.add_nodes(SIZE, cpu="1")
    with (
        LateClaims(place) as claims,
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


def test_a_gang_takes_the_free_volumes_of_its_class_where_they_are(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    there = place.add_nodes(2, cpu="4")
    with LateClaims(place, provisioner=NO_PROVISIONER) as claims:
        for node in there:
            claims.offer(f"disk-{node}", node)
        place.add_group(GANG, 2)
        names = ["data-0", "data-1"]
        for name in names:
            place.submit_one(workloads.pod(name, group=GANG, **claims.add(name)))
        kept = sorted(claims.settle(name) for name in names)
        assert kept == sorted(f"disk-{node}" for node in there)
        assert sorted(map(workloads.node_of, place.wait_bound(GANG, 2))) == sorted(there)


def test_a_gang_waits_for_the_volume_that_is_missing(place: Place) -> None:
    one, other = place.add_nodes(2, cpu="4")
    with LateClaims(place, provisioner=NO_PROVISIONER) as claims:
        claims.offer("disk-0", one)
        place.add_group(GANG, 2)
        names = ["data-0", "data-1"]
        for name in names:
            place.submit_one(workloads.pod(name, group=GANG, **claims.add(name)))
        place.wait_condition(GANG, "Reserved", "False", reason="Volumes")
        assert not place.bound()
        claims.offer("disk-1", other)
        for name in names:
            claims.settle(name)
        assert sorted(map(workloads.node_of, place.wait_bound(GANG, 2))) == sorted([one, other])
