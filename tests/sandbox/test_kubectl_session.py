"""A session with stock kubectl on `pumice sandbox`: what a user tries on a laptop.

The API server alone is tried in `apiserver.test_kubectl`; here kubelet, schedulers and extender run
beside it, in a process of their own. All tests share one sandbox and keep to their own names.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.sandbox.controlplane.processes import wait_until
from app.wire.documents import Document
from tests.sandbox.documents import cpu, pod
from tests.sandbox.started import KUBECTL, Started, started
from tests.webhooks.objects import job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed"),
]

LIMIT_S = 20.0


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    log = tmp_path_factory.mktemp("sandbox") / "log"
    with started(log, "--nodes=3", "--cpu=4", "--memory=16Gi", "--gpus=2") as running:
        yield running


def queue(name: str, **spec: object) -> Document:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def group(name: str, **spec: object) -> Document:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def member(name: str, of: str, **spec: object) -> Document:
    marks = {"annotations": {"scheduling.k8s.io/group-name": of}}
    return pod(name, metadata=marks, schedulerName="volcano", **spec)


def listed(*documents: Document) -> Document:
    return {"apiVersion": "v1", "kind": "List", "items": list(documents)}


def reaches(sandbox: Started, value: str, *arguments: str) -> None:
    """Wait until kubectl prints that; asking is what a user does, too."""
    last = ""

    def is_there() -> bool:
        nonlocal last
        last = sandbox.kubectl(*arguments)
        return last == value

    try:
        wait_until(is_there, timeout_s=LIMIT_S, what=" ".join(arguments))
    finally:
        assert last == value


def warning(sandbox: Started, *arguments: str, stdin: Document | None = None) -> str:
    """What kubectl warns of while it does as it is told."""
    done = subprocess.run(
        [KUBECTL, *arguments],
        input=json.dumps(stdin),
        env=sandbox.environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stderr


def phase(sandbox: Started, name: str, value: str) -> None:
    reaches(sandbox, value, "get", "pod", name, "-o", "jsonpath={.status.phase}")


def test_nodes_are_as_asked(sandbox: Started) -> None:
    lines = sandbox.kubectl("get", "nodes").splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["NAME", "STATUS"],
        ["node-00000", "Ready"],
        ["node-00001", "Ready"],
        ["node-00002", "Ready"],
    ]
    room = sandbox.kubectl("get", "node", "node-00000", "-o", "jsonpath={.status.allocatable}")
    found = json.loads(room)
    assert (found["cpu"], found["memory"], found["nvidia.com/gpu"]) == ("4", "16Gi", "2")


def test_a_gang_is_applied_and_runs_and_is_deleted(sandbox: Started) -> None:
    gang = listed(
        group("run", minMember=2, minResources={"cpu": "2"}),
        *(member(f"run-{number}", "run", resources=cpu("1")) for number in range(2)),
    )
    assert sandbox.kubectl("apply", "-f", "-", stdin=gang).splitlines() == [
        "podgroup.scheduling.volcano.sh/run created",
        "pod/run-0 created",
        "pod/run-1 created",
    ]
    sandbox.kubectl("wait", "--for=condition=Ready", "pod/run-0", "pod/run-1", "--timeout=20s")
    reaches(sandbox, "Running", "get", "podgroup", "run", "-o", "jsonpath={.status.phase}")
    described = sandbox.kubectl("describe", "pod", "run-0")
    assert "Successfully assigned default/run-0 to node-" in described
    assert sandbox.kubectl("delete", "-f", "-", stdin=gang).count("deleted") == 3
    assert sandbox.kubectl("get", "pods", "-l", "app=run") == ""


def test_kubectl_sees_the_end_of_a_pod_that_is_made_anew(sandbox: Started) -> None:
    """It asks again what it has deleted, and would wait for the end of the next one."""
    sandbox.kubectl("apply", "-f", "-", stdin=job(called="again"))
    for _ in range(6):
        phase(sandbox, "again-work-0", "Running")
        deleted = sandbox.kubectl("delete", "pod", "again-work-0", "--timeout=10s")
        assert deleted.startswith('pod "again-work-0"')
    sandbox.kubectl("delete", "job.batch.volcano.sh", "again")


def test_the_columns_of_podgroups_and_queues(sandbox: Started) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=queue("columns"))
    sandbox.kubectl("apply", "-f", "-", stdin=group("columns", minMember=3, queue="columns"))
    reaches(sandbox, "Inqueue", "get", "podgroup", "columns", "-o", "jsonpath={.status.phase}")
    head, row = sandbox.kubectl("get", "podgroups", "columns").splitlines()
    assert head.split() == ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE"]
    assert row.split()[:4] == ["columns", "Inqueue", "3", "0"]
    head, row = sandbox.kubectl("get", "pg", "columns", "-o", "wide").splitlines()
    assert head.split()[-1] == "QUEUE"
    assert row.split()[-1] == "columns"
    head, *rows = sandbox.kubectl("get", "queues").splitlines()
    assert head.split() == ["NAME", "PARENT"]
    assert {"default", "root", "columns"} <= {each.split()[0] for each in rows}
    assert sandbox.kubectl("get", "q", "columns", "-o", "name") == (
        "queue.scheduling.volcano.sh/columns\n"
    )


def test_why_a_gang_waits_is_told_with_numbers_by_describe(sandbox: Started) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=queue("small", capability={"cpu": "1"}))
    waiting = listed(
        group("waits", minMember=2, queue="small", minResources={"cpu": "2"}),
        member("waits-0", "waits", resources=cpu("1")),
    )
    sandbox.kubectl("apply", "-f", "-", stdin=waiting)
    wait_until(
        lambda: "cpu asked 2, free 1 of 1" in sandbox.kubectl("describe", "podgroup", "waits"),
        timeout_s=LIMIT_S,
        what="the reason in describe podgroup",
    )
    assert "SchedulingGated" in sandbox.kubectl("get", "pod", "waits-0")
    refused = sandbox.kubectl("logs", "waits-0", fails=True)
    assert refused == (
        "Error from server (BadRequest): pod waits-0 does not have a host assigned\n"
    )
    larger = '{"spec":{"capability":{"cpu":"2"}}}'
    sandbox.kubectl("patch", "queue", "small", "--type=merge", "-p", larger)
    sandbox.kubectl("apply", "-f", "-", stdin=member("waits-1", "waits", resources=cpu("1")))
    phase(sandbox, "waits-0", "Running")
    phase(sandbox, "waits-1", "Running")
    sandbox.kubectl("delete", "pod", "waits-0", "waits-1", "--grace-period=0", "--force")


def test_a_watch_prints_a_pod_from_its_creation_to_its_end(sandbox: Started) -> None:
    short = pod(
        "short", nodeSelector={"open": "yes"}, command=["sleep", "1"], restartPolicy="Never"
    )
    sandbox.kubectl("apply", "-f", "-", stdin=short)
    with subprocess.Popen(
        [KUBECTL, "get", "pods", "--watch", "--field-selector=metadata.name=short"],
        env=sandbox.environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as watching:
        try:
            assert watching.stdout is not None
            states = (line.split()[2] for line in watching.stdout)
            assert (next(states), next(states)) == ("STATUS", "Pending")
            sandbox.kubectl("label", "node", "node-00002", "open=yes")
            seen = list(itertools.takewhile(lambda state: state != "Completed", states))
        finally:
            watching.terminate()
    assert seen[-1] == "Running"


def test_logs_are_what_the_command_echoes(sandbox: Started) -> None:
    sandbox.kubectl("run", "says", "--image=busybox", "--", "sh", "-c", "echo hello; sleep 600")
    phase(sandbox, "says", "Running")
    assert sandbox.kubectl("logs", "says").splitlines()[0] == "hello"
    assert 'pods "nobody" not found' in sandbox.kubectl("logs", "nobody", fails=True)


@pytest.mark.parametrize("verb", ["exec", "attach", "port-forward"])
def test_what_needs_a_container_is_refused_with_the_reason(sandbox: Started, verb: str) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=pod("hollow"))
    phase(sandbox, "hollow", "Running")
    arguments = {"exec": ["--", "ls"], "attach": [], "port-forward": ["8080:80"]}[verb]
    refused = sandbox.kubectl(verb, "hollow", *arguments, fails=True)
    assert "pod hollow has no containers to" in refused
    assert "the sandbox only simulates them" in refused


def test_objects_are_labelled_annotated_patched_and_edited(
    sandbox: Started, tmp_path: Path
) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=queue("edited"))
    sandbox.kubectl("label", "queue", "edited", "team=a")
    sandbox.kubectl("annotate", "queue", "edited", "note=b")
    sandbox.kubectl("patch", "queue", "edited", "--type=merge", "-p", '{"spec":{"weight":2}}')
    editor = tmp_path / "editor"
    editor.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('weight: 2', 'weight: 7'))\n"
    )
    editor.chmod(0o755)
    done = subprocess.run(
        [KUBECTL, "edit", "queue", "edited"],
        env={**sandbox.environment(), "KUBE_EDITOR": str(editor)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == "queue.scheduling.volcano.sh/edited edited\n"
    found = json.loads(sandbox.kubectl("get", "queue", "edited", "-o", "json"))
    assert found["metadata"]["labels"] == {"team": "a"}
    assert found["metadata"]["annotations"]["note"] == "b"
    assert found["spec"]["weight"] == 7


def test_a_workload_is_scaled_and_says_that_nobody_tends_it(sandbox: Started) -> None:
    warned = warning(sandbox, "create", "deployment", "web", "--image=nginx", "--replicas=2")
    assert "Warning: the embedded sandbox stores deployments, but makes no pods" in warned
    assert sandbox.kubectl("scale", "deployment", "web", "--replicas=5") == (
        "deployment.apps/web scaled\n"
    )
    replicas = sandbox.kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")
    assert replicas == "5"


def test_cordoned_and_tainted_nodes_take_no_pods(sandbox: Started) -> None:
    sandbox.kubectl("cordon", "node-00000")
    sandbox.kubectl("taint", "node", "node-00001", "team=b:NoSchedule")
    try:
        names = [f"picky-{number}" for number in range(3)]
        sandbox.kubectl("apply", "-f", "-", stdin=listed(*(pod(name) for name in names)))
        for name in names:
            phase(sandbox, name, "Running")
            place = ["get", "pod", name, "-o", "jsonpath={.spec.nodeName}"]
            assert sandbox.kubectl(*place) == "node-00002"
    finally:
        sandbox.kubectl("uncordon", "node-00000")
        sandbox.kubectl("taint", "node", "node-00001", "team-")
    assert "SchedulingDisabled" not in sandbox.kubectl("get", "nodes")


def test_a_mistake_in_a_manifest_is_named(sandbox: Started) -> None:
    wrong = queue("wrong", wieght=3)
    refused = sandbox.kubectl("apply", "-f", "-", stdin=wrong, fails=True)
    assert 'unknown field "spec.wieght"' in refused
    refused = sandbox.kubectl("apply", "-f", "-", stdin=queue("wrong", weight=-1), fails=True)
    assert "spec.weight in body should be greater than or equal to 1" in refused


def test_a_volume_without_a_claim_is_taken_with_a_warning(sandbox: Started) -> None:
    warned = warning(
        sandbox, "apply", "-f", "-", stdin=job(called="roomy", volumes=[{"mountPath": "/scratch"}])
    )
    assert "spec.volumes[0]: either VolumeClaim or VolumeClaimName must be specified" in warned
    sandbox.kubectl("delete", "vcjob", "roomy")


def test_who_deletes_a_queue_is_told_who_still_names_it(sandbox: Started) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=queue("named"))
    sandbox.kubectl("apply", "-f", "-", stdin=job(called="inside", queue="named"))
    try:
        sandbox.kubectl("wait", "vcjob/inside", "--for=jsonpath={.status.state.phase}=Running")
        told = warning(sandbox, "delete", "queue", "named")
        assert "PodGroups that still name queue named: 1; their running pods go on" in told
    finally:
        sandbox.kubectl("delete", "vcjob", "inside")


def test_the_default_namespace_stays_and_others_go_with_their_pods(sandbox: Started) -> None:
    refused = sandbox.kubectl("delete", "namespace", "default", fails=True)
    assert 'namespaces "default" is forbidden: this namespace may not be deleted' in refused
    sandbox.kubectl("create", "namespace", "other")
    sandbox.kubectl("run", "p", "-n", "other", "--image=busybox")
    sandbox.kubectl("delete", "namespace", "other", "--timeout=20s")
    assert "other" not in sandbox.kubectl("get", "namespaces")


def test_kinds_are_explained_and_listed(sandbox: Started) -> None:
    assert "below it none is bound" in sandbox.kubectl("explain", "podgroup.spec.minMember")
    kinds = sandbox.kubectl("api-resources", "--api-group=scheduling.volcano.sh")
    assert {line.split()[0] for line in kinds.splitlines()[1:]} == {"podgroups", "queues"}
