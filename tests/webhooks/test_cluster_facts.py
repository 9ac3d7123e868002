"""Facts kept from objects that come and go."""

from __future__ import annotations

from app.webhooks.cluster_facts import NAMESPACES, ClusterFacts
from app.wire import kinds
from app.wire.unstructured import Key
from tests.webhooks.objects import facts, group, node, queue


def test_nodes_of_one_size_count_once_and_all_add_up() -> None:
    known = facts(nodes=(node("a", cpu=4), node("b", cpu=4), node("c", cpu="8500m")))
    assert sorted(size["cpu"] for size in known.node_sizes()) == [4000, 8500]
    assert known.total()["cpu"] == 16500
    known.put(kinds.NODES, node("c", cpu=4))
    known.drop(kinds.NODES, Key("", "a"))
    assert [size["cpu"] for size in known.node_sizes()] == [4000]
    assert known.total()["cpu"] == 8000


def test_groups_are_counted_by_queue() -> None:
    known = facts(groups=(group("a", queue="q"), group("b", queue="q")))
    known.put(kinds.POD_GROUPS, group("a", queue="other"))
    assert (known.groups_in("q"), known.groups_in("other"), known.groups_in("none")) == (1, 1, 0)
    known.drop(kinds.POD_GROUPS, Key("default", "b"))
    known.drop(kinds.POD_GROUPS, Key("default", "b"))
    assert known.groups_in("q") == 0


def test_queues_can_be_seen_as_they_are_elsewhere() -> None:
    known = facts(queue("old"), classes=("high",))
    fresh = known.with_queues([queue("new")])
    assert fresh.queue("old") is None
    assert fresh.queue("new") is not None
    assert known.queue("old") is not None
    assert fresh.has_priority_class("high")


def test_a_namespace_that_is_gone_has_no_annotations() -> None:
    known = ClusterFacts()
    known.put(NAMESPACES, {"metadata": {"name": "n", "annotations": {"a": "b"}}})
    assert known.namespace_annotations("n") == {"a": "b"}
    known.drop(NAMESPACES, Key("", "n"))
    assert known.namespace_annotations("n") == {}
