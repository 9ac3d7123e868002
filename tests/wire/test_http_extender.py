"""What the plugin extender tells its server, and how the answers are read."""

import json
from typing import Any

import msgspec
import pytest

from app.model.amounts import amounts
from app.model.ids import NodeName, PodUid
from app.wire import http_extender as wire
from app.wire.errors import DecodeError
from tests.builders import GIB, make_amounts, make_gang, make_node, make_pod, make_queue, make_shape


def plain(value: Any) -> Any:
    return json.loads(wire.encode(value))


def test_a_task_has_the_fields_of_volcano() -> None:
    pod = make_pod("p", shape=make_shape(cpu=1500, memory=GIB), priority=7, labels={"a": "b"})
    body = plain(wire.ToldTask(pod, "default/g", status=wire.ALLOCATED, node=NodeName("n")).body())
    manifest = body.pop("Pod")
    resources = {"MilliCPU": 1500, "Memory": GIB, "ScalarResources": None, "MaxTaskNum": 1}
    assert body == {
        "UID": pod.uid,
        "Job": "default/g",
        "Name": "p",
        "Namespace": "default",
        "TaskRole": "",
        "Resreq": resources,
        "InitResreq": resources,
        "NodeName": "n",
        "Status": 2,
        "Priority": 7,
        "Preemptable": True,
        "BestEffort": False,
        "SchGated": False,
        "RevocableZone": "",
    }
    assert manifest["metadata"]["labels"] == {"a": "b"}
    assert manifest["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "1500m",
        "memory": "1Gi",
    }


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 1),
        ({"node": "n"}, 16),
        ({"node": "n", "phase": "Running"}, 32),
        ({"node": "n", "phase": "Running", "deleting": True}, 64),
        ({"node": "n", "phase": "Succeeded"}, 128),
        ({"node": "n", "phase": "Failed"}, 256),
        ({"node": "n", "phase": "Unknown"}, 512),
    ],
)
def test_statuses_are_volcanos_numbers(fields: dict[str, Any], status: int) -> None:
    assert wire.ToldTask(make_pod("p", **fields), "").told_status == status


def test_the_manifest_goes_along_as_it_is() -> None:
    told = wire.ToldTask(make_pod("p"), "", manifest=msgspec.Raw(b'{"kind":"Pod","spec":{}}'))
    assert plain(told.body())["Pod"] == {"kind": "Pod", "spec": {}}


def test_a_node_has_what_is_idle_and_its_tasks_by_name() -> None:
    node = make_node("n", cpu=8000, memory=32 * GIB, extra={"example.com/card": 4})
    task = wire.ToldTask(make_pod("p", node="n"), "").body()
    body = plain(
        wire.node_body(
            node,
            allocatable=node.allocatable,
            used=make_amounts(cpu=3000, pods=1, **{"example.com/card": 1}),
            releasing=make_amounts(cpu=1000),
            tasks=[task],
        )
    )
    assert body["Idle"] == {
        "MilliCPU": 5000,
        "Memory": 32 * GIB,
        "ScalarResources": {"example.com/card": 3000},
        "MaxTaskNum": 109,
    }
    assert body["Releasing"]["MilliCPU"] == 1000
    assert body["State"] == {"Phase": 1, "Reason": ""}
    assert set(body["Tasks"]) == {"default/p"}
    assert body["Node"]["metadata"]["labels"] == dict(node.labels)
    assert body["Node"]["status"]["allocatable"]["cpu"] == "8"


def test_a_job_has_its_tasks_by_status() -> None:
    gang = make_gang("g", min_member=2, role_minimum={"worker": 2})
    waits, runs = make_pod("a"), make_pod("b", node="n", phase="Running")
    tasks = [wire.ToldTask(pod, gang.key) for pod in (waits, runs)]
    least = make_amounts(cpu=2000)
    body = plain(
        wire.job_body(gang, None, tasks, allocated=(), request=make_amounts(cpu=2000), least=least)
    )
    assert (body["UID"], body["MinAvailable"], body["Queue"]) == ("default/g", 2, "default")
    assert {s: set(found) for s, found in body["TaskStatusIndex"].items()} == {
        "1": {waits.uid},
        "32": {runs.uid},
    }
    assert body["TaskMinAvailable"] == {"worker": 2}
    assert body["PodGroup"]["Spec"]["MinResources"] == {"cpu": "2"}
    assert body["TotalRequest"]["MilliCPU"] == 2000


def test_a_queue_has_its_limits_and_what_it_holds() -> None:
    queue = make_queue("q", capability=make_amounts(cpu=4500, memory=3), weight=3)
    body = plain(wire.queue_body(queue, amounts({"cpu": 1000})))
    assert (body["Name"], body["Weight"], body["State"]) == ("q", 3, queue.state.value)
    assert body["Capability"] == {"cpu": "4500m", "memory": "3"}
    assert body["Allocated"] == {"cpu": "1"}
    assert body["Queue"]["Spec"]["Capability"] == body["Capability"]


def test_amounts_that_no_binary_unit_tells_are_told_in_bytes() -> None:
    queue = make_queue("q", capability=make_amounts(memory=3 * GIB + 1))
    assert plain(wire.queue_body(queue, ()))["Capability"] == {"memory": str(3 * GIB + 1)}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("{}", ""),
        ('{"code": 0, "status": ""}', ""),
        ('{"code": 2, "status": "no"}', "no"),
        ('{"status": "no"}', "no"),
        ('{"code": 2}', ""),
        ('{"errorMessage": "no"}', "no"),
        ('{"status": null}', ""),
        ('{"status": []}', ""),
        ('{"status": [{"Code": 0}, {"Code": 2, "Reason": "no"}]}', ""),
        ('{"status": [{"code": 0}, {"code": 2, "reason": "no"}, {"code": 3}]}', "no, code 3"),
    ],
)
def test_refusals_are_read(answer: str, text: str) -> None:
    assert wire.read_refusal(answer.encode()) == text


def test_scores_are_read() -> None:
    assert wire.read_scores(b'{"nodeScore": {"a": 1, "b": 2.5}}') == {"a": 1.0, "b": 2.5}
    assert wire.read_scores(b'{"nodeScore": {}}') == {}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("{}", "nodeScore is missing"),
        ('{"errorMessage": "no", "nodeScore": {}}', "no"),
        ('{"nodeScore": {"a": "b"}}', "Expected `float`"),
        ("no", "not JSON"),
    ],
)
def test_scores_that_are_none_are_told(answer: str, said: str) -> None:
    with pytest.raises(DecodeError, match=said):
        wire.read_scores(answer.encode())


@pytest.mark.parametrize(
    ("answer", "uids"),
    [
        ("{}", None),
        ('{"status": 0, "victims": [{"UID": "a"}]}', None),
        ('{"status": 1, "victims": [{"UID": "a"}, {"uid": "b", "Name": "x"}]}', {"a", "b"}),
        ('{"status": 1}', set()),
        ('{"status": 1, "victims": null}', set()),
        ('{"status": -1, "victims": [{"UID": "a"}]}', set()),
    ],
)
def test_victims_are_read(answer: str, uids: set[str] | None) -> None:
    found = wire.read_victims(answer.encode())
    assert found == (None if uids is None else frozenset(map(PodUid, uids)))


@pytest.mark.parametrize(("status", "vote"), [(1, 1), (7, 1), (0, 0), (-1, -1), (-9, -1)])
def test_votes_are_read(status: int, vote: int) -> None:
    assert wire.read_vote(json.dumps({"status": status}).encode()) == vote


def test_the_other_answers_are_read() -> None:
    assert wire.read_ready(b'{"status": true}') is True
    assert wire.read_ready(b"{}") is False
    assert wire.read_overused(b'{"overused": true}') is True
    assert wire.read_overused(b"{}") is False
    for answer in (b"", b"{}", b'{"errorMessage": ""}'):
        wire.read_event(answer)
    with pytest.raises(DecodeError, match="no room"):
        wire.read_event(b'{"errorMessage": "no room"}')
