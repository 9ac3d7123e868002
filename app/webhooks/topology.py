"""Network topologies and partitions: constraints on their own fields."""

from collections.abc import Mapping
from typing import Any

from app.wire.findings import Findings, at
from app.wire.reading import integer, mapping, number_or_none, text

BOTH_TIERS = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
)


def asks_for_topology(task: Mapping[str, Any]) -> bool:
    """Whether a task's ``topologyPolicy`` says something."""
    return text(task.get("topologyPolicy")) not in {"", "none"}


def has_both_tiers(holder: Mapping[str, Any]) -> bool:
    """Whether ``networkTopology`` names its highest tier twice."""
    topology = mapping(holder.get("networkTopology"))
    return topology.get("highestTierAllowed") is not None and bool(
        text(topology.get("highestTierName"))
    )


def check_topology(holder: Mapping[str, Any], path: str, findings: Findings) -> None:
    """``networkTopology`` of what is at ``path``."""
    if has_both_tiers(holder):
        findings.refuse(at(path, "networkTopology"), BOTH_TIERS)


def check_partitions(
    task: Mapping[str, Any], path: str, findings: Findings, *, job_name: str
) -> None:
    """``partitionPolicy`` of a task."""
    if not isinstance(task.get("partitionPolicy"), dict):
        return
    partition, where = mapping(task["partitionPolicy"]), at(path, "partitionPolicy")
    tail = f"in task: {text(task.get('name'))}, job: {job_name}"
    total, size = integer(partition.get("totalPartitions")), integer(partition.get("partitionSize"))
    if total <= 0:
        findings.refuse(
            at(where, "totalPartitions"), f"'TotalPartitions' must be greater than 0 {tail}"
        )
    if size <= 0:
        findings.refuse(
            at(where, "partitionSize"), f"'PartitionSize' must be greater than 0 {tail}"
        )
    if integer(task.get("replicas")) != total * size:
        findings.refuse(
            at(path, "replicas"),
            f"'Replicas' are not equal to TotalPartitions*PartitionSize {tail}",
        )
    fewest, least = (
        integer(partition.get("minPartitions")),
        number_or_none(task.get("minAvailable")),
    )
    if fewest > 0 and least is not None and least != fewest * size:
        findings.refuse(
            at(path, "minAvailable"),
            f"'MinAvailable' is not equal to MinPartitions*PartitionSize {tail}",
        )
    check_topology(partition, where, findings)
