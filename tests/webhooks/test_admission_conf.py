"""The admission configuration file."""

from __future__ import annotations

import pytest

from app.webhooks.admission_conf import ConfError, parse

WHOLE = """
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value: [mng-ns-1, mng-ns-2]
  schedulerName: default-scheduler
  tolerations:
  - {key: mng-taint-1, operator: Exists, effect: NoSchedule}
  affinity: |
    {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}
  labels:
    volcano.sh/nodetype: management
- resourceGroup: cpu
  object:
    key: annotation
    value:
    - "volcano.sh/resource-group: cpu"
    - {kind: cpu}
  labels: {volcano.sh/nodetype: cpu}
- resourceGroup: gpu
"""


def test_a_whole_file_is_read() -> None:
    management, cpu, gpu = parse(WHOLE)
    assert management.namespaces == frozenset({"mng-ns-1", "mng-ns-2"})
    assert management.scheduler_name == "default-scheduler"
    assert management.labels == {"volcano.sh/nodetype": "management"}
    assert management.tolerations[0]["effect"] == "NoSchedule"
    assert "nodeAffinity" in management.affinity
    assert cpu.annotations == (("volcano.sh/resource-group", "cpu"), ("kind", "cpu"))
    assert (gpu.namespaces, gpu.annotations, gpu.name) == (None, None, "gpu")


def test_tabs_separate_as_for_volcano() -> None:
    assert parse(WHOLE.replace("key: namespace", "key:\tnamespace\t# of pods")) == parse(WHOLE)


@pytest.mark.parametrize("text", ["", "{}", "resourceGroups:", "resourceGroups: []"])
def test_an_empty_file_has_no_groups(text: str) -> None:
    assert parse(text) == ()


@pytest.mark.parametrize(
    ("annotations", "taken"),
    [
        ({"kind": "a"}, True),
        ({"volcano.sh/resource-group": "a"}, True),
        ({"kind": "b", "volcano.sh/resource-group": "b"}, False),
        ({}, False),
    ],
)
def test_values_without_a_key_are_annotations_beside_the_usual_one(
    annotations: dict[str, str], taken: bool
) -> None:
    (group,) = parse('resourceGroups: [{resourceGroup: a, object: {value: ["kind: a"]}}]')
    assert group.takes("ns", annotations) is taken


def test_a_group_of_no_namespaces_takes_nobody() -> None:
    (empty,) = parse("resourceGroups: [{resourceGroup: a, object: {key: namespace}}]")
    assert not empty.takes("", {"volcano.sh/resource-group": "a"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "the file: not YAML: "),
        ("1", "the file holds no mapping"),
        ("resourceGroups: 1", "resourceGroups: not a list"),
        ("resourceGroups: [1]", "resourceGroups[0]: not a mapping"),
        ("resourceGroups: [{}]", "resourceGroups[0].resourceGroup: a name is required"),
        ("resourceGroups: [{resourceGroup: a, object: 1}]", ".object: not a mapping"),
        (
            "resourceGroups: [{resourceGroup: a, object: {key: pod}}]",
            ".object.key: pod is neither namespace nor annotation",
        ),
        (
            "resourceGroups: [{resourceGroup: a, object: {key: namespace, value: 1}}]",
            ".object.value: not a list",
        ),
        (
            "resourceGroups: [{resourceGroup: a, object: {key: namespace, value: [1]}}]",
            ".object.value: not a list of names",
        ),
        (
            "resourceGroups: [{resourceGroup: a, object: {key: annotation, value: [x]}}]",
            ".object.value[0]: not a mapping",
        ),
        ("resourceGroups: [{resourceGroup: a, labels: {a: 1}}]", ".labels: keys and values"),
        ("resourceGroups: [{resourceGroup: a, tolerations: [1]}]", ".tolerations: not a list of"),
        ("resourceGroups: [{resourceGroup: a, affinity: x}]", ".affinity: not an affinity"),
        ("resourceGroups: [{resourceGroup: a, affinity: '{'}]", ".affinity: not YAML: "),
        ("resourceGroups: [{resourceGroup: a, schedulerName: 1}]", ".schedulerName: not a text"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfError) as refused:
        parse(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
