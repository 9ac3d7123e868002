"""A gang is left with its minimum, or goes whole."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from app.core.protection.gang_minimum import is_left_in_part, keeps_minimum
from app.core.protection.victim import Victim, VictimGang
from app.model.parts import Part, SubGroup, SubGroupPolicy
from tests.core.protection.builders import make_member, make_victim_gang
from tests.scale import examples

A, B, C = make_member("a"), make_member("b"), make_member("c")


def test_what_a_gang_has_beyond_its_minimum_may_go() -> None:
    gang = make_victim_gang(A, B, C, minimum=2)
    assert not is_left_in_part(gang, [A])
    assert is_left_in_part(gang, [A, B])


def test_a_whole_gang_may_go() -> None:
    assert not is_left_in_part(make_victim_gang(A, B, C, minimum=3), [A, B, C])


def test_a_victim_that_is_named_twice_goes_once() -> None:
    gang = make_victim_gang(A, B, minimum=2)
    assert is_left_in_part(gang, [A, A])


def test_members_that_others_may_evict_count_as_gone() -> None:
    gang = make_victim_gang(A, B, C, minimum=2)
    assert is_left_in_part(gang, [A], others=[B])
    assert not is_left_in_part(gang, [A], others=[A])


def test_the_rest_is_not_the_whole_while_the_victims_of_others_may_stay() -> None:
    gang = make_victim_gang(A, B, C, minimum=3)
    assert is_left_in_part(gang, [A, B], others=[C])


def test_a_member_on_its_way_out_takes_nothing_from_its_gang() -> None:
    leaving = make_member("leaving", there=False)
    gang = make_victim_gang(A, B, leaving, minimum=2)
    assert not is_left_in_part(gang, [leaving])
    assert is_left_in_part(gang, [A, leaving])


def test_finished_members_count_for_the_minimum_and_not_for_the_whole() -> None:
    gang = make_victim_gang(A, B, make_member("done"), minimum=2, finished=1)
    assert not is_left_in_part(gang, [A])
    assert not is_left_in_part(gang, [A, B])


def test_every_role_keeps_its_minimum() -> None:
    ps, worker, spare = (make_member(n, role=n[0]) for n in ("p", "w1", "w2"))
    gang = make_victim_gang(ps, worker, spare, minimum=2, role_minimum={"p": 1, "w": 1})
    assert not is_left_in_part(gang, [spare])
    assert is_left_in_part(gang, [ps])


def test_enough_sub_groups_stay_whole() -> None:
    pairs = SubGroupPolicy("pair", keys=("pair",), size=2, least=1)
    x1, x2, y1 = (make_member(n, part=Part("", SubGroup("pair", n[0]))) for n in ("x1", "x2", "y1"))
    gang = make_victim_gang(x1, x2, y1, minimum=1, sub_groups=(pairs,))
    assert not is_left_in_part(gang, [y1])
    assert is_left_in_part(gang, [x1])


PARTS = [Part(role, SubGroup("s", values)) for role in ("p", "w") for values in "xy"]
MEMBERS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map(
    lambda parts: [make_member(f"m{number}", part=part) for number, part in enumerate(parts)]
)
MINIMUM = st.fixed_dictionaries(
    {
        "minimum": st.integers(0, 4),
        "role_minimum": st.dictionaries(st.sampled_from("pw"), st.integers(0, 2)),
        "sub_groups": st.sampled_from(
            [(), *((SubGroupPolicy("s", size=n, least=m),) for n in (1, 2) for m in (0, 1, 2))]
        ),
    }
)


def has_minimum(gang: VictimGang, members: Sequence[Victim]) -> bool:
    """By a look at every member."""
    roles = all(
        len([m for m in members if m.part.role == role]) >= least
        for role, least in gang.role_minimum.items()
    )
    for policy in gang.sub_groups:
        whole = [
            values
            for values in "xy"
            if len([m for m in members if m.part.sub_group.values == values]) >= policy.size
        ]
        roles = roles and len(whole) >= policy.least
    return roles and len(members) >= gang.min_member


def subsets(of: Sequence[frozenset[int]]) -> list[tuple[frozenset[int], ...]]:
    return list(chain.from_iterable(combinations(of, count) for count in range(len(of) + 1)))


@given(members=MEMBERS, minimum=MINIMUM, data=st.data())
@examples(200)
def test_the_rule_is_what_a_look_at_those_that_are_left_says(
    members: list[Victim], minimum: dict[str, object], data: st.DataObject
) -> None:
    gang = make_victim_gang(*members, **minimum)  # type: ignore[arg-type]
    going = data.draw(st.lists(st.sampled_from(members), unique_by=lambda m: m.uid))
    left = [member for member in members if member not in going]
    leaving = Counter(member.part for member in going)
    assert keeps_minimum(gang, leaving) is has_minimum(gang, left)
    in_part = bool(going) and bool(left) and not has_minimum(gang, left)
    assert is_left_in_part(gang, going) is in_part


@given(members=MEMBERS, minimum=MINIMUM, data=st.data())
@examples(200)
def test_whichever_of_the_allowed_evictions_are_done_no_gang_is_left_in_part(
    members: list[Victim], minimum: dict[str, object], data: st.DataObject
) -> None:
    """Several preemptors ask in turn; each of them may evict what it was allowed, or may not."""
    gang = make_victim_gang(*members, **minimum)  # type: ignore[arg-type]
    asked = st.frozensets(st.integers(0, len(members) - 1), min_size=1)
    allowed: list[frozenset[int]] = []
    for proposal in data.draw(st.lists(asked, max_size=5)):
        others = [members[i] for i in frozenset().union(*allowed)]
        if not is_left_in_part(gang, [members[i] for i in proposal], others=others):
            allowed.append(proposal)
    for done in subsets(allowed):
        gone = frozenset[int]().union(*done)
        left = [member for i, member in enumerate(members) if i not in gone]
        assert not (gone and left) or has_minimum(gang, left)
