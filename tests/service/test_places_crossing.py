"""Places change on both sides while what each tells the other is on its way.

Whatever crosses, in the end both know the same, which is what is so.
"""

from collections import deque

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from app.front.places import Places as Front
from app.model.ids import NodeName, PodUid
from app.model.plan import GangPlacement, Placement
from app.service.places import Places
from app.wire.filter_by_name import SAMPLE_FLOOR
from app.wire.front import Change, Told
from tests.service.rig import Rig

NODES = ("n0", "n1", "n2")
NAMES = ("u", "v", "w", "x")
OTHERS = [f"other-{number}" for number in range(SAMPLE_FLOOR)]

PODS = st.sampled_from(NAMES)
SOME = st.sets(st.sampled_from(NODES), min_size=1, max_size=2)


def uid_of(name: str) -> PodUid:
    return PodUid(f"uid-{name}")


class Crossing(RuleBasedStateMachine):
    """An extender with its cache, a front, and a socket each way."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(by=lambda: 0.0)
        self.rig.planning.deciding.set()
        self.places = Places(
            cache=self.rig.cache,
            planning=self.rig.planning,
            limits=self.rig.limits,
            news=lambda: None,
        )
        self.changes: deque[Change] = deque()
        self.told: deque[Told] = deque()
        self.front = Front(self.told.append)

    @initialize()
    def begin(self) -> None:
        self.rig.node(*NODES, cpu=2000)
        for name in NAMES:
            self.rig.pod(name)

    # --- what changes ----------------------------------------------------------------------------

    @rule(name=PODS, node=st.sampled_from(NODES))
    def promise(self, name: str, node: str) -> None:
        member = self.rig.member(name)
        placement = Placement(member.task, NodeName(node))
        self.rig.cache.promise(GangPlacement(member.group, (placement,), whole=True), now=0.0)

    @rule(name=PODS, node=st.sampled_from(NODES))
    def move(self, name: str, node: str) -> None:
        self.rig.cache.move(uid_of(name), NodeName(node), now=0.0)

    @rule(name=PODS)
    def withdraw(self, name: str) -> None:
        self.rig.cache.withdraw(uid_of(name), now=0.0)

    @rule(name=PODS)
    def assume(self, name: str) -> None:
        self.rig.cache.assume(uid_of(name), now=0.0)

    @rule(name=PODS, offered=SOME)
    def ask(self, name: str, offered: set[str]) -> None:
        pod = {"metadata": {"uid": uid_of(name)}, "spec": {}}
        asked = {"Pod": pod, "NodeNames": [*sorted(offered), *OTHERS]}
        self.front.answer(msgspec.json.encode(asked))

    # --- what is told ----------------------------------------------------------------------------

    @rule()
    def turn(self) -> None:
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

    def teardown(self) -> None:
        self.turn()
        while self.changes or self.told:
            while self.told:
                self.hear()
            self.turn()
            while self.changes:
                self.learn()
        place = self.places._place
        so = {uid: place(uid) for uid in map(uid_of, NAMES) if place(uid) is not None}
        assert self.front._of == so
        assert self.places.known().given == so


TestCrossing = Crossing.TestCase
