"""Volcano's metrics of vGPUs: what is taken of each GPU, and by which pods.

Names, labels and units are Volcano's: MiB, and percent of cores. The values are worked out at each
scrape. Without the plugin ``deviceshare`` there are none, nor has a replica that does not lead any.
What pods have is told apart from the rest, as it names the pods.
"""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from app.api.leader_metrics import LeaderMetrics
from app.cache.cluster import ClusterCache
from app.model.device_families import VGPU, NodeDevices
from app.model.ids import NodeName

_OF_DEVICE = ("devID", "NodeName")
_OF_POD = (*_OF_DEVICE, "podName")


class DeviceMetrics(LeaderMetrics):
    """What is taken of each GPU."""

    def _families(self) -> Iterator[Metric]:
        yield from _of_devices(_vgpus(self._cache))


class DevicesOfPods(LeaderMetrics):
    """What each pod has of which GPU."""

    def _families(self) -> Iterator[Metric]:
        on_nodes = _vgpus(self._cache)
        memory = _family(
            "memory_allocation_for_a_certain_pod", "MiB of the GPU that the pod has.", _OF_POD
        )
        cores = _family(
            "core_allocation_for_a_certain_pod",
            "Percent of the cores of the GPU that the pod has.",
            _OF_POD,
        )
        for uid, taken in sorted(self._cache.devices.taken().items()):
            pod, charge = self._cache.pods.pod(uid), self._cache.node_usage.charges.get(uid)
            there = on_nodes.get(charge.node) if charge is not None else None
            if pod is None or charge is None or there is None:
                continue  # a slot, or a node that is gone
            for at, use in (c for t in taken if t.family == VGPU.name for c in t.charges):
                labels = (there.devices[at].id, charge.node, pod.name)
                memory.add_metric(labels, use.memory)
                cores.add_metric(labels, use.cores)
        yield memory
        yield cores


def _vgpus(cache: ClusterCache) -> dict[NodeName, NodeDevices]:
    return {
        name: each
        for name, families in cache.devices.nodes().items()
        for each in families
        if each.family.name == VGPU.name
    }


def _of_devices(on_nodes: dict[NodeName, NodeDevices]) -> Iterator[Metric]:
    shared = _family("shared_number", "Pods that share the GPU.", _OF_DEVICE)
    memory = _family("allocated_memory", "MiB of the GPU that pods have.", _OF_DEVICE)
    cores = _family("allocated_cores", "Percent of the GPU's cores that pods have.", _OF_DEVICE)
    limit = _family("memory_limit", "MiB that the GPU has.", _OF_DEVICE)
    for name, there in sorted(on_nodes.items()):
        for device, use, pods in zip(there.devices, there.used, there.groups, strict=True):
            labels = (device.id, name)
            shared.add_metric(labels, len(pods))
            memory.add_metric(labels, use.memory)
            cores.add_metric(labels, use.cores)
            limit.add_metric(labels, device.kind.memory)
    yield from (shared, memory, cores, limit)


def _family(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"volcano_vgpu_device_{name}", text, labels=labels)
