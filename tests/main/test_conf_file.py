"""The configuration's file, followed through every way in which it changes."""

import asyncio
from pathlib import Path

import pytest

from app.main import conf_file
from app.main.conf_file import Stamp, follow, stamp, text_of

pytestmark = pytest.mark.real_time

PATIENCE_S = 20.0


class Following:
    """What is told of a file while it is followed."""

    def __init__(self, path: Path, *, seen: Stamp) -> None:
        self._texts: asyncio.Queue[str] = asyncio.Queue()
        self._task = asyncio.create_task(follow(path, self._texts.put_nowait, seen=seen))

    async def told(self) -> str:
        """The next text."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._texts.get()

    async def nothing_more(self) -> None:
        """Several looks later nothing was told."""
        await asyncio.sleep(10 * conf_file.LOOK_EVERY_S)
        assert self._texts.empty()
        self._task.cancel()


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf_file, "LOOK_EVERY_S", 0.01)


async def test_every_change_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.write_text("one")

    following = Following(path, seen=stamp(path))
    path.write_text("second")
    assert await following.told() == "second"
    path.unlink()
    path.write_text("third one")
    assert await following.told() == "third one"
    await following.nothing_more()


async def test_a_mounted_config_map_changes_by_its_link(tmp_path: Path) -> None:
    for version in ("v1", "v2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "conf").write_text(f"text of {version}")
    data = tmp_path / "..data"
    data.symlink_to("v1")
    path = tmp_path / "conf"
    path.symlink_to("..data/conf")

    following = Following(path, seen=stamp(path))
    fresh = tmp_path / "..new"
    fresh.symlink_to("v2")
    fresh.rename(data)
    assert await following.told() == "text of v2"
    await following.nothing_more()


async def test_what_changed_before_it_was_followed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.write_text("read at the start")
    seen = stamp(path)
    path.write_text("changed while everything was listed")

    following = Following(path, seen=seen)
    assert await following.told() == "changed while everything was listed"


def test_what_is_no_text_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.write_bytes(b"actions: \xff\x00")
    assert text_of(path) == "actions: \ufffd\x00"


async def test_what_cannot_be_read_is_tried_until_it_can(tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.mkdir()
    whole = tmp_path / "whole"
    whole.write_text("a file")

    following = Following(path, seen=None)
    await asyncio.sleep(5 * conf_file.LOOK_EVERY_S)
    path.rmdir()
    whole.rename(path)  # at once: a thread may be reading there
    assert await following.told() == "a file"
    await following.nothing_more()
