"""task-topology: members of tasks that belong together share nodes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.gangs.task_topology import topology_of
from app.core.ledger import Ledger
from app.core.plugins.task_topology import Buckets
from app.core.policy import NodesNow
from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL
from app.model.gang import Counts, Gang, Task
from app.model.ids import NodeName
from app.model.snapshot import MemberPlace, Snapshot
from app.model.workload import AFFINITY, ANTI_AFFINITY, TASK_ORDER
from tests.builders import make_gang, make_snapshot
from tests.core.actions.rigs import Outcome, Tiers, cores, cycle, members, policies, sized, vector
from tests.core.plugins.sessions import open_plugin
from tests.scale import examples


def said(affinity: str = "", anti: str = "", order: str = "") -> dict[str, str]:
    found = {AFFINITY: affinity, ANTI_AFFINITY: anti, TASK_ORDER: order}
    return {key: text for key, text in found.items() if text}


def gang(annotations: dict[str, str], *, cpu: float = 1, **roles: int) -> Gang:
    """A gang ``g`` of so many members of each role."""
    waiting: Sequence[Task] = [
        task for role, count in roles.items() for task in members("g", count, role=role, cpu=cpu)
    ]
    return make_gang("g", waiting=tuple(waiting), annotations=annotations)


def plan(of: Gang, *sizes: int, by: Sequence[str] = (), **fields: Any) -> Outcome:
    tiers: Tiers = (("priority", "gang"), ("predicates", *by, PluginConf("task-topology")))
    return cycle(of, nodes=cores(*sizes), by=policies(tiers), **fields)


def together(outcome: Outcome) -> list[str]:
    """The roles on each node that has any, as ``ps+worker``."""
    found: dict[str, list[str]] = {}
    for name, node in outcome.nodes("g").items():
        role = name.partition("#")[0] if "#" in name else name.split("-")[1]
        found.setdefault(node, []).append(role)
    return sorted("+".join(sorted(roles)) for roles in found.values())


@pytest.mark.parametrize(
    ("annotations", "roles", "sizes", "shared"),
    [
        (said("ps,worker", "ps"), {"ps": 2, "worker": 4}, (3, 3, 3), ["ps+worker+worker"] * 2),
        (said("worker"), {"worker": 3}, (2, 3, 2), ["worker+worker+worker"]),
        (said("", "ps"), {"ps": 3}, (3, 3, 3), ["ps", "ps", "ps"]),
        (said("", "ps,worker"), {"ps": 1, "worker": 1}, (2, 2), ["ps", "worker"]),
        (said("a,b;c,d"), {"a": 1, "b": 1, "c": 1, "d": 1}, (2, 2), ["a+b", "c+d"]),
        (said("a,b", "b,c"), {"a": 1, "b": 1, "c": 1}, (3, 3), ["a+b", "c"]),
        (said("a,b"), {"a": 1, "other": 1, "b": 1}, (2, 2), ["a+b", "other"]),
        (said("", "ps"), {"ps": 2}, (3,), ["ps+ps"]),
    ],
    ids=str,
)
def test_who_shares_a_node_with_whom(
    annotations: dict[str, str],
    roles: dict[str, int],
    sizes: tuple[int, ...],
    shared: list[str],
) -> None:
    assert together(plan(gang(annotations, **roles), *sizes)) == shared


def test_without_the_annotations_members_go_where_they_would_go() -> None:
    assert together(plan(gang({}, ps=2, worker=4), 3, 3, 3)) == [
        "ps+ps+worker",
        "worker+worker+worker",
    ]


def test_members_that_do_not_exist_are_placed_together_as_well() -> None:
    """A vcjob's pods are made into places that are kept for them."""
    of = make_gang(
        "g",
        annotations=said("ps,worker", "ps"),
        min_member=6,
        role_minimum={"ps": 2, "worker": 4},
        role_shapes={"ps": sized(1), "worker": sized(1)},
        counts=Counts(),
        role_valid={},
    )
    outcome = plan(of, 3, 3, 3)
    assert together(outcome) == ["ps+worker+worker"] * 2


def test_a_member_that_comes_back_joins_those_it_belongs_beside() -> None:
    of = make_gang(
        "g",
        waiting=members("g", 1, role="worker"),
        annotations=said("ps,worker"),
        min_member=2,
        counts=Counts(running=1, pending=1),
        role_ready={"ps": 1},
        allocated=vector(cpu=1),
    )
    places = {of.key: (MemberPlace(NodeName("n2"), "ps", vector(cpu=1)),)}
    outcome = plan(of, 4, 4, 4, places=places)
    assert outcome.nodes("g") == {"g-worker-0": "n2"}


def test_a_member_keeps_away_from_those_it_does_not_belong_beside() -> None:
    of = make_gang(
        "g",
        waiting=members("g", 1, role="ps"),
        annotations=said("", "ps"),
        min_member=2,
        counts=Counts(running=1, pending=1),
        role_ready={"ps": 1},
        allocated=vector(cpu=1),
    )
    places = {of.key: (MemberPlace(NodeName("n0"), "ps", vector(cpu=1)),)}
    assert plan(of, 4, 4, places=places).nodes("g") == {"g-ps-0": "n1"}


def test_members_go_bucket_by_bucket_the_larger_first_and_others_last() -> None:
    of = gang(said("a;b", order="b"), other=1, a=2, b=3)
    order = plan(of, 9).members("g")
    assert order == ["g-b-0", "g-b-1", "g-b-2", "g-a-0", "g-a-1", "g-other-0"]


def test_the_priority_of_members_goes_first_where_its_plugin_does() -> None:
    urgent = members("g", 1, role="other", priority=9)
    waiting = (*members("g", 2, role="a", priority=1), *urgent)
    of = make_gang("g", waiting=waiting, annotations=said("a"))
    assert plan(of, 9).members("g") == ["g-other-0", "g-a-0", "g-a-1"]


def test_places_are_exchanged_among_members_of_one_task_only() -> None:
    outcome = plan(gang(said("ps,worker"), ps=1, worker=1), 2)
    classes = {p.task.role: p.exchange for d in outcome.decisions("g") for p in d.placements}
    assert classes["ps"] == ANY_EQUAL.within("task ps of default/g")
    assert not classes["ps"].allows(classes["worker"])
    plain = plan(gang({}, ps=1), 2)
    assert [p.exchange for d in plain.decisions("g") for p in d.placements] == [ANY_EQUAL]


# --- scores --------------------------------------------------------------------------------------


def scores(of: Gang, task: Task, *sizes: int, weight: int = 1, **fields: Any) -> list[float]:
    snapshot = make_snapshot(nodes=cores(*sizes), gangs=(of,), **fields)
    arguments: dict[str, object] = {"task-topology.weight": weight}
    hooks, _ = open_plugin("task-topology", snapshot, arguments=arguments)
    assert hooks.node_score is not None
    nodes = NodesNow(np.arange(len(sizes)), snapshot.table.allocatable.T)
    return [round(score, 3) for score in hooks.node_score.score(of, task, nodes).tolist()]


def test_a_node_is_worth_as_much_of_the_bucket_as_it_takes() -> None:
    """The bucket has four members of a core each; the node of no core takes none."""
    of = gang(said("a,b"), a=2, b=2)
    assert scores(of, of.waiting[0], 0, 1, 2, 4, 9) == [0, 25, 50, 100, 100]
    assert scores(of, of.waiting[0], 2, weight=3) == [150]


def test_members_of_the_bucket_on_a_node_count_and_repelled_ones_are_taken_off() -> None:
    of = gang(said("a,b", "a,c"), a=1)
    at = [("n0", "b"), ("n0", "b"), ("n1", "c"), ("n1", "c"), ("n1", "c")]
    places = {of.key: tuple(MemberPlace(NodeName(n), role, vector(cpu=1)) for n, role in at)}
    # bucket of n0: two and the one that waits; bucket of n1: three of c
    assert scores(of, of.waiting[0], 9, 9, 9, places=places) == [100, round(-200 / 3, 3), 33.333]


def test_small_members_are_counted_before_large_ones() -> None:
    waiting = (
        *members("g", 1, role="a", cpu=1),
        *members("g", 1, role="b", cpu=4),
        *members("g", 2, role="c", cpu=1),
    )
    of = make_gang("g", waiting=waiting, annotations=said("a,b,c"))
    assert scores(of, waiting[0], 4, 7) == [75, 100]
    assert scores(of, waiting[1], 4, 5) == [25, 50]


def test_a_member_outside_of_all_buckets_has_no_score() -> None:
    of = gang(said("a"), a=1, other=1)
    snapshot = make_snapshot(nodes=cores(4), gangs=(of,))
    hooks, _ = open_plugin("task-topology", snapshot)
    assert hooks.node_score is not None
    assert hooks.node_score.key(of, of.waiting[1]) is None
    assert hooks.node_score.key(of, of.waiting[0]) is not None


# --- buckets -------------------------------------------------------------------------------------


def buckets_of(of: Gang, snapshot: Snapshot) -> list[list[str]]:
    topology = topology_of(of.annotations)
    assert topology is not None
    found = Buckets(topology, of, Ledger(snapshot))
    ids: dict[int, list[str]] = {}
    for task in of.waiting:
        bucket = found.of(task)
        if bucket is not None:
            ids.setdefault(bucket.index, []).append(task.name)
    return sorted(sorted(names) for names in ids.values())


def plainly(of: Gang, together: Sequence[Sequence[str]], apart: Sequence[Sequence[str]]) -> Any:
    """volcano.md §3.6, word by word."""

    def related(sets: Sequence[Sequence[str]], one: str, other: str) -> bool:
        if one == other:
            return [one] in [list(each) for each in sets]
        return any(one in each and other in each for each in sets)

    def priority(role: str) -> int:
        if [role] in [list(each) for each in apart]:
            return 4
        if any(role in each and len(each) > 1 for each in together):
            return 3
        return 2 if [role] in [list(each) for each in together] else 1

    known = {role for sets in (together, apart) for each in sets for role in each}
    buckets: list[list[Task]] = []
    waiting = [task for task in of.waiting if task.role in known]
    for task in sorted(waiting, key=lambda task: (-priority(task.role), task.name)):

        def pull(bucket: list[Task], role: str = task.role) -> int:
            counts = Counter(other.role for other in bucket)
            beside = sum(n for r, n in counts.items() if related(together, role, r))
            return beside - sum(n for r, n in counts.items() if related(apart, role, r))

        best = max(map(pull, buckets), default=-1)
        if best < 0:
            buckets.append([task])
            continue
        equal = [bucket for bucket in buckets if pull(bucket) == best]
        min(equal, key=lambda bucket: sum(int(other.request[0]) for other in bucket)).append(task)
    return sorted(sorted(task.name for task in bucket) for bucket in buckets)


ROLES = ("a", "b", "c", "d")
sets = st.lists(st.lists(st.sampled_from(ROLES), min_size=1, max_size=3, unique=True), max_size=3)


@examples(200)
@given(sets, sets, st.lists(st.tuples(st.sampled_from(ROLES), st.integers(1, 3)), max_size=9))
def test_buckets_are_those_of_volcano(
    beside: list[list[str]], apart: list[list[str]], wanted: list[tuple[str, int]]
) -> None:
    annotations = said(";".join(map(",".join, beside)), ";".join(map(",".join, apart)))
    waiting = tuple(
        task
        for at, (role, cpu) in enumerate(wanted)
        for task in members(f"g{at}", 1, role=role, cpu=cpu)
    )
    of = make_gang("g", waiting=waiting, annotations=annotations or said("nobody"))
    snapshot = make_snapshot(nodes=cores(9), gangs=(of,))
    assert buckets_of(of, snapshot) == plainly(of, beside, apart)


def test_what_is_undone_leaves_no_trace() -> None:
    of = gang(said("a"), a=3)
    snapshot = make_snapshot(nodes=cores(2, 4), gangs=(of,))
    hooks, ledger = open_plugin("task-topology", snapshot)
    score = hooks.node_score
    assert score is not None
    nodes = NodesNow(np.arange(2), snapshot.table.allocatable.T)
    first, second, _ = of.waiting
    before = score.key(of, second), score.score(of, second, nodes).tolist()
    with ledger.trial():
        ledger.place(of, first, node=0)
        inside = score.key(of, second), score.score(of, second, nodes).tolist()
    assert inside != before
    assert (score.key(of, second), score.score(of, second, nodes).tolist()) == before
    ledger.place(of, first, node=0)
    assert (score.key(of, second), score.score(of, second, nodes).tolist()) == inside
