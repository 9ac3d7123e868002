"""``pumice extender`` as a process: it starts with what it is told and always ends in order."""

import json
import os
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import yaml
from httpx2 import Client, ReadTimeout, TransportError

from app.kube.errors import ConfigError
from app.main.connecting import open_client
from app.main.informers import KINDS
from app.main.serving.server import CONNECTIONS
from app.sandbox.assembly import kubeconfig
from app.sandbox.controlplane.certificates import Authority
from app.sandbox.controlplane.free_ports import free_port
from app.sandbox.controlplane.processes import Process, wait_until
from app.settings.extender import ExtenderSettings
from tests.clusters.client import WITHOUT_TLS
from tests.clusters.pages import Pages
from tests.clusters.processes import ended
from tests.clusters.pumice import COMMAND
from tests.kube.plugins import Plugin
from tests.main.extending import Post, binds_held, cluster, extender, gang, planned, ready


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


def test_idle_connections_to_the_second_port_leave_probes_answered(tmp_path: Path) -> None:
    reading = free_port()
    flag = f"--listen-address=127.0.0.1:{reading}"
    with cluster() as api, extender(tmp_path, api, flag) as process, ExitStack() as stack:
        ready(process)
        for _ in range(CONNECTIONS + 100):
            stack.enter_context(socket.create_connection(("127.0.0.1", reading), timeout=20))
        other = Pages()
        other.url = f"http://127.0.0.1:{reading}"
        for page in (process, other):
            assert page.status("/livez") == 200
            assert page.status("/readyz") == 200
        limits = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
        (soft, hard) = next(line.split()[3:5] for line in limits if "open files" in line)
        assert soft == hard


@pytest.mark.parametrize("front", [True, False])
def test_sigterm_answers_held_binds_and_ends_with_0(tmp_path: Path, *, front: bool) -> None:
    flag = f"--front={front}".lower()
    with cluster(*gang("g", size=2)) as api, extender(tmp_path, api, flag) as process:
        ready(process)
        held = Post(f"{process.url}/bind", planned(process))
        wait_until(lambda: binds_held(process) == 1, timeout_s=20, what="a held Bind")
        assert ended(process) == 0
        held.join(timeout=10)
        assert held.answer is not None
        assert held.answer[0] == 200
        assert json.loads(held.answer[1]) == {"Error": "extender is stopping"}


@pytest.mark.parametrize("front", [True, False])
def test_a_client_that_hangs_up_holds_no_bind_any_more(tmp_path: Path, *, front: bool) -> None:
    flag = f"--front={front}".lower()
    with cluster(*gang("g", size=2)) as api, extender(tmp_path, api, flag) as process:
        ready(process)
        bind = planned(process)
        with (
            Client(
                base_url=process.url, trust_env=False, timeout=0.5, verify=WITHOUT_TLS
            ) as client,
            pytest.raises(ReadTimeout),
        ):
            client.post("/bind", json=bind)
        wait_until(lambda: binds_held(process) == 0, timeout_s=20, what="no held Bind")
        assert ended(process) == 0


def test_sigterm_while_the_api_server_does_not_answer(tmp_path: Path) -> None:
    """It lives, says what it waits for, and ends in time all the same."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with extender(tmp_path, url) as process:
            process.wait_ready(lambda: process.status("/livez") == 200, timeout_s=60)
            with Client(base_url=process.url, trust_env=False, verify=WITHOUT_TLS) as client:
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
        with Client(trust_env=False, verify=WITHOUT_TLS) as client:

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
