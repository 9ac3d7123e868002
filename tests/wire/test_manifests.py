"""The shipped YAML is found in a checkout and in a wheel, and is what its functions promise."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from app.wire import manifests

KINDS = {
    "ColocationConfiguration",
    "Command",
    "CronJob",
    "HyperNode",
    "Job",
    "JobFlow",
    "JobTemplate",
    "Numatopology",
    "PodGroup",
    "Queue",
}
FORMS: tuple[manifests.Form, ...] = ("a", "b", "c")


def test_there_is_one_definition_per_kind() -> None:
    documents = manifests.crd_documents()

    assert {document["kind"] for document in documents} == {"CustomResourceDefinition"}
    assert sorted(d["spec"]["names"]["kind"] for d in documents) == sorted(KINDS)


def test_the_stream_holds_the_same_documents() -> None:
    assert list(yaml.safe_load_all(manifests.crd_stream())) == manifests.crd_documents()


def test_documents_are_fresh_at_each_call() -> None:
    manifests.crd_documents()[0].clear()

    assert manifests.crd_documents()[0]["kind"] == "CustomResourceDefinition"


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_a_scheduler_configuration(form: manifests.Form) -> None:
    document = yaml.safe_load(manifests.scheduler_config_text(form))

    assert document["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert document["kind"] == "KubeSchedulerConfiguration"
    assert document == manifests.scheduler_config(form)


def test_a_wheel_carries_its_files_inside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "app"
    folder = package / "data" / "scheduler-config"
    folder.mkdir(parents=True)
    (folder / "form-a.yaml").write_text("kind: KubeSchedulerConfiguration\n", encoding="utf-8")
    monkeypatch.setattr(manifests, "_PACKAGE", package)

    assert manifests.scheduler_config_text("a") == "kind: KubeSchedulerConfiguration\n"


def test_missing_files_are_reported_with_the_places_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "_PACKAGE", tmp_path / "app")

    with pytest.raises(FileNotFoundError, match="manifests is neither in") as caught:
        manifests.crd_documents()

    assert str(tmp_path / "app" / "data") in str(caught.value)
