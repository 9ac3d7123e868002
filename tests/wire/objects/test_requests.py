"""What a pod's containers ask for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.amounts import LARGEST_POD
from app.model.shape import HostPort
from app.wire.errors import DecodeError
from tests.wire.manifests import container, decoded

GIB = 1 << 30


def requests(**spec: Any) -> dict[str, int]:
    return dict(decoded(**spec).shape.requests)


def cpu(**spec: Any) -> int:
    return requests(**spec).get("cpu", 0)


def sidecar(amount: object) -> dict[str, Any]:
    return container(cpu=amount, restartPolicy="Always")


@pytest.mark.parametrize(
    ("app", "init", "expected"),
    [
        (["1", "500m"], [], 1500),
        (["1"], [container(cpu="3")], 3000),
        (["2"], [container(cpu="1"), container(cpu="1500m")], 2000),
        (["1"], [sidecar("1")], 2000),
        (["1"], [sidecar("1"), container(cpu="3")], 4000),
        (["1"], [container(cpu="3"), sidecar("1")], 3000),
        (["1"], [sidecar("1"), container(cpu="1"), sidecar("2"), container(cpu="1")], 4000),
        ([], [container(cpu="3")], 3000),
        ([], [], 0),
    ],
)
def test_the_largest_moment_counts(
    app: list[str], init: list[dict[str, Any]], expected: int
) -> None:
    assert cpu(containers=[container(cpu=a) for a in app], initContainers=init) == expected


@given(
    st.lists(st.integers(0, 9), max_size=4),
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=5),
)
def test_the_request_is_the_peak_of_a_played_start(
    app: list[int], init: list[tuple[int, bool]]
) -> None:
    staying, peak = 0, 0
    for amount, stays in init:
        peak = max(peak, staying + amount)
        staying += amount if stays else 0
    peak = max(peak, staying + sum(app))
    found = cpu(
        containers=[container(cpu=n) for n in app],
        initContainers=[sidecar(n) if stays else container(cpu=n) for n, stays in init],
    )
    assert found == peak * 1000


def test_resources_are_compared_one_by_one() -> None:
    found = requests(
        containers=[container(resources={"requests": {"cpu": "1", "memory": "1Gi"}})],
        initContainers=[container(resources={"requests": {"cpu": "3", "nvidia.com/gpu": 1}})],
    )
    assert found == {"cpu": 3000, "memory": GIB, "nvidia.com/gpu": 1, "pods": 1}


def test_a_limit_without_a_request_is_a_request() -> None:
    resources = {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}}
    assert requests(containers=[container(resources=resources)]) == {
        "cpu": 1000,
        "nvidia.com/gpu": 1,
        "pods": 1,
    }


def test_requests_of_the_whole_pod_win_and_overhead_is_added() -> None:
    found = requests(
        containers=[container(resources={"requests": {"cpu": "1", "memory": "1Gi"}})],
        resources={"requests": {"cpu": "4"}},
        overhead={"cpu": "250m", "memory": "1Gi"},
    )
    assert found == {"cpu": 4250, "memory": 2 * GIB, "pods": 1}


def test_limits_of_the_whole_pod_count_where_no_container_asks() -> None:
    found = requests(
        containers=[container(cpu="1")], resources={"limits": {"cpu": "4", "memory": "1Gi"}}
    )
    assert found == {"cpu": 1000, "memory": GIB, "pods": 1}


def test_asking_for_nothing_is_asking_for_one_pod() -> None:
    zeros = {"requests": {"cpu": "0", "memory": 0}}
    assert requests(containers=[container(resources=zeros)]) == {"pods": 1}
    assert requests(containers=[container(resources=None)]) == {"pods": 1}
    assert requests(containers=None, overhead=None, resources=None) == {"pods": 1}


def test_the_marker_of_a_shared_scheduler_needs_no_room() -> None:
    resources = {"limits": {"pumice.sh/gang": "1"}, "requests": {"cpu": "1"}}
    assert requests(containers=[container(resources=resources)]) == {"cpu": 1000, "pods": 1}


def test_huge_requests_stop_at_the_largest_number() -> None:
    huge = [container(cpu="1e30"), container(cpu="9Ei")]
    assert cpu(containers=huge) == LARGEST_POD


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"containers": [container(), container(), container(cpu="1x")]},
            'spec.containers[2].resources.requests.cpu: "1x" is not a quantity',
        ),
        (
            {"initContainers": [container(resources={"limits": {"memory": "a"}})]},
            'spec.initContainers[0].resources.limits.memory: "a" is not a quantity',
        ),
        (
            {"containers": [container(resources={"requests": {"cpu": True}})]},
            "spec.containers[0].resources.requests[...]: Expected `int | float | str`, got `bool`",
        ),
        ({"overhead": {"cpu": "?"}}, 'spec.overhead.cpu: "?" is not a quantity'),
        ({"resources": {"requests": {"cpu": "?"}}}, 'spec.resources.requests.cpu: "?" is not a'),
        (
            {"containers": [container(cpu="-1")]},
            "spec.containers[0].resources.requests.cpu: is less",
        ),
        (
            {"containers": [container(ports=[{"hostPort": "80"}])]},
            "spec.containers[0].ports[0].hostPort: Expected `int | null`, got `str`",
        ),
    ],
)
def test_a_request_that_cannot_be_read_names_the_field(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decoded(**spec)
    assert str(caught.value).startswith(message)


def test_host_ports_have_an_address_and_a_protocol() -> None:
    ports = [
        {"containerPort": 80},
        {"containerPort": 81, "hostPort": 8081},
        {"containerPort": 82, "hostPort": 8082, "hostIP": "10.0.0.1", "protocol": "UDP"},
        {"containerPort": 81, "hostPort": 8081, "protocol": "TCP", "name": "again"},
    ]
    assert decoded(containers=[container(ports=ports)]).shape.host_ports == (
        HostPort("0.0.0.0", "TCP", 8081),
        HostPort("10.0.0.1", "UDP", 8082),
    )
    assert decoded(containers=[container(ports=None)]).shape.host_ports == ()


def test_on_the_hosts_network_every_container_port_is_a_host_port() -> None:
    shape = decoded(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])]).shape
    assert shape.host_ports == (HostPort("0.0.0.0", "TCP", 80),)


def test_ports_of_init_containers_count_only_if_they_stay() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    assert decoded(initContainers=[container(ports=ports)]).shape.host_ports == ()
    stays = container(ports=ports, restartPolicy="Always")
    assert len(decoded(initContainers=[stays]).shape.host_ports) == 1


def test_images_are_named_as_nodes_list_them() -> None:
    images = ["nginx", "nginx:1.27", "host:5000/nginx", "host:5000/nginx:1", "a@sha256:0f"]
    found = decoded(containers=[container(image=image) for image in (*images, None)])
    assert found.shape.images == (
        "nginx:latest",
        "nginx:1.27",
        "host:5000/nginx:latest",
        "host:5000/nginx:1",
        "a@sha256:0f",
    )
