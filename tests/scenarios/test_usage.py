"""usage: the example of its document, with loads of a server that speaks as Prometheus does."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
import yaml
from aiohttp import web

from tests.clusters import workloads
from tests.clusters.installation import ROOT
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.kube.server import ScriptedServer

DOCUMENT = ROOT / "docs" / "usage.md"
_WAIT_S = 30.0


class Prometheus(ScriptedServer):
    """Tells the same loads, as of now, until others are set."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu: dict[str, float] = {}
        self.on("GET", "/api/v1/query", self._answer)

    async def _answer(self, _: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        of_cpu = "node_cpu_seconds_total" in request.query["query"]
        result = [
            {"metric": {"instance": name}, "value": [time.time(), str(cpu if of_cpu else 10.0)]}  # noqa: TID251 - Prometheus has its own clock
            for name, cpu in self.cpu.items()
        ]
        data = {"resultType": "vector", "result": result}
        return web.json_response({"status": "success", "data": data})


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    with Prometheus() as server:
        yield server


@pytest.fixture(scope="module")
def scheduler_conf(prometheus: Prometheus) -> str:
    """The first block of the document, which asks our server each second."""
    found = re.search(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    document = yaml.safe_load(found[1])
    document["metrics"] |= {"address": prometheus.base, "interval": "1s"}
    return yaml.safe_dump(document)


def wait_asked(prometheus: Prometheus) -> None:
    """Wait until the loads of now are known."""
    before = len(prometheus.seen)
    wait_until(lambda: len(prometheus.seen) >= before + 4, timeout_s=_WAIT_S, what="asked")


def test_pods_go_to_idle_nodes_and_wait_where_all_are_busy(
    place: Place, prometheus: Prometheus
) -> None:
    idle, busy, full = place.add_nodes(3, cpu="8")
    prometheus.cpu = {idle: 5.0, busy: 70.0, full: 95.0}
    wait_asked(prometheus)
    place.add_gang("first", 2)
    place.wait_bound("first", 2)
    assert {workloads.node_of(pod) for pod in place.bound("first")} == {idle}

    prometheus.cpu = dict.fromkeys((idle, busy, full), 95.0)
    wait_asked(prometheus)
    place.add_gang("second", 2)
    place.wait_summary("second", "cpu load of at most 80 % allowed; the least is 95 %")
    prometheus.cpu = {idle: 95.0, busy: 20.0, full: 95.0}
    place.wait_bound("second", 2)
    assert {workloads.node_of(pod) for pod in place.bound("second")} == {busy}


def test_nodes_of_unknown_load_take_pods_as_if_there_were_no_plugin(
    place: Place, prometheus: Prometheus
) -> None:
    prometheus.cpu = {}
    place.add_nodes(1, cpu="8")
    wait_asked(prometheus)
    assert place.cluster.extender.metrics()["pumice_node_loads_known"] == 0
    place.add_gang("any", 2)
    place.wait_bound("any", 2)
