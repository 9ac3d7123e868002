"""What was learned survives a process, where the folder of the audit does."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import numpy as np
import pytest

from app.core.eta.run_times import BUCKETS, LEAST_RUNS, MOST_KEYS, Sketches
from app.main.adapters.learned_file import NAME, Learned, LearnedKeeper, read, write
from app.model.ids import QueueName
from app.service.cycle.eta.answers import MOST_OF_QUEUE, Kept
from app.service.cycle.eta.etas import Etas
from tests.service.rig import Rig

MIB = 1024 * 1024
KEPT = Kept(QueueName("a"), asked=1.0, p50=20.0, p90=30.0, started=25.0)


def taught() -> Etas:
    etas = Rig().planning.etas
    for _ in range(LEAST_RUNS):
        etas.run_times.sketches.feed(b"k" * 16, 60.0)
        etas.run_times.learned += 1
    etas.answers.take([KEPT])
    return etas


def keeper(etas: Etas, folder: Path | None, *, is_ours: bool = True) -> LearnedKeeper:
    return LearnedKeeper(etas, folder, lambda: is_ours)


def test_a_new_process_knows_what_the_one_before_learned(tmp_path: Path) -> None:
    before = taught()
    asyncio.run(keeper(before, tmp_path / "audit").save())
    after = Rig().planning.etas
    asyncio.run(keeper(after, tmp_path / "audit").load())
    old, new = before.run_times.sketches, after.run_times.sketches
    assert [(key, list(counts)) for key, counts in new.all()] == [
        (key, list(counts)) for key, counts in old.all()
    ]
    assert after.answers.all() == [KEPT]
    assert after.answers.errors(QueueName("a")) == before.answers.errors(QueueName("a"))


def test_at_its_end_a_process_writes_what_it_has_learned(tmp_path: Path) -> None:
    async def process() -> None:
        running = asyncio.ensure_future(keeper(taught(), tmp_path).run())
        await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(process())
    assert read(tmp_path).answers == [KEPT]


def test_another_process_with_the_folder_is_left_alone(tmp_path: Path) -> None:
    asyncio.run(keeper(taught(), tmp_path, is_ours=False).save())
    asyncio.run(keeper(taught(), None).save())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_again_while_nothing_is_learned(tmp_path: Path) -> None:
    etas = taught()
    keeps = keeper(etas, tmp_path)
    asyncio.run(keeps.save())
    (tmp_path / NAME).unlink()
    asyncio.run(keeps.save())
    assert not (tmp_path / NAME).exists()
    etas.run_times.learned += 1
    asyncio.run(keeps.save())
    assert (tmp_path / NAME).exists()


def test_a_damaged_file_is_put_aside_and_written_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAME).write_bytes(b"no database" * 1000)
    keeps = keeper(taught(), tmp_path)
    asyncio.run(keeps.load())
    asyncio.run(keeps.save())
    assert "learned run times cannot be read" in caplog.text
    asyncio.run(keeps.save())
    assert read(tmp_path).answers == [KEPT]
    assert (tmp_path / f"{NAME}.damaged").exists()


def test_all_that_is_ever_kept_is_less_than_a_megabyte(tmp_path: Path) -> None:
    dice = random.Random(1)
    sketches = [
        (dice.randbytes(16), np.array([dice.randrange(8) for _ in range(BUCKETS)], dtype=np.uint16))
        for _ in range(MOST_KEYS)
    ]
    write(tmp_path, Learned(sketches, [KEPT] * MOST_OF_QUEUE))
    assert (tmp_path / NAME).stat().st_size < MIB
    known = Sketches()
    known.take(read(tmp_path).sketches)
    assert len(known) == MOST_KEYS
