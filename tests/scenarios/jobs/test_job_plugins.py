"""What each job plugin makes (volcano.md section 5.2), as it is stored on both clusters.

One job per plugin. What a pod is compared by is what its task's template does not say: variables,
ports, mounts, commands, annotations; what else is made is compared whole, but for what the API
server fills in.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.clusters.client import Object
from tests.clusters.resources import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)
from tests.scenarios.jobs.ground import Ground, ground, names_of
from tests.scenarios.jobs.shapes import make_job, task, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(400)

NETWORK_POLICIES = Resource("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy")


def _job(plugins: Mapping[str, list[str]], *tasks: Object) -> Object:
    needs = sum(task["replicas"] for task in tasks)
    return make_job(*tasks, needs=needs, plugins=dict(plugins))


def _with_init(name: str) -> Object:
    """A pod with a container that runs before."""
    before = {"name": "before", "image": "busybox", "command": ["true"]}
    return up(1, name, pod={"initContainers": [before]})


def _named(name: str, replicas: int, container: str) -> Object:
    made = task(name, replicas, command=["sleep", "infinity"])
    made["template"]["spec"]["containers"][0]["name"] = container
    return made


_JOBS: Mapping[str, Object] = {
    "env": _job({"env": []}, _with_init("a"), up(2, "b")),
    "svc": _job({"svc": []}, _with_init("ps"), up(2, "task-a")),
    "plain": _job(
        {
            "svc": [
                "--publish-not-ready-addresses=true",
                "--disable-network-policy=true",
                "--inject-hosts-env=false",
            ]
        },
        up(1, "a", pod={"hostname": "host", "subdomain": "net"}),
    ),
    "ssh": _job({"ssh": []}, _with_init("a"), up(2, "b")),
    "keys": _job({"ssh": ["--ssh-key-file-path=/home/me/.ssh", "--ssh-port=2022"]}, up(1, "a")),
    "tensorflow": _job({"tensorflow": []}, up(1, "ps"), up(2, "worker"), up(1, "chief")),
    "pytorch": _job({"pytorch": ["--wait-master-enabled"]}, up(1, "master"), up(2, "worker")),
    "mpi": _job({"mpi": []}, _with_init("master"), up(2, "worker")),
    "ray": _job({"ray": []}, _named("head", 1, "head"), _named("worker", 1, "worker")),
    "hcclrank": _job({"hcclrank": []}, up(2, "master"), up(2, "worker")),
    "jax": _job({"jax": []}, up(1, "coordinator"), up(2, "worker")),
}

_ENDS = "ended"
"""A job with plugins that runs to its end."""


class Stored:
    """What was stored while all jobs had their pods."""

    def __init__(self, ground: Ground) -> None:
        self._api, self._namespace = ground.api, ground.name
        self.jobs = self._all(JOBS)
        self.pods = self._all(PODS)
        self.others = {
            resource: self._all(resource)
            for resource in (CONFIG_MAPS, SECRETS, SERVICES, NETWORK_POLICIES)
        }

    def _all(self, resource: Resource) -> dict[str, Object]:
        found = self._api.list(resource, namespace=self._namespace)
        return {item["metadata"]["name"]: item for item in found}

    def container(self, pod: str, field: str = "containers") -> Object:
        """The one container of a pod."""
        (found,) = self.pods[pod]["spec"][field]
        container: Object = found
        return container

    def made_for(self, job: str) -> set[str]:
        """Everything that belongs to a job but its pods."""
        uid = self.jobs[job]["metadata"]["uid"]
        return {
            f"{resource.kind}/{name}"
            for resource, items in self.others.items()
            for name, item in items.items()
            if [owner["uid"] for owner in item["metadata"].get("ownerReferences", ())] == [uid]
        }


@pytest.fixture(scope="module")
def stored(ground: Ground) -> Stored:
    """All jobs with all they made; one has ended."""
    ended = make_job(
        task("a", command=["true"]), needs=1, plugins={"svc": [], "ssh": [], "env": []}
    )
    for name, spec in {**_JOBS, _ENDS: ended}.items():
        ground.submit(name, spec)
    count = sum(task["replicas"] for spec in _JOBS.values() for task in spec["tasks"]) + 1
    ground.wait(PODS, lambda pods: len(pods) == count, what="all pods")
    ground.wait(JOBS, lambda jobs: any(map(_has_ended, jobs)), what="one has ended")
    ground.wait(SECRETS, lambda secrets: f"{_ENDS}-ssh" not in names_of(secrets), what="gone")
    return Stored(ground)


def _has_ended(job: Object) -> bool:
    status: Object = job.get("status", {})
    phase = status.get("state", {}).get("phase")
    return phase == "Completed" and not status.get("controlledResources")


def _variables(container: Object) -> dict[str, str]:
    """Those that are values; svc's refer to its ConfigMap."""
    return {entry["name"]: entry["value"] for entry in container.get("env", ()) if "value" in entry}


def _ports(container: Object) -> list[tuple[str, int]]:
    return [(port["name"], port["containerPort"]) for port in container.get("ports", ())]


def _volume(pod: Object, name: str) -> Object:
    (found,) = (volume for volume in pod["spec"]["volumes"] if volume["name"] == name)
    volume: Object = found
    return volume


def _of_job(name: str, ground: Ground) -> dict[str, str]:
    return {"volcano.sh/job-name": name, "volcano.sh/job-namespace": ground.name}


_SVC = {"ConfigMap/{0}-svc", "Service/{0}", "NetworkPolicy/{0}"}
_SSH = {"Secret/{0}-ssh"}
_MADE = {
    "env": set(),
    "svc": _SVC,
    "plain": _SVC - {"NetworkPolicy/{0}"},
    "ssh": _SSH,
    "keys": _SSH,
    "tensorflow": _SVC,
    "pytorch": _SVC,
    "mpi": _SVC | _SSH,
    "ray": _SVC | {"Service/{0}-head-svc"},
    "hcclrank": set(),
    "jax": _SVC,
    _ENDS: set(),
}
_BRINGS = {
    "tensorflow": ["svc", "tensorflow"],
    "pytorch": ["pytorch", "svc"],
    "mpi": ["mpi", "ssh", "svc"],
    "ray": ["ray", "svc"],
    "jax": ["jax", "svc"],
    "plain": ["svc"],
    "keys": ["ssh"],
}


@pytest.mark.parametrize("name", _MADE)
def test_a_job_owns_what_its_plugins_make_and_nothing_once_it_has_ended(
    stored: Stored, name: str
) -> None:
    assert stored.made_for(name) == {one.format(name) for one in _MADE[name]}


@pytest.mark.parametrize("name", _JOBS)
def test_the_status_names_the_plugins_that_act(stored: Stored, name: str) -> None:
    plugins = _BRINGS.get(name, [name])
    told = stored.jobs[name]["status"]["controlledResources"]
    assert told == {f"plugin-{plugin}": plugin for plugin in plugins}


@pytest.mark.parametrize(("pod", "index"), [("env-a-0", "0"), ("env-b-0", "0"), ("env-b-1", "1")])
def test_env_tells_the_index_of_the_pod(stored: Stored, pod: str, index: str) -> None:
    both = [
        {"name": "VK_TASK_INDEX", "value": index},
        {"name": "VC_TASK_INDEX", "value": index},
    ]
    assert stored.container(pod)["env"] == both
    if pod == "env-a-0":
        assert stored.container(pod, "initContainers")["env"] == both


# svc --------------------------------------------------------------------------------------------

_LISTS = {
    "svc": {
        "ps.host": "svc-ps-0.svc",
        "VC_PS_HOSTS": "svc-ps-0.svc",
        "VC_PS_NUM": "1",
        "task-a.host": "svc-task-a-0.svc\nsvc-task-a-1.svc",
        "task_a.host": "svc-task-a-0.svc\nsvc-task-a-1.svc",
        "VC_TASK_A_HOSTS": "svc-task-a-0.svc,svc-task-a-1.svc",
        "VC_TASK_A_NUM": "2",
    },
    "plain": {"a.host": "host.net", "VC_A_HOSTS": "host.net", "VC_A_NUM": "1"},
}


@pytest.mark.parametrize("name", _LISTS)
def test_svc_lists_the_hosts(stored: Stored, name: str) -> None:
    assert stored.others[CONFIG_MAPS][f"{name}-svc"]["data"] == _LISTS[name]


@pytest.mark.parametrize(
    ("pod", "hostname", "subdomain"),
    [
        ("svc-ps-0", "svc-ps-0", "svc"),
        ("svc-task-a-1", "svc-task-a-1", "svc"),
        ("plain-a-0", "host", "net"),
    ],
)
def test_svc_names_the_pods(stored: Stored, pod: str, hostname: str, subdomain: str) -> None:
    spec = stored.pods[pod]["spec"]
    assert (spec["hostname"], spec["subdomain"]) == (hostname, subdomain)


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_svc_gives_the_lists_to_every_container(stored: Stored, field: str) -> None:
    container = stored.container("svc-ps-0", field)
    names = ("VC_PS_HOSTS", "VC_PS_NUM", "VC_TASK_A_HOSTS", "VC_TASK_A_NUM")
    assert container["env"] == [
        {"name": name, "valueFrom": {"configMapKeyRef": {"name": "svc-svc", "key": name}}}
        for name in names
    ]
    assert {"name": "svc-svc", "mountPath": "/etc/volcano"} in container["volumeMounts"]
    volume = _volume(stored.pods["svc-ps-0"], "svc-svc")
    assert volume["configMap"]["name"] == "svc-svc"


def test_svc_gives_no_variables_where_they_are_not_wanted(stored: Stored) -> None:
    assert "env" not in stored.container("plain-a-0")


@pytest.mark.parametrize(("name", "published"), [("svc", False), ("plain", True)])
def test_svc_makes_a_headless_service(
    ground: Ground, stored: Stored, name: str, published: bool
) -> None:
    spec = stored.others[SERVICES][name]["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["selector"] == _of_job(name, ground)
    assert spec.get("publishNotReadyAddresses", False) is published


def test_svc_keeps_all_but_the_job_out(ground: Ground, stored: Stored) -> None:
    of_job = {"podSelector": {"matchLabels": _of_job("svc", ground)}}
    assert stored.others[NETWORK_POLICIES]["svc"]["spec"] == {
        **of_job,
        "ingress": [{"from": [of_job]}],
        "policyTypes": ["Ingress"],
    }


# ssh --------------------------------------------------------------------------------------------


def _hosts(port: int, subdomain: str, *hosts: str) -> str:
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for host in hosts:
        lines += [f"Host {host}", f"  HostName {host}.{subdomain}", f"  Port {port}"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("ssh", _hosts(22, "ssh", "ssh-a-0", "ssh-b-0", "ssh-b-1")),
        ("keys", _hosts(2022, "keys", "keys-a-0")),
    ],
)
def test_ssh_makes_a_key_pair_and_a_list_of_hosts(stored: Stored, name: str, config: str) -> None:
    secret = stored.others[SECRETS][f"{name}-ssh"]["data"]
    data = {key: base64.b64decode(value).decode() for key, value in secret.items()}
    assert set(data) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    assert data["config"] == config
    private = serialization.load_pem_private_key(data["id_rsa"].encode(), password=None)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert private.key_size == 2048
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert data["id_rsa.pub"].split()[:2] == public.split()
    assert data["authorized_keys"] == data["id_rsa.pub"]


@pytest.mark.parametrize(
    ("pod", "path", "mode"),
    [("ssh-a-0", "/root/.ssh", 0o600), ("keys-a-0", "/home/me/.ssh", 0o644)],
)
def test_ssh_mounts_the_keys(stored: Stored, pod: str, path: str, mode: int) -> None:
    name = pod.removesuffix("-a-0") + "-ssh"
    volume = _volume(stored.pods[pod], name)["secret"]
    assert (volume["secretName"], volume["defaultMode"]) == (name, mode)
    keys = {item["key"] for item in volume["items"]}
    assert keys == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    fields = ["containers", *(["initContainers"] if pod == "ssh-a-0" else [])]
    for field in fields:
        mounts = stored.container(pod, field)["volumeMounts"]
        assert [mount["name"] for mount in mounts if mount["mountPath"] == path] == [name]


# Frameworks -------------------------------------------------------------------------------------

_CLUSTER = {
    "ps": ["tensorflow-ps-0.tensorflow:2222"],
    "worker": ["tensorflow-worker-0.tensorflow:2222", "tensorflow-worker-1.tensorflow:2222"],
    "chief": ["tensorflow-chief-0.tensorflow:2222"],
}


@pytest.mark.parametrize(("role", "index"), [("ps", 0), ("worker", 0), ("worker", 1), ("chief", 0)])
def test_tensorflow_tells_the_cluster_and_the_place_in_it(
    stored: Stored, role: str, index: int
) -> None:
    variables = _variables(stored.container(f"tensorflow-{role}-{index}"))
    assert set(variables) == {"TF_CONFIG"}
    config = json.loads(variables["TF_CONFIG"])
    assert config == {"cluster": _CLUSTER, "task": {"type": role, "index": index}}


def _torch(rank: int) -> dict[str, str]:
    return {
        "MASTER_ADDR": "pytorch-master-0.pytorch",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "3",
        "RANK": str(rank),
    }


def _jax(process: int) -> dict[str, str]:
    return {
        "JAX_COORDINATOR_ADDRESS": "jax-coordinator-0.jax:1234",
        "JAX_NUM_PROCESSES": "3",
        "JAX_PROCESS_ID": str(process),
    }


_MPI_HOST = {"MPI_HOST": "mpi-worker-0.mpi,mpi-worker-1.mpi"}
_RAY_PORTS = [("gcs", 6379), ("dashboard", 8265), ("client-server", 10001)]


@pytest.mark.parametrize(
    ("pod", "variables", "ports"),
    [
        ("pytorch-master-0", _torch(0), [("pytorchjob-port", 23456)]),
        ("pytorch-worker-0", _torch(1), [("pytorchjob-port", 23456)]),
        ("pytorch-worker-1", _torch(2), [("pytorchjob-port", 23456)]),
        ("mpi-master-0", _MPI_HOST, [("mpijob-port", 22)]),
        ("mpi-worker-1", {}, [("mpijob-port", 22)]),
        ("jax-coordinator-0", _jax(0), [("jaxjob-port", 1234)]),
        ("jax-worker-0", _jax(1), []),
        ("jax-worker-1", _jax(2), []),
        ("ray-head-0", {}, _RAY_PORTS),
        ("ray-worker-0", {}, []),
    ],
)
def test_a_framework_finds_its_variables_and_ports(
    stored: Stored, pod: str, variables: Mapping[str, str], ports: list[tuple[str, int]]
) -> None:
    container = stored.container(pod)
    assert _variables(container) == variables
    assert _ports(container) == ports


def test_mpi_tells_the_containers_before_too(stored: Stored) -> None:
    container = stored.container("mpi-master-0", "initContainers")
    assert _variables(container) == _MPI_HOST
    assert _ports(container) == [("mpijob-port", 22)]


def test_pytorch_lets_the_workers_wait_for_the_master(stored: Stored) -> None:
    waiter = stored.container("pytorch-worker-1", "initContainers")
    assert (waiter["name"], waiter["image"]) == ("wait-for-master", "busybox:1.36.1")
    assert "pytorch-master-0.pytorch" in waiter["command"][-1]
    assert "initContainers" not in stored.pods["pytorch-master-0"]["spec"]


@pytest.mark.parametrize(
    ("pod", "command"),
    [
        (
            "ray-head-0",
            "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265"
            " --ray-client-server-port=10001",
        ),
        ("ray-worker-0", "ray start --block --address=ray-head-0.ray:6379"),
    ],
)
def test_ray_starts_itself(stored: Stored, pod: str, command: str) -> None:
    assert stored.container(pod)["command"] == ["sh", "-c", command]


def test_ray_has_a_service_before_its_head(ground: Ground, stored: Stored) -> None:
    spec = stored.others[SERVICES]["ray-head-svc"]["spec"]
    assert spec["selector"] == {**_of_job("ray", ground), "volcano.sh/task-spec": "head"}
    assert [(port["name"], port["port"], port["targetPort"]) for port in spec["ports"]] == [
        (name, number, number) for name, number in _RAY_PORTS
    ]


@pytest.mark.parametrize(
    ("pod", "rank"),
    [
        ("hcclrank-master-0", "0"),
        ("hcclrank-master-1", "1"),
        ("hcclrank-worker-0", "2"),
        ("hcclrank-worker-1", "3"),
    ],
)
def test_hcclrank_numbers_the_pods(stored: Stored, pod: str, rank: str) -> None:
    assert stored.pods[pod]["metadata"]["annotations"]["hccl/rankIndex"] == rank


def test_everything_goes_with_its_job(ground: Ground, stored: Stored) -> None:
    for name in _JOBS:
        ground.api.delete(JOBS, name, namespace=ground.name)
    ground.wait_none(SERVICES, NETWORK_POLICIES, SECRETS)
    ground.wait(CONFIG_MAPS, lambda items: names_of(items) <= {"kube-root-ca.crt"}, what="gone")
