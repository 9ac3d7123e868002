"""Settings of rigs that several modules use, so that one rig serves them all."""

from __future__ import annotations

from pathlib import Path

from tests.clusters.rig import Setting
from tests.scale import FULL

ROOT = Path(__file__).resolve().parents[2]

BARRIER_S = 3.0
HASTY = Setting(flags=(f"--barrier-timeout={BARRIER_S}", "--planned-timeout=4", "--slot-timeout=4"))
"""Gives gangs little time to come together."""
SLOW = Setting(flags=("--kube-api-qps=120", "--kube-api-burst=10"))
"""Writes slowly, so that most kills come between the bindings of one gang."""
EVICTING = Setting(conf=ROOT / "scheduler-config" / "volcano-scheduler-preempting.conf")
"""Takes room back: the conf beside the shipped one."""
PARTIAL_S = 15 if FULL else 45
"""Longer than this no gang may be bound in part; `make proofs` runs one test at a time."""
