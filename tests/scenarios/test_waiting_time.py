"""sla: a group that has waited long enough is let in whatever is free, and goes first."""

from __future__ import annotations

import pytest

from tests.clusters.place import Place
from tests.scenarios.confs import conf

CONF = conf(
    {"name": "overcommit", "arguments": {"overcommit-factor": 1.0}},
    "predicates",
    "proportion",
    "nodeorder",
    first=({"name": "sla", "arguments": {"sla-waiting-time": "1h"}},),
)
SOON = {"volcano.sh/sla-waiting-time": "4s"}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


def test_a_group_that_has_waited_long_enough_is_admitted(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_gang("holder", 2, spec={"minResources": {"cpu": "2"}})
    place.wait_bound("holder", 2)
    place.add_group("patient", 2, minResources={"cpu": "2"})
    place.wait_condition("patient", "Reserved", "False", reason="ClusterOverused")
    place.add_group("urgent", 2, annotations=SOON, minResources={"cpu": "2"})
    place.wait_condition("urgent", "Reserved", "False", reason="ClusterOverused")

    place.wait_phase("urgent", "Inqueue")
    assert place.group("patient")["status"]["phase"] == "Pending"


def test_it_goes_before_those_that_came_earlier(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_gang("holder", 2)
    place.wait_bound("holder", 2)
    place.add_gang("earlier", 2)
    place.add_gang("urgent", 2, spec={"annotations": SOON})
    place.wait_condition("urgent", "Reserved", "False")
    place.delete_gang("holder")

    place.wait_bound("urgent", 2)
    assert not place.bound("earlier")
