"""One place that counts: everything moves together, and what-ifs leave no trace."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.accounts import claimable
from app.core.ledger import Ledger
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.snapshot import QueueUsage, Snapshot
from app.model.workload import GroupPhase
from tests.builders import make_gang, make_queue, make_snapshot
from tests.core.actions.rigs import IDLE, cores, members, used, vector

PARENTS = {"top": "", "left": "top", "right": "top"}
QUEUES = tuple(make_queue(name, parent=QueueName(above)) for name, above in PARENTS.items())
GANGS = tuple(
    make_gang(
        f"{queue}{number}",
        waiting=members(f"{queue}{number}", 2, cpu=number + 1, role="a")
        + members(f"{queue}{number}", 1, shape=IDLE, role="idle"),
        queue=QueueName(queue),
    )
    for queue in ("left", "right", "default", "missing")
    for number in range(2)
)
SHOWN = make_gang(
    "shown",
    queue=QueueName("left"),
    waiting=(seen := members("shown", 2, cpu=3, queue_first=True, shown=True)),
    queue_first=seen,
)


def farm() -> Snapshot:
    nodes = cores(8, 4, 2)
    gangs = (*GANGS, SHOWN)
    node_usage = used(nodes, n1=3)
    return make_snapshot(nodes=nodes, queues=QUEUES, gangs=gangs, used=node_usage, shown=(SHOWN,))


def state(ledger: Ledger) -> dict[str, Any]:
    """Every number of ``ledger``."""

    def plain(account: Any) -> dict[str, Any]:
        return {
            key: value.tolist() if isinstance(value, np.ndarray) else value
            for key, value in asdict(account).items()
        }

    return {
        "idle": ledger.idle.tolist(),
        "journal": [
            (entry.gang.key, entry.task.name, entry.node) for entry in ledger.placed_since(0)
        ],
        "queues": {name: plain(account) for name, account in ledger.queues().items()},
        "gangs": {gang.key: nonzero(plain(ledger.gang(gang))) for gang in (*GANGS, SHOWN)},
        "reserved": {
            (queue.name, below): earmarked(ledger, queue.name, below=below)
            for queue in QUEUES
            for below in (False, True)
        },
    }


def earmarked(
    ledger: Ledger, queue: str, *, against: Task = GANGS[0].waiting[0], below: bool = False
) -> list[int] | None:
    kept = ledger.earmarks.of(QueueName(queue), against=against, below=below)
    return None if kept is None else kept.tolist()


def nonzero(account: dict[str, Any]) -> dict[str, Any]:
    """Roles that were looked at and have nothing are as good as absent."""
    return {
        key: {role: n for role, n in value.items() if n} if isinstance(value, dict) else value
        for key, value in account.items()
    }


class Walk:
    """Random placements in nested trials."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.ledger = Ledger(farm())

    def steps(self, depth: int) -> None:
        for _ in range(self.data.draw(st.integers(1, 4))):
            if depth and self.data.draw(st.booleans()):
                self.trial(depth)
            else:
                gang = self.data.draw(st.sampled_from((*GANGS, SHOWN)))
                task = self.data.draw(st.sampled_from(gang.waiting))
                self.ledger.place(gang, task, node=self.data.draw(st.integers(0, 2)))

    def trial(self, depth: int) -> None:
        before = state(self.ledger)
        with self.ledger.trial() as trial:
            self.steps(depth - 1)
            keep = self.data.draw(st.booleans())
            if keep:
                trial.keep()
                kept = state(self.ledger)
        assert state(self.ledger) == (kept if keep else before)


@given(data=st.data())
def test_a_trial_that_is_not_kept_leaves_every_number_as_it_was(data: st.DataObject) -> None:
    walk = Walk(data)
    walk.steps(3)
    again = Ledger(farm())
    for entry in walk.ledger.placed_since(0):
        again.place(entry.gang, entry.task, node=entry.node)
    assert state(again) == state(walk.ledger)


def test_a_trial_that_breaks_is_undone() -> None:
    ledger = Ledger(farm())
    before = state(ledger)

    def break_off() -> None:
        with ledger.trial():
            ledger.place(GANGS[0], GANGS[0].waiting[0], node=0)
            raise LookupError

    with pytest.raises(LookupError):
        break_off()
    assert state(ledger) == before


def test_a_placement_moves_node_queue_ancestors_and_gang_together() -> None:
    ledger = Ledger(farm())
    gang = GANGS[1]
    ledger.place(gang, gang.waiting[0], node=0)
    two = vector(cpu=2, pods=1)
    assert (
        ledger.idle[0].tolist()
        == (vector(cpu=8, pods=110) - two)[[0]].tolist()
        + (ledger.snapshot.table.allocatable[0] - two)[1:].tolist()
    )
    assert ledger.queue(QueueName("left")).allocated.tolist() == two.tolist()
    for name in ("left", "top", "root"):
        assert ledger.queue(QueueName(name)).tree_allocated.tolist() == two.tolist()
    for name in ("top", "root", "right", "default"):
        assert not ledger.queue(QueueName(name)).allocated.any()
    account = ledger.gang(gang)
    assert (account.ready, account.role_ready, account.best_effort) == (1, {"a": 1}, {})


def test_a_queue_keeps_room_for_what_is_shown_until_it_has_a_place() -> None:
    ledger = Ledger(farm())
    first, second = SHOWN.waiting
    both, one = vector(cpu=6, pods=2), vector(cpu=3, pods=1)
    assert earmarked(ledger, "left") == both.tolist()
    assert earmarked(ledger, "left", against=first) is None
    ledger.place(SHOWN, first, node=0)
    assert earmarked(ledger, "left") == one.tolist()
    ledger.place(SHOWN, second, node=0)
    assert earmarked(ledger, "left") == vector().tolist()


def test_queues_above_keep_it_too_when_all_below_them_counts() -> None:
    ledger = Ledger(farm())
    first, second = SHOWN.waiting
    assert earmarked(ledger, "top") is None, "it holds nothing itself"
    for name in ("left", "top", "root"):
        assert earmarked(ledger, name, below=True) == vector(cpu=6, pods=2).tolist()
        assert earmarked(ledger, name, against=second, below=True) is None
    assert earmarked(ledger, "right", below=True) is None
    ledger.place(SHOWN, first, node=0)
    ledger.earmark(QueueName("right"), GANGS[2].waiting[0])
    assert earmarked(ledger, "top", below=True) == vector(cpu=4, pods=2).tolist()
    ledger.release(QueueName("right"), GANGS[2].waiting[0])
    assert earmarked(ledger, "top", below=True) == vector(cpu=3, pods=1).tolist()


def test_room_that_is_kept_in_a_cycle_may_be_given_up_in_it() -> None:
    ledger = Ledger(farm())
    left, task = QueueName("left"), GANGS[1].waiting[0]
    ledger.earmark(left, task)
    assert earmarked(ledger, "left") == vector(cpu=8, pods=3).tolist()
    ledger.release(left, task)
    assert earmarked(ledger, "left") == vector(cpu=6, pods=2).tolist()


def test_members_without_requests_are_counted_apart_and_slots_are_not() -> None:
    ledger = Ledger(farm())
    gang = GANGS[0]
    slot = members("s", 1, shape=IDLE, role="idle", uid="")[0]
    ledger.place(gang, gang.waiting[2], node=0)
    ledger.place(gang, slot, node=0)
    assert ledger.gang(gang).best_effort == {"idle": 1}
    assert ledger.gang(gang).role_ready == {"idle": 2}


def test_the_sums_of_queues_reach_up_to_the_root() -> None:
    one, none = vector(cpu=1), vector()
    usage = {
        name: QueueUsage(one, 2 * one, one, none, groups=1, releasing=one)
        for name in ("left", "right")
    }
    ledger = Ledger(make_snapshot(nodes=cores(8), queues=QUEUES, usage=usage))
    top, root = ledger.queue(QueueName("top")), ledger.queue(QueueName("root"))
    assert (top.groups, root.groups) == (0, 0)
    assert root.tree_allocated.tolist() == top.tree_allocated.tolist() == (2 * one).tolist()
    assert root.tree_request.tolist() == (4 * one).tolist()
    assert root.tree_inqueue.tolist() == (2 * one).tolist()
    assert root.tree_releasing is not None
    assert root.tree_releasing.tolist() == (2 * one).tolist()
    assert root.releasing is None


@pytest.mark.parametrize(
    ("parents", "path"),
    [
        ({"a": "b", "b": ""}, ("a", "b", "root")),
        ({"a": "b", "b": "a"}, ("a", "b")),
        ({"a": "gone"}, ("a",)),
        ({"a": "a"}, ("a",)),
    ],
    ids=["sound", "a cycle", "a gap", "its own parent"],
)
def test_the_path_of_a_queue_ends_at_the_root_or_where_the_tree_is_broken(
    parents: dict[str, str], path: tuple[str, ...]
) -> None:
    queues = tuple(make_queue(name, parent=QueueName(above)) for name, above in parents.items())
    ledger = Ledger(make_snapshot(nodes=cores(1), queues=queues))
    assert ledger.path(QueueName("a")) == path


def test_what_is_admitted_is_claimed_in_the_queue_and_above() -> None:
    ledger = Ledger(farm())
    gang = make_gang(
        "new",
        queue=QueueName("left"),
        phase=GroupPhase.PENDING,
        min_request=vector(cpu=5),
        allocated=vector(cpu=1),
        gated_request=vector(cpu=1),
    )
    ledger.admit(gang)
    assert ledger.admitted == [gang]
    assert ledger.queue(QueueName("left")).inqueue.tolist() == vector(cpu=3).tolist()
    assert ledger.queue(QueueName("root")).tree_inqueue.tolist() == vector(cpu=3).tolist()


@pytest.mark.parametrize(
    ("fields", "claim"),
    [
        ({"min_request": None}, 0),
        ({"min_request": vector(cpu=5)}, 5),
        ({"min_request": vector(cpu=5), "allocated": vector(cpu=7)}, 0),
        ({"min_request": vector(cpu=5), "given_up": True}, 0),
    ],
    ids=["nothing asked", "nothing held", "more held than asked", "nobody comes for it"],
)
def test_a_claim_is_what_is_left_of_the_minimum(fields: dict[str, Any], claim: int) -> None:
    gang: Gang = make_gang("g", **fields)
    assert claimable(gang).tolist() == vector(cpu=claim).tolist()


def test_rows_and_gangs_that_moved_can_be_followed() -> None:
    ledger = Ledger(farm())
    gang = GANGS[0]
    with ledger.trial() as trial:
        ledger.place(gang, gang.waiting[0], node=1)
        assert [entry.node for entry in ledger.placed_since(trial.start)] == [1]
    assert ledger.touched == [1, 1]
    assert ledger.moved == [gang, gang]
