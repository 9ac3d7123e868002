"""Labels of nodes are domains: for groups that name a tier, and pods with Kueue's annotations."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from app.controllers.job.group import pod_group
from app.model.pod import TASK_SPEC
from app.model.topology import ALLOCATED, REQUIRED
from tests.clusters import workloads
from tests.clusters.place import Place
from tests.controllers.job.jobs import make_job
from tests.scenarios.confs import conf

LABEL = "example.com/rack"


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf(
        "predicates",
        "proportion",
        {"name": "network-topology-aware", "arguments": {"hypernode.tiers": LABEL}},
    )


def racks(place: Place) -> Mapping[str, str]:
    """A rack ``a`` with two nodes of one core, and ``b`` with two of two; node -> rack."""
    found = {}
    for rack, cpu in {"a": "1", "b": "2"}.items():
        for node in place.add_nodes(2, cpu=cpu, labels={LABEL: rack}):
            found[node] = rack
    return found


def test_a_group_that_names_the_label_as_its_tier_is_in_one_rack(place: Place) -> None:
    rack_of = racks(place)
    place.add_group("g", 4, networkTopology={"mode": "hard", "highestTierName": LABEL})
    place.submit(workloads.pod(f"g-{at}", group="g") for at in range(4))
    bound = place.wait_bound("g", 4)
    assert {rack_of[workloads.node_of(pod)] for pod in bound} == {"b"}
    place.wait_group(
        "g", lambda group: group["metadata"].get("annotations", {}).get(ALLOCATED) == "b"
    )


def test_pods_with_kueues_annotation_are_in_one_rack(place: Place) -> None:
    rack_of = racks(place)
    place.add_group("g", 4)
    pods = [workloads.pod(f"g-{at}", group="g") for at in range(4)]
    for pod in pods:
        pod["metadata"]["annotations"][REQUIRED] = LABEL
    place.submit(pods)
    assert {rack_of[workloads.node_of(pod)] for pod in place.wait_bound("g", 4)} == {"b"}


def test_tasks_with_kueues_annotation_are_each_in_one_rack(place: Place) -> None:
    rack_of = racks(place)
    sizes = {"few": 2, "many": 4}
    template = {"metadata": {"annotations": {REQUIRED: LABEL}}, "spec": {"containers": []}}
    tasks = [{"name": n, "replicas": size, "template": template} for n, size in sizes.items()]
    made = pod_group(make_job({"tasks": tasks}), name="g", priorities={})["spec"]
    place.add_group("g", 6, **{key: made[key] for key in ("minTaskMember", "subGroupPolicy")})
    for name, size in sizes.items():
        for at in range(size):
            pod = workloads.pod(f"g-{name}-{at}", group="g", role=name)
            pod["metadata"]["labels"] |= {TASK_SPEC: name}
            pod["metadata"]["annotations"][REQUIRED] = LABEL
            place.submit_one(pod)
    bound = place.wait_bound("g", 6)
    found = {(workloads.role_of(pod), rack_of[workloads.node_of(pod)]) for pod in bound}
    assert found == {("few", "a"), ("many", "b")}


def test_a_tier_that_there_is_not_is_told_with_those_that_there_are(place: Place) -> None:
    racks(place)
    place.add_group("g", 1)
    pod = workloads.pod("g-0", group="g")
    pod["metadata"]["annotations"][REQUIRED] = "example.com/row"
    place.submit_one(pod)
    place.wait_summary("g", f"the network has no tier example.com/row; its tiers are {LABEL}")
