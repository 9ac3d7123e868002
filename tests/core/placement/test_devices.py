"""Which devices the containers of a pod get."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.placement.devices import (
    Given,
    Lacking,
    OfNode,
    Share,
    assign,
    total_score,
)
from app.model.devices import (
    UNUSED,
    Ask,
    DeviceKind,
    DeviceNeed,
    DeviceOrder,
    Geometry,
    Instance,
    Slot,
    Use,
    Wanted,
)
from tests.scale import examples

GIB = 1024
V100 = DeviceKind("NVIDIA-Tesla V100", 32 * GIB, 10)
A100 = DeviceKind("NVIDIA-A100", 80 * GIB, 10)
SEVENS = Geometry("group1", (Instance("1g.10gb", 10 * GIB, 7),))
THREES = Geometry("group2", (Instance("2g.20gb", 20 * GIB, 3), Instance("1g.10gb", 10 * GIB, 1)))
MIG = DeviceKind("NVIDIA-A100", 80 * GIB, 7, mode="mig", geometries=(SEVENS, THREES))


def node(*devices: tuple[DeviceKind, Use], usable: tuple[bool, ...] = ()) -> OfNode:
    kinds, used = zip(*devices, strict=True)
    return OfNode(kinds, used, usable or (True,) * len(devices))


def need(*asks: Ask, **more: object) -> DeviceNeed:
    return DeviceNeed("hamivgpu", asks, **more)  # type: ignore[arg-type]


def placed(found: Given | Lacking) -> list[list[int]]:
    assert isinstance(found, Given), found
    return [[share.at for share in shares] for shares in found.containers]


def refused(found: Given | Lacking) -> Lacking:
    assert isinstance(found, Lacking), found
    return found


def taken(memory: int, *, sharers: int = 1, cores: int = 0) -> Use:
    return Use(sharers, memory * GIB, cores)


EMPTY = (V100, UNUSED)


@pytest.mark.parametrize(
    ("order", "at"),
    [(DeviceOrder.LAST, 3), (DeviceOrder.BINPACK, 1), (DeviceOrder.SPREAD, 0)],
)
def test_the_policy_says_which_device_is_taken(order: DeviceOrder, at: int) -> None:
    on = node(EMPTY, (V100, taken(8)), (V100, taken(4)), EMPTY)
    assert placed(assign(on, need(Ask(1, 4 * GIB)), order)) == [[at]]


def test_a_container_gets_as_many_devices_as_it_asks_for() -> None:
    on = node(EMPTY, (V100, taken(30)), EMPTY)
    found = assign(on, need(Ask(2, 4 * GIB, cores=50)), DeviceOrder.SPREAD)
    assert placed(found) == [[0, 2]]
    assert isinstance(found, Given)
    assert found.charges == (Share(0, Use(1, 4 * GIB, 50)), Share(2, Use(1, 4 * GIB, 50)))


@pytest.mark.parametrize(
    ("ask", "used", "does"),
    [
        (Ask(1, 8 * GIB), taken(24), True),
        (Ask(1, 8 * GIB + 1), taken(24), False),
        (Ask(1, percent=50), taken(16), True),
        (Ask(1, percent=51), taken(16), False),
        (Ask(1, cores=40), taken(1, cores=60), True),
        (Ask(1, cores=41), taken(1, cores=60), False),
        (Ask(1, cores=100), UNUSED, True),
        (Ask(1, cores=100), taken(0), False),
        (Ask(1, GIB), taken(1, cores=100), False),
        (Ask(1, GIB), taken(1, sharers=9), True),
        (Ask(1, GIB), taken(1, sharers=10), False),
        (Ask(1, whole=True), UNUSED, True),
        (Ask(1, whole=True), taken(0), False),
        (Ask(1, GIB), Use(1, 32 * GIB), False),
        (Ask(1, GIB), Use(1, 40 * GIB), False),
    ],
    ids=str,
)
def test_a_device_that_others_share(ask: Ask, used: Use, does: bool) -> None:
    found = assign(node((V100, used)), need(ask), DeviceOrder.LAST)
    assert isinstance(found, Given) is does


def test_a_refusal_tells_what_is_free_of_the_devices_that_may_be_used() -> None:
    on = node((V100, taken(28)), (V100, taken(30)), (A100, UNUSED))
    wanted = Wanted(types=("V100",))
    found = refused(assign(on, need(Ask(1, 8 * GIB), wanted=wanted), DeviceOrder.LAST))
    assert (found.found, found.memory) == (0, (4 * GIB, 2 * GIB))


@pytest.mark.parametrize(
    ("wanted", "at"),
    [
        (Wanted(), 1),
        (Wanted(types=("V100",)), 0),
        (Wanted(types=("P40", "V100")), 0),
        (Wanted(not_types=("A100",)), 0),
        (Wanted(types=("A100",), not_types=("A100",)), 1),
        (Wanted(types=("P40",)), None),
        (Wanted(mode="mig"), None),
    ],
    ids=str,
)
def test_types_and_modes_that_a_pod_wants(wanted: Wanted, at: int | None) -> None:
    found = assign(node(EMPTY, (A100, UNUSED)), need(Ask(1, GIB), wanted=wanted), DeviceOrder.LAST)
    assert (placed(found) if isinstance(found, Given) else None) == (None if at is None else [[at]])


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        (Wanted(), True),
        (Wanted(ids=("GPU-1",)), True),
        (Wanted(ids=("GPU-2",)), False),
        (Wanted(not_ids=("GPU-1",)), False),
        (Wanted(ids=("GPU-1",), not_ids=("GPU-1",)), False),
    ],
    ids=str,
)
def test_devices_by_their_uuids(wanted: Wanted, takes: bool) -> None:
    assert wanted.takes_id("GPU-1") is takes


def test_devices_that_may_not_be_used_are_left_out() -> None:
    on = node(EMPTY, EMPTY, usable=(True, False))
    assert placed(assign(on, need(Ask(1, GIB)), DeviceOrder.LAST)) == [[0]]


def test_an_init_container_takes_what_its_pod_has_later() -> None:
    on = node(EMPTY, (V100, taken(8)), EMPTY)
    found = assign(on, need(Ask(1, 10 * GIB, init=True), Ask(1, 4 * GIB)), DeviceOrder.BINPACK)
    assert placed(found) == [[1], [1]]
    assert isinstance(found, Given)
    assert found.charges == (Share(1, Use(1, 10 * GIB)),)


def test_a_sidecar_and_a_later_init_container_share_the_moment() -> None:
    sidecar, init = Ask(1, 20 * GIB), Ask(1, 20 * GIB, init=True)
    assert refused(assign(node(EMPTY), need(sidecar, init), DeviceOrder.LAST)).ask == init
    assert placed(assign(node(EMPTY), need(init, sidecar), DeviceOrder.LAST)) == [[0], [0]]


def test_other_devices_are_tried_where_a_later_container_would_get_none() -> None:
    on = node((V100, taken(24)), (V100, taken(16)))
    found = assign(on, need(Ask(1, 8 * GIB), Ask(1, 16 * GIB)), DeviceOrder.LAST)
    assert placed(found) == [[0], [1]]


def test_containers_that_are_to_be_apart_share_no_device() -> None:
    asks = (Ask(1, GIB), Ask(1, GIB))
    assert placed(assign(node(EMPTY, EMPTY), need(*asks, apart=True), DeviceOrder.SPREAD)) == [
        [0],
        [1],
    ]
    assert isinstance(assign(node(EMPTY), need(*asks, apart=True), DeviceOrder.LAST), Lacking)


def test_a_need_with_a_flaw_fits_nowhere() -> None:
    assert isinstance(assign(node(EMPTY), need(Ask(1), flaw="no"), DeviceOrder.LAST), Lacking)


@pytest.mark.parametrize(
    ("memory", "slots", "gets"),
    [
        (5, (), ("group1", 0)),
        (15, (), ("group2", 0)),
        (30, (), None),
        (5, (("group1", 0), ("group1", 2)), ("group1", 1)),
        (5, (("group2", 0),), ("group2", 3)),
        (5, (("group2", 0), ("group2", 3)), ("group2", 1)),
        (15, (("group1", 0),), None),
        (5, tuple(("group2", at) for at in range(4)), None),
    ],
    ids=str,
)
def test_an_instance_of_a_geometry(
    memory: int, slots: tuple[tuple[str, int], ...], gets: tuple[str, int] | None
) -> None:
    used = Use(len(slots), 0, 0, frozenset(Slot(*slot) for slot in slots))
    found = assign(node((MIG, used)), need(Ask(1, memory * GIB)), DeviceOrder.LAST)
    if gets is None:
        assert isinstance(found, Lacking)
        return
    assert isinstance(found, Given)
    [share] = found.containers[0]
    size = MIG.geometries[int(gets[0][-1]) - 1].memory_at(gets[1])
    assert share.use == Use(1, size or 0, 0, frozenset({Slot(*gets)}))


def test_the_geometry_is_chosen_that_serves_all_containers() -> None:
    found = assign(node((MIG, UNUSED)), need(Ask(1, 5 * GIB), Ask(1, 15 * GIB)), DeviceOrder.LAST)
    assert isinstance(found, Given)
    assert found.charges[0].use.slots == {Slot("group2", 3), Slot("group2", 0)}


@pytest.mark.parametrize(
    ("order", "score"),
    [(DeviceOrder.LAST, 0), (DeviceOrder.BINPACK, 50), (DeviceOrder.SPREAD, 100)],
)
def test_scores(order: DeviceOrder, score: float) -> None:
    on = node((V100, taken(8)), EMPTY) if order is DeviceOrder.BINPACK else node(EMPTY)
    wanted = need(Ask(1, 8 * GIB))
    found = assign(on, wanted, order)
    assert isinstance(found, Given)
    assert total_score(on, wanted, found, order) == score


# --- all ways there are ------------------------------------------------------------------------

SMALL = Geometry("a", (Instance("one", 2, 3),))
MIXED = Geometry("b", (Instance("one", 2, 1), Instance("two", 4, 1)))
KINDS = (
    DeviceKind("X", 8, 3),
    DeviceKind("Y", 6, 2),
    DeviceKind("Z", 6, 3, mode="mig", geometries=(SMALL, MIXED)),
)


@st.composite
def uses(draw: st.DrawFn, kind: DeviceKind) -> Use:
    sharers = draw(st.integers(0, kind.sharers))
    if not kind.geometries or not sharers:
        memory = draw(st.integers(0, kind.memory)) if sharers else 0
        return Use(sharers, memory, draw(st.sampled_from((0, 50, 100))) if sharers else 0)
    geometry = draw(st.sampled_from(kind.geometries))
    count = sum(each.number for each in geometry.instances)
    positions = draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=kind.sharers))
    memory = sum(geometry.memory_at(position) or 0 for position in positions)
    slots = frozenset(Slot(geometry.group, position) for position in positions)
    return Use(len(positions), memory, 0, slots)


@st.composite
def nodes(draw: st.DrawFn) -> OfNode:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    return node(*((kind, draw(uses(kind))) for kind in kinds))


ASKS = st.builds(
    Ask,
    st.integers(1, 2),
    st.integers(0, 6),
    st.sampled_from((None, None, 50, 100)),
    st.sampled_from((0, 0, 50, 100)),
    st.booleans(),
)
NEEDS = st.builds(need, st.lists(ASKS, min_size=1, max_size=3)).map(
    lambda each: DeviceNeed("hamivgpu", tuple(each.asks[0]))  # type: ignore[arg-type]
)


def every_share(kind: DeviceKind, ask: Ask) -> Iterator[Use]:
    """All that a container might be given of a device, were it empty."""
    memory = ask.memory_of(kind)
    if not kind.geometries:
        yield Use(1, memory, ask.cores)
    for geometry in kind.geometries:
        for position in range(sum(each.number for each in geometry.instances)):
            size = geometry.memory_at(position) or 0
            if size >= memory:
                yield Use(1, size, ask.cores, frozenset((Slot(geometry.group, position),)))


def every_way(on: OfNode, ask: Ask) -> Iterator[tuple[Share, ...]]:
    for devices in combinations(range(len(on.kinds)), ask.devices):
        for shares in product(*(every_share(on.kinds[at], ask) for at in devices)):
            yield tuple(Share(at, use) for at, use in zip(devices, shares, strict=True))


def bears(kind: DeviceKind, base: Use, moment: list[Use], groups: set[str]) -> bool:
    """Whether a device bears what others have, and these shares of a pod at one moment in turn."""
    if len(groups) > 1:
        return False
    before = [base]
    for share in moment:
        if sum(use.cores for use in before) == kind.cores:
            return False
        if share.cores == kind.cores and any(use.sharers for use in before):
            return False
        if any(share.slots & use.slots for use in before):
            return False
        before.append(share)
    return not moment or (
        sum(use.sharers for use in before) <= kind.sharers
        and sum(use.memory for use in before) <= kind.memory
        and sum(use.cores for use in before) <= kind.cores
    )


def holds(on: OfNode, asks: tuple[Ask, ...], ways: tuple[tuple[Share, ...], ...]) -> bool:
    """Whether no device has to bear more than it can at any moment of the pod's start."""
    at_once = [number for number, ask in enumerate(asks) if not ask.init]
    moments = [at_once] + [
        [other for other in at_once if other < number] + [number]
        for number, ask in enumerate(asks)
        if ask.init
    ]
    for at, (kind, base) in enumerate(zip(on.kinds, on.used, strict=True)):
        of_pod = [share.use for way in ways for share in way if share.at == at]
        groups = {slot.group for use in [base, *of_pod] for slot in use.slots}
        for moment in moments:
            shares = [share.use for n in moment for share in ways[n] if share.at == at]
            if not bears(kind, base, shares, groups):
                return False
    return True


@examples(300)
@given(nodes(), NEEDS, st.sampled_from(DeviceOrder))
def test_a_pod_gets_devices_just_where_there_is_a_way(
    on: OfNode, asked: DeviceNeed, order: DeviceOrder
) -> None:
    ways = product(*(list(every_way(on, ask)) for ask in asked.asks))
    found = assign(on, asked, order)
    if isinstance(found, Lacking):
        assert not any(holds(on, asked.asks, way) for way in ways)
        return
    assert holds(on, asked.asks, found.containers)
    for at, use in found.charges:
        kind, after = on.kinds[at], on.used[at].plus(use)
        assert after.sharers <= kind.sharers
        assert after.memory <= kind.memory
        assert after.cores <= kind.cores
        assert after.minus(use) == on.used[at]
        assert not use.slots & on.used[at].slots
