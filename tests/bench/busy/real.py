"""The same arrivals on the real control plane: ``python -m tests.bench.busy.real``.

PodGroups and their pods are created as they arrive, as operators do it; a gang whose members are
all bound runs for its time and is deleted. The extender and the stock kube-scheduler run as
installed. Printed beside the simulation of the same arrivals.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path

import yaml

from tests.bench.busy.__main__ import CONFIGURATIONS, PATIENCE
from tests.bench.busy.__main__ import run as simulate
from tests.bench.busy.figures import Run
from tests.bench.busy.load import CORES, NODES, WEIGHTS, Arrival, arrivals
from tests.clusters import installation, workloads
from tests.clusters.client import ApiClient
from tests.clusters.controlplane import ControlPlane
from tests.clusters.nodes import in_parallel, node
from tests.clusters.resources import NAMESPACES, POD_GROUPS, PODS, QUEUES
from tests.clusters.resources import NODES as NODE_RESOURCE
from tests.clusters.rig import Rig, Setting

_NAMESPACE = "busy"
_LOOK_S = 0.2
_WRITERS = 16


@dataclass(slots=True)
class Player:
    """Creates gangs as they arrive, and ends those that have run for their time."""

    api: ApiClient
    load: Sequence[Arrival]
    seconds: float
    started: dict[str, float] = field(default_factory=dict)
    partial: int = 0
    _begin: float = field(default_factory=time.monotonic)
    _ends: list[tuple[float, str]] = field(default_factory=list)

    def play(self) -> Run:
        """All that happens until the end."""
        coming = list(reversed(self.load))
        with ThreadPoolExecutor(_WRITERS) as pool:
            while (now := time.monotonic() - self._begin) < self.seconds:
                while coming and coming[-1].at <= now:
                    pool.submit(self._arrive, coming.pop())
                while self._ends and self._ends[0][0] <= now:
                    pool.submit(self._end, heappop(self._ends)[1])
                self._look(now)
                time.sleep(_LOOK_S)
        return Run(self.load, self.started, self.seconds, self.partial)

    def _arrive(self, arrival: Arrival) -> None:
        group = workloads.pod_group(
            arrival.name,
            min_member=arrival.size,
            queue=arrival.queue,
            minResources={"cpu": str(arrival.size)},
        )
        self.api.create(group, resource=POD_GROUPS, namespace=_NAMESPACE)
        for number in range(arrival.size):
            pod = workloads.pod(f"{arrival.name}-{number}", group=arrival.name)
            self.api.create(pod, resource=PODS, namespace=_NAMESPACE)

    def _look(self, now: float) -> None:
        """Gangs whose members are all bound run from now on."""
        bound: Counter[str] = Counter(
            pod["metadata"]["labels"]["group"]
            for pod in self.api.list(PODS, namespace=_NAMESPACE)
            if workloads.node_of(pod)
        )
        for each in self.load:
            if each.name not in self.started and bound[each.name] == each.size:
                self.started[each.name] = now
                heappush(self._ends, (now + each.run_s, each.name))

    def _end(self, name: str) -> None:
        self.api.delete(POD_GROUPS, name, namespace=_NAMESPACE)
        self.api.delete_all(PODS, namespace=_NAMESPACE, label_selector=f"group={name}")


def _conf(name: str) -> str:
    arguments = {"borrowing.patience": PATIENCE}
    tiers = (("priority", "gang", "conformance"), CONFIGURATIONS[name])
    sharing = ("proportion", "capacity", "drf")
    return yaml.safe_dump(
        {
            "actions": "enqueue, allocate, backfill",
            "tiers": [
                {
                    "plugins": [
                        {"name": plugin, "arguments": arguments}
                        if plugin in sharing
                        else {"name": plugin}
                        for plugin in tier
                    ]
                }
                for tier in tiers
            ],
        }
    )


def run(name: str, seed: int, *, seconds: float) -> Run:
    """One run of that configuration on the real control plane."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        conf = path / "volcano-scheduler.conf"
        conf.write_text(_conf(name))
        with ControlPlane(path / "controlplane") as plane:
            plane.start_controllers()
            installation.apply(plane.api, installation.INSTALL)
            installation.wait_established(plane.api)
            installation.wait_gating(plane.api)
            with Rig(plane, Setting(conf=conf)):
                _furnish(plane.api)
                return Player(plane.api, arrivals(seed, seconds=seconds), seconds).play()


def _furnish(api: ApiClient) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
    api.create(space, resource=NAMESPACES)
    for queue, weight in WEIGHTS.items():
        api.create(workloads.queue(queue, weight=weight), resource=QUEUES)
    cores = str(CORES // NODES)
    in_parallel(
        lambda number: api.create(node(f"n{number:02}", cpu=cores), resource=NODE_RESOURCE),
        range(NODES),
    )


def main(arguments: Sequence[str]) -> None:
    """Print one run and the simulation of the same arrivals."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.busy.real")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--configuration", choices=sorted(CONFIGURATIONS), default="shipped")
    given = parser.parse_args(arguments)
    name, seed, seconds = given.configuration, given.seed, given.seconds
    played = run(name, seed, seconds=seconds)
    simulated = simulate(name, seed, seconds=seconds)
    for title, each in (("real control plane", played), ("simulation", simulated)):
        shares = ", ".join(f"{queue} {share:.2f}" for queue, share in each.of_shares.items())
        sys.stdout.write(
            f"{title}: in use {each.in_use:.3f}; of their shares {shares}; "
            f"longest wait of 32: {each.longest_wait:.0f} s; {len(each.started)} gangs began\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
