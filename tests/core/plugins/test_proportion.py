"""proportion: by weight, within capability and guarantee."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.core.policy import Vote
from app.core.shares import limits
from app.core.shares.entitlements import entitlements
from app.model.gang import Counts, Gang, Task
from app.model.ids import QueueName
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause, Shortfall
from app.model.resources import Vector
from app.model.snapshot import QueueUsage, Snapshot
from app.model.workload import GroupPhase, Queue
from tests.builders import GIB, make_gang, make_node, make_queue, make_snapshot, make_table
from tests.core.plugins.sessions import (
    amounts_of,
    claiming,
    holding,
    open_plugin,
    room,
    sized_task,
)

NODES = tuple(make_node(f"n{i}", cpu=5000, memory=50 * GIB, pods=1000) for i in range(2))
"""10 cores, 100 GiB."""


def snapshot_of(*gangs: Gang, queues: tuple[Queue, ...] = (), **fields: Any) -> Snapshot:
    return make_snapshot(nodes=NODES, queues=queues, gangs=gangs, **fields)


def deserved_cpu(snapshot: Snapshot) -> dict[str, float]:
    entitled = entitlements(Ledger(snapshot), limits.real_capabilities(snapshot))
    return {name: e.deserved[0] / 1000 for name, e in entitled.items()}


def half_bound(name: str, waiting: tuple[Task, ...], *, min_member: int, **fields: Any) -> Gang:
    """Two members of one core are bound, as a crash in the middle of binding leaves them."""
    held = room(cpu=2)
    return make_gang(
        name,
        waiting=waiting,
        allocated=held,
        request=held + sum(task.request for task in waiting),
        min_member=min_member,
        counts=Counts(bound=2, pending=len(waiting)),
        partial=True,
        **fields,
    )


class TestDeserved:
    def test_queues_with_groups_share_by_weight(self) -> None:
        queues = (make_queue("a", weight=1), make_queue("b", weight=3), make_queue("idle"))
        snapshot = snapshot_of(
            holding("a", cpu=0, wants=20, queue="a"),
            holding("b", cpu=5, wants=20, queue="b"),
            queues=queues,
        )
        assert deserved_cpu(snapshot) == {"a": 2.5, "b": 7.5}

    def test_of_a_cordoned_node_only_what_runs_there_is_shared(self) -> None:
        queues = (make_queue("a", weight=3), make_queue("b", weight=1))
        cordoned = make_node("z", cpu=10_000, memory=100 * GIB, unschedulable=True)
        table = make_table((*NODES, cordoned))
        used = np.zeros_like(table.allocatable)
        used[table.index[cordoned.name]] = room(cpu=2)
        gangs = (
            holding("a", cpu=0, wants=20, queue="a"),
            holding("b", cpu=2, wants=20, queue="b"),
        )

        def deserve(**fields: Any) -> dict[str, float]:
            fields |= {"table": table, "used": used}
            return deserved_cpu(make_snapshot(queues=queues, gangs=gangs, **fields))

        assert deserve() == {"a": 9, "b": 3}
        assert deserve(asked_of_cordoned=room(cpu=4)) == {"a": 12, "b": 4}
        assert deserve(asked_of_cordoned=room(cpu=40)) == {"a": 15, "b": 5}, "8 are free there"

    def test_guarantees_of_others_are_out_of_reach(self) -> None:
        queues = (make_queue("a"), make_queue("b", guarantee=amounts_of(cpu=4)))
        snapshot = snapshot_of(holding("a", cpu=0, wants=20, queue="a"), queues=queues)
        assert deserved_cpu(snapshot) == {"a": 6}

    def test_capability_limits_and_what_it_leaves_goes_to_the_others(self) -> None:
        queues = (make_queue("a", capability=amounts_of(cpu=2)), make_queue("b"))
        snapshot = snapshot_of(
            holding("a", cpu=0, wants=20, queue="a"),
            holding("b", cpu=0, wants=20, queue="b"),
            queues=queues,
        )
        assert deserved_cpu(snapshot) == {"a": 2, "b": 8}

    def test_a_guarantee_beyond_the_capability_does_not_lift_it(self) -> None:
        queue = make_queue("a", capability=amounts_of(cpu=2), guarantee=amounts_of(cpu=3))
        snapshot = snapshot_of(holding("a", cpu=0, wants=9, queue="a"), queues=(queue,))
        assert deserved_cpu(snapshot) == {"a": 2}

    def test_what_makes_a_gang_whole_that_is_bound_in_part_is_deserved(self) -> None:
        torn = half_bound("torn", tuple(sized_task(f"t-{i}") for i in range(9)), min_member=7)
        rival = holding("rival", cpu=0, wants=20, queue="b")
        queues = (make_queue("default"), make_queue("b"))
        assert deserved_cpu(snapshot_of(torn, rival, queues=queues)) == {"b": 5, "default": 7}

    def test_of_unequal_members_the_largest_may_be_the_one_that_is_lacking(self) -> None:
        waiting = (sized_task("t-0", cpu=5), sized_task("t-1", cpu=1))
        torn = half_bound("torn", waiting, min_member=3)
        rival = holding("rival", cpu=0, wants=20, queue="b")
        queues = (make_queue("default"), make_queue("b"))
        assert deserved_cpu(snapshot_of(torn, rival, queues=queues)) == {"b": 5, "default": 7}

    def test_a_sub_group_that_cannot_be_made_whole_any_more_is_made_up_for_by_another(self) -> None:
        waiting = tuple(sized_task(f"t-{i}") for i in range(3))
        begun, other = SubGroup("s", "0"), SubGroup("s", "1")
        torn = half_bound(
            "torn",
            waiting,
            min_member=3,
            sub_groups=(SubGroupPolicy("s", keys=("k",), size=3, least=1),),
            sub_group_ready={begun: 2},
            sub_group_of={task.uid: other for task in waiting},
        )
        rival = holding("rival", cpu=0, wants=20, queue="b")
        queues = (make_queue("default"), make_queue("b", weight=4))
        assert deserved_cpu(snapshot_of(torn, rival, queues=queues)) == {"b": 8, "default": 5}

    def test_members_that_a_gang_bound_in_part_lacks_count_before_they_exist(self) -> None:
        torn = half_bound("torn", (sized_task("t-0"),), min_member=7, min_request=room(cpu=7))
        rival = holding("rival", cpu=0, wants=20, queue="b")
        queues = (make_queue("default"), make_queue("b"))
        assert deserved_cpu(snapshot_of(torn, rival, queues=queues)) == {"b": 5, "default": 7}

    def test_a_gang_that_is_bound_in_part_does_not_lift_a_capability(self) -> None:
        torn = half_bound("torn", tuple(sized_task(f"t-{i}") for i in range(6)), min_member=8)
        queues = (make_queue("default", capability=amounts_of(cpu=6)),)
        assert deserved_cpu(snapshot_of(torn, queues=queues)) == {"default": 6}

    def test_members_that_do_not_exist_count_whether_or_not_their_group_is_admitted(
        self,
    ) -> None:
        half = make_gang(
            "half",
            waiting=(sized_task(cpu=1, gib=0),),
            min_member=3,
            min_request=room(cpu=3),
        )
        none_yet = claiming("none-yet", cpu=2, min_member=2)
        outside = claiming("outside", cpu=4, min_member=4, phase=GroupPhase.PENDING)
        assert deserved_cpu(snapshot_of(half, none_yet)) == {"default": 5}
        assert deserved_cpu(snapshot_of(half, none_yet, outside)) == {"default": 9}

    def test_without_minimum_resources_they_count_like_their_siblings(self) -> None:
        first_of_four = make_gang("half", waiting=(sized_task(cpu=1, gib=0),), min_member=4)
        assert deserved_cpu(snapshot_of(first_of_four)) == {"default": 4}

    def test_minimum_resources_that_leave_out_what_siblings_ask_for_do_not_count_less(self) -> None:
        first = sized_task(cpu=1, gib=0)
        gang = make_gang("g", waiting=(first,), min_member=3, min_request=room(cpu=1))
        assert deserved_cpu(snapshot_of(gang)) == {"default": 3}

    @pytest.mark.parametrize("minimum", [None, room(cpu=3)], ids=["shapes", "minResources"])
    @pytest.mark.parametrize("phase", [GroupPhase.RUNNING, GroupPhase.UNKNOWN])
    def test_members_that_a_running_gang_has_lost_count_like_those_that_never_were(
        self, phase: GroupPhase, minimum: Vector | None
    ) -> None:
        one_is_done = make_gang(
            phase=phase,
            min_member=3,
            min_request=minimum,
            allocated=room(cpu=1),
            counts=Counts(running=1, succeeded=1),
            role_shapes={"": sized_task(cpu=1, gib=0).shape},
        )
        assert deserved_cpu(snapshot_of(one_is_done)) == {"default": 2}

    def test_no_groups_no_entitlements(self) -> None:
        assert deserved_cpu(snapshot_of()) == {}

    @given(order=st.permutations(["a", "b", "c", "d"]))
    def test_it_does_not_depend_on_the_order_of_queues(self, order: list[str]) -> None:
        weights = {"a": 1, "b": 2, "c": 3, "d": 7}
        queues = tuple(make_queue(name, weight=weights[name]) for name in order)
        gangs = tuple(holding(n, cpu=0, wants=3 + weights[n], queue=n) for n in order)
        mine = deserved_cpu(snapshot_of(*gangs, queues=queues))
        base = tuple(make_queue(name, weight=weights[name]) for name in sorted(order))

        again = deserved_cpu(snapshot_of(*sorted(gangs, key=lambda g: g.key), queues=base))
        assert mine == again


class TestOrder:
    def test_higher_queue_priority_goes_first_whatever_the_share(self) -> None:
        queues = (make_queue("a", priority=1), make_queue("b"))
        hooks, _ = open_plugin(
            "proportion",
            snapshot_of(
                holding("a", cpu=4, wants=9, queue="a"),
                holding("b", cpu=0, wants=9, queue="b"),
                queues=queues,
            ),
        )
        assert hooks.queue_order
        assert hooks.queue_order(QueueName("a"), QueueName("b")) < 0
        assert hooks.queue_order(QueueName("b"), QueueName("a")) > 0

    def test_the_smaller_share_goes_first_and_follows_the_cycle(self) -> None:
        gang = make_gang("b", queue=QueueName("b"), waiting=(sized_task(cpu=4),))
        snapshot = snapshot_of(
            holding("a", cpu=2, wants=9, queue="a"),
            gang,
            queues=(make_queue("a"), make_queue("b")),
        )
        hooks, ledger = open_plugin("proportion", snapshot)
        assert hooks.queue_order
        assert hooks.queue_order(QueueName("b"), QueueName("a")) < 0

        ledger.place(gang, gang.waiting[0], node=0)
        assert hooks.queue_order(QueueName("a"), QueueName("b")) < 0

    def test_queues_without_groups_are_equal(self) -> None:
        snapshot = snapshot_of(queues=(make_queue("a"), make_queue("b")))
        hooks, _ = open_plugin("proportion", snapshot)
        assert hooks.queue_order
        assert hooks.queue_order(QueueName("a"), QueueName("b")) == 0


class TestAdmission:
    QUEUE = make_queue("q", capability=amounts_of(cpu=4))

    @pytest.mark.parametrize(
        ("cpu", "gib", "expected"),
        [
            (2, 0, Vote.PERMIT),
            (2.001, 0, Vote.REJECT),
            (1, 100, Vote.PERMIT),
            (1, 101, Vote.REJECT),
        ],
    )
    def test_claims_fit_the_capability_and_the_cluster(
        self, cpu: float, gib: float, expected: Vote
    ) -> None:
        zero = room()
        usage = {
            "q": QueueUsage(room(cpu=3), room(cpu=3), room(cpu=1), room(cpu=2), groups=3),
            "default": QueueUsage(zero, zero, zero, zero, groups=1),
        }
        snapshot = snapshot_of(queues=(self.QUEUE,), usage=usage)
        hooks, _ = open_plugin("proportion", snapshot)
        assert hooks.enqueueable
        assert hooks.enqueueable(claiming("g", cpu=cpu, gib=gib, queue="q")).vote is expected

    def test_a_rejection_has_the_numbers_and_volcanos_text(self) -> None:
        held = holding("h", cpu=3, queue="q", min_request=room(cpu=3))
        snapshot = snapshot_of(held, queues=(self.QUEUE,))
        hooks, _ = open_plugin("proportion", snapshot)
        assert hooks.enqueueable
        refusal = hooks.enqueueable(claiming("g", cpu=2, gib=200, queue="q")).refusal

        assert refusal is not None
        assert refusal.cause is Cause.QUEUE_QUOTA
        assert refusal.where == "q"
        assert refusal.shortfalls == (
            Shortfall("cpu", asked=2000, free=1000, limit=4000),
            Shortfall("memory", asked=200 * GIB, free=100 * GIB, limit=100 * GIB),
        )
        assert refusal.detail == (
            "queue resource quota insufficient: insufficient cpu, insufficient memory"
        )

    def test_an_admitted_claim_counts_for_the_next(self) -> None:
        hooks, ledger = open_plugin("proportion", snapshot_of(queues=(self.QUEUE,)))
        assert hooks.enqueueable
        first, second = (claiming(name, cpu=3, queue="q") for name in ("one", "two"))
        assert hooks.enqueueable(first).vote is Vote.PERMIT
        ledger.admit(first)
        assert hooks.enqueueable(second).vote is Vote.REJECT

    def test_a_group_is_not_kept_out_by_its_own_remains(self) -> None:
        gang = holding("back", cpu=3, queue="q", min_request=room(cpu=4))
        hooks, _ = open_plugin("proportion", snapshot_of(gang, queues=(self.QUEUE,)))
        assert hooks.enqueueable
        assert hooks.enqueueable(gang).vote is Vote.PERMIT

    def test_a_group_without_minimum_resources_is_permitted(self) -> None:
        hooks, _ = open_plugin("proportion", snapshot_of(holding("h", cpu=9)))
        assert hooks.enqueueable
        assert hooks.enqueueable(make_gang()).vote is Vote.PERMIT


class TestAllocation:
    def test_a_queue_takes_up_to_what_it_deserves(self) -> None:
        gang = make_gang(
            "a", queue=QueueName("a"), waiting=tuple(sized_task(f"a-{i}", cpu=2) for i in range(4))
        )
        other = holding("b", cpu=0, wants=9, queue="b")
        snapshot = snapshot_of(gang, other, queues=(make_queue("a"), make_queue("b")))
        hooks, ledger = open_plugin("proportion", snapshot)
        assert hooks.allocatable
        assert hooks.overused
        queue = QueueName("a")
        for task in gang.waiting[:2]:
            assert hooks.allocatable(queue, task) is None
            ledger.place(gang, task, node=0)
        refusal = hooks.allocatable(queue, gang.waiting[2])

        assert refusal is not None
        assert refusal.cause is Cause.QUEUE_OVERUSED
        assert refusal.shortfalls == (Shortfall("cpu", asked=2000, free=1000, limit=5000),)
        assert hooks.overused(queue) is None

    def test_a_group_that_waits_for_admission_counts_in_the_share_of_its_queue(self) -> None:
        gang = claiming("g", cpu=3, min_member=3, phase=GroupPhase.PENDING)
        hooks, ledger = open_plugin("proportion", snapshot_of(gang))
        assert hooks.allocatable
        assert hooks.overused
        slot = sized_task(cpu=1, gib=0, uid="")
        assert hooks.overused(QueueName("default")) is None
        for _ in range(3):
            assert hooks.allocatable(QueueName("default"), slot) is None
            ledger.place(gang, slot, node=0)
        assert hooks.allocatable(QueueName("default"), slot) is not None

    def test_a_capability_that_stands_in_the_way_is_called_quota(self) -> None:
        queue = make_queue("q", capability=amounts_of(cpu=2))
        gang = holding("h", cpu=2, wants=2, queue="q")
        hooks, _ = open_plugin("proportion", snapshot_of(gang, queues=(queue,)))
        assert hooks.allocatable
        refusal = hooks.allocatable(QueueName("q"), sized_task(cpu=1, gib=0))

        assert refusal is not None
        assert refusal.cause is Cause.QUEUE_QUOTA
        assert refusal.shortfalls == (Shortfall("cpu", asked=1000, free=0, limit=2000),)
        assert refusal.detail == "queue resource quota insufficient: insufficient cpu"

    def test_single_pods_are_never_short(self) -> None:
        hooks, _ = open_plugin("proportion", snapshot_of())
        assert hooks.allocatable
        assert hooks.allocatable(QueueName("default"), sized_task(cpu=0, gib=0)) is None

    def test_a_queue_is_overused_when_it_holds_all_it_deserves(self) -> None:
        snapshot = snapshot_of(
            holding("a", cpu=5, wants=3, queue="a"),
            holding("b", cpu=4, wants=9, queue="b"),
            queues=(make_queue("a"), make_queue("b")),
        )
        hooks, _ = open_plugin("proportion", snapshot)
        assert hooks.overused
        refusal = hooks.overused(QueueName("a"))

        assert refusal is not None
        assert refusal.cause is Cause.QUEUE_OVERUSED
        assert refusal.where == "a"
        assert refusal.shortfalls == (Shortfall("cpu", asked=3000, free=0, limit=5000),)
        assert hooks.overused(QueueName("b")) is None
