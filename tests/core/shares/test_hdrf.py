"""Hierarchical DRF: queues ordered by the tree of their annotations."""

from functools import cmp_to_key

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.core.shares.hdrf import ShareTree
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.snapshot import Snapshot
from app.model.workload import Queue
from tests.builders import GIB, make_gang, make_node, make_queue, make_snapshot
from tests.core.plugins.sessions import holding, room, sized_task

NODES = (make_node("n", cpu=10_000, memory=100 * GIB, pods=1000),)


def placed(name: str, path: str, weights: str) -> Queue:
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return make_queue(name, annotations=annotations)


def snapshot_of(queues: tuple[Queue, ...], gangs: tuple[Gang, ...]) -> Snapshot:
    return make_snapshot(nodes=NODES, queues=queues, gangs=gangs)


def compare(queues: tuple[Queue, ...], gangs: tuple[Gang, ...], left: str, right: str) -> int:
    tree = ShareTree(Ledger(snapshot_of(queues, gangs)))
    forth = tree.compare(QueueName(left), QueueName(right))
    assert tree.compare(QueueName(right), QueueName(left)) == -forth
    return forth


def test_the_smaller_weighted_share_goes_first() -> None:
    queues = (placed("sci", "root/sci", "1/1"), placed("eng", "root/eng", "1/4"))
    gangs = (
        holding("s", cpu=2, wants=8, queue="sci"),
        holding("e", cpu=4, wants=8, queue="eng"),
    )
    assert compare(queues, gangs, "eng", "sci") == -1


def test_paths_are_compared_from_the_top_down() -> None:
    queues = (
        placed("sci", "root/sci", "1/1"),
        placed("dev", "root/eng/dev", "1/1/1"),
        placed("prod", "root/eng/prod", "1/1/1"),
    )
    gangs = (
        holding("s", cpu=3, wants=8, queue="sci"),
        holding("d", cpu=1, wants=8, queue="dev"),
        holding("p", cpu=4, wants=8, queue="prod"),
    )
    # eng counts as twice its least child: dev's 1 core and prod scaled down to that.
    assert compare(queues, gangs, "dev", "sci") == -1
    assert compare(queues, gangs, "prod", "sci") == -1
    assert compare(queues, gangs, "dev", "prod") == -1


def test_a_saturated_queue_comes_after_one_that_wants_more() -> None:
    queues = (placed("full", "root/full", "1/9"), placed("hungry", "root/hungry", "1/1"))
    gangs = (holding("f", cpu=1, queue="full"), holding("h", cpu=5, wants=4, queue="hungry"))

    assert compare(queues, gangs, "hungry", "full") == -1


def test_a_queue_that_asks_for_an_exhausted_resource_is_saturated() -> None:
    queues = (placed("cpu", "root/cpu", "1/1"), placed("memory", "root/memory", "1/1"))
    wants_memory = make_gang(
        "m",
        queue=QueueName("memory"),
        allocated=room(gib=50),
        request=room(gib=80),
    )
    gangs = (holding("c", cpu=10, wants=1, queue="cpu"), wants_memory)

    assert compare(queues, gangs, "memory", "cpu") == -1


@pytest.mark.parametrize("weights", ["1", "1/x", "1/0", "1/-3", "", "1/1_0", "1/ 3", "1/nan"])
def test_a_weight_that_is_missing_or_below_one_is_one(weights: str) -> None:
    queues = (placed("a", "root/a", weights), placed("b", "root/b", "1/1"))
    gangs = (
        holding("a", cpu=2, wants=1, queue="a"),
        holding("b", cpu=2, wants=1, queue="b"),
    )
    assert compare(queues, gangs, "a", "b") == 0


def test_queues_without_a_place_in_the_tree_are_equal() -> None:
    queues = (make_queue("plain"), placed("a", "root/a", "1/1"))
    gangs = (holding("p", cpu=2, wants=1, queue="plain"), holding("a", cpu=1, queue="a"))

    assert compare(queues, gangs, "plain", "a") == 0
    assert compare(queues, gangs, "plain", "default") == 0


def test_an_empty_cluster_makes_no_difference() -> None:
    queues = (placed("a", "root/a", "1/1"), placed("b", "root/b", "1/1"))
    tree = ShareTree(Ledger(make_snapshot(queues=queues, gangs=(make_gang("g"),))))

    assert tree.compare(QueueName("a"), QueueName("b")) == 0


NAMES = ("sci", "dev", "prod", "misc")
PATHS = ("root/sci", "root/eng/dev", "root/eng/prod", "root/eng")


@given(
    gangs=st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(0, 2), st.integers(1, 3)),
        min_size=1,
        max_size=8,
    ),
    steps=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.booleans()), max_size=12),
)
def test_following_the_ledger_gives_the_same_order_as_a_fresh_tree(
    gangs: list[tuple[str, int, int]], steps: list[tuple[int, int, bool]]
) -> None:
    queues = tuple(placed(name, path, "1/2/3") for name, path in zip(NAMES, PATHS, strict=True))
    members = tuple(
        make_gang(
            f"g{i}",
            queue=QueueName(queue),
            allocated=room(cpu=held),
            waiting=tuple(sized_task(f"g{i}-{k}", cpu=1, gib=7) for k in range(waiting)),
        )
        for i, (queue, held, waiting) in enumerate(gangs)
    )
    ledger = Ledger(snapshot_of(queues, members))
    followed = ShareTree(ledger)
    for which, member, stays in steps:
        gang = members[which % len(members)]
        with ledger.trial() as trial:
            ledger.place(gang, gang.waiting[member % len(gang.waiting)], node=0)
            assert ranking(followed) == ranking(ShareTree(ledger))
            if stays:
                trial.keep()
        assert ranking(followed) == ranking(ShareTree(ledger))


def ranking(tree: ShareTree) -> list[tuple[str, list[int]]]:
    names = [QueueName(name) for name in NAMES]
    ordered = sorted(names, key=cmp_to_key(tree.compare))
    return [(name, [tree.compare(name, other) for other in names]) for name in ordered]
