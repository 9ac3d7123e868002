"""Create, replace, patch: revisions, generations, admission, custom kinds."""

from __future__ import annotations

import pytest

from app.sandbox.apiserver.admission import AdmissionRequest, Denied
from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.operations import WriteOptions
from app.sandbox.apiserver.patches import APPLY_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import SimClock
from app.wire.copying import copied
from app.wire.documents import Document
from tests.sandbox.documents import WIDGET_CRD, at, make_server, pod, widget

WIDGETS = "example.com/widgets"


def test_a_name_is_generated() -> None:
    document = pod(metadata={"generateName": "job-"})
    del document["metadata"]["name"]
    name = make_server().create(document)["metadata"]["name"]
    assert name.startswith("job-")
    assert len(name) == 9


def test_a_second_object_of_the_same_name_is_refused() -> None:
    server = make_server(widget())
    with pytest.raises(ApiError, match=r'widgets\.example\.com "w" already exists'):
        server.create(widget())


def test_a_replace_with_an_old_revision_is_a_conflict() -> None:
    server = make_server()
    old = copied(server.create(widget()))
    server.patch(WIDGETS, at("w"), {"spec": {"size": 2}})
    with pytest.raises(ApiError) as caught:
        server.operations.replace(server.target(WIDGETS, at("w")), old)
    assert caught.value.code == 409
    assert "the object has been modified" in caught.value.message


def test_a_custom_object_is_not_replaced_without_a_revision() -> None:
    server = make_server(widget())
    with pytest.raises(ApiError, match="must be specified for an update"):
        server.operations.replace(server.target(WIDGETS, at("w")), widget())


def test_the_generation_counts_changes_of_the_spec_only() -> None:
    server = make_server(widget())
    server.patch(WIDGETS, at("w"), {"metadata": {"labels": {"a": "b"}}})
    server.patch(WIDGETS, at("w"), {"status": {"phase": "x"}}, subresource="status")
    found = server.patch(WIDGETS, at("w"), {"spec": {"size": 3}})
    assert found["metadata"]["generation"] == 2
    assert found["status"] == {"phase": "x"}


def test_an_unknown_field_is_pruned_warned_about_or_refused() -> None:
    server = make_server()
    target = server.target(WIDGETS, at(""))
    odd = widget(spec={"size": 1, "odd": 1})
    written = server.operations.create(target, odd)
    assert written.warnings == ('unknown field "spec.odd"',)
    assert "odd" not in written.document["spec"]
    odd["metadata"]["name"] = "w2"
    with pytest.raises(ApiError, match=r'strict decoding error: unknown field "spec\.odd"'):
        server.operations.create(target, odd, options=WriteOptions(field_validation="Strict"))


def test_a_dry_run_leaves_nothing() -> None:
    server = make_server()
    server.operations.create(
        server.target(WIDGETS, at("")), widget(), options=WriteOptions(dry_run=True)
    )
    assert server.store.get(WIDGETS, at("w")) is None


def test_server_side_apply_creates_then_merges() -> None:
    server = make_server()
    target = server.target(WIDGETS, at("w"))
    created = server.operations.patch(target, widget(), content_type=APPLY_PATCH)
    assert created.created
    more = widget(spec={"colour": "blue"})
    merged = server.operations.patch(target, more, content_type=APPLY_PATCH)
    assert merged.document["spec"] == {"size": 1, "colour": "blue"}


def test_a_custom_kind_takes_no_strategic_patch() -> None:
    server = make_server(widget())
    with pytest.raises(ApiError) as caught:
        server.operations.patch(server.target(WIDGETS, at("w")), {}, content_type=STRATEGIC_PATCH)
    assert caught.value.code == 415


def test_a_missing_object_is_not_patched() -> None:
    server = make_server()
    with pytest.raises(ApiError, match=r'widgets\.example\.com "w" not found'):
        server.operations.patch(server.target(WIDGETS, at("w")), {}, content_type=MERGE_PATCH)


def test_a_missing_namespace_is_named() -> None:
    document = widget()
    document["metadata"]["namespace"] = "nope"
    with pytest.raises(ApiError, match='namespaces "nope" not found'):
        make_server().create(document)


def label_pods(request: AdmissionRequest) -> Document | None:
    if request.kind != "Pod" or request.operation != "CREATE" or request.object is None:
        return None
    changed = copied(request.object)
    changed["metadata"]["labels"] = {"seen": request.namespace}
    return dict(changed)


def deny_deletes(request: AdmissionRequest) -> Denied | None:
    return Denied("no deletes today") if request.operation == "DELETE" else None


def test_admission_changes_and_denies() -> None:
    server = ApiServer(clock=SimClock(), crds=[WIDGET_CRD], admission=[label_pods, deny_deletes])
    assert server.create(pod())["metadata"]["labels"] == {"seen": "default"}
    with pytest.raises(ApiError, match="no deletes today") as caught:
        server.delete("/pods", at("p"))
    assert caught.value.code == 403


def test_a_kind_without_status_subresource_writes_its_status_with_a_plain_update() -> None:
    crd = copied(WIDGET_CRD)
    del crd["spec"]["versions"][0]["subresources"]
    server = ApiServer(clock=SimClock(), crds=[crd])
    server.create(widget())
    assert server.patch(WIDGETS, at("w"), {"status": {"phase": "x"}})["status"] == {"phase": "x"}


def test_a_replace_must_name_the_object_of_the_path() -> None:
    server = make_server(widget())
    with pytest.raises(ApiError) as caught:
        server.operations.replace(server.target(WIDGETS, at("w")), widget("v"))
    assert caught.value.code == 400
    assert caught.value.message == (
        "the name of the object (v) does not match the name on the URL (w)"
    )


@pytest.mark.parametrize(
    "patch", [{"immutable": None}, {"data": {"a": "2"}}, {"binaryData": {"b": "MQ=="}}], ids=str
)
def test_what_is_immutable_stays_so(patch: Document) -> None:
    sure: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sure"},
        "immutable": True,
        "data": {"a": "1"},
    }
    server = make_server(sure)
    with pytest.raises(ApiError, match="field is immutable when `immutable` is set") as caught:
        server.patch("/configmaps", at("sure"), patch)
    assert caught.value.code == 422
