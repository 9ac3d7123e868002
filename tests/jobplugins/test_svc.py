"""svc."""

from typing import Any

import pytest

from app.jobplugins.rules.job_tasks import label
from app.jobplugins.wanted import Create, Writing
from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import (
    LABELS,
    MADE_AS,
    OWNER,
    Plugins,
    container,
    job,
    pod,
    task,
    variables,
    wanted,
)

SVC: Plugins = {"svc": []}


def from_lists(key: str) -> Object:
    return {"configMapKeyRef": {"name": "job-svc", "key": key}}


def lists(of: Object) -> dict[str, str]:
    """The data of the ConfigMap."""
    (name,) = (name for name in wanted(of) if name.startswith("ConfigMap/"))
    step = wanted(of)[name].step(None)
    assert isinstance(step, Create)
    data: dict[str, str] = step.item["data"]
    return data


def test_a_pod_is_named_and_finds_the_lists() -> None:
    several = task("ps", 2, initContainers=[container("first")])
    made = pod(job(SVC, several, task("default-nginx", 3)), "ps", 1)
    mount = {"name": "job-svc", "mountPath": "/etc/volcano"}
    env = {
        name: from_lists(name)
        for name in (
            "VC_PS_HOSTS",
            "VC_PS_NUM",
            "VC_DEFAULT_NGINX_HOSTS",
            "VC_DEFAULT_NGINX_NUM",
        )
    }
    spec = made["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("job-ps-1", "job")
    assert spec["volumes"] == [{"name": "job-svc", "configMap": {"name": "job-svc"}}]
    for one in (*spec["containers"], *spec["initContainers"]):
        assert one["volumeMounts"] == [mount]
        assert variables(one) == env


def test_without_hosts_env_the_lists_are_files_only() -> None:
    made = pod(job({"svc": ["--inject-hosts-env=false"]}, task("ps")), "ps")
    (only,) = made["spec"]["containers"]
    assert "env" not in only
    assert only["volumeMounts"] == [{"name": "job-svc", "mountPath": "/etc/volcano"}]


def test_names_volumes_and_mounts_of_the_template_stay() -> None:
    volume = {"name": "job-svc", "emptyDir": {}}
    mount = {"name": "job-svc", "mountPath": "/etc/volcano/", "readOnly": True}
    given = task(
        "ps",
        hostname="h",
        subdomain="net",
        volumes=[volume],
        containers=[container(volumeMounts=[mount]), container("other")],
    )
    spec = pod(job(SVC, given), "ps")["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("h", "net")
    assert spec["volumes"] == [volume]
    assert spec["containers"][0]["volumeMounts"] == [mount]
    assert spec["containers"][1]["volumeMounts"] == [
        {"name": "job-svc", "mountPath": "/etc/volcano"}
    ]


@pytest.mark.parametrize(
    ("tasks", "data"),
    [
        (
            [task("ps", 1), task("worker", 2)],
            {
                "ps.host": "job-ps-0.job",
                "VC_PS_HOSTS": "job-ps-0.job",
                "VC_PS_NUM": "1",
                "worker.host": "job-worker-0.job\njob-worker-1.job",
                "VC_WORKER_HOSTS": "job-worker-0.job,job-worker-1.job",
                "VC_WORKER_NUM": "2",
            },
        ),
        (
            [task("default-nginx", 1)],
            {
                "default_nginx.host": "job-default-nginx-0.job",
                "default-nginx.host": "job-default-nginx-0.job",
                "VC_DEFAULT_NGINX_HOSTS": "job-default-nginx-0.job",
                "VC_DEFAULT_NGINX_NUM": "1",
            },
        ),
        ([task("ps", 0)], {"ps.host": "", "VC_PS_HOSTS": "", "VC_PS_NUM": "0"}),
        (
            [task("ps", 3, hostname="h")],
            {"ps.host": "h.job", "VC_PS_HOSTS": "h.job", "VC_PS_NUM": "1"},
        ),
        (
            [task("ps", 2, subdomain="net")],
            {
                "ps.host": "job-ps-0.net\njob-ps-1.net",
                "VC_PS_HOSTS": "job-ps-0.net,job-ps-1.net",
                "VC_PS_NUM": "2",
            },
        ),
    ],
)
def test_the_config_map_lists_the_hosts_of_each_task(
    tasks: list[Object], data: dict[str, str]
) -> None:
    assert lists(job(SVC, *tasks)) == data


def test_a_task_without_a_name_is_called_as_admission_calls_it() -> None:
    nameless = {key: value for key, value in task("x").items() if key != "name"}
    assert lists(job(SVC, nameless))["default0.host"] == "job-default0-0.job"


def test_the_lists_follow_the_replicas() -> None:
    metadata = {"name": "job-svc", "ownerReferences": [OWNER]}
    stored = {"metadata": metadata, "data": lists(job(SVC, task("ps", 1), task("a", 1)))}
    grown = wanted(job(SVC, task("ps", 2), task("a", 1)))["ConfigMap/job-svc"]
    assert grown.step(stored) == Writing(
        {
            "data": {
                "ps.host": "job-ps-0.job\njob-ps-1.job",
                "VC_PS_HOSTS": "job-ps-0.job,job-ps-1.job",
                "VC_PS_NUM": "2",
            }
        }
    )
    same = wanted(job(SVC, task("ps", 1), task("a", 1)))["ConfigMap/job-svc"]
    assert same.step(stored) is None


def made_item(of: Object, name: str) -> Object:
    step = wanted(of)[name].step(None)
    assert isinstance(step, Create)
    return step.item


def test_the_objects_are_these() -> None:
    given = job(SVC, task("ps"))
    assert list(wanted(given)) == ["ConfigMap/job-svc", "Service/job", "NetworkPolicy/job"]
    config_map = made_item(given, "ConfigMap/job-svc")
    assert {key: config_map[key] for key in ("apiVersion", "kind", "metadata")} == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "job-svc", **MADE_AS},
    }
    assert made_item(given, "Service/job") == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "job", **MADE_AS},
        "spec": {"clusterIP": "None", "selector": LABELS, "publishNotReadyAddresses": False},
    }
    assert made_item(given, "NetworkPolicy/job") == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "job", **MADE_AS},
        "spec": {
            "podSelector": {"matchLabels": LABELS},
            "ingress": [{"from": [{"podSelector": {"matchLabels": LABELS}}]}],
            "policyTypes": ["Ingress"],
        },
    }


def test_addresses_may_be_published_before_pods_are_ready() -> None:
    given = job({"svc": ["--publish-not-ready-addresses"]}, task("ps"))
    assert made_item(given, "Service/job")["spec"]["publishNotReadyAddresses"] is True


def test_the_network_policy_may_be_left_out() -> None:
    given = job({"svc": ["--disable-network-policy"]}, task("ps"))
    assert list(wanted(given)) == ["ConfigMap/job-svc", "Service/job"]


@pytest.mark.parametrize("name", ["job.v1", "j" * 80])
def test_names_that_are_no_labels_are_made_ones_everywhere(name: str) -> None:
    given = job(SVC, task("ps", 1), name=name)
    spec = pod(given, "ps")["spec"]
    assert spec["subdomain"] == label(name)
    assert spec["hostname"] == label(f"{name}-ps-0")
    assert lists(given)["ps.host"] == f"{label(f'{name}-ps-0')}.{label(name)}"
    (volume,) = spec["volumes"]
    assert volume == {"name": label(f"{name}-svc"), "configMap": {"name": f"{name}-svc"}}
    assert list(wanted(given)) == [
        f"ConfigMap/{name}-svc",
        f"Service/{label(name)}",
        f"NetworkPolicy/{name}",
    ]


def test_the_hosts_files_of_the_article_give_its_cluster() -> None:
    """The TensorFlow job of the article joins the lines of ``*.host`` files with a port."""
    given = job(SVC, task("chief"), task("ps", 2), task("worker", 2), name="tf")

    def joined(role: str) -> list[str]:
        return [f"{line}:2222" for line in lists(given)[f"{role}.host"].split("\n")]

    cluster: dict[str, Any] = {role: joined(role) for role in ("chief", "ps", "worker")}
    assert cluster == {
        "chief": ["tf-chief-0.tf:2222"],
        "ps": ["tf-ps-0.tf:2222", "tf-ps-1.tf:2222"],
        "worker": ["tf-worker-0.tf:2222", "tf-worker-1.tf:2222"],
    }
