"""`pumice webhooks` and the policies on the real API server: messages, warnings, outages.

The tables are those of the rules' own tests; here each object goes through the API server, once
with the process and once, the process killed, with the policies alone. Everything is a dry run but
the queues that the rules ask about.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator

import pytest

from tests.clusters.client import ApiClient, ApiError, Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.clusters.resources import PODS, QUEUES
from tests.e2e import admission
from tests.e2e.admission import Webhooks, deletion, kubectl, refusal, says, start, with_key_pair
from tests.e2e.test_admission_policies import cron, flow, kind
from tests.webhooks import test_job_rules, test_job_updates, test_queues, test_schema_words
from tests.webhooks.objects import asking, group, job, new_queue, pod, task

pytestmark = pytest.mark.real

ONLY_THE_WEBHOOK_KNOWS = {
    "no queue of that name",
    "a closed queue",
    "a closing queue",
    "a queue with queues below",
    "tasks that wait for each other",
    "a flag that cannot be read",
    "a timeout of a thousand years",
    "a container twice",
    "a variable's name that is none",
    "two mounts at one place",
    "a claim of other types",
    "an affinity of a task that there is not",
}
ONLY_THE_WEBHOOK_KNOWS_OF_QUEUES = {
    "too deep",
    "no such parent",
    "a parent with pods",
    "capability above an ancestor's",
    "guarantees above the parent's",
    "guarantees of what the parent has none of",
    "deserved above the parent's",
    "deserved below a parent that deserves nothing",
}
NEVER_SENT = {"a state that only a controller sets", "null"}
"""The status of a new object and amounts that are null are dropped before it is judged."""


def hyper_node(*selectors: Object) -> Object:
    members = [{"type": "Node", "selector": selector} for selector in selectors]
    return kind("topology.volcano.sh/v1alpha1", "HyperNode", {"tier": 1, "members": members})


@pytest.fixture(scope="module")
def cluster(installed: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the queues of the tables in it."""
    with admission.queues_of_tables(installed) as made:
        yield made


@pytest.fixture(scope="module")
def webhooks(cluster: ControlPlane) -> Iterator[Webhooks]:
    """A process on given certificates, in force."""
    flags = with_key_pair(cluster)
    with start(cluster, *flags, trust=cluster.authority.certificate) as running:
        wait_until(
            lambda: "validatejob.volcano.sh" in refusal(cluster.api, job(queue="nowhere")),
            timeout_s=20,
            what="the API server asks the webhooks",
        )
        yield running


def test_jobs_are_judged(cluster: ControlPlane, webhooks: Webhooks) -> None:
    for name, item in test_job_rules.ACCEPTED.items():
        assert refusal(cluster.api, item) == "", name
    wrong = {
        name: message
        for name, (item, expected) in test_job_rules.REFUSED.items()
        if not says(message := refusal(cluster.api, item), expected)
    }
    assert wrong == {}


def test_changes_of_jobs_are_judged(cluster: ControlPlane, webhooks: Webhooks) -> None:
    api, stored = cluster.api, test_job_updates.stored()
    assert_changes(api, stored)


def assert_changes(api: ApiClient, stored: Object) -> None:
    """What may change of a job may, the rest may not."""
    made = api.create(stored)
    try:
        for name, change in test_job_updates.ACCEPTED.items():
            item = copy.deepcopy(made)
            change(item)
            assert refusal(api, item, method="PUT") == "", name
        for name, (change, expected) in test_job_updates.REFUSED.items():
            item = copy.deepcopy(made)
            change(item)
            assert says(refusal(api, item, method="PUT"), expected), name
        assert_claims(api, made)
    finally:
        api.delete(api.resource_of(stored), "j", namespace="default")
    # A client with types writes what it has read in other words.
    made = api.create(test_job_updates.rich())
    try:
        given = test_job_updates.as_types_write_it()["spec"]
        (first,), (before,) = given["tasks"], made["spec"]["tasks"]
        spec = {**made["spec"], **given, "tasks": [{**before, **first}], "plugins": {"svc": []}}
        again = {**made, "spec": spec}
        assert refusal(api, again, method="PUT") == ""
    finally:
        api.delete(api.resource_of(stored), "j", namespace="default")


def test_a_refusal_has_both_words(cluster: ControlPlane, webhooks: Webhooks) -> None:
    admission.assert_both_words(cluster.api)
    given, *words = test_schema_words.BEYOND_A_PATTERN
    assert all(each in refusal(cluster.api, given) for each in words)


def test_minima_follow_the_size(cluster: ControlPlane, webhooks: Webhooks) -> None:
    admission.assert_sizes_follow(cluster.api)


def test_a_manifest_applied_again_changes_nothing(
    cluster: ControlPlane, webhooks: Webhooks
) -> None:
    api, manifest = cluster.api, test_job_updates.sparse()
    made = api.create(manifest)
    try:
        again = test_job_updates.applied_again(made, manifest)
        assert refusal(api, again, method="PUT") == ""
        for field, value in (("name", "other"), ("maxRetry", 7)):
            other = copy.deepcopy(again)
            other["spec"]["tasks"][0][field] = value
            assert f"spec.tasks[0].{field}: job updates" in refusal(api, other, method="PUT")
        other = copy.deepcopy(again)
        other["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"] = "Default"
        assert "spec.tasks[0].template: job updates" in refusal(api, other, method="PUT")
    finally:
        api.delete(api.resource_of(manifest), "j", namespace="default")


def assert_claims(api: ApiClient, made: Object) -> None:
    """A claim that the controller has named may be left out again, and not be another."""
    item = copy.deepcopy(made)
    item["spec"]["volumes"][0]["volumeClaimName"] = "j-pvc-1"
    item = api.replace(item)
    item["spec"]["volumes"][0]["volumeClaimName"] = "other"
    assert says(refusal(api, item, method="PUT"), test_job_updates.OTHER)
    del item["spec"]["volumes"][0]["volumeClaimName"]
    assert refusal(api, item, method="PUT") == ""


def test_queues_are_judged(cluster: ControlPlane, webhooks: Webhooks) -> None:
    for name, item in test_queues.ACCEPTED.items():
        assert refusal(cluster.api, item) == "", name
    for name, (item, expected) in test_queues.REFUSED.items():
        if name not in NEVER_SENT:
            assert says(refusal(cluster.api, item), expected), name


def test_queues_that_are_needed_stay(cluster: ControlPlane, webhooks: Webhooks) -> None:
    assert "`default` queue can not be deleted" in deletion(cluster.api, "default")
    assert "can not be deleted because it has" in deletion(cluster.api, "parent")
    assert deletion(cluster.api, "closed") == ""
    # A queue made a moment ago is in nobody's cache yet.
    cluster.api.create(new_queue("infant", parent="fresh"), resource=QUEUES)
    try:
        assert "child queues" in deletion(cluster.api, "fresh")
    finally:
        cluster.api.delete(QUEUES, "infant")
    assert deletion(cluster.api, "fresh") == ""


def test_jobs_go_to_a_queue_made_a_moment_ago(cluster: ControlPlane, webhooks: Webhooks) -> None:
    cluster.api.create(new_queue("sudden"), resource=QUEUES)
    try:
        assert refusal(cluster.api, job(queue="sudden")) == ""
    finally:
        cluster.api.delete(QUEUES, "sudden")


def test_everything_that_is_wrong_is_in_one_answer(
    cluster: ControlPlane, webhooks: Webhooks
) -> None:
    containers = [{"name": "A", "image": " i"}, {"name": "A", "image": "i"}]
    template = {"spec": {"containers": containers, "restartPolicy": "x"}}
    message = refusal(cluster.api, job(task("a", template=template), task("a"), queue="nowhere"))
    for part in (
        'admission webhook "validatejob.volcano.sh" denied the request: ',
        'spec.tasks[0].template.spec.containers[0].name: Invalid value: "A"',
        "spec.tasks[0].template.spec.containers[0].image: must not have",
        'spec.tasks[0].template.spec.containers[1].name: Duplicate value: "A"',
        'spec.tasks[0].template.spec.restartPolicy: Unsupported value: "x"',
        # What policies know and what only the webhook knows.
        "spec.tasks[1].name: duplicated task name a;",
        "spec.queue: unable to find job queue",
    ):
        assert part in message
    given = new_queue("q", parent="nowhere", capability={"cpu": 1}, deserved={"cpu": 2})
    message = refusal(cluster.api, given)
    assert "deserved[cpu]=2 must be <= capability[cpu]=1;" in message
    assert "failed to get parent queue of queue q" in message
    both = {"highestTierAllowed": 1, "highestTierName": "a"}
    message = refusal(cluster.api, group(queue="nowhere", networkTopology=both))
    assert "unable to find queue" in message
    assert "must not specify 'highestTierAllowed' and 'highestTierName'" in message


SMALLER: dict[str, tuple[Object, str]] = {
    "no members": (hyper_node(), "member must have at least one member"),
    "a member without a name": (
        hyper_node({"exactMatch": {"name": ""}}),
        "member exactMatch name is required",
    ),
    "a member whose name is none": (
        hyper_node({"exactMatch": {"name": "A_b@"}}),
        "member exactMatch validate failed [",
    ),
    "a member without a pattern": (
        hyper_node({"regexMatch": {"pattern": ""}}),
        "member regexMatch pattern is required",
    ),
    "a member whose pattern is none": (
        hyper_node({"regexMatch": {"pattern": "a(b"}}),
        "member regexMatch pattern is invalid",
    ),
    "a member named in no way": (hyper_node({}), "Either ExactMatch or RegexMatch or LabelMatch"),
    "flows that wait for each other": (
        flow(("a", ["b"]), ("b", ["a"])),
        "jobflow Flow is not DAG",
    ),
    "a flow that is not there": (flow(("a", ["b"])), "vertex is not defined: b"),
    "no schedule": (cron(""), "schedule is required, but got empty"),
    "a schedule out of range": (cron("60 * * * *"), "schedule is not a valid cron expression"),
    "no time zone": (cron("* * * * *", timeZone=""), "got empty string"),
    "an invented time zone": (cron("* * * * *", timeZone="Mars/Olympus"), "invalid timeZone"),
    "a name that is none": (cron("* * * * *", "a" * 53), "must be no more than 52 characters"),
}


@pytest.mark.parametrize(("item", "message"), SMALLER.values(), ids=SMALLER)
def test_smaller_kinds_are_judged_in_the_known_words(
    cluster: ControlPlane, webhooks: Webhooks, item: Object, message: str
) -> None:
    told = refusal(cluster.api, item)
    assert 'admission webhook "validate' in told
    assert message in told


def test_smaller_kinds_are_accepted(cluster: ControlPlane, webhooks: Webhooks) -> None:
    for item in (
        hyper_node({"exactMatch": {"name": "node-1"}}, {"regexMatch": {"pattern": "node-[1-5]"}}),
        hyper_node({"labelMatch": {"matchLabels": {"rack": "1"}}}),
        flow(),
        flow(("a", []), ("b", ["a"]), ("c", ["a", "b"])),
        cron("@every 1h", timeZone="Asia/Tokyo"),
    ):
        assert refusal(cluster.api, item) == "", item


def test_a_field_of_another_type_is_left_to_the_schema(
    cluster: ControlPlane, webhooks: Webhooks
) -> None:
    for item, where in (
        (job(tasks="x", queue="nowhere"), "spec.tasks: Invalid value"),
        (job(minAvailable="1"), "spec.minAvailable: Invalid value"),
        (new_queue("q", weight="1", parent="nowhere"), "spec.weight: Invalid value"),
        (group(minMember="1", queue="nowhere"), "spec.minMember: Invalid value"),
        (hyper_node({"exactMatch": "a"}), "spec.members[0].selector.exactMatch: Invalid value"),
        (cron("x", timeZone=5), "spec.timeZone: Invalid value"),
    ):
        message = refusal(cluster.api, item)
        assert message.startswith("422 Invalid")
        assert where in message


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_prints_warnings_and_refusals(cluster: ControlPlane, webhooks: Webhooks) -> None:
    bare = job(task("", 2, template={"spec": asking(cpu=1)}), priorityClassName="unheard-of")
    done = kubectl(cluster, bare)
    assert done.returncode == 0, done.stderr
    assert "Warning: spec.priorityClassName: there is no PriorityClass unheard-of" in done.stderr
    assert json.loads(done.stdout)["spec"]["tasks"][0]["name"] == "default0"
    refused = kubectl(cluster, job(queue="nowhere"))
    assert refused.returncode == 1
    assert 'admission webhook "validatejob.volcano.sh" denied the request: ' in refused.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_pods_of_jobs_are_not_asked_about(cluster: ControlPlane, webhooks: Webhooks) -> None:
    alone = pod(annotations={"scheduling.volcano.sh/queue-name": "nowhere"})
    done = kubectl(cluster, alone)
    assert "there is no queue nowhere" in done.stderr
    member = copy.deepcopy(alone)
    member["metadata"]["labels"] = {"volcano.sh/job-name": "j"}
    done = kubectl(cluster, member)
    assert (done.returncode, done.stderr) == (0, "")


def test_pods_choose_no_devices_themselves_when_they_are_made_nor_later(
    cluster: ControlPlane, webhooks: Webhooks
) -> None:
    """Of changes the webhook is asked about those that could tell a pod its devices."""
    api, told = cluster.api, {"volcano.sh/vgpu-ids-new": "GPU-a,NVIDIA,1,1:"}
    greedy = pod(annotations=told)
    assert "only the scheduler says which devices" in refusal(api, greedy)
    greedy["metadata"]["labels"] = {"volcano.sh/job-name": "j"}
    assert "only the scheduler says which devices" in refusal(api, greedy)

    plain = pod()
    plain["metadata"] |= {"name": "devices", "namespace": "default"}
    api.create(plain)
    try:
        with pytest.raises(ApiError, match="only the scheduler says which devices"):
            api.patch(PODS, "devices", {"metadata": {"annotations": told}}, namespace="default")
        other = {"metadata": {"annotations": {"example.com/note": "x"}}}
        api.patch(PODS, "devices", other, namespace="default")
    finally:
        api.delete(PODS, "devices", namespace="default")


def test_without_the_process_the_policies_judge_and_hold_nothing_good_up(
    cluster: ControlPlane, webhooks: Webhooks
) -> None:
    api = cluster.api
    webhooks.kill()
    for name, item in test_job_rules.ACCEPTED.items():
        assert refusal(api, item) == "", name
    passed = {
        name for name, (item, _) in test_job_rules.REFUSED.items() if refusal(api, item) == ""
    }
    assert passed == ONLY_THE_WEBHOOK_KNOWS
    for name, item in test_queues.ACCEPTED.items():
        assert refusal(api, item) == "", name
    passed = {name for name, (item, _) in test_queues.REFUSED.items() if refusal(api, item) == ""}
    assert passed == ONLY_THE_WEBHOOK_KNOWS_OF_QUEUES | NEVER_SENT
    assert "`root` queue can not be deleted" in deletion(api, "root")
    assert "has child queues" in deletion(api, "parent")
    assert deletion(api, "closed") == ""
    assert_changes(api, test_job_updates.stored())
