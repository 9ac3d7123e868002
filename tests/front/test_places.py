"""Answers that follow from a place alone: those of the extender, byte for byte, or none."""

import msgspec
import pytest

from app.front.places import Places
from app.model.ids import NodeName, PodUid
from app.wire.extender import decode_filter, filter_answer
from app.wire.front import Change, Told

HERE = Change({PodUid("u"): NodeName("n1")})


def body(uid: str = "u", names: list[str] | None = None, **more: object) -> bytes:
    pod = {"metadata": {"uid": uid, "name": "p"}, "spec": {"schedulerName": "volcano"}}
    return msgspec.json.encode({"Pod": pod, "Nodes": None, "NodeNames": names} | more)


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
    stand.places.learn(Change({PodUid("u"): NodeName(odd)}))
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
    places.learn(Change({PodUid("u"): NodeName("n2"), PodUid("v"): NodeName("n1")}))
    assert places.answer(body(names=["n1"])) is None
    assert places.answer(body(names=["n1", "n2"])) is not None
    places.learn(Change(lost=[PodUid("u"), PodUid("unknown")]))
    assert places.answer(body(names=["n2"])) is None
    assert places.answer(body("v", ["n1"])) is not None
    places.forget()
    assert places.answer(body("v", ["n1"])) is None
