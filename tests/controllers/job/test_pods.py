"""The pod of a replica."""

from typing import Any

import pytest

from app.controllers.job import pods
from app.controllers.job.pods import Seat
from app.controllers.job.sync import Replica
from app.model.names import label_problems
from app.wire.unstructured import Object
from tests.controllers.job.jobs import in_phase, make_job
from tests.controllers.job.rig import task
from tests.webhooks.objects import ask
from tests.wire.deep import depth, nested


def _pod(
    spec: dict[str, Any] | None = None,
    *,
    of: Object | None = None,
    index: int = 1,
    seat: Seat | None = None,
    evicted: float = 0.0,
    **metadata: Any,
) -> Object:
    status = in_phase("Running", version=2, retryCount=1)
    job = make_job({"tasks": [of or task()], **(spec or {})}, status=status, **metadata)
    replica = Replica(job.tasks[0], index)
    return pods.pod(job, replica, group="job-u-1", seat=seat or Seat(), evicted=evicted)


def test_it_says_whose_and_which_it_is() -> None:
    made = _pod({"queue": "q"})
    metadata = made["metadata"]
    assert metadata["name"] == "job-main-1"
    assert metadata["namespace"] == "ns"
    assert metadata["annotations"] == {
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "main",
        "scheduling.k8s.io/group-name": "job-u-1",
        "volcano.sh/job-name": "job",
        "volcano.sh/queue-name": "q",
        "volcano.sh/job-version": "2",
        "volcano.sh/template-uid": "job-main",
        "volcano.sh/job-retry-count": "1",
    }
    assert metadata["labels"] == {
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "job",
        "volcano.sh/task-spec": "main",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/queue-name": "q",
    }
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "job",
            "uid": "u-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_it_keeps_the_metadata_of_its_template() -> None:
    of = task()
    of["template"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    metadata = _pod(of=of)["metadata"]
    assert metadata["labels"]["a"] == "b"
    assert metadata["annotations"]["c"] == "d"


def test_it_inherits_what_the_job_says_about_disruption() -> None:
    said = {
        "volcano.sh/preemptable": "true",
        "volcano.sh/cooldown-time": "10m",
        "volcano.sh/revocable-zone": "*",
        "other": "no",
    }
    metadata = _pod(annotations=said, labels=said)["metadata"]
    assert {k for k in metadata["annotations"] if k in said} == said.keys() - {"other"}
    assert {k for k in metadata["labels"] if k in said} == {
        "volcano.sh/preemptable",
        "volcano.sh/cooldown-time",
    }


@pytest.mark.parametrize("kind", ["min-available", "max-unavailable"])
def test_it_inherits_the_disruption_budget_of_its_job(kind: str) -> None:
    budget = {f"volcano.sh/jdb-{kind}": "1"}
    assert budget.items() <= _pod(annotations=budget)["metadata"]["annotations"].items()


def test_of_two_disruption_budgets_it_inherits_the_one_that_pods_may_have() -> None:
    budgets = {"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "50%"}
    made = _pod(annotations=budgets)
    assert budgets.keys() & made["metadata"]["annotations"] == {"volcano.sh/jdb-min-available"}
    assert ask("/pods/validate", made).allowed


@pytest.mark.parametrize(("index", "partition"), [(0, "0"), (1, "0"), (2, "1"), (5, "2")])
def test_it_says_which_partition_it_is_of(index: int, partition: str) -> None:
    of = task(replicas=6, partitionPolicy={"totalPartitions": 3, "partitionSize": 2})
    assert _pod(of=of, index=index)["metadata"]["labels"]["volcano.sh/partition-id"] == partition


def test_it_says_how_it_is_to_be_aligned_to_numa_nodes() -> None:
    annotations = _pod(of=task(topologyPolicy="single-numa-node"))["metadata"]["annotations"]
    assert annotations["volcano.sh/numa-topology-policy"] == "single-numa-node"


def test_it_remembers_the_eviction_that_it_makes_good() -> None:
    annotations = _pod(evicted=1_700_000_000.5)["metadata"]["annotations"]
    assert annotations["pumice.sh/evicted-at"] == "2023-11-14T22:13:20Z"


def test_it_is_forwarded_with_its_job() -> None:
    key = "volcano.sh/job-forwarding"
    forwarded = _pod(annotations={key: "true"})["metadata"]
    assert forwarded["annotations"][key] == forwarded["labels"][key] == "true"
    stays = _pod(annotations={key: "false"})["metadata"]
    assert key not in {**stays["annotations"], **stays["labels"]}


def test_what_the_job_says_goes_before_what_its_template_says() -> None:
    of = task()
    said = {"volcano.sh/preemptable": "true", "volcano.sh/task-index": "9"}
    of["template"]["metadata"] = {"labels": said, "annotations": said}
    job = {"volcano.sh/preemptable": "false"}
    metadata = _pod(of=of, annotations=job, labels=job)["metadata"]
    for kind in ("annotations", "labels"):
        assert metadata[kind]["volcano.sh/preemptable"] == "false"
        assert metadata[kind]["volcano.sh/task-index"] == "1"


def test_a_task_without_partitions_has_no_partition_label() -> None:
    assert "volcano.sh/partition-id" not in _pod()["metadata"]["labels"]


def test_scheduler_and_priority_are_the_templates_or_else_the_jobs() -> None:
    job = {"schedulerName": "s", "priorityClassName": "p"}
    assert _pod()["spec"]["schedulerName"] == "volcano"
    of_job = _pod(job)["spec"]
    assert (of_job["schedulerName"], of_job["priorityClassName"]) == ("s", "p")
    own = task(spec={"schedulerName": "own", "priorityClassName": "high"})
    of_template = _pod(job, of=own)["spec"]
    assert (of_template["schedulerName"], of_template["priorityClassName"]) == ("own", "high")


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, "Default"),
        ({"hostNetwork": False}, None),
    ],
)
def test_on_the_network_of_its_host_it_finds_services_though_no_webhook_saw_to_that(
    given: dict[str, Any], policy: str | None
) -> None:
    assert _pod(of=task(template={"spec": given}))["spec"].get("dnsPolicy") == policy


def test_without_a_slot_it_waits_at_the_gate() -> None:
    of = task(spec={"schedulingGates": [{"name": "theirs"}]})
    made = _pod(of=of, seat=Seat(gate=True))
    assert made["spec"]["schedulingGates"] == [{"name": "theirs"}, {"name": "pumice.sh/plan"}]
    assert "affinity" not in made["spec"]


def test_with_a_slot_it_is_pinned_there() -> None:
    made = _pod(seat=Seat("n1", gate=True, generation="7"))
    required = made["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert required == {"nodeSelectorTerms": [{"matchFields": [here]}]}
    assert "schedulingGates" not in made["spec"]
    assert made["metadata"]["annotations"]["pumice.sh/plan-generation"] == "7"


def test_a_pin_keeps_the_affinity_of_the_template() -> None:
    zones = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        for zone in ("a", "b")
    ]
    affinity = {
        "podAffinity": {"x": 1},
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": zones}
        },
    }
    of = task(spec={"affinity": affinity})
    made = _pod(of=of, seat=Seat("n1"))["spec"]["affinity"]
    assert made["podAffinity"] == {"x": 1}
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = made["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"] == [{**zone, "matchFields": [here]} for zone in zones]


def test_volumes_of_the_job_are_mounted_into_every_container() -> None:
    own = {"name": "x", "mountPath": "/x"}
    containers = [{"name": "a"}, {"name": "b", "volumeMounts": [own]}]
    of = task(spec={"containers": containers})
    volumes = [
        {"mountPath": "/data", "volumeClaimName": "c"},
        {"mountPath": "/out", "volumeClaim": {}},
    ]
    spec = _pod({"volumes": volumes}, of=of)["spec"]
    first, second = spec["volumes"]
    assert first["persistentVolumeClaim"] == {"claimName": "c"}
    drawn = second["persistentVolumeClaim"]["claimName"]
    assert drawn.startswith("job-pvc-")
    assert len(drawn) == len("job-pvc-") + 12
    assert first["name"].startswith("job-")
    mounts = [
        {"name": first["name"], "mountPath": "/data"},
        {"name": second["name"], "mountPath": "/out"},
    ]
    assert spec["containers"][0]["volumeMounts"] == mounts
    assert spec["containers"][1]["volumeMounts"] == [own, *mounts]


def test_a_volume_without_any_claim_is_scratch_room() -> None:
    spec = _pod({"volumes": [{"mountPath": "/tmp/work"}]})["spec"]
    (volume,) = spec["volumes"]
    assert volume["emptyDir"] == {}
    assert [point["mountPath"] for point in spec["containers"][0]["volumeMounts"]] == ["/tmp/work"]


def test_a_claim_that_is_named_twice_is_mounted_once_and_scratch_room_each_time() -> None:
    paths = ["/a", "/b"]
    claimed = [{"mountPath": path, "volumeClaimName": "c"} for path in paths]
    scratch = [{"mountPath": f"/tmp{path}"} for path in paths]
    spec = _pod({"volumes": [*claimed, *scratch]})["spec"]
    points = [point["mountPath"] for point in spec["containers"][0]["volumeMounts"]]
    assert points == ["/a", "/tmp/a", "/tmp/b"]
    assert len({volume["name"] for volume in spec["volumes"]}) == 3


@pytest.mark.parametrize("name", ["j" * 63, "job.v1.2", f"{'j' * 49}.{'j' * 9}"])
def test_names_of_volumes_are_labels_whatever_the_job_is_called(name: str) -> None:
    volumes = [{"mountPath": "/data", "volumeClaimName": "c"}]
    (volume,) = _pod({"volumes": volumes}, name=name)["spec"]["volumes"]
    assert label_problems(volume["name"]) == []


def test_the_template_is_left_as_it_is() -> None:
    of = task()
    before = repr(of)
    _pod({"volumes": [{"mountPath": "/d"}]}, of=of, seat=Seat("n"))
    assert repr(of) == before


def test_what_nobody_knows_is_passed_on_however_deep_it_is() -> None:
    deep = task()
    deep["template"]["spec"]["unknown"] = nested(500)
    assert depth(_pod(of=deep)["spec"]["unknown"]) == 500
