"""What a vcjob's pods will ask for, and their labels, before there is one."""

from typing import Any

import msgspec
import pytest

from app.model.pod import PREEMPTABLE, REVOCABLE_ZONE
from app.model.topology import NetworkTopology
from app.wire.errors import DecodeError
from app.wire.objects.jobs import decode_job
from tests.builders import make_amounts
from tests.wire.manifests import decoded

GIVEN = {
    "volcano.sh/job-name": "job",
    "volcano.sh/job-namespace": "team",
    "volcano.sh/queue-name": "default",
    "volcano.sh/task-spec": "worker",
}


def encoded(*tasks: Any, **spec: Any) -> bytes:
    metadata = {"name": "job", "namespace": "team", "uid": "uid-job", "resourceVersion": "1"}
    return msgspec.json.encode({"metadata": metadata, "spec": {"tasks": tasks, **spec}})


def task(template: Any, name: str | None = "worker") -> Any:
    return {"name": name, "replicas": 2, "template": template}


def container(cpu: str = "1") -> Any:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}


def test_each_task_has_its_own_shape() -> None:
    tasks = [task({"spec": {"containers": [container(c)]}}, name) for name, c in TWO.items()]
    roles = decode_job(encoded(*tasks)).roles
    assert {name: role.shape.requests for name, role in roles.items()} == {
        "ps": make_amounts(cpu=1000, pods=1),
        "default1": make_amounts(cpu=2000, pods=1),
    }


def test_each_task_tells_how_many_pods_there_will_be() -> None:
    template = {"spec": {"containers": [container()]}}
    unsaid = {"name": "ps", "template": template}
    roles = decode_job(encoded(task(template), unsaid)).roles
    assert {name: role.replicas for name, role in roles.items()} == {"worker": 2, "ps": None}


def test_pods_are_of_the_class_that_their_template_names_or_else_of_the_job_s() -> None:
    plain = {"containers": [container()]}
    tasks = [
        task({"spec": plain}, "ps"),
        task({"spec": {**plain, "priorityClassName": "low", "preemptionPolicy": "Never"}}),
    ]
    roles = decode_job(encoded(*tasks, priorityClassName="high")).roles
    assert {name: (role.priority_class, role.preempts) for name, role in roles.items()} == {
        "ps": ("high", True),
        "worker": ("low", False),
    }
    assert decode_job(encoded(task({"spec": plain}))).roles["worker"].priority_class == ""


TWO: dict[str | None, str] = {"ps": "1", None: "2"}


def test_a_template_tells_what_its_pods_ask_of_the_network() -> None:
    asks = {"kueue.x-k8s.io/podset-required-topology": "example.com/rack"}
    spec = {"containers": [container()]}
    asking = {"metadata": {"annotations": asks}, "spec": spec}
    roles = decode_job(encoded(task(asking), task({"spec": spec}, "ps"))).roles
    assert roles["worker"].topology == NetworkTopology(highest_tier_name="example.com/rack")
    assert roles["ps"].topology is None


@pytest.mark.parametrize(
    ("of_job", "of_pods", "bears"),
    [
        ({}, {}, False),
        ({REVOCABLE_ZONE: "*"}, {}, True),
        ({}, {REVOCABLE_ZONE: "*"}, True),
        ({PREEMPTABLE: "true"}, {}, True),
        ({PREEMPTABLE: "true"}, {PREEMPTABLE: "false"}, True),
        ({PREEMPTABLE: "false"}, {PREEMPTABLE: "true"}, False),
        ({REVOCABLE_ZONE: "night"}, {}, False),
    ],
    ids=str,
)
def test_a_template_tells_whether_its_pods_may_be_on_revocable_nodes(
    of_job: dict[str, str], of_pods: dict[str, str], bears: bool
) -> None:
    template = {"metadata": {"annotations": of_pods}, "spec": {"containers": [container()]}}
    job = msgspec.json.decode(encoded(task(template)))
    job["metadata"]["annotations"] = of_job
    made = decode_job(msgspec.json.encode(job)).roles["worker"].shape
    meta = {"annotations": {**of_pods, **of_job}}
    pod = decoded(meta=meta, containers=[container()]).shape
    assert (made.bears_revocation, pod.bears_revocation) == (bears, bears)
    assert made.fits_like(pod)


def test_the_labels_are_those_of_the_template_and_those_that_the_controller_gives() -> None:
    labels = {"part": "w", "volcano.sh/job-name": "another"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    assert decode_job(encoded(task(template))).roles["worker"].labels == {"part": "w", **GIVEN}
    elsewhere = decode_job(encoded(task(template), queue="research")).roles["worker"].labels
    assert elsewhere["volcano.sh/queue-name"] == "research"


def test_rules_about_other_pods_count_a_pod_to_come_by_these_labels() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"part": "w"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"spec": {"containers": [container()], "affinity": apart}}
    shape = decode_job(encoded(task(template))).roles["worker"].shape
    assert shape.spread_identity == ("team", tuple(sorted(GIVEN.items())))


@pytest.mark.parametrize("template", [None, {}, {"metadata": {}}])
def test_a_task_that_describes_no_pod_is_left_out(template: Any) -> None:
    assert decode_job(encoded(task(template))).roles == {}


def test_what_is_wrong_is_named_by_its_path() -> None:
    template = {"spec": {"containers": [container("much")]}}
    with pytest.raises(DecodeError, match=r"tasks\[0\]\.template\.spec"):
        decode_job(encoded(task(template)))


def test_nulls_in_templates_count_as_left_out() -> None:
    asks = {"requests": {"cpu": "1", "memory": None}, "limits": {"cpu": None}}
    spec = {
        "nodeSelector": {"zone": None},
        "containers": [{"name": "c", "image": "i", "resources": asks}],
    }
    template = {"metadata": {"labels": {"a": None, "b": "c"}}, "spec": spec}
    made = decode_job(encoded(task(template))).roles["worker"]
    assert made.shape.requests == make_amounts(cpu=1000, pods=1)
    assert made.labels == {**GIVEN, "b": "c"}


def test_what_is_wrong_beside_nulls_is_still_told_with_its_place() -> None:
    spec = {"nodeSelector": {"zone": None}, "overhead": {"cpu": -1}}
    with pytest.raises(DecodeError, match=r"^spec.tasks\[0\].template.spec.overhead.cpu: is less"):
        decode_job(encoded(task({"spec": spec})))
