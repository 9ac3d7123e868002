"""Numatopologies, and what is decided about cpus."""

from typing import Any

import pytest

from app.model.numa import NumaLayout, NumaNeed, NumaPolicy, NumaTopology
from app.model.shape import PodShape
from app.wire.errors import DecodeError
from app.wire.objects.jobs import decode_job
from app.wire.objects.numatopologies import decision_text, decode_numatopology, read_decision
from app.wire.objects.pods import decode_pod
from tests.wire.manifests import encode, metadata

POLICIES = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"}
CPUS = {str(n): {"numa": n // 4, "socket": n // 4, "core": n // 2} for n in range(8)}


def read(**spec: Any) -> NumaTopology:
    whole = {
        "policies": POLICIES,
        "cpuDetail": CPUS,
        "numares": {"cpu": {"allocatable": "0-7", "capacity": 8}},
    }
    return decode_numatopology(encode({"metadata": metadata("n1"), "spec": whole | spec}))


def test_a_numatopology_has_layout_and_free_cpus() -> None:
    found = read(
        numares={"cpu": {"allocatable": "0,2-3, 6-7", "capacity": 8}},
        resReserved={"cpu": "1500m"},
        podAllocations=[
            {
                "uid": "u1",
                "name": "p",
                "namespace": "ns",
                "containerAllocations": [
                    {"name": "a", "allocations": {"cpu": "4", "memory": "1Gi"}},
                    {"name": "b", "allocations": {"cpu": "5"}},
                ],
            }
        ],
    )
    assert found.name == "n1"
    assert found.layout == NumaLayout(NumaPolicy.SINGLE_NUMA_NODE, True, (0, 1), (2, 4))
    assert found.free == (2, 2)
    assert found.pods == {"u1": (0, 2), "ns/p": (0, 2)}


@pytest.mark.parametrize("spec", [None, {}, {"policies": None, "cpuDetail": None, "numares": {}}])
def test_an_empty_one_has_no_numa_nodes(spec: Any) -> None:
    found = decode_numatopology(encode({"metadata": metadata("n1"), "spec": spec}))
    assert found.layout == NumaLayout(NumaPolicy.UNSET, False, (), ())
    assert not found.layout.rules


def test_numa_nodes_are_told_by_their_numbers() -> None:
    cpus = {"0": {"numa": 3}, "1": {"numa": 1}, "2": {"numa": 3}}
    found = read(cpuDetail=cpus, numares={"cpu": {"allocatable": "1-2"}})
    assert (found.layout.ids, found.layout.sizes, found.free) == ((1, 3), (1, 2), (1, 1))


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"policies": {"TopologyManagerPolicy": "strict"}}, "spec.policies.TopologyManagerPolicy"),
        ({"cpuDetail": {"first": {}}}, "spec.cpuDetail.first"),
        ({"cpuDetail": {str(n): {"numa": n} for n in range(9)}}, "spec.cpuDetail"),
        ({"numares": {"cpu": {"allocatable": "a"}}}, "spec.numares.cpu.allocatable"),
        ({"resReserved": {"cpu": "much"}}, "spec.resReserved.cpu"),
        (
            {"podAllocations": [{"containerAllocations": [{"allocations": {"cpu": "x"}}]}]},
            "spec.podAllocations[0]",
        ),
    ],
)
def test_what_cannot_be_read_is_told_by_its_path(spec: Any, path: str) -> None:
    with pytest.raises(DecodeError) as raised:
        read(**spec)
    assert raised.value.path == path


def test_a_decision_names_the_cpus_of_each_numa_node() -> None:
    layout = NumaLayout(NumaPolicy.RESTRICTED, True, (0, 2), (8, 8))
    text = decision_text(layout, (0, 3))
    assert text == '{"numa":{"2":{"cpu":"3"}}}'
    assert read_decision(text) == {2: 3}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"numa":{"0":{"cpu":"4","memory":"1Gi"},"1":{"memory":"1Gi"}}}', {0: 4}),
        ("{}", {}),
        ("", None),
        ('{"numa":{"first":{"cpu":"1"}}}', None),
        ('{"numa":{"0":{"cpu":"one"}}}', None),
        ('{"numa":{"0":{"cpu":"-4"}}}', None),
        ('{"numa":{"0":{"cpu":"9"},"1":{"cpu":"-4"}}}', None),
        ('{"numa":{"0":{"cpu":"1E"}}}', None),
    ],
)
def test_decisions_of_others_are_read_as_far_as_they_go(text: str, found: Any) -> None:
    assert read_decision(text) == found


# --- what pods need ------------------------------------------------------------------------------


def container(cpu: Any, memory: Any = "1Gi", **fields: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    return {"name": "c", "resources": {"limits": amounts}, **fields}


def shape(*containers: Any, init: Any = (), policy: str | None = None, **spec: Any) -> PodShape:
    annotations = {} if policy is None else {"volcano.sh/numa-topology-policy": policy}
    body = {"containers": list(containers), "initContainers": list(init), **spec}
    meta = metadata("p", namespace="default", annotations=annotations)
    return decode_pod(encode({"metadata": meta, "spec": body})).shape


@pytest.mark.parametrize(
    ("pod", "need"),
    [
        (shape(container("4")), NumaNeed(NumaPolicy.UNSET, (4,))),
        (
            shape(container(2), container("1500m"), policy="restricted"),
            NumaNeed(NumaPolicy.RESTRICTED, (2, 0)),
        ),
        (shape(container("4"), policy="odd"), NumaNeed(NumaPolicy.UNSET, (4,))),
        (shape(container("500m")), None),
        (shape({"name": "c", "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}), None),
        (shape(container("4"), {"name": "c"}), None),
        (
            shape(container("4"), init=[container("8"), container("2", restartPolicy="Always")]),
            NumaNeed(NumaPolicy.UNSET, (0, 2, 4)),
        ),
        (shape(container("4"), init=[{"name": "c"}]), None),
        (shape({"name": "c", "resources": {"limits": {"cpu": "4"}}}), None),
    ],
)
def test_pods_of_the_class_guaranteed_need_whole_cpus(pod: PodShape, need: NumaNeed | None) -> None:
    assert pod.numa == need


def test_a_request_below_the_limit_is_not_guaranteed() -> None:
    resources = {"limits": {"cpu": "4", "memory": "1Gi"}, "requests": {"cpu": "2"}}
    assert shape({"name": "c", "resources": resources}).numa is None


@pytest.mark.parametrize(
    ("task", "policy"),
    [
        ({"topologyPolicy": "single-numa-node"}, NumaPolicy.SINGLE_NUMA_NODE),
        ({}, NumaPolicy.BEST_EFFORT),
    ],
)
def test_pods_to_come_need_what_their_task_says(task: Any, policy: NumaPolicy) -> None:
    template = {
        "metadata": {"annotations": {"volcano.sh/numa-topology-policy": "best-effort"}},
        "spec": {"containers": [container("4")]},
    }
    job = {
        "metadata": metadata("j", namespace="default"),
        "spec": {"tasks": [{"name": "w", "template": template, **task}]},
    }
    assert decode_job(encode(job)).roles["w"].shape.numa == NumaNeed(policy, (4,))
