"""``pumice extender`` as a process: it starts with what it is told and always ends in order."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from httpx2 import Client, TransportError

from app.kube.errors import ConfigError
from app.main.connecting import open_client
from app.main.informers import KINDS
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.assembly import kubeconfig
from app.sandbox.clock import WallClock
from app.sandbox.controlplane.certificates import Authority
from app.sandbox.controlplane.ports import free_port
from app.sandbox.controlplane.processes import Process, wait_until
from app.settings import ExtenderSettings
from app.wire import manifests
from tests.bench import usage
from tests.clusters.pages import Pages
from tests.clusters.processes import ended
from tests.clusters.pumice import COMMAND
from tests.kube.plugins import Plugin
from tests.sandbox.documents import cpu, node, pod
from tests.sandbox.serving import serving

QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 1},
}


class Extender(Process, Pages):
    """A running one, and what it serves; ``api_url`` is its API server's."""

    api_url: str


@contextmanager
def extender(
    folder: Path, api_url: str, *flags: str, env: Mapping[str, str] | None = None
) -> Iterator[Extender]:
    """Start one against that API server; ended in any case."""
    config = folder / "kubeconfig"
    config.write_text(yaml.safe_dump(kubeconfig(api_url)))
    port = free_port()
    argv: list[str | Path] = [COMMAND, "extender", f"--port={port}", f"--kubeconfig={config}"]
    environment = {**os.environ, "PUMICE_LEADER_ELECT": "false", **(env or {})}
    process = Extender(
        [*argv, *flags], log=folder / "extender.log", env=environment, name="extender"
    )
    process.url, process.api_url = f"http://127.0.0.1:{port}", api_url
    with process:
        yield process


@contextmanager
def cluster(*documents: dict[str, Any]) -> Iterator[str]:
    """The URL of an API server with our kinds, a node and ``documents``."""
    server = ApiServer(clock=WallClock(), crds=list(yaml.safe_load_all(manifests.crd_stream())))
    for document in (QUEUE, node("n1"), *documents):
        server.create(document)
    with serving(server) as url:
        yield url


def gang(name: str, *, size: int) -> list[dict[str, Any]]:
    """A PodGroup that is let in already, and its pods."""
    group: dict[str, Any] = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": size, "queue": "default"},
        "status": {"phase": "Inqueue"},
    }
    annotations = {"scheduling.k8s.io/group-name": name}
    return [
        group,
        *(
            pod(
                f"{name}-{i}",
                metadata={"annotations": annotations},
                schedulerName="volcano",
                resources=cpu("1"),
            )
            for i in range(size)
        ),
    ]


def ready(process: Extender) -> None:
    process.wait_ready(lambda: process.status("/readyz") == 200, timeout_s=60)


class Post(threading.Thread):
    """A call of kube-scheduler, under way; ``answer`` if it got one."""

    def __init__(self, url: str, body: Mapping[str, Any]) -> None:
        super().__init__(daemon=True)
        self._url, self._body = url, body
        self.answer: tuple[int, str] | None = None
        self.start()

    def run(self) -> None:
        with Client(timeout=30, trust_env=False) as client, suppress(TransportError):
            response = client.post(self._url, json=dict(self._body))
            self.answer = response.status_code, response.text


def test_it_goes_before_others_where_that_is_permitted(tmp_path: Path) -> None:
    trial = subprocess.run([sys.executable, "-c", "import os; os.nice(-3)"], check=False)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with cluster() as api, extender(tmp_path, api, "--urgency=3") as process:
        ready(process)
        threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        wanted = own - 3 if trial.returncode == 0 else own
        urgent = [t for t in threads if os.getpriority(os.PRIO_PROCESS, t) == wanted]
        assert process.pid in urgent
        assert len(urgent) > len(KINDS)  # the informers' threads came later


def test_sigterm_answers_held_binds_and_ends_with_0(tmp_path: Path) -> None:
    with cluster(*gang("g", size=2)) as api, extender(tmp_path, api) as process:
        ready(process)
        with Client(base_url=api, trust_env=False) as client:
            stored = client.get("/api/v1/namespaces/default/pods/g-0").json()
        body = {"Pod": stored, "Nodes": None, "NodeNames": ["n1"]}
        with Client(base_url=process.url, trust_env=False) as client:
            wait_until(
                lambda: client.post("/filter", json=body).json()["NodeNames"] == ["n1"],
                timeout_s=20,
                what="a place",
            )
        bind = {
            "PodName": "g-0",
            "PodNamespace": "default",
            "PodUID": stored["metadata"]["uid"],
            "Node": "n1",
        }
        held = Post(f"{process.url}/bind", bind)
        wait_until(
            lambda: process.get("/debug/gangs").get("default/g", {}).get("heldBinds") == 1,
            timeout_s=20,
            what="a held Bind",
        )
        assert ended(process) == 0
        held.join(timeout=10)
        assert held.answer is not None
        assert held.answer[0] == 200
        assert json.loads(held.answer[1]) == {"Error": "extender is stopping"}


def test_sigterm_while_the_api_server_does_not_answer(tmp_path: Path) -> None:
    """It lives, says what it waits for, and ends in time all the same."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with extender(tmp_path, url) as process:
            process.wait_ready(lambda: process.status("/livez") == 200, timeout_s=60)
            with Client(base_url=process.url, trust_env=False) as client:
                answer = client.get("/readyz")
            assert answer.status_code == 503
            assert "waiting for the first listing of pods/volcano\n" in answer.text
            assert "waiting for the first planning cycle\n" in answer.text
            call = Post(f"{process.url}/filter", {"Pod": {}, "NodeNames": ["n1"]})
            assert ended(process) == 0
            call.join(timeout=10)


def test_sigterm_before_anything_is_loaded_ends_with_0(tmp_path: Path) -> None:
    with extender(tmp_path, f"http://127.0.0.1:{free_port()}") as process:
        port = int(process.url.rpartition(":")[2])
        wait_until(lambda: _listens(port), timeout_s=60, what="listening")
        assert ended(process) == 0


def test_sigterm_while_a_plugin_is_to_say_who_we_are_ends_with_0(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    plugin = Plugin(tmp_path)
    plugin.command.write_text(f"#!/bin/sh\ntouch {asked}\nexec sleep 20\n")
    config = tmp_path / "slow"
    given = kubeconfig(f"http://127.0.0.1:{free_port()}")
    config.write_text(
        yaml.safe_dump(given | {"users": [{"name": "pumice-sandbox", "user": plugin.user}]})
    )
    with extender(tmp_path, "http://127.0.0.1:1", f"--kubeconfig={config}") as process:
        wait_until(asked.exists, timeout_s=60, what="the plugin")
        assert ended(process) == 0


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_configuration_that_changes_is_read_again(tmp_path: Path) -> None:
    """Everything that can be set is set by the environment here."""
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text("actions: dance\n")
    env = {
        "PUMICE_LOG_FORMAT": "json",
        "PUMICE_LOG_LEVEL": "debug",
        "PUMICE_DEFAULT_QUEUE": "batch",
        "PUMICE_SCHEDULER_CONF": str(conf),
    }
    with cluster() as api, extender(tmp_path, api, env=env) as process:
        ready(process)
        with Client(trust_env=False) as client:

            def notes() -> str:
                return client.get(f"{process.url}/readyz").text.removeprefix("ok\n")

            assert "unknown action 'dance'" in notes()
            conf.write_text("actions: allocate\n")
            wait_until(lambda: notes() == "", timeout_s=20, what="the good configuration")
            conf.write_bytes(b"actions: \xff\xfe\n")
            wait_until(lambda: "refused" in notes(), timeout_s=20, what="a complaint")
            replacement = tmp_path / "new"
            replacement.write_text("actions: allocate, backfill\n")
            replacement.rename(conf)
            wait_until(lambda: notes() == "", timeout_s=20, what="the replaced file")
            queue = f"{api}/apis/scheduling.volcano.sh/v1beta1/queues/batch"
            wait_until(
                lambda: client.get(queue).status_code == 200, timeout_s=20, what="the default queue"
            )
        assert ended(process) == 0
    lines = process.log.read_text().splitlines()
    assert lines
    assert all(json.loads(line)["message"] for line in lines)


def test_a_certificate_that_is_replaced_is_served_without_a_restart(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    pair, later = old.server("extender"), new.server("extender")
    flags = (f"--tls-cert-file={pair.certificate}", f"--tls-private-key-file={pair.key}")

    def is_trusted(by: Authority) -> bool:
        trust = ssl.create_default_context(cafile=str(by.certificate))
        with Client(verify=trust, trust_env=False) as client, suppress(TransportError):
            return client.get(process.url.replace("http:", "https:") + "/livez").is_success
        return False

    with cluster() as api, extender(tmp_path, api, *flags) as process:
        wait_until(lambda: is_trusted(old), timeout_s=60, what="the first certificate")
        later.certificate.replace(pair.certificate)
        later.key.replace(pair.key)
        wait_until(lambda: is_trusted(new), timeout_s=20, what="the second certificate")
        assert not is_trusted(old)
        assert ended(process) == 0


# --- the front ------------------------------------------------------------------------------------


FRONT = "--front=true"


def front_of(process: Extender) -> int:
    """The process id of its front."""
    [front] = [pid for pid in usage.family(process.pid) if pid != process.pid]
    return front


def places(process: Extender) -> Callable[[], bool]:
    """Whether g-0, by now, has its place, n1."""
    with Client(base_url=process.api_url, trust_env=False) as client:
        stored = client.get("/api/v1/namespaces/default/pods/g-0").json()
    body = {"Pod": stored, "Nodes": None, "NodeNames": ["n1"]}

    def asked() -> bool:
        with Client(base_url=process.url, trust_env=False) as client:
            return bool(client.post("/v1/filter", json=body).json()["NodeNames"] == ["n1"])

    return asked


def answered_by_front(process: Extender) -> float:
    return process.metrics()["pumice_front_answers_total"]


def test_the_front_answers_for_pods_that_have_their_places(tmp_path: Path) -> None:
    with cluster(*gang("g", size=1)) as api, extender(tmp_path, api, FRONT) as process:
        ready(process)
        has_place = places(process)
        wait_until(has_place, timeout_s=20, what="a place")
        wait_until(lambda: answered_by_front(process) > 0, timeout_s=20, what="the front's answer")
        before = answered_by_front(process)
        assert all(has_place() for _ in range(5))
        wait_until(lambda: answered_by_front(process) == before + 5, timeout_s=20, what="5 more")
        counted = process.metrics()['pumice_extender_answers_total{answer="chosen",verb="filter"}']
        assert counted >= before + 5


def test_a_front_that_is_killed_is_followed_by_another(tmp_path: Path) -> None:
    with cluster(*gang("g", size=1)) as api, extender(tmp_path, api, FRONT) as process:
        ready(process)
        has_place = places(process)
        wait_until(has_place, timeout_s=20, what="a place")
        before = front_of(process)
        os.kill(before, signal.SIGKILL)
        assert has_place(), "the call waits for the next one"
        assert front_of(process) != before
        answered = answered_by_front(process)
        assert has_place(), "the next one was told all places"
        wait_until(lambda: answered_by_front(process) > answered, timeout_s=20, what="its answer")
        assert process.metrics()["pumice_front_starts_total"] == 2
        assert ended(process) == 0


def test_the_front_ends_with_an_extender_that_is_killed_and_leaves_its_port(tmp_path: Path) -> None:
    with cluster() as api, extender(tmp_path, api, FRONT) as process:
        ready(process)
        front, port = front_of(process), int(process.url.rpartition(":")[2])
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not _runs(front), timeout_s=5, what="the front's end")
        wait_until(lambda: _is_free(port), timeout_s=5, what="the port")


def test_there_is_none_where_it_is_not_wanted(tmp_path: Path) -> None:
    with cluster(*gang("g", size=1)) as api, extender(tmp_path, api) as process:
        ready(process)
        wait_until(places(process), timeout_s=20, what="a place")
        assert usage.family(process.pid) == [process.pid]
        assert answered_by_front(process) == 0
        assert ended(process) == 0


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("content", ["just text", "[1, 2]", "{", "apiVersion: v1\nkind: Config\n"])
def test_a_kubeconfig_that_is_none_says_so(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(ConfigError, match="kubeconfig"):
        open_client(ExtenderSettings(kubeconfig=path))


def test_a_start_that_cannot_be_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("just text")
    argv: list[str | Path] = [COMMAND, "extender", "--port=0", f"--kubeconfig={path}"]
    with Process(argv, log=tmp_path / "log") as process:
        assert process.wait(timeout_s=60) == 2
    [line] = (tmp_path / "log").read_text().splitlines()
    assert line.startswith(f"pumice: {path} is not a kubeconfig: ")
