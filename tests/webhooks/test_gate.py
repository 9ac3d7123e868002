"""Which pods wait behind the gate from their creation on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.pod import GATE
from app.webhooks.gate import EXEMPT, gated

OURS = frozenset({"volcano", "batch"})


def pod(*, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "p"}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"schedulerName": "volcano", "containers": [], **spec}}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {kind: {"nodeSelectorTerms": list(terms)}}}


def fields(*names: str, key: str = "metadata.name", operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(names)}]}


@pytest.mark.parametrize("scheduler", sorted(OURS))
def test_a_pod_of_ours_is_gated_and_nothing_else_is_changed(scheduler: str) -> None:
    given_pod = pod(schedulerName=scheduler, priority=7)
    changed = gated(given_pod, schedulers=OURS)
    assert changed is not None
    assert changed["spec"].pop("schedulingGates") == [{"name": GATE}]
    assert changed == given_pod
    assert "schedulingGates" not in given_pod["spec"], "the given one is not changed"


def test_gates_of_others_stay() -> None:
    changed = gated(pod(schedulingGates=[{"name": "example.com/x"}]), schedulers=OURS)
    assert changed is not None
    assert changed["spec"]["schedulingGates"] == [{"name": "example.com/x"}, {"name": GATE}]


@pytest.mark.parametrize(
    "left_alone",
    [
        pod(schedulerName="default-scheduler"),
        pod(schedulerName=None),
        pod(nodeName="n1"),
        pod(annotations={EXEMPT: "false"}),
        pod(schedulingGates=[{"name": GATE}]),
        pod(affinity=required(fields("n1"))),
        pod(affinity=required(fields("n1"), fields("n2"))),
        {},
        {"metadata": None, "spec": None},
    ],
)
def test_pods_that_are_left_as_they_are(left_alone: dict[str, Any]) -> None:
    assert gated(left_alone, schedulers=OURS) is None


@pytest.mark.parametrize(
    "waits",
    [
        pod(annotations={EXEMPT: "true"}),
        pod(annotations={}),
        pod(nodeName=""),
        pod(affinity={}),
        pod(affinity={"nodeAffinity": {}}),
        pod(affinity=required(fields("n1", "n2"))),
        pod(affinity=required(fields("n1", operator="NotIn"))),
        pod(affinity=required(fields("n1", key="metadata.uid"))),
        pod(affinity=required(fields("n1"), {"matchExpressions": []})),
        pod(affinity=required({"matchFields": None})),
        pod(affinity={"podAntiAffinity": {}}),
    ],
)
def test_pods_that_wait(waits: dict[str, Any]) -> None:
    assert gated(waits, schedulers=OURS) is not None


@given(st.lists(st.sampled_from(["a", "b", GATE]), unique=True, max_size=3))
def test_a_gated_pod_is_not_gated_again(gates: list[str]) -> None:
    given_pod = pod(schedulingGates=[{"name": name} for name in gates])
    changed = gated(given_pod, schedulers=OURS)
    final = given_pod if changed is None else changed
    assert [g["name"] for g in final["spec"]["schedulingGates"]].count(GATE) == 1
    assert gated(final, schedulers=OURS) is None
