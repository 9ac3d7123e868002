"""What a process that answers with places is told: what Filter would answer, and no more."""

from app.model.ids import NodeName, PodUid
from app.service.filtering import Chosen
from app.service.limits import Hint, Limits
from app.service.places import Places
from tests.service.replicas import lead, replica
from tests.service.rig import Rig
from tests.service.virtual_time import advance, run


class Front:
    """Knows what it was told."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.news = 0
        self.of: dict[PodUid, NodeName] = {}
        self.places = Places(
            cache=rig.cache, planning=rig.planning, limits=rig.limits, news=self._news
        )

    def _news(self) -> None:
        self.news += 1

    def follow(self) -> dict[PodUid, NodeName]:
        """What it knows by now."""
        if self.news:
            self.news = 0
            given, lost = self.places.take()
            self.of.update(given)
            for uid in lost:
                del self.of[uid]
        assert self.places.known() == self.of
        return dict(self.of)

    def names(self) -> set[str]:
        """Pods it can answer for by now, which all get the answer that Filter has."""
        self.follow()
        names = {uid.removeprefix("uid-") for uid in self.of}
        for name in names:
            assert self._rig.filter(name) == Chosen(self.of[PodUid(f"uid-{name}")])
        return names


def test_it_is_told_of_places_when_they_are_given_and_when_they_are_lost() -> None:
    async def scenario() -> None:
        rig = Rig()
        front = Front(rig)
        rig.node("n1", "n2")
        first = rig.gang("g", size=2)
        rig.pod("alone")
        await rig.cycle()
        assert front.names() == {*first, "alone"}
        rig.delete("alone")
        assert front.names() == set(first)
        rig.cache.release(rig.key("g"), why="a test")
        assert front.names() == set()
        await rig.cycle()
        assert front.names() == set(first)

    run(scenario())


def test_a_place_that_moves_is_told_anew() -> None:
    async def scenario() -> None:
        rig = Rig()
        front = Front(rig)
        rig.node("n1", "n2")
        rig.pod("p")
        await rig.cycle()
        assert front.names() == {"p"}
        [other] = {"n1", "n2"} - {rig.place("p")}
        assert rig.cache.move(PodUid("uid-p"), NodeName(other), now=0.0)
        assert front.names() == {"p"}
        assert front.of[PodUid("uid-p")] == other

    run(scenario())


def test_members_that_change_places_are_told_anew() -> None:
    async def scenario() -> None:
        rig = Rig()
        front = Front(rig)
        rig.node("n1", "n2", cpu=1000)
        names = rig.gang("g", size=2)
        await rig.cycle()
        before = front.follow()
        one, other = (PodUid(f"uid-{name}") for name in names)
        assert rig.cache.exchange(one, [before[other]], now=0.0)
        assert front.follow() == {one: before[other], other: before[one]}

    run(scenario())


def test_bound_pods_are_forgotten_after_a_cycle() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_pods_that_come_to_their_nodes_are_no_news_by_themselves() -> None:
    async def scenario() -> None:
        rig = Rig()
        front = Front(rig)
        rig.node("n1")
        rig.pod("p")
        await rig.cycle()
        assert front.names() == {"p"}
        await rig.bind("p").task
        rig.show_bindings()
        rig.pod("theirs", node="n1", scheduler="default-scheduler")
        assert front.news == 0
        rig.pod("another")
        await rig.cycle()
        assert front.names() == {"another"}

    run(scenario())


def test_slots_and_pods_of_others_are_not_for_it() -> None:
    async def scenario() -> None:
        rig = Rig()
        front = Front(rig)
        rig.node("n1")
        rig.pod("theirs", node="n1", scheduler="default-scheduler")
        await rig.cycle()
        assert front.names() == set()

    run(scenario())


def test_pods_alone_that_are_only_guided_have_more_than_one_answer() -> None:
    async def scenario() -> None:
        rig = Rig(Limits(hint=Hint.GUIDE))
        front = Front(rig)
        rig.node("n1")
        rig.pod("p")
        names = rig.gang("g", size=2)
        await rig.cycle()
        assert front.names() == set(names)

    run(scenario())


def test_who_decides_nothing_tells_nothing() -> None:
    async def scenario() -> None:
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
        rig.planning._lead()
        await rig.cycle()
        assert front.names() == {"p"}

    run(scenario())


def test_a_pod_that_was_told_its_place_is_as_if_it_had_asked_here() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_what_was_told_too_late_changes_nothing() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_who_was_told_a_place_that_is_lost_still_waits_here() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.node("n1", "n2")
        rig.pod("p")
        await rig.cycle()
        node = rig.place("p")
        rig.cache.withdraw(PodUid("uid-p"), now=0.0)
        rig.parts.filtering.was_told(PodUid("uid-p"), NodeName(node))
        member = rig.member("p")
        assert (member.node, member.told, member.chosen) == ("", False, node)

    run(scenario())
