"""Room that is kept for gangs which have waited long: for which, how much, and for how long."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.actions.collecting import collects_for
from app.core.planner import may_place
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import NodeName, QueueName
from app.model.plan import Collected
from app.model.reason import Cause
from app.model.snapshot import MemberPlace
from app.model.workload import GroupPhase
from tests.builders import make_gang, make_queue, make_snapshot
from tests.core.actions.rigs import (
    BARE,
    HELM,
    Outcome,
    amounts_of,
    cores,
    cycle,
    gang_of,
    policies,
    used,
    vector,
)
from tests.topology import hard, make_domains, racks

TWO = (make_queue("a"), make_queue("b"))
PATIENT, SOON = 59.0, 60.0
"""Seconds since the gangs came: less than their patience, and as much."""


def of(queue: str, name: str, size: int, **fields: Any) -> Gang:
    return gang_of(name, size, queue=QueueName(queue), **fields)


def running(queue: str, size: int) -> Gang:
    return make_gang(
        f"old-{queue}",
        queue=QueueName(queue),
        phase=GroupPhase.RUNNING,
        min_member=1,
        allocated=vector(cpu=size),
        request=vector(cpu=size),
    )


def beside(held: int, *gangs: Gang, now: float = SOON, **fields: Any) -> Outcome:
    """A cycle on two nodes of 8 cores, of which one runs ``held`` cores of others."""
    nodes = cores(8, 8)
    defaults: dict[str, Any] = {"by": policies(BARE), "used": used(nodes, n0=held)}
    waiting = tuple(gang for gang in gangs if gang.waiting)
    return cycle(*gangs, nodes=nodes, now=now, pending=waiting, **(defaults | fields))


def kept(outcome: Outcome) -> dict[str, dict[str, int]]:
    """Cores that are kept of each node, by gang."""
    return {
        each.gang.partition("/")[2]: {node: int(amount[0]) // 1000 for node, amount in each.nodes}
        for each in outcome.plan.collected
    }


def test_before_its_patience_is_over_nothing_is_kept_for_a_gang() -> None:
    outcome = beside(6, of("default", "large", 12), of("default", "small", 4), now=PATIENT)
    assert outcome.order == ["small"]
    assert kept(outcome) == {}


def test_after_that_all_free_room_is_kept_for_it_that_it_can_use() -> None:
    outcome = beside(6, of("default", "large", 12), of("default", "small", 4))
    assert outcome.order == []
    assert kept(outcome) == {"large": {"n0": 2, "n1": 8}}
    assert outcome.refusal("large").cause is Cause.COLLECTING
    assert outcome.text("large") == (
        "collecting for group default/large: cpu 10 of 12 kept since 1970-01-01T00:01:00Z"
    )


def test_the_reason_tells_since_when() -> None:
    since = replace(of("default", "large", 12), collecting_since=55.0)
    assert beside(6, since).refusal("large").since == 55.0
    assert beside(6, of("default", "large", 12)).refusal("large").since == SOON


def test_a_gang_that_fits_gets_its_places_before_younger_ones_of_higher_turn() -> None:
    outcome = beside(0, of("default", "young", 10, created=50.0), of("default", "old", 10))
    assert outcome.order == ["old"]


def test_room_that_it_cannot_use_is_left_to_others() -> None:
    large = of("default", "large", 3, cpu=6)
    outcome = beside(3, large, of("default", "small", 2))
    assert kept(outcome) == {}  # three of 6 cores fit on no two nodes of 8
    assert outcome.order == ["small"]


def test_for_a_member_that_fits_nowhere_yet_the_room_it_will_have_is_kept() -> None:
    outcome = beside(3, of("default", "large", 2, cpu=6), of("default", "small", 2))
    assert kept(outcome) == {"large": {"n0": 5, "n1": 6}}
    assert outcome.nodes("small") == {"small-0": "n1", "small-1": "n1"}


def test_two_gangs_never_keep_parts_of_the_same_room() -> None:
    gangs = [of(queue, f"of-{queue}", 12) for queue in "ab"]
    outcome = beside(6, *gangs, queues=TWO)
    assert kept(outcome) == {"of-a": {"n0": 2, "n1": 8}}


def test_a_gang_of_the_size_of_the_cluster_collects_all_of_it() -> None:
    whale = of("default", "whale", 16)
    small = of("default", "small", 1, created=1.0)
    assert kept(beside(8, whale, small)) == {"whale": {"n1": 8}}
    assert beside(0, whale, small).order == ["whale"]


def test_a_gang_larger_than_the_cluster_collects_nothing() -> None:
    outcome = beside(8, of("default", "never", 17), of("default", "small", 1))
    assert kept(outcome) == {}
    assert outcome.order == ["small"]


def test_a_queue_that_holds_its_share_does_not_collect() -> None:
    held = running("a", 8)
    large, small, late = of("a", "large", 7), of("b", "small", 2), of("b", "late", 9, created=9.0)
    outcome = beside(8, held, large, small, late, queues=TWO, by=policies(HELM))
    assert kept(outcome) == {}
    assert outcome.order == ["small"]


def test_a_gang_that_lacks_members_holds_no_other_of_its_queue_back() -> None:
    held = running("a", 8)
    lacks = of("a", "lacks", 4, min_member=6, given_up=True)
    small, other = of("a", "small", 1, created=9.0), of("b", "other", 9, created=9.0)
    queues = (make_queue("a", capability=amounts_of(cpu=10)), make_queue("b"))
    outcome = beside(8, held, lacks, small, other, queues=queues, by=policies(HELM))
    assert "small" in outcome.order
    assert outcome.refusal("lacks").cause is Cause.NOT_ENOUGH_TASKS


def test_what_is_collected_is_not_borrowed() -> None:
    large, small = of("a", "large", 8), of("b", "small", 6)
    held = running("b", 10)
    nodes = cores(8, 8)
    outcome = cycle(
        held,
        large,
        small,
        nodes=nodes,
        queues=TWO,
        by=policies(HELM),
        now=SOON,
        pending=(large, small),
        used=used(nodes, n0=8, n1=2),
    )
    assert outcome.order == []
    assert kept(outcome) == {"large": {"n1": 6}}


def test_under_the_limit_of_its_queue_room_is_kept_and_on_no_node() -> None:
    queues = (make_queue("a", capability=amounts_of(cpu=6)), make_queue("b"))
    held = running("a", 4)
    large, small, other = of("a", "large", 5), of("a", "small", 2), of("b", "other", 4)
    outcome = beside(
        4,
        held,
        large,
        small,
        other,
        queues=queues,
        by=policies((("gang",), ("predicates", "capacity"))),
    )
    assert kept(outcome) == {}
    assert outcome.order == ["other"]


@pytest.mark.parametrize(("waited", "order"), [(650.0, []), (700.0, ["small"])])
def test_under_a_limit_it_is_kept_for_a_bounded_time_too(waited: float, order: list[str]) -> None:
    queues = (make_queue("a", capability=amounts_of(cpu=6)), make_queue("b"))
    held = running("a", 4)
    large, small = of("a", "large", 5), of("a", "small", 2, created=1.0)
    by = policies((("gang",), ("predicates", "capacity")))
    outcome = beside(4, held, large, small, queues=queues, by=by, now=waited)
    assert outcome.order == order


def test_on_demand_the_room_that_others_collect_is_left_to_them() -> None:
    small, large = of("default", "small", 4), of("default", "large", 12)
    last = beside(6, large, small).plan.collected
    assert beside(6, large, small, on_demand="small", collected=last).order == []
    assert beside(6, large, small, on_demand="small").order == ["small"]


def test_room_on_a_node_that_has_gone_is_not_kept() -> None:
    gone = (Collected(of("default", "large", 12).key, (("gone", vector(cpu=9)),)),)  # type: ignore[arg-type]
    small = of("default", "small", 4)
    assert beside(6, small, on_demand="small", collected=gone).order == ["small"]


def test_its_patience_is_that_of_the_plugin_or_its_own_waiting_time() -> None:
    def tiers(patience: str) -> Any:
        drf = PluginConf("drf", arguments={"borrowing.patience": patience})
        return policies((("priority", "gang", "sla"), (drf, "predicates")))

    large, small = of("default", "large", 12), of("default", "small", 4)
    assert beside(6, large, small, by=tiers("90s")).order == ["small"]
    assert beside(6, large, small, by=tiers("10s"), now=10.0).order == []
    own = replace(large, annotations={"volcano.sh/sla-waiting-time": "20s"})
    assert beside(6, own, small, by=tiers("90s"), now=20.0).order == []


COLLECTING = [(0, 10), (40, 60), (120, 160)]
"""Seconds from the first one on, for a window of 10."""


@pytest.mark.parametrize("elapsed", range(0, 280, 5))
def test_a_gang_collects_in_windows_that_double_with_pauses_of_three_times_their_length(
    elapsed: float,
) -> None:
    expected = any(begin <= elapsed < end for begin, end in COLLECTING)
    assert (collects_for(elapsed, window=10.0) > 0) is expected


def limited(now: float) -> Outcome:
    """A queue may hold 6 cores and holds 2; one gang wants 5 of them, and a younger one 3."""
    queue = make_queue("a", capability=amounts_of(cpu=6))
    large, small = of("a", "large", 5), of("a", "small", 3, created=9.0)
    by = policies((("priority", "gang"), ("predicates", "capacity")))
    return beside(2, running("a", 2), large, small, now=now, queues=(queue,), by=by)


def test_a_queue_keeps_the_rest_of_its_limit_for_a_gang_that_waits_and_says_until_when() -> None:
    assert limited(PATIENT).order == ["small"]
    outcome = limited(SOON)
    assert outcome.order == []
    assert outcome.text("large") == (
        "queue a: cpu asked 5, free 4 of 6; held by default/old-a (cpu 2); the queue keeps what "
        "comes free for the group until 1970-01-01T00:11:00Z"
    )
    assert outcome.text("small") == (
        "queue a: cpu asked 3, free 0 of 6; held by default/old-a (cpu 2); the rest is kept for "
        "default/large (cpu 5), which has waited long, until 1970-01-01T00:11:00Z"
    )


def test_after_that_time_younger_gangs_have_what_is_left() -> None:
    assert limited(659.0).order == []
    later = limited(660.0)
    assert later.order == ["small"]
    assert later.text("large").endswith("held by default/old-a (cpu 2)")


RACKS = racks(a="n0 n1", b="n2 n3")


def in_racks(*gangs: Gang, held: dict[str, int], **fields: Any) -> Outcome:
    """A cycle on two racks of two nodes of 4 cores, which run cores of others."""
    nodes = cores(4, 4, 4, 4)
    domains = make_domains(nodes, RACKS)
    return cycle(
        *gangs,
        nodes=nodes,
        now=SOON,
        by=policies(BARE),
        used=used(nodes, **held),
        domains=domains,
        **fields,
    )


def hard_gang(size: int) -> Gang:
    return of("default", "large", size, topology=hard(1))


def test_a_gang_that_needs_one_domain_collects_in_the_one_with_the_most_room() -> None:
    outcome = in_racks(
        hard_gang(6), of("default", "small", 3), held={"n0": 3, "n1": 4, "n2": 1, "n3": 3}
    )
    assert kept(outcome) == {"large": {"n2": 3, "n3": 1}}
    assert outcome.refusal("large").cause is Cause.COLLECTING
    assert outcome.order == []


def test_what_lies_in_other_domains_is_left_to_others() -> None:
    outcome = in_racks(
        hard_gang(6), of("default", "small", 1), held={"n0": 3, "n1": 4, "n2": 1, "n3": 3}
    )
    assert outcome.nodes("small") == {"small-0": "n0"}


def test_a_gang_goes_on_to_collect_in_the_domain_where_it_began() -> None:
    gang = hard_gang(6)
    held = {f"n{row}": 2 for row in range(4)}
    for node, rack in (("n0", {"n0", "n1"}), ("n3", {"n2", "n3"})):
        before = (Collected(gang.key, ((NodeName(node), vector(cpu=1)),)),)
        assert set(kept(in_racks(gang, held=held, collected=before))["large"]) == rack


def test_no_room_is_kept_for_a_gang_that_no_domain_could_hold() -> None:
    outcome = in_racks(hard_gang(9), held={"n0": 1})
    assert kept(outcome) == {}
    assert outcome.refusal("large").cause is Cause.NO_DOMAIN


def test_a_gang_with_places_in_a_domain_without_more_room_does_not_collect() -> None:
    """What it has reserved goes back, and it may find all its room in another domain."""
    gang = hard_gang(3)
    gang = replace(gang, min_member=4, counts=replace(gang.counts, placed=1))
    places = {gang.key: (MemberPlace(NodeName("n0"), "", vector(cpu=1)),)}
    outcome = in_racks(gang, held={"n0": 4, "n1": 3, "n2": 3, "n3": 3}, places=places)
    assert kept(outcome) == {}
    assert outcome.refusal("large").cause is Cause.NO_DOMAIN


def test_a_gang_that_has_waited_long_may_not_have_nodes_of_two_domains_that_others_found() -> None:
    gang = hard_gang(2)
    nodes = cores(4, 4, 4, 4)
    snapshot = make_snapshot(nodes=nodes, gangs=(gang,), domains=make_domains(nodes, RACKS))

    def may(*rows: int) -> int:
        of = {task.uid: row for task, row in zip(gang.waiting, rows, strict=True)}
        by = policies(BARE)
        return len(may_place(snapshot, by, keys=[gang.key], rows=of, now=SOON))

    assert may(0, 2) == 0
    assert may(2, 3) == 2
