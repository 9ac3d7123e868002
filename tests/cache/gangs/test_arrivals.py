"""Members are counted on the way from their places to their nodes as a look at all would count."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.cache.decisions import Decisions, ImpossibleStepError
from app.cache.gangs.arrivals import Arrivals
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Answer, Member, Stage
from app.cache.gangs.registry import Registry
from app.cache.gangs.story import Stimulus
from app.cache.gangs.victims import victim_gang
from app.cache.nodes.usage import NodeUsage
from app.core.protection.gang_minimum import keeps_minimum
from app.model.ids import DEFAULT_QUEUE, NodeName
from app.model.parts import Part, SubGroupPolicy
from tests.builders import make_pod, make_task
from tests.cache.rig import KEY
from tests.cache.rig import group as pod_group

ROLES = {"a": "ps", "b": "worker", "c": "worker", "d": "worker"}
HALVES = [
    (),
    (SubGroupPolicy("half", keys=("half",), size=2, least=1),),
    (SubGroupPolicy("half", keys=("half",), size=1, least=2),),
]
STEPS = st.sampled_from([*Stage, *Answer, "void", "bound"])
WAYS = st.lists(st.tuples(st.sampled_from(sorted(ROLES)), STEPS), max_size=30)


def on_their_way(
    *, least: int = 0, role_least: int = 0, sub_groups: tuple[SubGroupPolicy, ...] = ()
) -> Group:
    """A group whose members all have places."""
    group = Group(KEY, solo=False, default_queue=DEFAULT_QUEUE)
    minimum = {"worker": role_least}
    group.pod_group = pod_group(min_member=least, role_minimum=minimum, sub_groups=sub_groups)
    for name, role in ROLES.items():
        labels = {"half": "1" if name in "ab" else "2"}
        pod = make_pod(name, labels=labels, annotations={"volcano.sh/task-spec": role})
        group.add(Member(pod, KEY, make_task(name), stage=Stage.PLANNED, node=NodeName("n")))
    return group


def door_to(group: Group) -> Decisions:
    """What changes members of the group."""
    node_usage = NodeUsage()
    registry = Registry(node_usage, default_queue=DEFAULT_QUEUE)
    registry.groups[group.key] = group
    return Decisions(registry, node_usage, clock=lambda: 1.0)


def go_on(group: Group, name: str, step: Stage | Answer | str) -> None:
    """One step of a member, if it can make it."""
    member = next(m for m in group.members.values() if m.pod.name == name)
    decisions = door_to(group)
    is_binding = member.reserved and member.stage is Stage.BINDING
    if isinstance(step, Stage):
        if member.reserved and step is not Stage.WAITING:
            with suppress(ImpossibleStepError):
                decisions.restage(member, step, now=1.0, by=Stimulus.BIND)
    elif isinstance(step, Answer):
        if is_binding:
            decisions.answered(member, step)
    elif step == "bound":
        group.remove(member)
        member.pod = replace(member.pod, node=member.node)
        group.add(member)
    elif is_binding:
        decisions.avoid(member, why="test")


Counted = tuple[Counter[Part], int, Counter[Part], int]


def counted(arrivals: Arrivals) -> Counted:
    return +arrivals.at_bind, arrivals.unanswered, +arrivals.accepted, arrivals.voided


def recount(members: Iterable[Member]) -> Counted:
    there = [member for member in members if member.reserved]
    binding = [member for member in there if member.stage is Stage.BINDING]
    void = {m.pod.uid for m in binding if m.void and m.answer is not Answer.YES}
    at_bind = [m for m in there if m.stage is not Stage.PLANNED and m.pod.uid not in void]
    return (
        Counter(member.part for member in at_bind),
        sum(member.answer is Answer.OPEN for member in binding),
        Counter(member.part for member in binding if member.answer is Answer.YES),
        len(void),
    )


@given(ways=WAYS, gone=st.sets(st.sampled_from(sorted(ROLES))))
def test_those_that_are_gone_do_not_count(
    ways: list[tuple[str, Stage | Answer | str]], gone: set[str]
) -> None:
    group = on_their_way()
    for name, step in ways:
        go_on(group, name, step)
        assert counted(group.counted.arrivals) == recount(group.members.values())
    members = list(group.members.values())
    for member in members:
        if member.pod.name in gone:
            group.remove(member)
    left = (member for member in members if member.pod.name not in gone)
    assert counted(group.counted.arrivals) == recount(left)


@given(
    ways=WAYS,
    least=st.integers(0, 4),
    role_least=st.integers(0, 3),
    sub_groups=st.sampled_from(HALVES),
    gone=st.sets(st.sampled_from(sorted(ROLES))),
)
def test_a_gang_is_complete_without_some_as_if_they_were_gone(
    *,
    ways: list[tuple[str, Stage | Answer | str]],
    least: int,
    role_least: int,
    sub_groups: tuple[SubGroupPolicy, ...],
    gone: set[str],
) -> None:
    group, left = (
        on_their_way(least=least, role_least=role_least, sub_groups=sub_groups) for _ in range(2)
    )
    for name, step in ways:
        go_on(group, name, step)
        go_on(left, name, step)
    there = [member for member in group.members.values() if member.arrived or member.pod.node]
    going = [member for member in there if member.pod.name in gone]
    parts = Counter(member.part for member in going)
    for member in going:
        left.remove(left.members[member.pod.uid])
    assert keeps_minimum(victim_gang(group), parts) is left.complete
    assert left.complete_with(parts) is group.complete
