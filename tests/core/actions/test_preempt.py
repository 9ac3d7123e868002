"""preempt: a gang takes the room of pods of lower priority in its queue."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.core.policy import Ballot, Hooks, Policies, Vote
from app.model.conf import PluginConf
from app.model.disruption import DisruptionBudget
from app.model.eviction import EvictionAction
from app.model.gang import Counts, Gang
from app.model.ids import NodeName, QueueName, group_key
from app.model.parts import Part, SubGroup, SubGroupPolicy
from app.model.reason import Cause
from app.model.running import Protection
from app.model.shape import LabelSelector, PodShape
from app.model.snapshot import Veto
from app.model.workload import GroupPhase, Quota
from tests.builders import make_gang, make_queue, make_task
from tests.core.actions.rigs import (
    Outcome,
    amounts_of,
    cores,
    gang_of,
    members,
    newcomer,
    policies,
    sized,
    vector,
)
from tests.core.contended import (
    RunningGang,
    contended,
    eviction_for,
    foreign_pod,
    places,
    running_gang,
    terminating,
    victims,
)

SMALL = sized(1)
ACTIONS = ("enqueue", "allocate", "preempt", "backfill")
WHOLE = PluginConf("gang", switches={"enablePreemptable": False})
BY = policies((("priority", WHOLE, "conformance"), ("predicates",)), ACTIONS)
"""Gangs may be victims, whole."""
SURPLUS = policies((("priority", "gang", "conformance"), ("predicates",)), ACTIONS)
"""Only members beyond a minimum may be."""

SHARED = policies(
    (("priority", WHOLE, "conformance"), ("overcommit", "predicates", "proportion")), ACTIONS
)


def singles(count: int, *, nodes: int) -> list[RunningGang]:
    """Single pods of one core, spread over the nodes."""
    return [running_gang(f"low{i}", [i % nodes]) for i in range(count)]


def test_a_gang_takes_the_room_of_a_lower_one_whole() -> None:
    high, low = gang_of("high", 2, priority=9), running_gang("low", [0, 1])
    outcome = contended(high, running=[low], nodes=cores(1, 1), by=BY)
    plan = eviction_for(outcome, "high")
    assert plan.action is EvictionAction.PREEMPT
    assert victims(outcome) == {"low-0", "low-1"}
    assert set(places(plan).values()) == {"n0", "n1"}
    assert {victim.rule for victim in plan.victims} == {"priority"}


def test_a_preemptor_is_told_that_it_waits_for_its_victims() -> None:
    high, low = gang_of("high", 1, priority=9), running_gang("low", [0])
    outcome = contended(high, running=[low], nodes=cores(1), by=BY)
    assert outcome.refusal("high").cause is Cause.PIPELINED
    assert outcome.text("high").endswith("it waits for 1 pod to go: default/low-0")


def test_a_gang_of_the_same_priority_is_never_evicted() -> None:
    high, low = gang_of("high", 2, priority=9), running_gang("low", [0, 1], priority=9)
    outcome = contended(high, running=[low], nodes=cores(1, 1), by=BY)
    assert victims(outcome) == set()
    assert outcome.text("high").endswith("preempt: 2 candidates: 2 same priority")


def test_no_more_pods_go_than_are_needed() -> None:
    high = gang_of("high", 1, priority=9)
    outcome = contended(high, running=singles(8, nodes=2), nodes=cores(4, 4), by=BY)
    assert len(victims(outcome)) == 1


@pytest.mark.parametrize("long", [0, 1])
def test_of_equal_pods_the_one_goes_that_ends_sooner(long: int) -> None:
    low = [
        running_gang(f"low{at}", [at], pod={"grace": 600.0 if at == long else 30.0})
        for at in range(2)
    ]
    outcome = contended(gang_of("high", 1, priority=9), running=low, nodes=cores(1, 1), by=BY)
    assert victims(outcome) == {f"low{1 - long}-0"}


def test_a_member_of_four_cores_takes_four_single_cores_of_one_node() -> None:
    high = gang_of("high", 1, cpu=4, priority=9)
    outcome = contended(high, running=singles(12, nodes=3), nodes=cores(4, 4, 4), by=BY)
    nodes = {victim.node for plan in outcome.plan.evictions for victim in plan.victims}
    assert (len(victims(outcome)), len(nodes)) == (4, 1)


def test_nothing_goes_where_the_whole_minimum_has_no_place_all_the_same() -> None:
    high, low = gang_of("high", 3, priority=9), running_gang("low", [0, 1])
    stays = foreign_pod("stays", 2)
    outcome = contended(high, running=[low], foreign=[stays], nodes=cores(1, 1, 1), by=BY)
    assert victims(outcome) == set()
    assert outcome.text("high").endswith(
        "with all candidates gone, cpu 2 is free, and the members ask 3"
    )


def test_members_beyond_a_minimum_go_before_a_gang_that_would_end() -> None:
    high = gang_of("high", 1, priority=9)
    elastic, tight = running_gang("elastic", [0, 0], minimum=1), running_gang("tight", [1, 1])
    outcome = contended(high, running=[tight, elastic], nodes=cores(2, 2), by=BY)
    assert victims(outcome) <= {"elastic-0", "elastic-1"}
    assert len(victims(outcome)) == 1


def test_each_of_two_groups_that_need_one_pod_keeps_one() -> None:
    high = gang_of("high", 2, priority=9)
    low = [running_gang(name, [at, at], minimum=1) for at, name in enumerate("ab")]
    outcome = contended(high, running=low, nodes=cores(2, 2), by=BY)
    assert victims(outcome) == {"a-1", "b-1"}


@pytest.mark.parametrize("members_each", [3, 10])
def test_no_role_loses_more_than_it_can_spare(members_each: int) -> None:
    high = gang_of("high", 2, priority=9)
    roles, least = dict.fromkeys("ab", members_each), members_each - 1
    parts = [Part(role) for role in roles for _ in range(members_each)]
    low = in_parts("low", parts, minimum=2 * least)
    needs = replace(low.gang, role_minimum=dict.fromkeys("ab", least), role_ready=roles)
    outcome = contended(
        high, running=[replace(low, gang=needs)], nodes=cores(2 * members_each), by=BY
    )
    assert victims(outcome) == {f"low-{least}", f"low-{least + members_each}"}


def test_one_sub_group_goes_and_the_other_stays_whole() -> None:
    high = gang_of("high", 2, priority=9)
    x, y = (SubGroup("pairs", name) for name in "xy")
    low = in_parts("low", [Part("", x), Part("", y)] * 2, minimum=2)
    policy = SubGroupPolicy("pairs", keys=("pair",), size=2, least=1)
    low = replace(low, gang=replace(low.gang, sub_groups=(policy,), sub_group_ready={x: 2, y: 2}))
    outcome = contended(high, running=[low], nodes=cores(4), by=BY)
    assert victims(outcome) == {"low-1", "low-3"}


def test_members_of_a_job_go_for_one_of_higher_priority_that_its_minimum_needs() -> None:
    (ps,) = members("job", 1, role="ps", priority=9)
    low = in_parts("job", [Part("worker")] * 4, minimum=3)
    job = replace(
        low.gang,
        waiting=(ps,),
        counts=replace(low.gang.counts, pending=1),
        role_minimum={"ps": 1, "worker": 2},
        role_ready={"worker": 4},
        role_valid={"worker": 4, "ps": 1},
    )
    outcome = contended(job, running=[low], nodes=cores(4), by=BY)
    assert victims(outcome) == {"job-3"}
    assert places(eviction_for(outcome, "job")) == {"job-ps-0": "n0"}


def in_parts(name: str, parts: Sequence[Part], *, minimum: int) -> RunningGang:
    """Members on one node that count for these parts."""
    made = running_gang(name, [0] * len(parts), minimum=minimum)
    runs = zip(made.runs, parts, strict=True)
    return replace(made, runs=tuple(replace(one, part=part) for one, part in runs))


def test_with_the_gang_plugin_a_gang_at_its_minimum_stays() -> None:
    high, low = gang_of("high", 1, priority=9), running_gang("low", [0, 0])
    outcome = contended(high, running=[low], nodes=cores(2), by=SURPLUS)
    assert victims(outcome) == set()


def test_a_gang_whose_owner_ends_all_members_goes_whole_though_it_has_more() -> None:
    high = gang_of("high", 1, priority=9)
    low = running_gang("low", [0, 0, 0], minimum=1, ends_whole=True)
    outcome = contended(high, running=[low], nodes=cores(3), by=BY)
    assert victims(outcome) == {"low-0", "low-1", "low-2"}


def test_a_gang_that_never_preempts_waits() -> None:
    high, low = gang_of("high", 1, priority=9, preempts=False), running_gang("low", [0])
    outcome = contended(high, running=[low], nodes=cores(1), by=BY)
    assert victims(outcome) == set()


def test_a_pod_that_may_go_to_one_node_only_takes_room_there() -> None:
    """As pods of DaemonSets are: the other node has a pod that costs less."""
    waiting = members("high", 1, pinned=NodeName("n0"))
    high = make_gang("high", waiting=waiting, min_member=1, priority=9)
    low = [running_gang("dear", [0], priority=5), running_gang("cheap", [1])]
    outcome = contended(high, running=low, nodes=cores(1, 1), by=BY)
    assert victims(outcome) == {"dear-0"}
    assert places(eviction_for(outcome, "high")) == {"high-0": "n0"}


def test_a_pod_that_is_not_preemptable_stays() -> None:
    high = gang_of("high", 1, priority=9)
    low = running_gang("low", [0], protected=Protection.UNPREEMPTABLE)
    outcome = contended(high, running=[low], nodes=cores(1), by=BY)
    assert outcome.text("high").endswith("preempt: 1 candidate: 1 not preemptable")


def test_members_beyond_the_minimum_never_evict() -> None:
    runs = running_gang("high", [0], minimum=1, priority=9).gang
    high = replace(
        runs, waiting=members("more", 1), counts=replace(runs.counts, pending=1), min_member=1
    )
    low = running_gang("low", [1])
    outcome = contended(high, running=[low], nodes=cores(1, 1), by=BY)
    assert victims(outcome) == set()


def test_room_that_is_about_to_be_free_is_waited_for_instead() -> None:
    high = gang_of("high", 1, priority=9)
    going, low = terminating(running_gang("going", [0])), running_gang("low", [1])
    outcome = contended(high, running=[going, low], nodes=cores(1, 1), by=BY)
    assert victims(outcome) == set()


def test_two_preemptors_do_not_count_on_the_same_room() -> None:
    one, two = gang_of("one", 1, priority=9), gang_of("two", 1, priority=8)
    outcome = contended(one, two, running=singles(2, nodes=2), nodes=cores(1, 1), by=BY)
    assert victims(outcome) == {"low0-0", "low1-0"}
    where = [places(eviction_for(outcome, name)).values() for name in ("one", "two")]
    assert sorted(node for nodes in where for node in nodes) == ["n0", "n1"]


def test_room_that_a_preemptor_counts_on_is_kept_from_those_planned_after_it() -> None:
    by = policies((("priority", WHOLE), ("predicates",)), (*ACTIONS, "allocate"))
    high = gang_of("high", 1, cpu=2, priority=9)
    low, small = running_gang("low", [0], cpu=1), gang_of("small", 1)
    outcome = contended(high, small, running=[low], nodes=cores(2), by=by)
    assert victims(outcome) == {"low-0"}
    assert outcome.order == [], "the idle core is kept in the second pass as well"


def test_a_gang_does_not_end_in_the_cycle_that_gives_a_member_of_it_a_place() -> None:
    runs = running_gang("low", [0, 0])
    low = replace(
        runs.gang,
        waiting=members("low-late", 1),
        counts=replace(runs.gang.counts, pending=1),
        request=runs.gang.request + vector(cpu=1, pods=1),
    )
    high = gang_of("high", 1, cpu=2, priority=9)
    grown = RunningGang(low, runs.runs)
    outcome = contended(high, running=[grown], nodes=cores(2, 1), by=BY, pending=(high, low))
    assert victims(outcome) == {"low-0", "low-1"}
    assert outcome.order == [], "the late member would run on alone"


def test_a_member_of_higher_priority_takes_the_room_of_one_of_its_own_gang() -> None:
    runs = running_gang("mixed", [0], priority=1, task_priority=1)
    wanted = members("mixed-lead", 1, role="lead", priority=5)
    mixed = replace(
        runs.gang,
        waiting=wanted,
        min_member=1,
        role_minimum={"lead": 1},
        role_valid={"": 1, "lead": 1},
        role_shapes={"lead": sized(1)},
        counts=replace(runs.gang.counts, pending=1),
        request=runs.gang.request + wanted[0].request,
    )
    outcome = contended(
        replace(mixed, role_minimum={"lead": 1}),
        running=[],
        foreign=runs.runs,
        nodes=cores(1),
        by=BY,
    )
    assert victims(outcome) == {"mixed-0"}


def test_a_group_without_pods_is_admitted_by_the_decision_that_makes_room_for_it() -> None:
    high = newcomer("high", cpu=2, priority=9, min_member=2, **described(2))
    low = [running_gang(f"low{i}", [i], min_request=vector(cpu=1)) for i in range(2)]
    outcome = contended(high, running=low, nodes=cores(1, 1), by=SHARED)
    assert victims(outcome) == {"low0-0", "low1-0"}
    assert outcome.admitted == ["high"]
    assert eviction_for(outcome, "high").admits


def test_guessed_slots_never_evict() -> None:
    high = newcomer("high", cpu=2, priority=9, min_member=2)
    outcome = contended(high, running=singles(2, nodes=2), nodes=cores(1, 1), by=BY)
    assert victims(outcome) == set()


def test_a_group_whose_minimum_fits_but_whose_min_resources_do_not_evicts_nothing() -> None:
    high = newcomer("high", cpu=2, priority=9, min_member=1, **described(1))
    stays = foreign_pod("stays", 1)
    outcome = contended(
        high, running=singles(1, nodes=1), foreign=[stays], nodes=cores(1, 1), by=SHARED
    )
    assert victims(outcome) == set()
    assert outcome.admitted == []


def with_slots(name: str) -> Gang:
    """A gang that was admitted and whose pods do not exist."""
    return make_gang(
        name,
        phase=GroupPhase.INQUEUE,
        min_request=vector(cpu=2),
        min_member=2,
        priority=9,
        **described(2),
    )


def described(replicas: int) -> dict[str, Any]:
    """What the template of a vcjob tells of its pods: one core each."""
    return {"role_shapes": {"": sized(1)}, "role_replicas": {"": replicas}}


def test_slots_of_a_template_evict_before_any_pod_exists() -> None:
    outcome = contended(with_slots("high"), running=singles(2, nodes=2), nodes=cores(1, 1), by=BY)
    assert victims(outcome) == {"low0-0", "low1-0"}
    assert all(place.task.is_slot for place in eviction_for(outcome, "high").places)


def test_a_group_without_a_job_evicts_for_no_pods_that_are_gone() -> None:
    """Whoever made them may never make others; those that come evict as any do."""
    high = replace(with_slots("high"), counts=Counts(failed=2, lost=2), role_replicas={})
    outcome = contended(high, running=singles(2, nodes=2), nodes=cores(1, 1), by=BY)
    assert victims(outcome) == set()


def test_a_gang_that_collects_takes_no_more_than_it_needs() -> None:
    high = gang_of("high", 1, priority=9)
    low = [*singles(3, nodes=1), running_gang("pair", [0, 0])]
    outcome = contended(high, running=low, nodes=cores(5), by=SHARED, now=1000.0)
    assert len(victims(outcome)) == 1


def test_a_gang_may_use_the_room_that_is_kept_for_it() -> None:
    high = gang_of("high", 2, priority=9)
    outcome = contended(high, running=singles(3, nodes=1), nodes=cores(4), by=SHARED, now=1000.0)
    assert len(victims(outcome)) == 1, "one core is idle, and kept for it"


def test_room_that_was_kept_for_a_gang_with_places_is_not_kept_twice() -> None:
    high, mid = gang_of("high", 2, priority=9), gang_of("mid", 1, priority=8)
    running = [running_gang("low", [0]), terminating(running_gang("ends", [1], priority=9))]
    outcome = contended(high, mid, running=running, nodes=cores(2, 1), by=BY, now=1000.0)
    assert outcome.plan.collected == ()
    assert places(eviction_for(outcome, "high")) == {"high-0": "n0", "high-1": "n1"}
    assert victims(outcome) == {"low-0"}
    assert places(eviction_for(outcome, "mid")) == {"mid-0": "n0"}


@pytest.mark.parametrize("share", ["proportion", "capacity"])
def test_no_queue_grows_beyond_its_share_by_an_exchange_while_others_wait(share: str) -> None:
    waits = gang_of("waits", 2, queue=QueueName("b"))
    assert victims(exchanged(share, waits)) == {"large-0"}
    assert victims(exchanged(share)) == {"small-0"}, "with the idle core it is enough"


def exchanged(share: str, *waits: Gang) -> Outcome:
    """A gang asks two cores of a queue that deserves two of four and holds three."""
    return contended(
        gang_of("high", 1, cpu=2, queue=QueueName("a"), priority=9),
        *waits,
        running=[
            running_gang("small", [0], cpu=1, queue="a"),
            running_gang("large", [0], cpu=2, queue="a"),
        ],
        nodes=cores(4),
        queues=[make_queue(name, deserved=amounts_of(cpu=2)) for name in ("a", "b")],
        by=policies((("priority", WHOLE, "conformance"), ("predicates", share)), ACTIONS),
    )


def test_no_pod_goes_where_a_vote_says_that_the_room_to_come_is_not_enough() -> None:
    no = Hooks(pipelined=lambda _: Ballot(Vote.REJECT))
    by = Policies(conf=BY.conf, tiers=[[(PluginConf("no"), lambda _: no)], *BY.tiers])
    high, low = gang_of("high", 1, priority=9), running_gang("low", [0])
    assert victims(contended(high, running=[low], nodes=cores(1), by=by)) == set()
    assert victims(contended(high, running=[low], nodes=cores(1), by=BY)) == {"low-0"}


def test_no_vote_lets_pods_go_for_a_part_of_a_minimum() -> None:
    """sla above gang says yes to a group that waited long enough."""
    sla = PluginConf("sla", arguments={"sla-waiting-time": "1s"})
    by = policies(((sla,), ("priority", WHOLE), ("predicates",)), ACTIONS)
    low = running_gang("low", [0])
    part = gang_of("high", 2, priority=9)
    assert victims(contended(part, running=[low], nodes=cores(1), by=by)) == set()
    whole = gang_of("high", 1, priority=9)
    assert victims(contended(whole, running=[low], nodes=cores(1), by=by)) == {"low-0"}


def test_a_resource_quota_is_never_freed_by_an_eviction() -> None:
    tiers = (("priority", WHOLE, "resourcequota"), ("predicates",))
    by = policies(tiers, ACTIONS)
    high = replace(with_slots("high"), phase=GroupPhase.PENDING)
    low = singles(2, nodes=2)
    cpu = {"namespace": "default", "name": "cpu", "used": (("cpu", 2000),)}
    outcome = contended(
        high,
        running=low,
        nodes=cores(1, 1),
        by=by,
        quotas=(Quota(hard=(("cpu", 3000),), **cpu),),  # type: ignore[arg-type]
    )
    assert victims(outcome) == set()
    assert outcome.refusal("high").cause is Cause.NAMESPACE_QUOTA
    outcome = contended(
        high,
        running=low,
        nodes=cores(1, 1),
        by=by,
        quotas=(Quota(hard=(("cpu", 4000),), **cpu),),  # type: ignore[arg-type]
    )
    assert len(victims(outcome)) == 2


def test_a_crowded_cluster_does_not_hide_a_quota_that_keeps_the_group_out() -> None:
    votes = PluginConf("overcommit", arguments={"overcommit-factor": 1.0})
    by = policies((("priority", WHOLE, votes, "resourcequota"), ("predicates",)), ACTIONS)
    high = replace(with_slots("high"), phase=GroupPhase.PENDING)
    quota = Quota("default", "cpu", hard=(("cpu", 0),), used=())
    outcome = contended(
        high,
        running=singles(2, nodes=2),
        nodes=cores(1, 1),
        by=by,
        quotas=(quota,),
    )
    assert victims(outcome) == set()


def test_what_the_quota_of_one_namespace_refuses_is_not_refused_in_another() -> None:
    votes = PluginConf("overcommit", arguments={"overcommit-factor": 1.0})
    by = policies((("priority", WHOLE, votes, "resourcequota"), ("predicates",)), ACTIONS)
    high = replace(with_slots("high"), phase=GroupPhase.PENDING)
    full = replace(high, namespace="full", key=group_key("full", "high"), created=-1.0)
    quota = Quota("full", "cpu", hard=(("cpu", 0),), used=())
    outcome = contended(
        full, high, running=singles(2, nodes=2), nodes=cores(1, 1), by=by, quotas=(quota,)
    )
    assert eviction_for(outcome, "high").places


def test_a_group_that_waited_long_enough_is_not_told_what_one_like_it_was_told() -> None:
    no = Hooks(pipelined=lambda _: Ballot(Vote.REJECT))
    sla = PluginConf("sla", switches={"enableJobOrder": False})
    top = policies(((sla,), ("priority", WHOLE), ("predicates",)), ACTIONS)
    tiers = [top.tiers[0], [(PluginConf("no"), lambda _: no)], *top.tiers[1:]]
    new, old = (
        make_gang(name, waiting=members(name, 1, shape=SMALL), priority=9, annotations=said)
        for name, said in (("new", {"sla-waiting-time": "1h"}), ("old", {"sla-waiting-time": "1s"}))
    )
    outcome = contended(
        replace(new, created=-1.0),
        old,
        running=[running_gang("low", [0])],
        nodes=cores(1),
        by=Policies(conf=top.conf, tiers=tiers),
    )
    assert eviction_for(outcome, "old").places


def test_after_a_veto_no_pod_goes_on_that_node_for_that_shape() -> None:
    high = gang_of("high", 1, priority=9)
    [task] = high.waiting
    cheap, dear = running_gang("cheap", [0]), running_gang("dear", [1], priority=5)
    veto = Veto(task.shape, NodeName("n0"))
    nodes = cores(1, 1)
    assert victims(contended(high, running=[cheap, dear], nodes=nodes, by=BY)) == {"cheap-0"}
    outcome = contended(high, running=[cheap, dear], nodes=nodes, by=BY, vetoes=frozenset({veto}))
    assert victims(outcome) == {"dear-0"}
    outcome = contended(high, running=[cheap], nodes=cores(1), by=BY, vetoes=frozenset({veto}))
    assert victims(outcome) == set()
    other = gang_of("high", 1, cpu=0.5, priority=9)
    outcome = contended(other, running=[cheap], nodes=cores(1), by=BY, vetoes=frozenset({veto}))
    assert victims(outcome) == {"cheap-0"}, "the shape is another one"


def test_no_pod_goes_when_the_action_is_not_configured() -> None:
    by = policies((("priority", WHOLE), ("predicates",)), ("enqueue", "allocate", "backfill"))
    high, low = gang_of("high", 1, priority=9), running_gang("low", [0])
    assert victims(contended(high, running=[low], nodes=cores(1), by=by)) == set()


def test_room_that_no_pod_of_another_scheduler_waits_for_is_taken_first() -> None:
    high = gang_of("high", 1, priority=9)
    late = running_gang("late", [0], pod={"started": 9.0, "created": 1.0})
    early = running_gang("early", [1], pod={"started": 1.0, "created": 1.0})
    zones = zip(cores(1, 1), "ab", strict=True)
    world = {
        "running": [late, early],
        "nodes": [replace(node, labels={"zone": zone}) for node, zone in zones],
        "by": BY,
    }

    def going(*coveting: PodShape) -> set[str]:
        return victims(contended(high, coveting=coveting, **world))  # type: ignore[arg-type]

    assert going() == {"late-0"}, "it loses the least work"
    assert going(sized(1, node_selector=(("zone", "a"),))) == {"early-0"}
    assert going(sized(1, node_selector=(("zone", "b"),))) == {"late-0"}
    assert going(sized(1)) == {"late-0"}, "it might go to either node"
    assert going(sized(2, node_selector=(("zone", "a"),))) == {"late-0"}, "no node is so large"
    unknown = PodShape(requests=(("example.com/gpu", 1),), node_selector=(("zone", "a"),))
    assert going(unknown) == {"late-0"}, "no node has one"


def test_a_pod_of_lower_priority_goes_all_the_same_where_another_scheduler_may_take_its_room() -> (
    None
):
    high = gang_of("high", 1, priority=9)
    low, more = running_gang("low", [0]), running_gang("more", [1], priority=5)
    zones = zip(cores(1, 1), "ab", strict=True)
    outcome = contended(
        high,
        running=[low, more],
        nodes=[replace(node, labels={"zone": zone}) for node, zone in zones],
        by=BY,
        coveting=(sized(1, node_selector=(("zone", "a"),)),),
    )
    assert victims(outcome) == {"low-0"}


def test_a_budget_that_lets_too_few_go_together_is_told() -> None:
    low, nodes = singles(4, nodes=2), cores(2, 2)
    outcomes = [
        contended(
            gang_of("high", 2, priority=9),
            running=low,
            nodes=nodes,
            by=BY,
            budgets=(DisruptionBudget("default", "pdb", LabelSelector(), allowed=allowed),),
        )
        for allowed in (1, 2)
    ]
    told = "no 2 places together were found: PodDisruptionBudget default/pdb lets 1 of 4 pods go"
    assert told in outcomes[0].text("high")
    assert [len(victims(outcome)) for outcome in outcomes] == [0, 2]


def test_a_gang_that_would_go_whole_and_may_not_is_told_by_its_budget() -> None:
    budget = DisruptionBudget("default", "pdb", LabelSelector(), allowed=1)
    low = running_gang("low", [0, 0, 1, 1])
    outcome = contended(
        gang_of("high", 1, priority=9),
        running=[low],
        nodes=cores(2, 2),
        by=BY,
        budgets=(budget,),
    )
    assert not victims(outcome)
    told = "no place was found: PodDisruptionBudget default/pdb lets 1 of 4 pods go"
    assert told in outcome.text("high")


@pytest.mark.parametrize("shapes", [100, 101])
def test_no_pod_is_evicted_for_a_gang_of_more_than_a_hundred_shapes(shapes: int) -> None:
    waiting = [make_task(f"high-{i}", shape=sized(1 - i / 1_000)) for i in range(shapes)]
    high = make_gang("high", waiting=tuple(waiting), priority=9)
    low, nodes = singles(shapes, nodes=shapes), cores(*[1] * shapes)
    outcome = contended(high, running=low, nodes=nodes, by=BY)
    assert len(victims(outcome)) == (shapes if shapes == 100 else 0)
    told = "members of 101 shapes, no pod is evicted for more than 100"
    assert (told in outcome.text("high")) is (shapes == 101)
