"""Water filling: who deserves what."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.shares import water_filling
from app.model.amounts import UNLIMITED

FREE = [UNLIMITED] * 2


def fill(
    total: list[int],
    weights: list[int],
    request: list[list[int]],
    *,
    ceiling: list[list[int]] | None = None,
    floor: list[list[int]] | None = None,
) -> list[list[float]]:
    shares = water_filling.fill(
        np.array(total),
        np.array(weights),
        request=np.array(request),
        ceiling=np.array(ceiling or [[UNLIMITED] * len(total)] * len(weights)),
        floor=np.array(floor or [[0] * len(total)] * len(weights)),
    )
    rows: list[list[float]] = np.round(shares, 2).tolist()
    return rows


@pytest.mark.parametrize(
    ("weights", "request_", "expected"),
    [
        pytest.param([1, 1], [[9, 9], [9, 9]], [[5, 5], [5, 5]], id="equal weights share equally"),
        pytest.param([1, 4], [[9, 9], [9, 9]], [[2, 2], [8, 8]], id="weights count"),
        pytest.param([1, 1], [[2, 9], [9, 2]], [[2, 8], [8, 2]], id="what one leaves others get"),
        pytest.param([1, 1], [[0, 0], [9, 9]], [[0, 0], [9, 9]], id="nobody gets what none asks"),
        pytest.param([3, 1], [[9, 0], [9, 9]], [[7.5, 0], [2.5, 9]], id="shares may be fractions"),
        pytest.param([0, 0], [[9, 9], [9, 9]], [[0, 0], [0, 0]], id="no weight, no share"),
    ],
)
def test_the_cluster_is_shared_by_weight_and_by_need(
    weights: list[int], request_: list[list[int]], expected: list[list[float]]
) -> None:
    assert fill([10, 10], weights, request_) == expected


def test_a_queue_gets_no_more_than_it_can_hold() -> None:
    shares = fill([10, 10], [1, 1], [[9, 9], [9, 9]], ceiling=[[2, UNLIMITED], FREE])
    assert shares == [[2, 5], [8, 5]]


def test_a_queue_gets_its_guarantee_even_unasked() -> None:
    shares = fill(
        [10, 10],
        [1, 9],
        [[1, 9], [20, 20]],
        ceiling=[[10, 10], [7, 6]],
        floor=[[3, 4], [0, 0]],
    )
    assert shares == [[3, 4], [7, 6]]


def test_a_third_of_an_even_number_of_bytes_is_whole() -> None:
    gib = 1 << 30
    shares = water_filling.fill(
        np.array([96 * gib]),
        np.array([1, 1, 1]),
        request=np.array([[90 * gib]] * 3),
        ceiling=np.array([[UNLIMITED]] * 3),
        floor=np.zeros((3, 1), dtype=np.int64),
    )
    assert water_filling.whole(shares).tolist() == [[32 * gib]] * 3


QUEUE = st.tuples(
    st.integers(1, 10),
    st.tuples(st.integers(0, 60_000), st.integers(0, 60_000)),
    st.tuples(st.integers(0, 60_000), st.integers(0, 60_000)),
    st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)),
)


@given(total=st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)), queues=st.lists(QUEUE))
def test_shares_stay_within_the_cluster_the_need_and_the_limits(
    total: tuple[int, int],
    queues: list[tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]],
) -> None:
    weights = np.array([q[0] for q in queues], dtype=np.int64)
    request, ceiling, floor = (
        np.array([q[i] for q in queues], dtype=np.int64).reshape(-1, 2) for i in (1, 2, 3)
    )
    vector = np.array(total)
    shares = water_filling.fill(vector, weights, request=request, ceiling=ceiling, floor=floor)

    assert (shares <= np.maximum(np.minimum(request, ceiling), floor) + 1e-6).all()
    assert (shares >= floor).all()
    guaranteed = floor.sum(axis=0)
    slack = np.where(guaranteed > 0, guaranteed, 0)
    assert (shares.sum(axis=0) <= vector + slack + 1e-3).all()


@given(
    total=st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)),
    queues=st.lists(QUEUE, min_size=1),
)
def test_without_guarantees_nothing_is_left_that_somebody_could_take(
    total: tuple[int, int],
    queues: list[tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]],
) -> None:
    weights = np.array([q[0] for q in queues], dtype=np.int64)
    request, ceiling = (np.array([q[i] for q in queues], dtype=np.int64) for i in (1, 2))
    vector = np.array(total)
    shares = water_filling.fill(
        vector, weights, request=request, ceiling=ceiling, floor=np.zeros_like(request)
    )

    given_out = shares.sum(axis=0)
    assert (given_out <= vector + 1e-6).all()
    possible = np.minimum(np.minimum(request, ceiling).sum(axis=0), vector)
    assert np.allclose(given_out, possible, atol=1e-2)
