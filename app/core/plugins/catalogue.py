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

PREFERENCES = frozenset(
    {"binpack", "network-topology-aware", "nodeorder", "rescheduling", "task-topology"}
)
"""Plugins that only say what is better: every place that is given without them may be given."""

EVICTING = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"})
"""Actions that evict."""

ACTIONS = frozenset({"enqueue", "allocate", "backfill"}) | EVICTING

_GANG_EVICTION = frozenset({"maxDomains", "allowWholeBundle"})
ACTION_ARGUMENTS: Mapping[str, frozenset[str]] = {
    "gangpreempt": _GANG_EVICTION,
    "gangreclaim": _GANG_EVICTION,
}
"""Arguments of actions by which Pumice decides."""

SEARCH_FLAGS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("allocate", "backfill", "reclaim"), frozenset({"predicateErrorCacheEnable"})),
    "preempt": frozenset({"predicateErrorCacheEnable", "enableTopologyAwarePreemption"}),
}
SEARCH_NUMBERS: Mapping[str, frozenset[str]] = {
    "preempt": frozenset(
        {
            "topologyAwarePreemptWorkerNum",
            "minCandidateNodesPercentage",
            "minCandidateNodesAbsolute",
            "maxCandidateNodesAbsolute",
        }
    ),
}
"""Arguments of actions that say how hard Volcano searches, true or false and whole numbers.

Pumice looks at all nodes by all rules, and remembers only what does not change an answer, so every
value of them holds. They are checked all the same.
"""


def arguments_of_action(name: str) -> frozenset[str]:
    """All arguments that the action may have."""
    tables = (ACTION_ARGUMENTS, SEARCH_FLAGS, SEARCH_NUMBERS)
    return frozenset[str]().union(*(table.get(name, ()) for table in tables))


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
