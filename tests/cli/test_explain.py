"""``pumice explain``: from objects alone, and with what the extender says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from app.cli.standalone import PROGRAMS
from app.kube import errors
from app.kube.client import ApiClient
from app.wire.kinds import JOBS, POD_GROUPS, QUEUES
from tests.cli.stand import Object, Stand, answering, event, group, job, pod, queue

MEMBER = {"role": "work", "stage": "waiting", "node": ""}
STORY: dict[str, Any] = {
    "group": "default/a-1",
    "queue": "default",
    "phase": "Inqueue",
    "summary": "group a: 2 of 3 members find no place",
    "min_member": 3,
    "counts": {},
    "slots": {"work": ["n1"]},
    "reason": {
        "cause": "NotEnoughResources",
        "where": "default/a",
        "shortfalls": [{"resource": "cpu", "asked": 3000, "free": 1500, "limit": 8000}],
        "nodes": [{"text": "Insufficient cpu", "nodes": 2}],
        "total_nodes": 3,
        "holders": [{"who": "default/b", "resource": "memory", "amount": 1 << 30}],
        "detail": "",
        "lacking": 2,
    },
    "story": [
        {
            "at": 1700000000.0,
            "stimulus": "cycle",
            "generation": 7,
            "before": "Pending",
            "after": "Inqueue",
            "node": "",
            "why": "",
        }
    ],
    "members": [{"pod": f"default/a-work-{i}", "gates": ["g"], **MEMBER} for i in range(22)],
}


AGAINST = {
    "type": "Unschedulable",
    "status": "True",
    "reason": "NotEnoughResources",
    "message": "3/3 tasks in gang unschedulable",
    "lastTransitionTime": "2023-11-14T22:13:20Z",
}


def waiting(stand: Stand, *conditions: Object, **spec: object) -> Object:
    """A job in an open queue whose group has those conditions."""
    made, _ = stand.create(job("a", **spec), queue("default"))
    stand.status(QUEUES, "default", {"state": "Open"})
    name = f"a-{made['metadata']['uid']}"
    stand.create(group(name, phase="Pending", conditions=conditions, minResources=LEAST))
    return made


LEAST = {"cpu": "3", "requests.cpu": "3", "pods": "2", "count/pods": "2"}
"""As controllers write it; a page for people names every resource once."""


GROUP_MISSING = "default/not-there: waiting for the pod group to exist"
"""The sentence of the extender, in its answers and on pods."""

LONELY = {
    **STORY,
    "group": "default/not-there",
    "phase": "Pending",
    "summary": GROUP_MISSING,
    "slots": {},
    "reason": {"cause": "PodGroupMissing", "where": "default/not-there"},
    "members": [{"pod": "default/p", "gates": ["pumice.sh/plan"], **MEMBER}],
}


def gated(*conditions: Object) -> Object:
    """A pod behind the gate whose PodGroup does not exist."""
    behind = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
    made = pod(
        "p",
        annotations={"scheduling.k8s.io/group-name": "not-there"},
        status={"phase": "Pending", "conditions": [behind, *conditions]},
    )
    return {**made, "spec": {**made["spec"], "schedulingGates": [{"name": "pumice.sh/plan"}]}}


def put(stand: Stand, item: Object) -> None:
    """Create a pod with the status that it has: the API server takes none from who creates it."""
    [made] = stand.create(item)
    stand.server.store.put("/pods", {**made, "status": item["status"]})


def placed(status: str, reason: str, message: str) -> Object:
    """What the extender writes on pods behind the gate."""
    return {"type": "pumice.sh/Placed", "status": status, "reason": reason, "message": message}


def first(stand: Stand, *arguments: str) -> str:
    return stand.printed("explain", *arguments).splitlines()[0]


def test_the_first_line_is_the_answer_and_the_rest_the_evidence(stand: Stand) -> None:
    made = waiting(stand, AGAINST)
    told = event(made, "ExecuteAction", "Start", count=2, type="Warning")
    stand.create(told, pod("a-work-0", labels={"volcano.sh/job-name": "a"}))
    lines = stand.printed("explain", "a").splitlines()
    assert lines[:8] == [
        "job default/a is Pending: 3/3 tasks in gang unschedulable",
        "",
        "Reason:     NotEnoughResources",
        "Next step:  wait for running jobs to end, or ask for less per pod",
        "Job:        default/a, 3 pods in all",
        f"PodGroup:   a-{made['metadata']['uid']}, Pending, needs 2 pods at once (cpu=3)",
        "Queue:      default, Open, holds <none>, capability <none>",
        "Pods:       1 Pending",
    ]
    assert lines[8] == "Source:     conditions and events in the API server"
    assert lines[10].split() == ["Age", "Type", "Reason", "Message"]
    assert lines[11].split()[-3:] == ["Warning", "ExecuteAction", "Start"]


def test_the_extender_knows_the_numbers(stand: Stand) -> None:
    made = waiting(stand, AGAINST)
    with answering(json.dumps(STORY).encode()) as (url, asked):
        lines = stand.printed("explain", "job/a", "--extender-url", f"{url}/").splitlines()
    assert asked == [f"/explain/default/a-{made['metadata']['uid']}"]
    assert lines[0] == "job default/a is Pending: group a: 2 of 3 members find no place"
    assert lines[2:8] == [
        "Reason:     NotEnoughResources",
        "            cpu: asked 3, free 1500m of 8",
        "            2 of 3 nodes: Insufficient cpu",
        "            default/b holds memory 1Gi",
        "Outlook:    not yet: it can run once that has changed",
        "Next step:  wait for running jobs to end, or ask for less per pod",
    ]
    assert lines[12] == f"Source:     the extender at {url}/"
    assert lines[14].split() == ["Pod", "Role", "Stage", "Node", "Gates", "Verdict"]
    assert lines[15].split() == ["default/a-work-0", "work", "waiting", "-", "g", "-"]
    assert lines[-1] == "... and 2 more pods (-o json shows all)"


def test_nodes_narrow_down_and_members_tell_whether_they_fit(stand: Stand) -> None:
    waiting(stand, AGAINST)
    steps = [("nodes", 8), ("ready", 8), ("with room for one now", 2)]
    funnel = {
        "role": "work",
        "lacking": 4,
        "fit": 3,
        "steps": [{"text": text, "nodes": count} for text, count in steps],
    }
    member = {**STORY["members"][0], "verdict": "room for 3 of 4"}
    told = {**STORY, "funnels": [funnel], "members": [member]}
    with answering(json.dumps(told).encode()) as (url, _):
        text = stand.printed("explain", "job/a", "--extender-url", url)
    line = "work: 8 nodes -> 8 ready -> 2 with room for one now; 4 needed, room for 3"
    assert f"Nodes:      {line}\n" in text
    assert "room for 3 of 4" in text


def test_changes_that_the_extender_tried_are_told_on_demand(stand: Stand) -> None:
    waiting(stand, AGAINST)
    changes = [{"kind": "fewerMembers", "text": "run with 2 members"}, {"kind": "x", "text": "y"}]
    told = {**STORY, "changes": changes, "tried": 5}
    with answering(json.dumps(told).encode()) as (url, asked):
        text = stand.printed("explain", "job/a", "--advice", "--extender-url", url)
        assert [path.split("/")[1] for path in asked] == ["explain", "advice"]
    assert "Runs now:   if you run with 2 members\n            if you y\n" in text
    with answering(json.dumps({**STORY, "changes": [], "tried": 5}).encode()) as (url, _):
        text = stand.printed("explain", "job/a", "--advice", "--extender-url", url)
    assert "Runs now:   with none of the 5 changes tried\n" in text


@pytest.mark.parametrize(
    ("answer", "status"), [(b"no such group\n", 404), (b"[", 200), (b"busy", 503)]
)
def test_an_extender_that_does_not_tell_is_no_failure(
    answer: bytes, status: int, stand: Stand
) -> None:
    waiting(stand, AGAINST)
    with answering(answer, status) as (url, _):
        shown = yaml.safe_load(stand.printed("explain", "a", "--extender-url", url, "-o", "yaml"))
    assert shown["reason"] == "NotEnoughResources"
    assert shown["source"].endswith(f"; the extender at {url} does not tell")


def test_a_proxy_of_the_environment_is_not_asked_for_an_extender_of_this_machine(
    stand: Stand,
) -> None:
    waiting(stand, AGAINST)
    with answering(json.dumps(STORY).encode()) as (url, asked):
        done = stand.run(
            "explain", "job/a", "--extender-url", url, env={"HTTP_PROXY": "http://127.0.0.1:1"}
        )
    assert (done.code, done.err, len(asked)) == (0, "", 1)
    assert f"Source:     the extender at {url}\n" in done.out


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "socks5://127.0.0.1:1", "nonsense"])
def test_an_extender_behind_a_proxy_that_does_not_work_is_no_failure(
    proxy: str, stand: Stand
) -> None:
    waiting(stand, AGAINST)
    url = "http://extender.invalid"
    done = stand.run("explain", "a", "--extender-url", url, env={"ALL_PROXY": proxy})
    assert (done.code, done.err) == (0, "")
    assert f"; the extender at {url} does not tell\n" in done.out


def test_an_extender_that_is_not_there_is_no_failure(stand: Stand) -> None:
    waiting(stand, AGAINST)
    done = stand.run("explain", "a", env={"PUMICE_EXTENDER_URL": "http://127.0.0.1:1"})
    assert (done.code, done.err) == (0, "")
    assert "NotEnoughResources" in done.out


@pytest.mark.parametrize("url", ["nonsense", "http://[", "ftp://x", " ", "#", "http://x:99999"])
def test_an_address_that_nobody_can_call_is_bad_usage(url: str, stand: Stand) -> None:
    waiting(stand, AGAINST)
    done = stand.run("explain", "a", env={"PUMICE_EXTENDER_URL": url})
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1] == (
        "Error: Invalid value for '--extender-url' (env var: 'PUMICE_EXTENDER_URL'): "
        f"{url!r} is no http or https URL, such as http://host:port"
    )


def test_programs_get_everything(stand: Stand) -> None:
    made = waiting(stand, AGAINST)
    stand.create(event(made, "ExecuteAction", "Start"))
    with answering(json.dumps(STORY).encode()) as (url, _):
        shown = json.loads(stand.printed("explain", "a", "--extender-url", url, "-o", "json"))
    assert shown["numbers"] == STORY["reason"]
    assert shown["slots"] == {"work": ["n1"]}
    assert len(shown["members"]) == 22
    assert shown["story"] == STORY["story"]
    assert shown["conditions"] == [AGAINST]
    assert (shown["queue"], shown["queueState"]) == ("default", "Open")
    assert [each["object"] for each in shown["events"]] == ["job/a"]


NETWORK = "spine (tier 2); tier 1 could hold all: rack-7 lacks nvidia.com/gpu 3"


def test_where_a_group_is_in_the_network_is_told_as_the_extender_says_it(stand: Stand) -> None:
    waiting(stand)
    with answering(json.dumps({**STORY, "network": NETWORK}).encode()) as (url, _):
        page = stand.printed("explain", "a", "--extender-url", url)
        shown = json.loads(stand.printed("explain", "a", "--extender-url", url, "-o", "json"))
    assert f"Network:    {NETWORK}\n" in page
    assert shown["network"] == NETWORK


def test_limits_of_resources_that_no_node_has_are_told(stand: Stand) -> None:
    note = "capability of queue default: no node has memroy, so it counts for nothing until one has"
    waiting(stand)
    with answering(json.dumps({**STORY, "notes": [note]}).encode()) as (url, _):
        page = stand.printed("explain", "a", "--extender-url", url)
        shown = json.loads(stand.printed("explain", "a", "--extender-url", url, "-o", "json"))
    assert f"Note:       {note}\n" in page
    assert shown["notes"] == [note]


def test_without_the_extender_the_annotation_tells_the_domain_of_a_group(stand: Stand) -> None:
    there = group("g")
    there["metadata"]["annotations"] = {"volcano.sh/job-allocated-hypernode": "rack-7"}
    stand.create(queue("default"), there, group("h"))
    assert "Network:    rack-7\n" in stand.printed("explain", "podgroup/g")
    assert "Network:" not in stand.printed("explain", "podgroup/h")


def test_a_group_and_a_pod_lead_to_the_same_reason(stand: Stand) -> None:
    stand.create(
        queue("default"),
        group("g", phase="Pending", conditions=[AGAINST]),
        pod("p", annotations={"scheduling.k8s.io/group-name": "g"}),
        pod("other"),
    )
    stand.status(QUEUES, "default", {"state": "Open"})
    why = "3/3 tasks in gang unschedulable"
    assert first(stand, "g") == f"podgroup default/g is Pending: {why}"
    assert first(stand, "pg/g") == f"podgroup default/g is Pending: {why}"
    assert first(stand, "pod/p") == f"pod default/p is Pending: {why}"
    assert "Pods:       1 Pending\n" in stand.printed("explain", "podgroup/g")
    assert first(stand, "other").startswith("pod default/other is Pending: pod default/other: the ")


def test_a_pod_is_said_to_be_in_its_own_phase(stand: Stand) -> None:
    stand.create(
        queue("default"),
        group("g", phase="Unknown", conditions=[AGAINST]),
        pod("p", annotations={"scheduling.k8s.io/group-name": "g"}),
    )
    stand.status(QUEUES, "default", {"state": "Open"})
    assert first(stand, "pod/p").startswith("pod default/p is Pending: ")
    assert json.loads(stand.printed("explain", "pod/p", "-o", "json"))["phase"] == "Pending"
    assert "PodGroup:   g, Unknown, " in stand.printed("explain", "pod/p")


@pytest.mark.parametrize("reason", ["PodGroupPending", "Unschedulable", "FailedScheduling"])
def test_the_event_of_a_wait_that_is_over_is_no_reason(stand: Stand, reason: str) -> None:
    made = waiting(stand)
    stand.status(JOBS, "a", {"state": {"phase": "Running"}})
    stand.status(POD_GROUPS, f"a-{made['metadata']['uid']}", {"phase": "Running"})
    stand.create(event(made, reason, "queue default: cpu asked 8, free 0 of 8", type="Warning"))
    assert first(stand, "a") == "job default/a is Running: nothing is missing"


def test_another_warning_before_the_event_of_a_wait_that_is_over_is_one(stand: Stand) -> None:
    made = waiting(stand)
    stand.status(JOBS, "a", {"state": {"phase": "Running"}})
    stand.status(POD_GROUPS, f"a-{made['metadata']['uid']}", {"phase": "Running"})
    later = "2030-01-01T00:00:00Z"
    stand.create(
        event(made, "PluginError", "the svc plugin failed", type="Warning"),
        event(made, "PodGroupPending", "it waits", type="Warning", lastTimestamp=later),
    )
    assert first(stand, "a") == "job default/a is Running: the svc plugin failed"


def test_the_last_condition_that_speaks_against_it_counts(stand: Stand) -> None:
    later = {
        "type": "Reserved",
        "status": "False",
        "reason": "QueueQuota",
        "message": "queue default: cpu asked 3, free 1",
        "lastTransitionTime": "2023-11-14T22:14:20Z",
    }
    met = {**later, "type": "Scheduled", "status": "True", "message": "fine"}
    waiting(stand, later, AGAINST, met)
    assert first(stand, "a") == "job default/a is Pending: queue default: cpu asked 3, free 1"


@pytest.mark.parametrize("second", ["13:19", "13:20", "13:21"], ids=["before", "with", "after"])
def test_the_room_that_is_not_reserved_says_why_whenever_it_was_written(
    second: str, stand: Stand
) -> None:
    """`Unschedulable` has one reason for all that lacks room, as in Volcano."""
    reserved = {
        "type": "Reserved",
        "status": "False",
        "reason": "QueueQuota",
        "message": "queue default: cpu asked 3, free 1",
        "lastTransitionTime": f"2023-11-14T22:{second}Z",
    }
    waiting(stand, AGAINST, reserved)
    lines = stand.printed("explain", "a").splitlines()
    assert lines[0] == "job default/a is Pending: queue default: cpu asked 3, free 1"
    assert lines[2:4] == [
        "Reason:     QueueQuota",
        "Next step:  wait for jobs of the queue to end, or raise its capability",
    ]


COOLING = {
    **AGAINST,
    "type": "Reserved",
    "status": "False",
    "reason": "CoolingDown",
    "message": "its places were not used in time",
}


def test_a_job_that_waits_for_itself_is_told_so(stand: Stand) -> None:
    (first_task,) = job("a")["spec"]["tasks"]
    later = {**first_task, "name": "later", "dependsOn": {"name": ["work"]}}
    waiting(stand, COOLING, tasks=[first_task, later], minAvailable=6)
    step = (
        "spec.minAvailable: 6 takes pods of later, which wait for other tasks, and none runs "
        "before all 6 are there: lower it, so that the first tasks are enough"
    )
    assert f"\nNext step:  {step}\n" in stand.printed("explain", "a")


def test_another_job_may_wait_until_it_is_planned_again(stand: Stand) -> None:
    waiting(stand, COOLING)
    assert "\nNext step:  wait, Pumice plans the group again" in stand.printed("explain", "a")


def test_a_condition_that_is_only_taken_back_does_not_say_why(stand: Stand) -> None:
    back = {**AGAINST, "type": "Scheduled", "status": "False", "reason": "Unschedulable"}
    waiting(stand, {**back, "message": ""}, AGAINST)
    assert first(stand, "a") == "job default/a is Pending: 3/3 tasks in gang unschedulable"


def test_a_queue_that_is_missing_or_shut_goes_before_conditions(stand: Stand) -> None:
    waiting(stand, AGAINST)
    stand.status(QUEUES, "default", {"state": "Closed"})
    text = stand.printed("explain", "a")
    assert text.startswith("job default/a is Pending: queue default is Closed\n")
    step = "open the queue: pumice queue operate --action open --name default"
    assert f"Next step:  {step}\n" in text
    stand.create(job("b", queue="none"))
    assert first(stand, "b") == "job default/b is Pending: queue none does not exist"


def test_a_job_that_has_ended_says_how(stand: Stand) -> None:
    waiting(stand, AGAINST)
    state = {"phase": "Failed", "reason": "TooFewSucceeded", "message": "0 of 3 succeeded"}
    stand.status(JOBS, "a", {"state": state})
    assert first(stand, "a") == "job default/a is Failed: 0 of 3 succeeded"
    stand.status(JOBS, "a", {"state": {"phase": "Completed", "message": None}})
    assert first(stand, "a") == "job default/a is Completed: the job has ended: Completed"


CONTAINER = {"name": "c", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
NO_IMAGE = {"waiting": {"reason": "ErrImagePull"}}


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (
            {
                "phase": "Pending",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available",
                    }
                ],
            },
            "pod default/a-0: 0/3 nodes are available",
        ),
        (
            {
                "phase": "Pending",
                "containerStatuses": [
                    {**CONTAINER, "state": {"waiting": {"reason": "ErrImagePull"}}}
                ],
            },
            "pod default/a-0: container c: ErrImagePull",
        ),
    ],
    ids=["not scheduled", "no image"],
)
def test_a_pod_may_be_what_waits(status: Object, why: str, stand: Stand) -> None:
    waiting(stand)
    item = pod("a-0", labels={"volcano.sh/job-name": "a"})
    put(stand, {**item, "status": status})
    assert first(stand, "a") == f"job default/a is Pending: {why}"


def test_the_extender_is_asked_about_a_pod_without_its_group(stand: Stand) -> None:
    put(stand, gated())
    with answering(json.dumps(LONELY).encode()) as (url, asked):
        lines = stand.printed("explain", "pod/p", "--extender-url", url).splitlines()
    assert asked == ["/explain/default/p"]
    assert lines[:6] == [
        f"pod default/p is SchedulingGated: {GROUP_MISSING}",
        "",
        "Reason:     PodGroupMissing",
        "Outlook:    not yet: it can run once that has changed",
        "Next step:  create the PodGroup that the pods name",
        "Pods:       1 SchedulingGated",
    ]
    assert lines[6] == f"Source:     the extender at {url}"


def test_the_story_of_a_group_that_has_the_name_of_the_pod_is_another_one(stand: Stand) -> None:
    put(stand, gated(placed("False", "PodGroupMissing", GROUP_MISSING)))
    with answering(json.dumps({**LONELY, "members": []}).encode()) as (url, _):
        shown = json.loads(stand.printed("explain", "p", "--extender-url", url, "-o", "json"))
    assert (shown["reason"], shown["numbers"]) == ("PodGroupMissing", {})
    assert shown["source"].endswith(f"; the extender at {url} does not tell")


@pytest.mark.parametrize(
    ("reason", "message", "step"),
    [
        ("PodGroupMissing", GROUP_MISSING, "create the PodGroup that the pods name"),
        (
            "PodGroupMissing",
            "default/p: waiting for the pod group of ReplicaSet web to exist",
            "see in the events of its pods why the controllers do not make it, and that they run",
        ),
        ("QueueMissing", "queue none does not exist", "create the queue, or name another one"),
    ],
)
def test_why_a_pod_is_behind_the_gate_is_on_the_pod_itself(
    reason: str, message: str, step: str, stand: Stand
) -> None:
    put(stand, gated(placed("False", reason, message)))
    lines = stand.printed("explain", "p").splitlines()
    assert lines[0] == f"pod default/p is SchedulingGated: {message}"
    assert lines[2:4] == [f"Reason:     {reason}", f"Next step:  {step}"]


def test_what_the_extender_says_of_one_pod_goes_before_the_gates_of_all(stand: Stand) -> None:
    waiting(stand)
    told = placed("False", "NotEnoughResources", "cluster: cpu asked 3, free 1")
    for name, item in (("a-0", gated()), ("a-1", gated(told))):
        labelled = {**item["metadata"], "name": name, "labels": {"volcano.sh/job-name": "a"}}
        put(stand, {**item, "metadata": labelled})
    assert first(stand, "a") == "job default/a is Pending: cluster: cpu asked 3, free 1"


def test_a_pod_that_has_a_place_no_longer_waits_for_one(stand: Stand) -> None:
    put(stand, gated(placed("True", "Planned", "planned on n1")))
    said = "pod default/p has its place, and its gate is to be opened"
    assert first(stand, "p") == f"pod default/p is SchedulingGated: {said}"


def test_what_else_there_is_to_say(stand: Stand) -> None:
    [made, _] = stand.create(job("a"), queue("default"))
    stand.status(QUEUES, "default", {"state": "Open"})
    none = "the job has no PodGroup yet; are the controllers running?"
    assert first(stand, "a") == f"job default/a is Pending: {none}"
    name = f"a-{made['metadata']['uid']}"
    stand.create(group(name))
    unseen = "the PodGroup has no phase yet; is the extender running?"
    assert first(stand, "a") == f"job default/a is Pending: {unseen}"
    stand.create(event(made, "PluginError", "no such plugin", type="Warning"))
    assert first(stand, "a") == "job default/a is Pending: no such plugin"


def test_who_may_see_little_still_gets_an_answer(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = waiting(stand, AGAINST)
    stand.create(event(made, "ExecuteAction", "Start"))
    get, pages = ApiClient.get, ApiClient.list

    async def narrow_get(client: ApiClient, path: str) -> bytes:
        if "/queues/" in path:
            raise errors.Forbidden("queues is forbidden", status=403)
        return await get(client, path)

    def narrow_list(client: ApiClient, path: str, params: dict[str, str]) -> AsyncIterator[bytes]:
        if path.endswith("/events"):
            raise errors.Forbidden("events is forbidden", status=403)
        return pages(client, path, params)

    monkeypatch.setattr(ApiClient, "get", narrow_get)
    monkeypatch.setattr(ApiClient, "list", narrow_list)
    warned = "Warning: events are not shown: events is forbidden\n"
    done = stand.run("explain", "a")
    assert (done.code, done.err) == (0, warned)
    text = done.out
    assert text.startswith("job default/a is Pending: 3/3 tasks in gang unschedulable\n")
    assert "Queue:      default, not to be seen\n" in text
    assert "ExecuteAction" not in text
    viewed = stand.run("job", "view", "-N", "a")
    assert (viewed.code, viewed.err) == (0, warned)
    assert viewed.out.endswith("Events: \t<not to be seen>\n")
    named = stand.run("-n", "a", program=PROGRAMS["vjobs"])
    assert (named.out.splitlines()[-1], named.err) == (viewed.out.splitlines()[-1], warned)


def test_a_suspended_job_is_said_to_be_and_how_it_goes_on(stand: Stand) -> None:
    stand.create(job("a"))
    state = {"phase": "Aborted", "reason": "AbortJob", "message": "Command 13a63e38-3718"}
    stand.status(JOBS, "a", {"state": state})
    lines = stand.printed("explain", "a").splitlines()
    assert lines[0] == "job default/a is Aborted: a Command asked for it"
    assert lines[2:4] == [
        "Reason:     AbortJob",
        "Next step:  resume it: pumice job resume --namespace default --name a",
    ]


def test_what_is_not_there_is_code_3(stand: Stand) -> None:
    assert stand.refusal("explain", "a") == (
        3,
        "Failed to explain a: there is no Job or PodGroup or Pod default/a\n",
    )
    assert stand.refusal("explain", "pod/a", "-n", "x") == (
        3,
        "Failed to explain pod/a: there is no Pod x/a\n",
    )


@pytest.mark.parametrize("what", ["node/", "job/", "/a"])
def test_what_cannot_be_explained_is_code_2(what: str, stand: Stand) -> None:
    assert stand.refusal("explain", what) == (
        2,
        f"Failed to explain {what}: say NAME or KIND/NAME, such as job/NAME\n",
    )


def test_something_must_be_named(stand: Stand) -> None:
    assert stand.run("explain").code == 2
