"""What a pod adds to the `minResources` of its PodGroup."""

from typing import Any

import pytest

from app.wire.errors import DecodeError
from app.wire.objects.claims import claim
from tests.wire.manifests import container

GIB = 1 << 30


def limited(name: str = "c", *, restarts: str | None = None, **limits: str) -> dict[str, Any]:
    return container(name=name, restartPolicy=restarts, resources={"limits": limits})


def limits(**spec: Any) -> dict[str, int]:
    found = claim(spec)
    return {name: amount for name, amount in found.items() if name.startswith("limits.")}


def test_a_pod_claims_its_requests_and_its_limits() -> None:
    resources = {
        "requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "limits": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1", "ephemeral-storage": "3"},
    }
    assert claim({"containers": [container(resources=resources)]}) == {
        "cpu": 1000,
        "memory": GIB,
        "ephemeral-storage": 3,
        "nvidia.com/gpu": 1,
        "limits.cpu": 2000,
        "limits.memory": 2 * GIB,
        "limits.ephemeral-storage": 3,
        "requests.cpu": 1000,
        "requests.memory": GIB,
        "requests.ephemeral-storage": 3,
        "requests.nvidia.com/gpu": 1,
        "pods": 1,
        "count/pods": 1,
    }


def test_without_limits_it_claims_none() -> None:
    assert limits(containers=[container(cpu="1")]) == {}
    assert claim({}) == {"pods": 1, "count/pods": 1}


def test_a_resource_of_kubernetes_itself_is_no_line_of_a_quota() -> None:
    resources = {"requests": {"kubernetes.io/batch-cpu": "1"}}
    found = claim({"containers": [container(resources=resources)]})
    assert found == {"kubernetes.io/batch-cpu": 1, "pods": 1, "count/pods": 1}


def test_the_largest_moment_of_the_limits_counts() -> None:
    first = [limited(cpu="1"), limited(cpu="1", restarts="Always"), limited(cpu="4")]
    assert limits(containers=[limited(cpu="2")], initContainers=first) == {"limits.cpu": 5000}
    assert limits(containers=[limited(cpu="2")] * 3, initContainers=first) == {"limits.cpu": 7000}


def test_limits_of_the_whole_pod_win_and_overhead_is_added_to_what_is_limited() -> None:
    found = limits(
        containers=[limited(cpu="1", memory="1Gi")],
        resources={"limits": {"cpu": "4"}},
        overhead={"cpu": "250m", "ephemeral-storage": "1Gi"},
    )
    assert found == {"limits.cpu": 4250, "limits.memory": GIB}


def test_limits_that_cannot_be_read_are_named() -> None:
    with pytest.raises(DecodeError) as caught:
        claim({"containers": [limited(cpu="much")]})
    assert str(caught.value) == 'spec.containers[0].resources.limits.cpu: "much" is not a quantity'
