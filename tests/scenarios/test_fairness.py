"""drf: who holds less of the cluster goes first when room comes free."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.scenarios.confs import conf

CONF = conf("drf", "predicates", "proportion", "nodeorder")


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


def test_who_holds_less_goes_first_although_it_came_later(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("rich", 4, minimum=1)
    place.wait_bound("rich", 4)
    place.submit(workloads.pod(f"more-{number}", group="rich") for number in range(3))
    place.add_gang("poor", 3, minimum=1)
    place.wait_condition("poor", "Reserved", "False")
    place.delete_pod("rich-0")
    place.delete_pod("rich-1")

    place.wait_bound("poor", 2)
    assert len(place.bound("rich")) == 2
