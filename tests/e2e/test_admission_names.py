"""Pods that a webhook of others gives our scheduler's name, after the policies were asked.

The Spark operator does it so. The API server asks a policy or a webhook again only when it matched
the pod before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters import installation, workloads
from tests.clusters.client import ApiError, Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.e2e import admission, renaming

pytestmark = pytest.mark.real

GATE = {"name": workloads.GATE}
GROUP = {"scheduling.k8s.io/group-name": "gang"}


@pytest.fixture(scope="module", autouse=True)
def renamed(installed: ControlPlane) -> Iterator[None]:
    with renaming.running(installed):
        wait_until(
            lambda: driver(installed)["spec"]["schedulerName"] == "volcano",
            timeout_s=installation.POLICY_S,
            what="pods get the name",
        )
        yield


def stored(cluster: ControlPlane, **metadata: Any) -> Object:
    """A pod under the default scheduler's name, as it would be stored."""
    spec = {
        "containers": [{"name": "driver", "image": "image"}],
        "initContainers": [{"name": "first", "image": "image"}],
    }
    about = {"name": "driver", "namespace": "default", **metadata}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}
    return admission.dry_run(cluster.api, pod)


def driver(cluster: ControlPlane, scheduler: str = "volcano") -> Object:
    """A member of a gang that the webhook gives its scheduler."""
    return stored(cluster, annotations=GROUP, labels={renaming.LABEL: scheduler})


def test_a_member_of_a_gang_is_gated_once(installed: ControlPlane) -> None:
    assert driver(installed)["spec"]["schedulingGates"] == [GATE]


def test_a_member_of_a_gang_is_marked_in_form_b(installed: ControlPlane) -> None:
    with installation.marking(installed.api):
        assert installation.is_marked(driver(installed))
        assert not installation.is_marked(driver(installed, "other"))


def test_a_pod_that_got_our_name_too_late_for_the_mark_is_refused_in_form_b(
    installed: ControlPlane,
) -> None:
    def refusal() -> str:
        try:
            stored(installed, labels={renaming.LABEL: "volcano"})
        except ApiError as error:
            return str(error)
        return ""

    with installation.marking(installed.api):
        wait_until(lambda: bool(refusal()), timeout_s=installation.POLICY_S, what="it is refused")
        assert (
            "spec.schedulerName: volcano was set by a webhook after pods were marked" in refusal()
        )
        stored(installed, labels={renaming.LABEL: "other"})


def test_nothing_is_changed_for_other_schedulers(installed: ControlPlane) -> None:
    assert "schedulingGates" not in driver(installed, "other")["spec"]
    assert "schedulingGates" not in stored(installed, annotations=GROUP)["spec"]


def test_webhooks_that_gate_are_asked_again_too(installed: ControlPlane) -> None:
    policies = [
        document
        for document in installation.documents(installation.GATE_PODS)
        if document["kind"].endswith("Binding")
    ]
    for binding in policies:
        installed.api.delete(installed.api.resource_of(binding), binding["metadata"]["name"])
    flags = (*admission.with_key_pair(installed), "--gate-pods=true")
    trust = installed.authority.certificate
    try:
        with admission.start(installed, *flags, trust=trust, name="webhooks-names"):
            wait_until(
                lambda: driver(installed)["spec"].get("schedulingGates") == [GATE],
                timeout_s=installation.POLICY_S,
                what="the webhook gates",
            )
    finally:
        for binding in policies:
            installed.api.apply(binding)
        installation.wait_gating(installed.api)
