"""drf with enableHierarchy: the cluster is shared along the tree that queues are annotated with."""

from __future__ import annotations

import pytest

from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.scenarios.confs import conf

CONF = conf({"name": "drf", "enableHierarchy": True}, "predicates", "nodeorder")


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


def add_queue(place: Place, name: str, path: str, weights: str) -> str:
    marks = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return place.add_queue(name, annotations=marks)


def test_queues_get_what_their_branches_weigh(place: Place) -> None:
    root = place.name
    science = add_queue(place, "science", f"root/{root}-sci", "1/3")
    dev = add_queue(place, "dev", f"root/{root}-eng/dev", "1/1/1")
    prod = add_queue(place, "prod", f"root/{root}-eng/prod", "1/1/1")
    for name, queue in (("science", science), ("dev", dev), ("prod", prod)):
        place.add_gang(name, 8, minimum=1, spec={"queue": queue})
    place.wait_known("science", "dev", "prod", pods=24)
    place.add_nodes(1, cpu="8")
    wait_until(lambda: len(place.bound()) == 8, timeout_s=30, what="the node is full")
    counts = {name: len(place.bound(name)) for name in ("science", "dev", "prod")}
    assert counts == {"science": 6, "dev": 1, "prod": 1}
