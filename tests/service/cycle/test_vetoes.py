"""What the stock filters refuse is remembered for the shape, for a while that grows."""

from app.model.ids import NodeName
from app.model.snapshot import Veto
from app.service.cycle.vetoes import FIRST_S, GROWTH, Vetoes
from tests.builders import make_shape

SMALL, BIG = make_shape(cpu=100), make_shape(cpu=4000)
N1, N2 = NodeName("n1"), NodeName("n2")


def _lasts(vetoes: Vetoes, *, since: float) -> float:
    """For how many seconds N1 is still refused, to a tenth."""
    tenths = 0
    while Veto(SMALL, N1) in vetoes.active(now=since + tenths / 10):
        tenths += 1
    return tenths / 10


def test_a_veto_is_of_one_shape_and_one_node() -> None:
    vetoes = Vetoes(keep_s=60)
    vetoes.add(SMALL, N1, now=100)
    vetoes.add(BIG, N2, now=100)
    assert vetoes.active(now=100.5) == {Veto(SMALL, N1), Veto(BIG, N2)}


def test_the_first_one_may_be_chance_and_is_short() -> None:
    vetoes = Vetoes(keep_s=60)
    vetoes.add(SMALL, N1, now=100)
    vetoes.add(SMALL, N2, now=100.5)
    assert _lasts(vetoes, since=100) == FIRST_S
    assert vetoes.active(now=101) == {Veto(SMALL, N2)}
    assert vetoes.active(now=101.5) == frozenset()


def test_a_node_refused_whenever_it_is_tried_is_tried_ever_less() -> None:
    vetoes = Vetoes(keep_s=60)
    now, lasted = 100.0, []
    for _ in range(5):
        vetoes.add(SMALL, N1, now=now)
        lasted.append(_lasts(vetoes, since=now))
        now += lasted[-1] + 3
    assert lasted == [1, 4, 16, 60, 60]


def test_a_whole_gang_that_is_refused_at_once_is_refused_once() -> None:
    vetoes = Vetoes(keep_s=60)
    for _ in range(20):
        vetoes.add(SMALL, N1, now=100)
    vetoes.add(SMALL, N1, now=100.5)
    assert _lasts(vetoes, since=100) == 0.5 + FIRST_S


def test_a_node_that_was_not_refused_for_long_starts_afresh() -> None:
    vetoes = Vetoes(keep_s=60)
    vetoes.add(SMALL, N1, now=100)
    vetoes.add(SMALL, N1, now=100 + FIRST_S + GROWTH * FIRST_S)
    assert _lasts(vetoes, since=105) == FIRST_S
    assert len(vetoes) == 1
    assert vetoes.active(now=200) == frozenset()
    assert len(vetoes) == 0, "nothing is remembered for ever"


def test_no_time_to_keep_means_no_vetoes() -> None:
    vetoes = Vetoes(keep_s=0)
    vetoes.add(SMALL, N1, now=100)
    assert vetoes.active(now=100) == frozenset()
