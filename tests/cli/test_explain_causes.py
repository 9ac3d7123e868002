"""``pumice explain`` names what really stands in the way, and *never* as such."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.cli.next_steps import next_step
from app.core.texts import describe
from app.kube import errors
from app.kube.client import ApiClient
from app.model.reason import GUARANTEE, Cause, Holder, Never, Refusal, Shortfall
from app.wire.kinds import JOBS, QUEUES
from tests.cli.stand import Object, Stand, answering, event, group, job, pod, queue

REFUSED = "kube-scheduler refuses pod default/a-work-0: 0/3 nodes are available: pod has unbound "
OF_SCHEDULER = "1/1 tasks in gang unschedulable: " + REFUSED


def condition(kind: str, status: str, reason: str, message: str = "") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }


def waiting(stand: Stand, *conditions: Object) -> Object:
    """A job in an open queue whose group has those conditions."""
    made, _ = stand.create(job("a"), queue("default"))
    stand.status(QUEUES, "default", {"state": "Open"})
    stand.create(group(f"a-{made['metadata']['uid']}", phase="Inqueue", conditions=conditions))
    return made


def member(name: str, **spec: Any) -> Object:
    made = pod(name, labels={"volcano.sh/job-name": "a"})
    return {**made, "spec": {**made["spec"], **spec}}


def claim(name: str, phase: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none-such"},
        "status": {"phase": phase},
    }


def put(stand: Stand, item: Object) -> None:
    """Create it with its status: the API server takes none from who creates it."""
    [made] = stand.create(item)
    stand.server.store.put(f"/{item['kind'].lower()}s", {**made, "status": item["status"]})


def lines_of(stand: Stand, *arguments: str) -> tuple[str, str, str]:
    """First line, reason and next step."""
    lines = stand.printed("explain", *arguments).splitlines()
    found = dict(line.split(":", 1) for line in lines[2:] if ":" in line)
    return lines[0], found.get("Reason", "").strip(), found.get("Next step", "").strip()


# what kube-scheduler refuses ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "step"),
    [
        (
            [claim("data", "Pending")],
            "see why claim data gets no volume of storage class none-such: "
            "kubectl describe persistentvolumeclaim data",
        ),
        ([], "create the PersistentVolumeClaim data, which the pods name"),
        (
            [claim("data", "Bound")],
            "mend what kube-scheduler says of the pod; "
            "kube-scheduler tries the pod again by itself",
        ),
    ],
    ids=["pending", "missing", "bound"],
)
def test_what_kube_scheduler_refuses_is_the_cause_and_its_claim_is_named(
    claims: list[Object], step: str, stand: Stand
) -> None:
    waiting(
        stand,
        condition("Unschedulable", "True", "NotEnoughResources", OF_SCHEDULER),
        condition("Reserved", "True", "SchedulerRefuses", REFUSED),
    )
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    stand.create(member("a-work-0", volumes=[volume]))
    for each in claims:
        put(stand, each)
    first, reason, told = lines_of(stand, "a")
    assert first == f"job default/a is Pending: {REFUSED}"
    assert (reason, told) == ("SchedulerRefuses", step)


def test_room_that_is_kept_and_nothing_else_is_no_complaint(stand: Stand) -> None:
    waiting(stand, condition("Reserved", "True", "Placed"))
    assert lines_of(stand, "a")[0] == "job default/a is Pending: nothing is missing"


# what can never be ----------------------------------------------------------------------------

LACK = Shortfall("cpu", asked=64_000, free=4_000, limit=8_000)


@pytest.mark.parametrize(
    ("cause", "never", "step"),
    [
        (Cause.QUEUE_QUOTA, Never.QUEUE, "raise the capability of the queue, or ask for less"),
        (
            Cause.QUEUE_ROOM,
            Never.GUARANTEES,
            "lower the guarantee of queue b, add nodes, or ask for less",
        ),
        (
            Cause.NAMESPACE_QUOTA,
            Never.NAMESPACE,
            "raise the ResourceQuota of the namespace, or ask for less",
        ),
        (Cause.NOT_ENOUGH_RESOURCES, Never.CLUSTER, "add nodes, or ask for less"),
        (
            Cause.QUEUE_ROOM,
            Never.ABSENT,
            "add nodes that have the resource (a device plugin lists it there), "
            "or ask for another one",
        ),
        (Cause.NOT_ENOUGH_RESOURCES, Never.NODES, "add a larger node, or ask for less per pod"),
        (
            Cause.NO_DOMAIN,
            Never.DOMAINS,
            "allow a higher tier (networkTopology.highestTierAllowed), or ask for less",
        ),
        (
            Cause.NO_NODE_FITS,
            Never.RULED_OUT,
            "compare node selectors, affinity and tolerations with the nodes",
        ),
    ],
)
def test_what_can_never_be_is_not_to_be_waited_for(cause: Cause, never: Never, step: str) -> None:
    holders = (Holder(f"{GUARANTEE} queue b", "cpu", 4_000),) * (never is Never.GUARANTEES)
    refusal = Refusal(cause, where="q", shortfalls=(LACK,), holders=holders, never=never)
    told = next_step(cause, describe(refusal), queue="q")
    assert told == f"{step}; no end of other jobs is enough"


def test_programs_are_told_never_in_a_word(stand: Stand) -> None:
    refusal = Refusal(Cause.QUEUE_ROOM, where="default", shortfalls=(LACK,), never=Never.CLUSTER)
    waiting(stand, condition("Reserved", "False", "QueueRoom", describe(refusal)))
    assert '"never": "ClusterTooSmall"' in stand.printed("explain", "a", "-o", "json")
    first, _, step = lines_of(stand, "a")
    assert first.endswith("cpu asked 64, free 4 of 8; never: more than the whole cluster has")
    assert step.startswith("add nodes, or ask for less")


# what cannot be made, and gates ---------------------------------------------------------------


def test_pods_that_the_api_server_refuses_are_the_cause_why_they_are_missing(stand: Stand) -> None:
    lacking = "group default/a: pods asked 2, present 0"
    made = waiting(stand, condition("Reserved", "False", "NotEnoughTasks", lacking))
    assert lines_of(stand, "a")[1] == "NotEnoughTasks"
    why = 'Error creating pods: pods "a-work-0" is forbidden: exceeded quota: q'
    stand.create(event(made, "FailedCreate", why, type="Warning"))
    first, reason, step = lines_of(stand, "a")
    assert first == f"job default/a is Pending: {why}"
    assert reason == "FailedCreate"
    assert step.startswith("mend what refuses the pods, as the message says")


def test_pods_that_wait_for_those_of_an_earlier_job_are_told_of(stand: Stand) -> None:
    lacking = "group default/a: pods asked 2, present 0"
    made = waiting(stand, condition("Reserved", "False", "NotEnoughTasks", lacking))
    why = "2 pods wait to be created until those of an earlier job of this name are gone: a-work-0"
    state = {"phase": "Pending", "reason": "EarlierPods", "message": why}
    stand.create(event(made, "FailedCreate", "of another time", type="Warning"))
    stand.status(JOBS, "a", {"state": state})
    first, reason, step = lines_of(stand, "a")
    assert first == f"job default/a is Pending: {why}"
    assert reason == "EarlierPods"
    assert step.startswith("wait, Pumice creates the pods when those are gone")


def test_pods_of_an_earlier_job_that_are_there_still_do_not_hide_what_is_waited_for(
    stand: Stand,
) -> None:
    waiting(stand, condition("Reserved", "True", "Placed"))
    why = "2 pods wait to be created until those of an earlier job of this name are gone: a-work-0"
    stand.status(
        JOBS, "a", {"state": {"phase": "Pending", "reason": "EarlierPods", "message": why}}
    )
    stand.create(pod("a-work-0", labels={"volcano.sh/job-name": "a"}))
    first, reason, _ = lines_of(stand, "a")
    assert (first, reason) == (f"job default/a is Pending: {why}", "EarlierPods")


def test_room_that_is_kept_for_pods_that_are_refused_is_not_the_answer(stand: Stand) -> None:
    made = waiting(stand, condition("Reserved", "True", "Placed"))
    why = 'Error creating pods: admission webhook "x" denied the request: no'
    stand.create(event(made, "FailedCreate", why, type="Warning"))
    waits = {"summary": "has its places; waiting for kube-scheduler to bind", "members": []}
    with answering(json.dumps(waits).encode()) as (url, _):
        first, reason, _ = lines_of(stand, "a", "--extender-url", url)
    assert (first, reason) == (f"job default/a is Pending: {why}", "FailedCreate")


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        (
            ["pumice.sh/plan", "example.com/quota"],
            (
                "pod default/a-0 waits for its scheduling gates: example.com/quota",
                "Gated",
                "remove the scheduling gates of other controllers from the pods",
            ),
        ),
        (
            ["pumice.sh/plan"],
            (
                "pod default/a-0 waits behind the gate pumice.sh/plan",
                "SchedulingGated",
                "see that the extender runs and that its /readyz answers: it opens the gate of "
                "pods that have a place, and says of the others why they wait",
            ),
        ),
    ],
    ids=["of others", "ours"],
)
def test_gates_are_told_by_whose_they_are(
    gates: list[str], said: tuple[str, str, str], stand: Stand
) -> None:
    waiting(stand)
    item = member("a-0", schedulingGates=[{"name": gate} for gate in gates])
    text = "Scheduling is blocked due to non-empty scheduling gates"
    status = {"conditions": [condition("PodScheduled", "False", "SchedulingGated", text)]}
    put(stand, {**item, "status": {"phase": "Pending", **status}})
    first, *rest = lines_of(stand, "a")
    assert first == f"job default/a is Pending: {said[0]}"
    assert rest == list(said[1:])


BLOCKED = condition("PodScheduled", "False", "SchedulingGated", "blocked by gates")


@pytest.mark.parametrize(
    ("conditions", "least", "said"),
    [
        ([], 1, "pod default/p: the scheduler that serves my-own has not looked at it"),
        (
            [BLOCKED],
            1,
            "pod default/p has its place, and the scheduler that serves my-own is to bind it",
        ),
        (
            [BLOCKED],
            3,
            "pod default/p has its place, and the scheduler that serves my-own is to bind it, "
            "together with others of its group (3 at least)",
        ),
    ],
    ids=["never seen", "its gate is gone", "of a gang"],
)
def test_a_pod_of_which_its_scheduler_says_nothing_names_that_scheduler(
    conditions: list[Object], least: int, said: str, stand: Stand
) -> None:
    made = group("g", phase="Inqueue")
    stand.create(queue("default"), {**made, "spec": {**made["spec"], "minMember": least}})
    item = pod("p", annotations={"scheduling.k8s.io/group-name": "g"})
    item["spec"]["schedulerName"] = "my-own"
    put(stand, {**item, "status": {"phase": "Pending", "conditions": conditions}})
    first, reason, step = lines_of(stand, "pod/p")
    assert first.endswith(f" is {'SchedulingGated' if conditions else 'Pending'}: {said}")
    assert reason == "NoScheduler"
    assert step.startswith("see that a kube-scheduler with a profile of that name runs")


def test_a_group_whose_pods_wait_for_others_that_do_not_exist_says_so(stand: Stand) -> None:
    made = group("g", phase="Inqueue")
    stand.create(queue("default"), {**made, "spec": {**made["spec"], "minMember": 3}})
    item = pod("p", annotations={"scheduling.k8s.io/group-name": "g"})
    put(stand, {**item, "status": {"phase": "Pending", "conditions": [BLOCKED]}})
    first, reason, _ = lines_of(stand, "g")
    assert first == "podgroup default/g is Inqueue: group default/g: pods asked 3, present 1"
    assert reason == "NotEnoughTasks"


# who may see little ---------------------------------------------------------------------------


def forbid(monkeypatch: pytest.MonkeyPatch, *plurals: str) -> None:
    """Let the API server refuse to show objects of these kinds."""
    get, pages = ApiClient.get, ApiClient.list

    def check(path: str) -> None:
        if any(f"/{plural}" in path for plural in plurals):
            raise errors.Forbidden("that is forbidden", status=403)

    async def narrow_get(client: ApiClient, path: str) -> bytes:
        check(path)
        return await get(client, path)

    def narrow_list(client: ApiClient, path: str, params: dict[str, str]) -> AsyncIterator[bytes]:
        check(path)
        return pages(client, path, params)

    monkeypatch.setattr(ApiClient, "get", narrow_get)
    monkeypatch.setattr(ApiClient, "list", narrow_list)


def test_without_rights_on_podgroups_the_pods_and_the_queue_still_tell(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = waiting(stand, condition("Reserved", "False", "QueueQuota", "queue default: cpu"))
    forbid(monkeypatch, "podgroups")
    name = f"a-{made['metadata']['uid']}"
    text = stand.printed("explain", "a")
    assert text.splitlines()[0] == (
        "job default/a is Pending: what can be seen does not say why: "
        "its PodGroup is not to be seen"
    )
    assert f"PodGroup:   {name}, not to be seen\n" in text
    item = member("a-0")
    item["status"]["conditions"] = [
        condition("pumice.sh/Placed", "False", "QueueQuota", "queue default: cpu asked 3, free 1")
    ]
    put(stand, item)
    first, reason, step = lines_of(stand, "a")
    assert first == "job default/a is Pending: queue default: cpu asked 3, free 1"
    assert (reason, step[:5]) == ("QueueQuota", "wait ")


def test_what_is_not_to_be_seen_is_said_where_nothing_is_found(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "podgroups", "jobs")
    assert stand.refusal("explain", "a") == (
        3,
        "Failed to explain a: there is no Job or PodGroup or Pod default/a; "
        "not to be seen: Job, PodGroup\n",
    )


def test_the_extender_tells_of_a_group_that_the_user_may_not_see(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = waiting(stand)
    forbid(monkeypatch, "podgroups")
    refusal = {"cause": "QueueQuota", "where": "default"}
    story = {"summary": "queue default: cpu asked 3, free 1", "reason": refusal, "members": []}
    with answering(json.dumps(story).encode()) as (url, asked):
        lines = stand.printed("explain", "a", "--extender-url", url).splitlines()
    assert asked == [f"/explain/default/a-{made['metadata']['uid']}"]
    assert lines[0] == "job default/a is Pending: queue default: cpu asked 3, free 1"
