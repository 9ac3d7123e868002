"""Shares of queues: what each is entitled to, and how much of it is held."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest

from app.cli import queue_shares, top
from app.cli.cluster import Cluster, Objects
from app.kube import errors
from app.wire.kinds import NODES, PODS, QUEUES, Resource
from tests.cli.stand import Object, Stand, queue

TOP = ("top", "queues")
CLUSTER = {"cpu": 10_000, "memory": 10 * 2**30}


def held(name: str, cpu: str = "", **spec: Any) -> Object:
    item = queue(name, **spec)
    item["status"] = {"state": "Open", **({"allocated": {"cpu": cpu}} if cpu else {})}
    return item


def found(*queues: Object, cluster: dict[str, int] | None = None) -> dict[str, Any]:
    shares = queue_shares.shares(queues, CLUSTER if cluster is None else cluster)
    return {share.name: share for share in shares}


def test_parents_stand_before_their_children() -> None:
    shares = queue_shares.shares(
        [held("z", parent="a"), held("b"), held("a", parent="root"), held("root")], CLUSTER
    )
    assert [(share.name, share.depth) for share in shares] == [
        ("root", 0),
        ("a", 1),
        ("z", 2),
        ("b", 1),
    ]


def test_a_chain_of_thousands_of_queues_is_shown() -> None:
    chain = [held(f"q{i}", parent=f"q{i - 1}" if i else "root") for i in range(5_000)]
    shares = queue_shares.shares([held("root"), *chain], CLUSTER)
    assert [share.depth for share in shares] == list(range(5_001))


def test_a_share_is_of_what_is_deserved() -> None:
    assert found(held("root"), held("a", "3", deserved={"cpu": "4"}))["a"].share == 0.75


def test_what_is_not_said_to_be_deserved_is_a_part_by_weight() -> None:
    shares = found(held("root"), held("a", "2", weight=1), held("b", "9", weight=3))
    assert shares["a"].entitled == {"cpu": 2500, "memory": 2.5 * 2**30}
    assert shares["a"].share == 0.8
    assert shares["b"].share == 1.2


def test_children_divide_what_their_parent_is_entitled_to() -> None:
    shares = found(
        held("root"),
        held("a", weight=1),
        held("b", weight=1),
        held("a1", "1", parent="a", weight=1),
        held("a2", parent="a", weight=4),
    )
    assert shares["a1"].entitled["cpu"] == 1000
    assert shares["a2"].entitled["cpu"] == 4000


def test_a_capability_bounds_the_part_by_weight() -> None:
    share = found(held("root"), held("a", "1", capability={"cpu": "2", "x.com/gpu": "1"}))["a"]
    assert (share.entitled["cpu"], share.share) == (2000, 0.5)
    assert share.entitled["x.com/gpu"] == 1


def test_the_largest_part_of_any_resource_counts() -> None:
    item = held("a", deserved={"cpu": "4", "memory": "4Gi"})
    item["status"]["allocated"] = {"cpu": "1", "memory": "3Gi", "pods": "100"}
    share = found(held("root"), item)["a"]
    assert (share.share, share.resource) == (0.75, "memory")
    assert "pods" not in share.allocated


def test_a_queue_that_holds_none_of_anything_is_short_of_nothing() -> None:
    item = held("a", deserved={"cpu": "4", "memory": "4Gi"})
    item["status"]["allocated"] = {"cpu": "0", "memory": "0"}
    share = found(held("root"), item)["a"]
    assert (share.allocated, share.share, share.resource) == ({}, 0.0, "")


def test_without_anything_to_compare_there_is_no_share() -> None:
    assert found(held("a", "1"), cluster={})["a"].share is None


def test_a_queue_whose_parent_is_missing_or_goes_round_is_shown() -> None:
    shares = found(held("a", parent="gone"), held("b", parent="c"), held("c", parent="b"))
    assert {name: share.depth for name, share in shares.items()} == {"a": 0, "b": 0, "c": 0}


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (0.0, "[..........]   0%"),
        (0.44, "[####......]  44%"),
        (1.0, "[##########] 100%"),
        (2.5, "[##########] 250%"),
    ],
)
def test_bars(share: float | None, text: str) -> None:
    assert queue_shares.bar(share) == text


def node(name: str, cpu: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "110"}},
    }


@pytest.fixture
def busy(stand: Stand) -> Stand:
    stand.create(
        node("n1", "6"),
        node("n2", "2"),
        queue("root"),
        queue("default", parent="root"),
        queue("research", parent="root", deserved={"cpu": "4"}, capability={"cpu": "6"}),
        queue("vision", parent="research", weight=3),
    )
    for name, cpu in (("root", "5"), ("default", "1"), ("research", "4"), ("vision", "4")):
        stand.status(QUEUES, name, {"state": "Open", "allocated": {"cpu": cpu}})
    return stand


def test_the_tree_is_printed(busy: Stand) -> None:
    rows = [
        ["Name", "State", "Weight", "Share", "Of", "Allocated", "Deserved", "Capability"],
        ["root", "Open", "1", bar(6, 62), "cpu", "cpu=5", "cpu=~8,memory=~8Gi", "<none>"],
        ["  default", "Open", "1", bar(2, 25), "cpu", "cpu=1", "cpu=~4,memory=~4Gi", "<none>"],
        ["  research", "Open", "1", bar(10, 100), "cpu", "cpu=4", "cpu=4,memory=~4Gi", "cpu=6"],
        ["    vision", "Open", "3", bar(10, 100), "cpu", "cpu=4", "cpu=~4,memory=~4Gi", "<none>"],
    ]
    widths = (12, 7, 8, 19, 5, 11, 20, 12)
    assert busy.printed("top", "queues") == "".join(
        "".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + "\n"
        for row in rows
    )


def test_the_tree_is_printed_in_a_few_digits_and_told_to_programs_in_full(stand: Stand) -> None:
    stand.create(
        {**node("n1", "40"), "status": {"allocatable": {"cpu": "40", "memory": "10000000000"}}},
        queue("root"),
        *(queue(name, parent="root") for name in "abc"),
    )
    stand.status(QUEUES, "a", {"state": "Open", "allocated": {"cpu": "13333m", "memory": "1G"}})
    row = next(
        line for line in stand.printed("top", "queues").splitlines() if line.startswith("  a ")
    )
    assert "cpu=13.3,memory=953.67Mi" in row
    assert "cpu=~13.3,memory=~3.10Gi" in row
    exact = {share["name"]: share for share in json.loads(stand.printed(*TOP, "-o", "json"))}
    assert exact["a"]["allocated"] == {"cpu": "13333m", "memory": "1000000000"}
    assert exact["b"]["entitled"] == {"cpu": "13333m", "memory": "3333333333"}


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 13_333, "13.3"),
        ("cpu", 99_999, "100"),
        ("cpu", 999_999, "1000"),
        ("cpu", 133_333, "133"),
        ("cpu", 1_333, "1.33"),
        ("cpu", 250, "0.25"),
        ("cpu", 1, "0.001"),
        ("cpu", 0, "0"),
        ("cpu", 4_000, "4"),
        ("memory", 8 * 2**30, "8Gi"),
        ("memory", 3_333_333_333, "3.10Gi"),
        ("nvidia.com/gpu", 7, "7"),
    ],
)
def test_amounts_at_a_glance(resource: str, amount: int, text: str) -> None:
    assert queue_shares.rounded(resource, amount) == text


def bar(full: int, percent: int) -> str:
    return f"[{'#' * full}{'.' * (10 - full)}] {percent:3}%"


def test_programs_get_numbers(busy: Stand) -> None:
    shares = json.loads(busy.printed("top", "queues", "-o", "json"))
    assert [(share["name"], share["share"]) for share in shares] == [
        ("root", 0.625),
        ("default", 0.25),
        ("research", 1.0),
        ("vision", 1.0),
    ]
    assert shares[2]["deserved"] == {"cpu": "4"}
    assert shares[2]["entitled"] == {"cpu": "4", "memory": "4Gi"}


def test_no_queues_are_said_to_be_none(stand: Stand) -> None:
    assert stand.printed("top", "queues") == "No resources found\n"


def test_bars_are_coloured_by_how_full_they_are() -> None:
    text = "a [##........]  20%\nb [########..]  80%\nc [##########] 130%\nd -\n"
    assert top.coloured(text) == (
        "a \x1b[32m[##........]  20%\x1b[0m\nb \x1b[33m[########..]  80%\x1b[0m\n"
        "c \x1b[31m[##########] 130%\x1b[0m\nd -\n"
    )


class Screen(io.StringIO):
    """Standard output as a person's terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "output", "expected"),
    [
        ({}, Screen(), True),
        ({"NO_COLOR": ""}, Screen(), True),
        ({"NO_COLOR": "1"}, Screen(), False),
        ({"TERM": "dumb"}, Screen(), False),
        ({}, io.StringIO(), False),
        ({"FORCE_COLOR": "1"}, io.StringIO(), False),
    ],
    ids=["terminal", "NO_COLOR empty", "NO_COLOR", "dumb", "pipe", "pipe by force"],
)
def test_colours_are_for_terminals_that_want_them(
    env: dict[str, str], output: io.StringIO, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", output)
    assert top.wants_colour() is expected


class Narrow(Cluster):
    """A cluster that shows its queues but not its nodes."""

    def __init__(self) -> None:
        pass

    async def list(self, resource: Resource, **_: str) -> Objects:
        if resource == NODES:
            raise errors.Forbidden("nodes is forbidden", status=403)
        return [held("root", "1"), held("a", "1", deserved={"cpu": "2"})]


def test_who_may_not_see_nodes_sees_what_queues_say(capsys: pytest.CaptureFixture[str]) -> None:
    root, a = asyncio.run(top.look(Narrow()))
    assert (root.share, a.share) == (None, 0.5)
    assert capsys.readouterr().err == (
        "Warning: shares of what queues deserve by weight are not shown: nodes is forbidden\n"
    )


def told_node(name: str, *, cordoned: bool = False, ready: str = "True") -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"unschedulable": cordoned},
        "status": {
            "allocatable": {"cpu": "8"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def on_node(node: str, cpu: str, *, phase: str = "Running") -> Object:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"nodeName": node, "containers": [container]}, "status": {"phase": phase}}


class Cordoned(Cluster):
    """Three nodes, of which one is cordoned and one is not ready."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def list(self, resource: Resource, **fields: str) -> Objects:
        if resource == PODS:
            self.asked.append(fields["fields"])
            node = fields["fields"].partition("=")[2]
            return [on_node(node, "1"), on_node(node, "4", phase="Succeeded")]
        if resource == NODES:
            return [told_node("a"), told_node("b", cordoned=True), told_node("c", ready="Unknown")]
        return [held("root"), held("q", "5")]


def test_of_nodes_that_take_no_pods_what_runs_there_counts() -> None:
    cluster = Cordoned()
    root, q = asyncio.run(top.look(cluster))
    assert root.entitled["cpu"] == 10_000
    assert q.share == 0.5
    assert cluster.asked == ["spec.nodeName=b", "spec.nodeName=c"]
