"""Which devices claims get on a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.placement.claims import (
    Lacking,
    Offer,
    OpenClaim,
    Undecided,
    assign,
    lacking,
)
from app.model.device_claims import ClaimSpec, DeviceRequest, Request, SameAttribute
from app.model.device_slices import Attribute, Capacity, PoolDevice
from tests.device_claims import asks, device
from tests.scale import examples

GIB = 1 << 30
MEMORY = (("memory", Capacity(80)),)


def offer(
    *devices: PoolDevice,
    used: Mapping[int, Mapping[str, int] | None] | None = None,
    whole: bool = True,
) -> Offer:
    """A class has the devices whose attribute ``class`` names it."""

    def matching(option: DeviceRequest) -> frozenset[int] | None:
        if option.device_class == "none":
            return None
        named = (dict(each.attributes).get("class", "gpu") for each in devices)
        return frozenset(at for at, name in enumerate(named) if option.device_class in str(name))

    taken = used or {}
    return Offer(devices, range(len(devices)), matching, lambda at: taken.get(at, {}), whole)


def gpu(name: str = "a", *, of: str = "gpu", **fields: Any) -> PoolDevice:
    attributes = (("class", of), *fields.pop("attributes", ()))
    return device(name, attributes=attributes, **fields)


def given_to(spec: ClaimSpec, on: Offer) -> list[int] | None:
    found = assign(on, [OpenClaim("c", spec)])
    return None if found is None else [each.at for each in found]


EITHER = ClaimSpec(
    (
        Request(
            "r",
            (DeviceRequest("big", name="one"), DeviceRequest("small", name="two", count=2)),
            prioritized=True,
        ),
    )
)
ANY_AND_BIG = ClaimSpec(
    (Request("any", (DeviceRequest("gpu"),)), Request("big", (DeviceRequest("big"),)))
)
FREE = (gpu("a"), gpu("b"), gpu("c"))


@pytest.mark.parametrize(
    ("spec", "on", "gets"),
    [
        pytest.param(asks(2), offer(*FREE), [0, 1], id="the-first-ones"),
        pytest.param(asks(2), offer(*FREE, used={0: None}), [1, 2], id="those-that-are-free"),
        pytest.param(asks(4), offer(*FREE), None, id="too-many"),
        pytest.param(asks(2), offer(gpu()), None, id="one-of-two"),
        pytest.param(asks(of="none"), offer(*FREE), None, id="no-such-class"),
        pytest.param(asks(every=True), offer(*FREE), [0, 1, 2], id="all"),
        pytest.param(asks(every=True), offer(*FREE, used={1: None}), None, id="all-but-one-free"),
        pytest.param(asks(every=True), offer(), None, id="all-of-none"),
        pytest.param(asks(every=True), offer(*FREE, whole=False), None, id="all-of-a-part"),
        pytest.param(asks(2), offer(*FREE, whole=False), [0, 1], id="some-of-a-part"),
        pytest.param(asks(33), offer(*[gpu(str(n)) for n in range(40)]), None, id="33-devices"),
        pytest.param(
            EITHER, offer(gpu("a", of="big"), gpu("b", of="small")), [0], id="first-choice"
        ),
        pytest.param(
            EITHER,
            offer(gpu("a", of="big"), gpu("b", of="small"), gpu("c", of="small"), used={0: None}),
            [1, 2],
            id="second-choice",
        ),
        pytest.param(EITHER, offer(gpu("b", of="small")), None, id="no-choice"),
        pytest.param(
            ANY_AND_BIG, offer(gpu("a", of="gpu big"), gpu("b")), [1, 0], id="another-way-round"
        ),
        pytest.param(
            asks(admin=True), offer(gpu(), used={0: None}), [0], id="looking-takes-nothing"
        ),
        pytest.param(asks(0), offer(), [], id="nothing"),
    ],
)
def test_what_a_claim_gets(spec: ClaimSpec, on: Offer, gets: list[int] | None) -> None:
    assert given_to(spec, on) == gets


def partly(amount: int, **policy: Any) -> PoolDevice:
    return gpu(shared=True, capacity=(("memory", Capacity(amount, **policy)),))


@pytest.mark.parametrize(
    ("on", "asked", "takes"),
    [
        pytest.param(partly(80), 40, 40, id="what-it-asks-for"),
        pytest.param(partly(80), None, 80, id="all-where-it-does-not-say"),
        pytest.param(partly(80, default=10), None, 10, id="the-default"),
        pytest.param(partly(80, values=(20, 60)), 30, 60, id="the-next-value"),
        pytest.param(partly(80, values=(20, 60)), 70, None, id="no-such-value"),
        pytest.param(partly(80, least=10), 4, 10, id="the-least"),
        pytest.param(partly(80, least=10, step=8), 20, 26, id="the-next-step"),
        pytest.param(partly(80, least=10, most=40), 41, None, id="beyond-the-most"),
        pytest.param(partly(80), 81, None, id="beyond-the-device"),
        pytest.param(gpu(), 1, None, id="no-such-capacity"),
    ],
)
def test_which_part_of_a_device_is_taken(
    on: PoolDevice, asked: int | None, takes: int | None
) -> None:
    capacity = () if asked is None else (("memory", asked),)
    found = assign(offer(on), [OpenClaim("c", asks(capacity=capacity))])
    assert (None if found is None else found[0].parts) == (
        None if takes is None else (("memory", takes),)
    )


def test_claims_share_a_device_as_far_as_its_capacity_goes() -> None:
    claims = [OpenClaim(name, asks(capacity=(("memory", 40),))) for name in "abc"]
    on = offer(partly(80))
    assert assign(on, claims[:2]) is not None
    assert assign(on, claims) is None
    assert assign(offer(partly(80), used={0: {"memory": 41}}), claims[:1]) is None


def test_a_device_that_one_claim_has_whole_is_not_shared() -> None:
    assert given_to(asks(capacity=(("memory", 1),)), offer(partly(80), used={0: None})) is None


def test_a_device_that_is_not_shared_is_taken_whole_by_a_claim_of_a_part() -> None:
    on = gpu(capacity=MEMORY)
    found = assign(offer(on), [OpenClaim("c", asks(capacity=(("memory", 1),)))])
    assert found is not None
    assert found[0].parts is None
    assert given_to(asks(capacity=(("memory", 81),)), offer(on)) is None


def with_numa(*nodes: Attribute | None) -> list[PoolDevice]:
    return [
        gpu(str(at), attributes=() if numa is None else (("numa", numa),))
        for at, numa in enumerate(nodes)
    ]


@pytest.mark.parametrize(
    ("numa", "gets"),
    [
        ((0, 1, 0), [0, 2]),
        ((0, 1, 1), [1, 2]),
        ((0, 1, 2), None),
        ((None, 1, 1), [1, 2]),
        ((1, True, 1), [0, 2]),
        (("1", 1, "1"), [0, 2]),
    ],
)
def test_devices_share_an_attribute(
    numa: Sequence[Attribute | None], gets: list[int] | None
) -> None:
    same = SameAttribute("gpu.example.com/numa")
    assert given_to(ClaimSpec(asks(2).requests, (same,)), offer(*with_numa(*numa))) == gets


def test_a_constraint_is_about_the_requests_that_it_names() -> None:
    requests = tuple(Request(name, (DeviceRequest("gpu"),)) for name in "xyz")
    spec = ClaimSpec(requests, (SameAttribute("gpu.example.com/numa", ("x", "z")),))
    assert given_to(spec, offer(*with_numa(0, 1, 0))) == [0, 1, 2]


def test_a_device_whose_attributes_are_not_readable_is_left_to_kube_scheduler() -> None:
    spec = ClaimSpec(asks(2).requests, (SameAttribute("gpu.example.com/numa"),))
    [one, _] = with_numa(0, 0)
    assert given_to(spec, offer(one, gpu("b", opaque=True))) == [0, 1]


def test_a_search_that_does_not_end_is_left_to_kube_scheduler() -> None:
    devices = [gpu(str(at), attributes=(("numa", at),)) for at in range(30)]
    spec = ClaimSpec(asks(2).requests, (SameAttribute("gpu.example.com/numa"),))
    with pytest.raises(Undecided):
        given_to(ClaimSpec(spec.requests * 4, spec.constraints), offer(*devices, *devices))


@pytest.mark.parametrize("claims", [6, 32])
def test_many_claims_of_many_requests_get_devices(claims: int) -> None:
    shared = offer(*[replace(partly(2_000), id=gpu(str(at)).id) for at in range(32)])
    option = DeviceRequest("gpu", capacity=(("memory", 1),))
    spec = ClaimSpec(tuple(Request(f"r{number}", (option,)) for number in range(32)))
    found = assign(shared, [OpenClaim(str(number), spec) for number in range(claims)])
    assert found is not None
    at = Counter(each.at for each in found)
    assert at.total() == claims * 32
    assert max(at.values()) <= 2_000


def test_claims_that_ask_for_nothing_are_passed_over() -> None:
    claims = [OpenClaim(str(number), ClaimSpec()) for number in range(2_000)]
    assert assign(offer(*FREE), claims) == ()
    found = assign(offer(*FREE), [*claims, OpenClaim("c", asks(2))])
    assert found is not None
    assert [each.at for each in found] == [0, 1]


@pytest.mark.parametrize(
    ("spec", "on", "lacks"),
    [
        pytest.param(asks(4), offer(*FREE, used={0: None}), Lacking("gpu", 4, 2), id="count"),
        pytest.param(
            asks(capacity=(("memory", 50),)),
            offer(partly(80), used={0: {"memory": 40}}),
            Lacking("gpu", 1, 0, (("memory", 50),)),
            id="capacity",
        ),
        pytest.param(
            asks(every=True), offer(*FREE, used={1: None}), Lacking("gpu", 3, 2), id="all"
        ),
        pytest.param(ANY_AND_BIG, offer(gpu(of="gpu big")), None, id="together"),
        pytest.param(EITHER, offer(gpu(of="small")), Lacking("big", 1, 0), id="first-choice"),
    ],
)
def test_what_lacks_is_told(spec: ClaimSpec, on: Offer, lacks: Lacking | None) -> None:
    assert lacking(on, [OpenClaim("c", spec)]) == lacks


CLASSES = st.sampled_from(["x", "y", "z"])
DEVICES = st.lists(st.sets(CLASSES, min_size=1).map(sorted), max_size=5)
REQUESTS = st.lists(st.tuples(CLASSES, st.integers(1, 3)), min_size=1, max_size=3)


@examples(300)
@given(DEVICES, REQUESTS, st.sets(st.integers(0, 4)))
def test_claims_get_devices_if_and_only_if_there_is_a_way(
    classes: list[list[str]], wanted: list[tuple[str, int]], busy: set[int]
) -> None:
    devices = [gpu(str(at), of=" ".join(each)) for at, each in enumerate(classes)]
    on = offer(*devices, used=dict.fromkeys(busy))
    claims = [OpenClaim(str(n), asks(count, of)) for n, (of, count) in enumerate(wanted)]
    found = assign(on, claims)
    free = [at for at in range(len(devices)) if at not in busy]
    choices = [
        list(combinations([at for at in free if of in classes[at]], count)) for of, count in wanted
    ]
    ways = (sum(way, ()) for way in product(*choices))
    assert (found is not None) == any(len(set(way)) == len(way) for way in ways)
    if found is not None:
        taken = [each.at for each in found]
        assert len(set(taken)) == len(taken) == sum(count for _, count in wanted)
        assert busy.isdisjoint(taken)
