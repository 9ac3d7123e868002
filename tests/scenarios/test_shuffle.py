"""shuffle with rescheduling: pods of a node that is used too much come again on an empty one."""

from __future__ import annotations

import pytest

from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import PODS
from tests.clusters.workloads import node_of, pod

CONF = """
actions: "enqueue, allocate, backfill, shuffle"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: nodeorder
  - name: rescheduling
    arguments:
      interval: 2s
      strategies:
      - name: lowNodeUtilization
        params:
          thresholds: {cpu: 30}
          targetThresholds: {cpu: 50}
"""


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


def on_nodes(place: Place) -> list[int]:
    """How many pods are bound to each node, the fullest first."""
    nodes = [node_of(each) for each in place.bound()]
    return sorted((nodes.count(name) for name in set(nodes)), reverse=True)


def let_run(place: Place, group: str) -> None:
    """Wait until all are bound and, where there is no kubelet, let them start as one would."""
    wait_until(lambda: len(place.bound(group)) == len(place.pods(group)), timeout_s=30, what=group)
    for each in place.bound(group):
        if not each["status"].get("startTime"):
            about = each["metadata"]
            status = {"phase": "Running", "startTime": about["creationTimestamp"]}
            change = {"status": status}
            place.api.patch(PODS, about["name"], change, namespace=place.name, subresource="status")


def names(place: Place) -> set[str]:
    return {each["metadata"]["name"] for each in place.bound()}


def test_pods_beyond_the_minimum_move_to_an_empty_node_and_then_it_is_quiet(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("grown", 4, minimum=2)
    let_run(place, "grown")
    place.add_nodes(1, cpu="4")
    wait_until(lambda: len(place.bound()) == 2, timeout_s=30, what="two pods are evicted")
    place.wait_event("grown", "Evict", says="because of shuffle")
    place.submit(pod(f"grown-again-{number}", group="grown") for number in range(2))
    let_run(place, "grown")
    assert on_nodes(place) == [2, 2]
    before = names(place)
    with pytest.raises(AssertionError, match="a pod moves once more"):
        wait_until(lambda: names(place) != before, timeout_s=6, what="a pod moves once more")


def test_a_gang_of_which_no_member_can_be_spared_stays_where_it_is_too_much(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("tight", 3)
    place.add_gang("grown", 1)
    let_run(place, "tight")
    let_run(place, "grown")
    place.add_nodes(1, cpu="2")
    wait_until(lambda: not place.bound("grown"), timeout_s=30, what="the single pod is evicted")
    assert len(place.bound("tight")) == 3
