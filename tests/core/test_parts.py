"""What a member counts for, and whether that makes a gang's minimum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.parts import (
    NO_SUB_GROUP,
    Part,
    Policies,
    SubGroup,
    SubGroupPolicy,
    by_role,
    by_sub_group,
    lacking_sub_groups,
    least_missing,
    make_up,
    part_of,
)
from app.model.shape import LabelSelector, Operator, Requirement

WORKERS = LabelSelector((Requirement("role", Operator.IN, ("worker",)),))
BY_PLACE = SubGroupPolicy("worker", keys=("rack", "host"), selector=WORKERS, size=2, least=1)


@pytest.mark.parametrize(
    ("labels", "sub_group"),
    [
        ({"role": "worker", "rack": "1", "host": "a"}, SubGroup("worker", "1-a")),
        ({"role": "server", "rack": "1", "host": "a"}, NO_SUB_GROUP),
        ({"role": "worker", "rack": "1"}, NO_SUB_GROUP),
        ({"role": "worker", "rack": "1", "host": ""}, NO_SUB_GROUP),
    ],
)
def test_members_with_the_same_values_are_in_one_sub_group(
    labels: dict[str, str], sub_group: SubGroup
) -> None:
    assert part_of("r", labels, (BY_PLACE,)) == Part("r", sub_group)


def test_the_first_policy_that_knows_a_member_has_it() -> None:
    everybody = SubGroupPolicy("all", keys=("rack",))
    labels = {"role": "worker", "rack": "1", "host": "a"}
    assert part_of("", labels, (BY_PLACE, everybody)).sub_group.policy == "worker"
    assert part_of("", labels, (everybody, BY_PLACE)).sub_group.policy == "all"


def test_a_policy_without_keys_knows_nobody() -> None:
    """As in Volcano: with ``minSubGroups`` the gang then never runs."""
    policy = SubGroupPolicy("all", least=1)
    assert part_of("", {"a": "b"}, (policy,)) == Part("")
    assert lacking_sub_groups((policy,), {}) == {"all": 1}


def test_roles_and_sub_groups_are_summed_over_the_other() -> None:
    one, two = SubGroup("p", "1"), SubGroup("p", "2")
    parts = {Part("a", one): 1, Part("b", one): 2, Part("a", two): 4, Part("b"): 8}
    assert by_role(parts) == {"a": 5, "b": 10}
    assert by_sub_group(parts) == {one: 3, two: 4}


def test_a_minimum_is_made_of_roles_and_of_whole_sub_groups() -> None:
    pairs = (SubGroupPolicy("p", keys=("k",), size=2, least=2),)
    two = {Part("a", SubGroup("p", "1")): 2, Part("b", SubGroup("p", "2")): 2}
    assert make_up(two, role_minimum={"a": 2, "b": 2}, policies=pairs)
    assert not make_up(two, role_minimum={"a": 3}, policies=pairs)
    assert not make_up({Part("a", SubGroup("p", "1")): 4}, role_minimum={}, policies=pairs)


POLICIES = st.lists(
    st.builds(
        SubGroupPolicy,
        st.sampled_from("pq"),
        keys=st.just(("k",)),
        size=st.integers(1, 3),
        least=st.integers(0, 3),
    ),
    max_size=2,
    unique_by=lambda policy: policy.name,
).map(tuple)
NAMES = [SubGroup(policy, str(number)) for policy in "pq" for number in range(3)]


def test_numbers_of_any_size_cost_nothing() -> None:
    policy = SubGroupPolicy("p", keys=("k",), size=2**31 - 1, least=2**31 - 1)
    assert least_missing((policy,), {SubGroup("p", "1"): 1}) == (2**31 - 1) ** 2 - 1


def test_of_two_policies_of_a_name_the_last_one_counts() -> None:
    """As in Volcano; nothing refuses them."""
    twice = tuple(SubGroupPolicy("p", keys=("k",), size=size, least=size) for size in (1, 2))
    assert lacking_sub_groups(twice, {SubGroup("p", "1"): 1}) == {"p": 2}
    assert least_missing(twice, {SubGroup("p", "1"): 1}) == 3


@given(policies=POLICIES, counts=st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_what_is_missing_is_the_least_that_makes_enough_of_them_whole(
    policies: Policies, counts: list[int]
) -> None:
    known = {policy.name for policy in policies}
    have = {name: n for name, n in zip(NAMES, counts, strict=True) if name.policy in known}
    missing = least_missing(policies, have)
    after_one_more = [least_missing(policies, {**have, name: have[name] + 1}) for name in have]
    assert (missing == 0) is (not lacking_sub_groups(policies, have))
    assert all(missing - 1 <= more <= missing for more in after_one_more)
    assert not missing or missing - 1 in after_one_more, "some member brings it nearer"
