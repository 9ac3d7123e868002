"""The guard of the stock preemption: a node stays with exactly its victims, or goes."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.main.wiring import assemble
from app.model.ids import NO_NODE, NodeName, PodUid, QueueName
from app.model.parts import SubGroupPolicy
from app.model.pod import GROUP_ANNOTATION, PREEMPTABLE, QUEUE_ANNOTATION, TASK_SPEC, Pod
from app.model.workload import GroupPhase, PodGroup
from app.service.calls.preemption import Candidate, Strike, Verdict
from app.service.limits import Limits
from tests.builders import make_node, make_pod, make_queue, make_shape
from tests.service.rig import FakeApi, always_active

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")


class Victims:
    """A cluster with running pods, asked about one at a time."""

    def __init__(self) -> None:
        self.now = 0.0
        parts = assemble(
            ports=FakeApi(),
            clock=lambda: self.now,
            limits=Limits(),
            schedulers=frozenset({"volcano"}),
            activity=always_active(),
            default_queue=QueueName("default"),
        )
        self.cache, self.configuration = parts.cache, parts.configuration
        self.guard: Callable[[Pod, Mapping[NodeName, Candidate]], Verdict] = parts.preemption.guard
        for name in ("n1", "n2", "n3"):
            self.cache.set_node(make_node(name, cpu=100_000))
        self.cache.set_queue(make_queue("default"))

    def group(self, name: str, *, minimum: int, **fields: Any) -> None:
        defaults: dict[str, Any] = {
            "uid": f"uid-{name}",
            "resource_version": "1",
            "created": 0.0,
            "phase": GroupPhase.RUNNING,
        }
        self.cache.set_group(PodGroup("default", name, min_member=minimum, **(defaults | fields)))

    def pod(self, name: str, *, group: str = "", role: str = "", **fields: Any) -> Pod:
        annotations = {GROUP_ANNOTATION: group} if group else {}
        if role:
            annotations[TASK_SPEC] = role
        annotations |= fields.pop("annotations", {})
        defaults: dict[str, Any] = {"node": N1, "phase": "Running"}
        pod = make_pod(name, annotations=annotations, **(defaults | fields))
        self.cache.set_pod(pod, now=0.0)
        return pod

    def strike(
        self, *victims: str, preemptor: Pod | None = None, violations: int = 0
    ) -> Strike | None:
        """Why the node with these victims goes, None when it stays."""
        asking = preemptor or make_pod("preemptor", scheduler="default-scheduler")
        candidate = Candidate(tuple(PodUid(f"uid-{name}") for name in victims), violations)
        verdict = self.guard(asking, {N1: candidate})
        if N1 in verdict.nodes:
            assert verdict.nodes[N1] is candidate
            assert verdict.struck == {}
            return None
        return verdict.struck[N1]


def test_a_foreign_pod_may_be_evicted() -> None:
    victims = Victims()
    victims.pod("v", scheduler="default-scheduler")
    assert victims.strike("v") is None


def test_a_victim_nobody_knows_strikes_the_node_out() -> None:
    assert Victims().strike("unheard-of") is Strike.UNKNOWN_VICTIM


def test_a_disruption_budget_strikes_the_node_out() -> None:
    victims = Victims()
    victims.pod("v")
    assert victims.strike("v", violations=1) is Strike.DISRUPTION_BUDGET


@pytest.mark.parametrize(
    "fields",
    [
        {"namespace": "kube-system"},
        {"priority_class": "system-cluster-critical"},
        {"priority_class": "system-node-critical"},
    ],
)
@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler"])
def test_system_pods_are_protected_whoever_scheduled_them(
    fields: dict[str, str], scheduler: str
) -> None:
    victims = Victims()
    victims.pod("v", scheduler=scheduler, **fields)
    assert victims.strike("v") is Strike.CONFORMANCE


@pytest.mark.parametrize(
    ("fields", "strike"),
    [
        ({"annotations": {PREEMPTABLE: "false"}}, Strike.NOT_PREEMPTABLE),
        ({"labels": {PREEMPTABLE: "false"}}, Strike.NOT_PREEMPTABLE),
        (
            {"annotations": {PREEMPTABLE: "0"}, "labels": {PREEMPTABLE: "true"}},
            Strike.NOT_PREEMPTABLE,
        ),
        ({"annotations": {PREEMPTABLE: "no"}}, Strike.NOT_PREEMPTABLE),
        ({"annotations": {PREEMPTABLE: ""}}, Strike.NOT_PREEMPTABLE),
        ({"annotations": {PREEMPTABLE: "true"}, "labels": {PREEMPTABLE: "false"}}, None),
        ({"annotations": {PREEMPTABLE: "1"}}, None),
        ({}, None),
        ({"annotations": {PREEMPTABLE: "false"}, "scheduler": "default-scheduler"}, None),
    ],
)
def test_pods_of_ours_that_say_so_are_not_evicted(
    fields: dict[str, Any], strike: Strike | None
) -> None:
    victims = Victims()
    victims.pod("v", **fields)
    assert victims.strike("v") is strike


@pytest.mark.parametrize(
    ("group", "pod", "strike"),
    [
        ({"annotations": {PREEMPTABLE: "false"}}, {}, Strike.NOT_PREEMPTABLE),
        ({"labels": {PREEMPTABLE: "false"}}, {}, Strike.NOT_PREEMPTABLE),
        ({"labels": {PREEMPTABLE: "false"}}, {"labels": {PREEMPTABLE: "true"}}, None),
        ({"annotations": {PREEMPTABLE: "true"}}, {}, None),
        (
            {"annotations": {PREEMPTABLE: "true"}},
            {"labels": {PREEMPTABLE: "false"}},
            Strike.NOT_PREEMPTABLE,
        ),
    ],
)
def test_a_pod_that_says_nothing_is_preemptable_as_its_group_says(
    group: dict[str, Any], pod: dict[str, Any], strike: Strike | None
) -> None:
    victims = Victims()
    victims.group("g", minimum=1, **group)
    victims.pod("a", group="g", **pod)
    assert victims.strike("a") is strike


def test_a_gang_keeps_its_minimum() -> None:
    victims = Victims()
    victims.group("g", minimum=2)
    for name in ("a", "b", "c"):
        victims.pod(name, group="g")
    assert victims.strike("a") is None
    assert victims.strike("a", "b") is Strike.GANG_MINIMUM


def test_a_whole_gang_may_go() -> None:
    victims = Victims()
    victims.group("g", minimum=2)
    for name in ("a", "b", "c"):
        victims.pod(name, group="g")
    assert victims.strike("a", "b", "c") is None


def test_finished_members_count_for_the_minimum_and_not_for_the_whole() -> None:
    victims = Victims()
    victims.group("g", minimum=2)
    victims.pod("done", group="g", phase="Succeeded")
    victims.pod("a", group="g")
    victims.pod("b", group="g")
    assert victims.strike("a") is None
    assert victims.strike("a", "b") is None


def test_members_on_their_way_out_are_no_longer_there() -> None:
    victims = Victims()
    victims.group("g", minimum=2)
    for name in ("a", "b"):
        victims.pod(name, group="g")
    victims.pod("leaving", group="g", deleting=True)
    assert victims.strike("a") is Strike.GANG_MINIMUM
    assert victims.strike("leaving") is None, "it goes anyway"


def test_members_being_bound_count_as_there() -> None:
    victims = Victims()
    victims.group("g", minimum=2)
    victims.pod("a", group="g")
    victims.pod("b", group="g")
    binding = victims.pod("c", group="g", node="", phase="Pending")
    assert victims.cache.reservations.move(binding.uid, N2, now=0.0)
    assert victims.cache.bind_steps.binding(binding.uid, now=0.0)
    assert victims.strike("a") is None


def test_every_role_keeps_its_minimum() -> None:
    victims = Victims()
    victims.group("g", minimum=2, role_minimum={"ps": 1, "worker": 1})
    victims.pod("ps-0", group="g", role="ps")
    for name in ("w-0", "w-1"):
        victims.pod(name, group="g", role="worker")
    assert victims.strike("w-0") is None
    assert victims.strike("ps-0") is Strike.GANG_MINIMUM


def test_victims_of_several_gangs_are_judged_each_for_its_own() -> None:
    victims = Victims()
    for name in ("g", "h"):
        victims.group(name, minimum=1)
        for i in range(2):
            victims.pod(f"{name}-{i}", group=name)
    assert victims.strike("g-0", "h-0") is None
    victims.group("h", minimum=2)
    assert victims.strike("g-0", "h-0") is Strike.GANG_MINIMUM
    assert victims.strike("g-0", "h-0", "h-1") is None


def test_a_queue_that_is_not_reclaimable_keeps_its_pods() -> None:
    victims = Victims()
    victims.cache.set_queue(make_queue("kept", reclaimable=False))
    victims.group("g", minimum=0, queue=QueueName("kept"))
    victims.pod("v", group="g")
    victims.pod("alone", annotations={QUEUE_ANNOTATION: "kept"})
    assert victims.strike("v") is Strike.NOT_RECLAIMABLE
    assert victims.strike("alone") is Strike.NOT_RECLAIMABLE


def test_inside_its_own_queue_a_pod_may_preempt() -> None:
    victims = Victims()
    victims.cache.set_queue(make_queue("kept", reclaimable=False))
    victims.pod("v", annotations={QUEUE_ANNOTATION: "kept"})
    mine = victims.pod("mine", annotations={QUEUE_ANNOTATION: "kept"}, node="", phase="Pending")
    assert victims.strike("v", preemptor=mine) is None


def test_a_foreign_pod_is_in_no_queue_whatever_it_says() -> None:
    victims = Victims()
    victims.cache.set_queue(make_queue("kept", reclaimable=False))
    victims.pod("v", annotations={QUEUE_ANNOTATION: "kept"})
    liar = make_pod("liar", scheduler="other", annotations={QUEUE_ANNOTATION: "kept"})
    assert victims.strike("v", preemptor=liar) is Strike.NOT_RECLAIMABLE


def test_a_member_of_a_gang_does_not_preempt_alone() -> None:
    victims = Victims()
    victims.group("g", minimum=2)
    asking = victims.pod("asking", group="g", node="", phase="Pending")
    victims.pod("v", scheduler="other")
    assert victims.strike("v", preemptor=asking) is Strike.GANG_PREEMPTOR
    victims.group("g", minimum=1, sub_groups=(SubGroupPolicy("s", keys=("k",), size=2),))
    assert victims.strike("v", preemptor=asking) is Strike.GANG_PREEMPTOR
    victims.group("g", minimum=1)
    assert victims.strike("v", preemptor=asking) is None


def test_enough_sub_groups_stay_whole() -> None:
    victims = Victims()
    pairs = SubGroupPolicy("pair", keys=("pair",), size=2, least=1)
    victims.group("g", minimum=1, sub_groups=(pairs,))
    for name in ("x-0", "x-1", "y-0"):
        victims.pod(name, group="g", labels={"pair": name[0]})
    assert victims.strike("x-0") is Strike.GANG_MINIMUM
    assert victims.strike("y-0") is None
    victims.pod("y-1", group="g", labels={"pair": "y"})
    assert victims.strike("x-0", "y-1") is Strike.GANG_MINIMUM
    assert victims.strike("x-0") is None


def test_nodes_are_judged_one_by_one() -> None:
    victims = Victims()
    victims.group("g", minimum=1)
    victims.pod("a", group="g")
    victims.pod("b", scheduler="other", node=N2)
    victims.pod("c", namespace="kube-system", node=N3)
    candidates = {
        N1: Candidate((PodUid("uid-a"),)),
        N2: Candidate((PodUid("uid-b"),)),
        N3: Candidate((PodUid("uid-c"),)),
    }
    verdict = victims.guard(make_pod("p", scheduler="other"), candidates)
    assert verdict.struck == {N3: Strike.CONFORMANCE}
    assert verdict.nodes.keys() <= {N1, N2}


def test_no_candidates_is_no_answer() -> None:
    verdict = Victims().guard(make_pod("p"), {})
    assert (verdict.nodes, verdict.struck) == ({}, {})


@given(
    sizes=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=3),
    picks=st.lists(st.lists(st.integers(0, 14), max_size=8, unique=True), min_size=1, max_size=3),
)
def test_no_answer_ever_breaks_a_gang(sizes: list[tuple[int, int]], picks: list[list[int]]) -> None:
    """Whatever is proposed: what stays in the answer leaves every gang whole, or takes all of it.

    Nor does it ever take a victim out of a proposal, or add one.
    """
    victims = Victims()
    pods: list[tuple[str, str]] = []
    for number, (size, minimum) in enumerate(sizes):
        victims.group(f"g{number}", minimum=min(minimum, size))
        for i in range(size):
            victims.pod(f"p{number}-{i}", group=f"g{number}")
            pods.append((f"p{number}-{i}", f"g{number}"))
    candidates = {
        node: Candidate(tuple(PodUid(f"uid-{pods[i][0]}") for i in pick if i < len(pods)))
        for node, pick in zip((N1, N2, N3), picks, strict=False)
    }
    verdict = victims.guard(make_pod("p", scheduler="other"), candidates)
    assert not verdict.nodes.keys() & verdict.struck.keys()
    assert len(verdict.nodes) == (set(verdict.struck) != set(candidates))
    for node, candidate in verdict.nodes.items():
        assert candidate == candidates[node]
        for number, (size, minimum) in enumerate(sizes):
            lost = sum(uid.startswith(f"uid-p{number}-") for uid in candidate.victims)
            left = size - lost
            assert left == 0 or left >= min(minimum, size) or lost == 0


# --- while the planner preempts -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "strike"),
    [
        pytest.param("enqueue, allocate, preempt", Strike.PLANNER, id="preempt"),
        pytest.param("enqueue, allocate, gangpreempt", Strike.PLANNER, id="gangpreempt"),
        pytest.param("enqueue, allocate, reclaim", None, id="reclaim"),
        pytest.param("enqueue, allocate", None, id="none of them"),
    ],
)
def test_a_pod_of_ours_evicts_nothing_while_the_planner_preempts(
    actions: str, strike: Strike | None
) -> None:
    victims = Victims()
    victims.configuration.load(f'actions: "{actions}"\ntiers:\n- plugins: [{{name: gang}}]')
    victims.pod("v", shape=make_shape(cpu=100_000))
    victims.group("alone", minimum=1)
    mine = victims.pod("mine", group="alone", node=NO_NODE, phase="Pending")
    foreign = make_pod("foreign", scheduler="default-scheduler")
    assert victims.strike("v", preemptor=mine) is strike
    assert victims.strike("v", preemptor=foreign) is None
