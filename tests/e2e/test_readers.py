"""The API server tells whose a reader's token is, and what its owner may ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from app.api.access import Account, Right
from app.kube import config
from app.kube.client import ApiClient
from app.main.adapters.reviews import ClusterReviews
from app.service.ports import WriteError
from tests.clusters.client import Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until

pytestmark = pytest.mark.real

RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def tenant(installed: ControlPlane, namespace: str) -> Iterator[str]:
    """A service account with the ClusterRole ``view`` in its namespace; its token."""
    yield from bound(installed, namespace, "tenant", role="view", kind="RoleBinding")


@pytest.fixture
def operator(installed: ControlPlane, namespace: str) -> Iterator[str]:
    """One with ``pumice-operator`` everywhere; its token."""
    role, kind = "pumice-operator", "ClusterRoleBinding"
    yield from bound(installed, namespace, "operator", role=role, kind=kind)


def bound(
    cluster: ControlPlane, namespace: str, name: str, *, role: str, kind: str
) -> Iterator[str]:
    metadata = {"name": name, "namespace": namespace}
    where = metadata if kind == "RoleBinding" else {"name": f"{namespace}-{name}"}
    binding: Object = {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": where,
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }
    cluster.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    cluster.api.create(binding)
    yield cluster.service_account_token(namespace, name)
    if kind != "RoleBinding":
        cluster.api.delete(cluster.api.resource_of(binding), where["name"])


async def judged(
    cluster: ControlPlane, token: str, *rights: Right, audiences: tuple[str, ...] = ()
) -> tuple[Account | None, list[bool]]:
    """The owner of the token, and which of the rights it has, as the extender's account asks."""
    path = cluster.kubeconfig_for_service_account("pumice-system", "pumice-extender")
    async with ApiClient(config.load(path)) as client:
        reviews = ClusterReviews(client, audiences=audiences)
        owner = await reviews.owner_of(token)
        if owner is None:
            return None, []
        return owner, [await reviews.may(owner, right) for right in rights]


def test_who_may_view_a_namespace_may_ask_about_it_and_of_no_other(
    installed: ControlPlane, namespace: str, tenant: str
) -> None:
    rights = (
        Right("decisions", namespace),
        Right("decisions", namespace, "create"),
        Right("decisions", "kube-system"),
        Right("debug", ""),
    )

    def is_aggregated() -> bool:
        return asyncio.run(judged(installed, tenant, *rights))[1][0]

    wait_until(is_aggregated, timeout_s=30, what="the role view has our rights")
    owner, allowed = asyncio.run(judged(installed, tenant, *rights))
    assert owner is not None
    assert owner.name == f"system:serviceaccount:{namespace}:tenant"
    assert f"system:serviceaccounts:{namespace}" in owner.groups
    assert allowed == [True, True, False, False]


def test_an_operator_may_ask_everything(installed: ControlPlane, operator: str) -> None:
    _, allowed = asyncio.run(judged(installed, operator, Right("debug", "")))
    assert allowed == [True]


def test_a_forged_token_and_one_for_another_audience_have_no_owner(
    installed: ControlPlane, tenant: str
) -> None:
    assert asyncio.run(judged(installed, tenant[:-4] + "AAAA")) == (None, [])
    assert asyncio.run(judged(installed, tenant, audiences=("another",))) == (None, [])


def test_an_account_that_may_not_review_says_so(
    installed: ControlPlane, namespace: str, tenant: str
) -> None:
    path = installed.kubeconfig_for_service_account(namespace, "tenant")

    async def ask() -> None:
        async with ApiClient(config.load(path)) as client:
            await ClusterReviews(client).owner_of(tenant)

    with pytest.raises(WriteError, match="cannot create resource"):
        asyncio.run(ask())
