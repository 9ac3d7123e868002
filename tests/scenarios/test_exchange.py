"""A pod whose place is exchanged with no other is bound where it was planned.

The stock scheduler offers a pod without a gate a hundred of the nodes here, by turns.
"""

from __future__ import annotations

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.place import Place

NODES = 150


def settled(pods: list[Object]) -> list[Object]:
    for pod in pods:
        pod["metadata"]["annotations"] |= workloads.UNGATED | workloads.SETTLED
    return pods


def test_pods_without_gates_are_bound_to_the_one_node_that_was_planned(place: Place) -> None:
    place.add_nodes(NODES, cpu="2")
    (best,) = place.add_nodes(1, cpu="256", memory="1Ti")
    place.add_group("gang", 10)
    place.submit(settled(workloads.members("gang", 10)))
    alone = [f"alone-{number}" for number in range(5)]
    for pod in settled([workloads.pod(name) for name in alone]):
        place.submit_one(pod)

    assert {workloads.node_of(pod) for pod in place.wait_bound("gang", 10)} == {best}
    assert {place.wait_pod_bound(name) for name in alone} == {best}
