"""Every manifest and every configuration in the documents is taken as it stands."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.controllers.hypernode.by_document import read_document
from app.service.configuration import policies_of
from app.wire.controller_conf import parse_controller_conf
from tests.clusters.installation import ROOT
from tests.documents.blocks import LANGUAGES, Block, blocks
from tests.sandbox.started import KUBECTL, Started, started

Value = Any
_KUSTOMIZATION: Final = "Kustomization"


def values(block: Block) -> list[Value]:
    """The documents of a block."""
    return [value for value in yaml.safe_load_all(block.text) if value is not None]


def is_object(block: Block) -> bool:
    return all(isinstance(value, dict) and "kind" in value for value in values(block))


def is_kustomization(block: Block) -> bool:
    return values(block)[0].get("kind") == _KUSTOMIZATION if is_object(block) else False


OBJECTS: Final = [b for b in blocks("yaml") if is_object(b) and not is_kustomization(b)]
OVERLAYS: Final = [b for b in blocks("yaml") if is_kustomization(b)]
PIECES: Final = [b for b in blocks("yaml") if not is_object(b)]


def test_every_block_says_what_it_is() -> None:
    assert [
        f"{block}: {block.language}" for block in blocks() if block.language not in LANGUAGES
    ] == []


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    log = tmp_path_factory.mktemp("sandbox") / "log"
    with started(log, "--nodes=2", "--cpu=4") as running:
        running.kubectl("create", "namespace", "pumice-system")
        yield running


def apply(sandbox: Started, *objects: Value) -> None:
    text = yaml.safe_dump_all(objects)
    sandbox.kubectl("apply", "--dry-run=server", "--filename=-", stdin=text)


@pytest.mark.sandbox
@pytest.mark.parametrize("block", OBJECTS, ids=str)
def test_a_manifest_is_accepted(sandbox: Started, block: Block) -> None:
    queues = [value for value in values(block) if value["kind"] == "Queue"]
    for queue in queues:  # those that jobs and other queues of the block name
        sandbox.kubectl("apply", "--filename=-", stdin=queue)
    apply(sandbox, *values(block))
    for value in values(block):
        if value["kind"] == "ConfigMap" and "volcano-controller.conf" in value["data"]:
            assert parse_controller_conf(value["data"]["volcano-controller.conf"])


@pytest.mark.parametrize("block", OVERLAYS, ids=str)
def test_an_overlay_gives_all_of_the_installation_its_image(tmp_path: Path, block: Block) -> None:
    for part in ("manifests", "scheduler-config"):
        shutil.copytree(ROOT / part, tmp_path / "pumice" / part)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(block.text)
    done = subprocess.run(
        [KUBECTL, "kustomize", str(overlay)], capture_output=True, text=True, check=True
    )
    plain = (ROOT / "manifests" / "install.yaml").read_text()
    image = values(block)[0]["images"][0]
    assert image["newName"] != image["name"]
    named = f"image: {image['newName']}:{image['newTag']}"
    assert done.stdout.count(named) == plain.count("image: pumice:0.1.0") > 0


def check_conf(_: Started, value: Value) -> None:
    assert policies_of(yaml.safe_dump({"actions": "allocate"} | value)).conf.warnings == ()


def check_plugins(sandbox: Started, value: Value) -> None:
    check_conf(sandbox, {"tiers": [{"plugins": value}]})


def check_group(sandbox: Started, value: Value) -> None:
    apply(
        sandbox,
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "spec": {"minMember": 1},
            **value,
            "metadata": {"name": "shown", **value.get("metadata", {})},
        },
    )


def check_topologies(_: Started, value: Value) -> None:
    source = {"source": "label", "enabled": True, "config": value}
    text = yaml.safe_dump({"networkTopologyDiscovery": [source]})
    assert parse_controller_conf(text)


def check_extenders(_: Started, value: Value) -> None:
    form = yaml.safe_load((ROOT / "scheduler-config" / "form-b.yaml").read_text())
    ours = form["extenders"][0]
    for each in value:
        assert set(each) <= set(ours)
        for resource in each["managedResources"]:
            assert set(resource) == set(ours["managedResources"][0])


CHECKS: Final[Mapping[str, Callable[[Started, Value], None]]] = {
    "tiers": check_conf,
    "name": check_plugins,
    "spec": check_group,
    "metadata": check_group,
    "networkTopologyTypes": check_topologies,
    "urlPrefix": check_extenders,
}
"""What is done with a piece, by a key that it has."""


@pytest.mark.sandbox
@pytest.mark.parametrize("block", PIECES, ids=str)
def test_a_piece_of_a_manifest_is_accepted(sandbox: Started, block: Block) -> None:
    [value] = values(block)
    keys = value[0] if isinstance(value, list) else value
    [check] = {CHECKS[key] for key in keys if key in CHECKS}
    check(sandbox, value)


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_a_document_of_domains_is_read(block: Block) -> None:
    assert len(read_document(block.text.encode())) == len(json.loads(block.text)["domains"])
