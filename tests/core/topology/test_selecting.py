"""Names of nodes that members of HyperNodes select by patterns."""

from app.core.topology.selecting import Names
from app.model.topology import HyperNodeMember

LONG = f"{'a' * 56}-x"


def test_a_pattern_that_repeats_repetitions_is_held_against_all_names() -> None:
    names = Names()
    for number in range(5_000):
        names.put(f"{LONG}{number}", {})
    assert names.selected(HyperNodeMember(True, pattern="(a+)+$")) == set()
    names.put("aaa", {})
    assert names.selected(HyperNodeMember(True, pattern="(a+)+$")) == {"aaa"}


def test_a_pattern_may_select_all_names() -> None:
    names = Names()
    for number in range(5_000):
        names.put(f"n{number}", {})
    assert len(names.selected(HyperNodeMember(True, pattern=".*"))) == 5_000
