"""Names of another namespace are told to operators only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.ids import group_key
from app.model.names import LONGEST_SUBDOMAIN, plain
from app.service.telling.hiding import HIDDEN, hidden, hidden_in
from tests.scale import examples

KNOWN = {"default", "team-b", "0"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("held by team-b/x (cpu 3)", f"held by {HIDDEN} (cpu 3)"),
        ("held by default/x (cpu 3)", "held by default/x (cpu 3)"),
        ("team-b/x.y-1, team-b/z", f"{HIDDEN}, {HIDDEN}"),
        ("Pod team-b/x-0 goes; then team-b/x-1.", f"Pod {HIDDEN} goes; then {HIDDEN}."),
        ("nvidia.com/gpu 3, example.com/team-b/x", "nvidia.com/gpu 3, example.com/team-b/x"),
        ("for team-b/pod:0a-1b, then team-b/x: 3", f"for {HIDDEN}, then {HIDDEN}: 3"),
        ("for team-b/pod:0a-1b: 3", f"for {HIDDEN}: 3"),
        ("for team-b/pod: 3", f"for {HIDDEN}: 3"),
        ("for default/pod:0a-1b.", "for default/pod:0a-1b."),
        ("0/5 nodes", "0/5 nodes"),
        ("held by 0/5 (cpu 3)", f"held by {HIDDEN} (cpu 3)"),
        ("team-b/A_B%20c~0 (cpu 3)", f"{HIDDEN} (cpu 3)"),
        ("team-b/.x, team-b/pods/x and team-b/.", f"{HIDDEN}, {HIDDEN} and {HIDDEN}."),
        ("other/x", "other/x"),
        ("my-team-b/x and team-b-2/y", "my-team-b/x and team-b-2/y"),
        ("", ""),
    ],
)
def test_an_object_of_another_known_namespace_is_named_to_no_tenant(text: str, told: str) -> None:
    assert hidden(text, own="default", namespaces=KNOWN) == told


@given(st.text(min_size=1))
@examples(10_000)
def test_no_group_is_named_to_others_whatever_its_pods_call_it(name: str) -> None:
    text = "held by {} (cpu 3), default/x (cpu 2)"
    told = hidden(text.format(group_key("team-b", name)), own="default", namespaces=KNOWN)
    assert told == text.format(HIDDEN)
    own = text.format(group_key("default", name))
    assert hidden(own, own="default", namespaces=KNOWN) == own


@given(st.text(), st.text())
@examples(10_000)
def test_texts_that_stand_for_names_are_short_and_told_apart(one: str, other: str) -> None:
    long_one, long_other = one * 300, other * 300
    for first, second in ((one, other), (long_one, long_other)):
        assert (plain(first) == plain(second)) == (first == second)
        assert len(plain(first)) <= LONGEST_SUBDOMAIN


@pytest.mark.parametrize("name", ["a", "train-7.x", "0", "a" * LONGEST_SUBDOMAIN])
def test_a_name_that_an_object_can_have_stays_as_it_is(name: str) -> None:
    assert plain(name) == name


def test_every_text_of_an_answer_is_gone_through() -> None:
    value = {
        "team-b/x": 2,
        "team-b/y": 3,
        "default/z": ("team-b/x", {"by": ["team-b/y"]}),
        "n": None,
        "flag": True,
    }
    assert hidden_in(value, own="default", namespaces=KNOWN) == {
        HIDDEN: 5,
        "default/z": [HIDDEN, {"by": [HIDDEN]}],
        "n": None,
        "flag": True,
    }
