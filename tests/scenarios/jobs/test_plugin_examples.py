"""Examples of plugins that need a configuration: what each one shows."""

from __future__ import annotations

import pytest

from tests.clusters.processes import wait_until
from tests.scenarios.confs import conf
from tests.scenarios.jobs.applied import EXAMPLES, Applied, applied

__all__ = ["applied"]

pytestmark = [pytest.mark.timeout(200), pytest.mark.usefixtures("scheduler_conf")]

GPUS = {"nvidia.com/gpu": "8"}
_WAIT_S = 30.0
CONFS = {
    "cdp": conf("predicates", "proportion", "cdp").replace("allocate,", "allocate, preempt,"),
    "sla": conf("overcommit", "predicates", "proportion", first=("sla",)),
}
"""Of plugins whose example is a job only."""


@pytest.fixture(scope="module")
def scheduler_conf(request: pytest.FixtureRequest) -> str:
    """The configuration of the example of that name, as it stands where it brings one."""
    example: str = request.param
    if example in CONFS:
        return CONFS[example]
    return (EXAMPLES / example / "scheduler.conf").read_text()


def of(example: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scheduler_conf", [example], indirect=True)


@of("usage")
def test_pods_wait_while_all_nodes_are_busy_and_keep_off_the_one_that_is(applied: Applied) -> None:
    nodes = applied.place.add_nodes(2, cpu="4")
    applied.apply("usage/grinder.yaml")
    (busy,) = applied.wait_running("grinder", 1)
    (other,) = set(nodes) - {busy}
    applied.tell_load(90, busy)
    applied.tell_load(85, other)
    metrics = applied.place.cluster.extender.metrics
    wait_until(
        lambda: metrics()["pumice_node_loads_known"] == 2, timeout_s=_WAIT_S, what="loads known"
    )
    applied.apply("usage/light.yaml")
    applied.wait_waits("light", "cpu load of at most 80 % allowed; the least is 85 %")
    applied.tell_load(5, other)
    assert applied.wait_running("light", 3) == [other] * 3


@of("pdb")
def test_as_many_pods_go_as_the_budget_allows_and_no_more(applied: Applied) -> None:
    applied.place.add_nodes(1, cpu="4")
    applied.apply("pdb/steady.yaml")
    applied.wait_running("steady", 4)
    applied.apply("pdb/rush.yaml")
    wait_until(
        lambda: len(applied.running("rush") + applied.running("rush-again")) == 1,
        timeout_s=_WAIT_S,
        what="one of the two runs",
    )
    applied.wait_running("steady", 3)
    late = "rush" if applied.running("rush-again") else "rush-again"
    applied.wait_waits(late, "PodDisruptionBudget")
    assert len(applied.running("steady")) == 3


@of("resource-strategy-fit")
def test_gpus_of_one_node_are_used_up_first_and_other_pods_are_spread_over_plain_nodes(
    applied: Applied,
) -> None:
    with_gpus = applied.place.add_nodes(2, cpu="8", extra=GPUS)
    plain = applied.place.add_nodes(2, cpu="8")
    applied.apply("resource-strategy-fit/jobs.yaml")
    trained, tuned = applied.wait_running("train", 2), applied.wait_running("tune", 2)
    assert len({*trained, *tuned}) == 1
    assert trained[0] in with_gpus
    assert applied.wait_running("prepare", 2) == sorted(plain)


@of("resourcequota")
def test_a_job_beyond_the_quota_gets_no_pods_until_the_other_one_has_gone(
    applied: Applied,
) -> None:
    applied.place.add_nodes(1, cpu="4", extra=GPUS)
    applied.apply("resourcequota/quota.yaml")
    known = f"{applied.place.name}/four-gpus"
    extender = applied.place.cluster.extender
    wait_until(
        lambda: extender.get("/debug/snapshot")["quotas"].get(known, {}).get("hard"),
        timeout_s=_WAIT_S,
        what="the extender knows the quota",
    )
    applied.apply("resourcequota/first.yaml")
    applied.wait_running("quota-first", 2)
    applied.apply("resourcequota/second.yaml")
    applied.wait_waits("quota-second", "requests.nvidia.com/gpu asked 4, free 0 of 4")
    assert not applied.pods("quota-second")
    applied.delete("quota-first")
    applied.wait_running("quota-second", 2)


@of("binpack")
def test_two_jobs_share_a_node_and_the_others_stay_empty(applied: Applied) -> None:
    applied.place.add_nodes(3, cpu="4")
    applied.apply("binpack/jobs.yaml")
    assert len({*applied.wait_running("packed", 2), *applied.wait_running("packed-too", 2)}) == 1


@of("nodeorder")
def test_pods_share_the_node_that_they_prefer_while_another_one_is_idle(applied: Applied) -> None:
    applied.place.add_nodes(2, cpu="4")
    (fast,) = applied.place.add_nodes(1, cpu="4", labels={"pumice.example/disk": "fast"})
    applied.apply("nodeorder/job.yaml")
    assert applied.wait_running("fast-disk", 2) == [fast] * 2


@of("overcommit")
def test_one_job_runs_one_has_pods_that_wait_and_one_has_none_yet(applied: Applied) -> None:
    applied.place.add_nodes(1, cpu="4")
    applied.apply("overcommit/jobs.yaml")
    crowd = ["crowd-a", "crowd-b", "crowd-c"]
    expected = [("Inqueue", 3), ("Pending", 0), ("Running", 3)]
    wait_until(
        lambda: sorted((applied.phase(job), len(applied.pods(job))) for job in crowd) == expected,
        timeout_s=_WAIT_S,
        what=f"{expected}",
    )


@of("proportion")
def test_a_queue_takes_back_what_it_deserves_by_its_weight(applied: Applied) -> None:
    applied.place.add_nodes(1, cpu="4")
    applied.apply("proportion/queues.yaml")
    applied.apply("proportion/borrower.yaml")
    applied.wait_running("borrower", 4)
    applied.apply("proportion/due.yaml")
    applied.wait_running("due", 3)
    applied.wait_running("borrower", 1)


@of("conformance")
def test_critical_pods_stay_and_others_go(applied: Applied) -> None:
    applied.place.add_nodes(1, cpu="4")
    applied.apply("conformance/holders.yaml")
    applied.wait_running("critical", 3)
    applied.wait_running("plain", 1)
    stay = {pod["metadata"]["uid"] for pod in applied.running("critical")}
    applied.apply("conformance/claim.yaml")
    applied.wait_running("claim", 1)
    applied.wait_running("plain", 0)
    assert {pod["metadata"]["uid"] for pod in applied.running("critical")} == stay


@of("cdp")
def test_pods_in_their_cooldown_time_stay_though_a_job_of_higher_priority_waits(
    applied: Applied,
) -> None:
    applied.place.add_nodes(1, cpu="400m")
    applied.apply("scheduling/cooldown.yaml")
    applied.wait_running("warm-up", 2)
    applied.apply("scheduling/priority-high.yaml")
    applied.apply("scheduling/priority-job.yaml")
    applied.wait_waits("vip", "cooldown")
    assert len(applied.running("warm-up")) == 2


@of("sla")
def test_a_job_with_a_waiting_time_goes_before_one_that_came_earlier(applied: Applied) -> None:
    applied.place.add_nodes(1, cpu="200m")
    applied.apply("scheduling/cooldown.yaml")
    applied.wait_running("warm-up", 2)
    applied.apply("nodeorder/job.yaml")
    applied.wait_waits("fast-disk", "asked")
    applied.apply("scheduling/waiting-time.yaml")
    applied.wait_waits("patient", "asked")
    applied.delete("warm-up")
    applied.wait_running("patient", 2)
    assert not applied.running("fast-disk")
