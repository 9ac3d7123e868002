"""Additions to pods."""

import pytest

from app.jobplugins import pods
from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import container


@pytest.mark.parametrize(
    ("there", "after"),
    [
        (None, [{"name": "p", "containerPort": 22}]),
        ([], [{"name": "p", "containerPort": 22}]),
        ([{"containerPort": 22}], [{"containerPort": 22}]),
        (
            [{"containerPort": 22, "protocol": "TCP"}],
            [{"containerPort": 22, "protocol": "TCP"}],
        ),
        (
            [{"containerPort": 22, "protocol": "UDP"}],
            [{"containerPort": 22, "protocol": "UDP"}, {"name": "p", "containerPort": 22}],
        ),
        (
            [{"name": "p", "containerPort": 80}],
            [{"name": "p", "containerPort": 80}, {"containerPort": 22}],
        ),
    ],
    ids=["none", "empty", "there", "there as TCP", "other protocol", "name taken"],
)
def test_a_port_is_added_unless_it_is_there(
    there: list[Object] | None, after: list[Object]
) -> None:
    one = container() if there is None else container(ports=there)
    pod = {"spec": {"containers": [one]}}
    pods.add_port(pod, one, name="p", number=22)
    assert one["ports"] == after


@pytest.mark.parametrize(("host_network", "declared"), [(False, 2), (True, 1)])
def test_on_the_hosts_network_a_port_is_declared_once(host_network: bool, declared: int) -> None:
    several = [container("a"), container("b")]
    pod = {"spec": {"containers": several, "hostNetwork": host_network}}
    for one in several:
        pods.add_port(pod, one, name="p", number=22)
    assert len([one for one in several if "ports" in one]) == declared


def test_containers_share_no_entries() -> None:
    several = [container("a"), container("b")]
    pod: Object = {"spec": {"containers": several}}
    pods.add_variables(several, [pods.variable("A", "a")])
    pods.add_volume(pod, {"name": "v"}, {"name": "v", "mountPath": "/v"})
    several[0]["env"][0]["value"] = "b"
    several[0]["volumeMounts"][0]["readOnly"] = True
    assert several[1]["env"] == [{"name": "A", "value": "a"}]
    assert several[1]["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]


def test_a_pod_without_init_containers_gets_none() -> None:
    pod: Object = {"spec": {"containers": [container()], "initContainers": None}}
    assert pods.init_containers(pod) == []
    assert pods.all_containers(pod) == [container()]
