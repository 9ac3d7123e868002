"""Pods of others take room at any moment, while Bindings fail, are slow or lose their answers.

Whenever a Binding leaves there is room for it beside all that are bound or may be, and of pods that
stand alone no more stop than must.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.model.ids import NodeName
from app.model.pod import Pod
from app.service.limits import Limits
from tests.builders import make_shape
from tests.scale import examples
from tests.service.rig import FAILING, Rig
from tests.service.virtual_time import advance

NODES = ("n0", "n1")
CPU = 4000
LONG = 12.0


@dataclass(frozen=True)
class Fate:
    """What comes of one try: it takes so long, and arrives or not, and is answered or not."""

    seconds: float
    arrives: bool
    answered: bool


@dataclass(frozen=True)
class Shortage:
    """After so long a pod of others is on the node."""

    after_s: float
    node: str
    cpu: int


WELL = Fate(0.0, arrives=True, answered=True)
FATES = st.builds(
    Fate, st.sampled_from([0.0, 0.0, 0.08, 0.5]), arrives=st.booleans(), answered=st.booleans()
)
SHORTAGES = st.lists(
    st.builds(
        Shortage,
        st.sampled_from([0.0, 0.03, 0.1, 0.4, 1.0]),
        st.sampled_from(NODES),
        st.sampled_from([1000, 2000, 3000]),
    ),
    min_size=1,
    max_size=3,
)
TRIES = st.lists(st.lists(FATES, max_size=3), min_size=8, max_size=8)
IN_FLIGHT = st.sampled_from([1, 3, 64])


class Watched:
    """Answers Bindings as is their fate, and looks at the room when they come."""

    def __init__(self, rig: Rig, fates: Mapping[str, Sequence[Fate]]) -> None:
        self._rig, self._fates = rig, {name: list(of) for name, of in fates.items()}
        self._on_their_way: dict[str, str] = {}
        self._plain = rig.api.bind
        rig.api.bind = self.bind  # type: ignore[method-assign]

    async def bind(
        self, namespace: str, name: str, *, uid: str, node: str, annotations: Mapping[str, str]
    ) -> None:
        self._on_their_way[name] = node
        self._look(node)
        fate = self._fates[name].pop(0) if self._fates[name] else WELL
        try:
            await asyncio.sleep(fate.seconds)
            if fate.arrives:
                await self._plain(namespace, name, uid=uid, node=node, annotations=annotations)
        finally:
            del self._on_their_way[name]
        if not (fate.arrives and fate.answered):
            raise FAILING

    def _look(self, node: str) -> None:
        pods = self._rig.api.pods.values()
        there = {pod.name for pod in pods if pod.node == node}
        there |= {name for name, target in self._on_their_way.items() if target == node}
        assert sum(cpu_of(pod) for pod in pods if pod.name in there) <= CPU


def cpu_of(pod: Pod) -> int:
    return dict(pod.shape.requests)["cpu"]


async def happen(rig: Rig, shortages: Sequence[Shortage]) -> None:
    passed = 0.0
    for number, shortage in enumerate(sorted(shortages, key=lambda each: each.after_s)):
        await asyncio.sleep(shortage.after_s - passed)
        passed = shortage.after_s
        shape = make_shape(cpu=shortage.cpu)
        rig.pod(f"x{number}", scheduler="other", node=NodeName(shortage.node), shape=shape)


async def bind_all(
    rig: Rig,
    names: Sequence[str],
    tries: Sequence[Sequence[Fate]],
    shortages: Sequence[Shortage],
) -> Mapping[str, int]:
    """Call Bind for all; how many were to go to each node."""
    await rig.cycle()
    Watched(rig, dict(zip(names, tries, strict=True)))
    planned = Counter(rig.place(name) for name in names)
    calls = [rig.bind(name) for name in names]
    await asyncio.gather(happen(rig, shortages), asyncio.sleep(LONG))
    await advance(0)
    assert all(call.done and call.answer is not None for call in calls)
    rig.show_bindings()
    assert (await rig.parts.audit()).drifts == ()
    return planned


@examples(60)
@given(tries=TRIES, shortages=SHORTAGES, in_flight=IN_FLIGHT)
async def test_single_pods_stop_only_where_they_must(
    tries: list[list[Fate]], shortages: list[Shortage], in_flight: int
) -> None:
    rig = Rig(Limits(bindings_in_flight=in_flight))
    rig.node(*NODES, cpu=CPU)
    names = [f"p{number}" for number in range(8)]
    for name in names:
        rig.pod(name)
    planned = await bind_all(rig, names, tries, shortages)
    bound = Counter(rig.api.bound().values())
    for node in NODES:
        taken = sum(each.cpu for each in shortages if each.node == node)
        assert bound[node] >= min(planned[node], (CPU - taken) // 1000)


@examples(60)
@given(
    tries=TRIES,
    shortages=SHORTAGES,
    in_flight=IN_FLIGHT,
    minimums=st.lists(st.integers(1, 4), min_size=2, max_size=2),
)
async def test_gangs_never_overfill_a_node(
    tries: list[list[Fate]], shortages: list[Shortage], in_flight: int, minimums: list[int]
) -> None:
    rig = Rig(Limits(bindings_in_flight=in_flight))
    rig.node(*NODES, cpu=CPU)
    names = [
        name
        for gang, minimum in zip("ab", minimums, strict=True)
        for name in rig.gang(gang, size=4, minimum=minimum)
    ]
    await bind_all(rig, names, tries, shortages)
