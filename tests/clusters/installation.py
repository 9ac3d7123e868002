"""What an operator applies: `manifests/install.yaml` on the real API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.clusters import workloads
from tests.clusters.client import ApiClient, ApiError, Object
from tests.clusters.processes import wait_until
from tests.clusters.resources import CUSTOM_RESOURCE_DEFINITIONS

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "manifests" / "install.yaml"
MARK_PODS = ROOT / "manifests" / "policy" / "mark-pods.yaml"
GATE_PODS = ROOT / "manifests" / "policy" / "gate-pods.yaml"
MARK = "pumice.sh/gang"
POLICY_S = 30


def documents(path: Path) -> list[Object]:
    """The manifests in a file."""
    return [document for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if document]


def apply(api: ApiClient, path: Path) -> list[Object]:
    """Apply a file and return what the API server stored.

    A Deployment gets no replicas: its pods would only wait, as there is no kubelet and no default
    scheduler; the programs are started by the tests.
    """
    stored = []
    for document in documents(path):
        if document["kind"] == "Deployment":
            document["spec"]["replicas"] = 0
        stored.append(api.apply(document))
    return stored


def wait_established(api: ApiClient) -> None:
    """Wait until every custom kind is served."""
    api.until(
        CUSTOM_RESOURCE_DEFINITIONS,
        lambda kinds: bool(kinds) and all(_is_established(kind) for kind in kinds),
        what="all established",
    )


def _is_established(kind: Object) -> bool:
    conditions: list[dict[str, Any]] = kind.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def dry_run(api: ApiClient, pod: Object) -> Object:
    """The pod as the API server would store it."""
    path = "/api/v1/namespaces/default/pods"
    stored: Object = api.request("POST", path, body=pod, params={"dryRun": "All"})
    return stored


def wait_gating(api: ApiClient) -> None:
    """Wait until the policy puts our gate on new pods (the API server takes seconds for that)."""

    def is_gated() -> bool:
        try:
            stored = dry_run(api, workloads.pod("probe"))
        except ApiError:
            return False
        return {"name": workloads.GATE} in stored["spec"].get("schedulingGates", [])

    wait_until(is_gated, timeout_s=POLICY_S, what="pods of our scheduler name are gated")


@contextmanager
def marking(api: ApiClient) -> Iterator[None]:
    """The policies of form B: our pods are marked, and those without the mark refused.

    The API server takes each policy up by itself, and drops it so. On entry pods are marked; after
    the end they are accepted without the mark.
    """

    def accepts(*, marked: bool) -> bool:
        try:
            return is_marked(dry_run(api, workloads.pod("probe"))) == marked
        except ApiError:
            return False

    policies = apply(api, MARK_PODS)
    try:
        wait_until(lambda: accepts(marked=True), timeout_s=POLICY_S, what="pods are marked")
        yield
    finally:
        for policy in policies:
            api.delete(api.resource_of(policy), policy["metadata"]["name"])
        wait_until(lambda: accepts(marked=False), timeout_s=POLICY_S, what="pods are not marked")


def is_marked(pod: Object) -> bool:
    """Whether the first container asks for what form B tells our pods by."""
    return MARK in pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
