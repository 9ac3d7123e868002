"""The command line against a running sandbox, with its controllers and extender."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import root, standalone, vcctl
from tests.cli.stand import Done, invoke, pod
from tests.clusters.installation import ROOT
from tests.clusters.processes import wait_until
from tests.sandbox.started import KUBECTL, Started, started

pytestmark = pytest.mark.sandbox

PROGRAMS = {"pumice": root.app, "vcctl": vcctl.app, **standalone.PROGRAMS}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    log = tmp_path_factory.mktemp("sandbox") / "log"
    with started(log, "--nodes=2", "--cpu=4") as running:
        yield running


def run(sandbox: Started, program: str, *arguments: str) -> Done:
    """Run a program in this process."""
    config = Path(sandbox.said("kubeconfig"))
    return invoke(config, *arguments, program=PROGRAMS[program])


def test_a_job_is_waited_for_until_it_is_done(sandbox: Started) -> None:
    done = run(
        sandbox,
        "vsub",
        "-n",
        "good",
        "-r",
        "2",
        "-m",
        "2",
        "-c",
        "sleep 1",
        "--wait",
        "--timeout",
        "50s",
    )
    assert (done.code, done.out) == (0, "run job good successfully\n"), done.err
    assert done.err.splitlines()[-1] == "default/good: Completed (2 succeeded of 2)"
    [_, row] = run(sandbox, "vjobs").out.splitlines()
    assert row.split()[:5] == ["good", *row.split()[1:2], "Completed", "Batch", "2"]
    assert run(sandbox, "vcancel", "-n", "good").out == "cancel job good successfully\n"


def test_a_job_that_fails_is_code_1(sandbox: Started) -> None:
    flags = ["--name", "bad", "--command", "sh -c 'exit 3'", "--wait", "--timeout=50s"]
    done = run(sandbox, "pumice", "job", "run", *flags)
    assert done.code == 1
    assert done.err.splitlines()[-1].startswith(
        "Failed to run job: job default/bad ended Failed (1 failed of 1)"
    )
    assert run(sandbox, "vcctl", "job", "delete", "-N", "bad").code == 0


def phase(sandbox: Started, job: str) -> str:
    """As ``job list`` shows it; empty: there is no such job."""
    rows = run(sandbox, "vcctl", "job", "list", "--selector", job).out.splitlines()[1:]
    return rows[0].split()[2] if rows else ""


def pods(sandbox: Started, job: str) -> list[str]:
    """Their states as ``pod list`` shows them."""
    done = run(sandbox, "vcctl", "pod", "list", "-j", job)
    return [row.split()[2] for row in done.out.splitlines()[1:]]


@pytest.mark.parametrize("cpu", ["1", "3"], ids=["running", "pending"])
def test_a_job_is_suspended_and_resumed_and_deleted(cpu: str, sandbox: Started) -> None:
    begun = "Running" if cpu == "1" else "Pending"

    def until(wanted: str) -> None:
        what = f"the job {wanted or 'gone'}"
        wait_until(lambda: phase(sandbox, "paused") == wanted, timeout_s=30, what=what)

    amounts = ["-R", f"cpu={cpu}", "-L", f"cpu={cpu}"]
    flags = ["-n", "paused", "-r", "3", "-m", "3", "-c", "sleep 600", *amounts]
    assert run(sandbox, "vsub", *flags).code == 0
    until(begun)
    asked = "asked the controllers to suspend job paused\n"
    assert run(sandbox, "vcctl", "job", "suspend", "-N", "paused") == Done(0, asked, "")
    until("Aborted")
    assert pods(sandbox, "paused") == []
    asked = "asked the controllers to resume job paused\n"
    assert run(sandbox, "vresume", "-n", "paused") == Done(0, asked, "")
    until(begun)
    if begun == "Running":
        assert pods(sandbox, "paused") == ["Running"] * 3
    done = run(sandbox, "vcctl", "job", "delete", "-N", "paused")
    assert done.out == "delete job paused successfully\n"
    until("")
    wait_until(lambda: not pods(sandbox, "paused"), timeout_s=30, what="its pods gone")


def test_a_job_that_is_too_big_is_explained_with_numbers(sandbox: Started) -> None:
    amounts = ["-R", "cpu=3", "-L", "cpu=3"]
    flags = ["-N", "big", "-r", "4", "-m", "4", *amounts, "--wait", "--timeout", "2s"]
    done = run(sandbox, "vcctl", "job", "run", *flags)
    assert done.code == 4
    assert "timed out: default/big is Pending" in done.err
    url = sandbox.said("extender")
    told = run(sandbox, "pumice", "explain", "big", "--extender-url", url)
    assert told.code == 0
    assert f"Source:     the extender at {url}\n" in told.out
    assert "cpu: asked 12, free " in told.out
    from_objects = run(sandbox, "pumice", "explain", "big")
    assert from_objects.out.splitlines()[0] == told.out.splitlines()[0]
    assert run(sandbox, "vcctl", "job", "delete", "-N", "big").code == 0


def _shown(pattern: str, page: str) -> set[str]:
    """What README and the page of the documents show, each once."""
    texts = [(ROOT / path).read_text() for path in ("README.md", f"docs/{page}")]
    found = [re.findall(pattern, text, re.DOTALL) for text in texts]
    assert [len(blocks) for blocks in found] == [1, 1]
    return {block for blocks in found for block in blocks}


def test_the_manual_prints_what_is_printed(sandbox: Started) -> None:
    [manifests] = _shown(r"```yaml\n(apiVersion[^`]*name: job-2.*?)```", "first-jobs.md")
    [shown] = _shown(r"\$ pumice explain job-2\n(.*?)```", "why-it-waits.md")
    new_queue, waiting = manifests.split("---\n")
    holding = waiting.replace("job-2", "job-1").replace("cpu: 2", "cpu: 1")
    sandbox.kubectl("apply", "--filename=-", stdin=f"{new_queue}---\n{holding}")
    wait_until(lambda: pods(sandbox, "job-1") == ["Running"], timeout_s=20, what="job-1")
    sandbox.kubectl("apply", "--filename=-", stdin=waiting)

    def nameless(text: str) -> str:
        return re.sub(r"(?<=job-\d-)[0-9a-f]{8}-[-0-9a-f.]+", "UID", text)

    def printed() -> str:
        return nameless(run(sandbox, "pumice", "explain", "job-2").out).partition("\n\nAge")[0]

    wanted = nameless(shown).strip()
    try:
        wait_until(lambda: printed() == wanted, timeout_s=20, what="the answer of the manual")
    finally:
        assert printed() == wanted

    page = (ROOT / "docs" / "why-it-waits.md").read_text()
    [described] = re.findall(r"\$ kubectl describe podgroup job-2-\S+\n(.*?)```", page, re.DOTALL)
    lines = [" ".join(nameless(line).split()) for line in described.splitlines()]
    lines = [re.sub(r"^(Normal|Warning) Unschedulable |\.\.\.$", "", line) for line in lines]

    def missing() -> list[str]:
        told = " ".join(nameless(sandbox.kubectl("describe", "podgroup")).split())
        return [line for line in lines if line not in told]

    wait_until(lambda: not missing(), timeout_s=20, what="what the manual describes")
    sandbox.kubectl("delete", "vcjob", "job-1", "job-2")


def test_a_pod_whose_group_does_not_exist_is_explained(sandbox: Started) -> None:
    lonely = pod("lonely", annotations={"scheduling.k8s.io/group-name": "not-there"})
    lonely["spec"]["schedulerName"] = "volcano"
    sandbox.kubectl("create", "--filename=-", stdin=lonely)
    why = "default/not-there: waiting for the pod group to exist"
    wanted = f"pod default/lonely is SchedulingGated: {why}"

    def told(*flags: str) -> str:
        return run(sandbox, "pumice", "explain", "lonely", *flags).out.partition("\n")[0]

    url = sandbox.said("extender")
    wait_until(lambda: told("--extender-url", url) == wanted, timeout_s=30, what="its answer")
    wait_until(lambda: told() == wanted, timeout_s=20, what="the condition on the pod")
    sandbox.kubectl("delete", "pod", "lonely")


def test_kubectl_finds_the_plugin(sandbox: Started) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    done = subprocess.run(
        [KUBECTL, "pumice", "top", "queues"],
        env={**sandbox.environment(), "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.splitlines()
    assert head.split()[:4] == ["Name", "State", "Weight", "Share"]
    assert {"root", "default"} <= {row.split()[0] for row in rows}


def test_queues_are_made_and_changed(sandbox: Started) -> None:
    def row() -> list[str]:
        return run(sandbox, "vcctl", "queue", "get", "-n", "batch").out.splitlines()[1].split()

    assert run(sandbox, "vcctl", "queue", "create", "-n", "batch").code == 0
    update = ["-n", "batch", "-a", "update", "-w", "3"]
    assert run(sandbox, "vcctl", "queue", "operate", *update).code == 0
    wait_until(lambda: row()[:3] == ["batch", "3", "Open"], timeout_s=20, what="queue open")
