"""Queues: defaults, limits of their own, their place in the tree, deletion (volcano.md §6.4)."""

from app.model.ids import DEFAULT_QUEUE, ROOT_QUEUE
from app.model.workload import QueueState
from app.webhooks.job_queue import children_of, state_of
from app.webhooks.own_annotations import check_annotations
from app.webhooks.queue_amounts import (
    CAPABILITY,
    DESERVED,
    GUARANTEE,
    check_order,
    check_quantities,
    lint_names,
    read,
    summed,
    told,
    written,
)
from app.webhooks.queue_paths import check_path, with_root
from app.webhooks.queue_tree import (
    QueueTree,
    allocated_pods,
    check_parent,
    check_shares,
    parent_of,
)
from app.webhooks.world import Request, World
from app.wire import kinds
from app.wire.findings import Findings
from app.wire.reading import mapping, text
from app.wire.unstructured import Object, is_deleting, name, spec

_SHARES = (CAPABILITY, DESERVED, GUARANTEE)
_SETTABLE = frozenset({"", QueueState.OPEN.value, QueueState.CLOSED.value})


def default_queue(request: Request, _world: World) -> Object:
    """The queue with its defaults."""
    queue = with_root(request.item)
    if "spec" in queue and not isinstance(queue["spec"], dict):
        return queue
    body = dict(mapping(queue.get("spec")))
    if body.get("reclaimable") is None:
        body["reclaimable"] = True
    body["weight"] = body.get("weight") or 1
    return {**queue, "spec": body}


def check_queue(request: Request, world: World) -> Findings:
    """Everything that is wrong with a new queue or a change of one."""
    findings = Findings()
    queue, old = request.item, request.old
    if is_deleting(queue):
        return findings
    check_annotations(request, kinds.QUEUES, findings)
    check_quantities(queue, findings)
    check_order(queue, findings)
    state = state_of(queue)
    if state not in _SETTABLE and state != state_of(old):
        findings.refuse("status.state", "queue state must be in [Open Closed]")
    check_path(queue, world.facts, findings)
    tree = QueueTree(queue, world)
    shares_change = any(read(queue, kind) != read(old, kind) for kind in _SHARES)
    moves = request.operation == "CREATE" or _parent(queue) != _parent(old)
    if moves:
        check_parent(tree, world, findings)
    if name(queue) == ROOT_QUEUE:
        _check_root(request, world, changed=shares_change, findings=findings)
    elif moves or shares_change:
        check_shares(tree, findings)
    lint_names(queue, old, world.facts.total(), findings)
    _lint(tree, world, findings)
    return findings


def check_deletion(request: Request, world: World) -> Findings:
    """Whether the queue may go: by the stored object, in whatever state it is."""
    findings = Findings()
    queue, path = request.name, "metadata.name"
    if queue in (DEFAULT_QUEUE, ROOT_QUEUE):
        findings.refuse(path, f"`{queue}` queue can not be deleted")
        return findings
    pods = allocated_pods(request.old)
    if world.options.check_allocated and pods:
        findings.refuse(
            path, f"queue {queue} cannot be deleted because it has allocated Pods: {pods}"
        )
    children = sorted(name(child) for child in children_of(queue, world.facts))
    if children:
        findings.refuse(
            path,
            f"queue {queue} can not be deleted because it has {len(children)} child queues: "
            f"{', '.join(children)}",
        )
    groups = world.facts.groups_in(queue)
    if groups:
        findings.warn(
            path,
            f"PodGroups that still name queue {queue}: {groups}; their running pods go on, and no"
            " further pod of them is placed until there is a queue of that name",
        )
    return findings


def check_queue_or_deletion(request: Request, world: World) -> Findings:
    """The rules for the operation at hand."""
    if request.operation == "DELETE":
        return check_deletion(request, world)
    return check_queue(request, world)


def _parent(queue: Object) -> str:
    return text(spec(queue).get("parent")) or ROOT_QUEUE


def _check_root(request: Request, world: World, *, changed: bool, findings: Findings) -> None:
    if request.operation == "UPDATE" and changed and world.options.protect_root:
        findings.refuse(
            "spec",
            "root queue's resource attributes (capability, deserved, guarantee) cannot be modified",
        )


def _lint(tree: QueueTree, world: World, findings: Findings) -> None:
    """Shares that can never be had: beyond an ancestor's limit, beyond the cluster."""
    queue = tree.subject
    for kind in (DESERVED, GUARANTEE):
        for above in tree.ancestors(queue):
            limits = read(above, CAPABILITY)
            beyond = {
                resource: number
                for resource, number in read(queue, kind).items()
                if resource in limits and number > limits[resource]
            }
            if beyond:
                findings.warn(
                    f"spec.{kind}",
                    f"{told(beyond)} is more than queue {name(above)} above it may ever use",
                )
    total = world.facts.total()
    if total and parent_of(queue) == ROOT_QUEUE and written(queue, GUARANTEE):
        guaranteed = summed(tree.children(ROOT_QUEUE), GUARANTEE)
        beyond = {r: n for r, n in guaranteed.items() if n > total.get(r, 0)}
        if beyond:
            findings.warn(
                "spec.guarantee",
                f"all queues together are guaranteed {told(beyond)}, more than the nodes have",
            )
