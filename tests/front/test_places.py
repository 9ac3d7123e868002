"""Answers that follow from places alone: those of the extender, byte for byte, or none."""

from collections import Counter

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.front.places import Places
from app.model.ids import NodeName, PodUid
from app.wire.extender import decode_filter, filter_answer
from app.wire.filter_by_name import SAMPLE_FLOOR
from app.wire.front import NOBODY, PlaceChanges, PodPlace, Told

HERE = PlaceChanges({PodUid("u"): PodPlace(NodeName("n1"))})
SAMPLE = [f"n{number}" for number in range(SAMPLE_FLOOR)]


def body(uid: str = "u", names: list[str] | None = None, **more: object) -> bytes:
    pod = {"metadata": {"uid": uid, "name": "p"}, "spec": {"schedulerName": "volcano"}}
    return msgspec.json.encode({"Pod": pod, "Nodes": None, "NodeNames": names} | more)


def at(kind: int = 0, number: int = 0, **nodes: str) -> PlaceChanges:
    """Pods of one kind, on these nodes."""
    given = {PodUid(uid): PodPlace(NodeName(node), kind) for uid, node in nodes.items()}
    return PlaceChanges(given, number=number)


def chosen(answer: bytes | None) -> str:
    """The node of an answer; nothing when there is none."""
    if answer is None:
        return ""
    [node] = msgspec.json.decode(answer)["NodeNames"]
    assert isinstance(node, str)
    return node


class Stand:
    def __init__(self) -> None:
        self.told: list[Told] = []
        ticks = iter(range(100))
        self.places = Places(self.told.append, clock=lambda: float(next(ticks)))


def test_a_place_that_is_offered_is_the_answer_and_the_extender_is_told() -> None:
    stand = Stand()
    stand.places.learn(HERE)
    asked = body(names=["n0", "n1"])
    assert stand.places.answer(asked) == filter_answer(decode_filter(asked), [NodeName("n1")])
    assert stand.told == [Told(PodUid("u"), NodeName("n1"), 1.0)]


def test_node_names_are_quoted_as_the_extender_quotes_them() -> None:
    stand, odd = Stand(), 'n"\\\u00e4\u2028'
    stand.places.learn(PlaceChanges({PodUid("u"): PodPlace(NodeName(odd))}))
    asked = body(names=[odd])
    assert stand.places.answer(asked) == filter_answer(decode_filter(asked), [NodeName(odd)])


@pytest.mark.parametrize(
    "asked",
    [
        body("another", ["n1"]),
        body(names=["n0", "n2"]),
        body(names=[]),
        body(names=None),
        body(names=None, Nodes={"items": [{"metadata": {"name": "n1"}}]}),
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"Pod":{"metadata":{"uid":"u"}},"NodeNames":["n1"]}',
        pytest.param(b'{"Pod":{"metadata":{"uid":"u"},"spec":' + b"[" * 100_000, id="deep"),
        b'{"Pod":{"metadata":{"uid":7},"spec":{}},"NodeNames":["n1"]}',
        b'{"Pod":{"metadata":{"uid":"\xff"},"spec":{}},"NodeNames":["n1"]}',
    ],
)
def test_everything_else_is_for_the_extender(asked: bytes) -> None:
    stand = Stand()
    stand.places.learn(HERE)
    assert stand.places.answer(asked) is None
    assert stand.told == []


def test_places_move_and_are_lost() -> None:
    places = Stand().places
    places.learn(HERE)
    places.learn(at(u="n2", v="n1"))
    assert places.answer(body(names=["n1"])) is None
    assert places.answer(body(names=["n1", "n2"])) is not None
    places.learn(PlaceChanges(lost=[PodUid("u"), PodUid("unknown")]))
    assert places.answer(body(names=["n2"])) is None
    assert places.answer(body("v", ["n1"])) is not None
    places.forget()
    assert places.answer(body("v", ["n1"])) is None


# --- changing places ------------------------------------------------------------------------------


def test_a_pod_whose_node_is_not_offered_changes_places_with_an_equal_one() -> None:
    stand = Stand()
    stand.places.learn(at(kind=7, number=3, u="far", v="n5"))
    assert chosen(stand.places.answer(body("u", SAMPLE))) == "n5"
    assert stand.told == [Told(PodUid("u"), NodeName("n5"), 1.0, 3, PodUid("v"))]
    assert chosen(stand.places.answer(body("v", ["far"]))) == "far"
    assert stand.told[1:] == [Told(PodUid("v"), NodeName("far"), 1.0, 3, NOBODY)]


def test_when_all_feasible_nodes_are_offered_the_extender_is_to_know() -> None:
    stand = Stand()
    stand.places.learn(at(kind=7, u="far", v="n5"))
    assert stand.places.answer(body("u", SAMPLE[1:])) is None
    assert stand.told == []


@pytest.mark.parametrize(
    ("mine", "theirs"), [(0, 0), (7, 8), (7, 0), (0, 7)], ids=["neither", "unlike", "other", "one"]
)
def test_pods_that_are_not_alike_keep_their_places(mine: int, theirs: int) -> None:
    stand = Stand()
    stand.places.learn(at(kind=mine, u="far"))
    stand.places.learn(at(kind=theirs, v="n5"))
    assert stand.places.answer(body("u", SAMPLE)) is None


def test_who_was_told_its_place_keeps_it() -> None:
    stand = Stand()
    stand.places.learn(at(kind=7, u="far", v="n5"))
    assert chosen(stand.places.answer(body("v", SAMPLE))) == "n5"
    assert stand.places.answer(body("u", SAMPLE)) is None
    assert chosen(stand.places.answer(body("u", ["far"]))) == "far"
    assert stand.places.answer(body("u", SAMPLE)) is None


class Changing(RuleBasedStateMachine):
    """Places come, go and change hands: each is somebody's, and is told to one pod only."""

    PODS = st.sampled_from([PodUid(name) for name in "uvwx"])
    NODES = st.sampled_from([NodeName("n1"), NodeName("n2"), NodeName("far")])

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Told] = []
        self.places = Places(self.told.append)
        self.of: dict[PodUid, PodPlace] = {}

    @rule(uid=PODS, node=NODES, kind=st.sampled_from([0, 7, 7, 7, 8]))
    def given(self, uid: PodUid, node: NodeName, kind: int) -> None:
        self.of[uid] = PodPlace(node, kind)
        self.places.learn(PlaceChanges({uid: self.of[uid]}))

    @rule(uid=PODS)
    def lost(self, uid: PodUid) -> None:
        self.of.pop(uid, None)
        self.places.learn(PlaceChanges(lost=[uid]))

    @rule(uid=PODS)
    def asked(self, uid: PodUid) -> None:
        self.told.clear()
        node = chosen(self.places.answer(body(uid, SAMPLE)))
        mine = self.of.get(uid, PodPlace(NodeName("")))
        others = {
            other
            for other, place in self.of.items()
            if place.kind == mine.kind and place.kind and place.node in SAMPLE
        }
        if mine.node in SAMPLE:
            assert node == mine.node
        else:
            assert bool(node) is bool(others)
        if not node:
            assert self.told == []
            return
        [told] = self.told
        before = Counter(place.node for place in self.of.values())
        if told.other:
            assert told.other in others
            assert self.of[told.other].node == node
            self.of[told.other] = mine
        self.of[uid] = PodPlace(NodeName(node))
        assert (told.uid, told.node) == (uid, node)
        assert Counter(place.node for place in self.of.values()) == before

    @invariant()
    def everybody_is_filed(self) -> None:
        assert self.places._of == self.of
        filed = {
            (kind, node, uid)
            for kind, on in self.places._alike.items()
            for node, there in on.items()
            for uid in there
        }
        assert filed == {(p.kind, p.node, uid) for uid, p in self.of.items() if p.kind}
        assert all(on and all(on.values()) for on in self.places._alike.values())


TestChanging = Changing.TestCase
