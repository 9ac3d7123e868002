"""Examples that need no configuration of their own: what each one shows."""

from __future__ import annotations

import pytest

from tests.scenarios.jobs.applied import Applied, applied

__all__ = ["applied"]

pytestmark = pytest.mark.timeout(200)


def test_five_pods_start_together_or_none(applied: Applied) -> None:
    applied.place.add_nodes(1, cpu="800m")
    applied.apply("scheduling/gang.yaml")
    applied.wait_waits("quintet", "asked")
    assert not applied.running("quintet")
    applied.place.add_nodes(1, cpu="200m")
    applied.wait_running("quintet", 5)


def test_a_job_waits_for_a_node_with_the_label_that_it_selects(applied: Applied) -> None:
    applied.place.add_nodes(1, cpu="4")
    applied.apply("scheduling/node-selector.yaml")
    applied.wait_waits("picky", "node affinity/selector")
    (fast,) = applied.place.add_nodes(1, cpu="4", labels={"pumice.example/disk": "fast"})
    assert applied.wait_running("picky", 3) == [fast] * 3


def test_of_two_jobs_that_wait_the_one_of_the_higher_class_goes_first(applied: Applied) -> None:
    applied.place.add_nodes(1, cpu="300m")
    applied.apply("scheduling/cooldown.yaml")
    applied.wait_running("warm-up", 2)
    applied.apply("scheduling/node-selector.yaml")
    applied.apply("scheduling/priority-high.yaml")
    applied.apply("scheduling/priority-job.yaml")
    applied.wait_waits("vip", "asked")
    applied.delete("warm-up")
    applied.wait_running("vip", 3)
    assert not applied.running("picky")


def test_jobs_with_small_shares_go_before_the_rest_of_one_with_a_large_share(
    applied: Applied,
) -> None:
    applied.place.add_nodes(1, cpu="1")
    applied.apply("scheduling/fair-share-cpu.yaml")
    applied.wait_running("thinker", 2)
    applied.apply("scheduling/fair-share-memory.yaml")
    applied.apply("scheduling/fair-share-small.yaml")
    applied.place.wait_known(applied.group("hoarder"), applied.group("latecomer"), pods=5)
    applied.place.add_nodes(1, cpu="500m")
    applied.wait_running("latecomer", 1)
    applied.wait_running("hoarder", 4)
    assert len(applied.running("thinker")) == 2


def add_racks(applied: Applied) -> tuple[list[str], list[str]]:
    """Two racks of two nodes with two cpus each."""
    nodes = applied.place.add_nodes(4, cpu="2")
    for number in range(2):
        applied.place.add_hyper_node(f"rack-{number}", 1, *nodes[2 * number : 2 * number + 2])
    return nodes[:2], nodes[2:]


def test_a_gang_keeps_to_one_rack(applied: Applied) -> None:
    racks = add_racks(applied)
    applied.apply("scheduling/network-topology.yaml")
    nodes = set(applied.wait_running("close-together", 3))
    assert any(nodes <= set(rack) for rack in racks)


def test_two_tasks_of_a_gang_keep_to_a_rack_each(applied: Applied) -> None:
    racks = add_racks(applied)
    applied.apply("scheduling/topology-affinity.yaml")
    applied.wait_running("kept-apart", 4)
    found = {
        (pod["metadata"]["labels"]["volcano.sh/task-spec"], pod["spec"]["nodeName"] in racks[0])
        for pod in applied.running("kept-apart")
    }
    assert len(found) == len({rack for _, rack in found}) == 2
