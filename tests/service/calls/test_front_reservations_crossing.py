"""Reservations change on both sides while what each tells the other is on its way.

Whatever crosses, in the end both know the same, which is what is so, and no place has left the
class that it was given.
"""

from collections import defaultdict, deque
from dataclasses import replace

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.front.places import Places as Front
from app.model.exchange import ANY_EQUAL, NO_EXCHANGE, Exchange
from app.model.ids import NodeName, PodUid
from app.model.plan import GangPlacement, Placement
from app.model.pod import EXCHANGE, Pod
from app.model.shape import Toleration
from app.service.calls.front_reservations import FrontReservations
from app.wire.filter_by_name import SAMPLE_FLOOR
from app.wire.front import PlaceChanges, Told
from tests.builders import ALONE, make_pod, make_shape
from tests.scale import examples
from tests.service.rig import Rig

NODES = ("n0", "n1", "n2")
NAMES = ("u", "v", "w", "x")
GROUPED = ("u", "v")
BEARING = (Toleration("gpu", exists=True),)
THEIRS = make_pod(
    "theirs",
    node=NodeName("n0"),
    scheduler="default-scheduler",
    shape=make_shape(pod_anti_affinity=(ALONE,)),
)
OTHERS = [f"other-{number}" for number in range(SAMPLE_FLOOR)]

PODS = st.sampled_from(NAMES)
CLASSES = st.sampled_from([ANY_EQUAL, ANY_EQUAL, ANY_EQUAL.within("east"), NO_EXCHANGE])
SOME = st.sets(st.sampled_from(NODES), min_size=1, max_size=2)


def uid_of(name: str) -> PodUid:
    return PodUid(f"uid-{name}")


class Crossing(RuleBasedStateMachine):
    """An extender with its cache, a front, and a socket each way."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(by=lambda: 0.0)
        self.rig.planning.leadership.deciding.set()
        self.places = FrontReservations(
            cache=self.rig.cache,
            cycle=self.rig.planning.cycle,
            leadership=self.rig.planning.leadership,
            limits=self.rig.limits,
            news=self.news,
        )
        self.is_due = False
        self.changes: deque[PlaceChanges] = deque()
        self.told: deque[Told] = deque()
        self.front = Front(self.told.append)
        self.rig.planning.publisher.told.append(self.planned)
        self.given: dict[PodUid, Exchange] = {}
        """The class that each place was given."""
        self.nodes_of: defaultdict[Exchange, set[NodeName]] = defaultdict(set)
        """Where places of each class are."""
        self.kept: dict[PodUid, NodeName] = {}
        """Where pods are whose places are exchanged with no other."""

    @initialize()
    def begin(self) -> None:
        self.rig.node(*NODES, cpu=2000)
        self.rig.group("g", minimum=2)
        for name in NAMES:
            self.make(name)

    def make(self, name: str) -> None:
        self.rig.pod(name, group="g" if name in GROUPED else "")

    def pod(self, name: str) -> Pod | None:
        return self.rig.api.pods.get(f"default/{name}")

    def news(self) -> None:
        self.is_due = True

    # --- what changes ----------------------------------------------------------------------------

    @rule(name=PODS, node=st.sampled_from(NODES), exchange=CLASSES)
    def reserve(self, name: str, node: str, exchange: Exchange) -> None:
        if self.pod(name) is None:
            return
        member = self.rig.member(name)
        placement = Placement(member.task, NodeName(node), exchange)
        gang = GangPlacement(member.group, (placement,), whole=True)
        if self.rig.cache.reservations.reserve(gang, now=0.0):
            self.planned(gang)

    def planned(self, gang: GangPlacement) -> None:
        """Members have other places than before, of these classes."""
        for placement in gang.placements:
            uid = placement.task.uid
            self.given[uid] = placement.exchange
            self.nodes_of[placement.exchange].add(placement.node)
            self.kept.pop(uid, None)

    @rule(name=PODS, node=st.sampled_from(NODES))
    def move(self, name: str, node: str) -> None:
        self.rig.cache.reservations.move(uid_of(name), NodeName(node), now=0.0)

    @rule(name=PODS, other=PODS, offered=SOME)
    def exchange(self, name: str, other: str, offered: set[str]) -> None:
        reservations = self.rig.cache.reservations
        reservations.exchange(uid_of(name), {NodeName(node) for node in offered}, now=0.0)
        reservations.change_places(uid_of(name), uid_of(other), now=0.0)

    @rule(name=PODS)
    def withdraw(self, name: str) -> None:
        self.rig.cache.reservations.withdraw(uid_of(name), now=0.0)

    @rule(name=PODS)
    def assume(self, name: str) -> None:
        self.rig.cache.bind_steps.assume(uid_of(name), now=0.0)

    @rule(name=PODS, offered=SOME)
    def ask(self, name: str, offered: set[str]) -> None:
        pod = {"metadata": {"uid": uid_of(name)}, "spec": {}}
        asked = {"Pod": pod, "NodeNames": [*sorted(offered), *OTHERS]}
        self.front.answer(msgspec.json.encode(asked))

    @rule(name=PODS)
    def come_or_go(self, name: str) -> None:
        if self.pod(name) is None:
            self.make(name)
        else:
            self.rig.delete(name)

    @rule(
        name=PODS, tolerations=st.sampled_from([(), BEARING]), nominated=st.sampled_from(["", "n0"])
    )
    def say_something_else(
        self, name: str, tolerations: tuple[Toleration, ...], nominated: str
    ) -> None:
        pod = self.pod(name)
        if pod is not None:
            shape = replace(pod.shape, tolerations=tolerations)
            self.rig.store(replace(pod, shape=shape, nominated=NodeName(nominated)))

    @rule(name=PODS, settled=st.booleans())
    def ask_to_keep_its_place(self, name: str, *, settled: bool) -> None:
        pod = self.pod(name)
        if pod is not None:
            others = {key: value for key, value in pod.annotations.items() if key != EXCHANGE}
            asked = {EXCHANGE: "false"} if settled else {}
            self.rig.store(replace(pod, annotations=others | asked))

    @invariant()
    def places_stay_in_their_class(self) -> None:
        """Without the planner a place is exchanged inside its class only."""
        for uid in map(uid_of, NAMES):
            member = self.rig.cache.members.get(uid)
            if member is None or not member.node:
                self.given.pop(uid, None)
                self.kept.pop(uid, None)
                continue
            exchange = self.given.get(uid, ANY_EQUAL)
            assert member.exchange == exchange
            assert exchange.is_open or member.node in self.nodes_of[exchange]
            if member.exchange_class != NO_EXCHANGE:
                self.kept.pop(uid, None)
                continue
            assert self.kept.setdefault(uid, member.node) == member.node

    @rule()
    def rule_or_none(self) -> None:
        """Somebody says who may be beside it, or goes."""
        if self.pod(THEIRS.name) is None:
            self.rig.store(THEIRS)
        else:
            self.rig.delete(THEIRS.name)
        self.news()  # it comes with the next cycle

    @rule(node=st.sampled_from(NODES), closed=st.booleans())
    def cordon(self, node: str, *, closed: bool) -> None:
        self.rig.node(node, cpu=2000, unschedulable=closed)

    @rule(name=PODS, offered=SOME)
    def ask_the_extender(self, name: str, offered: set[str]) -> None:
        if self.pod(name) is not None:
            self.rig.filter(name, [*sorted(offered), *OTHERS])

    # --- what is told ----------------------------------------------------------------------------

    @rule()
    def turn(self) -> None:
        if not self.is_due:
            return
        self.is_due = False
        change = self.places.take()
        if change is not None:
            self.changes.append(change)

    @precondition(lambda self: self.changes)
    @rule()
    def learn(self) -> None:
        self.front.learn(self.changes.popleft())

    @precondition(lambda self: self.told)
    @rule()
    def hear(self) -> None:
        told = self.told.popleft()
        self.places.was_told(told)
        self.rig.parts.filtering.was_told(told.uid, told.node, other=told.other)

    def settle(self) -> None:
        self.turn()
        while self.changes or self.told:
            while self.told:
                self.hear()
            self.turn()
            while self.changes:
                self.learn()

    @rule(name=PODS, offered=SOME)
    def ask_in_peace(self, name: str, offered: set[str]) -> None:
        """What is told while nothing crosses it is so."""
        self.settle()
        self.ask(name, offered)
        told = list(self.told)
        self.settle()
        for each in told:
            member = self.rig.cache.members[each.uid]
            assert (member.node, member.told) == (each.node, True)

    def teardown(self) -> None:
        self.settle()
        place = self.places._place
        so = {uid: place(uid) for uid in map(uid_of, NAMES) if place(uid) is not None}
        assert self.front._of == so
        assert self.places.known().given == so


TestCrossing = Crossing.TestCase
TestCrossing.settings = examples(80)
