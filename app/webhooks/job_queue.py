"""The queue that a job or a group names: it must be there, open, and take work."""

from app.model.ids import ROOT_QUEUE
from app.model.workload import QueueState
from app.webhooks.world import Facts
from app.wire.findings import Findings
from app.wire.reading import mapping, text
from app.wire.unstructured import Object, name, spec, status

TAKING = frozenset({"", QueueState.OPEN.value})
"""States of queues that take work; a new queue has none until its controller has seen it."""


def state_of(queue: Object) -> str:
    """The state of a queue; empty for a new one."""
    return text(mapping(status(queue)).get("state"))


def children_of(parent: str, facts: Facts) -> list[Object]:
    """The queues right below ``parent``."""
    return [queue for queue in facts.queues() if spec(queue).get("parent") == parent]


def not_found(queue: str) -> str:
    """The API server's words for a queue that is not there."""
    return f'queues.scheduling.volcano.sh "{queue}" not found'


def check_job_queue(queue: str, path: str, facts: Facts, findings: Findings) -> None:
    """The queue at ``path`` of a job."""
    if queue == ROOT_QUEUE:
        findings.refuse(path, "can not submit job to root queue")
        return
    found = facts.queue(queue)
    if found is None:
        findings.refuse(path, f"unable to find job queue: {not_found(queue)}")
        return
    state = state_of(found)
    if state not in TAKING:
        findings.refuse(
            path,
            f"can only submit job to queue with state `Open`, queue `{queue}` status is `{state}`",
        )
    children = children_of(name(found), facts)
    if children:
        findings.refuse(
            path,
            f"can only submit job to leaf queue, queue `{queue}` has {len(children)} child queues",
        )
