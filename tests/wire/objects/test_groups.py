"""PodGroups."""

from typing import Any

import pytest

from app.model.parts import SubGroupPolicy
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.topology import (
    GroupTerm,
    NetworkTopology,
    PartTerm,
    SpreadTerm,
    Tier,
    TopologyAffinity,
    TopologyMode,
)
from app.model.workload import Condition, GroupPhase, PodGroup
from app.wire.errors import DecodeError
from app.wire.objects.groups import decode_pod_group
from tests.wire.manifests import encode, metadata


def read(*, meta: Any = None, status: Any = None, **spec: Any) -> PodGroup:
    body = {"metadata": metadata("g", **(meta or {})), "spec": spec, "status": status}
    return decode_pod_group(encode(body))


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (None, None),
        ({}, NetworkTopology()),
        ({"mode": "soft"}, NetworkTopology(TopologyMode.SOFT)),
        (
            {"mode": "hard", "highestTierAllowed": 2},
            NetworkTopology(TopologyMode.HARD, highest_tier=2),
        ),
        (
            {"highestTierName": "rack"},
            NetworkTopology(TopologyMode.HARD, highest_tier_name="rack"),
        ),
    ],
)
def test_a_group_and_its_sub_groups_ask_for_domains(
    said: Any, found: NetworkTopology | None
) -> None:
    parts = [{"name": "s", "matchLabelKeys": ["part"], "networkTopology": said}]
    group = read(networkTopology=said, subGroupPolicy=parts)
    assert group.topology == found
    assert [part.topology for part in group.sub_groups] == ([] if found is None else [found])
    assert group.looks_at_network is (found is not None)


def test_a_topology_of_an_unknown_mode_is_told_of() -> None:
    with pytest.raises(DecodeError, match=r'spec\.networkTopology\.mode: "firm" is not a mode'):
        read(networkTopology={"mode": "firm"})


def test_a_group_has_every_field() -> None:
    found = read(
        meta={
            "labels": {"a": "b"},
            "annotations": {"sla-waiting-time": "1h", "other": "x"},
            "generation": 3,
            "deletionTimestamp": "2026-11-21T04:32:15Z",
            "ownerReferences": [
                {
                    "apiVersion": "batch.volcano.sh/v1alpha1",
                    "kind": "Job",
                    "name": "job-1",
                    "uid": "u",
                    "controller": True,
                }
            ],
        },
        minMember=3,
        minTaskMember={"ps": 1, "worker": 2},
        queue="test",
        priorityClassName="high",
        minResources={"cpu": "3", "memory": "1Gi"},
        status={
            "phase": "Inqueue",
            "running": 1,
            "succeeded": 2,
            "failed": 3,
            "conditions": [
                {
                    "type": "Unschedulable",
                    "status": "True",
                    "reason": "NotEnoughResources",
                    "message": "2/3 tasks",
                    "transitionID": "7",
                    "lastTransitionTime": "2026-11-21T04:32:15Z",
                },
                {"type": "Scheduled", "status": "False", "reason": None},
            ],
        },
    )
    assert (found.key, found.uid, found.created) == ("default/g", "uid-g", 1795235535.0)
    assert (found.min_member, found.role_minimum) == (3, {"ps": 1, "worker": 2})
    assert (found.queue, found.priority_class) == ("test", "high")
    assert found.min_resources == (("cpu", 3000), ("memory", 1 << 30))
    assert (found.labels, found.annotations) == ({"a": "b"}, {"sla-waiting-time": "1h"})
    assert (found.phase, found.running, found.succeeded, found.failed) == (
        GroupPhase.INQUEUE,
        1,
        2,
        3,
    )
    assert found.conditions == (
        Condition(
            "Unschedulable", "True", "NotEnoughResources", "2/3 tasks", "7", "2026-11-21T04:32:15Z"
        ),
        Condition("Scheduled", "False"),
    )
    assert (found.deleting, found.generation) == (True, 3)
    assert (found.owner_kind, found.owner_uid) == ("Job", "u")


@pytest.mark.parametrize(
    "spec",
    [{}, dict.fromkeys(["minMember", "minTaskMember", "queue", "minResources"]), {"queue": ""}],
)
def test_a_bare_group_is_in_the_default_queue_and_new(spec: dict[str, Any]) -> None:
    found = read(**spec)
    assert (found.queue, found.phase, found.min_member) == ("default", GroupPhase.NEW, 0)
    assert (found.min_resources, found.role_minimum, found.conditions) == (None, {}, ())
    assert found.min_limits == ()
    assert (found.owner_kind, found.deleting) == ("", False)


def test_what_parts_a_group_is_read() -> None:
    found = read(
        subGroupPolicy=[
            {
                "name": "worker",
                "labelSelector": {"matchLabels": {"role": "worker"}},
                "matchLabelKeys": ["partition"],
                "subGroupSize": 4,
                "minSubGroups": 2,
                "networkTopology": {"mode": "hard"},
            },
            {"name": "rest", "matchLabelKeys": None, "labelSelector": None},
        ]
    )
    workers = LabelSelector((Requirement("role", Operator.IN, ("worker",)),))
    assert found.sub_groups == (
        SubGroupPolicy(
            "worker",
            keys=("partition",),
            selector=workers,
            size=4,
            least=2,
            topology=NetworkTopology(),
        ),
        SubGroupPolicy("rest"),
    )


@pytest.mark.parametrize("policies", [None, [], [{"name": "a", "subGroupSize": 1}]])
def test_policies_that_ask_for_single_members_part_nothing(policies: Any) -> None:
    assert read(subGroupPolicy=policies).sub_groups == ()


def test_a_selector_that_cannot_be_read_is_named() -> None:
    expression = {"key": "a", "operator": "Near"}
    policy = {"labelSelector": {"matchExpressions": [expression]}}
    with pytest.raises(DecodeError, match=r"spec\.subGroupPolicy\[1\]\.labelSelector"):
        read(subGroupPolicy=[{}, policy])


def test_minimum_resources_that_are_empty_are_not_unset() -> None:
    assert read(minResources={}).min_resources == ()


def test_what_only_quotas_count_is_no_part_of_the_minimum() -> None:
    """As Volcano's controllers write it (all that the quotas of a namespace would count)."""
    of_nodes = {
        "cpu": "1",
        "memory": "2",
        "ephemeral-storage": "3",
        "hugepages-2Mi": "4",
        "pods": "5",
        "example.com/gpu": "6",
        "kubernetes.io/batch-cpu": "7",
        "attachable-volumes-csi-a": "8",
    }
    of_quotas = dict.fromkeys(
        [
            "count/pods",
            "limits.cpu",
            "limits.memory",
            "requests.cpu",
            "requests.example.com/gpu",
            "requests.hugepages-2Mi",
            "requests.storage",
            "services",
        ],
        "9",
    )
    found = read(minResources=of_nodes | of_quotas)
    assert dict(found.min_resources or ()).keys() == of_nodes.keys()
    assert found.min_limits == (("limits.cpu", 9000), ("limits.memory", 9))
    assert read(minResources=of_quotas).min_resources == ()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"minMember": "3"}, "spec.minMember: Expected `int | null`, got `str`"),
        ({"minResources": {"cpu": "a"}}, 'spec.minResources.cpu: "a" is not a quantity'),
        ({"status": {"phase": "Odd"}}, 'status.phase: "Odd" is not a phase'),
        ({"meta": {"uid": ""}}, "metadata.uid: is missing"),
    ],
)
def test_a_group_that_cannot_be_read_names_the_field(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read(**parts)
    assert str(caught.value) == message


WEB = {"matchLabels": {"app": "web"}}
OF_WEB = LabelSelector((Requirement("app", Operator.IN, ("web",)),))


def test_an_affinity_has_all_its_terms() -> None:
    said = {
        "podGroupAffinity": {
            "preferred": [{"weight": 7, "podGroupSelector": WEB, "topologyTier": 2}],
        },
        "podGroupAntiAffinity": {
            "required": [
                {"podGroupSelector": WEB, "namespaceSelector": {}, "topologyTierName": "rack"}
            ],
        },
        "subGroupAffinity": {"required": [{"subGroups": ["a", "b"], "topologyTier": 2}]},
        "subGroupAntiAffinity": {
            "required": [{"subGroups": ["a"], "topologyTier": 0}],
            "preferred": [{"subGroups": ["a", "b"], "weight": 100, "topologyTier": 1}],
        },
        "memberSpread": {
            "required": [{"minDomains": 2, "maxDomains": 3, "topologyTier": 1}],
            "preferred": [{"maxDomains": 2, "weight": 1, "topologyTierName": "row"}],
        },
    }
    assert read(topologyAffinity=said).affinity == TopologyAffinity(
        groups_near=(GroupTerm(OF_WEB, Tier(2), weight=7),),
        groups_apart=(GroupTerm(OF_WEB, Tier(name="rack"), LabelSelector()),),
        parts_near=(PartTerm(("a", "b"), Tier(2)),),
        parts_apart=(PartTerm(("a",), Tier(0)), PartTerm(("a", "b"), Tier(1), 100)),
        spread=(SpreadTerm(Tier(1), 2, 3), SpreadTerm(Tier(name="row"), 1, 2, 1)),
    )


@pytest.mark.parametrize(
    "said", [None, {}, {"podGroupAffinity": {}}, {"memberSpread": {"required": []}}]
)
def test_an_affinity_without_terms_asks_for_nothing(said: Any) -> None:
    assert read(topologyAffinity=said).affinity is None


@pytest.mark.parametrize(
    ("kind", "block", "message"),
    [
        (
            "podGroupAffinity",
            {"required": [{"topologyTier": 1}]},
            r"spec\.topologyAffinity\.podGroupAffinity\.required\[0\]\.podGroupSelector: a term "
            "names groups",
        ),
        (
            "podGroupAffinity",
            {"required": [{"podGroupSelector": WEB}]},
            r"podGroupAffinity\.required\[0\]: a term names one tier",
        ),
        (
            "subGroupAffinity",
            {"preferred": [{"subGroups": ["a"], "topologyTier": 1, "topologyTierName": "a"}]},
            r"preferred\[0\]\.weight: a preferred term has a weight of 1 to 100",
        ),
        (
            "subGroupAffinity",
            {"required": [{"subGroups": [], "topologyTier": 1}]},
            r"required\[0\]\.subGroups: a term names sub-groups",
        ),
        (
            "memberSpread",
            {"required": [{"weight": 1, "minDomains": 2, "topologyTier": 1}]},
            r"required\[0\]\.weight: a required term has no weight",
        ),
        (
            "memberSpread",
            {"required": [{"topologyTier": 1}]},
            r"required\[0\]: a term has minDomains, maxDomains or both",
        ),
        (
            "memberSpread",
            {"required": [{"minDomains": 3, "maxDomains": 2, "topologyTier": 1}]},
            r"required\[0\]: minDomains 3 is more than maxDomains 2",
        ),
    ],
)
def test_an_affinity_that_means_nothing_is_told_of(kind: str, block: Any, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        read(topologyAffinity={kind: block})


def test_policies_that_a_term_names_part_the_group() -> None:
    parts = [{"name": "a", "matchLabelKeys": ["part"]}]
    term = {"subGroups": ["a"], "topologyTier": 1}
    group = read(
        subGroupPolicy=parts, topologyAffinity={"subGroupAntiAffinity": {"required": [term]}}
    )
    assert group.sub_groups == (SubGroupPolicy("a", keys=("part",)),)
    assert read(subGroupPolicy=parts).sub_groups == ()
