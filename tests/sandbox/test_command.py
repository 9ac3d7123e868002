"""`pumice sandbox` as it is used on a laptop: started, ended, started twice, started wrongly."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from httpx2 import Client

from app.model.load import NODE_LOAD
from app.wire.documents import Document
from tests.clusters.client import WITHOUT_TLS, ApiClient
from tests.clusters.installation import ROOT, documents
from tests.clusters.resources import JOBS, NODES, NUMA_TOPOLOGIES, POD_GROUPS, PODS, QUEUES
from tests.sandbox.started import COMMAND, Started, refused, started


def nodes(sandbox: Started) -> list[str]:
    with Client(base_url=sandbox.said("API server"), timeout=10, verify=WITHOUT_TLS) as client:
        listed = client.get("/api/v1/nodes").json()["items"]
    return [node["metadata"]["name"] for node in listed]


def racks_of(sandbox: Started) -> list[str]:
    with Client(base_url=sandbox.said("API server"), timeout=10, verify=WITHOUT_TLS) as client:
        listed = client.get("/api/v1/nodes").json()["items"]
    return [node["metadata"]["labels"]["pumice.sh/rack"] for node in listed]


def tiers(sandbox: Started) -> dict[str, int]:
    with Client(base_url=sandbox.said("API server"), timeout=10, verify=WITHOUT_TLS) as client:
        listed = client.get("/apis/topology.volcano.sh/v1alpha1/hypernodes").json()["items"]
    return {it["metadata"]["name"]: it["spec"]["tier"] for it in listed}


def folders(log: Path) -> list[Path]:
    return list(log.parent.glob("pumice-sandbox-*"))


@pytest.mark.sandbox
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda it: it.name)
def test_a_signal_ends_it_in_good_order_and_leaves_nothing(number: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started(log, "--nodes=2") as sandbox:
        assert nodes(sandbox) == ["node-00000", "node-00001"]
        assert Path(sandbox.said("kubeconfig")).exists()
        sandbox.signal(number)
        assert sandbox.process.wait(timeout_s=10) == 0
    assert folders(log) == []
    assert "Traceback" not in log.read_text()


@pytest.mark.sandbox
def test_an_open_watch_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    with (
        started(tmp_path / "log") as sandbox,
        Client(base_url=sandbox.said("API server"), verify=WITHOUT_TLS) as api,
        api.stream("GET", "/api/v1/nodes?watch=true") as watch,
    ):
        next(watch.iter_lines())
        sandbox.signal(signal.SIGINT)
        assert sandbox.process.wait(timeout_s=10) == 0


@pytest.mark.sandbox
def test_impatient_signals_do_not_disturb_the_cleaning_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started(log) as sandbox:
        for _ in range(5):
            sandbox.signal(signal.SIGINT)
        assert sandbox.process.wait(timeout_s=10) == 0
    assert folders(log) == []
    assert "Traceback" not in log.read_text()


@pytest.mark.sandbox
def test_two_of_them_do_not_meet(tmp_path: Path) -> None:
    with started(tmp_path / "one", "--nodes=1") as one, started(tmp_path / "two") as two:
        assert (len(nodes(one)), len(nodes(two))) == (1, 10)
        assert one.said("kubeconfig") != two.said("kubeconfig")


@pytest.mark.sandbox
def test_one_is_started_again_on_the_port_of_the_last(tmp_path: Path) -> None:
    with started(tmp_path / "one") as one:
        port = one.said("API server").rpartition(":")[2]
        nodes(one)
        one.signal(signal.SIGINT)
        one.process.wait(timeout_s=10)
    with started(tmp_path / "two", f"--port={port}") as two:
        assert two.said("API server").endswith(f":{port}")
        assert len(nodes(two)) == 10


@pytest.mark.parametrize("flag", ["--port", "--extender-port"])
@pytest.mark.parametrize("kind", ["embedded", "real"])
def test_a_port_in_use_is_said_in_one_line(flag: str, kind: str, tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"):
        (tmp_path / name).touch(mode=0o755)
    place = f"--control-plane-path={tmp_path}"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, text = refused(f"{flag}={port}", f"--control-plane={kind}", place)
    assert code == 1
    assert text == f"pumice sandbox: port {port} on 127.0.0.1: Address already in use\n"


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--cpu=many"], "--cpu: 'many' is no quantity such as 4, 500m or 16Gi"),
        (["--memory=-1Gi"], "--memory: '-1Gi' is no quantity such as 4, 500m or 16Gi"),
        (["--cpu=0"], "--cpu: '0' is no quantity such as 4, 500m or 16Gi"),
        (["--nodes=2", "--racks=3"], "--racks 3: there are only 2 nodes (--nodes)"),
        (["--vgpu"], "--vgpu: there are no GPUs to share (--gpus)"),
        (["--gpu-memory=much"], "--gpu-memory: 'much' is no quantity such as 4, 500m or 16Gi"),
        (["--cpu=2", "--numa=3"], "--numa 3: a node has only 2 cpus (--cpu)"),
        (["--form=b"], "--form b needs --control-plane real"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, list) else "",
)
def test_what_makes_no_sense_is_said_in_one_line(flags: list[str], complaint: str) -> None:
    assert refused(*flags) == (2, f"pumice sandbox: {complaint}\n")


@pytest.mark.parametrize(
    "flag",
    [
        "--nodes=-1",
        "--nodes=many",
        "--gpus=-1",
        "--racks=-1",
        "--numa=9",
        "--batch=101",
        "--numa-policy=some",
        "--port=70000",
        "--form=d",
        "--control-plane=toy",
    ],
)
def test_what_no_option_takes_names_the_option(flag: str) -> None:
    code, text = refused(flag)
    assert code == 2
    assert flag.partition("=")[0] in text


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_missing_programs_are_named(folder: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    place = tmp_path / folder
    code, text = refused("--control-plane=real", f"--control-plane-path={place}")
    assert code == 1
    assert text == (
        f"pumice sandbox: {place} has no etcd, kube-apiserver, kube-scheduler,"
        " kube-controller-manager\n"
    )


def test_without_built_programs_it_says_how_to_get_them(tmp_path: Path) -> None:
    environment = {"PUMICE_CACHE": str(tmp_path), "PUMICE_CONTROLPLANE": ""}
    code, text = refused("--control-plane=real", env=environment)
    assert code == 1
    assert len(text.splitlines()) == 1
    assert "run `make controlplane`" in text


def test_a_configuration_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    code, text = refused(f"--scheduler-conf={tmp_path / 'absent'}")
    assert code == 2
    assert "--scheduler-conf" in text


@pytest.mark.sandbox
def test_racks_are_labels_of_nodes_and_hyper_nodes(tmp_path: Path) -> None:
    with started(tmp_path / "log", "--nodes=5", "--racks=2") as sandbox:
        assert racks_of(sandbox) == ["rack-0", "rack-0", "rack-0", "rack-1", "rack-1"]
        assert tiers(sandbox) == {"rack-0": 1, "rack-1": 1, "spine": 2}


@pytest.mark.sandbox
def test_the_example_of_topology_affinity_has_a_rack_for_each_task(tmp_path: Path) -> None:
    (job,) = documents(ROOT / "examples" / "scheduling" / "topology-affinity.yaml")
    with (
        started(tmp_path / "log", "--nodes=4", "--cpu=4", "--racks=2") as sandbox,
        ApiClient(sandbox.said("API server")) as api,
    ):
        api.create(job, resource=JOBS, namespace="default")
        pods = api.until(
            PODS,
            lambda pods: sum(bool(pod["spec"].get("nodeName")) for pod in pods) == 4,
            namespace="default",
            what="all are bound",
            timeout_s=20,
        )
        racks = dict(zip(nodes(sandbox), racks_of(sandbox), strict=True))
    found = {(pod["metadata"]["name"][:-2], racks[pod["spec"]["nodeName"]]) for pod in pods}
    assert len(found) == len({rack for _, rack in found}) == 2


@pytest.mark.sandbox
def test_the_example_of_network_topology_can_be_tried_on_racks(tmp_path: Path) -> None:
    (job,) = documents(ROOT / "examples" / "scheduling" / "network-topology.yaml")
    with (
        started(tmp_path / "log", "--nodes=4", "--cpu=2", "--racks=2") as sandbox,
        ApiClient(sandbox.said("API server")) as api,
    ):
        api.create(job, resource=JOBS, namespace="default")

        def is_in_a_rack(group: Document) -> bool:
            told = group["metadata"].get("annotations", {})
            return str(told.get("volcano.sh/job-allocated-hypernode")).startswith("rack-")

        api.until(
            POD_GROUPS,
            lambda groups: any(map(is_in_a_rack, groups)),
            namespace="default",
            what="the gang is in a rack",
            timeout_s=20,
        )
        there = subprocess.run(
            [COMMAND, "top", "nodes", "--topology"],
            env=sandbox.environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")
    assert sorted(line.split()[3] for line in there if line.startswith("    rack-")) == [
        "0/4",
        "3/4",
    ]


@pytest.mark.sandbox
def test_the_example_of_numa_nodes_can_be_tried_on_machines_that_have_some(tmp_path: Path) -> None:
    """As docs/numa.md says."""
    conf = tmp_path / "conf.yaml"
    shipped = (ROOT / "scheduler-config" / "volcano-scheduler.conf").read_text()
    conf.write_text(f"{shipped}  - name: numa-aware\n")
    flags = ("--nodes=1", "--cpu=4", "--numa=2", f"--scheduler-conf={conf}")
    (job,) = documents(ROOT / "examples" / "scheduling" / "numa.yaml")
    with (
        started(tmp_path / "log", *flags) as sandbox,
        ApiClient(sandbox.said("API server")) as api,
    ):
        api.create(job, resource=JOBS, namespace="default")

        def both_have_cpus(machines: list[Document]) -> bool:
            return any(len(each["spec"].get("podAllocations", ())) == 2 for each in machines)

        api.until(NUMA_TOPOLOGIES, both_have_cpus, what="the agent tells of both", timeout_s=20)
        (machine,) = api.list(NUMA_TOPOLOGIES)
        decided = [pod["metadata"]["annotations"] for pod in api.list(PODS, namespace="default")]
    assert machine["spec"]["numares"]["cpu"] == {"allocatable": "2-3", "capacity": 4}
    told = {annotations["volcano.sh/topology-decision"] for annotations in decided}
    assert told == {'{"numa":{"0":{"cpu":"1"}}}'}


@pytest.mark.sandbox
def test_the_example_of_shared_gpus_can_be_tried_on_machines_that_have_some(tmp_path: Path) -> None:
    """As docs/devices.md says."""
    conf = tmp_path / "conf.yaml"
    shipped = (ROOT / "scheduler-config" / "volcano-scheduler.conf").read_text()
    arguments = "{deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}"
    conf.write_text(f"{shipped}  - name: deviceshare\n    arguments: {arguments}\n")
    flags = ("--nodes=1", "--gpus=2", "--gpu-memory=32Gi", "--vgpu", f"--scheduler-conf={conf}")
    (job,) = documents(ROOT / "examples" / "scheduling" / "shared-gpus.yaml")
    with (
        started(tmp_path / "log", *flags) as sandbox,
        ApiClient(sandbox.said("API server")) as api,
    ):
        api.create(job, resource=JOBS, namespace="default")

        def all_run(pods: list[Document]) -> bool:
            return [pod["status"].get("phase") for pod in pods] == ["Running"] * 4

        api.until(PODS, all_run, what="all run", timeout_s=20)
        said = [pod["metadata"]["annotations"] for pod in api.list(PODS, namespace="default")]
    told = sorted(each["volcano.sh/vgpu-ids-new"] for each in said)
    first, second = (f"GPU-node-00000-{at},NVIDIA,16384,33:" for at in (0, 1))
    assert told == [first, first, second, second]


@pytest.mark.sandbox
def test_the_example_of_ascend_cores_can_be_tried_on_machines_that_have_chips(
    tmp_path: Path,
) -> None:
    """As docs/devices.md says."""
    conf = tmp_path / "conf.yaml"
    shipped = (ROOT / "scheduler-config" / "volcano-scheduler.conf").read_text()
    arguments = "{deviceshare.AscendMindClusterVNPUEnable: true}"
    conf.write_text(f"{shipped}  - name: deviceshare\n    arguments: {arguments}\n")
    (job,) = documents(ROOT / "examples" / "scheduling" / "ascend-cores.yaml")
    with (
        started(
            tmp_path / "log", "--nodes=1", "--cpu=8", "--chips=2", f"--scheduler-conf={conf}"
        ) as sandbox,
        ApiClient(sandbox.said("API server")) as api,
    ):
        api.create(job, resource=JOBS, namespace="default")

        def all_run(pods: list[Document]) -> bool:
            return [pod["status"].get("phase") for pod in pods] == ["Running"] * 4

        api.until(PODS, all_run, what="all run", timeout_s=20)
        said = [pod["metadata"]["annotations"] for pod in api.list(PODS, namespace="default")]
    told = Counter(each["huawei.com/npu-core"].partition("-")[2] for each in said)
    assert told == {"vir02": 2, "vir04_3c_ndvpp": 2}


@pytest.mark.sandbox
def test_the_example_of_offline_work_can_be_tried_on_machines_that_report_room_and_load(
    tmp_path: Path,
) -> None:
    """As docs/colocation.md says."""
    (queue,) = documents(ROOT / "examples" / "scheduling" / "offline-queue.yaml")
    (job,) = documents(ROOT / "examples" / "scheduling" / "offline.yaml")
    with (
        started(
            tmp_path / "log", "--nodes=1", "--cpu=2", "--memory=8Gi", "--batch=60", "--load"
        ) as sandbox,
        ApiClient(sandbox.said("API server")) as api,
    ):
        (node,) = api.list(NODES)
        offered = node["status"]["allocatable"]
        assert offered["kubernetes.io/batch-cpu"] == "1200"
        assert int(offered["kubernetes.io/batch-memory"]) == (8 << 30) * 60 // 100
        assert node["metadata"]["labels"]["volcano.sh/oversubscription"] == "true"
        api.create(queue, resource=QUEUES)
        job["spec"]["minAvailable"] = 1
        api.create(job, resource=JOBS, namespace="default")

        def one_runs(pods: list[Document]) -> bool:
            return [pod["status"].get("phase") for pod in pods].count("Running") == 1

        api.until(PODS, one_runs, what="one runs", timeout_s=20)

        def is_told(nodes: list[Document]) -> bool:
            load = json.loads(nodes[0]["metadata"]["annotations"].get(NODE_LOAD, "{}"))
            return (load.get("cpu"), load.get("memory")) == (50.0, 12.5)

        api.until(NODES, is_told, what="its load is told", timeout_s=20)


@pytest.mark.sandbox
def test_options_are_variables_too(tmp_path: Path) -> None:
    environment = {"PUMICE_NODES": "3", "PUMICE_CONTROL_PLANE": "embedded"}
    with started(tmp_path / "log", env=environment) as sandbox:
        assert len(nodes(sandbox)) == 3


def test_help_names_every_option() -> None:
    told = subprocess.run(
        [COMMAND, "sandbox", "--help"],
        env={"COLUMNS": "200", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for option in (
        "--nodes",
        "--cpu",
        "--memory",
        "--gpus",
        "--gpu-memory",
        "--vgpu",
        "--chips",
        "--racks",
        "--numa",
        "--numa-policy",
        "--batch",
        "--load",
        "--control-plane",
        "--form",
    ):
        assert option in told
