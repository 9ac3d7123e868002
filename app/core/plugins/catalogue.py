"""Which plugins and actions exist."""

from collections.abc import Mapping

from app.core.plugins import (
    binpack,
    capacity,
    cdp,
    conformance,
    deviceshare,
    drf,
    extender,
    gang,
    group_topology_affinity,
    network_topology,
    nodegroup,
    nodeorder,
    numa_aware,
    overcommit,
    pdb,
    predicates,
    priority,
    proportion,
    rescheduling,
    resource_strategy_fit,
    resourcequota,
    sla,
    task_topology,
    tdm,
    usage,
)
from app.core.policy import Configure

PLUGINS: Mapping[str, Configure] = {
    "binpack": binpack.configure,
    "capacity": capacity.configure,
    "cdp": cdp.configure,
    "conformance": conformance.configure,
    "deviceshare": deviceshare.configure,
    "drf": drf.configure,
    "extender": extender.configure,
    "gang": gang.configure,
    group_topology_affinity.NAME: group_topology_affinity.configure,
    "network-topology-aware": network_topology.configure,
    "nodegroup": nodegroup.configure,
    "nodeorder": nodeorder.configure,
    "numa-aware": numa_aware.configure,
    "overcommit": overcommit.configure,
    "pdb": pdb.configure,
    "predicates": predicates.configure,
    "priority": priority.configure,
    "proportion": proportion.configure,
    "rescheduling": rescheduling.configure,
    "resource-strategy-fit": resource_strategy_fit.configure,
    "resourcequota": resourcequota.configure,
    "sla": sla.configure,
    "task-topology": task_topology.configure,
    "tdm": tdm.configure,
    "usage": usage.configure,
}

ALWAYS = (group_topology_affinity.NAME,)
"""Plugins that take part whether they are configured or not, behind all others."""

EVICTING = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"})
"""Actions that evict."""

ACTIONS = frozenset({"enqueue", "allocate", "backfill"}) | EVICTING

ACTION_ARGUMENTS: Mapping[str, frozenset[str]] = {
    name: frozenset({"maxDomains", "allowWholeBundle"}) for name in ("gangpreempt", "gangreclaim")
}
"""Arguments of actions that have effect."""

SWITCHES = frozenset(
    {
        "enableBestNode",
        "enableHierarchy",
        "enableJobEnqueued",
        "enableJobOrder",
        "enableJobPipelined",
        "enableJobReady",
        "enableJobStarving",
        "enableNodeOrder",
        "enablePredicate",
        "enablePreemptable",
        "enablePreemptive",
        "enableQueueOrder",
        "enableReclaimable",
        "enableReservedNodes",
        "enableTargetJob",
        "enableTaskOrder",
        "enableVictimOrder",
        "enabledAllocatable",
        "enabledClusterOrder",
        "enabledHyperNodeGradient",
        "enabledHyperNodeOrder",
        "enabledOverused",
        "enabledSubJobOrder",
        "enabledSubJobPipelined",
        "enabledSubJobReady",
        "enabledVictim",
    }
)
"""Keys of a plugin that turn one of its extension points on or off."""


def known_actions() -> str:
    """All action names that a configuration may use, for messages."""
    return ", ".join(sorted(ACTIONS))
