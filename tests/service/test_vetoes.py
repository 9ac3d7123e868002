"""What the stock filters refuse is remembered for the shape, for a while."""

from app.model.ids import NodeName
from app.model.snapshot import Veto
from app.service.vetoes import Vetoes
from tests.builders import make_shape

SMALL, BIG = make_shape(cpu=100), make_shape(cpu=4000)
N1, N2 = NodeName("n1"), NodeName("n2")


def test_a_veto_is_of_one_shape_and_one_node() -> None:
    vetoes = Vetoes(keep_s=60)
    vetoes.add(SMALL, N1, now=100)
    vetoes.add(BIG, N2, now=100)
    assert vetoes.active(now=101) == {Veto(SMALL, N1), Veto(BIG, N2)}


def test_a_veto_ages_out_and_is_forgotten() -> None:
    vetoes = Vetoes(keep_s=60)
    vetoes.add(SMALL, N1, now=100)
    vetoes.add(SMALL, N2, now=130)
    assert vetoes.active(now=159.9) == {Veto(SMALL, N1), Veto(SMALL, N2)}
    assert vetoes.active(now=160) == {Veto(SMALL, N2)}
    assert len(vetoes) == 1
    assert vetoes.active(now=190) == frozenset()
    assert len(vetoes) == 0


def test_a_veto_that_is_cast_again_lasts_longer() -> None:
    vetoes = Vetoes(keep_s=60)
    vetoes.add(SMALL, N1, now=100)
    vetoes.add(SMALL, N1, now=150)
    assert vetoes.active(now=209) == {Veto(SMALL, N1)}


def test_no_time_to_keep_means_no_vetoes() -> None:
    vetoes = Vetoes(keep_s=0)
    vetoes.add(SMALL, N1, now=100)
    assert vetoes.active(now=100) == frozenset()
