"""Commands for queues: made only by users who may change that queue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.cli.orders import command_for
from tests.clusters import installation
from tests.clusters.client import ApiClient, ApiError, Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.clusters.resources import QUEUES
from tests.e2e.accounts import account

pytestmark = pytest.mark.real

OWN = {"apiGroups": ["bus.volcano.sh"], "resources": ["commands"], "verbs": ["*"]}
IN_THE_WAY = "needs the right to update that queue"


@pytest.fixture
def tenant(installed: ControlPlane, namespace: str) -> Iterator[ApiClient]:
    """A user with rights in one namespace only."""
    yield from account(installed, namespace, "tenant", OWN)


@pytest.fixture
def operator(installed: ControlPlane, namespace: str) -> Iterator[ApiClient]:
    """A user who may change one queue."""
    rule = {
        "apiGroups": ["scheduling.volcano.sh"],
        "resources": ["queues"],
        "resourceNames": ["default"],
        "verbs": ["get", "patch"],
    }
    yield from account(installed, namespace, "operator", OWN, rule)


def command(namespace: str, queue: str = "default") -> Object:
    """A Command as the command line sends it, in a namespace of our choice."""
    of_queue = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": queue, "uid": "0b5c6ad4-1f1e-4b3a-9f62-8a2f4b0a7c11"},
    }
    made = command_for(of_queue, "OpenQueue")
    made["metadata"] = {"namespace": namespace, "generateName": "command-"}
    return made


def refusal(client: ApiClient, item: Object, *, method: str = "POST") -> str:
    name = item["metadata"].get("name", "")
    path = f"/apis/bus.volcano.sh/v1alpha1/namespaces/{item['metadata']['namespace']}/commands"
    try:
        client.request(method, f"{path}/{name}".rstrip("/"), body=item, params={"dryRun": "All"})
    except ApiError as error:
        return str(error)
    return ""


def wait_in_force(client: ApiClient, item: Object) -> None:
    wait_until(
        lambda: IN_THE_WAY in refusal(client, item),
        timeout_s=installation.POLICY_S,
        what="the policy is in force",
    )


def test_a_tenant_closes_no_queue(
    installed: ControlPlane, namespace: str, tenant: ApiClient
) -> None:
    for_queue = command(namespace)
    wait_in_force(tenant, for_queue)
    for_job = {**for_queue, "target": {**for_queue["target"], "kind": "Job"}}
    assert refusal(tenant, for_job) == ""
    stored = tenant.create(for_job)
    assert refusal(tenant, {**stored, "reason": "Anything"}, method="PUT") == ""
    turned = {**stored, "target": for_queue["target"]}
    assert IN_THE_WAY in refusal(tenant, turned, method="PUT")


def test_an_operator_opens_and_closes_the_queue_that_the_operator_may_change(
    installed: ControlPlane, namespace: str, tenant: ApiClient, operator: ApiClient
) -> None:
    api = installed.api
    own, other = command(namespace), command(namespace, "root")
    wait_in_force(tenant, own)
    assert refusal(operator, own) == ""
    assert IN_THE_WAY in refusal(operator, other)
    assert refusal(api, other) == ""
    stored = api.create(other)
    assert refusal(tenant, {**stored, "reason": "Anything"}, method="PUT") == ""
    assert IN_THE_WAY in refusal(tenant, {**stored, "action": "CloseQueue"}, method="PUT")
