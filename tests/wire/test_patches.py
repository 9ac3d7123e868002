"""Patches: applied to the object they are made for, they do what they say and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.ids import NodeName
from app.model.pod import GATE, QUEUE_GATE, Pod
from app.model.workload import Condition, GroupPhase
from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.patches import json_patch, merge_patch
from app.wire import patches
from app.wire.objects.groups import decode_pod_group
from app.wire.objects.pods import decode_pod
from app.wire.objects.queues import decode_queue
from tests.wire.manifests import Json, encode, metadata, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE = NodeName("n1")

LABELS = [{"key": "zone", "operator": "In", "values": ["a"]}]
AVOID = [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]
POD_RULES = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}
PREFERENCES = [{"weight": 1, "preference": {"matchExpressions": LABELS}}]


def gated(affinity: Any, *, gates: tuple[str, ...] = (GATE,)) -> Json:
    spec = {} if affinity == "absent" else {"affinity": affinity}
    return pod(schedulingGates=[{"name": gate} for gate in gates], **spec)


def opened(body: Json, *, pin: str = "") -> Pod:
    found = decode_pod(encode(body))
    operations: Any = patches.open_gate(found, pin=NodeName(pin))
    return decode_pod(encode(json_patch(body, operations)))


def required(*terms: Any) -> Json:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


AFFINITIES = [
    "absent",
    {},
    POD_RULES,
    {"nodeAffinity": {}},
    {"nodeAffinity": {PREFERRED: PREFERENCES}} | POD_RULES,
    required(),
    required({"matchExpressions": LABELS}),
    required({"matchFields": AVOID}),
    required({"matchExpressions": LABELS}, {"matchFields": AVOID, "matchExpressions": LABELS}),
    required({"matchExpressions": LABELS}, {}),
]


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_a_pin_ties_the_pod_to_the_node_and_keeps_its_other_rules(affinity: Any) -> None:
    body = gated(affinity)
    before, after = decode_pod(encode(body)), opened(body, pin=NODE)
    assert (after.pinned, after.gates) == (NODE, ())
    was, now = before.shape, after.shape
    assert now.preferred_terms == was.preferred_terms
    assert now.pod_anti_affinity == was.pod_anti_affinity
    matching = [t for t in was.required_terms or () if t.expressions or t.fields]
    assert now.required_terms == (tuple(matching) or None)


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_without_a_pin_the_affinity_is_left_alone(affinity: Any) -> None:
    body = gated(affinity)
    found = decode_pod(encode(body))
    after = json_patch(body, patches.open_gate(found))
    assert after == body | {"spec": body["spec"] | {"schedulingGates": []}}


terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.sampled_from([LABELS, [], None]),
        "matchFields": st.sampled_from([AVOID, [], None]),
    },
)


@given(st.lists(terms, min_size=1, max_size=4))
def test_every_alternative_that_can_match_gets_the_pin(alternatives: list[Any]) -> None:
    body = gated(required(*alternatives))
    before = decode_pod(encode(body)).shape.required_terms or ()
    after = opened(body, pin=NODE)
    kept = tuple(term for term in before if term.expressions or term.fields)
    assert after.pinned == (NODE if kept else "")
    assert after.shape.required_terms == (kept or before)


def test_an_empty_term_is_never_filled() -> None:
    body = gated(required({}, {"matchExpressions": LABELS}))
    after = json_patch(body, patches.open_gate(decode_pod(encode(body)), pin=NODE))
    filled = after["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert filled[0] == {}
    assert filled[1]["matchFields"] == [
        {"key": "metadata.name", "operator": "In", "values": [NODE]}
    ]


def test_only_our_gate_is_removed() -> None:
    body = gated("absent", gates=("other", GATE, "third"))
    assert opened(body).gates == ("other", "third")


@pytest.mark.parametrize("gates", [(QUEUE_GATE,), (QUEUE_GATE, GATE), (GATE, QUEUE_GATE)])
def test_the_gate_that_a_pod_asked_volcano_for_goes_with_ours(gates: tuple[str, ...]) -> None:
    body = gated(POD_RULES, gates=(*gates, "other"))
    body["metadata"]["annotations"] = {QUEUE_GATE: "true"}
    found = opened(body, pin=NODE)
    assert (found.gates, found.pinned) == (("other",), NODE)


@pytest.mark.parametrize(
    "changed",
    [
        {"spec": {"schedulingGates": None}},
        {"spec": {"schedulingGates": [{"name": "other"}]}},
        {"metadata": {"uid": "another"}},
    ],
)
def test_a_pod_that_has_changed_is_not_touched(changed: Json) -> None:
    body = gated("absent")
    operations = patches.open_gate(decode_pod(encode(body)), pin=NODE)
    with pytest.raises(ApiError):
        json_patch(merge_patch(body, changed), operations)


def test_a_nomination_and_a_wake_change_one_field() -> None:
    body = pod()
    pod_labels = decode_pod(encode(body)).labels
    nominated = decode_pod(encode(merge_patch(body, patches.nomination(NODE))))
    assert (nominated.nominated, nominated.phase) == (NODE, "Pending")
    uid = body["metadata"]["uid"]
    woken = decode_pod(encode(merge_patch(body, patches.wake("17", uid=uid))))
    assert (woken.annotations, woken.labels) == ({"pumice.sh/wake": "17"}, pod_labels)
    woken = decode_pod(encode(merge_patch(body, patches.wake("17", uid=uid, by_label=True))))
    assert woken.labels == {**pod_labels, "pumice.sh/wake": "17"}


def test_a_groups_status_is_read_back_as_written() -> None:
    conditions = (
        Condition(
            "Unschedulable", "True", "NotEnoughResources", "2/3", "7", "2026-11-21T04:32:15Z"
        ),
        Condition("Scheduled", "False"),
    )
    status = patches.group_status(
        phase=GroupPhase.INQUEUE, running=1, succeeded=0, failed=2, conditions=conditions
    )
    old = {"phase": "Running", "succeeded": 5, "conditions": [{"type": "Old", "status": "True"}]}
    body = {"metadata": metadata("g"), "status": old}
    found = decode_pod_group(encode(merge_patch(body, status)))
    assert (found.phase, found.running, found.succeeded, found.failed) == ("Inqueue", 1, 0, 2)
    assert found.conditions == conditions


def test_a_group_without_a_phase_gets_none() -> None:
    status = patches.group_status(
        phase=GroupPhase.NEW, running=0, succeeded=0, failed=0, conditions=()
    )
    assert status == {"status": {"running": 0, "succeeded": 0, "failed": 0, "conditions": []}}


def test_a_condition_takes_the_place_of_the_one_of_its_type() -> None:
    first, second = Condition("A", "True", "Old"), Condition("B", "True")
    newer, third = Condition("A", "False", "New"), Condition("C", "True")
    assert patches.with_conditions((first, second), (newer, third)) == (newer, second, third)
    assert patches.with_conditions((), ()) == ()


def test_what_a_queue_no_longer_uses_goes_from_its_status() -> None:
    before = (("cpu", 1000), ("nvidia.com/gpu", 2))
    now = (("cpu", 1500), ("memory", 1 << 30))
    body = {
        "metadata": metadata("q"),
        "status": {"state": "Open", "allocated": {"cpu": "1", "nvidia.com/gpu": "2"}},
    }
    found = decode_queue(encode(merge_patch(body, patches.queue_allocated(now, before=before))))
    assert found.allocated == now
    assert found.state == "Open"


def test_a_new_queue_has_what_is_asked() -> None:
    body = patches.queue("team", weight=3, reclaimable=False, parent="root")
    stored = merge_patch(body, {"metadata": {"uid": "u"}})
    found = decode_queue(encode(stored))
    assert (found.name, found.weight, found.reclaimable, found.parent) == ("team", 3, False, "root")
    assert patches.queue("team")["spec"] == {"weight": 1, "reclaimable": True}
