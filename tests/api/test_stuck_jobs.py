"""Thirty jobs that are stuck: the first line names the cause, *never* is told from *not yet*.

The changes that are told come from the planner; here each is made for real, and the job runs.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from app.model.ids import NodeName
from app.model.node import Taint
from app.model.pod import TASK_SPEC
from app.model.shape import (
    HostPort,
    LabelSelector,
    NodeTerm,
    Operator,
    PodShape,
    PodTerm,
    Requirement,
    Spread,
)
from app.model.workload import GroupPhase, QueueState, Quota
from tests.api.stand import stand
from tests.builders import GIB, make_amounts, make_queue, make_shape
from tests.devices import MEMORY, NUMBER, asking, gpu_node, vgpu_shape
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance
from tests.topology import hard, racks, zone

GPU = "nvidia.com/gpu"
HOST = "kubernetes.io/hostname"
TWO = make_shape(cpu=2000)
APP = LabelSelector((Requirement("app", Operator.IN, ("g",)),))
Made = Callable[[Rig], None]


@dataclass(frozen=True)
class Stuck:
    """``says`` stands in the first line; ``advised``: one of the kinds of changes, or none."""

    name: str
    made: Made
    says: str
    never: bool = False
    advised: frozenset[str] = frozenset()


def nodes(rig: Rig, count: int = 2, **fields: Any) -> None:
    for number in range(count):
        rig.node(f"n{number}", **fields)


def busy(rig: Rig, node: str, *, cpu: int = 1000, **fields: Any) -> None:
    shape = fields.pop("shape", None) or make_shape(cpu=cpu)
    number = len(rig.api.pods)
    rig.pod(f"busy-{number}", node=NodeName(node), phase="Running", shape=shape, **fields)


def free_in_pieces(rig: Rig) -> None:
    """16 GPUs asked, 16 free, and never fits: each pod asks for more than a node has."""
    nodes(rig, 4, extra={GPU: 4})
    rig.gang("g", size=2, shape=PodShape(make_amounts(cpu=1000, pods=1, **{GPU: 8})))


def too_few_free(rig: Rig) -> None:
    nodes(rig)
    busy(rig, "n0", cpu=7000)
    rig.gang("g", size=6, shape=TWO)


def one_member_too_large_for_now(rig: Rig) -> None:
    nodes(rig)
    busy(rig, "n0", cpu=3000)
    busy(rig, "n1", cpu=3000)
    rig.gang("g", size=1, shape=make_shape(cpu=6000))


def no_gpu_at_all(rig: Rig) -> None:
    nodes(rig)
    rig.gang("g", size=1, shape=PodShape(make_amounts(cpu=1000, pods=1, **{GPU: 1})))


def larger_than_the_cluster(rig: Rig) -> None:
    nodes(rig)
    rig.gang("g", size=9, shape=TWO)


def limited(rig: Rig, **capability: int) -> None:
    rig.queue(make_queue("default", capability=make_amounts(**capability)))


def limit_too_small(rig: Rig) -> None:
    nodes(rig)
    limited(rig, cpu=3000)
    rig.gang("g", size=2, shape=TWO)


def limit_used_up(rig: Rig) -> None:
    nodes(rig)
    limited(rig, cpu=5000)
    busy(rig, "n0", cpu=2000)
    rig.gang("g", size=2, shape=TWO)


def limit_of_the_parent(rig: Rig) -> None:
    nodes(rig)
    rig.parts.configuration.load(TREE)
    rig.queue(make_queue("top", capability=make_amounts(cpu=4000)))
    for name in ("a", "b"):
        rig.queue(make_queue(name, parent="top"))
    rig.group("used", minimum=1, queue="b")
    busy(rig, "n0", cpu=3000, group="used")
    rig.group("g", minimum=1, queue="a")
    rig.pod("g-0", group="g", shape=TWO)


def queue_missing(rig: Rig) -> None:
    nodes(rig)
    rig.group("g", minimum=1, queue="none")
    rig.pod("g-0", group="g")


def queue_closed(rig: Rig) -> None:
    nodes(rig)
    rig.queue(make_queue("shut", state=QueueState.CLOSED))
    rig.group("g", minimum=1, queue="shut", phase=GroupPhase.PENDING)
    rig.pod("g-0", group="g")


def quota_used_up(rig: Rig) -> None:
    """The quota counts pods that exist; this one is not created before there is room."""
    nodes(rig)
    rig.parts.configuration.load(QUOTA)
    most, used = ({"requests.cpu": cpu} for cpu in (3000, 2000))
    rig.see("resourcequotas", Quota("default", "q", make_amounts(**most), make_amounts(**used)))
    asked = make_amounts(cpu=2000)
    rig.group("g", minimum=1, min_resources=asked, phase=GroupPhase.PENDING)


def two_quotas_used_up(rig: Rig) -> None:
    """Two quotas of the namespace refuse it, one of them by far more than it asks for."""
    nodes(rig)
    rig.parts.configuration.load(QUOTA)
    for name, limit, used in (("q", 3000, 2000), ("r", 1000, 6000)):
        most, taken = ({"requests.cpu": cpu} for cpu in (limit, used))
        quota = Quota("default", name, make_amounts(**most), make_amounts(**taken))
        rig.see("resourcequotas", quota)
    rig.group("g", minimum=1, min_resources=make_amounts(cpu=2000), phase=GroupPhase.PENDING)


def quota_held_by_another(rig: Rig) -> None:
    quota_used_up(rig)
    rig.group("other", minimum=1, phase=GroupPhase.RUNNING)
    busy(rig, "n0", cpu=2000, group="other")


def gpus(rig: Rig, free: int, *, count: int = 1, cores: int = 0, nodes: int = 1) -> None:
    """Nodes with GPUs, of each of which so many GiB are free and so many cores taken."""
    rig.parts.configuration.load(DEVICES)
    rig.cache.set_device_setting(rig.parts.configuration.devices)
    for at in range(nodes):
        ids = [f"GPU-{at}-{number}" for number in range(count)]
        rig.see("nodes", gpu_node(f"n{at}", *ids))
        if free < 32:
            for number, id_ in enumerate(ids):
                busy(
                    rig,
                    f"n{at}",
                    shape=vgpu_shape(32 - free, cores=cores),
                    annotations={
                        "volcano.sh/vgpu-ids-new": f"{id_},NVIDIA,{(32 - free) * 1024},{cores}:"
                    },
                    started=float(number),
                )


def gpu_memory_short(rig: Rig) -> None:
    gpus(rig, 4, count=3)
    rig.gang("g", size=3, shape=vgpu_shape(8))


def gpu_memory_short_of_whole(rig: Rig) -> None:
    """It names no memory, so it asks for all of it."""
    gpus(rig, 8)
    rig.gang("g", size=2, shape=make_shape(devices=asking({NUMBER: 1})))


def gpu_cores_short(rig: Rig) -> None:
    gpus(rig, 16, cores=70)
    rig.gang("g", size=1, shape=vgpu_shape(4, cores=50))


def too_many_gpus_per_pod(rig: Rig) -> None:
    gpus(rig, 32, count=2, nodes=2)
    rig.gang("g", size=2, shape=vgpu_shape(8, count=4))


def gpus_of_another_type(rig: Rig) -> None:
    gpus(rig, 32)
    rig.gang("g", size=1, shape=vgpu_shape(8, types="A100"))


def gpus_spread(rig: Rig) -> None:
    gpus(rig, 32)
    rig.gang("g", size=2, shape=vgpu_shape(8, policy="spread"))


def tainted(rig: Rig) -> None:
    nodes(rig, taints=(Taint("team", "red", "NoSchedule"),))
    rig.gang("g", size=2, shape=TWO)


def cordoned(rig: Rig) -> None:
    nodes(rig, unschedulable=True)
    rig.gang("g", size=1)


def not_ready(rig: Rig) -> None:
    nodes(rig, ready=False)
    rig.gang("g", size=1)


def selector_matches_none(rig: Rig) -> None:
    nodes(rig)
    rig.gang("g", size=1, shape=make_shape(node_selector=(("disk", "ssd"),)))


def affinity_matches_none(rig: Rig) -> None:
    nodes(rig)
    term = NodeTerm((Requirement("zone", Operator.IN, ("a",)),))
    rig.gang("g", size=1, shape=make_shape(required_terms=(term,)))


def matching_nodes_are_full(rig: Rig) -> None:
    rig.node("n0", labels={"disk": "ssd"})
    rig.node("n1")
    busy(rig, "n0", cpu=8000)
    rig.gang("g", size=1, shape=make_shape(node_selector=(("disk", "ssd"),)))


def foreign_members(rig: Rig) -> None:
    """A member that another scheduler has to place does not count."""
    nodes(rig)
    rig.group("g", minimum=2)
    rig.pod("g-0", group="g")
    rig.pod("g-1", group="g", scheduler="default-scheduler")


def foreign_gate(rig: Rig) -> None:
    nodes(rig)
    rig.group("g", minimum=2)
    rig.pod("g-0", group="g")
    rig.pod("g-1", group="g", gates=("example.com/wait",))


def members_missing(rig: Rig) -> None:
    nodes(rig)
    rig.group("g", minimum=3)
    rig.pod("g-0", group="g")


def role_missing(rig: Rig) -> None:
    nodes(rig)
    rig.group("g", minimum=2, role_minimum={"ps": 1, "worker": 1})
    rig.pod("g-0", group="g", annotations={TASK_SPEC: "worker"})
    rig.pod("g-1", group="g", annotations={TASK_SPEC: "worker"})


def group_missing(rig: Rig) -> None:
    nodes(rig)
    rig.pod("g", group="none")


def among_themselves(**rules: Any) -> dict[str, Any]:
    """Pods of one label, with rules about pods that have it."""
    shape = make_shape(spread_identity=("default", (("app", "g"),)), **rules)
    return {"shape": shape, "labels": {"app": "g"}}


def spread_over_too_few(rig: Rig) -> None:
    nodes(rig, 2)
    rule = Spread(1, HOST, hard=True, selector=APP, min_domains=3)
    rig.gang("g", size=3, **among_themselves(spread=(rule,)))


def one_per_node(rig: Rig) -> None:
    nodes(rig, 2)
    rule = PodTerm(HOST, APP, namespaces=("default",))
    rig.gang("g", size=3, **among_themselves(pod_anti_affinity=(rule,)))


def port_taken(rig: Rig) -> None:
    nodes(rig, 1)
    port = HostPort("0.0.0.0", "TCP", 80)
    busy(rig, "n0", shape=make_shape(host_ports=(port,)))
    rig.gang("g", size=1, shape=make_shape(host_ports=(port,)))


def tier_too_low(rig: Rig) -> None:
    nodes(rig, 4)
    rig.see("hypernodes", *racks(r0="n0 n1", r1="n2 n3"), zone("z", "r0", "r1"))
    rig.group("g", minimum=10, topology=hard(1))
    for number in range(10):
        rig.pod(f"g-{number}", group="g", shape=TWO)


def domains_are_busy(rig: Rig) -> None:
    nodes(rig, 4)
    rig.see("hypernodes", *racks(r0="n0 n1", r1="n2 n3"), zone("z", "r0", "r1"))
    busy(rig, "n0", cpu=6000)
    busy(rig, "n2", cpu=6000)
    rig.group("g", minimum=6, topology=hard(1))
    for number in range(6):
        rig.pod(f"g-{number}", group="g", shape=TWO)


def pinned_to_a_full_node(rig: Rig) -> None:
    nodes(rig)
    busy(rig, "n0", cpu=8000)
    rig.pod("g", pinned=NodeName("n0"))


def pinned_to_no_node(rig: Rig) -> None:
    nodes(rig)
    rig.pod("g", pinned=NodeName("none"))


def too_many_pods(rig: Rig) -> None:
    nodes(rig, 1, pods=2)
    busy(rig, "n0")
    rig.gang("g", size=2)


def memory_short(rig: Rig) -> None:
    nodes(rig, 1, memory=4 * GIB)
    busy(rig, "n0", shape=make_shape(memory=3 * GIB))
    rig.gang("g", size=1, shape=make_shape(memory=2 * GIB))


TREE = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
    enableHierarchy: true
"""
QUOTA = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: resourcequota
"""
DEVICES = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true}
"""


def case(made: Made, says: str, *advised: str, never: bool = False) -> Stuck:
    return Stuck(made.__name__, made, says, never=never, advised=frozenset(advised))


CASES = (
    case(free_in_pieces, "nvidia.com/gpu", "smallerRequest", never=True),
    case(too_few_free, "cpu", "fewerMembers"),
    case(one_member_too_large_for_now, "cpu", "smallerRequest"),
    case(no_gpu_at_all, "nvidia.com/gpu", never=True),
    case(larger_than_the_cluster, "cpu", "fewerMembers", never=True),
    case(limit_too_small, "queue default", "higherLimit", never=True),
    case(limit_used_up, "queue default", "higherLimit"),
    case(limit_of_the_parent, "queue top", "higherLimit"),
    case(queue_missing, "queue none", "otherQueue"),
    case(queue_closed, "queue shut", "otherQueue"),
    case(quota_used_up, "resource quota of namespace default", "higherLimit"),
    case(two_quotas_used_up, "resource quota of namespace default", "higherLimit", never=True),
    case(quota_held_by_another, "resource quota", "higherLimit", "endOfAnother"),
    case(gpu_memory_short, "8 GiB asked of a GPU; 3 GPUs have 4 GiB free", "smallerRequest"),
    case(gpu_memory_short_of_whole, "GPU", "smallerRequest"),
    case(gpu_cores_short, "50 cores asked of a GPU; at most 30 are free", "smallerRequest"),
    case(too_many_gpus_per_pod, "4 GPUs asked", "smallerRequest"),
    case(gpus_of_another_type, "no GPU is of a type", "fewerDeviceRules"),
    case(gpus_spread, "no GPU", "fewerMembers", "fewerDeviceRules"),
    case(tainted, "taint {team: red}", "toleration", never=True),
    case(cordoned, "unschedulable", "uncordon"),
    case(not_ready, "not ready"),
    case(selector_matches_none, "selector", "fewerNodeRules", never=True),
    case(affinity_matches_none, "affinity", "fewerNodeRules", never=True),
    case(matching_nodes_are_full, "cpu", "fewerNodeRules"),
    case(foreign_members, "present 1", "fewerMembers"),
    case(foreign_gate, "gate", "fewerMembers"),
    case(members_missing, "present 1", "fewerMembers"),
    case(role_missing, "task ps", "fewerMembers"),
    case(group_missing, "none"),
    case(spread_over_too_few, "topology spread", "fewerNodeRules"),
    case(one_per_node, "anti-affinity", "fewerMembers", "fewerNodeRules"),
    case(port_taken, "port", "fewerNodeRules"),
    case(tier_too_low, "no domain of tier <= 1", "higherTier", never=True),
    case(domains_are_busy, "no domain of tier <= 1", "higherTier"),
    case(pinned_to_a_full_node, "cpu", "fewerNodeRules"),
    case(pinned_to_no_node, "affinity", "fewerNodeRules", never=True),
    case(too_many_pods, "pods 1 of 2", "fewerMembers"),
    case(memory_short, "memory", "smallerRequest"),
)


@pytest.mark.parametrize("stuck", CASES, ids=lambda stuck: stuck.name)
async def test_a_stuck_job_is_explained_in_its_first_line(stuck: Stuck) -> None:
    rig = Rig()
    stuck.made(rig)
    await rig.cycle()
    async with stand(rig) as at:
        name = "g"
        found = json.loads((await at.get(f"/explain/default/{name}")).content)
        advice = json.loads((await at.get(f"/advice/default/{name}")).content)
    told = {change["kind"] for change in advice["changes"]}
    assert stuck.says in found["summary"]
    assert bool(found["reason"]["never"]) is stuck.never
    assert stuck.advised <= told, (told, advice)


def test_most_stuck_jobs_get_advice() -> None:
    assert len(CASES) >= 30
    assert sum(bool(case.advised) for case in CASES) >= 25


async def advised(rig: Rig) -> list[str]:
    """What is proposed for the gang."""
    await rig.cycle()
    async with stand(rig) as at:
        answer = json.loads((await at.get("/advice/default/g")).content)
    return [change["text"] for change in answer["changes"]]


@pytest.mark.parametrize(
    ("made", "size", "text", "shape"),
    [
        (
            gpu_memory_short,
            3,
            "ask for volcano.sh/vgpu-memory 4096 of each GPU, which are 4 GiB",
            vgpu_shape(4),
        ),
        (
            gpu_memory_short_of_whole,
            2,
            "ask for volcano.sh/vgpu-memory 4096 of each GPU, which are 4 GiB",
            vgpu_shape(4),
        ),
        (
            gpu_cores_short,
            1,
            "ask for volcano.sh/vgpu-cores 30 of each GPU",
            vgpu_shape(4, cores=30),
        ),
        (
            too_many_gpus_per_pod,
            2,
            "ask for volcano.sh/vgpu-number 2 per container",
            vgpu_shape(8, count=2),
        ),
        (
            gpus_of_another_type,
            1,
            "allow the type NVIDIA-V100 too (annotation nvidia.com/use-gputype)",
            vgpu_shape(8, types="A100,NVIDIA-V100"),
        ),
        (
            gpus_spread,
            2,
            "leave out the annotation volcano.sh/vgpu-podgroup-policy: spread",
            vgpu_shape(8),
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_gang_that_asks_for_devices_as_was_proposed_runs(
    made: Made, size: int, text: str, shape: PodShape
) -> None:
    rig = Rig()
    made(rig)
    assert text in await advised(rig)
    rig.gang("less", size=size, shape=shape)
    await rig.cycle()
    assert all(rig.place(f"less-{number}") for number in range(size))


async def test_of_amounts_that_help_only_the_largest_is_proposed() -> None:
    rig = Rig()
    gpu_memory_short(rig)
    about_memory = [text for text in await advised(rig) if MEMORY in text]
    assert about_memory == ["ask for volcano.sh/vgpu-memory 4096 of each GPU, which are 4 GiB"]


def admitted(rig: Rig) -> bool:
    return rig.cache.groups[rig.key("g")].phase is GroupPhase.INQUEUE


async def test_a_gang_is_admitted_once_the_quotas_are_raised_as_was_proposed() -> None:
    rig = Rig()
    two_quotas_used_up(rig)
    assert await advised(rig) == [
        "raise the ResourceQuota q of namespace default to requests.cpu 4 and "
        "the ResourceQuota r of namespace default to requests.cpu 8"
    ]
    for name, most, used in (("q", 4000, 2000), ("r", 8000, 6000)):
        limits = make_amounts(**{"requests.cpu": most}), make_amounts(**{"requests.cpu": used})
        rig.see("resourcequotas", Quota("default", name, *limits))
        assert not admitted(rig)
    with working(rig):
        await advance(2)
        assert admitted(rig)


async def test_a_gang_is_admitted_once_another_has_ended_as_was_proposed() -> None:
    rig = Rig()
    quota_held_by_another(rig)
    proposed = "wait for the end of default/other, which has requests.cpu 2 of the ResourceQuota q"
    assert proposed in await advised(rig)
    rig.delete("busy-0")
    hard, used = make_amounts(**{"requests.cpu": 3000}), make_amounts(**{"requests.cpu": 0})
    rig.see("resourcequotas", Quota("default", "q", hard, used))
    await rig.cycle()
    assert admitted(rig)
