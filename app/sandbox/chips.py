"""Ascend chips of simulated nodes, told of as MindCluster's device plugin does."""

from __future__ import annotations

import json

from app.model.npu_cores import CHIP, CHIPS, CORES, SERVER_TYPE
from app.sandbox.nodes import NodeSpec, node_name
from app.wire.documents import Document
from app.wire.kinds import CONFIG_MAPS
from app.wire.objects.npu_cores import HEALTH_KEY, HEALTH_LABELS, HEALTH_NAMESPACE, HEALTH_PREFIX


def with_chips(nodes: list[Document], spec: NodeSpec) -> list[Document]:
    """The nodes with as many chips as the spec says, which they tell of."""
    if not spec.chips:
        return nodes
    named = json.dumps({f"{CHIP.type}-{at}": {} for at in range(spec.chips)})
    for node in nodes:
        node["metadata"]["labels"][SERVER_TYPE] = f"{CHIP.type}-{CHIP.cores}"
        node["metadata"]["annotations"][CHIPS] = named
        node["status"]["capacity"][CORES] = str(spec.chips * CHIP.cores)
    return nodes


def health_documents(spec: NodeSpec) -> list[Document]:
    """The ConfigMap of each node that says that all of its chips work; none without chips."""
    label, value = HEALTH_LABELS.split("=")
    said = json.dumps({"DeviceInfo": {"DeviceList": {}, "UpdateTime": 0}})
    return [
        {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {
                "name": f"{HEALTH_PREFIX}{node_name(spec, at)}",
                "namespace": HEALTH_NAMESPACE,
                "labels": {label: value},
            },
            "data": {HEALTH_KEY: said},
        }
        for at in range(spec.count if spec.chips else 0)
    ]
