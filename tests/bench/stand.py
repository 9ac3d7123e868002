"""The control plane that is measured on, and the scheduling processes of the side at work.

The extender serves a second scheduler name that no kube-scheduler has: the *probe pod* of that name
is planned and never scheduled, so that Filter can be asked about it for as long as a row lasts,
always with the same answer.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
import msgspec
import yaml

from app.wire.filter_by_name import SAMPLE_FLOOR
from tests.bench import histogram
from tests.bench.rows import Side
from tests.clusters import nodes, pumice, workloads
from tests.clusters.client import Object
from tests.clusters.controlplane import ControlPlane, Scheduler
from tests.clusters.processes import NotReady, Process, stop_all, wait_until
from tests.clusters.pumice import Extender
from tests.clusters.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, PODS

NAMESPACE = "bench"
_PROBES = "bench-probe"
_PROBE_RATE = 25
_PROBE_END_S = 10
_NOBODY = "http://127.0.0.1:1"
_DEFAULT = "default-scheduler"

ALLOCATED = "go_gc_heap_allocs_bytes_total"
COLLECTIONS = "go_gc_cycles_automatic_gc_cycles_total"
"""Of the API server: bytes so far, and how often it collected garbage of itself."""
_LIVE = "go_gc_heap_live_bytes"
_GOAL = "go_gc_heap_goal_bytes"
_SOME = "100"
"""Nodes of a page, by which its heap grows a little."""


@dataclass(frozen=True, slots=True)
class Probed:
    """How long clients waited for an answer, in ms."""

    extender_ms: list[float] = field(default_factory=list)
    bare_ms: list[float] = field(default_factory=list)
    """From a server that does nothing, asked at the same rate with the same body."""


class Stand:
    """A control plane with nodes; one side at a time."""

    def __init__(self, folder: Path) -> None:
        self.plane = ControlPlane(
            folder,
            priority_and_fairness=False,
            apiserver_flags=("--delete-collection-workers=4",),
        )
        self.side: Side | None = None
        self.node_names: list[str] = []
        self.extender: Extender | None = None
        self.scheduler: Scheduler | None = None
        self._others: list[Process] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.plane)
            stack.callback(self.stop_side)
            self._install()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _install(self) -> None:
        api = self.plane.api
        crds = subprocess.run([pumice.COMMAND, "crds"], check=True, capture_output=True, text=True)
        for document in yaml.safe_load_all(crds.stdout):
            api.apply(document)
        api.until(
            CUSTOM_RESOURCE_DEFINITIONS, lambda items: all(map(_established, items)), what="served"
        )
        for name in (NAMESPACE, _PROBES):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        api.until(NAMESPACES, lambda items: len(items) > 1)

    def grow(self, count: int) -> None:
        """Have that many nodes."""
        made = [f"node-{index:05}" for index in range(len(self.node_names), count)]
        api = self.plane.api
        nodes.in_parallel(
            lambda name: api.create(nodes.node(name, cpu="16", memory="64Gi"), resource=NODES), made
        )
        self.node_names += made

    # Sides --------------------------------------------------------------------------------------

    def use(self, side: Side) -> bool:
        """Have the processes of a side run; True when they were started just now."""
        if side is self.side:
            return False
        self.stop_side()
        if side.has_extender:
            foreign = "true" if side is Side.FORM_C else "false"
            flags = (
                f"--scheduler-name={workloads.SCHEDULER},{_PROBES}",
                f"--bind-foreign-pods={foreign}",
            )
            self.extender = pumice.start_extender(self.plane, flags=flags)
        if side not in {Side.FORM_A, Side.FORM_B, Side.FORM_C}:
            self.scheduler = self._start_stock(all_nodes=side is Side.STOCK_ALL)
        if side not in {Side.STOCK, Side.STOCK_ALL}:
            form = {Side.FORM_B: "b", Side.FORM_C: "c"}.get(side, "a")
            url = self.extender.url if self.extender else _NOBODY
            ours = pumice.start_scheduler(self.plane, url, form=form)
            if self.scheduler is None:
                self.scheduler = ours
            else:
                self._others.append(ours)
        self.side = side
        return True

    def stop_side(self) -> None:
        """End the processes of the side at work."""
        stop_all([each for each in (self.scheduler, self.extender, *self._others) if each])
        self.side, self.scheduler, self.extender, self._others = None, None, None, []
        self.plane.api.delete_all(PODS, namespace=_PROBES)

    def pids(self) -> dict[str, int]:
        """Process ids by what they are."""
        found: dict[str, Process | None] = {
            "apiserver": self.plane.apiserver,
            "etcd": self.plane.etcd,
            "scheduler": self.scheduler,
            "extender": self.extender,
            "idle scheduler": self._others[0] if self._others else None,
        }
        return {name: process.pid for name, process in found.items() if process}

    def _start_stock(self, *, all_nodes: bool) -> Scheduler:
        profile: Object = {"schedulerName": _DEFAULT}
        if all_nodes:
            profile["percentageOfNodesToScore"] = 100
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": self.plane.kubeconfig, "qps": 5000, "burst": 10000},
            "profiles": [profile],
        }
        path = self.plane.folder / "stock.yaml"
        path.write_text(yaml.safe_dump(config))
        return self.plane.start_scheduler(path, name="stock-scheduler")

    # The API server's heap ----------------------------------------------------------------------

    def set_heap(self, share: float) -> None:
        """Have the API server be so far between two collections of garbage, from 0 to 1.

        One takes a second of processor there, and comes when as much was allocated as is in use,
        which is what a run allocates: so where a run begins decides how many it has.
        """
        request = self.plane.api.request
        request("GET", "/debug/pprof/heap", params={"gc": "1", "debug": "1"})
        began = self._of_apiserver(ALLOCATED, _LIVE, _GOAL)
        end = began[ALLOCATED] + share * (began[_GOAL] - began[_LIVE])
        while self._of_apiserver(ALLOCATED)[ALLOCATED] < end:
            request("GET", NODES.path(), params={"limit": _SOME})

    # Counters -----------------------------------------------------------------------------------

    def counters(self) -> histogram.Samples:
        """What the API server, the kube-scheduler and the extender counted so far."""
        samples = self._of_apiserver("apiserver_request_t", ALLOCATED, COLLECTIONS)
        if self.scheduler is not None:
            page = httpx2.get(f"{self.scheduler.url}/metrics", verify=False, trust_env=False).text
            samples |= histogram.parse(page, "scheduler_scheduling_algorithm_duration_seconds")
        if self.extender is not None:
            samples |= {
                name: value
                for name, value in self.extender.metrics().items()
                if name.startswith("pumice_")
            }
        return samples

    def _of_apiserver(self, *prefixes: str) -> histogram.Samples:
        return histogram.parse(self.plane.api.request("GET", "/metrics"), *prefixes)

    # The probe ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def probing(self, into: Probed, *, one_node: bool, bare: bool) -> Iterator[None]:
        """Ask Filter about the probe pod while the block runs, and a ``bare`` server beside it."""
        if self.extender is None:
            raise RuntimeError("this side has no extender")
        pod = self._probe_pod()
        node = self._planned_node(pod)
        body = _filter_body(pod, [node] if one_node else self._sample(node))
        where = urlsplit(self.extender.url)
        assert where.port is not None
        with contextlib.ExitStack() as stack:
            if bare:
                port = stack.enter_context(_bare_server())
                stack.enter_context(_asking(port, body, into=into.bare_ms))
            stack.enter_context(_asking(where.port, body, into=into.extender_ms))
            yield

    def _sample(self, node: str) -> list[str]:
        """As many nodes as kube-scheduler offers of our profile, that one among them."""
        count = max(SAMPLE_FLOOR, len(self.node_names) // 10)
        others = [name for name in self.node_names if name != node]
        return [node, *others[: count - 1]]

    def _probe_pod(self) -> Object:
        found = self.plane.api.list(PODS, namespace=_PROBES)
        if found:
            return found[0]
        pod = workloads.pod("probe", cpu="1m", memory="1Mi", scheduler=_PROBES)
        return self.plane.api.create(pod, namespace=_PROBES)

    def _planned_node(self, pod: Object) -> str:
        chosen: list[str] = []

        def planned() -> bool:
            chosen[:] = self._filter(pod)["NodeNames"] or []
            return len(chosen) == 1

        wait_until(planned, timeout_s=10, what="the probe pod planned")
        return chosen[0]

    def _filter(self, pod: Object) -> Any:
        assert self.extender is not None
        body = _filter_body(pod, self.node_names)
        answer = httpx2.post(f"{self.extender.url}/v1/filter", content=body, trust_env=False)
        return answer.raise_for_status().json()


@contextlib.contextmanager
def _bare_server() -> Iterator[int]:
    """A server of `bare`; gives its port."""
    words = [sys.executable, "-m", "tests.bench.bare"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.terminate()


@contextlib.contextmanager
def _asking(port: int, body: bytes, *, into: list[float]) -> Iterator[None]:
    """Have a process of `probe` ask while the block runs; times in ms go to ``into``."""
    words = [sys.executable, "-m", "tests.bench.probe", "127.0.0.1", str(port), str(_PROBE_RATE)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(body)
        process.stdin.close()
        process.stdin = None
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.terminate()
            told, _ = process.communicate(timeout=_PROBE_END_S)
    answer = msgspec.json.decode(told)
    if answer["refused"]:
        raise NotReady(f"{answer['refused']} Filter calls for the probe pod were refused")
    into += answer["times_ms"]


def _filter_body(pod: Object, names: list[str]) -> bytes:
    return msgspec.json.encode({"Pod": pod, "Nodes": None, "NodeNames": names})


def _established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
