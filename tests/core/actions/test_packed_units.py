"""Sub-groups of several shapes that are placed at once: how large a search may be."""

from collections import Counter
from dataclasses import replace
from time import process_time

from app.model.gang import Gang
from app.model.ids import NodeName
from app.model.parts import SubGroup, SubGroupPolicy
from app.model.reason import Cause
from tests.builders import make_gang, make_task
from tests.core.actions.rigs import cores, cycle, members, sized
from tests.topology import hard, make_domains, racks


def of_two_shapes(count: int, least: int) -> Gang:
    """So many sub-groups of a member of two cores and one of three, of which ``least`` must be."""
    waiting = [
        task
        for number in range(count)
        for cpu in (2, 3)
        for task in members(f"g-{number}-{cpu}", 1, cpu=cpu, role=f"r{cpu}")
    ]
    of = {task.uid: SubGroup("s", str(at // 2)) for at, task in enumerate(waiting)}
    policy = SubGroupPolicy("s", keys=("k",), size=2, least=least, topology=hard(1))
    return make_gang(
        "g",
        waiting=tuple(waiting),
        min_member=2 * least,
        topology=hard(2),
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )


def test_many_sub_groups_on_many_nodes_are_refused_without_a_deep_search() -> None:
    """As many domains as nodes have room for a sub-group by sums, and none has by pieces."""
    nodes = cores(*(4 for _ in range(64)))
    names = [f"n{at}" for at in range(64)]
    tree = racks(**{f"r{at}": " ".join(names[2 * at : 2 * at + 2]) for at in range(32)})
    outcome = cycle(of_two_shapes(40, 40), nodes=nodes, domains=make_domains(nodes, tree), now=0.0)
    assert outcome.refusal("g").cause is Cause.NO_DOMAIN


def test_sixteen_sub_groups_on_a_thousand_nodes_are_told_by_sums_that_they_do_not_fit() -> None:
    """Of 125 racks fifteen have room for a sub-group."""
    sizes = [5 if row < 8 * 15 else 2 for row in range(1000)]
    nodes, racks_of = cores(*sizes), {f"r{k:03}": range(8 * k, 8 * k + 8) for k in range(125)}
    tree = racks(**{name: " ".join(f"n{at}" for at in rows) for name, rows in racks_of.items()})
    domains = make_domains(nodes, tree)
    kinds = {cpu: sized(cpu) for cpu in (2, 3)}
    waiting = [
        task
        for number in range(16)
        for cpu, shape in kinds.items()
        for task in members(f"g-{number}-{cpu}", 8, shape=shape, role=f"r{cpu}")
    ]
    of = {task.uid: SubGroup("s", str(at // 16)) for at, task in enumerate(waiting)}
    policy = SubGroupPolicy("s", keys=("k",), size=16, least=16, topology=hard(1))
    gang = make_gang(
        "g",
        waiting=tuple(waiting),
        sub_groups=(policy,),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    outcome = cycle(gang, nodes=nodes, domains=domains)
    assert outcome.text("g").startswith(
        "group default/g, s: domains of tier <= 1 would have room for 15 of 16 sub-groups of 16 "
        "pods if nothing ran there; never: "
    )
    fewer = replace(gang, min_member=15 * 16, sub_groups=(replace(policy, least=15),))
    assert len(cycle(fewer, nodes=nodes, domains=domains).nodes("g")) == 15 * 16


def test_of_many_sub_groups_each_is_packed_where_member_by_member_leaves_gaps() -> None:
    """Ten racks of ten cores, each for two members of two cores and two of three."""
    nodes = cores(*(size for at in range(10) for size in ((5, 5), (4, 6), (3, 7))[at % 3]))
    tree = racks(**{f"r{at}": f"n{2 * at} n{2 * at + 1}" for at in range(10)})
    kinds = {cpu: sized(cpu) for cpu in (2, 3)}
    waiting = [
        task
        for number in range(10)
        for cpu, shape in kinds.items()
        for task in members(f"g-{number}-{cpu}", 2, shape=shape, role=f"r{cpu}")
    ]
    of = {task.uid: SubGroup("s", str(at // 4)) for at, task in enumerate(waiting)}
    gang = make_gang(
        "g",
        waiting=tuple(waiting),
        sub_groups=(SubGroupPolicy("s", keys=("k",), size=4, least=10, topology=hard(1)),),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    outcome = cycle(gang, nodes=nodes, domains=make_domains(nodes, tree))
    assert len(outcome.nodes("g")) == 40


def test_the_search_is_over_after_so_many_steps() -> None:
    nodes = cores(*(4 for _ in range(32)))
    names = [f"n{at}" for at in range(32)]
    tree = racks(**{f"r{at}": " ".join(names[2 * at : 2 * at + 2]) for at in range(16)})
    domains = make_domains(nodes, tree)
    assert len(cycle(of_two_shapes(8, 8), nodes=nodes, domains=domains).nodes("g")) == 16
    assert cycle(of_two_shapes(17, 17), nodes=nodes, domains=domains).nodes("g") == {}


def test_a_sub_group_behind_a_thousand_that_fit_nowhere_is_packed() -> None:
    """Its members fill the rack, if each node gets one of three cores and one of two."""
    nodes, kinds = cores(5, 5), (sized(2), sized(2), sized(3), sized(3))
    waiting = [
        make_task(f"{at:04}-{number}", shape=shape, pinned=NodeName("" if at == 1000 else "none"))
        for at in range(1001)
        for number, shape in enumerate(kinds)
    ]
    of = {task.uid: SubGroup("s", task.name.partition("-")[0]) for task in waiting}
    gang = make_gang(
        "g",
        waiting=tuple(waiting),
        min_member=4,
        sub_groups=(SubGroupPolicy("s", keys=("k",), size=4, least=1, topology=hard(1)),),
        sub_group_of=of,
        sub_group_valid=Counter(of.values()),
    )
    found = cycle(gang, nodes=nodes, domains=make_domains(nodes, racks(a="n0 n1"))).nodes("g")
    assert sorted(found) == [f"1000-{number}" for number in range(4)]


def test_a_gang_of_hundreds_of_shapes_for_which_no_packing_is_found_waits() -> None:
    """By sums the rack has room for all; each node has some cores left that take no member."""
    waiting = [task for at in range(500) for task in members(f"g{at}", 1, cpu=1 + at / 1000)]
    gang = make_gang("g", waiting=tuple(waiting), topology=hard(1))
    nodes = cores(*(100,) * 6, 25)
    tree = racks(a=" ".join(f"n{at}" for at in range(7)))
    began = process_time()
    outcome = cycle(gang, nodes=nodes, domains=make_domains(nodes, tree))
    assert process_time() - began < 10
    assert "the members do not fit side by side in a" in outcome.text("g")
