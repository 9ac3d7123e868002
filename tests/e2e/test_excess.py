"""Groups that ask for more than there can ever be: they wait with numbers, and hold up nobody.

All are legal for the API server. A gang of the same queue, asking for the same resources, runs
beside each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import POD_GROUPS
from tests.clusters.rig import Rig

pytestmark = pytest.mark.real

MOST = 2**31 - 1
"""The largest number of members that a PodGroup may ask for."""


@pytest.fixture
def place(rig: Rig) -> Iterator[Place]:
    """A node of 4 cpus."""
    with Place(rig) as made:
        made.add_nodes(1, cpu="4")
        yield made


@pytest.mark.parametrize(
    ("minimum", "pod", "says"),
    [
        pytest.param(MOST, {"memory": "4Gi"}, f"pods asked {MOST}, present 1", id="members"),
        pytest.param(1000, {"memory": "16Pi"}, "memory asked", id="members-times-memory"),
        pytest.param(1, {"cpu": "9223372036854775807"}, "cpu asked", id="cpu"),
        pytest.param(1, {"memory": "15Ei"}, "memory asked", id="memory"),
    ],
)
def test_a_gang_beside_it_runs(place: Place, minimum: int, pod: dict[str, Any], says: str) -> None:
    place.add_group("excess", minimum)
    place.submit_one(workloads.pod("excess-0", group="excess", **pod))
    place.wait_summary("excess", says)
    place.add_gang("modest", 3)
    place.wait_bound("modest", 3)
    assert not place.bound("excess")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"minResources": {"cpu": "1e30", "memory": "100Ei"}}, id="min-resources"),
        pytest.param({"minTaskMember": {"ps": MOST, "worker": MOST}}, id="roles"),
    ],
)
def test_a_gang_beside_a_group_without_pods_runs(place: Place, spec: dict[str, Any]) -> None:
    place.add_group("excess", MOST, **spec)
    place.wait_summary("excess", "asked")
    place.add_gang("modest", 3)
    place.wait_bound("modest", 3)
    place.api.delete(POD_GROUPS, "excess", namespace=place.name)
