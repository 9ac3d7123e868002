"""Names of resources that no node has, and what may be meant by them."""

import pytest

from app.core.resource_names import told, unknown

THERE = {"cpu", "memory", "pods", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("memroy", "memory"),
        ("cpus", "cpu"),
        ("CPU", "cpu"),
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("nvidia.com/GPU", "nvidia.com/gpu"),
        ("gpu", "nvidia.com/gpu"),
        ("ephemeral-storge", "ephemeral-storage"),
        ("example.com/fpga", ""),
        ("nvidia.com/mig-2g.10gb", ""),
        ("hugepages-2Mi", ""),
    ],
)
def test_a_name_that_no_node_has_is_told_with_the_nearest_that_is_known(
    name: str, meant: str
) -> None:
    assert list(unknown([name], THERE)) == [(name, meant)]


@pytest.mark.parametrize(
    "name",
    [
        *sorted(THERE),
        "ephemeral-storage",
        "deviceclass/gpu.example.com",
        "memory.deviceclass/gpu.example.com",
        "volcano.sh/vgpu-memory-percentage",
    ],
)
def test_what_nodes_have_or_is_counted_without_them_is_known(name: str) -> None:
    assert not list(unknown([name], THERE))


def test_gpus_may_be_meant_though_no_node_has_any_yet() -> None:
    there = {"cpu", "memory", "pods"}
    names = ["nvidia.com/gpus", "nvidia.com/gpu", "amd.com/gpus"]
    assert [meant for _, meant in unknown(names, there)] == ["nvidia.com/gpu", "", "amd.com/gpu"]


def test_nothing_is_unknown_where_no_node_is() -> None:
    assert not list(unknown(["memroy"], ()))


def test_what_is_told_says_that_nodes_may_come() -> None:
    assert told("memroy", "memory") == (
        "no node has memroy, so it counts for nothing until one has; is memory meant?"
    )
    assert told("a/b", "") == "no node has a/b, so it counts for nothing until one has"
