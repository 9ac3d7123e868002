"""One job in full."""

from __future__ import annotations

from app.cli import job_view
from tests.cli.stand import CREATED, Object, event, job

NOW = 1_700_000_125.0


def full_job() -> Object:
    item = job("a", plugins={"env": [], "svc": ["--disable-network-policy=true"]})
    item["metadata"] |= {
        "uid": "u-1",
        "creationTimestamp": CREATED,
        "generation": 1,
        "resourceVersion": "7",
        "labels": {"b": "2", "a": "1"},
    }
    template = item["spec"]["tasks"][0]["template"]
    template["metadata"] = {"annotations": {"team": "x"}}
    template["spec"] |= {"restartPolicy": "OnFailure", "imagePullSecrets": [{"name": "pull"}]}
    template["spec"]["containers"][0] |= {
        "ports": [{"containerPort": 80, "name": "web"}],
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}},
        "workingDir": "/work",
    }
    item["status"] = {
        "state": {"phase": "Running", "reason": "Because", "message": "it is so"},
        "pending": 1,
        "running": 2,
        "failed": 0,
        "minAvailable": 2,
        "version": 3,
        "controlledResources": {"plugin-svc": "svc", "plugin-env": "env"},
        "conditions": [{"status": "Pending", "lastTransitionTime": CREATED}],
    }
    return item


def event_line(*cells: str) -> str:
    kind, reason, when, source, message = cells
    return f"{kind:<15}\t{reason:<40}\t{when:<30}\t{source:<40}\t{message}"


EXPECTED = """\
Name:       \ta
Namespace:  \tdefault
Labels:     \t{"a":"1","b":"2"}
Annotations:\t<none>
API Version:\tbatch.volcano.sh/v1alpha1
Kind:       \tJob
Metadata:
  Creation Timestamp:\t2023-11-14 22:13:20 +0000 UTC
  Generate Name:     \t
  Generation:        \t1
  Resource Version:  \t7
  Self Link:         \t
  UID:               \tu-1
Spec:
  Min Available:     \t2
  Plugins:
    Env:\t[]
    Ssh:\t[]
    Svc:\t[--disable-network-policy=true]
  Queue:             \tdefault
  Scheduler Name:    \tvolcano
  Tasks:
    Name:\twork
    Replicas:\t3
    Template:
      Metadata:
        Annotations:
          team:\tx
      Spec:
        Containers:
          Command:
            sleep
            10
          Image:\tbusybox
          Name: \tc
          Ports:
            Container Port:\t80
            Name:          \tweb
          Resources:
            Limits:
              Cpu:   \t0
              Memory:\t0
            Requests:
              Cpu:           \t1
              Memory:        \t0
              nvidia.com/gpu:\t2
            Working Dir:\t/work
        Image Pull Secrets:
          Name:\tpull
        Restart Policy:\tOnFailure
Status:
  Pending:      \t1
  Running:      \t2
  Min Available:\t2
  Version:      \t3
  State:
    Phase:\tRunning
    Reason:\tBecause
    Message:\tit is so
  Controlled Resources:
    plugin-env: \tenv
    plugin-svc: \tsvc
"""
CONDITIONS = """\
  Conditions:
    Status\tTransitionTime
    Pending \t2023-11-14 22:13:20 +0000 UTC\x20
"""


def test_everything_is_shown_in_order() -> None:
    text = job_view.view(full_job(), [], now=NOW)
    assert text == EXPECTED + CONDITIONS + "Events: \t<none>\n"


def test_conditions_can_be_left_out() -> None:
    text = job_view.view(full_job(), [], now=NOW, conditions=False)
    assert text == EXPECTED + "Events: \t<none>\n"


def test_a_job_without_anything_is_shown_too() -> None:
    text = job_view.view({"metadata": {"name": "a"}}, [], now=NOW)
    assert "Status:\n  State:\n    Phase:\t\nEvents: \t<none>\n" in text


def test_events_are_counted_and_aged() -> None:
    item = full_job()
    often = event(
        item, "Again", " many times ", count=3, lastTimestamp="2023-11-14T22:15:20Z", type="Warning"
    )
    lines = job_view.view(item, [event(item, "Once", "said"), often], now=NOW).splitlines()
    assert lines[-5:] == [
        "Events:",
        event_line("Type", "Reason", "Age", "Form", "Message"),
        event_line("-------", "-------", "-------", "-------", "-------"),
        event_line("Normal", "Once", "2m5s", "volcano", "said"),
        event_line("Warning", "Again", "5s (x3 over 2m5s)", "volcano", "many times"),
    ]


def test_labels_and_annotations_are_json_in_one_line() -> None:
    item = full_job()
    item["metadata"]["annotations"] = {"applied": '{"a":"b"}\n', "motto": "größer"}
    lines = job_view.view(item, [], now=NOW).splitlines()
    shown = r'{"applied":"{\"a\":\"b\"}\n","motto":"größer"}'
    assert f"Annotations:\t{shown}" in lines


def test_only_events_of_the_job_are_its_events() -> None:
    item = full_job()
    mine, by_uid, other = (event(item, reason, "") for reason in ("Mine", "ByUid", "Other"))
    by_uid["metadata"]["name"] = "something.else"
    other["metadata"]["name"] = "ab.1"
    other["involvedObject"] = {"uid": "u-2"}
    mine["involvedObject"] = {}
    mine["lastTimestamp"] = "2023-11-14T22:14:20Z"
    assert job_view.events_of(item, [mine, by_uid, other]) == [by_uid, mine]
