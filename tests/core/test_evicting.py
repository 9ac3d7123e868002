"""How rules about victims combine, and what protects pods in all tiers."""

from typing import Any

import numpy as np
import pytest

from app.core.evicting import HIGHER_PRIORITY, NO_RULE, SAME_PRIORITY, Evicting, Judgement
from app.core.ledger import Ledger
from app.core.policy import Hooks, Policies
from app.core.protection.disruptions import JOB_BUDGET, POD_BUDGET, RUN_TIME
from app.core.tiers import open_policies
from app.core.victim_rules import Candidate, EvictionRule, Preemptor, Trait
from app.model.conf import PluginConf, SchedulerConf
from app.model.disruption import DisruptionBudget
from app.model.parts import Part
from app.model.reason import Spared
from app.model.shape import LabelSelector
from app.model.snapshot import Snapshot
from tests.builders import make_queue
from tests.core.contests import PREEMPT, RECLAIM, Runner, cluster, preemptor, runs, wants

NEW = wants(priority=5)


def rule(name: str, says: dict[str, bool], **fields: Any) -> Hooks:
    """A plugin that answers by the names of pods, and else has no say."""
    made = EvictionRule(name, lambda _, c: says.get(c.pod.name), f"spared by {name}", **fields)
    return Hooks(preemptable=made, reclaimable=made)


def opened(
    snapshot: Snapshot, *tiers: tuple[Hooks, ...], off: bool = False, now: float = 0.0
) -> tuple[Evicting, Ledger]:
    """What is preemptable by ``tiers``; with ``off`` the first plugin is switched off."""
    ledger = Ledger(snapshot)
    switches = {"enablePreemptable": False} if off else {}
    configured = [
        [
            (
                PluginConf(f"fake-{i}-{k}", switches=switches if i == k == 0 else {}),
                lambda _, h=h: h,
            )
            for k, h in enumerate(tier)
        ]
        for i, tier in enumerate(tiers)
    ]
    policies = Policies(conf=SchedulerConf(actions=(), tiers=()), tiers=configured)
    return open_policies(policies, ledger, now=now).preemptable, ledger


def judge(
    snapshot: Snapshot, *tiers: tuple[Hooks, ...], by: Preemptor | None = None, **more: Any
) -> Judgement:
    evicting, _ = opened(snapshot, *tiers, **more)
    return evicting.judge(by or preemptor(NEW), np.arange(len(snapshot.running)))


def names(judgement: Judgement, snapshot: Snapshot) -> dict[str, str]:
    """The rules that let pods go, by their names."""
    pods = snapshot.running.pods
    return {pods[at].name: judgement.rule(at) for at in judgement.allowed.tolist()}


YES = {"a-0": True, "b-0": True, "c-0": True}
THREE = cluster(*(runs(name) for name in "abc"), waits=(NEW,))


class TestTiers:
    def test_all_rules_of_a_tier_that_have_a_say_must_agree(self) -> None:
        tier = (rule("x", YES), rule("y", {"a-0": True, "b-0": False}))
        found = judge(THREE, tier)

        assert names(found, THREE) == {"a-0": "x+y", "c-0": "x"}
        assert found.tier == 0
        assert found.spared == (Spared("spared by y", 1),)

    def test_the_first_tier_that_lets_a_candidate_go_decides(self) -> None:
        found = judge(THREE, (rule("x", {"a-0": True}),), (rule("y", YES),))
        assert names(found, THREE) == {"a-0": "x"}
        assert found.spared == (Spared(NO_RULE, 2),)

    def test_an_empty_intersection_stays_empty_and_the_next_tier_is_asked(self) -> None:
        split = (
            rule("x", {"a-0": True, "b-0": False}),
            rule("y", {"a-0": False, "b-0": True}),
            rule("z", {"a-0": True, "b-0": True}),
        )
        assert judge(THREE, split).tier is None
        found = judge(THREE, split, (rule("w", {"b-0": True}),))
        assert names(found, THREE) == {"b-0": "w"}
        assert found.tier == 1

    def test_no_candidate_goes_where_no_rule_has_a_say(self) -> None:
        found = judge(THREE, (rule("x", {}),), ())
        assert found.allowed.tolist() == []
        assert found.spared == (Spared(NO_RULE, 3),)

    def test_a_no_that_binds_counts_in_every_tier(self) -> None:
        binding = rule("share", {"a-0": False, "b-0": True}, binds=True)
        found = judge(THREE, (rule("x", YES),), (binding,))
        assert names(found, THREE) == {"b-0": "x+share", "c-0": "x"}
        assert found.spared == (Spared("spared by share", 1),)

    def test_a_rule_about_single_pods_only_says_no(self) -> None:
        tier = (rule("x", YES), rule("fresh", {"a-0": False, "b-0": True}, by_pod=True))
        found = judge(THREE, tier)
        assert names(found, THREE) == {"b-0": "x", "c-0": "x"}
        assert found.spared == (Spared("spared by fresh", 1),)
        all_fresh = rule("fresh", dict.fromkeys(YES, False), by_pod=True)
        found = judge(THREE, (rule("x", YES), all_fresh))
        assert found.tier is None
        assert found.spared == (Spared("spared by fresh", 3),)

    def test_a_no_about_a_single_pod_binds_as_well(self) -> None:
        fresh = rule("fresh", {"a-0": False}, by_pod=True)
        found = judge(THREE, (rule("x", YES),), (fresh,))
        assert set(names(found, THREE)) == {"b-0", "c-0"}
        assert not found.still_allows((0,))
        assert found.still_allows((1, 2))

    def test_a_plugin_that_is_switched_off_has_no_say(self) -> None:
        tiers = ((rule("x", {"a-0": False}), rule("y", YES)),)
        assert set(names(judge(THREE, *tiers), THREE)) == {"b-0", "c-0"}
        assert set(names(judge(THREE, *tiers, off=True), THREE)) == {"a-0", "b-0", "c-0"}


class TestPriority:
    SNAPSHOT = cluster(
        runs("a", priority=4), runs("b", priority=5), runs("c", priority=6), waits=(NEW,)
    )

    def test_no_gang_evicts_one_of_its_own_priority_or_a_higher_one(self) -> None:
        found = judge(self.SNAPSHOT, (rule("x", YES),))
        assert names(found, self.SNAPSHOT) == {"a-0": "x"}
        assert found.spared == (Spared(HIGHER_PRIORITY, 1), Spared(SAME_PRIORITY, 1))

    def test_equals_go_where_the_rule_looks_at_more_than_priority(self) -> None:
        fair = rule("drf", YES, among_equals=True)
        assert set(names(judge(self.SNAPSHOT, (fair,)), self.SNAPSHOT)) == {"a-0", "b-0"}

    def test_between_queues_priorities_do_not_count(self) -> None:
        found = judge(self.SNAPSHOT, (rule("x", YES),), by=preemptor(NEW, RECLAIM))
        assert set(names(found, self.SNAPSHOT)) == {"a-0", "b-0", "c-0"}

    @pytest.mark.parametrize(("mine", "may_go"), [(2, True), (1, False), (0, False)])
    def test_inside_a_gang_only_members_of_lower_priority_go(self, mine: int, may_go: bool) -> None:
        grown = wants("a", task_priority=mine, priority=5)
        runner = runs("a", task_priority=1, priority=5, waiting=grown.waiting)
        snapshot = cluster(runner)
        found = judge(snapshot, (rule("x", YES),), by=preemptor(runner.gang, PREEMPT))
        assert bool(names(found, snapshot)) is may_go


class TestProtection:
    """The same whatever plugins say."""

    TIER = (rule("x", dict.fromkeys((f"g-{i}" for i in range(4)), True)),)

    def test_a_budget_is_asked_about_all_that_go_together(self) -> None:
        budget = DisruptionBudget("default", "b", LabelSelector(), allowed=2)
        snapshot = cluster(runs("g", 4), waits=(NEW,), budgets=(budget,))
        evicting, ledger = opened(snapshot, self.TIER)
        found = evicting.judge(preemptor(NEW), np.arange(4))

        assert len(found.allowed) == 4
        assert found.still_allows((0, 1))
        assert not found.still_allows((0, 1, 2))
        ledger.evict(0)
        assert found.still_allows((1,))
        assert not found.still_allows((1, 2))
        ledger.evict(1)
        assert not found.still_allows((2,))

    def test_a_budget_that_allows_none_spares_all_that_it_covers(self) -> None:
        budget = DisruptionBudget("default", "b", LabelSelector(), allowed=0)
        snapshot = cluster(runs("g", 4), waits=(NEW,), budgets=(budget,))
        found = judge(snapshot, self.TIER)
        assert found.spared == (Spared(POD_BUDGET, 4),)

    @pytest.mark.parametrize(
        ("annotation", "goes"),
        [
            ({"volcano.sh/jdb-max-unavailable": "1"}, 1),
            ({"volcano.sh/jdb-max-unavailable": "50%"}, 2),
            ({"volcano.sh/jdb-min-available": "1"}, 3),
            ({"volcano.sh/jdb-min-available": "60%"}, 1),
            ({"volcano.sh/jdb-min-available": "4"}, 0),
            ({"volcano.sh/jdb-min-available": "few"}, 4),
            ({"volcano.sh/jdb-max-unavailable": "3", "volcano.sh/jdb-min-available": "3"}, 1),
        ],
    )
    def test_a_job_gives_no_more_members_than_its_budget_says(
        self, annotation: dict[str, str], goes: int
    ) -> None:
        for runner in (
            runs("g", 4, annotations=annotation),
            runs("g", 4, pod={"annotations": annotation}),
        ):
            snapshot = cluster(runner, waits=(NEW,))
            evicting, ledger = opened(snapshot, self.TIER)
            found = evicting.judge(preemptor(NEW), np.arange(4))
            if not goes:
                assert found.spared == (Spared(JOB_BUDGET, 4),)
                continue
            assert found.still_allows(range(goes))
            assert goes == 4 or not found.still_allows(range(goes + 1))
            for at in range(goes):
                assert found.still_allows((at,))
                ledger.evict(at)
            assert goes == 4 or not found.still_allows((goes,))

    @pytest.mark.parametrize(("now", "goes"), [(159, False), (160, True)])
    @pytest.mark.parametrize("said", ["60", "1m", " 60s "])
    def test_a_pod_has_the_minimum_run_time_of_its_queue(
        self, now: float, goes: bool, said: str
    ) -> None:
        queue = make_queue("q", annotations={"pumice.sh/minimum-run-time": said})
        runner = runs("g", 1, queue="q", pod={"started": 100.0})
        snapshot = cluster(runner, waits=(NEW,), queues=(queue,))
        found = judge(snapshot, self.TIER, now=now)
        assert found.spared == (() if goes else (Spared(RUN_TIME, 1),))

    def test_a_pod_that_has_not_started_has_run_for_no_time(self) -> None:
        queue = make_queue("q", annotations={"pumice.sh/minimum-run-time": "1s"})
        snapshot = cluster(runs("g", 1, queue="q"), waits=(NEW,), queues=(queue,))
        assert judge(snapshot, self.TIER, now=1e9).spared == (Spared(RUN_TIME, 1),)

    @pytest.mark.parametrize("said", ["soon", "-1s", "-5", ""])
    def test_a_time_that_cannot_be_read_protects_nothing(self, said: str) -> None:
        queue = make_queue("q", annotations={"pumice.sh/minimum-run-time": said})
        snapshot = cluster(runs("g", 1, queue="q"), waits=(NEW,), queues=(queue,))
        assert judge(snapshot, self.TIER).spared == ()

    @pytest.mark.parametrize(
        ("said", "started", "since"), [("60", 100.0, 160.0), ("1m", 0.0, 260.0), ("", 100.0, 0.0)]
    )
    def test_a_judgement_tells_when_the_minimum_run_time_of_a_pod_ends(
        self, said: str, started: float, since: float
    ) -> None:
        """A pod that has not started counts as starting now."""
        queue = make_queue("q", annotations={"pumice.sh/minimum-run-time": said})
        runner = runs("g", 1, queue="q", pod={"started": started})
        snapshot = cluster(runner, waits=(NEW,), queues=(queue,))
        assert judge(snapshot, self.TIER, now=200.0).may_go_from(0) == since


class TestLeaving:
    """Units that go one after the other."""

    TIER = (rule("x", dict.fromkeys((f"{name}-{i}" for name in "ab" for i in range(2)), True)),)
    BUDGET = DisruptionBudget("default", "b", LabelSelector(), allowed=3)
    SNAPSHOT = cluster(runs("a", 2), runs("b", 2), waits=(NEW,), budgets=(BUDGET,))

    def test_all_of_several_units_go_or_none_does(self) -> None:
        evicting, ledger = opened(self.SNAPSHOT, self.TIER)
        found = evicting.judge(preemptor(NEW), np.arange(4))
        with found.leaving() as leaving:
            assert leaving.take([(0, 1)]) is None
            assert leaving.take([(2,), (3,)]) == 1
            assert len(ledger.evicted) == 2
            assert leaving.take([(2,)]) is None
        assert not ledger.evicted

    def test_a_unit_may_be_gone_in_part(self) -> None:
        evicting, ledger = opened(self.SNAPSHOT, self.TIER)
        found = evicting.judge(preemptor(NEW), np.arange(4))
        with found.leaving() as leaving:
            assert leaving.take([(0,), (0, 1), (2,)]) is None
            assert len(ledger.evicted) == 3

    def test_what_may_go_yet_is_what_each_pod_by_itself_may(self) -> None:
        evicting, _ = opened(self.SNAPSHOT, self.TIER)
        found = evicting.judge(preemptor(NEW), np.arange(4))
        with found.leaving() as leaving:
            assert leaving.still_may().tolist() == [True] * 4
            assert leaving.take([(0,), (1,), (2,)]) is None
            assert leaving.still_may().tolist() == [False] * 4


@pytest.mark.parametrize(
    ("trait", "runners"),
    [
        (Trait.GANG, (runs("a", 2), runs("b"))),
        (Trait.QUEUE, (runs("a", 2), runs("b", queue="q"))),
        (Trait.PART, (runs("a", parts=(Part("x"), Part("x"), Part("y"))),)),
        (Trait.REQUEST, (runs("a", 2), runs("b", cpu=2))),
    ],
)
def test_one_of_those_that_are_alike_for_a_rule_is_asked_about(
    trait: Trait, runners: tuple[Runner, ...]
) -> None:
    asked: list[str] = []

    def says(_preemptor: Preemptor, candidate: Candidate) -> bool:
        asked.append(candidate.pod.name)
        return True

    snapshot = cluster(*runners, waits=(NEW,), queues=(make_queue("q"),))
    for looks_at, classes in ((frozenset({trait}), 2), (frozenset[Trait](), 1)):
        asked.clear()
        found = judge(snapshot, (Hooks(preemptable=EvictionRule("x", says, "", looks_at)),))
        assert len(asked) == classes
        assert len(found.allowed) == 3
