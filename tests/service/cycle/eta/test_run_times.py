"""Run times are learned as gangs end, and told of others like them."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.eta.run_times import LEAST_RUNS
from app.model.ids import NodeName
from app.model.pod import Owner
from app.service.cycle.eta.run_times import RunTimes, stem_of
from app.wire.evicted import EVICTED
from tests.builders import make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import advance

ONE = make_shape(cpu=1000)


def known_by(rig: Rig) -> RunTimes:
    return rig.planning.etas.run_times


def runs(rig: Rig, name: str, *, size: int = 1, **fields: Any) -> list[str]:
    """A gang whose pods run on n1 from now on."""
    return rig.gang(name, size=size, node=NodeName("n1"), phase="Running", shape=ONE, **fields)


async def end(rig: Rig, names: list[str], phase: str = "Succeeded") -> None:
    rig.store(*(replace(rig.api.pods[f"default/{name}"], phase=phase) for name in names))
    await rig.cycle()


async def taught(rig: Rig, *seconds: float, name: str = "nightly-28493{:03}") -> None:
    """Gangs that run for so long each, one after the other."""
    for number, each in enumerate(seconds):
        names = runs(rig, name.format(number))
        await rig.cycle()
        await advance(each)
        await end(rig, names)


async def test_a_gang_is_known_by_others_like_it() -> None:
    rig = Rig()
    rig.node("n1")
    await taught(rig, *[100.0] * LEAST_RUNS)
    rig.gang("nightly-28500000", size=1, shape=ONE)
    known = known_by(rig).known(rig.cache.groups[rig.key("nightly-28500000")])
    assert len(known.learned) == 6
    assert known.remaining(0.5, ran=0.0) == pytest.approx(100.0, rel=0.08)
    assert known_by(rig).learned == LEAST_RUNS


async def test_of_an_owner_with_few_runs_the_broader_keys_tell() -> None:
    rig = Rig()
    rig.node("n1")
    await taught(rig, *[100.0] * LEAST_RUNS)
    rig.gang("other", size=1, shape=ONE)
    rig.gang("larger", size=2, shape=ONE)
    groups = rig.cache.groups
    assert len(known_by(rig).known(groups[rig.key("other")]).learned) == 4
    assert len(known_by(rig).known(groups[rig.key("larger")]).learned) == 2


async def test_a_gang_ends_when_its_last_member_does() -> None:
    rig = Rig()
    rig.node("n1")
    names = runs(rig, "g", size=2)
    await rig.cycle()
    await advance(10)
    await end(rig, names[:1])
    assert known_by(rig).learned == 0
    await advance(10)
    await end(rig, names[1:], "Failed")
    assert known_by(rig).learned == 1
    assert known_by(rig).began(rig.key("g")) is None


async def test_a_gang_that_is_deleted_while_it_runs_has_ended() -> None:
    rig = Rig()
    rig.node("n1")
    names = runs(rig, "g")
    await rig.cycle()
    rig.unsee("podgroups", rig.cache.groups[rig.key("g")].pod_group)
    rig.delete(*names)
    await rig.cycle()
    assert known_by(rig).learned == 1


async def test_of_a_gang_that_was_evicted_nothing_is_learned() -> None:
    rig = Rig()
    rig.node("n1")
    [name] = runs(rig, "g")
    await rig.cycle()
    pod = rig.api.pods[f"default/{name}"]
    rig.store(replace(pod, deleting=True, annotations={**pod.annotations, EVICTED: "preempt"}))
    await rig.cycle()
    rig.unsee("podgroups", rig.cache.groups[rig.key("g")].pod_group)
    rig.delete(name)
    await rig.cycle()
    assert known_by(rig).learned == 0


async def test_a_gang_whose_pods_are_made_anew_begins_anew() -> None:
    rig = Rig()
    rig.node("n1")
    [name] = runs(rig, "g")
    await rig.cycle()
    rig.delete(name)
    rig.pod("g-again", group="g", shape=ONE, gates=("foreign",))
    await rig.cycle()
    assert known_by(rig).learned == 0
    assert known_by(rig).began(rig.key("g")) is None


async def test_a_new_process_knows_from_pods_when_gangs_began() -> None:
    rig = Rig()
    rig.node("n1")
    began = rig.clock() - 50.0
    names = runs(rig, "g", size=2, started=began)
    await rig.cycle()
    assert known_by(rig).began(rig.key("g")) == began
    await end(rig, names)
    group = rig.cache.groups[rig.key("g")]
    assert not known_by(rig).known(group).learned


async def test_declared_times_are_of_the_pod_group_or_of_pods() -> None:
    rig = Rig()
    rig.group("g", minimum=1, annotations={"pumice.sh/run-time": "1h30m"})
    rig.pod("g-0", group="g")
    rig.pod("alone", annotations={"pumice.sh/run-time": "90"}, deadline=60.0)
    groups = rig.cache.groups
    assert known_by(rig).known(groups[rig.key("g")]).declared == 5400.0
    alone = known_by(rig).known(groups[rig.member("alone").group])
    assert (alone.declared, alone.limit) == (90.0, 60.0)
    assert alone.remaining(0.5, ran=0.0) == 60.0


async def test_pods_of_one_owner_are_alike_whatever_their_names() -> None:
    rig = Rig()
    rig.node("n1")
    for number in range(LEAST_RUNS):
        owner = Owner("batch/v1", "Job", f"report-{number + 28493040}", f"uid-{number}")
        rig.pod(f"p{number}", node=NodeName("n1"), phase="Running", owner=owner, shape=ONE)
        await rig.cycle()
        await advance(40)
        await end(rig, [f"p{number}"])
    owner = Owner("batch/v1", "Job", "report-28499999", "uid-x")
    rig.pod("next", owner=owner, shape=make_shape(cpu=3000))
    known = known_by(rig).known(rig.cache.groups[rig.member("next").group])
    assert known.remaining(0.5, ran=0.0) == pytest.approx(40.0, rel=0.08)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("nightly-28493040", "nightly"),
        ("train-x7k2p", "train"),
        ("web-5d8f9c7b6d-x7k2p", "web"),
        ("train-7", "train"),
        ("job1", "job"),
        ("7", "7"),
        ("resnet", "resnet"),
        ("bert-large", "bert-large"),
    ],
)
def test_a_stem_is_a_name_without_what_owners_add(name: str, stem: str) -> None:
    assert stem_of(name) == stem
