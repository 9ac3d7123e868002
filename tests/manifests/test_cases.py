"""The cases that suites with an API server run are well-formed and leave no kind out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.wire import manifests

CASES: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "cases.yaml").read_text(encoding="utf-8")
)
KINDS = {
    (f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"])
    for spec in (document["spec"] for document in manifests.crd_documents())
}


def kind_of(case: dict[str, Any]) -> tuple[str, str]:
    return case["object"]["apiVersion"], case["object"]["kind"]


def test_the_sections_are_those_that_suites_run() -> None:
    assert set(CASES) == {"objects", "pods", "form_b_pods"}


@pytest.mark.parametrize("case", CASES["objects"], ids=lambda case: case["name"])
def test_an_object_names_a_kind_of_ours_and_its_outcome(case: dict[str, Any]) -> None:
    assert kind_of(case) in KINDS
    assert set(case) - {"stored", "message"} == {"name", "accepted", "object"}
    assert isinstance(case["accepted"], bool)
    assert ("message" in case) is not case["accepted"]
    assert case["accepted"] or "stored" not in case


@pytest.mark.parametrize("section", ["pods", "form_b_pods"])
def test_a_pod_says_whether_a_policy_changes_it(section: str) -> None:
    verdict = {"pods": "gated", "form_b_pods": "marked"}[section]

    for case in CASES[section]:
        assert kind_of(case) == ("v1", "Pod")
        assert isinstance(case[verdict], bool)
    assert {case[verdict] for case in CASES[section]} == {True, False}


@pytest.mark.parametrize("kind", sorted(KINDS), ids=lambda kind: kind[1])
def test_every_kind_has_an_accepted_and_a_refused_object(kind: tuple[str, str]) -> None:
    verdicts = {case["accepted"] for case in CASES["objects"] if kind_of(case) == kind}

    assert verdicts == {True, False}


def test_no_two_cases_of_a_section_share_a_name_or_an_object() -> None:
    for cases in CASES.values():
        names = Counter(case["name"] for case in cases)
        objects = Counter((*kind_of(case), case["object"]["metadata"]["name"]) for case in cases)
        assert [name for name, count in names.items() if count > 1] == []
        assert [key for key, count in objects.items() if count > 1] == []
