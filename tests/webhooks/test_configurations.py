"""The objects that register the webhooks."""

from __future__ import annotations

import base64
from typing import Any

from app.model.device_families import TELLING
from app.webhooks.admission import WEBHOOKS, chosen
from app.webhooks.configurations import MUTATING, VALIDATING, Endpoint, Registration

URL = Endpoint(url="https://host:1")


def registered(registration: Registration, authority: bytes = b"ca") -> dict[str, Any]:
    """What changes and what judges in its place, by path."""
    changing, judging = both(registration, authority)
    changes = {path: each for path, each in changing.items() if path.endswith("/mutate")}
    return {**changes, **judging}


def both(registration: Registration, authority: bytes = b"ca") -> list[dict[str, Any]]:
    """The webhooks of the two configurations, by path and in their order."""
    (first, changing), (second, judging) = registration.objects(authority)
    assert (first, second) == (MUTATING, VALIDATING)
    assert (changing["kind"], judging["kind"]) == (first.kind, second.kind)
    assert changing["metadata"] == judging["metadata"] == {"name": registration.name}
    return [by_path(changing["webhooks"]), by_path(judging["webhooks"])]


def by_path(webhooks: list[Any]) -> dict[str, Any]:
    found = {}
    for webhook in webhooks:
        client = webhook["clientConfig"]
        path = client["url"].removeprefix("https://host:1") if "url" in client else None
        found[path or client["service"]["path"]] = webhook
    assert len(found) == len(webhooks) == len({webhook["name"] for webhook in webhooks})
    return found


def test_every_webhook_is_registered_for_its_kind_and_operations() -> None:
    found = registered(Registration(webhooks=WEBHOOKS, place=URL))
    assert set(found) == {webhook.path for webhook in WEBHOOKS}
    assert found["/queues/validate"]["rules"] == [
        {
            "apiGroups": ["scheduling.volcano.sh"],
            "apiVersions": ["v1beta1"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["queues"],
            "scope": "Cluster",
        }
    ]
    assert found["/pods/validate"]["rules"][0]["apiGroups"] == [""]
    assert found["/jobs/mutate"]["name"] == "mutatejob.volcano.sh"


def test_kinds_of_ours_are_judged_before_schema_and_policies_after_the_change() -> None:
    changing, _ = both(Registration(webhooks=WEBHOOKS, place=URL))
    assert list(changing) == [
        "/jobs/mutate",
        "/podgroups/mutate",
        "/pods/mutate",
        "/queues/mutate",
        "/jobs/validate",
        "/podgroups/validate",
        "/queues/validate",
        "/hypernodes/validate",
        "/jobflows/validate",
        "/cronjobs/validate",
        "/colocationconfigurations/validate",
    ]
    assert changing["/queues/validate"]["rules"][0]["operations"] == ["CREATE", "UPDATE"]
    assert changing["/queues/validate"]["failurePolicy"] == "Ignore"
    assert changing["/queues/validate"]["timeoutSeconds"] == 2
    assert "reinvocationPolicy" not in changing["/queues/validate"]
    only, _ = both(Registration(webhooks=chosen(["/jobs/mutate"]), place=URL))
    assert list(only) == ["/jobs/mutate"]


def test_an_outage_holds_nothing_up_and_the_system_is_left_alone() -> None:
    for webhook in registered(Registration(webhooks=WEBHOOKS, place=URL)).values():
        assert webhook["failurePolicy"] == "Ignore"
        assert webhook["sideEffects"] == "None"
        assert webhook["namespaceSelector"]["matchExpressions"] == [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": ["kube-system", "pumice-system"],
            }
        ]
    strict = Registration(webhooks=WEBHOOKS, place=URL, failure_policy="Fail")
    assert {w["failurePolicy"] for w in registered(strict).values()} == {"Fail"}


def test_the_api_server_is_told_whom_to_trust() -> None:
    registration = Registration(webhooks=chosen(["/jobs/mutate"]), place=URL)
    client = registered(registration, b"pem")["/jobs/mutate"]["clientConfig"]
    assert client == {
        "url": "https://host:1/jobs/mutate",
        "caBundle": base64.b64encode(b"pem").decode(),
    }
    assert "caBundle" not in registered(registration, b"")["/jobs/mutate"]["clientConfig"]


def test_without_a_url_it_is_the_service() -> None:
    place = Endpoint(namespace="n", service="s", port=8443)
    found = registered(Registration(webhooks=chosen(["/jobs/mutate"]), place=place))
    assert found["/jobs/mutate"]["clientConfig"]["service"] == {
        "namespace": "n",
        "name": "s",
        "path": "/jobs/mutate",
        "port": 8443,
    }


def test_pods_of_others_are_only_asked_about_where_groups_may_take_them() -> None:
    ours = [
        {
            "name": "scheduler-is-ours",
            "expression": "object.spec.?schedulerName.orValue('') in ['a', 'b']",
        }
    ]
    alone = {
        "name": "new-and-not-of-a-job-or-tells-devices",
        "expression": "(request.operation == 'CREATE' && "
        "!object.metadata.?labels[?'volcano.sh/job-name'].hasValue()) || "
        "(object.spec.?nodeName.orValue('') == '' && "
        "object.metadata.?annotations.orValue({}).exists(key, key.matches("
        f"'{TELLING}')))",
    }
    # A webhook is asked again, once another has set the name, only where it was asked before.
    in_time = {
        "name": "scheduler-is-ours-or-may-become-it",
        "expression": "object.spec.?schedulerName.orValue('') in ['a', 'b'] || "
        "object.metadata.?annotations[?'scheduling.k8s.io/group-name'].hasValue()",
    }
    pods = chosen(["/pods/mutate", "/pods/validate"])
    found = registered(Registration(webhooks=pods, place=URL, schedulers=("a", "b")))
    assert found["/pods/mutate"]["matchConditions"] == [in_time]
    assert found["/pods/validate"]["matchConditions"] == [*ours, alone]
    found = registered(Registration(webhooks=pods, place=URL, schedulers=("a", "b"), any_pod=True))
    assert "matchConditions" not in found["/pods/mutate"]
    assert found["/pods/validate"]["matchConditions"] == [*ours, alone]
