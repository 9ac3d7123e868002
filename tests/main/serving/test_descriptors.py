"""Limits of open files: the soft one is raised, and ports share what there is."""

import subprocess
import sys

SCRIPT = """
import resource
from app.main.serving import descriptors

resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
descriptors.use_all()
print(*resource.getrlimit(resource.RLIMIT_NOFILE), *map(descriptors.connections, (512, 10_000)))
"""


def told(soft: int, hard: int) -> list[int]:
    script = SCRIPT.format(soft=soft, hard=hard)
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return [int(word) for word in printed.stdout.split()]


def test_a_process_uses_all_the_descriptors_that_it_may_have() -> None:
    assert told(soft=256, hard=4096) == [4096, 4096, 512, 1920]


def test_two_ports_leave_descriptors_for_the_rest_of_the_process() -> None:
    assert told(soft=1024, hard=1024) == [1024, 1024, 384, 384]
