"""The types of the fields that rules read in objects of ours, as their schemas declare them.

Objects are judged once before the API server has compared them with the schema. What is of another
type there is left to the schema, which says so better than a rule that cannot read it.
"""

from collections.abc import Mapping
from typing import Final

from app.wire import kinds
from app.wire.kinds import Resource
from app.wire.shapes import is_of, shapes_of
from app.wire.unstructured import Object

SHAPES: Final = shapes_of(
    {
        "Job": {"JobSpec": "spec"},
        "JobSpec": {
            "text": "priorityClassName queue runningEstimate schedulerName",
            "number": "maxRetry minAvailable minSuccess ttlSecondsAfterFinished",
            "{[text]}": "plugins",
            "Topology": "networkTopology",
            "TopologyAffinity": "topologyAffinity",
            "[JobVolume]": "volumes",
            "[Policy]": "policies",
            "[Task]": "tasks",
        },
        "JobVolume": {"text": "mountPath volumeClaimName", "Open": "volumeClaim"},
        "Policy": {"text": "action event timeout", "[text]": "events", "number": "exitCode"},
        "Task": {
            "text": "name topologyPolicy",
            "number": "maxRetry minAvailable replicas",
            "DependsOn": "dependsOn",
            "Open": "template",
            "Partitions": "partitionPolicy",
            "[Policy]": "policies",
        },
        "DependsOn": {"[text]": "name", "text": "iteration"},
        "Partitions": {
            "number": "minPartitions partitionSize totalPartitions",
            "Topology": "networkTopology",
        },
        "Topology": {"text": "highestTierName mode", "number": "highestTierAllowed"},
        "TopologyAffinity": {
            "GroupTerms": "podGroupAffinity podGroupAntiAffinity",
            "PartTerms": "subGroupAffinity subGroupAntiAffinity",
            "SpreadTerms": "memberSpread",
        },
        "GroupTerms": {"[GroupTerm]": "required preferred"},
        "PartTerms": {"[PartTerm]": "required preferred"},
        "SpreadTerms": {"[SpreadTerm]": "required preferred"},
        "GroupTerm": {
            "number": "weight topologyTier",
            "text": "topologyTierName",
            "Open": "podGroupSelector namespaceSelector",
        },
        "PartTerm": {
            "number": "weight topologyTier",
            "text": "topologyTierName",
            "[text]": "subGroups",
        },
        "SpreadTerm": {
            "number": "weight topologyTier minDomains maxDomains",
            "text": "topologyTierName",
        },
        "PodGroup": {"PodGroupSpec": "spec"},
        "PodGroupSpec": {
            "text": "priorityClassName queue",
            "number": "minMember",
            "{number}": "minTaskMember",
            "{int-or-string}": "minResources",
            "Topology": "networkTopology",
            "TopologyAffinity": "topologyAffinity",
            "[SubGroup]": "subGroupPolicy",
        },
        "SubGroup": {
            "text": "name",
            "number": "minSubGroups subGroupSize",
            "Topology": "networkTopology",
        },
        "Queue": {"QueueSpec": "spec"},
        "QueueSpec": {
            "text": "parent",
            "number": "priority weight",
            "flag": "reclaimable",
            "{int-or-string}": "capability deserved",
            "Guarantee": "guarantee",
        },
        "Guarantee": {"{int-or-string}": "resource"},
        "HyperNode": {"HyperNodeSpec": "spec"},
        "HyperNodeSpec": {"text": "tierName", "number": "tier", "[Member]": "members"},
        "Member": {"text": "type", "Selector": "selector"},
        "Selector": {"Exact": "exactMatch", "Pattern": "regexMatch", "Open": "labelMatch"},
        "Exact": {"text": "name"},
        "Pattern": {"text": "pattern"},
        "JobFlow": {"JobFlowSpec": "spec"},
        "JobFlowSpec": {"[Flow]": "flows"},
        "Flow": {"text": "name", "FlowDependsOn": "dependsOn"},
        "FlowDependsOn": {"[text]": "targets"},
        "ColocationConfiguration": {"ColocationSpec": "spec"},
        "ColocationSpec": {"Open": "selector", "MemoryQos": "memoryQos"},
        "MemoryQos": {"number": "highRatio lowRatio minRatio"},
        "CronJob": {"CronJobSpec": "spec"},
        "CronJobSpec": {"text": "schedule timeZone", "CronJobTemplate": "jobTemplate"},
        "CronJobTemplate": {"JobSpec": "spec"},
    }
)
"""The type of each field of each kind of object."""

KINDS: Final[Mapping[Resource, str]] = {
    kinds.JOBS: "Job",
    kinds.POD_GROUPS: "PodGroup",
    kinds.QUEUES: "Queue",
    kinds.HYPER_NODES: "HyperNode",
    kinds.JOB_FLOWS: "JobFlow",
    kinds.CRON_JOBS: "CronJob",
    kinds.COLOCATION_CONFIGURATIONS: "ColocationConfiguration",
}

EARLY: Final = frozenset(KINDS)
"""Kinds that are judged before their schema too."""


def is_whole(item: Object) -> bool:
    """Whether the parts of ``item`` are objects at all; if not, the schema says so."""
    return all(isinstance(item.get(part) or {}, dict) for part in ("spec", "status"))


def is_readable(resource: Resource, item: Object) -> bool:
    """Whether rules can read the object; of other kinds than these the schema has made sure."""
    return resource not in KINDS or is_of(item, KINDS[resource], SHAPES)
