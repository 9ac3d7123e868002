"""When pods are made, and where they may go."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest

from app.controllers.job.pod_writer import CONCURRENT_WRITES
from app.controllers.job.slots import Refusals, Slots
from app.controllers.ports import Failure
from app.model.pod import SECOND_TRY
from app.model.reason import LOST_PLACE, TAKEN
from app.wire.kinds import PODS
from app.wire.unstructured import Object
from tests.clusters import workloads
from tests.controllers.job.jobs import make_pod, of
from tests.controllers.job.rig import NAMESPACE, Rig, creates_pod, play, policy, task

_GANG = {"minAvailable": 2, "tasks": [task()]}
_LAST = "job-main-29"
_UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
_FAILED = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}


def _is_gated(pod: Object) -> bool:
    return {"name": "pumice.sh/plan"} in pod["spec"].get("schedulingGates", [])


def _node(pod: Object) -> str:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in terms.get("nodeSelectorTerms", []):
        return str(term["matchFields"][0]["values"][0])
    return ""


def _refuse(rig: Rig, pod: str) -> None:
    rig.change(pod, {"status": {"conditions": [_UNSCHEDULABLE]}})


def _ungate(rig: Rig, pod: str, *, node: str) -> None:
    """As the extender does: the gate goes, and the pod may run on one node."""
    rig.change(pod, {"spec": {"schedulingGates": None, **_pinned(node)}})


def _pinned(node: str) -> dict[str, Any]:
    return {"affinity": workloads.pinned_to(node)}


def test_there_are_no_pods_before_the_group_is_admitted() -> None:
    async def scenario(rig: Rig) -> None:
        rig.admits = False
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        assert rig.pods() == []
        rig.admit("Pending")
        await rig.settle()
        assert rig.pods() == []
        rig.admit()
        await rig.settle()
        assert len(rig.pods()) == 2

    rig = play(scenario)
    assert rig.phases == ["Pending"]
    assert rig.status()["pending"] == 2
    assert rig.slots.asked == [(NAMESPACE, rig.group()["metadata"]["name"])]


@pytest.mark.parametrize("phase", ["Inqueue", "Running", "Unknown"])
def test_why_an_admitted_job_waits_is_told_too(phase: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        assert rig.events.messages("PodGroupPending") == []
        condition = {
            "type": "Unschedulable",
            "status": "True",
            "message": "4 cpus missing",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        rig.change_group({"status": {"phase": phase, "conditions": [condition]}})
        await rig.settle()

    told = play(scenario).events.messages("PodGroupPending")
    assert told == [f"PodGroup {NAMESPACE}:job unschedulable, reason: 4 cpus missing"]


def test_a_job_that_waits_again_tells_again() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        for status in ("True", "False", "True"):
            condition = {"type": "Unschedulable", "status": status, "message": "no cpus"}
            rig.change_group({"status": {"phase": "Unknown", "conditions": [condition]}})
            await rig.later(60)

    told = play(scenario).events.messages("PodGroupPending")
    assert told == [f"PodGroup {NAMESPACE}:job unschedulable, reason: no cpus"] * 2


def test_a_job_that_waits_now_and_then_tells_it_seldom() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        for status in ("True", "False") * 10:
            condition = {"type": "Unschedulable", "status": status, "message": "no cpus"}
            rig.change_group({"status": {"phase": "Unknown", "conditions": [condition]}})
            await rig.later(2)

    assert len(play(scenario).events.messages("PodGroupPending")) == 2


def test_why_a_job_waits_is_told_now_and_then() -> None:
    async def scenario(rig: Rig) -> None:
        rig.admits = False
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        for number in range(10):
            condition = {
                "type": "Unschedulable",
                "status": "True",
                "message": f"{number} cpus missing",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            rig.change_group({"status": {"phase": "Pending", "conditions": [condition]}})
            await rig.later(10)

    rig = play(scenario)
    told = rig.events.messages("PodGroupPending")
    assert told[0] == f"PodGroup {NAMESPACE}:job unschedulable, reason: 0 cpus missing"
    assert len(told) == 4


def test_pods_are_pinned_to_slots_and_the_rest_waits_at_the_gate() -> None:
    async def scenario(rig: Rig) -> None:
        rig.slots.slots = Slots(1, {"main": ("n1", "n1"), "other": ("n2",)})
        rig.start()
        rig.submit({"minAvailable": 2, "tasks": [task(replicas=3)]})
        await rig.settle()

    rig = play(scenario)
    pods = [rig.pod(pod) for pod in rig.pods()]
    assert [_node(pod) for pod in pods] == ["n1", "n1", ""]
    assert [_is_gated(pod) for pod in pods] == [False, False, True]


def test_all_pods_wait_at_the_gate_when_nobody_knows_slots() -> None:
    rig = play(_started)
    assert all(_is_gated(rig.pod(pod)) for pod in rig.pods())


async def _started(rig: Rig) -> None:
    rig.start()
    rig.submit(_GANG)
    await rig.settle()


@pytest.mark.parametrize(
    "spec",
    [
        {**_GANG, "schedulerName": "default-scheduler"},
        {**_GANG, "tasks": [task(spec={"schedulerName": "default-scheduler"})]},
    ],
    ids=["of the job", "of the template"],
)
def test_pods_of_other_schedulers_are_neither_pinned_nor_gated(spec: Mapping[str, Any]) -> None:
    async def scenario(rig: Rig) -> None:
        rig.slots.slots = Slots(1, {"main": ("n1", "n1")})
        rig.start()
        rig.submit(spec)
        await rig.settle()

    rig = play(scenario)
    assert len(rig.pods()) == 2
    assert not any(_node(rig.pod(pod)) or _is_gated(rig.pod(pod)) for pod in rig.pods())


def test_a_pod_whose_node_is_refused_is_made_anew_and_nobody_notices() -> None:
    async def scenario(rig: Rig) -> None:
        rig.slots.slots = Slots(1, {"main": ("n1", "n2")})
        rig.start()
        rig.submit({**_GANG, "policies": [policy("*", "AbortJob")]})
        await rig.settle()
        rig.slots.slots = Slots(2, {"main": ("n3",)})
        _refuse(rig, "job-main-0")
        await rig.settle()
        assert _is_gated(rig.pod("job-main-0")), "it is told its next place by the extender"
        assert SECOND_TRY in rig.pod("job-main-0")["metadata"]["annotations"]
        assert _node(rig.pod("job-main-1")) == "n2"
        assert SECOND_TRY not in rig.pod("job-main-1")["metadata"]["annotations"]

    rig = play(scenario)
    assert rig.api.created[PODS, "job-main-0"] == 2
    assert rig.phases == ["Pending"]
    assert "retryCount" not in rig.status()


@pytest.mark.parametrize(
    ("condition", "is_made_anew"),
    [
        (_UNSCHEDULABLE, True),
        *(({**_FAILED, "message": why}, True) for why in sorted(LOST_PLACE)),
        ({**_FAILED, "message": "the place was given back; the pod is planned again"}, False),
        ({**_FAILED, "status": "True", "message": TAKEN}, False),
        ({**_UNSCHEDULABLE, "type": "PodReady"}, False),
    ],
)
def test_a_pinned_pod_is_made_anew_when_its_node_has_no_room(
    condition: Object, is_made_anew: bool
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.slots.slots = Slots(1, {"main": ("n1", "n2")})
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        rig.change("job-main-0", {"status": {"conditions": [condition]}})
        await rig.settle()

    rig = play(scenario)
    assert rig.api.created[PODS, "job-main-0"] == 1 + is_made_anew


def test_a_refused_pod_whose_deletion_seems_to_fail_is_not_taken_for_an_evicted_one() -> None:
    async def scenario(rig: Rig) -> None:
        rig.slots.slots = Slots(1, {"main": ("n1", "n2")})
        rig.start()
        rig.submit({**_GANG, "policies": [policy("PodEvicted", "AbortJob")]})
        await rig.settle()
        rig.api.fail(
            Failure.PASSING, lambda r: (r.verb, r.resource) == ("delete", PODS), after=True
        )
        _refuse(rig, "job-main-0")
        await rig.settle()
        await rig.later(1)

    rig = play(scenario)
    assert rig.phases == ["Pending"]
    assert rig.api.created[PODS, "job-main-0"] == 2


@pytest.mark.parametrize("take", [Rig.vanish, Rig.force], ids=["gone", "going"])
def test_a_refused_pod_that_somebody_takes_before_us_is_evicted(
    take: Callable[[Rig, str], None],
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.slots.slots = Slots(1, {"main": ("n1", "n2")})
        rig.start()
        rig.submit({**_GANG, "policies": [policy("PodEvicted", "RestartPod")]})
        await rig.settle()
        _refuse(rig, "job-main-0")
        take(rig, "job-main-0")
        await rig.see_next(PODS)
        rig.api.lagging.clear()
        await rig.drain()

    rig = play(scenario)
    assert rig.api.created[PODS, "job-main-0"] == 2
    assert rig.status()["retryCount"] == 1


def test_a_pod_that_is_refused_whatever_its_node_is_made_anew_ever_more_rarely() -> None:
    """Its volume is missing, say: a hundred new pods would wait for that as the first one does."""

    async def scenario(rig: Rig) -> None:
        rig.slots.slots = Slots(1, {"main": ("n1",)})
        rig.start()
        rig.submit({"minAvailable": 1, "tasks": [task(replicas=1)]})
        await rig.settle()
        for _ in range(3600):
            if _is_gated(rig.pod("job-main-0")):
                _ungate(rig, "job-main-0", node="n1")
            _refuse(rig, "job-main-0")
            await rig.settle()
            await rig.later(1)

    rig = play(scenario)
    # After 0, 2, 4 ... 256 s, and every 300 s then.
    assert 15 <= rig.api.created[PODS, "job-main-0"] <= 22


def test_a_pod_that_was_refused_for_a_week_is_made_anew_as_often_as_before() -> None:
    refusals = Refusals()
    (refused,) = of(make_pod("job-main-0", spec=_pinned("n1"), conditions=[_UNSCHEDULABLE]))
    assert refusals.pauses_s([refused], now=0.0) == {}
    for _ in range(5_000):
        refusals.add(refused.name)
    assert refusals.pauses_s([refused], now=0.0) == {refused.uid: 300.0}
    assert refusals.pauses_s([refused], now=300.0) == {}


def test_a_pod_that_was_refused_and_ran_is_pinned_again() -> None:
    async def scenario(rig: Rig) -> None:
        rig.slots.slots = Slots(1, {"main": ("n1",)})
        rig.start()
        rig.submit({"minAvailable": 1, "tasks": [task(replicas=1)]})
        await rig.settle()
        for _ in range(2):
            _refuse(rig, "job-main-0")
            await rig.settle()
            assert _is_gated(rig.pod("job-main-0"))
            rig.run("job-main-0")
            await rig.settle()
            rig.vanish("job-main-0")
            await rig.settle()
            assert _node(rig.pod("job-main-0")) == "n1"

    rig = play(scenario)
    assert rig.api.created[PODS, "job-main-0"] == 5


def test_a_gated_or_unpinned_pod_that_waits_is_left_alone() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        _refuse(rig, "job-main-0")
        rig.change("job-main-1", {"spec": {"schedulingGates": None}})
        _refuse(rig, "job-main-1")
        await rig.settle()

    rig = play(scenario)
    assert set(rig.api.created.values()) == {1}


def test_tasks_wait_for_those_they_depend_on() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(
            {
                "minAvailable": 1,
                "tasks": [
                    task("master", 1, minAvailable=1),
                    task("worker", 2, dependsOn={"name": ["master"]}),
                ],
            }
        )
        await rig.settle()
        assert rig.pods() == ["job-master-0"]
        rig.run("job-master-0", ready=False)
        await rig.settle()
        assert rig.pods() == ["job-master-0"]
        rig.run("job-master-0")
        await rig.settle()

    rig = play(scenario)
    assert rig.pods() == ["job-master-0", "job-worker-0", "job-worker-1"]


def test_the_pods_of_a_large_job_are_made_some_at_a_time() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit({"minAvailable": 1, "tasks": [task(replicas=500)]})
        await rig.settle()

    rig = play(scenario)
    assert rig.status()["pending"] == 500
    assert sum(creates_pod(request) for request in rig.api.requests) == 500
    writes = [r for r in rig.api.requests if r.subresource == "status"]
    assert len(writes) <= 4


def test_pods_that_the_watch_does_not_show_are_asked_for() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_GANG)
        await rig.settle()
        rig.hide(PODS)
        rig.edit_job({"spec": {"tasks": [task(replicas=4)]}})
        await rig.settle()
        await rig.later(200)
        assert rig.status()["pending"] == 4
        assert set(rig.api.created.values()) == {1}
        rig.vanish("job-main-3")
        await rig.later(61)

    rig = play(scenario)
    assert rig.api.created[PODS, "job-main-3"] == 2
    assert rig.status()["pending"] == 4


def test_a_pod_that_has_gone_unseen_is_answered_once() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "policies": [policy("PodFailed", "RestartPod")]})
        rig.fail("job-main-0")
        rig.api.deliver()
        rig.vanish("job-main-0")
        rig.hide(PODS)
        await rig.settle()
        await rig.later(10)

    rig = play(scenario)
    assert rig.events.messages("ExecuteAction") == ["Start to execute action RestartPod "]
    assert rig.phase() == "Restarting"


def test_the_status_tells_of_pods_while_many_are_made() -> None:
    """A thousand take twelve seconds here; each status has what was made in two seconds at most."""

    async def scenario(rig: Rig) -> None:
        rig.api.slow[PODS] = 0.4
        rig.start()
        rig.submit({"minAvailable": 1, "tasks": [task(replicas=1000)]})
        await rig.settle()

    rig = play(scenario)
    told = [0, *(status["pending"] for status in rig.statuses if "pending" in status)]
    assert told[-1] == len(rig.pods()) == 1000
    assert max(later - now for now, later in pairwise(told)) <= 2.0 / 0.4 * CONCURRENT_WRITES
    assert rig.phases == ["Pending"]
