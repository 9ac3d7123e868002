"""nodegroup: queues have nodes of their own, as their affinity says."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.scenarios.confs import conf

LABEL = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "proportion", "nodeorder", "nodegroup")


def required(*groups: str) -> Object:
    return {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(groups)}}


def nodes_of(place: Place, group: str) -> set[str]:
    return {workloads.node_of(pod) for pod in place.bound(group)}


def test_a_gang_goes_to_the_nodes_of_its_queue(place: Place) -> None:
    place.add_nodes(2, cpu="8")
    (blue,) = place.add_nodes(1, cpu="2", labels={LABEL: "blue"})
    queue = place.add_queue("q", affinity=required("blue"))
    place.add_gang("ours", 2, spec={"queue": queue})
    place.wait_bound("ours", 2)
    assert nodes_of(place, "ours") == {blue}


def test_the_queues_of_the_example_have_nodes_of_their_own(place: Place) -> None:
    blue, green = (
        place.add_queue(
            item["metadata"]["name"],
            annotations=item["metadata"].get("annotations"),
            **item["spec"],
        )
        for item in documents(ROOT / "examples" / "queues" / "node-groups.yaml")
    )
    (of_blue,) = place.add_nodes(1, cpu="8", labels={LABEL: "blue"})
    (of_green,) = place.add_nodes(1, cpu="8", labels={LABEL: "green"})
    place.add_gang("blues", 2, spec={"queue": blue})
    place.add_gang("greens", 4, spec={"queue": green})
    place.wait_bound("blues", 2)
    place.wait_bound("greens", 4)
    assert (nodes_of(place, "blues"), nodes_of(place, "greens")) == ({of_blue}, {of_green})
    place.add_gang("more", 1, spec={"queue": blue})
    place.wait_summary("more", f"queue {blue} in node group blue: cpu 2 held and 1 asked of 2")


def test_single_pods_stay_in_their_group_too(place: Place) -> None:
    place.add_nodes(2, cpu="8")
    (blue,) = place.add_nodes(1, cpu="3", labels={LABEL: "blue"})
    queue = place.add_queue("q", affinity=required("blue"))
    for number in range(3):
        pod = workloads.pod(f"pod-{number}", queue=queue)
        pod["metadata"]["annotations"] |= workloads.UNGATED
        place.submit_one(pod)
        assert place.wait_pod_bound(f"pod-{number}") == blue


def test_a_gang_waits_for_its_limit_and_is_told_the_numbers(place: Place) -> None:
    place.add_nodes(1, cpu="8", labels={LABEL: "blue"})
    limits = {LIMITS: '{"blue": {"cpu": "2"}}'}
    queue = place.add_queue("q", annotations=limits, affinity=required("blue"))
    place.add_gang("first", 2, spec={"queue": queue})
    place.wait_bound("first", 2)
    place.add_gang("second", 1, spec={"queue": queue})
    place.wait_summary("second", f"queue {queue} in node group blue: cpu 2 held and 1 asked of 2")
    place.delete_gang("first")
    place.wait_bound("second", 1)


def test_a_gang_of_a_queue_without_its_nodes_is_told_which_there_are(place: Place) -> None:
    place.add_nodes(1, cpu="8", labels={LABEL: "green"})
    queue = place.add_queue("q", affinity=required("blue"))
    place.add_gang("ours", 2, spec={"queue": queue})
    place.wait_summary("ours", f"queue {queue} may use node groups blue, nodes are in green")
