"""task-topology: its example does what it says, and a pod that comes back joins the others."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.resources import POD_GROUPS
from tests.scenarios.confs import conf

EXAMPLE = ROOT / "examples" / "scheduling" / "task-topology.yaml"
ROLE = "volcano.sh/task-spec"


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "proportion", "nodeorder", "task-topology")


def add_example(place: Place) -> str:
    """The group and the pods that the controllers make of the job; returns the group's name."""
    (job,) = documents(EXAMPLE)
    name, spec = str(job["metadata"]["name"]), job["spec"]
    group = workloads.pod_group(
        name,
        min_member=spec["minAvailable"],
        minTaskMember={task["name"]: task["replicas"] for task in spec["tasks"]},
        annotations=job["metadata"]["annotations"],
    )
    place.api.create(group, resource=POD_GROUPS, namespace=place.name)
    place.submit(pod for task in spec["tasks"] for pod in pods_of(name, task))
    return name


def pods_of(group: str, task: Object) -> list[Object]:
    return [
        workloads.pod(f"{group}-{task['name']}-{number}", group=group, role=task["name"])
        for number in range(task["replicas"])
    ]


def roles_by_node(place: Place, group: str) -> list[list[str]]:
    found = defaultdict(list)
    for pod in place.bound(group):
        found[workloads.node_of(pod)].append(pod["metadata"]["annotations"][ROLE])
    return sorted(sorted(roles) for roles in found.values())


def test_each_server_shares_a_node_with_its_workers(place: Place) -> None:
    place.add_nodes(3, cpu="4")
    group = add_example(place)
    place.wait_bound(group, 6)
    assert roles_by_node(place, group) == [["ps", "worker", "worker"]] * 2


def test_where_nodes_are_too_small_the_group_runs_all_the_same(place: Place) -> None:
    place.add_nodes(6, cpu="1")
    group = add_example(place)
    place.wait_bound(group, 6)


def test_a_pod_that_is_made_anew_comes_back_to_the_others(place: Place) -> None:
    place.add_nodes(4, cpu="4")
    group = add_example(place)
    place.wait_bound(group, 6)
    name = f"{group}-worker-0"
    place.delete_pod(name)
    place.submit_one(workloads.pod(name, group=group, role="worker"))
    place.wait_bound(group, 6)
    assert roles_by_node(place, group) == [["ps", "worker", "worker"]] * 2
