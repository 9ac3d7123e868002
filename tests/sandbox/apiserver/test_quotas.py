"""ResourceQuotas of the embedded API server: what is counted, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import WallClock
from app.wire.documents import Document
from tests.sandbox.documents import WIDGET_CRD, at, cpu, pod, widget

FULL = r"forbidden: exceeded quota: q, requested: {0}=1, used: {0}=1, limited: {0}=1"


@pytest.fixture
def server() -> ApiServer:
    return ApiServer(clock=WallClock(), crds=[WIDGET_CRD])


def quota(hard: dict[str, str], name: str = "q", **spec: object) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": hard, **spec},
    }


def by_class(operator: str, *values: str) -> Document:
    about = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [about]}}


def secret(name: str) -> Document:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def used(server: ApiServer, name: str = "q") -> Document:
    found = server.store.get("/resourcequotas", at(name))
    assert found is not None
    status: Document = found["status"]["used"]
    return status


def test_a_pod_is_counted_until_it_ends(server: ApiServer) -> None:
    server.create(quota({"pods": "2", "count/pods": "2", "requests.cpu": "3", "cpu": "3"}))
    server.create(pod("one", resources=cpu("1500m")))
    counted = {"pods": "1", "count/pods": "1", "requests.cpu": "1500m", "cpu": "1500m"}
    assert used(server) == counted
    server.patch("/pods", at("one"), {"status": {"phase": "Succeeded"}}, subresource="status")
    assert used(server) == {"pods": "0", "count/pods": "1", "requests.cpu": "0", "cpu": "0"}
    server.delete("/pods", at("one"))
    assert used(server)["count/pods"] == "0"


def test_a_pod_is_counted_by_what_it_says_for_the_whole_of_it(server: ApiServer) -> None:
    server.create(quota({"requests.cpu": "3", "limits.cpu": "4"}))
    document = pod("one")
    document["spec"]["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}
    server.create(document)
    assert used(server) == {"requests.cpu": "2", "limits.cpu": "3"}


def test_what_exceeds_a_quota_is_refused_with_its_numbers(server: ApiServer) -> None:
    server.create(quota({"requests.cpu": "2", "pods": "5"}))
    server.create(pod("one", resources=cpu("1")))
    why = (
        'pods "two" is forbidden: exceeded quota: q, requested: requests.cpu=1500m,'
        " used: requests.cpu=1, limited: requests.cpu=2"
    )
    with pytest.raises(ApiError, match=f"^{why}$") as refused:
        server.create(pod("two", resources=cpu("1500m")))
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
    assert used(server) == {"requests.cpu": "1", "pods": "1"}


def test_a_container_has_to_say_what_a_quota_limits(server: ApiServer) -> None:
    server.create(quota({"requests.cpu": "2", "limits.memory": "1Gi", "requests.x/y": "1"}))
    why = "failed quota: q: must specify limits.memory for: c; requests.cpu for: c$"
    with pytest.raises(ApiError, match=why):
        server.create(pod("one"))


@pytest.mark.parametrize(
    ("line", "of"),
    [
        ("count/widgets.example.com", widget),
        ("count/pods", pod),
        ("pods", pod),
        ("count/secrets", secret),
        ("secrets", secret),
    ],
    ids=["widgets", "count/pods", "pods", "count/secrets", "secrets"],
)
def test_objects_are_counted(server: ApiServer, line: str, of: Callable[[str], Document]) -> None:
    server.create(quota({line: "1"}))
    server.create(of("one"))
    with pytest.raises(ApiError, match=FULL.format(line)):
        server.create(of("two"))


def test_a_container_that_runs_first_has_to_say_it_too(server: ApiServer) -> None:
    server.create(quota({"requests.cpu": "2"}))
    first = [{"name": "first", "image": "busybox"}]
    with pytest.raises(ApiError, match=r"must specify requests\.cpu for: first$"):
        server.create(pod("one", resources=cpu("1"), initContainers=first))


def test_what_nobody_counts_holds_nobody_back(server: ApiServer) -> None:
    server.create(quota({"requests.storage": "0", "services.nodeports": "0", "pods": "1"}))
    assert used(server) == {"pods": "0"}
    server.create(pod("one"))
    assert used(server) == {"pods": "1"}


def test_a_pod_that_a_quota_is_not_about_need_not_say_anything(server: ApiServer) -> None:
    server.create(quota({"requests.cpu": "1"}, scopes=["Terminating"]))
    server.create(pod("one"))


def test_what_is_taken_is_counted_anew_with_the_lines_of_a_quota(server: ApiServer) -> None:
    server.create(secret("one"))
    server.create(quota({"pods": "1"}))
    server.patch("/resourcequotas", at("q"), {"spec": {"hard": {"pods": None, "secrets": "2"}}})
    assert used(server) == {"secrets": "1"}
    server.delete("/resourcequotas", at("q"))
    server.create(secret("two"))
    server.create(secret("three"))


def test_a_larger_quota_takes_effect_at_once(server: ApiServer) -> None:
    server.create(pod("one"))
    server.create(quota({"pods": "1"}))
    with pytest.raises(ApiError, match=FULL.format("pods")):
        server.create(pod("two"))
    server.patch("/resourcequotas", at("q"), {"spec": {"hard": {"pods": "2"}}})
    server.create(pod("two"))


def test_other_namespaces_are_not_limited(server: ApiServer) -> None:
    server.create(quota({"pods": "0"}))
    server.create(pod("one", metadata={"namespace": "kube-public"}))


@pytest.mark.parametrize(
    ("about", "counted"),
    [
        ({"scopes": ["Terminating"]}, ["short"]),
        ({"scopes": ["NotTerminating"]}, ["plain", "asking", "high"]),
        ({"scopes": ["BestEffort"]}, ["plain", "short", "high"]),
        ({"scopes": ["NotBestEffort", "NotTerminating"]}, ["asking"]),
        (by_class("In", "system-node-critical"), ["high"]),
        (by_class("NotIn", "system-node-critical"), ["plain", "short", "asking"]),
        (by_class("Exists"), ["high"]),
        (by_class("DoesNotExist"), ["plain", "short", "asking"]),
    ],
    ids=str,
)
def test_a_quota_with_scopes_counts_such_pods_only(
    server: ApiServer, about: Document, counted: list[str]
) -> None:
    server.create(quota({"pods": "9"}, **about))
    found = []
    for each in (
        pod("plain"),
        pod("short", activeDeadlineSeconds=60),
        pod("asking", resources=cpu("1")),
        pod("high", priorityClassName="system-node-critical"),
    ):
        before = used(server)["pods"]
        server.create(each)
        if used(server)["pods"] != before:
            found.append(each["metadata"]["name"])
    assert found == counted


@pytest.mark.parametrize(
    ("hard", "why"),
    [
        ({"foo": "1"}, "must be a standard resource for quota"),
        ({"pods": "-1"}, "must be greater than or equal to 0"),
        ({"pods": "1.5"}, 'Invalid value: "1500m": must be an integer'),
        ({"pods": "many"}, "quantities must match the regular expression"),
    ],
    ids=str,
)
def test_amounts_that_cannot_be_are_refused(
    server: ApiServer, hard: dict[str, str], why: str
) -> None:
    with pytest.raises(ApiError, match=why):
        server.create(quota(hard))
