"""A real-time priority where that is permitted, lost by who does not pause."""

import errno
import subprocess
import sys

import pytest

PERMITTED = (
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))",
        ],
        check=False,
        capture_output=True,
    ).returncode
    == 0
)

SCRIPT = """
import os, resource, time
{before}
from app.front.priority import go_first
print(go_first({urgency}), os.sched_getscheduler(0) == os.SCHED_RR)
until = time.process_time() + {busy_s}
while time.process_time() < until:
    pass
print(os.sched_getscheduler(0) == os.SCHED_RR)
"""


def words(urgency: int, busy_s: float, *, before: str = "") -> list[str]:
    script = SCRIPT.format(urgency=urgency, busy_s=busy_s, before=before)
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.split()


def test_none_is_taken_unasked() -> None:
    assert words(0, 0.0) == ["False", "False", "False"]


def test_it_is_taken_where_permitted_and_no_failure_where_not() -> None:
    assert words(20, 0.0) == [str(PERMITTED)] * 3


def absent(*_: object) -> None:
    raise OSError(errno.ENOSYS, "not there")


@pytest.mark.parametrize(
    "before",
    [
        "resource.setrlimit(resource.RLIMIT_RTTIME, (50_000, 50_000))",
        "from tests.front.test_priority import absent; os.sched_setscheduler = absent",
    ],
    ids=["a lower limit", "a system without"],
)
def test_it_is_no_failure_where_there_is_none(before: str) -> None:
    assert words(20, 0.0, before=before) == ["False", "False", "False"]


@pytest.mark.skipif(not PERMITTED, reason="nobody may have a real-time priority here")
def test_who_does_not_pause_loses_it() -> None:
    assert words(20, 2.5) == ["True", "True", "False"]
