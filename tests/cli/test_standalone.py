"""``vsub vjobs vqueues vcancel vsuspend vresume``: ``-n`` is the name, ``-N`` the namespace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.standalone import PROGRAMS
from app.wire.kinds import COMMANDS, JOBS, QUEUES
from tests.cli.stand import Stand, group, job, queue

VSUB, VJOBS, VQUEUES = PROGRAMS["vsub"], PROGRAMS["vjobs"], PROGRAMS["vqueues"]


def test_vsub_submits(stand: Stand) -> None:
    said = stand.printed("-n", "a", "-N", "kube-public", "-c", "sleep 5", "-m", "1", program=VSUB)
    assert said == "run job a successfully\n"
    [made] = stand.all(JOBS)
    assert made["metadata"]["namespace"] == "kube-public"
    [container] = made["spec"]["tasks"][0]["template"]["spec"]["containers"]
    assert (container["image"], container["command"]) == ("busybox", ["sleep", "5"])
    assert made["spec"]["schedulerName"] == "volcano"


def test_vsub_takes_defaults_from_volcano_s_variables(stand: Stand) -> None:
    env = {
        "VOLCANO_DEFAULT_IMAGE": "nginx",
        "VOLCANO_DEFAULT_JOB_NAMESPACE": "kube-public",
        "VOLCANO_SCHEDULER_NAME": "other",
    }
    assert stand.run("-n", "a", program=VSUB, env=env).code == 0
    assert stand.run("-n", "b", "-i", "redis", program=VSUB, env=env).code == 0
    a, b = stand.all(JOBS)
    assert (a["metadata"]["namespace"], a["spec"]["schedulerName"]) == ("kube-public", "other")
    images = [
        made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] for made in (a, b)
    ]
    assert images == ["nginx", "redis"]


def test_vsub_needs_a_name(stand: Stand) -> None:
    why = "Failed to run job: job name cannot be left blank\n"
    assert stand.refusal(program=VSUB) == (2, why)


def test_vjobs_lists_and_shows(stand: Stand) -> None:
    stand.create(job("a"), job("b", schedulerName="other"))
    assert stand.printed(program=VJOBS) == stand.printed("job", "list")
    chosen = stand.printed("-S", "other", "--all-namespaces", program=VJOBS)
    assert [row.split()[1] for row in chosen.splitlines()[1:]] == ["b"]
    assert stand.printed("--selector", "b", "-o", "name", program=VJOBS) == (
        "job.batch.volcano.sh/b\n"
    )
    assert stand.printed("-N", "kube-system", program=VJOBS) == "No resources found\n"


def test_vjobs_shows_a_job_without_its_conditions(stand: Stand) -> None:
    stand.create(job("a"))
    stand.status(JOBS, "a", {"conditions": [{"status": "Pending"}]})
    full = stand.printed("job", "view", "-N", "a")
    assert "  Conditions:\n" in full
    shown = stand.printed("-n", "a", program=VJOBS)
    assert shown == full.replace(
        "  Conditions:\n    Status\tTransitionTime\n    Pending \t<none> \n", ""
    )
    missing = (3, 'Failed to view job: jobs.batch.volcano.sh "gone" not found\n')
    assert stand.refusal("-n", "gone", program=VJOBS) == missing


def test_vqueues_lists_and_shows(stand: Stand) -> None:
    stand.create(queue("a", weight=2), queue("b"), group("g", phase="Inqueue", queue="a"))
    stand.status(QUEUES, "a", {"state": "Open"})
    head = "Name                     Weight  State   Inqueue Pending Running Unknown \n"
    first = "a                        2       Open    1       0       0       0       \n"
    second = "b                        1               0       0       0       0       \n"
    assert stand.printed(program=VQUEUES) == head + first + second
    assert stand.printed("--name", "a", program=VQUEUES) == head + first
    missing = (3, 'Failed to get queue: queues.scheduling.volcano.sh "c" not found\n')
    assert stand.refusal("-n", "c", program=VQUEUES) == missing


def test_vcancel_deletes(stand: Stand) -> None:
    stand.create(job("a"))
    program = PROGRAMS["vcancel"]
    assert stand.printed("-n", "a", program=program) == "cancel job a successfully\n"
    assert stand.all(JOBS) == []
    assert stand.refusal("-n", "a", program=program)[0] == 3
    why = "Failed to cancel job: job name is mandatory to cancel a particular job\n"
    assert stand.refusal(program=program) == (2, why)


@pytest.mark.parametrize(("name", "action"), [("vsuspend", "AbortJob"), ("vresume", "ResumeJob")])
def test_vsuspend_and_vresume_are_commands(name: str, action: str, stand: Stand) -> None:
    stand.create(job("a"))
    stand.status(JOBS, "a", {"state": {"phase": "Running" if name == "vsuspend" else "Aborted"}})
    program, verb = PROGRAMS[name], name.removeprefix("v")
    said = stand.printed("-n", "a", "-N", "default", program=program)
    assert said == f"asked the controllers to {verb} job a\n"
    [command] = stand.all(COMMANDS)
    assert (command["action"], command["target"]["name"]) == (action, "a")
    assert stand.refusal("-n", "gone", program=program)[0] == 3
    why = f"Failed to {verb} job: job name is mandatory to {verb} a particular job\n"
    assert stand.refusal(program=program) == (2, why)


@pytest.mark.parametrize("name", [*PROGRAMS, "vcctl", "kubectl-pumice"])
def test_every_program_is_installed_under_its_name(name: str) -> None:
    program = Path(sys.executable).with_name(name)
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {name} ")
    assert "Exit codes: 0 done" in done.stdout
