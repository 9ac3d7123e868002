"""Of a pod as an informer brings it controllers read what they would off the whole pod."""

import msgspec
import pytest

from app.controllers.job.members import Member, members
from app.controllers.podgroup.group import group_for, key_for, wants_group
from app.model.reason import TAKEN
from app.wire.errors import DecodeError
from app.wire.objects.followed_pods import read_followed_pod
from app.wire.unstructured import Object, labels, status, version
from tests.controllers.quota_names import least

ON_ONE_NODE = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    ]
}

WHOLE: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train-worker-3",
        "generateName": "train-",
        "namespace": "team",
        "uid": "uid-of-the-pod",
        "resourceVersion": "41",
        "generation": 2,
        "creationTimestamp": "2026-11-20T08:00:00Z",
        "deletionTimestamp": "2026-11-20T09:00:30Z",
        "deletionGracePeriodSeconds": 30,
        "labels": {"volcano.sh/task-spec": "worker", "volcano.sh/preemptable": "true"},
        "annotations": {
            "volcano.sh/task-spec": "worker",
            "volcano.sh/task-index": "3",
            "volcano.sh/job-version": "2",
            "scheduling.volcano.sh/queue-name": "night",
        },
        "ownerReferences": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": "train",
                "uid": "uid-of-the-job",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [{"manager": "pumice", "operation": "Update"}],
    },
    "spec": {
        "schedulerName": "volcano",
        "priorityClassName": "high",
        "nodeSelector": {"disk": "fast"},
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ON_ONE_NODE},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []},
        },
        "volumes": [{"name": "data", "emptyDir": {}}],
        "initContainers": [
            {
                "name": "proxy",
                "image": "b",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "2"}},
            },
            {"name": "fetch", "image": "a", "resources": {"requests": {"cpu": "3"}}},
        ],
        "containers": [
            {
                "name": "main",
                "image": "c",
                "env": [{"name": "RANK", "value": "3"}],
                "resources": {
                    "requests": {"cpu": "1"},
                    "limits": {"cpu": "2", "nvidia.com/gpu": "2"},
                },
            }
        ],
        "resources": {"requests": {"memory": "1Gi"}},
        "overhead": {"memory": "64Mi"},
        "tolerations": [{"operator": "Exists"}],
    },
    "status": {
        "phase": "Pending",
        "podIP": "10.1.0.1",
        "qosClass": "Burstable",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/1 nodes are available",
                "lastTransitionTime": "2026-11-20T08:00:01Z",
            }
        ],
        "initContainerStatuses": [
            {"name": "fetch", "ready": True, "restartCount": 2, "state": {"running": {}}}
        ],
        "containerStatuses": [
            {
                "name": "main",
                "ready": False,
                "restartCount": 1,
                "state": {
                    "terminated": {
                        "exitCode": 137,
                        "reason": "OOMKilled",
                        "finishedAt": "2026-11-20T08:59:00Z",
                    }
                },
            }
        ],
    },
}
SPEC, STATUS = WHOLE["spec"], WHOLE["status"]
ROOM_TAKEN = {"type": "PodScheduled", "status": "False", "reason": "Error", "message": TAKEN}
LIVING = {key: value for key, value in WHOLE["metadata"].items() if not key.startswith("deletion")}


def followed(pod: Object) -> Object:
    return read_followed_pod(msgspec.json.encode(pod))


def facts(pod: Object) -> dict[str, object]:
    """Everything that the job controller reads of a member."""
    (member,) = members([pod])
    names = [name for name in dir(Member) if not name.startswith("_") and name != "item"]
    read = {name: getattr(member, name) for name in names}
    del read["spec"]
    return read


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(WHOLE, id="going"),
        pytest.param(WHOLE | {"metadata": LIVING}, id="refused its node"),
        pytest.param(
            WHOLE
            | {
                "metadata": LIVING,
                "spec": SPEC | {"schedulingGates": [{"name": "pumice.sh/plan"}]},
            },
            id="at the gate",
        ),
        pytest.param(
            WHOLE
            | {"metadata": LIVING, "spec": SPEC | {"nodeName": "node-1"}}
            | {"status": STATUS | {"phase": "Failed"}},
            id="bound and failed",
        ),
        pytest.param(
            WHOLE | {"metadata": LIVING, "status": STATUS | {"conditions": [ROOM_TAKEN]}},
            id="its room was taken",
        ),
        pytest.param(
            WHOLE | {"status": {"phase": "Running", "containerStatuses": [{"ready": True}]}},
            id="up",
        ),
        pytest.param({"metadata": LIVING}, id="with nothing else"),
        pytest.param({"metadata": LIVING, "spec": {}, "status": {}}, id="with empty parts"),
    ],
)
def test_members_are_the_same(pod: Object) -> None:
    assert facts(followed(pod)) == facts(pod)


def test_the_facts_tell_something() -> None:
    assert facts(WHOLE | {"metadata": LIVING})["refused_node"] == "node-1"
    assert facts(WHOLE)["restarts"] == 3
    assert facts(WHOLE)["exit_code"] == 137
    assert not facts(WHOLE)["is_up"]


def test_its_group_is_the_same() -> None:
    pod = WHOLE | {"metadata": LIVING}
    brief = followed(pod)
    assert group_for(brief, None, inherit=True) == group_for(pod, None, inherit=True)
    assert key_for(brief) == key_for(pod)
    assert wants_group(brief, frozenset({"volcano"}))
    assert group_for(brief, None, inherit=True)["spec"]["minResources"] == least(
        1, **{"cpu": "5", "memory": "1088Mi", "nvidia.com/gpu": "2"}, limits={"cpu": "2"}
    )


def test_what_probes_and_events_need_is_there() -> None:
    brief = followed(WHOLE)
    assert (brief["apiVersion"], brief["kind"]) == ("v1", "Pod")
    assert status(brief)["podIP"] == "10.1.0.1"
    assert labels(brief) == WHOLE["metadata"]["labels"]
    assert version(brief) == "41"


def test_nobody_keeps_the_rest() -> None:
    brief = followed(WHOLE)
    assert "managedFields" not in brief["metadata"]
    assert brief["spec"].keys().isdisjoint({"volumes", "tolerations", "nodeSelector"})
    assert "env" not in brief["spec"]["containers"][0]


def test_what_is_no_pod_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"spec\.containers"):
        followed({"metadata": LIVING, "spec": {"containers": "none"}})
