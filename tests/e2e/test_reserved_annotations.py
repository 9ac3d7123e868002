"""What a gang has reached, and whom Pumice evicts, is written by the scheduler only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.model.reached import REACHED
from app.wire import evicted
from app.wire.evicted import EVICTED
from tests.clusters import installation, workloads
from tests.clusters.client import ApiClient, ApiError
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.clusters.resources import POD_GROUPS, PODS
from tests.e2e.accounts import account

pytestmark = pytest.mark.real

OWN = {
    "apiGroups": ["scheduling.volcano.sh", ""],
    "resources": ["podgroups", "pods"],
    "verbs": ["*"],
}
SCHEDULERS = {
    "apiGroups": ["scheduling.volcano.sh"],
    "resources": ["queues/status"],
    "verbs": ["patch"],
}


@pytest.fixture
def tenant(installed: ControlPlane, namespace: str) -> Iterator[ApiClient]:
    """A user with every right on the PodGroups and pods of a namespace."""
    yield from account(installed, namespace, "tenant", OWN)


@pytest.fixture
def scheduler(installed: ControlPlane, namespace: str) -> Iterator[ApiClient]:
    """One that may also write the status of queues."""
    yield from account(installed, namespace, "scheduler", OWN, SCHEDULERS)


def refusal(client: ApiClient, namespace: str, said: str | None, **more: Any) -> str:
    change = {"metadata": {"annotations": {REACHED: said}}, **more}
    return refused(lambda: client.patch(POD_GROUPS, "gang", change, namespace=namespace))


def refused(write: Callable[[], object]) -> str:
    """Why it was; empty if it was not."""
    try:
        write()
    except ApiError as error:
        return str(error)
    return ""


def test_a_tenant_takes_it_away_at_most(
    installed: ControlPlane, namespace: str, tenant: ApiClient, scheduler: ApiClient
) -> None:
    group = workloads.pod_group("gang", min_member=2, annotations={REACHED: "copied"})
    tenant.create(group, resource=POD_GROUPS, namespace=namespace)
    numbers = iter(range(1000))
    wait_until(
        lambda: "only the scheduler writes it" in refusal(tenant, namespace, f"{next(numbers)}"),
        timeout_s=installation.POLICY_S,
        what="the policy is in force",
    )
    assert refusal(scheduler, namespace, "four") == ""
    assert refusal(tenant, namespace, "four", spec={"minMember": 3}) == ""
    assert "only the scheduler writes it" in refusal(tenant, namespace, "five")
    assert refusal(tenant, namespace, None) == ""


def test_a_tenant_cannot_pass_a_pod_off_as_evicted_by_pumice(
    installed: ControlPlane, namespace: str, tenant: ApiClient, scheduler: ApiClient
) -> None:
    made = workloads.pod("p", scheduler="nobody")
    made["metadata"]["annotations"] = {EVICTED: "copied"}
    tenant.create(made, resource=PODS, namespace=namespace)
    uid = tenant.get(PODS, "p", namespace=namespace)["metadata"]["uid"]
    numbers = iter(range(1000))

    def mark(client: ApiClient, text: str | None) -> str:
        change = evicted.annotation(text, uid=uid) if text else {}
        change = change or {"metadata": {"annotations": {EVICTED: None}}}
        return refused(lambda: client.patch(PODS, "p", change, namespace=namespace))

    wait_until(
        lambda: "only the scheduler writes it" in mark(tenant, f"{next(numbers)}"),
        timeout_s=installation.POLICY_S,
        what="the policy is in force",
    )
    assert EVICTED in mark(tenant, "preempt")
    assert mark(scheduler, "preempt") == ""
    relabel = {"metadata": {"labels": {"a": "b"}}}
    assert refused(lambda: tenant.patch(PODS, "p", relabel, namespace=namespace)) == ""
    assert "only the scheduler writes it" in mark(tenant, "reclaim")
    assert mark(tenant, None) == ""
