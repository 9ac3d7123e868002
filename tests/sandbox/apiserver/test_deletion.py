"""Deletion: grace, finalizers, owners, namespaces."""

from __future__ import annotations

import pytest

from app.sandbox.apiserver.deletion import DeleteOptions
from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.server import ApiServer
from app.wire.documents import Document
from tests.sandbox.documents import at, bind_pod, make_server, pod, stored_pod, widget

WIDGETS = "example.com/widgets"


def owned(name: str, owner: Document, **more: object) -> Document:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }
    return pod(name, metadata={"ownerReferences": [reference]})


def exists(server: ApiServer, storage: str, name: str) -> bool:
    return server.store.get(storage, at(name)) is not None


def test_a_pod_without_a_node_goes_at_once() -> None:
    server = make_server(pod())
    server.delete("/pods", at("p"))
    assert not exists(server, "/pods", "p")


def test_a_bound_pod_stays_for_its_grace_period() -> None:
    server = make_server(pod())
    bind_pod(server, "p", "n1")
    server.delete("/pods", at("p"))
    metadata = stored_pod(server, "p")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"]
    server.delete("/pods", at("p"), DeleteOptions(grace_seconds=0))
    assert not exists(server, "/pods", "p")


@pytest.mark.parametrize("seconds", [2**31, 10**12, 2**63 - 1])
def test_a_bound_pod_stays_however_long_its_grace_period_is(seconds: int) -> None:
    server = make_server(pod(terminationGracePeriodSeconds=seconds))
    bind_pod(server, "p", "n1")
    server.delete("/pods", at("p"))
    metadata = stored_pod(server, "p")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == seconds
    assert metadata["deletionTimestamp"]


def test_a_precondition_on_the_uid_protects_a_namesake() -> None:
    server = make_server(pod())
    with pytest.raises(ApiError, match=r"the UID in the precondition \(other\) does not match"):
        server.delete("/pods", at("p"), DeleteOptions(uid="other"))


def test_an_object_with_finalizers_waits_for_them() -> None:
    server = make_server()
    document = widget()
    document["metadata"]["finalizers"] = ["example.com/hold"]
    server.create(document)
    server.delete(WIDGETS, at("w"))
    assert exists(server, WIDGETS, "w")
    server.patch(WIDGETS, at("w"), {"metadata": {"finalizers": None}})
    assert not exists(server, WIDGETS, "w")


def test_dependents_go_with_their_owner() -> None:
    server = make_server()
    owner = server.create(widget())
    server.create(owned("a", owner))
    server.create(owned("b", owner))
    server.delete(WIDGETS, at("w"))
    assert not exists(server, "/pods", "a")
    assert not exists(server, "/pods", "b")


def test_an_owner_stays_when_its_last_dependent_goes() -> None:
    server = make_server()
    owner = server.create(widget())
    server.create(owned("a", owner, blockOwnerDeletion=True))
    server.delete("/pods", at("a"))
    assert not exists(server, "/pods", "a")
    assert exists(server, WIDGETS, owner["metadata"]["name"])


def test_a_dependent_with_another_owner_stays() -> None:
    server = make_server()
    first, second = server.create(widget("w1")), server.create(widget("w2"))
    document = owned("a", first)
    document["metadata"]["ownerReferences"] += owned("a", second)["metadata"]["ownerReferences"]
    server.create(document)
    server.delete(WIDGETS, at("w1"))
    assert exists(server, "/pods", "a")
    server.delete(WIDGETS, at("w2"))
    assert not exists(server, "/pods", "a")


def test_orphaned_dependents_stay_and_lose_their_reference() -> None:
    server = make_server()
    server.create(owned("a", server.create(widget())))
    server.delete(WIDGETS, at("w"), DeleteOptions(propagation="Orphan"))
    assert "ownerReferences" not in stored_pod(server, "a")["metadata"]


def test_in_the_foreground_the_owner_goes_last() -> None:
    server = make_server()
    owner = server.create(widget())
    server.create(owned("a", owner))
    bind_pod(server, "a", "n1")
    server.delete(WIDGETS, at("w"), DeleteOptions(propagation="Foreground"))
    assert exists(server, WIDGETS, "w")
    assert stored_pod(server, "a")["metadata"]["deletionTimestamp"]
    server.delete("/pods", at("a"), DeleteOptions(grace_seconds=0))
    assert not exists(server, WIDGETS, "w")


def test_an_object_whose_owner_never_was_is_collected() -> None:
    server = make_server()
    ghost = {**widget(), "metadata": {"name": "w", "uid": "gone"}}
    server.create(owned("a", ghost))
    assert not exists(server, "/pods", "a")


def test_a_namespace_goes_with_its_content() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    server = make_server(namespace, pod(metadata={"namespace": "n"}))
    server.delete("/namespaces", at("n", ""))
    assert server.store.get("/pods", at("p", "n")) is None
    assert server.store.get("/namespaces", at("n", "")) is None


def test_nothing_is_created_in_a_namespace_that_is_going() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    server = make_server(namespace, pod(metadata={"namespace": "n"}))
    bind_pod(server, "p", "n1", namespace="n")
    server.delete("/namespaces", at("n", ""))
    with pytest.raises(ApiError, match="because it is being terminated"):
        server.create(pod("late", metadata={"namespace": "n"}))
    server.delete("/pods", at("p", "n"), DeleteOptions(grace_seconds=0))
    assert server.store.get("/namespaces", at("n", "")) is None


def test_objects_go_with_their_definition() -> None:
    server = make_server(widget())
    server.delete("apiextensions.k8s.io/customresourcedefinitions", at("widgets.example.com", ""))
    assert not exists(server, WIDGETS, "w")
    with pytest.raises(LookupError):
        server.create(widget())
