"""How much of nodes is requested, one by one and by domains of the network."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.cli.node_usage import NO_DOMAINS, Nodes
from app.wire.kinds import PODS
from tests.cli.stand import Object, Stand

RACKED = ("top", "nodes", "--topology")


def node(name: str, cpu: str = "8", *, gpus: int = 0, **spec: Any) -> Object:
    offered = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    if gpus:
        offered["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": offered, "capacity": offered},
    }


def pod(name: str, on: str, *, job: str = "", group: str = "", **asked: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"volcano.sh/job-name": job} if job else {},
            "annotations": {"scheduling.k8s.io/group-name": group} if group else {},
        },
        "spec": {
            "nodeName": on,
            "containers": [
                {"name": "c", "image": "none", "resources": {"limits": asked, "requests": asked}}
            ],
        },
    }


def hyper_node(name: str, tier: int, *members: str, kind: str = "Node", called: str = "") -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            **({"tierName": called} if called else {}),
            "members": [
                {"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members
            ],
        },
    }


GPU = {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "4"}


@pytest.fixture
def racks(stand: Stand) -> Stand:
    """Two racks below a spine, and a node in none."""
    stand.create(
        node("n1", gpus=8),
        node("n2", unschedulable=True),
        node("n3"),
        node("n4", "4"),
        hyper_node("rack-a", 1, "n1", "n2", called="rack"),
        hyper_node("rack-b", 1, "n3", "gone"),
        hyper_node("spine", 2, "rack-a", "rack-b", kind="HyperNode"),
        pod("a-0", "n1", job="a", **GPU),
        pod("a-1", "n2", job="a", cpu="3", memory="1Gi"),
        pod("b-0", "n3", group="b", cpu="500m", memory="1Gi"),
        pod("plain", "n4", cpu="1", memory="1Gi"),
        pod("over", "n3", job="c", cpu="8"),
    )
    stand.status(PODS, "over", {"phase": "Succeeded"})
    return stand


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_nodes_are_listed_with_what_is_requested_of_them(racks: Stand) -> None:
    assert cells(racks.printed("top", "nodes")) == [
        ["Name", "CPU", "Memory", "GPUs", "Jobs"],
        ["n1", "2/8", "4Gi/32Gi", "4/8", "1"],
        ["n2", "3/8", "1Gi/32Gi", "-", "1"],
        ["n3", "0.5/8", "1Gi/32Gi", "-", "1"],
        ["n4", "1/4", "1Gi/32Gi", "-", "0"],
    ]


def test_domains_are_a_tree_below_the_whole_cluster(racks: Stand) -> None:
    text = racks.printed(*RACKED)
    assert cells(text) == [
        ["Name", "Tier", "Nodes", "CPU", "Memory", "GPUs", "Jobs"],
        ["cluster", "-", "4", "6.5/28", "7Gi/128Gi", "4/8", "2"],
        ["spine", "2", "3", "5.5/24", "6Gi/96Gi", "4/8", "2"],
        ["rack-a", "1", "2", "5/16", "5Gi/64Gi", "4/8", "1"],
        ["rack-b", "1", "1", "0.5/8", "1Gi/32Gi", "-", "1"],
        ["<in", "no", "HyperNode>", "-", "1", "1/4", "1Gi/32Gi", "-", "0"],
    ]
    depths = [len(line) - len(line.lstrip()) for line in text.splitlines()]
    assert depths == [0, 0, 2, 4, 4, 2]


def test_wide_tells_what_is_wrong_and_which_nodes_take_no_pods(racks: Stand) -> None:
    lines = racks.printed(*RACKED, "-o", "wide").splitlines()
    assert lines[0].rstrip().endswith("Wrong")
    by_name = {line.split()[0]: line for line in lines}
    assert by_name["rack-a"].split()[7:] == ["1", "<none>", "rack", "<none>"]
    assert by_name["rack-b"].rstrip().endswith("there is no Node gone")


def test_programs_get_amounts_and_problems(racks: Stand) -> None:
    found = {each["name"]: each for each in json.loads(racks.printed(*RACKED, "-o", "json"))}
    a, b = found["rack-a"], found["rack-b"]
    assert (a["tier"], a["tierName"], a["depth"], a["nodes"], a["away"]) == (1, "rack", 2, 2, 1)
    assert a["requested"] == {"cpu": "5", "memory": "5Gi", "nvidia.com/gpu": "4", "pods": "2"}
    assert a["allocatable"]["cpu"] == "16"
    assert b["problems"] == [{"reason": "NoSuchMember", "message": "there is no Node gone"}]
    assert "name: rack-a" in racks.printed(*RACKED, "-o", "yaml")


def test_without_hyper_nodes_there_is_a_sentence_and_one_domain_for_programs(stand: Stand) -> None:
    stand.create(node("n1"))
    assert stand.printed(*RACKED) == NO_DOMAINS
    (cluster,) = json.loads(stand.printed(*RACKED, "-o", "json"))
    assert (cluster["name"], cluster["nodes"]) == ("cluster", 1)


def test_without_nodes_none_are_found(stand: Stand) -> None:
    assert stand.printed("top", "nodes") == "No resources found\n"


def test_hyper_nodes_that_go_round_are_shown_once() -> None:
    found = Nodes([node("n1")], []).by_domain(
        [
            hyper_node("a", 1, "b", kind="HyperNode"),
            hyper_node("b", 2, "a", kind="HyperNode"),
            hyper_node("c", 3, "a", "b", kind="HyperNode"),
        ]
    )
    assert [(usage.name, usage.depth) for usage in found] == [
        ("cluster", 0),
        ("c", 1),
        ("b", 2),
        ("a", 3),
        ("<in no HyperNode>", 1),
    ]
    assert [each.reason for each in found[3].problems] == ["Cycle", "Empty"]


def test_a_shared_hyper_node_stands_below_that_of_the_lowest_tier() -> None:
    found = Nodes([node("n1")], []).by_domain(
        [
            hyper_node("a", 1, "n1"),
            hyper_node("wide", 3, "a", kind="HyperNode"),
            hyper_node("narrow", 2, "a", kind="HyperNode"),
        ]
    )
    assert [(usage.name, usage.depth) for usage in found] == [
        ("cluster", 0),
        ("wide", 1),
        ("narrow", 1),
        ("a", 2),
    ]
