"""The HyperNode controller in a process of its own, with the rights of its own account.

They are those of `scheduler-config/hypernode-controller.yaml`. The process beside it is that of all
other controllers. Two replicas take over from each other, and ownership moves to the process of all
controllers and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import nodes, workloads
from tests.clusters.client import ApiClient, ApiError, tls_context
from tests.clusters.controlplane import ControlPlane
from tests.clusters.installation import ROOT, apply, documents
from tests.clusters.pages import Pages
from tests.clusters.ports import free_port
from tests.clusters.processes import Process
from tests.clusters.pumice import COMMAND
from tests.clusters.resources import CONFIG_MAPS, HYPER_NODES, NODES, SECRETS, Resource
from tests.clusters.rig import NAMESPACE, account
from tests.e2e.test_small_controllers import DISCOVERY, RACK

pytestmark = pytest.mark.real

MANIFEST = ROOT / "scheduler-config" / "hypernode-controller.yaml"
CONF = "volcano-controller-configmap"
LABEL = "volcano.sh/network-topology-source=label"
LEASES = Resource("coordination.k8s.io/v1", "leases", "Lease")


class Controllers(Process, Pages):
    """A `pumice controllers`."""


@pytest.fixture(scope="module")
def api(installed: ControlPlane) -> Iterator[ApiClient]:
    """The control plane with the account, three nodes of two racks, and what discovery is told."""
    client = installed.api
    made = apply(client, MANIFEST)
    conf = workloads.item(CONFIG_MAPS, CONF, data={"volcano-controller.conf": DISCOVERY})
    client.create(conf, resource=CONFIG_MAPS, namespace=NAMESPACE)
    names = nodes.create(client, 3, prefix="alone", labels={RACK: "r1"})
    client.patch(NODES, names[2], {"metadata": {"labels": {RACK: "r2"}}})
    try:
        yield client
    finally:
        nodes.delete(client, names)
        client.delete(CONFIG_MAPS, CONF, namespace=NAMESPACE)
        client.delete_all(HYPER_NODES)
        for item in reversed(made):
            resource, where = client.resource_of(item), item["metadata"]
            client.delete(resource, where["name"], namespace=where.get("namespace"))


def deployed() -> list[str]:
    """The arguments of the Deployment that is shipped."""
    [deployment] = [each for each in documents(MANIFEST) if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


@contextmanager
def running(
    installed: ControlPlane, name: str, *flags: str, of: str = "pumice-hypernodes"
) -> Iterator[Controllers]:
    """A process with the rights of that account; by default with the arguments that are shipped."""
    port = free_port()
    own = flags or tuple(each for each in deployed() if not each.startswith("--healthz"))
    argv: list[str | Path] = [
        COMMAND,
        "controllers",
        f"--kubeconfig={account(installed, of)}",
        f"--healthz-address=127.0.0.1:{port}",
        f"--leader-elect-resource-namespace={NAMESPACE}",
        *own,
    ]
    with Controllers(argv, log=installed.log(name), name=name) as made:
        made.url = f"http://127.0.0.1:{port}"
        made.wait_ready(lambda: made.status("/readyz") == 200, timeout_s=60)
        yield made


def wait_counted(api: ApiClient, *counts: int) -> dict[str, Any]:
    """Wait until discovery has made HyperNodes of so many nodes; their UIDs by name."""

    def are_counted(items: list[Any]) -> bool:
        return sorted(each.get("status", {}).get("nodeCount", -1) for each in items) == [*counts]

    api.until(HYPER_NODES, are_counted, label_selector=LABEL, what=f"HyperNodes of {counts}")
    found = api.list(HYPER_NODES, label_selector=LABEL)
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


def test_it_discovers_changes_and_removes_with_the_rights_of_its_own_account(
    installed: ControlPlane, api: ApiClient
) -> None:
    with running(installed, "hypernodes-alone"):
        wait_counted(api, 1, 2)
        api.patch(NODES, "alone-1", {"metadata": {"labels": {RACK: "r2"}}})
        wait_counted(api, 1, 2)
        api.patch(NODES, "alone-0", {"metadata": {"labels": {RACK: "r2"}}})
        wait_counted(api, 3)
        for name in ("alone-0", "alone-1"):
            api.patch(NODES, name, {"metadata": {"labels": {RACK: "r1"}}})
        wait_counted(api, 1, 2)
    log = installed.log("hypernodes-alone").read_text()
    assert "forbidden" not in log.lower()


def test_its_account_reaches_nothing_but_topology(installed: ControlPlane, api: ApiClient) -> None:
    token = installed.service_account_token(NAMESPACE, "pumice-hypernodes")
    trust = tls_context(installed.authority.certificate)
    with ApiClient(installed.url, verify=trust, token=token) as own:
        assert own.list(HYPER_NODES) is not None
        forbidden: dict[str, tuple[str, str]] = {
            "jobs": ("GET", "/apis/batch.volcano.sh/v1alpha1/jobs"),
            "pods": ("GET", "/api/v1/pods"),
            "queues": ("GET", "/apis/scheduling.volcano.sh/v1beta1/queues"),
            "secrets": ("GET", SECRETS.path("", namespace=NAMESPACE)),
            "another ConfigMap": ("GET", CONFIG_MAPS.path("x", namespace=NAMESPACE)),
            "the Lease of others": ("GET", LEASES.path("pumice-controllers", namespace=NAMESPACE)),
            "a node's labels": ("DELETE", NODES.path("alone-0")),
        }
        for what, (method, path) in forbidden.items():
            with pytest.raises(ApiError) as refused:
                own.request(method, path)
            assert refused.value.code == 403, what


def test_another_replica_goes_on_when_the_one_at_work_is_killed(
    installed: ControlPlane, api: ApiClient
) -> None:
    with running(installed, "hypernodes-first") as first:
        before = wait_counted(api, 1, 2)
        with running(installed, "hypernodes-second"):
            first.kill()
            api.patch(NODES, "alone-1", {"metadata": {"labels": {RACK: "r2"}}})
            api.patch(NODES, "alone-0", {"metadata": {"labels": {RACK: "r2"}}})
            after = wait_counted(api, 3)
            assert after.items() <= before.items()
            for name in ("alone-0", "alone-1"):
                api.patch(NODES, name, {"metadata": {"labels": {RACK: "r1"}}})
            wait_counted(api, 1, 2)


def test_hyper_nodes_stay_when_another_process_takes_them_over_and_gives_them_back(
    installed: ControlPlane, api: ApiClient
) -> None:
    with running(installed, "hypernodes-own"):
        before = wait_counted(api, 1, 2)
    whole = ("--controllers=*", "--leader-elect=true")
    with running(installed, "hypernodes-whole", *whole, of="pumice-controllers"):
        api.patch(NODES, "alone-2", {"metadata": {"labels": {RACK: None}}})
        assert wait_counted(api, 2).items() <= before.items()
        api.patch(NODES, "alone-2", {"metadata": {"labels": {RACK: "r2"}}})
        taken = wait_counted(api, 1, 2)
    with running(installed, "hypernodes-again"):
        api.patch(NODES, "alone-1", {"metadata": {"labels": {RACK: None}}})
        assert wait_counted(api, 1, 1) == taken
        api.patch(NODES, "alone-1", {"metadata": {"labels": {RACK: "r1"}}})
        wait_counted(api, 1, 2)
