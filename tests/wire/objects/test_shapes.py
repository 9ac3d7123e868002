"""Shapes are interned: equal pods share one, whatever else differs between them."""

from typing import Any

import pytest

from app.model.shape import QosClass, Toleration
from app.wire.interning import Interned
from tests.wire.manifests import container, decoded


def test_environment_and_token_volumes_do_not_make_another_shape() -> None:
    def member(index: int) -> dict[str, Any]:
        env = [{"name": "VC_TASK_INDEX", "value": str(index)}]
        mounts = [{"name": f"kube-api-access-{index}", "mountPath": "/var/run/secrets"}]
        return container(cpu="1", env=env, volumeMounts=mounts)

    one, two = (decoded(containers=[member(i)], volumes=[{"name": f"v{i}"}]) for i in (1, 2))
    assert one.shape is two.shape


def test_another_way_of_writing_the_same_request_is_the_same_shape() -> None:
    one = decoded(containers=[container(cpu="1500m")]).shape
    assert one is decoded(containers=[container(cpu="1.5")]).shape
    assert one is decoded(containers=[container(resources={"limits": {"cpu": "1.5"}})]).shape


CPUS, BOTH = {"cpu": "1"}, {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "qos"),
    [
        ({"containers": [{"name": "c"}]}, QosClass.BEST_EFFORT),
        (
            {"containers": [container(resources={"limits": {"nvidia.com/gpu": "1"}})]},
            QosClass.BEST_EFFORT,
        ),
        ({"containers": [container(resources={"requests": {"cpu": "0"}})]}, QosClass.BEST_EFFORT),
        ({"containers": [container(resources={"requests": BOTH})]}, QosClass.BURSTABLE),
        ({"containers": [container(resources={"limits": CPUS})]}, QosClass.BURSTABLE),
        ({"containers": [container(resources={"limits": BOTH})]}, QosClass.GUARANTEED),
        (
            {"containers": [container(resources={"limits": BOTH, "requests": BOTH})]},
            QosClass.GUARANTEED,
        ),
        (
            {"containers": [container(resources={"limits": BOTH}), {"name": "beside"}]},
            QosClass.BURSTABLE,
        ),
        (
            {"containers": [{"name": "c"}], "resources": {"limits": BOTH, "requests": BOTH}},
            QosClass.GUARANTEED,
        ),
    ],
)
def test_the_class_is_that_of_kubernetes(spec: dict[str, Any], qos: QosClass) -> None:
    assert decoded(**spec).shape.qos is qos


def limited(asked: dict[str, str], most: dict[str, str]) -> dict[str, Any]:
    return container(resources={"requests": asked, "limits": most})


@pytest.mark.parametrize(
    ("containers", "burst"),
    [
        ([limited({"cpu": "1", "memory": "1Gi"}, {})], {}),
        ([limited({"cpu": "1"}, {"cpu": "1"})], {}),
        ([limited({}, {"cpu": "1", "memory": "1Gi"})], {}),
        (
            [limited({"cpu": "1", "memory": "1k"}, {"cpu": "1500m", "memory": "3k"})],
            {"cpu": 500, "memory": 2000},
        ),
        (
            [limited({"cpu": "1"}, {"cpu": "2"}), limited({"cpu": "500m"}, {"cpu": "1"})],
            {"cpu": 1500},
        ),
        ([limited({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"})], {}),
    ],
)
def test_what_limits_let_a_pod_use_beyond_its_requests_is_known(
    containers: list[dict[str, Any]], burst: dict[str, int]
) -> None:
    assert dict(decoded(containers=containers).shape.burst) == burst


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"overhead": {"cpu": "1"}},
        {"resources": {"requests": {"cpu": "7"}}},
        {"containers": [container(cpu="2")]},
        {"containers": [container(cpu="1", image="other")]},
        {"containers": [container(cpu="1", ports=[{"containerPort": 1, "hostPort": 1}])]},
        {"containers": [container(cpu="1"), container(cpu="1")]},
        {"initContainers": [container(cpu="2")]},
    ],
)
def test_whatever_a_node_must_offer_makes_another_shape(spec: dict[str, Any]) -> None:
    assert decoded(**spec).shape != decoded().shape


def test_an_init_container_is_not_an_app_container() -> None:
    both = decoded(containers=[container(cpu="1"), container(cpu="2")], initContainers=[])
    init = decoded(containers=[container(cpu="1")], initContainers=[container(cpu="2")])
    assert dict(both.shape.requests)["cpu"] == 3000
    assert dict(init.shape.requests)["cpu"] == 2000


def test_the_node_selector_is_in_order() -> None:
    one = decoded(nodeSelector={"b": "2", "a": "1"}).shape
    assert one.node_selector == (("a", "1"), ("b", "2"))
    assert one is decoded(nodeSelector={"a": "1", "b": "2"}).shape


def test_tolerations_with_an_operator_of_the_future_tolerate_nothing() -> None:
    entries = [
        {"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"},
        {"key": "b", "value": "2"},
        {"operator": "Exists"},
        {"key": "c", "operator": "Gt", "value": "5"},
    ]
    assert decoded(tolerations=entries).shape.tolerations == (
        Toleration("a", False, "1", "NoSchedule"),
        Toleration("b", False, "2"),
        Toleration(exists=True),
    )


def test_a_full_cache_forgets_and_goes_on() -> None:
    cache: Interned[int, str] = Interned(limit=2)
    assert cache.keep(1, "a") == "a"
    assert cache.keep(1, "b") == "a"
    cache.keep(2, "b")
    assert cache.keep(3, "c") == "c"
    assert dict(cache) == {3: "c"}
