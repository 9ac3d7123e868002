"""PodGroups."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct, field

from app.model.amounts import LARGEST, LIMITS, Amounts, is_of_nodes
from app.model.ids import DEFAULT_QUEUE, QueueName
from app.model.parts import Policies, SubGroupPolicy
from app.model.workload import Condition, GroupPhase, PodGroup
from app.wire import quantity, reached, times
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import hyper_nodes, meta
from app.wire.objects.hyper_nodes import TopologyJson
from app.wire.objects.meta import MetaJson
from app.wire.objects.selectors import LabelSelectorJson, label_selector
from app.wire.objects.topology_affinity import TopologyAffinityJson, topology_affinity


class _SubGroupJson(Struct, rename="camel", gc=False):
    name: str = ""
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelectorJson | None = None
    match_label_keys: list[str] | None = None
    network_topology: TopologyJson | None = None


class _SpecJson(Struct, rename="camel", gc=False):
    min_member: int | None = None
    min_task_member: dict[str, int] | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    min_resources: quantity.QuantityMap | None = None
    sub_group_policy: list[_SubGroupJson] | None = None
    network_topology: TopologyJson | None = None
    topology_affinity: TopologyAffinityJson | None = None


class _ConditionJson(Struct, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    transition_id: str | None = field(default=None, name="transitionID")
    last_transition_time: str | None = None


class _StatusJson(Struct, gc=False):
    phase: str | None = None
    conditions: list[_ConditionJson] | None = None
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None


class _GroupJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None
    status: _StatusJson | None = None


_read: Reader[_GroupJson] = Reader(_GroupJson)
_NO_SPEC = _SpecJson()
_NO_STATUS = _StatusJson()


def decode_pod_group(text: Bytes) -> PodGroup:
    """A PodGroup; raises `DecodeError`."""
    json = _read(text)
    head, spec, status = json.metadata, json.spec or _NO_SPEC, json.status or _NO_STATUS
    owner = meta.owner(head.owner_references)
    uid, annotations = meta.identified(head), meta.annotations(head.annotations)
    affinity = topology_affinity(spec.topology_affinity, "spec.topologyAffinity")
    named = affinity.policies if affinity is not None else frozenset()
    return PodGroup(
        namespace=head.namespace or "",
        name=meta.named(head),
        uid=uid,
        resource_version=head.resource_version,
        created=times.epoch(head.creation_timestamp),
        min_member=spec.min_member or 0,
        role_minimum=spec.min_task_member or {},
        sub_groups=_sub_groups(spec.sub_group_policy or (), named=named),
        topology=hyper_nodes.network_topology(spec.network_topology, "spec.networkTopology"),
        affinity=affinity,
        queue=QueueName(spec.queue) if spec.queue else DEFAULT_QUEUE,
        priority_class=spec.priority_class_name or "",
        min_resources=_min_resources(spec.min_resources, is_of_nodes),
        min_limits=_min_resources(spec.min_resources, _is_limit) or (),
        labels=meta.labels(head.labels),
        annotations=annotations,
        phase=_phase(status.phase),
        conditions=tuple(_condition(entry) for entry in status.conditions or ()),
        running=status.running or 0,
        succeeded=status.succeeded or 0,
        failed=status.failed or 0,
        deleting=head.deletion_timestamp is not None,
        owner_kind=owner.kind if owner is not None else "",
        owner_uid=owner.uid if owner is not None else "",
        generation=head.generation or 0,
        reached=reached.read(annotations, uid=uid),
    )


def _sub_groups(policies: Sequence[_SubGroupJson], *, named: Collection[str]) -> Policies:
    """All sub-groups, as a pod is of the first that knows it.

    None when none asks for anything, and no term that names it does.
    """
    read = tuple(_sub_group(json, index) for index, json in enumerate(policies))
    return read if any(policy.counts or policy.name in named for policy in read) else ()


def _sub_group(json: _SubGroupJson, index: int) -> SubGroupPolicy:
    at = f"spec.subGroupPolicy[{index}]"
    return SubGroupPolicy(
        name=json.name,
        keys=tuple(json.match_label_keys or ()),
        selector=label_selector(json.label_selector, f"{at}.labelSelector"),
        size=1 if json.sub_group_size is None else json.sub_group_size,
        least=json.min_sub_groups or 0,
        topology=hyper_nodes.network_topology(json.network_topology, f"{at}.networkTopology"),
    )


def _min_resources(
    values: quantity.QuantityMap | None, concerns: Callable[[str], bool]
) -> Amounts | None:
    """A part of them: controllers write what quotas count beside what nodes have."""
    if values is None:
        return None
    part = {name: value for name, value in values.items() if concerns(name)}
    return quantity.read_amounts(part, "spec.minResources", most=LARGEST)


def _is_limit(name: str) -> bool:
    return name.startswith(LIMITS)


def _phase(text: str | None) -> GroupPhase:
    try:
        return GroupPhase(text or "")
    except ValueError as error:
        raise DecodeError("status.phase", f'"{text}" is not a phase') from error


def _condition(json: _ConditionJson) -> Condition:
    return Condition(
        type=json.type,
        status=json.status,
        reason=json.reason or "",
        message=json.message or "",
        transition_id=json.transition_id or "",
        changed=json.last_transition_time or "",
    )
