"""Intents of evictions: what is stored is what is read."""

from dataclasses import replace

import pytest

from app.model.eviction import EvictionAction, IntendedPlace, Intent, VictimPod
from app.model.exchange import NO_EXCHANGE, Exchange
from app.model.ids import NodeName, PodUid, QueueName, group_key
from app.wire.intents import LONGEST, read_intents, texts_of

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


LONG = replace(INTENT, places=(), victims=tuple(replace(VICTIM, rule="é" * LONGEST) for _ in "ab"))


def stored(intent: Intent) -> dict[str, Intent]:
    """What is read of the texts that are stored of ``intent``."""
    return {name: each.intent for name, each in read_intents(texts_of("i", intent)).items()}


def test_an_intent_is_read_as_it_was_written() -> None:
    assert stored(INTENT) == {"i": INTENT}


def test_equal_intents_have_equal_texts() -> None:
    inside = INTENT.places[2].exchange.inside
    assert inside is not None
    again = replace(INTENT.places[2], exchange=Exchange(frozenset(sorted(inside, reverse=True))))
    same = replace(INTENT, places=(*INTENT.places[:2], again))
    assert texts_of("i", same) == texts_of("i", INTENT)


def test_a_certificate_that_is_too_long_is_left_out() -> None:
    long = replace(INTENT, certificate={"text": "x" * LONGEST})
    assert stored(long) == {"i": replace(INTENT, certificate={})}


def test_a_long_intent_is_stored_in_parts_of_which_the_first_is_the_last() -> None:
    texts = texts_of("i", LONG)
    assert len(texts) == 5
    assert all(len(text.encode()) <= LONGEST + 200 for text in texts.values())
    assert list(texts)[-1] == "i"
    [read] = read_intents(texts).values()
    assert read.intent == replace(LONG, certificate={})
    assert read.names == tuple(texts)


@pytest.mark.parametrize("lost", range(5))
def test_an_intent_that_lost_a_part_is_none(lost: int) -> None:
    texts = texts_of("i", LONG)
    del texts[list(texts)[lost]]
    assert read_intents(texts) == {}


def test_the_parts_of_another_intent_of_that_name_are_not_taken_for_its_own() -> None:
    before, now = texts_of("i", LONG), texts_of("i", replace(LONG, decided=13.5))
    assert set(before) & set(now) == {"i"}
    [read] = read_intents(before | now).values()
    assert read.intent.decided == 13.5


@pytest.mark.parametrize("text", ["", "{}", "[]", "\n", "[" * 100_000, '{"action": "none"}'])
def test_a_text_that_tells_of_no_intent_is_none(text: str) -> None:
    assert read_intents({"i": text}) == {}
