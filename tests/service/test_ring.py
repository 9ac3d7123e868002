"""What the planner was asked last is kept, within bounds, and asked again it answers the same."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.replay import replayed
from app.model.device_claims import ClaimSpec, DeviceClaim
from app.model.device_slices import ClaimedDevices
from app.model.ids import NodeName
from app.model.load import Index, MetricsConf, MetricsType
from app.model.recorded import PlanCall, Recorded, Recording
from app.model.workload import GroupPhase
from app.service.cycle.ring import Ring
from app.service.cycle.snapshot_token import SnapshotToken
from app.wire.stored import digest, packed, unpacked
from tests.builders import make_amounts, make_queue, make_shape
from tests.scale import ROUNDS, dice
from tests.scenarios.confs import evicting
from tests.service.rig import Rig
from tests.service.virtual_time import advance, run

DECISIONS = 10 * ROUNDS
SIZE = 64 * 1024 * 1024


def ring_of(rig: Rig) -> Ring:
    return rig.planning.cycle.input.ring


def recording(rig: Rig) -> Rig:
    ring_of(rig).size = SIZE
    return rig


def entries(rig: Rig) -> tuple[Recorded, ...]:
    return ring_of(rig).entries()


class Life:
    """A cluster in which things happen by chance, planned in cycles and on demand."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.rig, self.gangs = chance, recording(Rig()), 0
        self.rig.parts.configuration.load(evicting("enqueue, allocate, preempt, reclaim, backfill"))
        self.rig.node("n1", "n2", "n3", cpu=8000)
        for name in ("a", "b"):
            self.queue(name)

    def queue(self, name: str) -> None:
        weight = self.chance.randint(1, 4)
        cpu = self.chance.choice((4000, 16000))
        self.rig.queue(make_queue(name, weight=weight, capability=make_amounts(cpu=cpu)))

    def gang(self) -> None:
        self.gangs += 1
        name, size = f"g{self.gangs}", self.chance.randint(1, 4)
        queue = make_queue(self.chance.choice("ab")).name
        phase = self.chance.choice((GroupPhase.PENDING, GroupPhase.INQUEUE))
        needs = make_amounts(cpu=1000 * size)
        minimum = self.chance.randint(1, size)
        self.rig.group(name, minimum=minimum, queue=queue, phase=phase, min_resources=needs)
        for number in range(size):
            shape = make_shape(cpu=self.chance.choice((500, 1000, 2000)))
            self.rig.pod(f"{name}-{number}", group=name, shape=shape)

    def ask(self) -> None:
        """kube-scheduler comes for a pod."""
        waiting = [pod.name for pod in self.rig.api.pods.values() if not pod.node]
        if waiting:
            self.rig.filter(self.chance.choice(waiting))

    def land(self) -> None:
        """Planned pods run."""
        for pod in list(self.rig.api.pods.values()):
            node = self.rig.place(pod.name) if not pod.node else ""
            if node and self.chance.random() < 0.5:
                self.rig.store(replace(pod, node=NodeName(node), phase="Running", started=1.0))

    def end(self) -> None:
        """Pods end."""
        running = [pod.name for pod in self.rig.api.pods.values() if pod.node]
        if running:
            self.rig.delete(*self.chance.sample(running, k=min(2, len(running))))

    def cordon(self) -> None:
        self.rig.node(f"n{self.chance.randint(1, 3)}", unschedulable=self.chance.random() < 0.5)

    async def go_on(self, decisions: int) -> None:
        steps: list[Callable[[], None]] = [
            *(self.gang, self.gang, self.ask, self.ask, self.land, self.land, self.end),
            *(self.cordon, lambda: self.queue(self.chance.choice("ab"))),
        ]
        while len(entries(self.rig)) < decisions:
            self.chance.choice(steps)()
            if self.chance.random() < 0.5:
                self.rig.cache.signals.note_dirty()
                await self.rig.cycle()
            await advance(self.chance.random())


@pytest.fixture(scope="module")
def lived() -> tuple[Recorded, ...]:
    life = Life(dice())
    run(life.go_on(DECISIONS))
    return entries(life.rig)


def test_recorded_decisions_are_decided_the_same(lived: tuple[Recorded, ...]) -> None:
    assert len(lived) >= DECISIONS
    found = unpacked(packed(Recording("1", lived)))
    for entry, again in zip(lived, found.entries, strict=True):
        assert digest(again.snapshot) == digest(entry.snapshot)
        assert digest(replayed(again)) == digest(entry.plan)


def test_another_process_with_other_hashes_decides_the_same(
    lived: tuple[Recorded, ...], tmp_path: Path
) -> None:
    file = tmp_path / "case.pumice"
    file.write_bytes(packed(Recording("1", lived)))
    pumice = str(Path(sys.executable).with_name("pumice"))
    command = [pumice, "replay", str(file), "-o", "json"]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["decisions"]
    assert len(told) == len(lived)
    assert all(each["same"] for each in told)


def test_snapshots_that_share_much_take_little_more_than_one(lived: tuple[Recorded, ...]) -> None:
    one, all_ = (len(packed(Recording("1", some))) for some in (lived[-1:], lived))
    assert all_ < one * len(lived) / 3


async def test_cycles_and_plans_on_demand_are_recorded() -> None:
    rig = recording(Rig())
    rig.node("n1", cpu=2000)
    rig.gang("g", size=2)
    await rig.cycle()
    [cycle] = entries(rig)
    assert (cycle.call, cycle.key) == (PlanCall.CYCLE, None)
    assert [each.gang for each in cycle.plan.placed] == ["default/g"]
    assert cycle.now == rig.clock()
    rig.pod("p", shape=make_shape(cpu=9000))
    rig.filter("p")
    assert [each.call for each in entries(rig)] == [PlanCall.CYCLE, PlanCall.ON_DEMAND]


async def test_a_plan_for_one_gang_is_recorded_with_its_name() -> None:
    rig = recording(Rig())
    rig.node("n1", cpu=2000)
    rig.gang("large", size=200)
    rig.pod("p")
    rig.filter("p")
    [entry] = entries(rig)
    assert (entry.call, entry.key) == (PlanCall.GANG, rig.member("p").group)
    assert digest(replayed(unpacked(packed(entry)))) == digest(entry.plan)


async def test_the_oldest_go_when_there_is_no_room() -> None:
    rig = recording(Rig())
    rig.node(*(f"n{number}" for number in range(50)))
    ring = ring_of(rig)
    ring.size = 250_000
    for number in range(60):
        rig.gang(f"g{number}", size=2)
        await rig.cycle()
    kept = entries(rig)
    assert 2 < len(kept) < 60
    assert ring.forgotten == 60 - len(kept)
    assert ring.used <= ring.size
    generations = [each.snapshot.generation for each in kept]
    assert generations == sorted(generations)
    assert kept[-1].plan.generation == rig.planning.log.generation


async def test_what_snapshots_share_counts_once() -> None:
    rig = recording(Rig())
    rig.node(*(f"n{number}" for number in range(1000)))
    used = []
    for number in range(3):
        rig.gang(f"g{number}", size=1)
        await rig.cycle()
        used.append(ring_of(rig).used)
    assert used[2] - used[1] < used[0] / 4


async def test_what_is_known_of_claims_counts_in_each_snapshot_that_has_its_own() -> None:
    rig = recording(Rig())
    rig.node("n1")
    rig.gang("g", size=1)
    await rig.cycle()
    ring, [entry] = ring_of(rig), entries(rig)
    token = SnapshotToken(entry.snapshot, rig.parts.configuration.policies)
    before = ring.used
    tracemalloc.start()
    try:
        for number in range(20):
            claims = {
                f"ns/c{at}-{number}": DeviceClaim("ns", f"c{at}", "uid", ClaimSpec())
                for at in range(1000)
            }
            known = ClaimedDevices(claims=claims)
            made = replace(token, snapshot=replace(entry.snapshot, claimed_devices=known))
            ring.note(PlanCall.CYCLE, made, entry.plan, now=1.0)
            del claims, known, made
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 2 < ring.used - before < taken * 2


async def test_nothing_is_recorded_without_room_for_it() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2)
    await rig.cycle()
    assert entries(rig) == ()


async def test_one_that_is_larger_than_all_room_is_kept_alone() -> None:
    rig = recording(Rig())
    ring_of(rig).size = 1
    for number in range(2):
        rig.node("n1")
        rig.gang(f"g{number}", size=1)
        await rig.cycle()
    assert len(entries(rig)) == 1


async def test_neither_addresses_nor_credentials_are_recorded() -> None:
    rig = recording(Rig())
    rig.node("n1")
    secret = MetricsConf(
        MetricsType.ELASTICSEARCH,
        address="https://secret.example",
        index=Index(username="secret", password="secret"),
    )
    configuration = rig.parts.configuration
    conf = replace(configuration.policies.conf, metrics=secret)
    configuration.policies = replace(configuration.policies, conf=conf)
    rig.gang("g", size=1)
    await rig.cycle()
    [entry] = entries(rig)
    assert entry.conf.metrics == MetricsConf(MetricsType.ELASTICSEARCH)
    assert b"secret" not in _unzipped(packed(entry))


def _unzipped(content: bytes) -> bytes:
    return zlib.decompress(content.partition(b"\n")[2])
