"""The command line against the real API server: what it accepts, refuses and prints there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.stand import Done, Object, group, invoke, job
from tests.clusters.controlplane import ControlPlane

pytestmark = pytest.mark.real

QUEUE = "from-the-command-line"


class Shell:
    """The command line, pointed at a namespace of the real control plane."""

    def __init__(self, config: Path, namespace: str) -> None:
        self._config = config
        self.namespace = namespace

    def run(self, *arguments: str, stdin: str | None = None) -> Done:
        return invoke(self._config, *arguments, stdin=stdin)

    def job(self, verb: str, *arguments: str, stdin: str | None = None) -> Done:
        return self.run("job", verb, "-n", self.namespace, *arguments, stdin=stdin)


@pytest.fixture
def shell(installed: ControlPlane, namespace: str) -> Iterator[Shell]:
    made = Shell(Path(installed.kubeconfig), namespace)
    yield made
    made.run("queue", "delete", "-n", QUEUE)


def test_jobs_come_and_go(shell: Shell) -> None:
    item: Object = job("of-a-file")
    item["metadata"]["namespace"] = shell.namespace
    assert shell.job("run", "-N", "of-flags", "-r", "3", "-m", "2").code == 0
    made = shell.job("run", "-f", "-", stdin=yaml.safe_dump(item))
    assert (made.code, made.out) == (0, "run job of-a-file successfully\n"), made.err
    listed = shell.job("list")
    assert [row.split()[0] for row in listed.out.splitlines()] == ["Name", "of-a-file", "of-flags"]
    assert shell.job("view", "-N", "of-flags").out.startswith("Name:       \tof-flags\n")
    for verb in ("suspend", "resume"):
        asked = f"asked the controllers to {verb} job of-flags\n"
        done = shell.job(verb, "-N", "of-flags")
        assert (done.code, done.out) == (0, asked)
    assert shell.job("delete", "-N", "of-flags").out == "delete job of-flags successfully\n"
    assert [row.split()[0] for row in shell.job("list", "-o", "wide").out.splitlines()] == [
        "Name",
        "of-a-file",
    ]


def test_commands_belong_to_their_job(shell: Shell, installed: ControlPlane) -> None:
    shell.job("run", "-N", "a")
    assert shell.job("suspend", "-N", "a").code == 0
    path = f"/apis/bus.volcano.sh/v1alpha1/namespaces/{shell.namespace}/commands"
    [command] = installed.api.request("GET", path)["items"]
    assert command["action"] == "AbortJob"
    assert command["target"]["name"] == "a"
    assert command["metadata"]["ownerReferences"][0]["controller"] is True


def test_refusals_are_one_line(shell: Shell) -> None:
    for arguments, code in (
        (["view", "-N", "gone"], 3),
        (["suspend", "-N", "gone"], 3),
        (["delete", "-N", "gone"], 3),
        (["run", "-N", "Bad_Name"], 6),
        (["run", "-N", "a", "--replicas", "-1"], 6),
    ):
        done = shell.job(*arguments)
        assert (done.code, done.out) == (code, ""), done.err
        assert done.err.count("\n") == 1
    assert shell.job("run", "-N", "a").code == 0
    assert shell.job("run", "-N", "a").err.endswith('jobs.batch.volcano.sh "a" already exists\n')


def test_a_wait_in_vain_is_code_4(shell: Shell) -> None:
    done = shell.job("run", "-N", "a", "--wait", "--timeout", "1s")
    assert (done.code, done.out) == (4, "run job a successfully\n")
    assert done.err.splitlines()[0] == f"{shell.namespace}/a: Pending"


def test_queues_come_and_go(shell: Shell) -> None:
    limits = ["--capability", "cpu=4,memory=8Gi", "--deserved", "cpu=2"]
    made = Done(0, f"create queue {QUEUE} successfully\n", "")
    assert shell.run("queue", "create", "-n", QUEUE, "-w", "2", *limits) == made
    assert shell.run("queue", "operate", "-n", QUEUE, "-a", "update", "-w", "5").code == 0
    assert shell.run("queue", "operate", "-n", QUEUE, "-a", "close").code == 0
    row = shell.run("queue", "get", "-n", QUEUE).out.splitlines()[1]
    assert row.split()[:2] == [QUEUE, "5"]
    shares = yaml.safe_load(shell.run("top", "queues", "-o", "yaml").out)
    [mine] = [share for share in shares if share["name"] == QUEUE]
    assert mine["capability"] == {"cpu": "4", "memory": "8Gi"}
    assert (mine["deserved"], mine["share"]) == ({"cpu": "2"}, 0.0)
    gone = Done(0, f"delete queue {QUEUE} successfully\n", "")
    assert shell.run("queue", "delete", "-n", QUEUE) == gone
    assert shell.run("queue", "get", "-n", QUEUE).code == 3


def test_a_group_is_explained_by_its_conditions(shell: Shell, installed: ControlPlane) -> None:
    against = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "3/3 tasks in gang unschedulable",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
        "transitionID": "1",
    }
    item = group("g", phase="Inqueue", conditions=[against])
    item["metadata"]["namespace"] = shell.namespace
    installed.api.create(item)
    done = shell.run("explain", "g", "-n", shell.namespace, "-o", "json")
    shown = yaml.safe_load(done.out)
    assert (shown["subject"], shown["phase"]) == (f"podgroup {shell.namespace}/g", "Inqueue")
    assert (shown["queue"], shown["podGroup"]) == ("default", f"{shell.namespace}/g")
    assert shown["conditions"]
