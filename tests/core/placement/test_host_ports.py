"""Host ports."""

import pytest

from app.core.policy import Predicates
from app.model.shape import HostPort
from tests.builders import make_node, make_pod, make_shape
from tests.core.placement.rigs import Rig
from tests.running import Runs, make_running

NODES = (make_node("a"), make_node("b"))


@pytest.mark.parametrize(
    ("wanted", "free"),
    [
        (HostPort("0.0.0.0", "TCP", 80), False),
        (HostPort("", "TCP", 80), False),
        (HostPort("10.0.0.1", "TCP", 80), False),
        (HostPort("10.0.0.2", "TCP", 80), True),
        (HostPort("10.0.0.1", "UDP", 80), True),
        (HostPort("10.0.0.1", "TCP", 81), True),
        (HostPort("10.0.0.9", "TCP", 443), False),
    ],
    ids=str,
)
def test_ports_collide_on_equal_or_wildcard_addresses(wanted: HostPort, free: bool) -> None:
    used = frozenset({HostPort("10.0.0.1", "TCP", 80), HostPort("0.0.0.0", "TCP", 443)})
    rig = Rig(NODES, ports={0: used})
    assert rig.names(make_shape(host_ports=(wanted,))) == (["a", "b"] if free else ["b"])


def test_ports_of_this_cycle_count_until_they_are_rolled_back() -> None:
    rig = Rig(NODES)
    web = make_shape(host_ports=(HostPort("", "TCP", 80),))
    assert rig.put_found(web) == "a"
    with rig.ledger.trial():
        assert rig.put_found(web) == "b"
        assert rig.find(web) is None
        assert rig.verdicts(web) == {
            "node(s) didn't have free ports for the requested pod ports": 2
        }
    assert rig.find(web) == "b"


def test_ports_of_an_evicted_pod_are_free_until_that_is_rolled_back() -> None:
    web = make_shape(host_ports=(port := HostPort("", "TCP", 80),))
    there = make_running([Runs(make_pod("web", shape=web), 1), Runs(make_pod("lost"), len(NODES))])
    rig = Rig(NODES, ports={1: frozenset({port})}, running=there)
    assert rig.names(web) == ["a"]
    with rig.ledger.trial():
        rig.ledger.evict(0)
        rig.ledger.evict(1)
        assert rig.names(web) == ["a", "b"]
        rig.put(web, "b")
        assert rig.names(web) == ["a"]
    assert rig.names(web) == ["a"]


def test_ports_are_not_looked_at_when_switched_off() -> None:
    web = make_shape(host_ports=(HostPort("", "TCP", 80),))
    rig = Rig(NODES[:1], predicates=Predicates(node_ports=False))
    assert rig.put_found(web) == "a"
    assert rig.find(web) == "a"
