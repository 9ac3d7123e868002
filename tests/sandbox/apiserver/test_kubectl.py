"""Stock kubectl against the embedded API server. Skipped where kubectl is not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
import yaml

from app.sandbox.apiserver.server import ApiServer
from app.sandbox.assembly import kubeconfig
from app.sandbox.clock import WallClock
from tests.sandbox.documents import WIDGET_CRD, at, bind_pod, node, pod, widget
from tests.sandbox.serving import serving

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


class Kubectl(Protocol):
    def __call__(self, *arguments: str, stdin: object = None, fails: bool = False) -> str: ...


@pytest.fixture
def server() -> ApiServer:
    server = ApiServer(clock=WallClock(), crds=[WIDGET_CRD])
    server.create(node("n1"))
    return server


@pytest.fixture
def kubectl(server: ApiServer, tmp_path: Path) -> Iterator[Kubectl]:
    with serving(server) as url:
        config = tmp_path / "kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)))

        def call(*arguments: str, stdin: object = None, fails: bool = False) -> str:
            done = subprocess.run(
                [str(KUBECTL), *arguments],
                input=json.dumps(stdin) if stdin is not None else None,
                env={"KUBECONFIG": str(config), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert (done.returncode != 0) is fails, done.stderr
            return done.stderr if fails else done.stdout

        yield call


def test_apply_is_idempotent_and_validated_by_the_server(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=widget()) == "widget.example.com/w created\n"
    assert kubectl("apply", "-f", "-", stdin=widget()) == "widget.example.com/w unchanged\n"
    bigger = widget(spec={"size": 5})
    assert kubectl("apply", "-f", "-", stdin=bigger) == "widget.example.com/w configured\n"
    odd = widget(spec={"size": 5, "odd": 1})
    assert 'unknown field "spec.odd"' in kubectl("apply", "-f", "-", stdin=odd, fails=True)
    wrong = widget(spec={"size": 0})
    refused = kubectl("apply", "-f", "-", stdin=wrong, fails=True)
    assert "spec.size in body should be greater than or equal to 1" in refused


def test_apply_removes_what_left_the_manifest(kubectl: Kubectl, server: ApiServer) -> None:
    kubectl("apply", "-f", "-", stdin=pod(metadata={"labels": {"a": "b", "c": "d"}}))
    kubectl("apply", "-f", "-", stdin=pod(metadata={"labels": {"a": "b"}}))
    found = server.store.get("/pods", at("p"))
    assert found is not None
    assert found["metadata"]["labels"] == {"a": "b"}


def test_server_side_apply(kubectl: Kubectl) -> None:
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=pod())
    assert applied == "pod/p serverside-applied\n"


def test_get_in_all_its_forms(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=widget())
    kubectl("apply", "-f", "-", stdin=pod(metadata={"labels": {"app": "x"}}))
    assert kubectl("get", "wg").split()[:5] == ["NAME", "SIZE", "AGE", "w", "1"]
    assert kubectl("get", "pods", "-o", "name") == "pod/p\n"
    assert "NOMINATED NODE" in kubectl("get", "pods", "-o", "wide")
    assert "default" in kubectl("get", "pods", "-A", "-l", "app=x")
    assert kubectl("get", "pods", "-l", "app=y") == ""
    selected = kubectl("get", "pods", "--field-selector", "status.phase=Pending", "-o", "name")
    assert selected == "pod/p\n"
    assert json.loads(kubectl("get", "pod", "p", "-o", "json"))["kind"] == "Pod"
    assert yaml.safe_load(kubectl("get", "pod", "p", "-o", "yaml"))["kind"] == "Pod"
    assert kubectl("get", "pod", "p", "-o", "jsonpath={.status.phase}") == "Pending"
    assert "pods/p" in kubectl("get", "all").replace("pod/p", "pods/p")


def test_label_annotate_and_patch(kubectl: Kubectl, server: ApiServer) -> None:
    kubectl("apply", "-f", "-", stdin=pod())
    kubectl("label", "pod", "p", "a=b")
    kubectl("annotate", "pod", "p", "c=d")
    kubectl("patch", "pod", "p", "-p", '{"spec":{"containers":[{"name":"c","image":"new"}]}}')
    kubectl(
        "patch",
        "pod",
        "p",
        "--type=json",
        "-p",
        '[{"op":"add","path":"/metadata/labels/x","value":"y"}]',
    )
    found = server.store.get("/pods", at("p"))
    assert found is not None
    assert found["metadata"]["labels"] == {"a": "b", "x": "y"}
    assert found["metadata"]["annotations"]["c"] == "d"
    assert found["spec"]["containers"][0]["image"] == "new"


def test_describe_shows_events(kubectl: Kubectl, server: ApiServer) -> None:
    created = server.create(pod())
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {
                "kind": "Pod",
                "name": "p",
                "namespace": "default",
                "uid": created["metadata"]["uid"],
            },
            "reason": "FailedScheduling",
            "message": "0/1 nodes are available",
            "type": "Warning",
        }
    )
    assert "0/1 nodes are available" in kubectl("describe", "pod", "p")
    assert "FailedScheduling" in kubectl("events")
    assert "FailedScheduling" in kubectl("get", "events")
    assert "FailedScheduling" in kubectl("get", "events", "--sort-by=.lastTimestamp")
    assert "Allocated resources" in kubectl("describe", "node", "n1")


def test_delete_waits_for_the_object_to_go(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=pod())
    assert kubectl("delete", "pod", "p") == 'pod "p" deleted\n'
    assert "NotFound" in kubectl("get", "pod", "p", fails=True)


def test_delete_with_force_removes_a_bound_pod(kubectl: Kubectl, server: ApiServer) -> None:
    server.create(pod())
    bind_pod(server, "p", "n1")
    kubectl("delete", "pod", "p", "--grace-period=0", "--force")
    assert server.store.get("/pods", at("p")) is None


def test_wait_for_a_condition(kubectl: Kubectl) -> None:
    name = "crd/widgets.example.com"
    assert "condition met" in kubectl("wait", "--for=condition=Established", name)
    assert "timed out" in kubectl(
        "wait", "--for=jsonpath={.status.phase}=Gone", "node/n1", "--timeout=1s", fails=True
    )


def test_a_watch_prints_what_happens(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=pod())
    printed = kubectl("get", "pods", "--watch", "--request-timeout=1s")
    assert printed.split()[5:8] == ["p", "0/1", "Pending"]


def test_a_definition_is_served_as_soon_as_it_is_applied(kubectl: Kubectl) -> None:
    text = json.dumps(WIDGET_CRD).replace("widget", "gadget").replace("Widget", "Gadget")
    kubectl("apply", "-f", "-", stdin=json.loads(text.replace('"wg"', '"gg"')))
    gadget = {**widget(), "kind": "Gadget"}
    assert kubectl("apply", "-f", "-", stdin=gadget) == "gadget.example.com/w created\n"
    assert kubectl("get", "gg", "-o", "name") == "gadget.example.com/w\n"


def test_explain_reads_the_schema_of_a_definition(kubectl: Kubectl) -> None:
    assert "size" in kubectl("explain", "widget.spec")


def test_cordon_and_uncordon(kubectl: Kubectl) -> None:
    kubectl("cordon", "n1")
    assert "SchedulingDisabled" in kubectl("get", "nodes")
    kubectl("uncordon", "n1")
    assert "SchedulingDisabled" not in kubectl("get", "nodes")


@pytest.mark.parametrize(
    "words",
    [
        ["namespace", "x"],
        ["serviceaccount", "x"],
        ["configmap", "x", "--from-literal=a=b"],
        ["secret", "generic", "x", "--from-literal=a=b"],
        ["priorityclass", "x", "--value=-5", "--description=low"],
        ["quota", "x", "--hard=cpu=1,pods=2"],
        ["poddisruptionbudget", "x", "--selector=app=a", "--min-available=50%"],
        ["deployment", "x", "--image=nginx", "--replicas=2"],
        ["job", "x", "--image=busybox", "--", "sleep", "1"],
        ["cronjob", "x", "--image=busybox", "--schedule=* * * * *", "--", "sleep", "1"],
        ["service", "clusterip", "x", "--tcp=80:8080"],
        ["service", "nodeport", "x", "--tcp=80:http", "--node-port=30080"],
        ["service", "externalname", "x", "--external-name=example.com"],
        ["role", "x", "--verb=get", "--resource=pods", "--resource-name=a"],
        ["rolebinding", "x", "--role=r", "--user=u", "--serviceaccount=default:s"],
        ["clusterrole", "x", "--verb=get", "--non-resource-url=/logs"],
        ["clusterrole", "x", "--aggregation-rule=a=b"],
        ["clusterrolebinding", "x", "--clusterrole=c", "--group=g"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_create_makes_what_a_dry_run_shows(kubectl: Kubectl, words: list[str]) -> None:
    """These go over the wire as protobuf."""
    head, tail = words, list[str]()
    if "--" in words:
        head, tail = words[: words.index("--")], words[words.index("--") :]
    shown = json.loads(kubectl("create", *head, "--dry-run=client", "-o", "json", *tail))
    kubectl("create", *words)
    found = json.loads(kubectl("get", words[0], "x", "-o", "json"))
    for document in (shown, found):
        document.pop("status", None)
    assert_contains(found, shown)


def test_a_cron_job_can_be_run_by_hand(kubectl: Kubectl) -> None:
    kubectl("create", "cronjob", "cj", "--image=busybox", "--schedule=* * * * *", "--", "date")
    cron_job = json.loads(kubectl("get", "cronjob", "cj", "-o", "json"))
    kubectl("create", "job", "now", "--from=cronjob/cj")
    job = json.loads(kubectl("get", "job", "now", "-o", "json"))
    assert job["metadata"]["ownerReferences"][0]["uid"] == cron_job["metadata"]["uid"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["date"]


def assert_contains(found: object, wanted: object) -> None:
    """Everything that is wanted and says something is there; defaults may have come on top."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict)
        for key, value in wanted.items():
            if value not in (None, {}, ""):
                assert key in found, key
                assert_contains(found[key], value)
    elif isinstance(wanted, list):
        assert isinstance(found, list)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_contains(one, other)
    else:
        assert found == wanted


def test_everybody_may_do_everything(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "delete", "nodes") == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert "does not allow this method" in kubectl("get", "--raw", reviews, fails=True)


def test_drain_evicts(kubectl: Kubectl, server: ApiServer) -> None:
    server.create(pod())
    bind_pod(server, "p", "n1")
    arguments = ["drain", "n1", "--force", "--grace-period=0", "--timeout=5s"]
    assert "pod/p evicted" in kubectl(*arguments)
    assert server.store.get("/pods", at("p")) is None
