"""The table of webhooks, and that no JSON whatever breaks a rule."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.webhooks.admission import PATHS, WEBHOOKS, UnknownPath, Verdict, Webhook, chosen, decide
from app.webhooks.patching import json_patch
from app.webhooks.resource_groups import ResourceGroup
from app.webhooks.world import Options, Request, World
from tests.scale import examples
from tests.webhooks.objects import facts, node, patched, queue

KEYS = (
    "tasks",
    "policies",
    "volumes",
    "plugins",
    "queue",
    "minAvailable",
    "replicas",
    "name",
    "template",
    "spec",
    "containers",
    "initContainers",
    "resources",
    "requests",
    "limits",
    "cpu",
    "members",
    "selector",
    "regexMatch",
    "pattern",
    "exactMatch",
    "flows",
    "dependsOn",
    "targets",
    "schedule",
    "timeZone",
    "jobTemplate",
    "partitionPolicy",
    "networkTopology",
    "capability",
    "deserved",
    "guarantee",
    "resource",
    "parent",
    "weight",
    "event",
    "events",
    "action",
    "exitCode",
    "mountPath",
    "volumeMounts",
    "volumeClaimName",
    "env",
    "ports",
    "containerPort",
    "nodeSelector",
    "tolerations",
    "schedulingGates",
    "schedulerName",
    "affinity",
    "subGroupPolicy",
    "minResources",
    "minTaskMember",
    "priorityClassName",
    "mpi",
    "svc",
    "hostNetwork",
    "status",
    "state",
    "allocated",
    "pods",
    "topologyPolicy",
    "totalPartitions",
    "minPartitions",
)

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 70_000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "1", "-1", "5%", "*", "default", "volcano", "PodFailed", "1Gi"])
    | st.text(max_size=4)
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inside, max_size=5)
    ),
    max_leaves=25,
)
BODIES = st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=8)
ITEMS = st.fixed_dictionaries(
    {"metadata": st.just({"name": "x", "namespace": "default"}), "spec": BODIES},
    optional={"status": BODIES},
)
OPTIONS = Options(
    gate_pods=True,
    queue_gates=True,
    check_allocated=True,
    resource_groups=(
        ResourceGroup(
            name="a",
            namespaces=frozenset({"default"}),
            labels={"a": "b"},
            tolerations=({"key": "a"},),
            affinity={"nodeAffinity": {}},
        ),
    ),
)
WORLD = World(facts(queue("a", capability={"cpu": 1}), nodes=(node("n", cpu=1),)), OPTIONS)


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=PATHS)
@examples(30)
@given(item=ITEMS, old=ITEMS)
def test_whatever_is_sent_gets_an_answer(webhook: Webhook, item: Any, old: Any) -> None:
    for operation in webhook.operations:
        request = Request(operation=operation, item=item, old=old, namespace="default", name="x")
        verdict = decide(webhook, request, WORLD)
        assert verdict.allowed == (not verdict.message)
        assert "\n" not in verdict.message.replace(str(item), "")


@given(ITEMS, ITEMS)
def test_a_patch_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    verdict = Verdict(True, patch=json_patch(before, after))
    assert patched(copy.deepcopy(before), verdict) == after


def test_each_webhook_judges_or_changes_and_has_a_name_of_its_own() -> None:
    assert all((w.validate is None) != (w.mutate is None) for w in WEBHOOKS)
    assert all(w.path.endswith("/mutate") == (w.mutate is not None) for w in WEBHOOKS)
    assert len({w.name for w in WEBHOOKS}) == len(WEBHOOKS) == len(set(PATHS))


def test_webhooks_are_chosen_by_path() -> None:
    assert [w.path for w in chosen(["/pods/mutate", "/jobs/mutate", "/pods/mutate"])] == [
        "/pods/mutate",
        "/jobs/mutate",
    ]
    with pytest.raises(UnknownPath, match="no webhook at /x; there are /jobs/mutate,"):
        chosen(["/jobs/mutate", "/x"])


def test_an_unexpected_operation_is_refused() -> None:
    request = Request(operation="DELETE", item={}, old={}, name="x")
    verdict = decide(chosen(["/jobs/validate"])[0], request, WORLD)
    assert verdict.message == "expect operation to be 'CREATE' or 'UPDATE' "
