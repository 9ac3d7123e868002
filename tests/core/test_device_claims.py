"""What queues are charged for claims."""

import pytest

from app.model.amounts import Amounts
from app.model.device_claims import (
    Allocation,
    Allotted,
    ClaimSpec,
    DeviceRequest,
    Request,
    amounts_of,
)
from tests.device_claims import asks, on_node

EITHER = ClaimSpec(
    (
        Request(
            "r",
            (
                DeviceRequest("big", name="one", count=1),
                DeviceRequest("small", name="two", count=4),
            ),
            prioritized=True,
        ),
    )
)
TWO_REQUESTS = ClaimSpec(
    (Request("a", (DeviceRequest("gpu", count=2),)), Request("b", (DeviceRequest("gpu"),)))
)
SLICE = asks(2, capacity=(("cores", 40), ("memory", 8)))


@pytest.mark.parametrize(
    ("spec", "charged"),
    [
        pytest.param(ClaimSpec(), (), id="nothing"),
        pytest.param(asks(), (("deviceclass/gpu", 1),), id="one"),
        pytest.param(asks(4), (("deviceclass/gpu", 4),), id="several"),
        pytest.param(asks(every=True), (("deviceclass/gpu", 32),), id="all"),
        pytest.param(TWO_REQUESTS, (("deviceclass/gpu", 3),), id="two-requests-of-a-class"),
        pytest.param(EITHER, (("deviceclass/big", 1), ("deviceclass/small", 4)), id="either"),
        pytest.param(
            SLICE,
            (("cores.deviceclass/gpu", 80), ("deviceclass/gpu", 2), ("memory.deviceclass/gpu", 16)),
            id="capacity-of-each-device",
        ),
        pytest.param(asks(1 << 60), (("deviceclass/gpu", 1 << 46),), id="beyond-all-bounds"),
    ],
)
def test_a_claim_without_devices_is_charged_the_most_it_may_get(
    spec: ClaimSpec, charged: Amounts
) -> None:
    assert amounts_of(spec, None) == charged


ONE_OF_TWO = Allocation(tuple(Allotted("r/two", "d", "n", f"x{i}") for i in range(4)))


@pytest.mark.parametrize(
    ("spec", "has", "charged"),
    [
        pytest.param(asks(2), on_node("a", "b", node="n"), (("deviceclass/gpu", 2),), id="count"),
        pytest.param(
            asks(every=True), on_node("a", "b", "c", node="n"), (("deviceclass/gpu", 3),), id="all"
        ),
        pytest.param(EITHER, ONE_OF_TWO, (("deviceclass/small", 4),), id="the-second-choice"),
        pytest.param(
            asks(capacity=(("memory", 5),)),
            on_node("a", node="n", consumed=(("memory", 8),), shared=True),
            (("deviceclass/gpu", 1), ("memory.deviceclass/gpu", 8)),
            id="rounded-up-capacity",
        ),
        pytest.param(asks(2), Allocation(), (), id="nothing-of-it"),
    ],
)
def test_a_claim_with_devices_is_charged_what_it_has(
    spec: ClaimSpec, has: Allocation, charged: Amounts
) -> None:
    assert amounts_of(spec, has) == charged
