"""What the PodGroup of a plain pod says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.podgroup.group import difference, group_for, min_member, wants_group
from app.wire.errors import DecodeError
from app.wire.unstructured import Object, annotations, labels, metadata, name, spec
from tests.controllers.quota_names import least

OWNER_REFERENCE = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "rs",
    "uid": "rs-uid",
    "controller": True,
}
QUEUE = "scheduling.volcano.sh/queue-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
GROUP = "scheduling.k8s.io/group-name"
OURS = frozenset({"volcano"})


def pod(*, owned: bool = False, pod_spec: Any = None, **parts: Any) -> Object:
    given = {"name": "p", "namespace": "ns", "uid": "pod-uid", **parts}
    if owned:
        given["ownerReferences"] = [{"kind": "Other", "uid": "o", "name": "o"}, OWNER_REFERENCE]
    container = {"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    made = {"schedulerName": "volcano", "containers": [container], **(pod_spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": given, "spec": made}


def owner(kind: str = "ReplicaSet", api_version: str = "apps/v1", **said: str) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "rs", "uid": "rs-uid", "annotations": said},
    }


def group(item: Object, its_owner: Object | None = None, *, inherit: bool = True) -> Object:
    return group_for(item, its_owner, inherit=inherit)


def test_a_single_pod_owns_its_group() -> None:
    made = group(pod())

    assert name(made) == "podgroup-pod-uid"
    assert metadata(made)["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": "pod-uid",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert spec(made) == {"minMember": 1, "minResources": least(1, cpu="500m", memory="1Gi")}
    assert made["status"] == {"phase": "Pending"}


def test_pods_of_a_controller_share_a_group_that_has_their_owners() -> None:
    made = group(pod(owned=True), owner(**{MIN_MEMBER: "3"}))

    assert name(made) == "podgroup-rs-uid"
    assert [each["uid"] for each in metadata(made)["ownerReferences"]] == ["o", "rs-uid"]
    assert spec(made)["minMember"] == 3
    assert spec(made)["minResources"] == least(3, cpu="1500m", memory="3Gi")


def test_an_owner_that_nothing_is_inherited_from_does_not_say_how_many() -> None:
    made = group(pod(owned=True), owner(**{MIN_MEMBER: "3"}), inherit=False)

    assert spec(made) == {"minMember": 1, "minResources": least(1, cpu="500m", memory="1Gi")}


def test_all_that_quotas_count_is_told_by_their_names() -> None:
    container = {"name": "c", "resources": {"limits": {"cpu": "500m"}}}
    made = group(pod(owned=True, pod_spec={"containers": [container]}), owner(**{MIN_MEMBER: "3"}))
    assert spec(made)["minResources"] == least(3, cpu="1500m", limits={"cpu": "1500m"})


@pytest.mark.parametrize(
    ("said", "expected"), [("2", 2), ("1", 1), ("0", 1), ("-1", 1), ("x", 1), ("", 1), ("1.5", 1)]
)
def test_the_owner_says_how_many_belong_together(said: str, expected: int) -> None:
    assert min_member(owner(**{MIN_MEMBER: said})) == expected


@given(st.text(max_size=8))
def test_whatever_it_says_it_is_at_least_one(said: str) -> None:
    assert min_member(owner(**{MIN_MEMBER: said})) >= 1


@pytest.mark.parametrize(
    ("replicas", "of_all", "expected"),
    [(1, "4", 1), (3, "4", 3), (4, "4", 4), (2, "2", 4), (2, "", 4), (2, "x", 4), (5, "6", 4)],
)
def test_a_step_of_a_rollout_is_a_group_of_its_own(
    replicas: int, of_all: str, expected: int
) -> None:
    """volcano#4739: a Deployment made one new pod, which waited for the others for ever."""
    told = {MIN_MEMBER: "4", "deployment.kubernetes.io/desired-replicas": of_all}
    item = owner(**told) | {"spec": {"replicas": replicas}}
    assert min_member(item) == expected


def test_the_pods_own_annotation_does_not_say_how_many() -> None:
    assert spec(group(pod(annotations={MIN_MEMBER: "5"})))["minMember"] == 1


def test_queue_and_priority_are_the_pods() -> None:
    made = group(pod(annotations={QUEUE: "q"}, pod_spec={"priorityClassName": "high"}))

    assert (spec(made)["queue"], spec(made)["priorityClassName"]) == ("q", "high")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"mode": "soft", "highest-tier": "2"}, {"mode": "soft", "highestTierAllowed": 2}),
        ({"mode": "Soft"}, {"mode": "soft"}),
        ({"mode": "hard"}, {"mode": "hard"}),
        ({"mode": "odd"}, {"mode": "hard"}),
        ({"highest-tier": "1"}, {"mode": "hard", "highestTierAllowed": 1}),
        ({"mode": "soft", "highest-tier": "x"}, {"mode": "soft"}),
        ({"mode": "soft", "highest-tier": "-1"}, {"mode": "soft"}),
        ({"mode": "soft", "highest-tier": "٣"}, {"mode": "soft"}),
        ({"mode": "soft", "highest-tier": "9223372036854775808"}, {"mode": "soft"}),
        ({}, None),
    ],
)
def test_the_network_topology_is_the_pods(said: dict[str, str], expected: Object | None) -> None:
    made = group(pod(annotations={f"volcano.sh/network-topology-{k}": v for k, v in said.items()}))

    assert spec(made).get("networkTopology") == expected


@pytest.mark.parametrize(
    ("kind", "api_version", "inherits"),
    [
        ("ReplicaSet", "apps/v1", True),
        ("StatefulSet", "apps/v1", True),
        ("DaemonSet", "apps/v1", True),
        ("Job", "batch/v1", True),
        ("Job", "batch.volcano.sh/v1alpha1", False),
        ("Thing", "example.com/v1", False),
    ],
)
def test_annotations_of_some_owners_are_inherited(
    kind: str, api_version: str, inherits: bool
) -> None:
    its_owner = owner(kind, api_version, **{"volcano.sh/sla-waiting-time": "1h", "other": "x"})

    inherited = {"volcano.sh/sla-waiting-time": "1h"}
    assert annotations(group(pod(owned=True), its_owner)) == (inherited if inherits else {})
    assert annotations(group(pod(owned=True), its_owner, inherit=False)) == {}


@pytest.mark.parametrize(
    ("key", "as_annotation", "as_label"),
    [
        ("volcano.sh/preemptable", True, True),
        ("volcano.sh/cooldown-time", True, True),
        ("volcano.sh/revocable-zone", True, False),
        ("volcano.sh/jdb-min-available", True, False),
        ("volcano.sh/jdb-max-unavailable", True, False),
        ("volcano.sh/qos-level", False, False),
        ("example.com/other", False, False),
    ],
)
def test_some_keys_of_the_pod_become_the_groups(
    key: str, as_annotation: bool, as_label: bool
) -> None:
    annotated, labelled = group(pod(annotations={key: "x"})), group(pod(labels={key: "x"}))

    assert annotations(annotated) == ({key: "x"} if as_annotation else {})
    assert annotations(labelled) == {}
    assert labels(labelled) == ({key: "x"} if as_label else {})


def test_what_the_pod_says_goes_before_what_its_owner_says() -> None:
    item = pod(
        owned=True,
        annotations={"volcano.sh/preemptable": "true", "volcano.sh/jdb-min-available": "2"},
        labels={"volcano.sh/cooldown-time": "10s", "volcano.sh/revocable-zone": "no", "a": "b"},
    )
    made = group(item, owner(**{"volcano.sh/preemptable": "false", "volcano.sh/x": "y"}))

    assert annotations(made) == {
        "volcano.sh/preemptable": "true",
        "volcano.sh/jdb-min-available": "2",
        "volcano.sh/x": "y",
    }
    assert labels(made) == {"volcano.sh/cooldown-time": "10s"}


def test_what_its_owner_says_of_stranded_gangs_is_copied() -> None:
    said = {"pumice.sh/stranded-after": "5m", "pumice.sh/stranded-action": "release"}
    made = group(pod(owned=True), owner(**said, **{"pumice.sh/other": "x"}))

    assert annotations(made) == said


def test_a_label_of_the_pod_does_not_change_what_its_owner_annotates() -> None:
    item = pod(owned=True, labels={"volcano.sh/preemptable": "true"})
    made = group(item, owner(**{"volcano.sh/preemptable": "false"}))

    assert annotations(made) == {"volcano.sh/preemptable": "false"}
    assert labels(made) == {"volcano.sh/preemptable": "true"}


def test_of_two_disruption_budgets_of_the_pod_the_group_has_the_first() -> None:
    both = {"volcano.sh/jdb-max-unavailable": "1", "volcano.sh/jdb-min-available": "2"}

    assert annotations(group(pod(annotations=both))) == {"volcano.sh/jdb-min-available": "2"}


def test_requests_that_cannot_be_read_make_no_group() -> None:
    broken = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]}

    with pytest.raises(DecodeError):
        group(pod(pod_spec=broken))


@pytest.mark.parametrize(
    ("item", "wants"),
    [
        pytest.param(pod(), True, id="ours"),
        pytest.param(pod(pod_spec={"schedulerName": "other"}), False, id="somebody else's"),
        pytest.param(pod(annotations={GROUP: "g"}), False, id="has one"),
        pytest.param(pod(annotations={GROUP: ""}), True, id="names none"),
        pytest.param(pod(deletionTimestamp="2026-01-01T00:00:00Z"), False, id="goes"),
        pytest.param({**pod(), "status": {"phase": "Running"}}, True, id="runs"),
        pytest.param({**pod(), "status": {"phase": "Succeeded"}}, False, id="has succeeded"),
        pytest.param({**pod(), "status": {"phase": "Failed"}}, False, id="has failed"),
    ],
)
def test_a_group_is_wanted_for_pods_of_ours_that_are_to_run(item: Object, wants: bool) -> None:
    assert wants_group(item, OURS) is wants


def stored(item: Object, **more: Any) -> Object:
    """As the API server gives it back: with its defaults."""
    return {**item, "spec": {"queue": "default", **spec(item), **more}}


def test_an_unchanged_group_is_not_written() -> None:
    made = group(pod())

    assert difference(stored(made), made) == {}
    assert difference(stored(made, subGroupPolicy=[{"name": "x"}]), made) == {}


def test_the_queue_that_somebody_else_gave_it_stays() -> None:
    made = group(pod())

    assert difference(stored(made, queue="of-the-namespace"), made) == {}


def test_what_has_changed_is_written_and_what_is_gone_is_taken_away() -> None:
    before = group(pod(pod_spec={"priorityClassName": "high"}), owner())
    after = group(
        pod(annotations={QUEUE: "q", "volcano.sh/preemptable": "true"}),
        owner(**{MIN_MEMBER: "2"}),
    )

    assert difference(stored(before), after) == {
        "spec": {
            "minMember": 2,
            "minResources": least(2, cpu="1", memory="2Gi"),
            "queue": "q",
            "priorityClassName": None,
        },
        "metadata": {"annotations": {"volcano.sh/preemptable": "true"}},
    }
