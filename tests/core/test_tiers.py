"""How plugins in tiers combine."""

from dataclasses import fields
from functools import cmp_to_key
from typing import Any, cast

import pytest

from app.core.conf_error import ConfError
from app.core.ledger import Ledger
from app.core.plugins.catalogue import SWITCHES
from app.core.points import Opened, Point
from app.core.policy import ABSTAIN, PERMIT, Ballot, Hooks, Policies, Predicates, Scoring, Vote
from app.core.tiers import build, open_policies
from app.core.victim_rules import Preemptor
from app.model.conf import PluginConf, SchedulerConf
from app.model.eviction import EvictionAction
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause, Holder, Refusal, Shortfall
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase, QueueState
from tests.builders import GIB, make_gang, make_node, make_queue, make_snapshot, make_task
from tests.core.plugins.sessions import (
    amounts_of,
    claiming,
    holding,
    room,
    sized_task,
)

RULES = ("predicate.NodePortsEnable", "volumebinding.wait")
NO = Refusal(Cause.NAMESPACE_QUOTA, where="first")
LATER_NO = Refusal(Cause.NAMESPACE_QUOTA, where="second")
REJECT = Ballot(Vote.REJECT, NO)
A, B, C = QueueName("a"), QueueName("b"), QueueName("c")


def open_fakes(
    *tiers: tuple[Hooks, ...],
    snapshot: Snapshot | None = None,
    switches: dict[str, bool] | None = None,
) -> Opened:
    """Plugins that answer ``tiers``, the first one with ``switches``."""
    ledger = Ledger(snapshot or make_snapshot())
    off = switches or {}
    configured = [
        [
            (PluginConf(f"fake-{i}-{k}", switches=off if i == k == 0 else {}), lambda _, h=h: h)
            for k, h in enumerate(tier)
        ]
        for i, tier in enumerate(tiers)
    ]
    conf = SchedulerConf(actions=(), tiers=())
    return open_policies(Policies(conf=conf, tiers=configured), ledger, now=0.0)


def open_conf(
    snapshot: Snapshot, *tiers: tuple[PluginConf, ...], now: float = 0.0
) -> tuple[Opened, Ledger]:
    conf = SchedulerConf(actions=("enqueue", "allocate"), tiers=tiers)
    ledger = Ledger(snapshot)
    return open_policies(build(conf), ledger, now=now), ledger


def voting(ballot: Ballot) -> Hooks:
    return Hooks(enqueueable=lambda _: ballot)


def by(field: str, *, sign: int = 1) -> Hooks:
    return Hooks(
        gang_order=lambda gang: sign * getattr(gang, field),
        task_order=lambda _gang: lambda task: sign * getattr(task, field),
    )


def voting_on_victims(ballot: Ballot) -> Hooks:
    return Hooks(pipelined=lambda _: ballot)


def starving(is_so: bool) -> Hooks:
    return Hooks(starving=lambda _: is_so)


def answering(hook: str, answer: Refusal | None) -> Hooks:
    if hook == "allocatable":
        return Hooks(allocatable=lambda _queue, _task: answer)
    return Hooks(overused=lambda _queue: answer)


class TestOrderOfGroups:
    def test_the_first_plugin_that_tells_two_apart_decides(self) -> None:
        opened = open_fakes((by("priority", sign=-1),), (by("min_member"),))
        gangs = [
            make_gang("c", priority=1, min_member=2),
            make_gang("b", priority=1, min_member=1),
            make_gang("a", priority=5, min_member=9),
        ]
        assert [g.name for g in sorted(gangs, key=opened.gang_key)] == ["a", "b", "c"]

    def test_then_the_older_and_then_namespace_and_name(self) -> None:
        opened = open_fakes()
        gangs = [
            make_gang("x", created=2, uid="1"),
            make_gang("a", created=1, uid="2", namespace="late"),
            make_gang("z", created=1, uid="3"),
            make_gang("y", created=1, uid="4"),
        ]
        assert [g.name for g in sorted(gangs, key=opened.gang_key)] == ["y", "z", "a", "x"]

    def test_a_plugin_that_is_switched_off_has_no_say(self) -> None:
        opened = open_fakes((by("priority", sign=-1),), switches={"enableJobOrder": False})
        gangs = [make_gang("young", priority=9, created=2), make_gang("old", created=1)]
        assert [g.name for g in sorted(gangs, key=opened.gang_key)] == ["old", "young"]


class TestOrderOfMembers:
    def test_plugins_then_the_trailing_index_then_age_and_name(self) -> None:
        opened = open_fakes((by("priority", sign=-1),))
        members = [
            make_task("job-w-10"),
            make_task("job-w-9"),
            make_task("late", created=5),
            make_task("early", created=4),
            make_task("job-v-10"),
            make_task("job-w-11", priority=8),
        ]
        expected = ["job-w-11", "job-w-9", "job-v-10", "job-w-10", "early", "late"]
        assert [t.name for t in sorted(members, key=opened.task_key(make_gang()))] == expected

    def test_a_plugin_that_is_switched_off_has_no_say(self) -> None:
        opened = open_fakes((by("priority"),), switches={"enableTaskOrder": False})
        members = [make_task("w-1", priority=1), make_task("w-0", priority=2)]
        assert [t.name for t in sorted(members, key=opened.task_key(make_gang()))] == ["w-0", "w-1"]


class TestOrderOfQueues:
    def snapshot(self) -> Snapshot:
        created = {"a": 3.0, "b": 2.0, "c": 2.0}
        return make_snapshot(queues=tuple(make_queue(n, created=t) for n, t in created.items()))

    def sorted(self, opened: Opened) -> list[QueueName]:
        names: list[QueueName] = [A, B, C]
        return sorted(names, key=cmp_to_key(opened.queue_order))

    def test_the_first_plugin_that_tells_two_apart_decides(self) -> None:
        def prefers(queue: QueueName) -> Hooks:
            return Hooks(queue_order=lambda left, right: (right == queue) - (left == queue))

        assert self.sorted(open_fakes((prefers(C),), (prefers(A),), snapshot=self.snapshot())) == [
            "c",
            "a",
            "b",
        ]

    def test_then_the_older_and_then_the_name(self) -> None:
        assert self.sorted(open_fakes(snapshot=self.snapshot())) == ["b", "c", "a"]

    def test_a_plugin_that_is_switched_off_has_no_say(self) -> None:
        backwards = Hooks(queue_order=lambda left, right: -1 if left > right else 1)
        opened = open_fakes(
            (backwards,), snapshot=self.snapshot(), switches={"enableQueueOrder": False}
        )
        assert self.sorted(opened) == ["b", "c", "a"]


VOTES = [
    pytest.param([], None, id="nobody votes"),
    pytest.param([[ABSTAIN], [ABSTAIN]], None, id="all abstain"),
    pytest.param([[PERMIT]], None, id="permit"),
    pytest.param([[REJECT]], NO, id="reject"),
    pytest.param([[PERMIT, REJECT]], NO, id="a rejection beats permissions of its tier"),
    pytest.param([[PERMIT], [REJECT]], None, id="a permission spares the lower tiers"),
    pytest.param([[ABSTAIN], [REJECT]], NO, id="abstaining leaves it to the next tier"),
]
"""How votes of tiers combine at every point that votes."""


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        *VOTES,
        pytest.param([[ABSTAIN, PERMIT], [REJECT]], None, id="abstaining beside a permission"),
        pytest.param(
            [[Ballot(Vote.REJECT)]], Refusal(Cause.NOT_ADMITTED), id="rejection without a reason"
        ),
    ],
)
def test_admission_is_a_vote_tier_by_tier(
    tiers: list[list[Ballot]], expected: Refusal | None
) -> None:
    opened = open_fakes(*(tuple(voting(b) for b in tier) for tier in tiers))
    assert opened.enqueueable(make_gang()) == expected


def test_a_voter_that_is_switched_off_has_no_vote_and_is_not_told() -> None:
    told: list[str] = []
    hooks = Hooks(enqueueable=lambda _: REJECT, enqueued=lambda gang: told.append(gang.name))
    other = Hooks(enqueued=lambda gang: told.append(f"other {gang.name}"))

    opened = open_fakes((hooks, other), switches={"enableJobEnqueued": False})
    assert opened.enqueueable(make_gang()) is None
    opened.enqueued(make_gang())
    assert told == ["other g"]


def test_everybody_is_told_of_an_admission() -> None:
    told: list[int] = []
    first = Hooks(enqueued=lambda _: told.append(1))
    second = Hooks(enqueued=lambda _: told.append(2))
    open_fakes((first,), (second,)).enqueued(make_gang())
    assert told == [1, 2]


@pytest.mark.parametrize(
    ("hook", "switch"), [("allocatable", "enabledAllocatable"), ("overused", "enabledOverused")]
)
@pytest.mark.parametrize(
    ("answers", "expected"),
    [([], None), ([None, None], None), ([None, LATER_NO], LATER_NO), ([NO, LATER_NO], NO)],
)
def test_the_first_refusal_decides(
    hook: str, switch: str, answers: list[Refusal | None], expected: Refusal | None
) -> None:
    fakes = tuple(answering(hook, a) for a in answers)
    ask = getattr(open_fakes(fakes), hook)
    args: tuple[Any, ...] = (QueueName("default"), make_task("t"))
    args = args if hook == "allocatable" else args[:1]
    assert ask(*args) == expected
    if answers:
        silent = open_fakes(fakes[:1], switches={switch: False})
        assert getattr(silent, hook)(*args) is None


def test_validity_is_the_first_refusal_and_cannot_be_switched_off() -> None:
    fakes = (Hooks(gang_valid=lambda _: None), Hooks(gang_valid=lambda _: NO))
    assert open_fakes(fakes).gang_valid(make_gang()) == NO
    assert open_fakes(fakes[:1]).gang_valid(make_gang()) is None
    assert open_fakes(fakes[1:], switches={"enableJobReady": False}).gang_valid(make_gang()) == NO


def test_ready_means_that_all_agree() -> None:
    def fake(answer: bool) -> Hooks:
        return Hooks(gang_ready=lambda _: answer)

    gang = make_gang()
    assert open_fakes().gang_ready(gang)
    assert open_fakes((fake(True),), (fake(True),)).gang_ready(gang)
    assert not open_fakes((fake(True),), (fake(False),)).gang_ready(gang)
    assert open_fakes((fake(False),), switches={"enableJobReady": False}).gang_ready(gang)


def test_scores_add_up() -> None:
    pack = Scoring(binpack_weight=3, binpack={"cpu": 2})
    spread = Scoring(least_requested=1, balanced=2)
    more = Scoring(least_requested=4)
    total = open_fakes((Hooks(scoring=pack), Hooks(scoring=spread)), (Hooks(scoring=more),)).scoring

    assert (total.least_requested, total.balanced, total.binpack_weight) == (5, 2, 3)
    assert total.binpack == {"cpu": 2}
    off = open_fakes((Hooks(scoring=pack),), switches={"enableNodeOrder": False}).scoring
    assert off.binpack_weight == 0


def test_predicates_are_off_without_the_plugin() -> None:
    ports_off = Predicates(node_ports=False)
    fake = (Hooks(predicates=ports_off),)

    assert open_fakes(fake).predicates == ports_off
    assert open_fakes().predicates == Predicates(enabled=False)
    assert open_fakes(fake, switches={"enablePredicate": False}).predicates == Predicates(
        enabled=False
    )


class TestQueues:
    @pytest.mark.parametrize(
        ("state", "is_open"),
        [
            (QueueState.OPEN, True),
            (QueueState.NEW, True),
            (QueueState.CLOSING, False),
            (QueueState.CLOSED, False),
            (QueueState.UNKNOWN, False),
        ],
    )
    def test_only_open_queues_take_groups_and_pods(self, state: QueueState, is_open: bool) -> None:
        snapshot = make_snapshot(queues=(make_queue("a", state=state),))
        opened = open_fakes((voting(PERMIT),), snapshot=snapshot)
        expected = None if is_open else Refusal(Cause.QUEUE_CLOSED, where="a")

        assert opened.enqueueable(make_gang(queue=A)) == expected
        assert opened.allocatable(A, make_task("t")) == expected
        assert opened.overused(A) is None

    def test_a_missing_queue_is_refused_before_any_plugin_is_asked(self) -> None:
        opened, _ = open_conf(make_snapshot(), (PluginConf("proportion"),))
        expected = Refusal(Cause.QUEUE_MISSING, where="a")

        assert opened.enqueueable(claiming("g", cpu=1, queue="a")) == expected
        assert opened.allocatable(A, make_task("t")) == expected
        assert opened.overused(A) == expected


class TestHolders:
    NODES = (make_node("n", cpu=10_000, memory=100 * GIB, pods=1000),)

    def test_a_refusal_names_the_groups_that_hold_most(self) -> None:
        queue = make_queue("a", capability=amounts_of(cpu=8))
        gangs = (
            *(holding(f"g{i}", cpu=i, queue="a", min_request=room(cpu=i)) for i in (1, 2, 3)),
            holding("g0", cpu=2, queue="a", min_request=room(cpu=2)),
            holding("elsewhere", cpu=9, min_request=room(cpu=9)),
        )
        snapshot = make_snapshot(nodes=self.NODES, queues=(queue,), gangs=gangs)
        opened, ledger = open_conf(snapshot, (PluginConf("proportion"),))
        refusal = opened.enqueueable(claiming("g", cpu=3, queue="a"))

        assert refusal is not None
        assert refusal.shortfalls == (Shortfall("cpu", asked=3000, free=0, limit=8000),)
        assert refusal.holders == (
            Holder("default/g3", "cpu", 3000),
            Holder("default/g0", "cpu", 2000),
            Holder("default/g2", "cpu", 2000),
        )
        ledger.admit(claiming("new", cpu=2.5, queue="a"))
        again = opened.enqueueable(claiming("g", cpu=3, queue="a"))
        assert again is not None
        assert [h.who for h in again.holders] == ["default/g3", "default/new", "default/g0"]

    def test_the_cluster_is_held_by_groups_of_all_queues(self) -> None:
        snapshot = make_snapshot(
            nodes=self.NODES,
            queues=(make_queue("a"),),
            gangs=(holding("x", cpu=1, queue="a"), holding("y", cpu=2)),
        )
        opened, _ = open_conf(snapshot, (PluginConf("overcommit"),))
        refusal = opened.enqueueable(claiming("g", cpu=30))

        assert refusal is not None
        assert [h.who for h in refusal.holders] == ["default/y", "default/x"]

    def test_a_limit_up_the_tree_is_held_by_its_whole_subtree(self) -> None:
        queues = (
            make_queue("top", capability=amounts_of(cpu=4)),
            make_queue("a", parent=QueueName("top")),
            make_queue("b", parent=QueueName("top")),
        )
        gangs = (
            holding("x", cpu=1, queue="a", min_request=room(cpu=1)),
            holding("y", cpu=3, queue="b", min_request=room(cpu=3)),
        )
        snapshot = make_snapshot(
            nodes=self.NODES, queues=queues, gangs=(*gangs, holding("z", cpu=9))
        )
        tree = PluginConf("capacity", switches={"enableHierarchy": True})
        opened, _ = open_conf(snapshot, (tree,))
        refusal = opened.enqueueable(claiming("g", cpu=3, queue="a"))

        assert refusal is not None
        assert refusal.where == "top"
        assert [h.who for h in refusal.holders] == ["default/y", "default/x"]

    def test_admitted_groups_hold_what_they_may_claim_and_pending_ones_nothing(self) -> None:
        queue = make_queue("a", capability=amounts_of(cpu=4))
        gangs = (
            claiming("in", cpu=3, queue="a", gated_request=room(cpu=1)),
            claiming("out", cpu=4, queue="a", phase=GroupPhase.PENDING),
            holding("half", cpu=0.5, queue="a", min_request=room(cpu=1), phase=GroupPhase.RUNNING),
        )
        snapshot = make_snapshot(nodes=self.NODES, queues=(queue,), gangs=gangs)
        opened, _ = open_conf(snapshot, (PluginConf("capacity"),))
        refusal = opened.enqueueable(claiming("g", cpu=5, queue="a"))

        assert refusal is not None
        assert refusal.holders == (
            Holder("default/in", "cpu", 2000),
            Holder("default/half", "cpu", 1000),
        )

    def test_what_groups_hold_beyond_their_minimums_keeps_nobody_at_the_door(self) -> None:
        queue = make_queue("a", capability=amounts_of(cpu=4))
        gangs = (
            holding("grown", cpu=2, queue="a", min_request=room(cpu=1)),
            holding("silent", cpu=2, queue="a"),
        )
        snapshot = make_snapshot(nodes=self.NODES, queues=(queue,), gangs=gangs)
        opened, ledger = open_conf(snapshot, (PluginConf("capacity"),))
        ledger.admit(make_gang("mute", queue=A))
        outside = opened.enqueueable(claiming("g", cpu=5, queue="a"))
        inside = opened.allocatable(A, sized_task(cpu=1))

        assert outside is not None
        assert inside is not None
        assert outside.holders == (Holder("default/grown", "cpu", 1000),)
        assert inside.holders == (
            Holder("default/grown", "cpu", 2000),
            Holder("default/silent", "cpu", 2000),
        )

    def test_nobody_holds_what_is_just_too_little(self) -> None:
        queue = make_queue("a", capability=amounts_of(cpu=1))
        snapshot = make_snapshot(nodes=self.NODES, queues=(queue,))
        opened, _ = open_conf(snapshot, (PluginConf("capacity"),))
        refusal = opened.allocatable(A, sized_task(cpu=2))

        assert refusal is not None
        assert refusal.holders == ()


class TestBuilding:
    @pytest.mark.parametrize("name", ["volcano-npu", "nodelock"])
    def test_a_plugin_without_effect_is_left_out(self, name: str) -> None:
        policies = build(SchedulerConf(actions=(), tiers=((PluginConf(name),),)))
        assert policies.tiers == [[]]

    def test_arguments_that_no_plugin_reads_are_told(self) -> None:
        tiers = (
            (PluginConf("gang"), PluginConf("capacity", arguments={"ancestorReclaimLvl": 1})),
            (
                PluginConf("predicates", arguments=dict.fromkeys(RULES, True)),
                PluginConf("binpack", arguments={"binpack.resources.nvidia.com/gpu": 2}),
                PluginConf("nodeorder", arguments={"leastrequested.weight": 3, "podaffinty": 1}),
                PluginConf("extender", arguments={"extender.urlPrefix": "http://a"}),
            ),
        )
        conf = SchedulerConf(actions=(), tiers=tiers, warnings=("plugin extender has no effect",))
        assert build(conf).conf.warnings == (
            "plugin extender has no effect",
            "tier 1, plugin 2 (capacity): argument ancestorReclaimLvl has no effect",
            "tier 2, plugin 1 (predicates): argument volumebinding.wait has no effect",
            "tier 2, plugin 2 (binpack): argument binpack.resources.nvidia.com/gpu has no effect",
            "tier 2, plugin 3 (nodeorder): argument podaffinty has no effect",
        )

    def test_wrong_arguments_are_found_before_any_cycle(self) -> None:
        plugin = PluginConf("nodeorder", arguments={"leastrequested.weight": "heavy"})
        with pytest.raises(ConfError):
            build(SchedulerConf(actions=(), tiers=((plugin,),)))

    def test_proportion_and_hierarchical_drf_conflict(self) -> None:
        drf = PluginConf("drf", switches={"enableHierarchy": True})
        with pytest.raises(ConfError) as caught:
            build(SchedulerConf(actions=(), tiers=((drf,), (PluginConf("proportion"),))))
        assert str(caught.value) == (
            "plugins proportion and drf with enableHierarchy conflict: both order the queues"
        )

    def test_hierarchical_drf_alone_and_proportion_beside_capacity_are_fine(self) -> None:
        drf = PluginConf("drf", switches={"enableHierarchy": True})
        build(SchedulerConf(actions=(), tiers=((drf,), (PluginConf("capacity"),))))
        build(
            SchedulerConf(actions=(), tiers=((PluginConf("proportion"), PluginConf("capacity")),))
        )


def test_an_ended_waiting_time_beats_the_quota_of_a_lower_tier() -> None:
    queue = make_queue("a", capability=amounts_of(cpu=1))
    snapshot = make_snapshot(nodes=TestHolders.NODES, queues=(queue,))
    sla = PluginConf("sla", arguments={"sla-waiting-time": "1m"})
    gang: Gang = claiming("g", cpu=2, queue="a")
    tiers = ((sla,), (PluginConf("proportion"),))

    early, _ = open_conf(snapshot, *tiers, now=59)
    late, _ = open_conf(snapshot, *tiers, now=60)
    same_tier, _ = open_conf(snapshot, (sla, PluginConf("proportion")), now=60)
    assert early.enqueueable(gang) is not None
    assert late.enqueueable(gang) is None
    assert same_tier.enqueueable(gang) is not None


def test_the_default_plugins_open_on_an_empty_cluster() -> None:
    names = ("priority", "gang", "conformance", "overcommit", "drf", "predicates", "proportion")
    opened, _ = open_conf(make_snapshot(), tuple(PluginConf(n) for n in names))
    gang = make_gang(waiting=(make_task("t-0"),), min_request=room(cpu=1))
    refusal = opened.enqueueable(gang)

    assert refusal is not None
    assert refusal.cause is Cause.CLUSTER_OVERUSED
    assert opened.gang_key(gang)[:2] == (0, False)
    assert opened.gang_valid(gang) is None


class TestTable:
    ROWS = tuple(row for row in vars(Opened).values() if isinstance(row, Point))

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
    def test_a_switch_is_a_key_that_the_configuration_knows(self, row: Point[Any, Any]) -> None:
        assert row.switch is None or row.switch in SWITCHES

    def test_every_hook_has_its_row(self) -> None:
        asked: set[str] = set()

        class Asked:
            def __getattr__(self, name: str) -> None:
                asked.add(name)

        for row in self.ROWS:
            row.of(cast(Hooks, Asked()))
        assert asked == {field.name for field in fields(Hooks)}

    def test_an_answer_is_combined_once(self) -> None:
        opened = open_fakes((by("priority"),))
        assert opened.gang_key is opened.gang_key


class TestVictims:
    """What combines of the rules about evictions, beside those about candidates."""

    @pytest.mark.parametrize(
        ("votes", "expected"),
        VOTES,
    )
    def test_whether_room_to_come_is_enough_is_a_vote_tier_by_tier(
        self, votes: list[list[Ballot]], expected: Refusal | None
    ) -> None:
        tiers = [tuple(map(voting_on_victims, tier)) for tier in votes]
        assert open_fakes(*tiers).pipelined(make_gang()) == expected

    def test_a_group_of_a_closed_queue_never_has_room_to_come(self) -> None:
        closed = make_snapshot(queues=(make_queue("default", state=QueueState.CLOSED),))
        opened = open_fakes((voting_on_victims(PERMIT),), snapshot=closed)
        refusal = opened.pipelined(make_gang())
        assert refusal is not None
        assert refusal.cause is Cause.QUEUE_CLOSED

    def test_a_plugin_that_is_switched_off_has_no_vote(self) -> None:
        tier = (voting_on_victims(REJECT), voting_on_victims(PERMIT))
        opened = open_fakes(tier, switches={"enableJobPipelined": False})
        assert opened.pipelined(make_gang()) is None

    @pytest.mark.parametrize(
        ("tiers", "expected"),
        [
            pytest.param([], False, id="no plugin has a say"),
            pytest.param([[True]], True, id="one yes"),
            pytest.param([[True, False]], False, id="all of a tier must agree"),
            pytest.param([[], [True, True]], True, id="the first tier that has a say"),
            pytest.param([[True], [False]], True, id="lower tiers are not asked after a yes"),
            pytest.param([[False], [True]], False, id="lower tiers are not asked after a no"),
        ],
    )
    def test_the_first_tier_that_has_a_say_tells_whether_a_group_starves(
        self, tiers: list[list[bool]], expected: bool
    ) -> None:
        opened = open_fakes(*(tuple(map(starving, tier)) for tier in tiers))
        assert opened.starving(make_gang()) is expected

    def test_a_plugin_that_is_switched_off_does_not_say_who_starves(self) -> None:
        tiers = ((starving(False),), (starving(True),))
        opened = open_fakes(*tiers, switches={"enableJobStarving": False})
        assert opened.starving(make_gang()) is True

    def test_the_first_plugin_that_tells_two_queues_apart_orders_their_victims(self) -> None:
        def order(*last: QueueName) -> Hooks:
            return Hooks(victim_queue_order=lambda _, x, y: (x in last) - (y in last))

        opened = open_fakes((order(C),), (order(A), order(B)))
        by = Preemptor(EvictionAction.RECLAIM, make_gang(), (), room())
        compare = opened.victim_queue_order
        assert [compare(by, A, C), compare(by, C, B), compare(by, A, B)] == [-1, 1, 1]
        assert compare(by, A, A) == 0
        assert open_fakes().victim_queue_order(by, A, B) == 0
