"""Following the scheduler configuration's file.

A mounted ConfigMap changes by swapping a symbolic link, so the file is looked at twice a second by
its identity and times, whatever the file system can notify.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5

Stamp = tuple[int, int, int] | None


def stamp(path: Path) -> Stamp:
    """What changes when the file does; None while it cannot be seen."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def text_of(path: Path) -> str:
    """The file's text; bytes that are none are replaced, for the parser to complain of."""
    return path.read_text(encoding="utf-8", errors="replace")


async def follow(path: Path, changed: Callable[[str], None], *, seen: Stamp) -> None:
    """Call ``changed`` with the file's text whenever it is not as ``seen``; cancel to stop."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        now = stamp(path)
        if now is None or now == seen:
            continue
        try:
            text = await asyncio.to_thread(text_of, path)
        except OSError as error:
            log.warning("scheduler configuration unreadable", extra={"reason": str(error)})
            continue
        seen = now
        changed(text)
