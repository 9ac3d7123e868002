"""What a gang has reached is written by the scheduler only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.model.reached import REACHED
from tests.clusters import installation, workloads
from tests.clusters.client import ApiClient, ApiError
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.clusters.resources import POD_GROUPS
from tests.e2e.accounts import account

pytestmark = pytest.mark.real

OWN = {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["*"]}
SCHEDULERS = {
    "apiGroups": ["scheduling.volcano.sh"],
    "resources": ["queues/status"],
    "verbs": ["patch"],
}


@pytest.fixture
def tenant(installed: ControlPlane, namespace: str) -> Iterator[ApiClient]:
    """A user with every right on the PodGroups of a namespace."""
    yield from account(installed, namespace, "tenant", OWN)


@pytest.fixture
def scheduler(installed: ControlPlane, namespace: str) -> Iterator[ApiClient]:
    """One that may also write the status of queues."""
    yield from account(installed, namespace, "scheduler", OWN, SCHEDULERS)


def refusal(client: ApiClient, namespace: str, said: str | None, **more: Any) -> str:
    change = {"metadata": {"annotations": {REACHED: said}}, **more}
    try:
        client.patch(POD_GROUPS, "gang", change, namespace=namespace)
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
