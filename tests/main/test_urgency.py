"""Niceness and turns: changed where that is permitted, and no reason not to start where not."""

import ctypes
import os
import platform
import re
import subprocess
import sys

import pytest

from app.main.urgency import be_urgent

SHOW_TURNS = """
import os
from pathlib import Path
from app.main.urgency import be_urgent
os.nice(-1)
be_urgent(4)
print(Path("/proc/self/sched").read_text())
"""


class Kernel:
    """Stands for the C library; ``result`` is what its system calls give."""

    def __init__(self, result: int) -> None:
        self.result = result
        self.asked: list[int] = []

    def __call__(self, _name: None, *, use_errno: bool) -> "Kernel":
        assert use_errno
        return self

    def syscall(self, number: ctypes.c_long, *_rest: object) -> int:
        self.asked.append(number.value)
        return self.result


@pytest.fixture
def niceness(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the niceness was changed by."""
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    return asked


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    found = Kernel(0)
    monkeypatch.setattr(ctypes, "CDLL", found)
    return found


def test_it_is_lowered_from_what_it_was(niceness: list[int], kernel: Kernel) -> None:
    be_urgent(5)
    assert niceness == [-5]
    assert len(kernel.asked) == 1


def test_without_urgency_all_stays(niceness: list[int], kernel: Kernel) -> None:
    be_urgent(0)
    assert not niceness
    assert not kernel.asked


def test_without_the_right_to_it_all_stays(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_by: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "nice", refuse)
    with caplog.at_level("INFO"):
        be_urgent(5)
    assert "not permitted" in caplog.text
    assert not kernel.asked


@pytest.mark.usefixtures("niceness")
def test_a_kernel_that_grants_no_short_turns_is_no_failure(
    kernel: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    kernel.result = -1
    with caplog.at_level("INFO"):
        be_urgent(5)
    assert "no short turns" in caplog.text


def test_on_other_processors_the_niceness_is_all(
    monkeypatch: pytest.MonkeyPatch, niceness: list[int], kernel: Kernel
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    be_urgent(5)
    assert niceness == [-5]
    assert not kernel.asked


def test_turns_are_short_where_the_kernel_knows_of_them() -> None:
    if tuple(map(int, platform.release().split(".")[:2])) < (6, 12):
        pytest.skip("this kernel's turns are all of one length")
    done = subprocess.run(
        [sys.executable, "-c", SHOW_TURNS], check=False, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip("not permitted to go before others, or not shown how long turns are")
    assert re.search(r"^se\.slice\s*:\s*100000$", done.stdout, re.MULTILINE)
