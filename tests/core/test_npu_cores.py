"""What pods get of Ascend chips that MindCluster's device plugin cuts."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.placement.devices import Given, Lacking, OfNode, assign, total_score
from app.model.device_families import NPU_CORES, VGPU, need_of
from app.model.devices import UNUSED, DeviceNeed, DeviceOrder, Slot, Use
from app.model.npu_cores import CHIP, PARTS, WHOLE_CHIP
from tests.npu_cores import asking
from tests.scale import examples


def need(*cores: int, level: str = "", video: str = "", init: bool = False) -> DeviceNeed:
    found = need_of(NPU_CORES, asking(*cores, level=level, video=video, init=init))
    assert found is not None
    return found


def of(template: str) -> Use:
    part = PARTS.get(template, WHOLE_CHIP)
    return Use(1, cores=part.cores, cpus=part.cpus, video=part.video)


def chip(*templates: str) -> Use:
    """What is taken of a chip with such parts."""
    used = UNUSED
    for template in templates:
        used = used.plus(of(template))
    return used


def on(*used: Use) -> OfNode:
    return OfNode((CHIP,) * len(used), used, (True,) * len(used))


def got(node: OfNode, wanted: DeviceNeed, order: DeviceOrder = DeviceOrder.LAST) -> str:
    """Chips and template; empty: nothing."""
    found = assign(node, wanted, order)
    if isinstance(found, Lacking):
        return ""
    [shares] = found.containers
    template = next((name for name in PARTS if of(name) == shares[0].use), "whole")
    return f"{','.join(str(share.at) for share in shares)} {template}"


@pytest.mark.parametrize(
    ("cores", "level", "video", "template"),
    [
        (1, "", "", "vir01"),
        (1, "high", "null", "vir01"),
        (2, "", "", "vir02_1c"),
        (2, "low", "null", "vir02_1c"),
        (2, "other", "null", "vir02_1c"),
        (2, "high", "null", "vir02"),
        (4, "", "", "vir04_3c"),
        (4, "low", "yes", "vir04_4c_dvpp"),
        (4, "low", "no", "vir04_3c_ndvpp"),
        (4, "high", "yes", "vir04_4c_dvpp"),
        (4, "high", "no", "vir04_3c_ndvpp"),
        (4, "high", "null", "vir04"),
        (8, "high", "yes", "whole"),
        (8, "", "nonsense", "whole"),
    ],
)
def test_labels_and_cores_give_the_template(
    cores: int, level: str, video: str, template: str
) -> None:
    """The table of Volcano's guide and of MindCluster's."""
    assert got(on(UNUSED), need(cores, level=level, video=video)) == f"0 {template}"


@pytest.mark.parametrize(
    ("wanted", "flaw"),
    [
        (need(3), "huawei.com/npu-core: 3 is not 1, 2, 4 or a multiple of 8"),
        (need(12), "huawei.com/npu-core: 12 is not 1, 2, 4 or a multiple of 8"),
        (need(1, video="yes"), "label vnpu-dvpp: 'yes' is not null, as it asks for 1 AI cores"),
        (
            need(4, video="maybe"),
            "label vnpu-dvpp: 'maybe' is not null, yes or no, as it asks for 4 AI cores",
        ),
        (need(2, 2), "huawei.com/npu-core is given to one container of a pod"),
        (need(2, init=True), "huawei.com/npu-core is given to one container of a pod"),
    ],
)
def test_what_no_chip_can_give_is_said(wanted: DeviceNeed, flaw: str) -> None:
    assert wanted.flaw.startswith(flaw)
    assert isinstance(assign(on(UNUSED), wanted, DeviceOrder.LAST), Lacking)


def test_a_pod_that_asks_for_no_cores_needs_none() -> None:
    assert need_of(NPU_CORES, asking(0)) is None
    assert need_of(VGPU, asking(2)) is None


@pytest.mark.parametrize(
    ("taken", "wanted", "gets"),
    [
        (("vir04",), need(4), "0 vir04_3c"),
        (("vir04",), need(4, level="high"), "0 vir04_3c"),
        (("vir04_3c",), need(4, level="high"), "0 vir04"),
        (("vir04", "vir02"), need(2, level="high"), "0 vir02_1c"),
        (("vir01",) * 6, need(1), "0 vir01"),
        (("vir01",) * 7, need(1), ""),
        (("vir04",), need(8), ""),
        (("vir01",), need(4, video="yes"), ""),
        (("vir04_3c_ndvpp",), need(4, video="yes"), "0 vir04_4c_dvpp"),
        (("vir04_4c_dvpp",), need(4, video="no"), "0 vir04_3c_ndvpp"),
        (("vir04_4c_dvpp",), need(1), ""),
        (("vir04_4c_dvpp",), need(4, video="yes"), ""),
        (("whole",), need(1), ""),
    ],
    ids=str,
)
def test_what_is_left_of_a_chip(taken: tuple[str, ...], wanted: DeviceNeed, gets: str) -> None:
    assert got(on(chip(*taken)), wanted) == gets


@pytest.mark.parametrize(
    ("groups", "cores", "gets"),
    [(2, 4, True), (3, 4, False), (3, 2, True), (4, 2, False), (4, 1, True)],
)
def test_parts_of_several_cores_need_groups_of_cores_of_their_own(
    groups: int, cores: int, gets: bool
) -> None:
    lying = frozenset(Slot(str(group), 100 + group) for group in range(groups))
    used = Use(groups, cores=groups, cpus=groups, video=0, slots=lying)
    assert bool(got(on(used), need(cores))) is gets


@pytest.mark.parametrize("order", DeviceOrder)
def test_the_fullest_chip_is_taken_whatever_the_policy(order: DeviceOrder) -> None:
    node = on(UNUSED, chip("vir04"), chip("vir02"))
    assert got(node, need(2), order) == "1 vir02_1c"
    assert got(node, need(8), order) == "0 whole"


def test_the_template_that_is_asked_for_goes_before_a_fuller_chip() -> None:
    node = on(chip("vir04", "vir02"), UNUSED)
    assert got(node, need(2, level="high")) == "1 vir02"
    assert got(node, need(2)) == "0 vir02_1c"


def test_several_chips_are_given_whole() -> None:
    assert got(on(UNUSED, chip("vir01"), UNUSED), need(16)) == "0,2 whole"
    assert not got(on(UNUSED, chip("vir01")), need(16))


def test_a_node_scores_by_how_full_its_chip_gets_and_not_with_a_smaller_template() -> None:
    def score(node: OfNode, wanted: DeviceNeed) -> float:
        found = assign(node, wanted, DeviceOrder.LAST)
        assert isinstance(found, Given)
        return total_score(node, wanted, found, DeviceOrder.LAST)

    assert score(on(UNUSED), need(4)) == 50
    assert score(on(chip("vir04")), need(4)) == 100
    assert score(on(chip("vir04")), need(4, level="high")) == 0


ASKS: Mapping[int, tuple[str, ...]] = {
    1: ("null",),
    2: ("null",),
    4: ("yes", "no", "null"),
    8: ("",),
}
NEEDS = st.sampled_from(sorted(ASKS)).flatmap(
    lambda cores: st.builds(
        need,
        st.just(cores),
        level=st.sampled_from(("low", "high")),
        video=st.sampled_from(ASKS[cores]),
    )
)


@examples(150)
@given(st.lists(NEEDS, max_size=24), st.integers(1, 3), st.randoms(use_true_random=False))
def test_no_chip_gives_more_than_it_has(needs: list[DeviceNeed], chips: int, dice: Random) -> None:
    """Cores, AI CPUs and the video units, which one part has alone or several share."""
    held: list[tuple[int, Use]] = []
    for wanted in needs:
        if held and dice.random() < 0.3:
            held.pop(dice.randrange(len(held)))
        used = [UNUSED] * chips
        for at, use in held:
            used[at] = used[at].plus(use)
        found = assign(on(*used), wanted, DeviceOrder.LAST)
        if isinstance(found, Given):
            held += [(share.at, share.use) for share in found.charges]
        for at in range(chips):
            here = [use for place, use in held if place == at]
            assert sum(use.cores for use in here) <= 8
            assert sum(use.cpus for use in here) <= 7
            assert all(use == of("whole") or use in map(of, PARTS) for use in here)
            assert len(here) == 1 or of("whole") not in here
            if of("vir04_4c_dvpp") in here:
                assert {use.video for use in here} <= {8, 0}
                assert here.count(of("vir04_4c_dvpp")) == 1
