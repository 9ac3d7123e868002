"""tdm: nodes that are lent by the clock, and taken back."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.conf_error import ConfError
from app.core.plugins import tdm
from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.eviction import EvictionAction, EvictionPlan, VictimPod
from app.model.gang import Gang
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.node import Node
from app.model.pod import PREEMPTABLE, REVOCABLE_ZONE
from app.model.running import Protection
from tests.builders import make_gang, make_node, make_shape
from tests.core.actions.rigs import Outcome, cycle, gang_of, members, policies
from tests.core.contended import RunningGang, contended, running_gang, victims
from tests.scale import examples

NIGHT = {"tdm.revocable-zone.night": "22:00-06:00"}
ACTIONS = ("enqueue", "allocate", "preempt")


def at(clock: str, zone: str = "UTC", day: str = "2026-03-02") -> float:
    """Seconds since the epoch when a clock in ``zone`` shows that."""
    return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=ZoneInfo(zone)).timestamp()


OPEN, CLOSED = at("23:30"), at("12:00")


def by(actions: tuple[str, ...] = ACTIONS, **arguments: object) -> Policies:
    plugin = PluginConf("tdm", arguments={**NIGHT, **arguments})
    return policies((("priority", "gang"), (plugin, "predicates", "nodeorder")), actions)


def lent(name: str, zone: str = "night", cpu: int = 4) -> Node:
    return make_node(name, cpu=cpu * 1000, labels={REVOCABLE_ZONE: zone})


def plain(name: str, cpu: int = 4) -> Node:
    return make_node(name, cpu=cpu * 1000)


def offline(name: str, count: int = 1, *, cpu: int = 1, **fields: Any) -> Gang:
    shape = make_shape(cpu=cpu * 1000, memory=0, bears_revocation=True)
    return make_gang(name, waiting=members(name, count, shape=shape), min_member=count, **fields)


def nodes_of(outcome: Outcome) -> list[str]:
    return sorted(outcome.nodes("g").values()) if outcome.decisions("g") else []


def planned(gang: Gang, *nodes: Node, now: float, **arguments: object) -> Outcome:
    return cycle(gang, nodes=nodes, by=by(("enqueue", "allocate"), **arguments), now=now)


# --- where pods go --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gang", "now", "said"),
    [
        pytest.param(offline("g"), OPEN, "", id="lent while the zone is open"),
        pytest.param(
            offline("g"),
            CLOSED,
            "current time beyond revocable zone; revocable zone night is open 22:00-06:00",
            id="not while it is closed",
        ),
        pytest.param(
            gang_of("g", 1, cpu=1), OPEN, "not allow to dispatch to revocable node", id="not to all"
        ),
        pytest.param(
            make_gang(
                "g",
                waiting=members("g", 1, shape=make_shape(cpu=1000, memory=0)),
                min_member=1,
                annotations={REVOCABLE_ZONE: "*"},
            ),
            OPEN,
            "",
            id="by the word of the PodGroup",
        ),
    ],
)
def test_who_may_be_on_a_revocable_node(gang: Gang, now: float, said: str) -> None:
    outcome = planned(gang, lent("n0"), now=now)
    assert nodes_of(outcome) == ([] if said else ["n0"])
    if said:
        assert said in outcome.text("g")


def test_a_zone_of_which_nothing_is_said_is_lent_to_no_pod() -> None:
    outcome = planned(offline("g"), lent("n0", "other"), now=OPEN)
    assert "revocable zone other not support" in outcome.text("g")


def test_pods_that_may_be_evicted_go_to_lent_nodes_first_and_elsewhere_if_there_is_none() -> None:
    nodes = (plain("n0"), lent("n1"), plain("n2"))
    assert nodes_of(planned(offline("g", 4), *nodes, now=OPEN)) == ["n1"] * 4
    assert set(nodes_of(planned(offline("g", 4), *nodes, now=CLOSED))) <= {"n0", "n2"}


def test_gangs_that_are_not_preemptable_go_first() -> None:
    first = offline("a", 4, preemptable=True)
    second = gang_of("b", 4, cpu=1, preemptable=None)
    rules = by(("enqueue", "allocate"))
    outcome = cycle(first, second, nodes=[plain("n0")], by=rules, now=OPEN)
    assert outcome.order == ["b"]


# --- clocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "clock", "is_open"),
    [
        ("09:00-17:00", "09:00", True),
        ("09:00-17:00", "08:59", False),
        ("09:00-17:00", "16:59", True),
        ("09:00-17:00", "17:00", False),
        ("22:00-06:00", "21:59", False),
        ("22:00-06:00", "22:00", True),
        ("22:00-06:00", "03:00", True),
        ("22:00-06:00", "06:00", False),
        ("0:00-0:00", "12:34", True),
        (" 9:05 - 9:06 ", "09:05", True),
    ],
)
def test_a_zone_is_open_from_its_start_until_its_end(said: str, clock: str, is_open: bool) -> None:
    outcome = planned(offline("g"), lent("n0"), now=at(clock), **{"tdm.revocable-zone.night": said})
    assert bool(nodes_of(outcome)) is is_open


@pytest.mark.parametrize(
    ("zone", "moment", "is_open"),
    [
        ("Europe/Berlin", at("21:30", day="2026-01-10"), True),
        ("Europe/Berlin", at("20:30", day="2026-01-10"), False),
        ("Europe/Berlin", at("20:30", day="2026-07-10"), True),
        ("America/New_York", at("03:30", day="2026-01-10"), True),
        ("America/New_York", at("12:00", day="2026-01-10"), False),
        ("", at("22:30", day="2026-01-10"), True),
    ],
)
def test_the_clock_is_that_of_the_time_zone(zone: str, moment: float, is_open: bool) -> None:
    outcome = planned(offline("g"), lent("n0"), now=moment, **{"tdm.timezone": zone})
    assert bool(nodes_of(outcome)) is is_open


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"tdm.revocable-zone.a": "22-06"}, "tdm.revocable-zone.a: '22-06' is no time such as"),
        ({"tdm.revocable-zone.a": "24:00-06:00"}, "'24:00-06:00' is no time such as 22:00-06:00"),
        ({"tdm.revocable-zone.a": "22:00-6:5"}, "is no time"),
        ({"tdm.revocable-zone.a": "22:00"}, "is no time"),
        ({"tdm.revocable-zone.a": ""}, "is no time"),
        ({"tdm.revocable-zone.": "22:00-06:00"}, "is no time"),
        ({"tdm.revocable-zone.a": 22}, "22 is not text"),
        ({"tdm.timezone": "Mars/Olympus"}, 'tdm.timezone: unknown time zone "Mars/Olympus"'),
        ({"tdm.evict.period": "often"}, "tdm.evict.period: 'often' is not a positive duration"),
        ({"tdm.evict.period": "0s"}, "is not a positive duration"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ConfError, match="plugin tdm: argument ") as refused:
        tdm.configure(PluginConf("tdm", arguments=arguments))
    assert said in str(refused.value)


# --- preempt --------------------------------------------------------------------------------------


def asks(cpu: int = 4, **fields: Any) -> Gang:
    return gang_of("high", 1, cpu=cpu, **fields)


def preempted(waiting: Gang, *running: RunningGang, nodes: tuple[Node, ...]) -> set[str]:
    gang = PluginConf("gang", {"enablePreemptable": False})
    rules = policies(((PluginConf("tdm", arguments=NIGHT), gang), ("predicates",)), ACTIONS)
    return victims(contended(waiting, running=running, nodes=nodes, by=rules, now=OPEN))


def test_pods_give_way_to_a_gang_of_equal_priority_that_is_not_preemptable() -> None:
    running = [running_gang(f"p{n}", [0], solo=True) for n in range(4)]
    assert len(preempted(asks(2, preemptable=False), *running, nodes=(plain("n0"),))) == 2


def test_of_two_gangs_that_say_nothing_of_being_preemptable_none_goes_for_the_other() -> None:
    silent, offered = (
        running_gang("p", [0], solo=True, cpu=4, preemptable=said) for said in (None, True)
    )
    assert preempted(asks(), silent, nodes=(plain("n0"),)) == set()
    assert preempted(asks(), offered, nodes=(plain("n0"),)) == {"p-0"}
    assert preempted(asks(preemptable=False), silent, nodes=(plain("n0"),)) == {"p-0"}


@pytest.mark.parametrize(
    "fields",
    [
        {"preemptable": True},
        {"annotations": {PREEMPTABLE: "true"}},
        {"annotations": {REVOCABLE_ZONE: "*"}},
    ],
    ids=["preemptable", "by annotation", "of a zone"],
)
def test_a_gang_that_may_be_evicted_itself_takes_no_room(fields: dict[str, Any]) -> None:
    running = [running_gang("p", [0], solo=True, cpu=4, preemptable=True)]
    assert preempted(asks(), *running, nodes=(plain("n0"),)) == {"p-0"}
    assert preempted(asks(**fields), *running, nodes=(plain("n0"),)) == set()


def test_pods_on_lent_nodes_stay() -> None:
    running = [running_gang("p", [0], solo=True, cpu=4)]
    waiting = offline("high", cpu=4)
    assert preempted(waiting, *running, nodes=(lent("n0"),)) == set()


def test_a_gang_without_a_budget_loses_one_pod_in_a_cycle() -> None:
    many = running_gang("many", [0, 0, 0, 0], minimum=1)
    single = running_gang("single", [0], solo=True)
    nodes = (plain("n0", cpu=5),)
    assert len(preempted(asks(1, preemptable=False), many, single, nodes=nodes)) == 1
    assert preempted(asks(3, preemptable=False), many, single, nodes=nodes) == set()


# --- zones that close -----------------------------------------------------------------------------


def left(
    *running: RunningGang, nodes: tuple[Node, ...], now: float = CLOSED, **fields: Any
) -> Outcome:
    return contended(running=running, nodes=nodes, by=by(), now=now, **fields)


def test_when_a_zone_closes_its_pods_go_though_no_gang_asks_for_room() -> None:
    running = [running_gang(f"p{n}", [n % 2], solo=True) for n in range(4)]
    nodes = (lent("n0"), plain("n1"))
    outcome = left(*running, nodes=nodes)
    assert victims(outcome) == {"p0-0", "p2-0"}
    assert {plan.action for plan in outcome.plan.evictions} == {EvictionAction.REVOKE}
    assert {v.rule for plan in outcome.plan.evictions for v in plan.victims} == {"tdm"}
    assert victims(left(*running, nodes=nodes, now=OPEN)) == set()


def test_pods_on_nodes_of_a_zone_of_which_nothing_is_said_stay() -> None:
    assert victims(left(running_gang("p", [0], solo=True), nodes=(lent("n0", "other"),))) == set()


def test_without_the_action_preempt_they_stay() -> None:
    rules = by(("enqueue", "allocate"))
    running = [running_gang("p", [0], solo=True)]
    assert victims(contended(running=running, nodes=(lent("n0"),), by=rules, now=CLOSED)) == set()


def test_a_gang_goes_whole_or_in_what_is_beyond_its_minimum() -> None:
    inside = running_gang("inside", [0, 0])
    across = running_gang("across", [0, 1])
    elastic = running_gang("elastic", [0, 1, 1], minimum=2)
    nodes = (lent("n0", cpu=8), plain("n1", cpu=8))
    outcome = left(inside, across, elastic, nodes=nodes)
    assert victims(outcome) == {"inside-0", "inside-1", "elastic-0"}


@pytest.mark.parametrize(
    ("annotations", "count"),
    [
        pytest.param({}, 1, id="one without a budget"),
        pytest.param({"volcano.sh/jdb-max-unavailable": "2"}, 2, id="two at once"),
        pytest.param({"volcano.sh/jdb-min-available": "50%"}, 2, id="half of them"),
        pytest.param({"volcano.sh/jdb-min-available": "4"}, 0, id="none"),
    ],
)
def test_as_many_members_go_at_once_as_the_budget_allows(
    annotations: dict[str, str], count: int
) -> None:
    gang = running_gang("g", [0] * 4, minimum=1, annotations=annotations)
    found = victims(left(gang, nodes=(lent("n0", cpu=8),)))
    assert len(found) == count


@pytest.mark.parametrize(("ago", "count"), [(59.0, 0), (60.0, 1)])
def test_there_is_one_round_in_each_period(ago: float, count: int) -> None:
    running = running_gang("p", [0], solo=True)
    assert len(victims(left(running, nodes=(lent("n0"),), revoked=CLOSED - ago))) == count


def test_while_pods_of_a_gang_are_going_no_others_of_it_do() -> None:
    gang = running_gang("g", [0] * 3, minimum=1)
    names = (PodUid("uid-g-0"), "default", "g-0", NodeName("n0"))
    victim = VictimPod(*names, GroupKey("default/g"), QueueName("default"), "tdm")
    begun = EvictionPlan(EvictionAction.REVOKE, GroupKey(""), (victim,))
    outcome = left(gang, nodes=(lent("n0"),), begun=(begun,))
    assert victims(outcome) == set()


@pytest.mark.parametrize("protected", [Protection.UNPREEMPTABLE, Protection.SYSTEM])
def test_what_protects_pods_from_all_evictions_does_so_here(protected: Protection) -> None:
    running = running_gang("p", [0], solo=True, protected=protected)
    assert victims(left(running, nodes=(lent("n0"),))) == set()


def test_pods_of_low_priority_go_first() -> None:
    gang = running_gang("g", [0, 0], minimum=1, annotations={})
    low = running_gang("low", [0], solo=True, priority=-5)
    outcome = left(gang, low, nodes=(lent("n0"),))
    assert [v.name for plan in outcome.plan.evictions for v in plan.victims] == ["low-0", "g-0"]


@given(
    gangs=st.lists(
        st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(1, 4)),
        min_size=1,
        max_size=5,
    ),
    budget=st.none() | st.integers(1, 3),
)
@examples(40)
def test_only_pods_of_closed_zones_go_and_no_gang_is_left_in_part(
    gangs: list[tuple[list[int], int]], budget: int | None
) -> None:
    """Nodes 0 and 1 are of a closed zone, 2 of none, 3 of one of which nothing is said."""
    said = {} if budget is None else {"volcano.sh/jdb-max-unavailable": str(budget)}
    running = [
        running_gang(f"g{n}", rows, minimum=min(least, len(rows)), annotations=said)
        for n, (rows, least) in enumerate(gangs)
    ]
    nodes = (lent("n0"), lent("n1"), plain("n2"), lent("n3", "other"))
    gone = victims(left(*running, nodes=tuple(nodes)))
    for each, (rows, least) in zip(running, gangs, strict=True):
        mine = {run.pod.name: run.node for run in each.runs if run.pod.name in gone}
        assert set(mine.values()) <= {0, 1}
        staying = len(rows) - len(mine)
        assert staying == 0 or staying >= min(least, len(rows))
        if budget is not None:
            assert len(mine) <= budget
        elif len(mine) < len(rows):
            assert len(mine) <= 1
