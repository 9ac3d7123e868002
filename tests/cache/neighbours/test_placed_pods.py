"""Who is told to be where: as many as there are, for as long as they are."""

from dataclasses import replace

import pytest

from app.cache.neighbours.placed_pods import SPARE, Occupant, PlacedPodTable
from app.cache.neighbours.pods_with_rules import PodsWithRules
from app.model.ids import NodeName
from app.model.placed_pods import PlacedPods
from app.model.shape import LabelSelector, Operator, PodShape, PodTerm, Requirement
from tests.builders import make_node, make_shape, make_table
from tests.placed_pods import read_placed_pods

NODES = ("a", "b")


class Rig:
    """Occupants by holder; each change is noted."""

    def __init__(self) -> None:
        self.found: dict[str, Occupant] = {}
        self.looked_at: list[str] = []
        self.pod_table = PlacedPodTable(self.find, self.found)
        self.table = make_table(tuple(make_node(name) for name in NODES))

    def find(self, holder: str) -> Occupant | None:
        self.looked_at.append(holder)
        return self.found.get(holder)

    def put(self, holder: str, node: str = "a", **labels: str) -> None:
        self.found[holder] = Occupant(NodeName(node), "default", labels, make_shape())
        self.pod_table.note(holder)

    def drop(self, holder: str) -> None:
        del self.found[holder]
        self.pod_table.note(holder)

    def told(self, *asked: str) -> PlacedPods:
        return self.pod_table.placed_pods(self.table, frozenset(asked))

    def apps(self) -> list[tuple[str | None, int]]:
        placed_pods = read_placed_pods(self.told("app"), nodes=len(self.table.nodes))
        return sorted(((one.labels.get("app"), one.node) for one in placed_pods), key=str)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_many_more_come_than_there_were(rig: Rig) -> None:
    rig.put("first", app="web")
    assert rig.apps() == [("web", 0)]
    for number in range(3 * SPARE):
        rig.put(f"more-{number}", "b", app="db")
    assert rig.apps() == [("db", 1)] * 3 * SPARE + [("web", 0)]


def test_nobody_is_looked_at_before_somebody_asks_and_then_those_that_change(rig: Rig) -> None:
    rig.put("a")
    rig.put("b")
    rig.pod_table.follow()
    assert rig.looked_at == []
    rig.told()
    rig.put("b", "b")
    rig.put("b", app="web")
    rig.pod_table.follow()
    assert rig.looked_at == ["a", "b", "b"]
    assert rig.apps() == [("web", 0), (None, 0)]
    assert rig.looked_at == ["a", "b", "b"], "what was taken in is not noted for ever"


def test_rows_of_those_that_went_are_used_again(rig: Rig) -> None:
    before = len(rig.told())
    for number in range(3 * SPARE):
        rig.put(f"pod-{number}")
        rig.told()
        rig.drop(f"pod-{number}")
    assert rig.apps() == []
    assert len(rig.told()) == before


def test_those_on_a_node_that_is_not_there_are_nowhere_until_it_is(rig: Rig) -> None:
    rig.put("early", "c", app="web")
    rig.put("here", "b", app="db")
    assert rig.apps() == [("db", 1)]
    rig.table = make_table(tuple(make_node(name) for name in ("b", "c")))
    assert rig.apps() == [("db", 0), ("web", 1)]


def test_a_label_that_nobody_asked_for_so_far_is_read_from_all(rig: Rig) -> None:
    rig.put("a", app="web", tier="1")
    assert set(rig.told("app").labels) == {"app"}
    rig.put("b", app="db", tier="2")
    assert set(rig.told("tier").labels["tier"].values) == {"1", "2"}


def pods_with_rules(key: str) -> PodShape:
    selector = LabelSelector((Requirement(key, Operator.EXISTS),))
    return make_shape(pod_affinity=(PodTerm("zone", selector),))


def test_the_keys_that_are_asked_for_are_those_of_who_is_there() -> None:
    those = PodsWithRules()
    for holder, key in (("a", "app"), ("b", "app"), ("c", "tier"), ("a", "tier")):
        those.put(holder, pods_with_rules(key))
    assert (len(those), set(those.keys())) == (3, {"app", "tier"})
    those.drop("b")
    those.drop("unknown")
    assert those.keys() == {"tier"}
    those.drop("a")
    those.drop("c")
    assert (len(those), those.keys()) == (0, frozenset())


def test_saying_the_same_again_counts_nothing_anew() -> None:
    those = PodsWithRules()
    those.put("a", pods_with_rules("app"))
    before = those.keys()
    those.put("a", pods_with_rules("app"))
    assert those.keys() is before
    those.put("a", replace(pods_with_rules("app"), node_selector=(("disk", "ssd"),)))
    assert those.keys() is before, "other rules, which look at the same"
