"""What the API server accepts once `manifests/` is applied: schemas, defaults, policies."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clusters import installation
from tests.clusters.client import ApiError, Object
from tests.clusters.controlplane import ControlPlane

pytestmark = pytest.mark.real

Case = dict[str, Any]
CASES: dict[str, list[Case]] = yaml.safe_load(
    (Path(__file__).parents[1] / "manifests" / "cases.yaml").read_text(encoding="utf-8")
)
GATE = {"name": "pumice.sh/plan"}


def create(installed: ControlPlane, item: Object) -> Object:
    """The object as the API server would store it."""
    resource = installed.api.resource_of(item)
    path = resource.path(namespace="default")
    stored: Object = installed.api.request(
        "POST", path, body=copy.deepcopy(item), params={"dryRun": "All"}
    )
    return stored


def assert_part(part: Any, whole: Any, where: str = "") -> None:
    """Every field of `part` is in `whole`, with that value."""
    if isinstance(part, dict):
        assert isinstance(whole, dict), where
        for key, value in part.items():
            assert key in whole, f"{where}.{key}"
            assert_part(value, whole[key], f"{where}.{key}")
    elif isinstance(part, list):
        assert len(part) == len(whole), where
        for number, value in enumerate(part):
            assert_part(value, whole[number], f"{where}[{number}]")
    else:
        assert part == whole, where


@pytest.mark.parametrize("case", CASES["objects"], ids=lambda case: case["name"])
def test_an_object_is_accepted_with_defaults_or_refused_with_a_reason(
    installed: ControlPlane, case: Case
) -> None:
    if case["accepted"]:
        assert_part(case.get("stored", {}), create(installed, case["object"]))
        return
    with pytest.raises(ApiError) as refused:
        create(installed, case["object"])
    assert refused.value.code in {400, 422}
    assert case["message"] in str(refused.value)


@pytest.mark.parametrize("case", CASES["pods"], ids=lambda case: case["name"])
def test_a_pod_is_gated_when_it_is_ours_and_has_no_place(
    installed: ControlPlane, case: Case
) -> None:
    gates = create(installed, case["object"])["spec"].get("schedulingGates", [])
    assert gates.count(GATE) == case["gated"]


@pytest.fixture(scope="module")
def marked(installed: ControlPlane) -> dict[str, bool]:
    """Which pods of form B's cases get the mark."""
    with installation.marking(installed.api):
        return {
            case["name"]: installation.is_marked(create(installed, case["object"]))
            for case in CASES["form_b_pods"]
        }


@pytest.mark.parametrize("case", CASES["form_b_pods"], ids=lambda case: case["name"])
def test_a_pod_of_form_b_is_marked_when_it_is_ours(marked: dict[str, bool], case: Case) -> None:
    assert marked[case["name"]] == case["marked"]


def test_applying_again_changes_nothing(installed: ControlPlane) -> None:
    stored = installation.apply(installed.api, installation.INSTALL)
    again = installation.apply(installed.api, installation.INSTALL)
    versions = [item["metadata"]["resourceVersion"] for item in stored]
    assert versions == [item["metadata"]["resourceVersion"] for item in again]
