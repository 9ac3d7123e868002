"""Members that must be near others come to kube-scheduler after these, and none waits for ever."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.core.placement.affinity_followers import Companion, Terms, followers
from app.core.placement.placed_pods import Identity, selects
from app.model.ids import NodeName
from app.model.shape import LabelSelector, Operator, PodTerm, Requirement

HOST = "kubernetes.io/hostname"
ZONE = "zone"
ZONES = {"n1": "east", "n2": "east", "n3": "west", "n4": None}


def label(node: NodeName, key: str) -> str | None:
    return ZONES[node] if key == ZONE else str(node)


def near(part: str, key: str = HOST) -> PodTerm:
    """Its pod must be where one of that part is."""
    chosen = LabelSelector((Requirement("part", Operator.IN, (part,)),))
    return PodTerm(key, chosen, namespaces=("default",))


def member(name: str, part: str, node: str, *terms: PodTerm, arrived: bool = False) -> Companion:
    identity = Identity("default", (("part", part),))
    return Companion(name, NodeName(node), identity, terms, arrived)


def waiting(*companions: Companion) -> set[str]:
    return set(followers(companions, label=label, namespaces={}))


def test_workers_wait_for_their_server() -> None:
    server = member("server", "server", "n1")
    workers = [member(f"w{i}", "worker", "n1", near("server")) for i in range(2)]
    assert waiting(*workers, server) == {"w0", "w1"}
    assert waiting(*workers, replace(server, arrived=True)) == set()


def test_a_worker_waits_for_the_server_of_its_own_zone() -> None:
    here = member("here", "server", "n1")
    there = member("there", "server", "n3", arrived=True)
    worker = member("w", "worker", "n2", near("server", ZONE))
    assert waiting(worker, here, there) == {"w"}
    assert waiting(worker, replace(here, arrived=True), there) == set()


def test_a_chain_comes_one_after_the_other() -> None:
    a, b, c = (
        member("a", "a", "n1"),
        member("b", "b", "n1", near("a")),
        member("c", "c", "n1", near("b")),
    )
    assert waiting(c, b, a) == {"b", "c"}
    assert waiting(c, b, replace(a, arrived=True)) == {"c"}


def test_those_that_must_be_near_each_other_start_at_once() -> None:
    equal = [member(f"w{i}", "worker", "n1", near("worker")) for i in range(3)]
    assert waiting(*equal) == set()


def test_others_wait_for_those_that_start() -> None:
    equal = [member(f"w{i}", "worker", "n1", near("worker")) for i in range(2)]
    after = member("after", "after", "n1", near("worker"))
    assert waiting(after, *equal) == {"after"}


def test_what_only_pods_elsewhere_explain_does_not_wait() -> None:
    """Two that need each other can only be there as pods of others are near."""
    a, b = member("a", "a", "n1", near("b")), member("b", "b", "n1", near("a"))
    assert waiting(a, b) == set()
    lonely = member("lonely", "worker", "n1", near("service"))
    assert waiting(lonely) == set()


def test_one_that_follows_such_a_member_waits_for_it() -> None:
    first = member("first", "first", "n1", near("service"))
    second = member("second", "second", "n1", near("first"))
    assert waiting(second, first) == {"second"}


def test_a_node_without_the_label_is_near_nothing() -> None:
    server = member("server", "server", "n4")
    worker = member("w", "worker", "n4", near("server", ZONE))
    assert waiting(worker, server) == set()


def test_a_long_chain_costs_no_more_per_member_than_a_short_one() -> None:
    def looks(length: int) -> int:
        asked: list[str] = []

        def counting(node: NodeName, key: str) -> str | None:
            asked.append(key)
            return label(node, key)

        chain = [
            member(f"m{i}", f"part-{i}", "n1", *([near(f"part-{i - 1}")] if i else []))
            for i in range(length)
        ]
        assert len(followers(chain, label=counting, namespaces={})) == length - 1
        return len(asked)

    assert looks(400) <= 10 * looks(50)


def kube_scheduler_takes(companion: Companion, assumed: Sequence[Companion]) -> bool:
    """Its filter for required affinity, in the plainest form."""
    terms = companion.near
    if not terms:
        return True
    values = [label(companion.node, term.topology_key) for term in terms]
    if None in values:
        return False
    selected = [one for one in assumed if _selects(terms, one)]
    if not selected:
        return _selects(terms, companion)
    return all(
        any(label(one.node, term.topology_key) == value for one in selected)
        for term, value in zip(terms, values, strict=True)
    )


def _selects(terms: Terms, companion: Companion) -> bool:
    return all(selects(term, companion.identity, {}) for term in terms)


PARTS = ("a", "b", "c")


@st.composite
def gangs(draw: st.DrawFn) -> list[Companion]:
    """Members that were placed one after the other, each where kube-scheduler takes it then.

    A part is near earlier parts, or near itself: whoever comes first may then be anybody of it.
    """
    rules: dict[str, Terms] = {}
    for i, part in enumerate(PARTS):
        key = draw(st.sampled_from((HOST, ZONE)))
        earlier = draw(st.lists(st.sampled_from(PARTS[:i]), max_size=1)) if i else []
        alone = () if earlier else draw(st.sampled_from(((), (part,))))
        rules[part] = tuple(near(other, key) for other in (*earlier, *alone))
    placed: list[Companion] = []
    for i, part in enumerate(sorted(draw(st.lists(st.sampled_from(PARTS), max_size=7)))):
        node = draw(st.sampled_from(sorted(ZONES)))
        one = member(f"{part}{i}", part, node, *rules[part])
        if kube_scheduler_takes(one, placed):
            placed.append(one)
    return placed


@given(gangs(), st.randoms(use_true_random=False))
def test_in_any_order_of_those_that_may_go_kube_scheduler_takes_all(
    gang: list[Companion], random: Random
) -> None:
    """Each look lets some go; they come in any order, and others join them before the next look."""
    assumed: list[Companion] = []
    left = list(gang)
    while left:
        companions = [*left, *(replace(one, arrived=True) for one in assumed)]
        behind = followers(companions, label=label, namespaces={})
        going = [one for one in left if one.holder not in behind]
        assert going, "nobody may go"
        random.shuffle(going)
        for one in going:
            assert kube_scheduler_takes(one, assumed), one
            assumed.append(one)
        left = [one for one in left if one.holder in behind]
