"""Pods: gates, resource groups and disruption budgets."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from app.model.device_families import (
    ASCEND_310P,
    GPU_SHARE,
    VGPU,
    GpuShare,
    need_of,
    tells_devices,
)
from app.model.devices import ContainerLimits, DeviceAsk
from app.model.pod import GATE
from app.webhooks.resource_groups import GROUP_ANNOTATION, ResourceGroup
from app.webhooks.world import Options
from app.wire.objects.devices import told
from app.wire.unstructured import Object
from tests.webhooks.objects import ask, asking, facts, job, node, patched, pod, task

QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
LEAST, MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
ZONE: Object = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}
GROUPS = (
    ResourceGroup(
        name="management",
        namespaces=frozenset({"management"}),
        scheduler_name="default-scheduler",
        labels={"type": "management"},
        tolerations=({"key": "management", "operator": "Exists"},),
        affinity=ZONE,
    ),
    ResourceGroup(name="gpu", annotations=(("kind", "gpu"),), labels={"type": "gpu"}),
    ResourceGroup(name="cpu", labels={"type": "cpu"}),
    ResourceGroup(name="cpu", labels={"type": "second"}),
)
OPTIONS = Options(resource_groups=GROUPS)


def changed(given: Object, *, options: Options = OPTIONS) -> Any:
    verdict = ask("/pods/mutate", given, options=options)
    assert verdict.allowed
    return patched(copy.deepcopy(given), verdict)["spec"]


def managed(**spec: Any) -> Object:
    given = pod(**spec)
    given["metadata"]["namespace"] = "management"
    return given


def in_group_by_label(key: str, **fields: Any) -> Object:
    given = pod(**fields)
    given["metadata"]["labels"] = {key: "train"}
    return given


def test_a_group_by_namespace_sets_what_it_says() -> None:
    spec = changed(managed())
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["nodeSelector"] == {"type": "management"}
    assert spec["tolerations"] == [{"key": "management", "operator": "Exists"}]
    assert spec["affinity"] == ZONE


def test_what_a_pod_brings_is_kept_beside_it() -> None:
    spec = changed(
        managed(
            nodeSelector={"disk": "fast", "type": "mine"},
            tolerations=[{"key": "a"}],
            affinity={"podAffinity": {}},
        )
    )
    assert spec["nodeSelector"] == {"disk": "fast", "type": "management"}
    assert spec["tolerations"] == [{"key": "a"}, {"key": "management", "operator": "Exists"}]
    assert spec["affinity"] == {"podAffinity": {}}


@pytest.mark.parametrize(
    ("annotations", "kind"),
    [
        ({"kind": "gpu"}, "gpu"),
        ({GROUP_ANNOTATION: "cpu"}, "cpu"),
        ({"kind": "other"}, None),
        ({}, None),
        ({"kind": "gpu", GROUP_ANNOTATION: "cpu"}, "gpu"),
    ],
    ids=str,
)
def test_the_first_group_that_takes_a_pod_has_it(annotations: Object, kind: str | None) -> None:
    spec = changed(pod(annotations=annotations))
    assert spec.get("nodeSelector") == (None if kind is None else {"type": kind})
    assert spec["schedulerName"] == "volcano"


def test_applying_a_group_again_changes_nothing() -> None:
    once = managed()
    once["spec"] = changed(managed())
    assert ask("/pods/mutate", once, options=OPTIONS).patch == []


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (Options(queue_gates=True, resource_groups=GROUPS), True),
        (Options(queue_gates=True), True),
        (Options(resource_groups=GROUPS), False),
    ],
    ids=["on", "without a configuration", "off"],
)
def test_the_queue_s_gate_is_added_once(options: Options, wanted: bool) -> None:
    given = pod(annotations={QUEUE_GATE: "true"}, schedulingGates=[{"name": "other"}])
    gates = [{"name": "other"}, {"name": QUEUE_GATE}] if wanted else [{"name": "other"}]
    spec = changed(given, options=options)
    assert spec["schedulingGates"] == gates
    assert changed({**given, "spec": spec}, options=options)["schedulingGates"] == gates


@pytest.mark.parametrize("value", ["false", "", "True", None])
def test_the_queue_s_gate_is_asked_for_in_one_way(value: str | None) -> None:
    annotations = {} if value is None else {QUEUE_GATE: value}
    options = Options(queue_gates=True)
    assert "schedulingGates" not in changed(pod(annotations=annotations), options=options)


def test_the_plan_s_gate_is_added_where_the_server_does_not() -> None:
    assert changed(pod(), options=Options(gate_pods=True))["schedulingGates"] == [{"name": GATE}]
    assert "schedulingGates" not in changed(pod(), options=Options())


def test_a_pod_without_a_spec_is_left_to_the_api_server() -> None:
    assert ask("/pods/mutate", {"metadata": {"name": "p"}}, options=OPTIONS).patch == []


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        *({key: value} for key in (LEAST, MOST) for value in ("1", "10", "1%", "50%", "99%")),
    ],
    ids=str,
)
def test_a_budget_is_accepted(annotations: Object) -> None:
    verdict = ask("/pods/validate", pod(annotations=annotations))
    assert (verdict.allowed, verdict.message) == (True, "")


@pytest.mark.parametrize("key", [LEAST, MOST])
@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("-1", "a positive integer"),
        ("0", "a positive integer"),
        ("x", "a positive integer"),
        ("", "a positive integer"),
        ("1.5", "a positive integer"),
        ("0%", "a valid percentage which between 1% ~ 99%"),
        ("100%", "a valid percentage which between 1% ~ 99%"),
        ("x%", "a valid percentage which between 1% ~ 99%"),
    ],
)
def test_a_budget_is_refused(key: str, value: str, what: str) -> None:
    verdict = ask("/pods/validate", pod(annotations={key: value}))
    assert not verdict.allowed
    assert verdict.message == (
        f'metadata.annotations[{key}]: invalid value <"{value}"> for {key}, it must be {what};'
    )


def test_both_budgets_are_refused() -> None:
    message = ask("/pods/validate", pod(annotations={LEAST: "1", MOST: "1"})).message
    assert message == (
        "metadata.annotations: not allow configure multiple annotations "
        f"<[{LEAST} {MOST}]> at same time;"
    )


def test_pods_of_other_schedulers_are_not_looked_at() -> None:
    given = pod(annotations={LEAST: "-1"}, schedulerName="default-scheduler")
    assert ask("/pods/validate", given).allowed


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        (
            pod(**asking(cpu="9")),
            "spec: no node is large enough for a pod that asks for cpu 9 (largest node: 8)",
        ),
        (
            pod(**asking(cpu="8", memory="2Gi")),
            "spec: no node is large enough for a pod that asks for cpu 8, memory 2Gi",
        ),
        (
            pod(**asking(**{"nvidia.com/gpu": 1})),
            "spec: no node is large enough for a pod that asks for nvidia.com/gpu 1 (largest node: "
            "0)",
        ),
        (
            pod(annotations={"scheduling.volcano.sh/queue-name": "nowhere"}),
            "metadata.annotations[scheduling.volcano.sh/queue-name]: there is no queue nowhere",
        ),
        (
            pod(annotations={"scheduling.volcano.sh/group-name": "train"}),
            "metadata.annotations[scheduling.volcano.sh/group-name]: the pod is no member of "
            'PodGroup "train" by that: name it in the annotation scheduling.k8s.io/group-name',
        ),
        (
            in_group_by_label("scheduling.k8s.io/group-name"),
            "metadata.labels[scheduling.k8s.io/group-name]: the pod is no member of "
            'PodGroup "train" by that: name it in the annotation scheduling.k8s.io/group-name',
        ),
    ],
    ids=["one resource", "together", "a resource nobody has", "a queue", "a key", "a label"],
)
def test_a_warning_is_given(given: Object, warning: str) -> None:
    cluster = facts(nodes=(node("a", cpu=8, memory="1Gi"), node("b", cpu=4, memory="4Gi")))
    verdict = ask("/pods/validate", given, cluster=cluster)
    assert verdict.allowed
    assert verdict.warnings == (warning,)


def test_a_pod_that_names_its_group_where_it_is_read_may_name_it_elsewhere_too() -> None:
    given = in_group_by_label(
        "scheduling.volcano.sh/group-name", annotations={"scheduling.k8s.io/group-name": "train"}
    )
    assert ask("/pods/validate", given).warnings == ()


def test_without_nodes_nobody_knows_what_is_too_large() -> None:
    assert ask("/pods/validate", pod(**asking(cpu=999))).warnings == ()


NUMA = "volcano.sh/numa-topology-policy"
WHOLE: Object = {"limits": {"cpu": "2", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("policy", "resources", "said"),
    [
        ("single-numa-node", WHOLE, ""),
        ("none", {}, ""),
        (
            "best-effort",
            {"requests": {"cpu": "2"}},
            "has no effect: only pods of the class Guaranteed",
        ),
        (
            "nearby",
            WHOLE,
            '"nearby" has no effect: write one of none, best-effort, restricted, single-numa-node',
        ),
    ],
)
def test_a_numa_policy_without_effect_is_warned_of(
    policy: str, resources: Object, said: str
) -> None:
    given = pod(containers=[{"name": "c", "image": "i", "resources": resources}])
    given["metadata"]["annotations"] = {NUMA: policy}
    verdict = ask("/pods/validate", given)
    assert verdict.allowed
    assert [each.partition(": ")[2][: len(said)] for each in verdict.warnings] == (
        [said] if said else []
    )


QOS = "volcano.sh/qos-level"
BATCH = {"kubernetes.io/batch-cpu": 500, "kubernetes.io/batch-memory": 1000}


@pytest.mark.parametrize(
    ("level", "requests", "warned"),
    [
        ("BE", BATCH, ""),
        ("LS", BATCH, ""),
        ("LS", {"cpu": 1}, ""),
        ("HLS", {"cpu": 1, "memory": 1000}, ""),
        ("LC", {"cpu": 1}, ""),
        ("be", BATCH, '"be" has no effect: write one of LC, HLS, LS, BE'),
        (
            "BE",
            {"cpu": 1, "memory": 1000},
            "an offline pod that asks for cpu and memory takes it from online ones: ask for "
            "kubernetes.io/batch-cpu and kubernetes.io/batch-memory",
        ),
        (
            "BE",
            {"memory": 1000, **BATCH},
            "an offline pod that asks for memory takes it from online ones: ask for "
            "kubernetes.io/batch-cpu and kubernetes.io/batch-memory",
        ),
        (
            "HLS",
            BATCH,
            "a pod of level HLS asks for kubernetes.io/batch-cpu, which may be taken from it",
        ),
    ],
)
def test_a_qos_level_that_does_not_go_with_what_is_asked_is_warned_of(
    level: str, requests: dict[str, object], warned: str
) -> None:
    given = pod(**asking(**requests))
    given["metadata"]["annotations"] = {QOS: level}
    assert ask("/pods/validate", given).warnings == (
        (f"metadata.annotations[{QOS}]: {warned}",) if warned else ()
    )
    template = {"metadata": {"annotations": {QOS: level}}, "spec": asking(**requests)}
    told = ask("/jobs/validate", job(task(minAvailable=1, template=template))).warnings
    assert [each for each in told if QOS in each] == (
        [f"spec.tasks[0].template.metadata.annotations[{QOS}]: {warned}"] if warned else []
    )


TOLD = [
    "volcano.sh/vgpu-ids-new",
    "volcano.sh/devices-to-allocate",
    "volcano.sh/bind-phase",
    "volcano.sh/bind-time",
    "volcano.sh/vgpu-node",
    "volcano.sh/vgpu-time",
    "volcano.sh/gpu-index",
    "volcano.sh/predicate-time",
    "predicate-time",
    "hami.io/Ascend310P-devices-to-allocate",
    "hami.io/Ascend310P-devices-allocated",
    "hami.io/vgpu-node",
    "hami.io/bind-phase",
    "huawei.com/Ascend310P",
    "huawei.com/AscendReal",
    "huawei.com/npu-core",
]
ASKED = [
    "volcano.sh/vgpu-mode",
    "volcano.sh/vgpu-use-gpuuuid",
    "volcano.sh/vgpu-podgroup-policy",
    "nvidia.com/use-gputype",
    "volcano.sh/task-spec",
    "example.com/predicate-time",
    "huawei.com/npu-core-other",
]


def saying(key: str, said: str = "x", **spec: Any) -> Object:
    given = pod(**spec)
    given["metadata"].setdefault("annotations", {})[key] = said
    return given


@pytest.mark.parametrize("key", TOLD)
def test_a_pod_without_a_node_may_not_say_which_devices_it_has(key: str) -> None:
    expected = (
        f"metadata.annotations[{key}]: only the scheduler says which devices a pod has, "
        "when it is bound: remove it"
    )
    for verdict in (
        ask("/pods/validate", saying(key)),
        ask("/pods/validate", saying(key), old=pod()),
        ask("/pods/validate", saying(key), old=saying(key, "other")),
    ):
        assert not verdict.allowed
        assert expected in verdict.message


@pytest.mark.parametrize("key", TOLD)
def test_what_a_bound_pod_says_or_one_has_said_before_is_left_alone(key: str) -> None:
    assert ask("/pods/validate", saying(key, nodeName="n")).allowed
    assert ask("/pods/validate", saying(key, nodeName="n"), old=pod(nodeName="n")).allowed
    assert ask("/pods/validate", saying(key), old=saying(key)).allowed
    assert ask("/pods/validate", saying(key, schedulerName="hami-scheduler")).allowed


@pytest.mark.parametrize("key", ASKED)
def test_a_pod_may_say_what_it_asks_for(key: str) -> None:
    assert ask("/pods/validate", saying(key)).allowed


def test_a_change_of_a_pod_is_not_judged_anew() -> None:
    both = saying(LEAST, "1")
    both["metadata"]["annotations"][MOST] = "1"
    assert not ask("/pods/validate", both).allowed
    assert ask("/pods/validate", both, old=pod()).allowed


def test_the_scheduler_writes_no_other_annotations_about_devices() -> None:
    """What a Binding tells, of each family, is what a tenant may not write."""
    for family in (GPU_SHARE, VGPU, ASCEND_310P):
        asked = {family.count: 1, family.memory: 1024}
        limits = ContainerLimits(tuple(sorted(asked.items())))
        need = need_of(family, DeviceAsk((limits,)), GpuShare.MEMORY)
        assert need is not None
        for key in told(family, need, [[]], (), node="n", now=0.0):
            assert tells_devices(key), key
