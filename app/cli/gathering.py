"""Everything in the API server that bears on why a job, a PodGroup or a pod waits.

Job, PodGroup and pods name each other by owner, annotation and label; whichever of them is asked
about, the others are found from it; what is not to be seen by the user is left out. The extender
is asked about the PodGroup, or where there is none about a pod.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.cli.asking import ask_extender
from app.cli.claims import Claim, claimed
from app.cli.cluster import Cluster
from app.cli.endings import Code, CommandFailed
from app.cli.findings import Findings, Story
from app.cli.job_view import last_seen
from app.cli.owned import Owned, owned, uids_of_owners
from app.cli.pod_rows import JOB_LABEL
from app.kube import errors
from app.wire.kinds import CLAIMS, JOBS, POD_GROUPS, PODS, QUEUES, Resource
from app.wire.unstructured import Key, Object, annotations, key_of, name, owner_of, spec, uid

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
SEARCHED = (JOBS, POD_GROUPS, PODS)
"""What a name without a kind may be of, in this order."""
_DEADLINE_S = 5.0
_MOST_CLAIMS = 20


async def gather(
    cluster: Cluster, resources: Sequence[Resource], key: Key, *, kind: str = ""
) -> Findings:
    """The first object of that name and all around it; CommandFailed when there is none.

    Where none of ``resources`` has that name, it may be of an object (of ``kind``) that has made a
    PodGroup or pods.
    """
    hidden: list[str] = []
    for resource in resources:
        try:
            item = await _get(cluster, resource, key)
        except errors.Forbidden:
            hidden.append(resource.kind)
            continue
        if item is not None:
            return await _around(cluster, resource, item)
    if PODS not in resources or len(resources) > 1:
        made = await owned(cluster, key, kind=kind)
        if made is not None:
            return await _around_owned(cluster, key, made)
    raise CommandFailed(Code.NOT_FOUND, _none(resources, key, kind, hidden))


def _none(resources: Sequence[Resource], key: Key, kind: str, hidden: Sequence[str]) -> str:
    if not resources:
        return f"no PodGroup or Pod is owned by {kind} {key}"
    kinds = " or ".join(resource.kind for resource in resources)
    unseen = f"; not to be seen: {', '.join(hidden)}" if hidden else ""
    return f"there is no {kinds} {key}{unseen}"


def story_of(url: str, about: Key) -> Story | None:
    """The extender's story of a PodGroup or a pod; None when it does not tell one."""
    try:
        path = f"/explain/{about.namespace}/{about.name}"
        return ask_extender(url.rstrip("/"), path, deadline_s=_DEADLINE_S)
    except CommandFailed:
        return None


async def _around_owned(cluster: Cluster, key: Key, made: Owned) -> Findings:
    found = await _around(cluster, made.resource, made.items[0])
    pods: Sequence[Object] = (
        made.items if made.resource is PODS and found.group is None else found.pods
    )
    return replace(found, subject=f"{made.kind.lower()} {key}", is_of_pod=False, pods=pods)


async def _around(cluster: Cluster, resource: Resource, item: Object) -> Findings:
    space = key_of(item).namespace
    found = Findings(
        subject=f"{resource.kind.lower()} {key_of(item)}",
        is_of_pod=resource is PODS,
        job=await _job(cluster, resource, item),
        pods=[item] if resource is PODS else (),
    )
    found = await _with_group(cluster, resource, item, found)
    if not found.pods:
        found = replace(found, pods=await _pods(cluster, space, found))
    found = await _with_queue(cluster, found)
    found = replace(found, claims=await _claims(cluster, space, found.pods))
    known = [each for each in (item, found.job, found.group) if each is not None]
    claims = [claim.item for claim in found.claims if claim.item is not None]
    about = {uid(each) for each in [*known, *claims]} | uids_of_owners(known)
    events = [
        event
        for event in await cluster.events(space) or ()
        if (event.get("involvedObject") or {}).get("uid") in about
    ]
    return replace(found, events=sorted(events, key=last_seen))


async def _with_queue(cluster: Cluster, found: Findings) -> Findings:
    try:
        queue = await _get(cluster, QUEUES, Key("", found.queue_name))
    except errors.Forbidden:
        return replace(found, sees_queue=False)
    return replace(found, queue=queue)


async def _job(cluster: Cluster, resource: Resource, item: Object) -> Object | None:
    if resource is JOBS:
        return item
    owner = owner_of(item)
    if owner is None or owner.kind != JOBS.kind or owner.api_version != JOBS.api_version:
        return None
    try:
        return await _get(cluster, JOBS, Key(key_of(item).namespace, owner.name))
    except errors.Forbidden:
        return None


async def _with_group(
    cluster: Cluster, resource: Resource, item: Object, found: Findings
) -> Findings:
    if resource is POD_GROUPS:
        return replace(found, group=item)
    named = annotations(item).get(GROUP_ANNOTATION) or ""
    if not named and found.job is not None:
        named = f"{name(found.job)}-{uid(found.job)}"
    if not named:
        return found
    key = Key(key_of(item).namespace, named)
    try:
        return replace(found, group=await _get(cluster, POD_GROUPS, key))
    except errors.Forbidden:
        return replace(found, hidden_group=key)


async def _pods(cluster: Cluster, namespace: str, found: Findings) -> list[Object]:
    chosen = f"{JOB_LABEL}={name(found.job)}" if found.job is not None else ""
    try:
        pods = await cluster.list(PODS, namespace=namespace, labels=chosen)
    except errors.Forbidden:
        return []
    if found.job is not None:
        return pods
    group = name(found.group or {})
    return [pod for pod in pods if annotations(pod).get(GROUP_ANNOTATION) == group]


async def _claims(cluster: Cluster, namespace: str, pods: Sequence[Object]) -> list[Claim]:
    """Of pods without a node: those of the others have their volumes."""
    waiting = [pod for pod in pods if not spec(pod).get("nodeName")]
    try:
        return [
            Claim(each, await _get(cluster, CLAIMS, Key(namespace, each)))
            for each in claimed(waiting)[:_MOST_CLAIMS]
        ]
    except errors.Forbidden:
        return []


async def _get(cluster: Cluster, resource: Resource, key: Key) -> Object | None:
    try:
        return await cluster.get(resource, key)
    except errors.NotFound:
        return None
