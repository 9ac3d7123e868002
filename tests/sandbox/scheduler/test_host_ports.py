"""Ports of the node: who takes them, and who cannot stand beside whom."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.scheduler.host_ports import HostPort, any_collide, host_ports
from app.wire.documents import Document

HTTP = {"containerPort": 80, "hostPort": 80}


def taken(*, field: str = "containers", **container: Any) -> set[HostPort]:
    return set(host_ports({field: [container]}))


def test_a_port_has_an_address_a_protocol_and_a_number() -> None:
    local = {"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1", "protocol": "UDP"}
    assert taken(ports=[HTTP, local, {"containerPort": 5}]) == {
        HostPort("0.0.0.0", "TCP", 80),
        HostPort("127.0.0.1", "UDP", 8080),
    }


def test_of_init_containers_sidecars_take_ports() -> None:
    assert taken(field="initContainers", ports=[HTTP]) == set()
    assert taken(field="initContainers", ports=[HTTP], restartPolicy="Always") == {
        HostPort("0.0.0.0", "TCP", 80)
    }


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        ({}, {}, True),
        ({}, {"hostPort": 81}, False),
        ({}, {"protocol": "UDP"}, False),
        ({"hostIP": "127.0.0.1"}, {"hostIP": "127.0.0.2"}, False),
        ({"hostIP": "127.0.0.1"}, {"hostIP": "127.0.0.1"}, True),
        ({"hostIP": "127.0.0.1"}, {}, True),
        ({}, {"hostIP": "127.0.0.1"}, True),
        ({"hostIP": "127.0.0.1"}, {"hostIP": "0.0.0.0"}, True),
    ],
)
def test_ports_collide(one: Document, other: Document, collide: bool) -> None:
    assert any_collide(taken(ports=[HTTP | one]), taken(ports=[HTTP | other])) is collide
