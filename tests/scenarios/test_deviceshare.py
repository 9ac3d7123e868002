"""deviceshare: pods share GPUs, and are told which ones they have."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.clusters import workloads
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.resources import NODES
from tests.scenarios.confs import conf

IDS, REGISTER = "volcano.sh/vgpu-ids-new", "volcano.sh/node-vgpu-register"
GPU_MIB = 32 * 1024


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    shares = {
        "name": "deviceshare",
        "arguments": {
            "deviceshare.VGPUEnable": "true",
            "deviceshare.SchedulePolicy": "binpack",
            "deviceshare.ScheduleWeight": "10",
        },
    }
    document = yaml.safe_load(conf("predicates", "proportion", "nodeorder", shares))
    document["actions"] = "enqueue, allocate, preempt, backfill"
    document["tiers"][0]["plugins"][1]["enablePreemptable"] = False
    return yaml.safe_dump(document)


def add_gpus(place: Place, *ids: str, ill: str = "") -> str:
    """A node with GPUs of 32 GiB."""
    extra = {
        "volcano.sh/vgpu-number": str(10 * len(ids)),
        "volcano.sh/vgpu-memory": str(GPU_MIB * len(ids)),
        "volcano.sh/vgpu-cores": str(100 * len(ids)),
    }
    (name,) = place.add_nodes(1, cpu="8", extra=extra)
    tell(place, name, *ids, ill=ill)
    return name


def tell(place: Place, node: str, *ids: str, ill: str = "") -> None:
    """The device plugin of the node lists its GPUs."""
    text = "".join(
        f"{id_},10,{GPU_MIB},NVIDIA-V100,{str(id_ != ill).lower()},hami-core:" for id_ in ids
    )
    place.api.patch(NODES, node, {"metadata": {"annotations": {REGISTER: text}}})


def add_gang(
    place: Place, name: str, count: int, *, gib: int, rank: str | None = None, **annotations: str
) -> None:
    of_all = {} if rank is None else {"priorityClassName": rank}
    place.add_group(name, count, **of_all)
    limits = {
        "cpu": "100m",
        "volcano.sh/vgpu-number": "1",
        "volcano.sh/vgpu-memory": str(gib * 1024),
    }
    pods = workloads.members(name, count, resources={"limits": limits}, **of_all)
    for pod in pods:
        pod["metadata"]["annotations"] |= annotations
    place.submit(pods)


def told(place: Place, group: str, key: str = IDS) -> list[Any]:
    return sorted(pod["metadata"]["annotations"][key] for pod in place.bound(group))


def test_members_share_gpus_and_are_told_which(place: Place) -> None:
    name = add_gpus(place, "GPU-a", "GPU-b")
    add_gang(place, "ours", 4, gib=16)
    place.wait_bound("ours", 4)
    assert told(place, "ours") == ["GPU-a,NVIDIA,16384,0:"] * 2 + ["GPU-b,NVIDIA,16384,0:"] * 2
    assert told(place, "ours", "volcano.sh/vgpu-node") == [name] * 4
    assert told(place, "ours", "volcano.sh/bind-phase") == ["allocating"] * 4


def test_a_gang_waits_with_numbers_until_devices_are_free(place: Place) -> None:
    add_gpus(place, "GPU-a", "GPU-b")
    add_gang(place, "first", 2, gib=24)
    place.wait_bound("first", 2)
    add_gang(place, "second", 2, gib=16)
    place.wait_summary("second", "16 GiB asked of a GPU; 2 GPUs have 8 GiB free, none more")
    place.delete_gang("first")
    place.wait_bound("second", 2)


def test_one_pod_goes_for_a_gang_that_no_gpu_has_memory_for(place: Place) -> None:
    """volcano#4863, volcano#3186: with shared GPUs no pod went, though all GPUs were taken.

    Both GPUs together have the memory that is asked for, and neither has it alone.
    """
    low, high = place.add_priority_class("low", 1), place.add_priority_class("high", 100)
    add_gpus(place, "a", "b")
    for name in ("first", "second"):
        add_gang(place, name, 1, gib=20, rank=low)
        place.wait_bound(name, 1)
    add_gang(place, "new", 1, gib=24, rank=high)
    place.wait_bound("new", 1)
    assert len(place.bound("first")) + len(place.bound("second")) == 1


def test_a_gpu_that_is_not_healthy_is_given_to_no_pod(place: Place) -> None:
    name = add_gpus(place, "GPU-a", "GPU-b", ill="GPU-a")
    add_gang(place, "ours", 2, gib=20)
    place.wait_summary("ours", "devices")
    tell(place, name, "GPU-a", "GPU-b")
    place.wait_bound("ours", 2)
    assert told(place, "ours") == ["GPU-a,NVIDIA,20480,0:", "GPU-b,NVIDIA,20480,0:"]


def test_what_a_pod_says_itself_takes_no_device(place: Place) -> None:
    """The pod of an owner who claims all of a GPU gets what it asks for, and no more."""
    add_gpus(place, "GPU-a")
    claims = {IDS: "GPU-a,NVIDIA,32768,100:", "volcano.sh/devices-to-allocate": "GPU-a,NVIDIA,1,1:"}
    add_gang(place, "greedy", 1, gib=1, **claims)
    place.wait_bound("greedy", 1)
    assert told(place, "greedy") == ["GPU-a,NVIDIA,1024,0:"]
    add_gang(place, "other", 1, gib=31)
    place.wait_bound("other", 1)


def test_pods_of_a_group_are_kept_on_different_gpus_where_they_ask_for_that(place: Place) -> None:
    add_gpus(place, "GPU-a", "GPU-b")
    add_gang(place, "ours", 2, gib=1, **{"volcano.sh/vgpu-podgroup-policy": "spread"})
    place.wait_bound("ours", 2)
    assert told(place, "ours") == ["GPU-a,NVIDIA,1024,0:", "GPU-b,NVIDIA,1024,0:"]


def test_the_pods_of_the_example_share_gpus(place: Place) -> None:
    (job,) = documents(ROOT / "examples" / "scheduling" / "shared-gpus.yaml")
    [task] = job["spec"]["tasks"]
    [container] = task["template"]["spec"]["containers"]
    add_gpus(place, "GPU-a", "GPU-b")
    place.add_group("ours", job["spec"]["minAvailable"])
    pods = workloads.members("ours", task["replicas"], resources=container["resources"])
    place.submit(pods)
    place.wait_bound("ours", 4)
    assert told(place, "ours") == ["GPU-a,NVIDIA,16384,33:"] * 2 + ["GPU-b,NVIDIA,16384,33:"] * 2
