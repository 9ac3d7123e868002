"""What goes wrong with the processes of a rig; afterwards all is up again."""

from __future__ import annotations

import time

from tests.clusters.rig import Rig


def kill_extender(rig: Rig) -> None:
    rig.extender.kill()
    rig.restart_extender()


def stop_extender(rig: Rig, seconds: float) -> None:
    """Let it stand still for so long."""
    rig.extender.pause()
    time.sleep(seconds)
    rig.extender.resume()


def kill_scheduler(rig: Rig) -> None:
    rig.scheduler.kill()
    rig.start_scheduler()
