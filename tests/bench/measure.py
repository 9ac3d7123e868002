"""One run of one row: create its pods, wait until all are bound, and count what that cost.

The clock runs from the first create (of the PodGroups, unless they are admitted before) to the last
binding that the watch shows; CPU is counted over the same time. Everything else, such as reading
metrics pages and the ledger, happens before and after.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.bench import histogram, usage
from tests.bench.gangs import Binds
from tests.bench.histogram import Histogram, Samples
from tests.bench.rows import Arrival, Row
from tests.bench.stand import ALLOCATED, COLLECTIONS, NAMESPACE, Probed, Stand
from tests.bench.traffic import Request, Traffic, post_of
from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.resources import POD_GROUPS, PODS

_PATIENCE_S = 90
_ADMISSION_S = 30
_POLL_S = 0.05
_SETTLE_S = 2.0
_MIB = 2**20
_WARM_UP_PODS = 60
_WRITES = ("POST", "PUT", "PATCH", "DELETE", "APPLY")
_DEFAULT = "default-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one run came to."""

    row: str
    pods: int
    bound: int
    seconds: float
    slots_s: float
    """From the PodGroups' creation until all had slots, or were Inqueue; not part of `seconds`."""
    cpu_s: dict[str, float]
    rss_mib: dict[str, float]
    writes: dict[str, float]
    """Requests that change something, by verb and resource."""
    allocated_mib: float
    """By the API server."""
    collections: float
    """How often it collected garbage."""
    answers: dict[str, float]
    """Answers of the extender to Filter, the probe's calls left out."""
    filter_s: Histogram
    algorithm_s: Histogram
    probed: Probed
    partial: tuple[str, ...] = ()
    drift: int = 0

    @property
    def rate(self) -> float:
        """Pods bound per second."""
        return self.bound / self.seconds if self.seconds else 0.0


async def measure(stand: Stand, traffic: Traffic, row: Row, *, heap: float) -> Sample:
    """Run a row on its side, which has to be at work.

    ``heap``: how far the API server is between two collections of garbage when it begins.
    """
    slots_s, groups, pods = await _prepare(stand, traffic, row)
    binds = Binds(minimum=row.size, expected=row.pods)
    probed = Probed()
    stand.set_heap(heap)
    before = stand.counters()
    async with traffic.watch_binds(binds, namespace=NAMESPACE):
        with _probe(stand, row, into=probed):
            used = usage.of_all(stand.pids())
            began = time.perf_counter()
            await traffic.post_all(groups)
            await traffic.post_all(pods, pace=row.pace)
            await _until_complete(binds)
            now_used = usage.of_all(stand.pids())
    counted = histogram.growth(stand.counters(), before)
    return Sample(
        row=row.name,
        pods=row.pods,
        bound=binds.count,
        seconds=binds.last_at - began,
        slots_s=slots_s,
        cpu_s={name: now_used[name].cpu_s - used[name].cpu_s for name in used},
        rss_mib={name: each.rss_mib for name, each in now_used.items()},
        writes=_writes(counted),
        allocated_mib=counted[ALLOCATED] / _MIB,
        collections=counted[COLLECTIONS],
        answers=_answers(counted, probes=len(probed.extender_ms)),
        filter_s=histogram.histogram(counted, "pumice_extender_call_seconds", 'verb="filter"'),
        algorithm_s=histogram.histogram(counted, "scheduler_scheduling_algorithm_duration_seconds"),
        probed=probed,
        partial=tuple(sorted(binds.finish())),
        drift=_drift(stand),
    )


async def warm_up(stand: Stand, traffic: Traffic, row: Row) -> None:
    """Bind a few pods that nobody counts: connections, caches and first-time work."""
    scheduler = workloads.SCHEDULER if row.ours else _DEFAULT
    pods = [workloads.pod(f"warm-{n}", scheduler=scheduler) for n in range(_WARM_UP_PODS)]
    binds = Binds(minimum=1, expected=_WARM_UP_PODS)
    async with traffic.watch_binds(binds, namespace=NAMESPACE):
        await traffic.post_all(post_of(pod, PODS, namespace=NAMESPACE) for pod in pods)
        await _until_complete(binds)
    await clear(traffic)


async def clear(traffic: Traffic) -> None:
    """Delete what a run left, and let everybody come to rest."""
    await traffic.clear([PODS, POD_GROUPS], namespace=NAMESPACE)
    await asyncio.sleep(_SETTLE_S)


def _probe(stand: Stand, row: Row, *, into: Probed) -> contextlib.AbstractContextManager[object]:
    if not row.calls_filter or not row.ours:
        return contextlib.nullcontext()
    # Where no core is left, a second server would only take time from what is measured.
    return stand.probing(into, one_node=row.arrival is Arrival.PINNED, bare=math.isfinite(row.pace))


# The workload -----------------------------------------------------------------------------------


async def _prepare(
    stand: Stand, traffic: Traffic, row: Row
) -> tuple[float, list[Request], list[Request]]:
    """Requests for PodGroups and pods; PodGroups that come first are created and awaited here."""
    names = [f"gang-{number}" for number in range(row.gangs)]
    groups = [post_of(_pod_group(name, row), POD_GROUPS, namespace=NAMESPACE) for name in names]
    if row.arrival is Arrival.SETTLED:
        return 0.0, groups, _encoded(_settled(_pods(row, names, gated=False)))
    if row.arrival in {Arrival.AT_ONCE, Arrival.GATED}:
        gated = row.arrival is Arrival.GATED
        return 0.0, groups, _encoded(_pods(row, names, gated=gated))
    began = time.perf_counter()
    await traffic.post_all(groups)
    if row.arrival is Arrival.ADMITTED:
        await _until_admitted(traffic, row)
        pods = _pods(row, names, gated=False)
    else:
        pods = await asyncio.to_thread(_pinned, stand, row, names)
    return time.perf_counter() - began, [], _encoded(pods)


def _encoded(pods: list[Object]) -> list[Request]:
    return [post_of(pod, PODS, namespace=NAMESPACE) for pod in pods]


def _pod_group(name: str, row: Row) -> Object:
    if row.arrival in {Arrival.AT_ONCE, Arrival.SETTLED}:
        return workloads.pod_group(name, min_member=row.size)
    resources = {"cpu": str(row.size), "memory": f"{64 * row.size}Mi"}
    return workloads.pod_group(name, min_member=row.size, minResources=resources)


def _pods(row: Row, names: list[str], *, gated: bool) -> list[Object]:
    if names:
        return [pod for name in names for pod in workloads.members(name, row.size, gated=gated)]
    scheduler = workloads.SCHEDULER if row.ours else _DEFAULT
    return [workloads.pod(f"pod-{number}", scheduler=scheduler) for number in range(row.pods)]


def _settled(pods: list[Object]) -> list[Object]:
    """Each goes to the node that was planned for it, and to no other."""
    for pod in pods:
        pod["metadata"]["annotations"] |= workloads.SETTLED
    return pods


def _pinned(stand: Stand, row: Row, names: list[str]) -> list[Object]:
    """Pods pinned to the slots of their gangs, once all of them have slots."""
    assert stand.extender is not None
    deadline = time.monotonic() + _ADMISSION_S
    pods = []
    with httpx2.Client(base_url=stand.extender.url, trust_env=False) as client:
        for name in names:
            while len(nodes := _slots(client, name)) < row.size:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{name} has {len(nodes)} of {row.size} slots")
                time.sleep(_POLL_S)
            for number, node in enumerate(nodes):
                pods.append(workloads.pod(f"{name}-{number}", group=name, pin=node))
    return pods


def _slots(client: httpx2.Client, name: str) -> list[str]:
    answer = client.get(f"/plan/{NAMESPACE}/{name}")
    if answer.status_code == 404:
        return []
    return [node for nodes in answer.json()["slots"].values() for node in nodes]


async def _until_admitted(traffic: Traffic, row: Row) -> None:
    path = POD_GROUPS.path(namespace=NAMESPACE)
    async with asyncio.timeout(_ADMISSION_S):
        while not all(map(_inqueue, (await traffic.get(path))["items"])):  # noqa: ASYNC110 - it has to be asked
            await asyncio.sleep(_POLL_S)


def _inqueue(group: Any) -> bool:
    return bool(group.get("status", {}).get("phase") == "Inqueue")


async def _until_complete(binds: Binds) -> None:
    """Wait for the watch, for so long at most; a run that stays incomplete is counted as it is."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            await binds.complete.wait()


# Counters ---------------------------------------------------------------------------------------


def _writes(counted: Samples) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in counted.items():
        if not name.startswith("apiserver_request_total") or not value:
            continue
        labels = dict(
            pair.split("=", 1) for pair in name.partition("{")[2].rstrip("}").split(",") if pair
        )
        verb = labels["verb"].strip('"')
        if verb in _WRITES:
            kind = "/".join(labels[key].strip('"') for key in ("resource", "subresource"))
            key = f"{verb} {kind.rstrip('/')} {labels['code'].strip(chr(34))}"
            found[key] = found.get(key, 0.0) + value
    return found


def _answers(counted: Samples, *, probes: int) -> dict[str, float]:
    prefix = 'pumice_extender_answers_total{answer="'
    found = {
        name.removeprefix(prefix).partition('"')[0]: value
        for name, value in counted.items()
        if name.startswith(prefix) and 'verb="filter"' in name
    }
    if found:
        found["chosen"] = found.get("chosen", 0.0) - probes
    return {name: value for name, value in found.items() if value}


def _drift(stand: Stand) -> int:
    if stand.extender is None:
        return 0
    return len(stand.extender.get("/debug/ledger")["drifts"])
