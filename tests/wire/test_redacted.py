"""Under other names the same is decided, and no name is left."""

import random
import zlib
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.core.planner import plan
from app.core.plugins.extender import conf_of
from app.core.replay import replayed
from app.model.conf import PluginConf
from app.model.ids import QueueName
from app.model.recorded import PlanCall, Recorded, Recording
from app.wire.redacted import _new_names, decided, redacted
from app.wire.stored import packed
from tests.builders import make_gang, make_node, make_queue, make_snapshot, make_task
from tests.core.actions.rigs import policies
from tests.core.crowds import Crowd
from tests.core.placement.strategies import Theme
from tests.core.random_crowds import Rules, crowds
from tests.core.worlds import NOW, worlds
from tests.scale import examples
from tests.service.test_ring import DECISIONS, Life
from tests.service.virtual_time import run

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
EXAMPLES = examples(3, suppress_health_check=SLOW)
themes = pytest.mark.parametrize("theme", Theme, ids=lambda theme: theme.name.lower())


def assert_the_same(*entries: Recorded) -> Recording:
    found, names = redacted(Recording("1", entries))
    for before, entry in zip(entries, found.entries, strict=True):
        assert decided(replayed(entry), {}) == decided(before.plan, names)
    return found


@themes
@EXAMPLES
@given(data=st.data())
def test_a_cycle_is_decided_the_same(theme: Theme, data: st.DataObject) -> None:
    world = data.draw(worlds(theme))
    made = plan(world.snapshot, world.by, now=NOW, shapes=None)
    assert_the_same(Recorded(PlanCall.CYCLE, NOW, world.snapshot, world.by.conf, made))


@EXAMPLES
@given(crowd_of=crowds(freezes=False))
def test_evictions_are_decided_the_same(crowd_of: tuple[Rules, Crowd]) -> None:
    _, crowd = crowd_of
    snapshot = crowd.snapshot()
    made = plan(snapshot, crowd.by, now=crowd.now, shapes=None)
    assert_the_same(Recorded(PlanCall.CYCLE, crowd.now, snapshot, crowd.by.conf, made))


def test_a_life_is_decided_the_same_and_no_name_of_it_is_left() -> None:
    life = Life(random.Random(4))
    run(life.go_on(DECISIONS))
    entries = life.rig.planning.cycle.input.ring.entries()
    found = assert_the_same(*entries)
    plans = [replace(entry, plan=replayed(entry)) for entry in found.entries]
    content = packed(replace(found, entries=tuple(plans)))
    text = zlib.decompress(content.partition(b"\n")[2])
    left = [name for name in names_of(entries) if name.encode() in text]
    assert left == []


def names_of(entries: tuple[Recorded, ...]) -> set[str]:
    """Names of pods and groups, long enough not to be there by chance."""
    gangs = [gang for entry in entries for gang in entry.snapshot.gangs.values()]
    tasks = [task for gang in gangs for task in gang.waiting]
    return {gang.key for gang in gangs} | {task.uid for task in tasks if task.uid}


def test_names_keep_their_order_beside_those_that_stay_and_their_numbers() -> None:
    names = ["a", "a-x", "a/b", "default-2", "zz", "job-10", "job-9", "rooted"]
    stay = ["default", "root", "7"]
    new = _new_names(names, anchors=stay)
    old = sorted([*names, *stay])
    assert sorted(old, key=lambda name: new.get(name, name)) == old
    assert len(set(new.values())) == len(names)
    assert new["job-10"].endswith("-10")
    assert not set(new.values()) & set(names)


def test_what_stays_and_what_goes() -> None:
    labels = {"zone": "secret-zone", "kubernetes.io/hostname": "secret-node", "cpus": "64"}
    node = make_node("secret-node", labels=labels, cpu=4000)
    gang = make_gang(
        "secret-job",
        waiting=(make_task("secret-job-0"),),
        min_member=1,
        queue=QueueName("secret-queue"),
        annotations={
            "volcano.sh/hierarchy": "root/secret-team",
            "volcano.sh/task-topology-affinity": "ps,worker",
            "example.com/note": "secret-note, and more",
        },
        role_minimum={"worker": 1},
    )
    snapshot = make_snapshot(
        nodes=(node,), gangs=(gang,), queues=(make_queue("secret-queue"), make_queue("default"))
    )
    by = policies()
    made = plan(snapshot, by, now=NOW, shapes=None)
    found = assert_the_same(Recorded(PlanCall.CYCLE, NOW, snapshot, by.conf, made))
    assert found.redacted
    [entry] = found.entries
    told = replace(found, entries=(replace(entry, plan=replayed(entry)),))
    assert b"secret" not in zlib.decompress(packed(told).partition(b"\n")[2])
    [seen] = entry.snapshot.table.nodes
    assert seen.labels.keys() == labels.keys()
    assert seen.labels["cpus"] == "64"
    assert seen.labels["kubernetes.io/hostname"] == seen.name
    assert seen.allocatable == node.allocatable
    assert QueueName("default") in entry.snapshot.queues
    [mine] = entry.snapshot.gangs.values()
    [role] = mine.role_minimum
    assert mine.annotations["volcano.sh/task-topology-affinity"] == f"ps,{role}"
    assert mine.annotations["volcano.sh/hierarchy"].startswith("root/")


def test_what_the_configuration_names_stays() -> None:
    node = make_node("n1", labels={"volcano.sh/revocable-zone": "night"})
    snapshot = make_snapshot(nodes=(node,))
    conf = policies().conf
    arguments = {"tdm.revocable-zone.night": "22:00-06:00"}
    [first, *rest] = conf.tiers
    named = replace(
        conf, tiers=((*first, replace(first[0], name="tdm", arguments=arguments)), *rest)
    )
    made = plan(snapshot, policies(), now=NOW, shapes=None)
    found, names = redacted(Recording("1", (Recorded(PlanCall.CYCLE, NOW, snapshot, named, made),)))
    assert "night" not in names
    assert found.entries[0].snapshot.table.nodes[0].name != "n1"


def test_the_url_of_the_plugin_extender_goes_and_keeps_no_name() -> None:
    snapshot = make_snapshot(nodes=(make_node("secret-judge"),))
    conf = policies().conf
    arguments = {"extender.urlPrefix": "http://secret-judge.secret-team:8713/secret-token"}
    [first, *rest] = conf.tiers
    asking = PluginConf("extender", arguments=arguments | {"extender.predicateVerb": "predicate"})
    named = replace(conf, tiers=((*first, asking), *rest))
    made = plan(snapshot, policies(), now=NOW, shapes=None)
    found, names = redacted(Recording("1", (Recorded(PlanCall.CYCLE, NOW, snapshot, named, made),)))
    [entry] = found.entries
    [node] = entry.snapshot.table.nodes
    assert node.name == names["secret-judge"]
    told = entry.conf.plugin("extender")
    assert told is not None
    assert told.arguments["extender.predicateVerb"] == "predicate"
    assert conf_of(told).url == "http://redacted"
    assert b"secret" not in zlib.decompress(packed(found).partition(b"\n")[2])
