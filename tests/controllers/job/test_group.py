"""The PodGroup of a job."""

import copy
from typing import Any

import pytest

from app.controllers.job import group
from app.wire.unstructured import Key, Object
from tests.controllers.job.jobs import make_job
from tests.controllers.job.rig import task
from tests.controllers.quota_names import least


def _asking(
    name: str, replicas: int, *, cpu: str, priority: str = "", **more: Any
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    }
    if priority:
        spec["priorityClassName"] = priority
    return task(name, replicas, spec=spec, **more)


def _group(spec: dict[str, Any], **metadata: Any) -> Object:
    job = make_job(spec, **metadata)
    return group.pod_group(job, name="job-u-1", priorities={"high": 100, "low": 1})


def test_its_name_carries_the_uid_and_the_older_name_is_found_too() -> None:
    job = make_job({"tasks": [task()]})
    assert group.keys(job) == (Key("ns", "job-u-1"), Key("ns", "job"))


def test_it_takes_over_what_the_job_says() -> None:
    made = _group(
        {
            "queue": "q",
            "priorityClassName": "high",
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
            "topologyAffinity": {"memberSpread": {"required": []}},
            "minAvailable": 2,
            "tasks": [task("a", 1), task("b", 3, minAvailable=1)],
        },
        labels={"l": "1"},
        annotations={"a": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    )
    assert made["metadata"]["labels"] == {"l": "1"}
    assert made["metadata"]["annotations"].keys() == {"a", "pumice.sh/job-size"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert made["spec"] == {
        "minMember": 2,
        "minTaskMember": {"a": 1, "b": 1},
        "queue": "q",
        "priorityClassName": "high",
        "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
        "topologyAffinity": {"memberSpread": {"required": []}},
        "minResources": least(2),
    }


def test_partitions_become_sub_groups() -> None:
    policy = {
        "totalPartitions": 3,
        "partitionSize": 2,
        "minPartitions": 2,
        "networkTopology": {"mode": "soft"},
    }
    made = _group({"minAvailable": 4, "tasks": [task("w", 6, partitionPolicy=policy)]})
    assert made["spec"]["minTaskMember"] == {"w": 4}
    assert made["spec"]["subGroupPolicy"] == [
        {
            "name": "w",
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "w"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "subGroupSize": 2,
            "minSubGroups": 2,
            "networkTopology": {"mode": "soft"},
        }
    ]


@pytest.mark.parametrize(
    ("needs", "first", "least"),
    [(1, 1, 0), (5, 1, 2), (1, 0, 2)],
    ids=["it comes later", "the job counts it", "it is made at once"],
)
def test_a_task_that_comes_later_keeps_no_job_from_starting(
    needs: int, first: int, least: int
) -> None:
    policy = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}
    later = task("late", 6, partitionPolicy=policy, dependsOn={"name": ["first"]})
    tasks = [task("first", 1, minAvailable=first), later]
    [part] = _group({"minAvailable": needs, "tasks": tasks})["spec"]["subGroupPolicy"]
    assert (part["subGroupSize"], part["minSubGroups"]) == (2, least)


def asks_of_rack(item: dict[str, Any], key: str = "required") -> dict[str, Any]:
    """A task whose pods have Kueue's annotation."""
    about = item["template"].setdefault("metadata", {}).setdefault("annotations", {})
    about[f"kueue.x-k8s.io/podset-{key}-topology"] = "example.com/rack"
    return item


def test_tasks_with_kueues_annotation_have_domains_of_their_own() -> None:
    tasks = [
        asks_of_rack(task("a", 3, minAvailable=2)),
        asks_of_rack(task("b", 2, minAvailable=0), "preferred"),
        task("c", 1),
    ]
    policies = _group({"minAvailable": 3, "tasks": tasks})["spec"]["subGroupPolicy"]
    assert policies == [
        {
            "name": name,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": name}},
            "matchLabelKeys": ["volcano.sh/task-spec"],
            "subGroupSize": size,
            "minSubGroups": least,
            "networkTopology": {"mode": mode, "highestTierName": "example.com/rack"},
        }
        for name, size, least, mode in (("a", 2, 1, "hard"), ("b", 1, 0, "soft"))
    ]


def test_a_job_that_says_it_itself_or_has_one_task_leaves_the_annotation_to_its_group() -> None:
    alone = _group({"tasks": [asks_of_rack(task("a", 3))]})
    topology = {"mode": "hard", "highestTierAllowed": 1}
    said = _group(
        {"networkTopology": topology, "tasks": [asks_of_rack(task("a", 3)), task("b", 1)]}
    )
    assert all("subGroupPolicy" not in made["spec"] for made in (alone, said))


_HALVES = {"totalPartitions": 3, "partitionSize": 2}


@pytest.mark.parametrize(
    ("of", "least"),
    [
        (task("w", 6), 6),
        (task("w", 6, minAvailable=3), 3),
        (task("w", 6, minAvailable=0), 0),
        (task("w", 6, partitionPolicy=_HALVES), 6),
        (task("w", 6, partitionPolicy={**_HALVES, "minPartitions": 2}), 4),
        (task("w", 6, minAvailable=5, partitionPolicy={**_HALVES, "minPartitions": 2}), 5),
    ],
    ids=["replicas", "said", "said to be none", "no minimum", "partitions", "said goes first"],
)
def test_a_task_takes_part_in_the_gang_with_its_minimum(of: Object, least: int) -> None:
    made = _group({"minAvailable": 1, "tasks": [of, task("x", 1)]})
    assert made["spec"]["minTaskMember"] == {"w": least, "x": 1}


def test_a_change_of_partitions_is_a_change_of_sub_groups() -> None:
    def made(size: int) -> Object:
        parts = {"totalPartitions": 2, "partitionSize": size}
        return _group({"minAvailable": 2, "tasks": [task("w", 2 * size, partitionPolicy=parts)]})

    change = group.change(_stored(made(2)), made(3))
    assert change is not None
    assert [part["subGroupSize"] for part in change["spec"]["subGroupPolicy"]] == [3]
    gone = group.change(_stored(made(2)), _group({"minAvailable": 2, "tasks": [task("w", 4)]}))
    assert gone == {"spec": {"subGroupPolicy": None}}


@pytest.mark.parametrize("priority", ["high", ""])
def test_a_change_of_priority_is_a_change_of_the_group(priority: str) -> None:
    before = _group({"priorityClassName": "low", "tasks": [task("a", 1)]})
    after = _group({"priorityClassName": priority, "tasks": [task("a", 1)]})
    assert group.change(_stored(before), after) == {"spec": {"priorityClassName": priority or None}}


@pytest.mark.parametrize(
    ("minimum", "tasks", "cpu"),
    [
        (3, [_asking("a", 3, cpu="1")], "3"),
        (2, [_asking("a", 3, cpu="1", minAvailable=1)], "2"),
        (2, [_asking("a", 1, cpu="1"), _asking("b", 3, cpu="500m")], "1500m"),
        (2, [_asking("a", 2, cpu="1", priority="low"), _asking("b", 2, cpu="4")], "2"),
        (2, [_asking("a", 2, cpu="1"), _asking("b", 2, cpu="4", priority="high")], "8"),
        (
            4,
            [_asking("a", 2, cpu="1", minAvailable=1), _asking("b", 2, cpu="4", minAvailable=1)],
            "10",
        ),
        (
            3,
            [
                _asking("a", 2, cpu="1", minAvailable=1),
                _asking("b", 2, cpu="4", minAvailable=1, priority="high"),
            ],
            "9",
        ),
        (3, [_asking("a", 4, cpu="1", minAvailable=4), _asking("b", 1, cpu="4")], "3"),
        (
            2,
            [_asking("a", 4, cpu="1", minAvailable=1), _asking("b", 4, cpu="4", minAvailable=1)],
            "5",
        ),
        (
            2,
            [_asking("a", 2, cpu="1", priority="nobody knows"), _asking("b", 1, cpu="4")],
            "2",
        ),
        (1, [_asking("a", 1, cpu="1"), _asking("b", 0, cpu="4", priority="high")], "1"),
        (5, [_asking("a", 2, cpu="1", minAvailable=1), _asking("b", 3, cpu="4")], "14"),
    ],
)
def test_its_resources_are_those_of_the_pods_it_cannot_do_without(
    minimum: int, tasks: list[Any], cpu: str
) -> None:
    made = _group({"minAvailable": minimum, "tasks": tasks})
    assert made["spec"]["minResources"] == least(minimum, cpu=cpu, memory=f"{minimum}Gi")


def test_all_that_quotas_count_is_told_by_their_names() -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    spec = {"containers": [{"name": "c", "resources": resources}]}
    made = _group({"minAvailable": 2, "tasks": [task(replicas=3, spec=spec)]})
    limits = {"cpu": "4", "memory": "2Gi"}
    assert made["spec"]["minResources"] == least(2, cpu="2", memory="2Gi", limits=limits)


def test_devices_are_told_by_both_names() -> None:
    wanted = {"nvidia.com/gpu": 2, "hugepages-2Mi": "4Mi", "memory": "1Gi"}
    spec = {"containers": [{"name": "c", "resources": {"requests": wanted, "limits": wanted}}]}
    made = _group({"minAvailable": 3, "tasks": [task(replicas=3, spec=spec)]})
    asked = {"nvidia.com/gpu": "6", "hugepages-2Mi": "12Mi", "memory": "3Gi"}
    assert made["spec"]["minResources"] == least(3, **asked, limits={"memory": "3Gi"})


def test_a_template_that_cannot_be_read_asks_for_nothing() -> None:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]}
    made = _group({"minAvailable": 2, "tasks": [task(spec=spec)]})
    assert made["spec"]["minResources"] == {}


_ASKED = ("cpu", "memory", "requests.cpu", "requests.memory")


def _stored(made: Object) -> Object:
    """As the API server has it, defaults filled in."""
    spec = copy.deepcopy(made["spec"])
    for holder in (spec, *spec.get("subGroupPolicy", ())):
        if "networkTopology" in holder:
            holder["networkTopology"] = {"mode": "hard", **holder["networkTopology"]}
    return {"metadata": made["metadata"], "spec": spec, "status": {"phase": "Running"}}


def test_a_group_that_is_up_to_date_is_left_alone() -> None:
    topology = {"networkTopology": {"highestTierAllowed": 1}}
    parts = {"totalPartitions": 2, "partitionSize": 1, **topology}
    made = _group({**topology, "tasks": [_asking("a", 2, cpu="1", partitionPolicy=parts)]})
    assert group.change(_stored(made), made) is None


def test_a_change_names_only_what_differs() -> None:
    before = _group({"minAvailable": 2, "tasks": [_asking("a", 2, cpu="1")]})
    after = _group({"minAvailable": 3, "tasks": [_asking("a", 3, cpu="1")]})
    size = after["metadata"]["annotations"]["pumice.sh/job-size"]
    assert group.change(_stored(before), after) == {
        "metadata": {"annotations": {"pumice.sh/job-size": size}},
        "spec": {
            "minMember": 3,
            "minTaskMember": {"a": 3},
            "minResources": least(3, cpu="3", memory="3Gi"),
        },
    }


def test_the_queue_that_admission_gave_it_stays() -> None:
    made = _group({"queue": "default", "tasks": [task("a", 1)]})
    stored = _stored(made)
    stored["spec"]["queue"] = "of-the-namespace"
    assert group.change(stored, made) is None


def test_a_job_that_needs_no_pod_any_more_has_a_group_that_needs_none() -> None:
    tasks = [_asking("a", 2, cpu="1")]
    change = group.change(
        _stored(_group({"tasks": tasks})), _group({"minAvailable": 0, "tasks": tasks})
    )
    assert change is not None
    assert change["spec"] == {"minMember": 0, "minResources": least(0, cpu="0", memory="0")}


def test_a_change_takes_away_what_is_no_longer_said() -> None:
    before = _group({"priorityClassName": "high", "tasks": [_asking("a", 1, cpu="1")]})
    after = _group({"tasks": [task("a", 1)]})
    assert group.change(_stored(before), after) == {
        "spec": {
            "minResources": {**least(1), **dict.fromkeys(_ASKED)},
            "priorityClassName": None,
        }
    }


@pytest.mark.parametrize(
    ("phase", "admitted"),
    [
        (None, False),
        ("", False),
        ("Pending", False),
        ("Inqueue", True),
        ("Running", True),
        ("Unknown", True),
        ("Completed", True),
    ],
)
def test_pods_are_made_from_inqueue_on(phase: str | None, admitted: bool) -> None:
    status = {} if phase is None else {"phase": phase}
    assert group.is_admitted({"status": status}) is admitted


def test_why_it_waits_is_its_newest_true_condition() -> None:
    conditions = [
        {"status": "True", "message": "old", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"status": "True", "message": "new", "lastTransitionTime": "2026-01-02T00:00:00Z"},
        {"status": "False", "message": "no", "lastTransitionTime": "2026-01-03T00:00:00Z"},
    ]
    waiting = {"status": {"conditions": conditions}}
    job = make_job({"tasks": [task()]})
    assert group.waiting_message(job, waiting) == "PodGroup ns:job unschedulable, reason: new"
    assert group.waiting_message(job, {}) == ""


@pytest.mark.parametrize(
    ("unschedulable", "scheduled", "told"),
    [
        ("01T00:00:00Z", "02T00:00:00Z", False),
        ("02T00:00:00Z", "01T00:00:00Z", True),
        ("01T00:00:00Z", "01T00:00:00Z", True),
    ],
)
def test_a_group_that_is_scheduled_now_waits_for_nothing(
    unschedulable: str, scheduled: str, told: bool
) -> None:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": f"2026-01-{at}"}
        for kind, at in (("Scheduled", scheduled), ("Unschedulable", unschedulable))
    ]
    job = make_job({"tasks": [task()]})
    assert bool(group.waiting_message(job, {"status": {"conditions": conditions}})) is told


@pytest.mark.parametrize(("status", "told"), [("False", "no room"), ("True", "")])
def test_the_absence_of_room_tells_why_a_group_waits(status: str, told: str) -> None:
    conditions = [{"type": "Reserved", "status": status, "message": "no room"}]
    message = group.waiting_message(
        make_job({"tasks": [task()]}), {"status": {"conditions": conditions}}
    )
    assert message.endswith(told)
    assert bool(message) is bool(told)


@pytest.mark.parametrize("kind", ["subGroupAffinity", "subGroupAntiAffinity"])
@pytest.mark.parametrize("how", ["required", "preferred"])
def test_a_task_that_a_term_names_is_a_sub_group(kind: str, how: str) -> None:
    affinity = {kind: {how: [{"subGroups": ["b"], "topologyTier": 1}]}}
    spec = {"topologyAffinity": affinity, "tasks": [task("a", 2), task("b", 3, minAvailable=2)]}
    assert _group(spec)["spec"]["subGroupPolicy"] == [
        {
            "name": "b",
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "b"}},
            "matchLabelKeys": ["volcano.sh/task-spec"],
            "subGroupSize": 2,
            "minSubGroups": 1,
        }
    ]
