"""Intents of evictions: what is stored is what is read."""

from dataclasses import replace

import pytest

from app.model.eviction import EvictionAction, IntendedPlace, Intent, VictimPod
from app.model.exchange import NO_EXCHANGE, Exchange
from app.model.ids import NodeName, PodUid, QueueName, group_key
from app.wire.intents import LONGEST, intent_text, read_intent

VICTIM = VictimPod(
    PodUid("uid-v"),
    "default",
    "v",
    NodeName("n1"),
    group_key("default", "low"),
    QueueName("default"),
    "priority",
)
INTENT = Intent(
    action=EvictionAction.GANG_PREEMPT,
    preemptor=group_key("default", "high"),
    uid="uid-high",
    victims=(VICTIM,),
    places=(
        IntendedPlace(PodUid("uid-a"), "a", "worker", NodeName("n1")),
        IntendedPlace(PodUid(""), "worker#1", "worker", NodeName("n2"), NO_EXCHANGE),
        IntendedPlace(
            PodUid("uid-b"), "b", "", NodeName("n3"), Exchange(frozenset({"rack-1", "x"}))
        ),
    ),
    admits=True,
    generation=7,
    decided=12.5,
    certificate={"victims": [{"uid": "uid-v", "rule": "priority"}]},
)


def test_an_intent_is_read_as_it_was_written() -> None:
    assert read_intent(intent_text(INTENT)) == INTENT


def test_equal_intents_have_equal_texts() -> None:
    inside = INTENT.places[2].exchange.inside
    assert inside is not None
    again = replace(INTENT.places[2], exchange=Exchange(frozenset(sorted(inside, reverse=True))))
    assert intent_text(replace(INTENT, places=(*INTENT.places[:2], again))) == intent_text(INTENT)


def test_a_certificate_that_is_too_long_is_left_out() -> None:
    long = replace(INTENT, certificate={"text": "x" * LONGEST})
    assert read_intent(intent_text(long)) == replace(INTENT, certificate={})


@pytest.mark.parametrize("text", ["", "{}", "[]", "[" * 100_000, '{"action": "none"}'])
def test_a_text_that_tells_of_no_intent_is_none(text: str) -> None:
    assert read_intent(text) is None
