"""What a process that answers with places is told: what Filter would answer, and no more."""

from dataclasses import replace
from typing import Any

import pytest

from app.model.ids import NodeName, PodUid
from app.model.shape import Toleration
from app.service.calls.filtering import Chosen
from app.service.calls.front_reservations import KINDS_KEPT, FrontReservations
from app.service.limits import Limits, PlacementHint
from app.wire.front import PlaceChanges, PodPlace, Told
from tests.builders import ALONE, make_shape
from tests.service.replicas import lead, replica
from tests.service.rig import Rig
from tests.service.virtual_time import advance

REPELLING = make_shape(cpu=1, pod_anti_affinity=(ALONE,))


class Front:
    """Knows what it was told."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.news = 0
        self.of: dict[PodUid, PodPlace] = {}
        self.places = FrontReservations(
            cache=rig.cache,
            cycle=rig.planning.cycle,
            leadership=rig.planning.leadership,
            limits=rig.limits,
            news=self._news,
        )

    def _news(self) -> None:
        self.news += 1

    def follow(self) -> dict[PodUid, NodeName]:
        """Whose places it knows by now."""
        if self.news:
            self.news = 0
            change = self.places.take() or PlaceChanges()
            self.of.update(change.given)
            for uid in change.lost:
                del self.of[uid]
        assert self.places.known().given == self.of
        return {uid: place.node for uid, place in self.of.items()}

    def kinds(self, *names: str) -> list[int]:
        """As what it knows these pods."""
        self.follow()
        return [self.of[PodUid(f"uid-{name}")].kind for name in names]

    def names(self) -> set[str]:
        """Pods it can answer for by now, which all get the answer that Filter has."""
        self.follow()
        names = {uid.removeprefix("uid-") for uid in self.of}
        for name in names:
            assert self._rig.filter(name) == Chosen(self.of[PodUid(f"uid-{name}")].node)
        return names


async def test_it_is_told_of_places_when_they_are_given_and_when_they_are_lost() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1", "n2")
    first = rig.gang("g", size=2)
    rig.pod("alone")
    await rig.cycle()
    assert front.names() == {*first, "alone"}
    rig.delete("alone")
    assert front.names() == set(first)
    rig.cache.reservations.release(rig.key("g"), why="a test")
    assert front.names() == set()
    await rig.cycle()
    assert front.names() == set(first)


async def test_a_place_that_moves_is_told_anew() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1", "n2")
    rig.pod("p")
    await rig.cycle()
    assert front.names() == {"p"}
    [other] = {"n1", "n2"} - {rig.place("p")}
    assert rig.cache.reservations.move(PodUid("uid-p"), NodeName(other), now=0.0)
    assert front.names() == {"p"}
    assert front.of[PodUid("uid-p")].node == other


async def test_members_that_change_places_are_told_anew() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1", "n2", cpu=1000)
    names = rig.gang("g", size=2)
    await rig.cycle()
    before = front.follow()
    one, other = (PodUid(f"uid-{name}") for name in names)
    assert rig.cache.reservations.exchange(one, [before[other]], now=0.0)
    assert front.follow() == {one: before[other], other: before[one]}


async def test_equal_pods_of_whatever_group_are_of_one_kind() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    names = [*rig.gang("g", size=2), *rig.gang("h", size=1), "alone"]
    rig.pod("alone")
    rig.pod("small", shape=make_shape(cpu=1))
    await rig.cycle()
    kinds = front.kinds(*names)
    assert len(set(kinds)) == 1
    assert 0 not in kinds
    assert front.kinds("small") not in ([0], kinds[:1])


async def test_where_a_rule_says_who_may_be_beside_whom_only_members_of_one_gang_are_alike() -> (
    None
):
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    rig.pod("theirs", node="n1", scheduler="default-scheduler", shape=REPELLING)
    one, other = (rig.gang(name, size=2) for name in "gh")
    await rig.cycle()
    mine, theirs = (set(front.kinds(*names)) for names in (one, other))
    assert len(mine) == len(theirs) == 1
    assert not mine & theirs
    assert 0 not in mine | theirs


async def test_who_is_alike_changes_with_the_first_such_rule_and_with_the_last() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    one, other = (rig.gang(name, size=2) for name in "gh")
    await rig.cycle()
    assert len(set(front.kinds(*one, *other))) == 1
    rig.pod("theirs", node="n1", scheduler="default-scheduler", shape=REPELLING)
    await rig.cycle()
    assert not set(front.kinds(*one)) & set(front.kinds(*other))
    rig.delete("theirs")
    await rig.cycle()
    assert len(set(front.kinds(*one, *other))) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"pinned": NodeName("n1")},
        {"nominated": NodeName("n1")},
        {"gated": True},
        {"shape": REPELLING},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_who_may_not_go_anywhere_keeps_its_place(fields: dict[str, Any]) -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    names = rig.gang("g", size=2, **fields)
    await rig.cycle()
    assert front.kinds(*names) == [0, 0]


async def test_whoever_was_told_its_place_keeps_it() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    names = rig.gang("g", size=3)
    await rig.cycle()
    assert 0 not in front.kinds(*names)
    rig.filter("g-0")
    call = rig.bind("g-1")
    await advance(0.1)
    assert front.kinds("g-0", "g-1") == [0, 0]
    assert front.kinds("g-2") != [0]
    call.hang_up()
    await call.task


async def test_a_pod_that_may_go_elsewhere_now_is_of_another_kind() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    names = rig.gang("g", size=2)
    await rig.cycle()
    assert len(set(front.kinds(*names))) == 1
    pod = rig.api.pods["default/g-0"]
    tolerating = replace(pod.shape, tolerations=(Toleration("gpu", exists=True),))
    rig.store(replace(pod, shape=tolerating))
    kinds = front.kinds(*names)
    assert len(set(kinds)) == 2
    assert 0 not in kinds


async def test_a_pod_whose_gate_is_open_may_change_its_place() -> None:
    rig = Rig(Limits(hint=PlacementHint.GUIDE))
    front = Front(rig)
    rig.node("n1")
    names = rig.gang("g", size=2, gated=True)
    await rig.cycle()
    assert front.kinds(*names) == [0, 0]
    rig.store(*(replace(rig.api.pods[f"default/{name}"], gates=()) for name in names))
    kinds = front.kinds(*names)
    assert len(set(kinds)) == 1
    assert 0 not in kinds


async def test_whoever_is_given_the_same_place_anew_may_change_it() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    names = rig.gang("g", size=2)
    await rig.cycle()
    rig.filter("g-0")
    assert front.kinds("g-0") == [0]
    assert rig.cache.reservations.move(PodUid("uid-g-0"), NodeName("n1"), now=0.0)
    kinds = front.kinds(*names)
    assert len(set(kinds)) == 1
    assert 0 not in kinds


async def test_kinds_are_forgotten_when_there_are_many() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1", cpu=8_000_000, pods=2 * KINDS_KEPT)
    for number in range(KINDS_KEPT + 1):
        rig.pod(f"p{number}", shape=make_shape(cpu=number % 3, memory=number))
    await rig.cycle()
    names = [f"p{number}" for number in range(KINDS_KEPT + 1)]
    kinds = front.kinds(*names)
    assert len(set(kinds)) == len(kinds)
    assert len(front.places._kinds) <= KINDS_KEPT


async def test_bound_pods_are_forgotten_after_a_cycle() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    rig.pod("p")
    await rig.cycle()
    assert front.names() == {"p"}
    call = rig.bind("p")
    await call.task
    rig.show_bindings()
    await rig.cycle()
    assert front.names() == set()


async def test_pods_that_come_to_their_nodes_are_no_news_by_themselves() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    rig.pod("p")
    await rig.cycle()
    assert front.names() == {"p"}
    front.follow()
    await rig.bind("p").task
    rig.show_bindings()
    rig.pod("theirs", node="n1", scheduler="default-scheduler")
    assert front.news == 0
    rig.pod("another")
    await rig.cycle()
    assert front.names() == {"another"}


async def test_slots_and_pods_of_others_are_not_for_it() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1")
    rig.pod("theirs", node="n1", scheduler="default-scheduler")
    await rig.cycle()
    assert front.names() == set()


async def test_single_pods_that_are_only_guided_have_more_than_one_answer() -> None:
    rig = Rig(Limits(hint=PlacementHint.GUIDE))
    front = Front(rig)
    rig.node("n1")
    rig.pod("p")
    names = rig.gang("g", size=2)
    await rig.cycle()
    assert front.names() == set(names)


async def test_who_decides_nothing_tells_nothing() -> None:
    rig = replica()
    front = Front(rig)
    lead(rig, "host-a")
    rig.pod("p")
    await rig.cycle()
    assert front.names() == {"p"}
    lead(rig, "host-b")
    assert front.names() == set()
    await advance(60)
    lead(rig, "host-a")
    rig.planning.leadership.begin()
    await rig.cycle()
    assert front.names() == {"p"}


async def test_pods_that_come_and_go_leave_nothing_behind_with_who_stands_by() -> None:
    rig = replica()
    front = Front(rig)
    lead(rig, "host-b")
    rig.pod("ours", node="n1")
    rig.pod("theirs", node="n1", scheduler="default-scheduler")
    rig.delete("ours", "theirs")
    assert front.news == 0
    assert front.places.take() is None
    assert not front.places._noted


async def test_a_pod_that_was_told_its_place_is_as_if_it_had_asked_here() -> None:
    asked, told = Rig(), Rig()
    for rig in (asked, told):
        rig.node("n1")
        rig.pod("p")
        await rig.cycle()
        await advance(1)
    asked.filter("p")
    told.parts.filtering.was_told(PodUid("uid-p"), NodeName("n1"))
    for rig in (asked, told):
        member = rig.member("p")
        assert (member.told, member.chosen, member.refused) == (True, "n1", False)
        assert member.since == member.chosen_at == rig.planning.expiry.asked_at
        assert rig.parts.filtering.waiting() == 0


async def test_a_pod_that_was_told_the_place_of_another_has_it() -> None:
    rig = Rig()
    front = Front(rig)
    rig.node("n1", "n2", cpu=1000)
    rig.pod("p")
    rig.pod("q")
    await rig.cycle()
    front.follow()
    mine, theirs = rig.place("p"), rig.place("q")
    told = Told(PodUid("uid-p"), NodeName(theirs), 0.0, 1, PodUid("uid-q"))
    front.places.was_told(told)
    rig.parts.filtering.was_told(told.uid, told.node, other=told.other)
    assert (rig.place("p"), rig.place("q")) == (theirs, mine)
    assert (rig.member("p").told, rig.member("q").told) == (True, False)
    assert front.places.take() is None, "it knows"
    call = rig.bind("p")
    await call.task
    assert call.answer == ""


async def test_a_place_that_was_told_as_somebody_elses_is_seen_to_by_bind() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    rig.pod("p")
    rig.pod("q")
    await rig.cycle()
    mine, theirs = rig.place("p"), rig.place("q")
    rig.filter("q", [theirs])
    uid, other = PodUid("uid-p"), PodUid("uid-q")
    rig.parts.filtering.was_told(uid, NodeName(theirs), other=other)
    assert (rig.place("p"), rig.place("q")) == (mine, theirs), "q was told already"
    call = rig.bind("p", node=theirs)
    await call.task
    assert call.answer == "", "there is room besides"
    assert rig.api.bound() == {"p": theirs}


async def test_what_was_told_too_late_changes_nothing() -> None:
    rig = Rig()
    rig.node("n1", "n2")
    rig.pod("p")
    await rig.cycle()
    node = rig.place("p")
    call = rig.bind("p")
    await call.task
    rig.parts.filtering.was_told(PodUid("uid-p"), NodeName(node))
    assert not rig.member("p").chosen, "it came to Bind already"
    rig.parts.filtering.was_told(PodUid("uid-nobody"), NodeName("n1"))


async def test_who_was_told_a_place_that_is_lost_still_waits_here() -> None:
    rig = Rig()
    rig.node("n1", "n2")
    rig.pod("p")
    await rig.cycle()
    node = rig.place("p")
    rig.cache.reservations.withdraw(PodUid("uid-p"), now=0.0)
    rig.parts.filtering.was_told(PodUid("uid-p"), NodeName(node))
    member = rig.member("p")
    assert (member.node, member.told, member.chosen) == ("", False, node)
