"""Everything in the API server that bears on why a job, a PodGroup or a pod waits.

Job, PodGroup and pods name each other by owner, annotation and label; whichever of them is asked
about, the others are found from it. The extender is asked about the PodGroup, or where there is
none about a pod.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from app.cli.cluster import Cluster
from app.cli.endings import Code, CommandFailed
from app.cli.findings import Findings, Story
from app.cli.job_view import last_seen
from app.cli.pod_rows import JOB_LABEL
from app.kube import errors
from app.kube.web_url import is_loopback
from app.wire.kinds import JOBS, POD_GROUPS, PODS, QUEUES, Resource
from app.wire.unstructured import Key, Object, annotations, key_of, name, owner_of, uid

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"

_DEADLINE_S = 5.0

_story = msgspec.json.Decoder(dict[str, object]).decode


async def gather(cluster: Cluster, resources: Sequence[Resource], key: Key) -> Findings:
    """The first object of that name and all around it; CommandFailed when there is none."""
    for resource in resources:
        item = await _find(cluster, resource, key)
        if item is not None:
            return await _around(cluster, resource, item)
    kinds = " or ".join(resource.kind for resource in resources)
    raise CommandFailed(Code.NOT_FOUND, f"there is no {kinds} {key}")


def ask_extender(url: str, about: Key) -> Story | None:
    """The extender's story of a PodGroup or a pod; None when it does not tell one."""
    # Nobody else needs it, and it takes a while to load.
    import httpx2

    try:
        answer = httpx2.get(
            f"{url.rstrip('/')}/explain/{about.namespace}/{about.name}",
            timeout=_DEADLINE_S,
            trust_env=not is_loopback(url),  # where proxies stand
        )
        return _story(answer.content) if answer.status_code == httpx2.codes.OK else None
    except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.DecodeError):
        return None
    except (ImportError, ValueError):  # a proxy of the environment that nobody can use
        return None


async def _around(cluster: Cluster, resource: Resource, item: Object) -> Findings:
    space = key_of(item).namespace
    found = Findings(
        subject=f"{resource.kind.lower()} {key_of(item)}",
        job=await _job(cluster, resource, item),
        pods=[item] if resource is PODS else (),
    )
    found = replace(found, group=await _group(cluster, resource, item, found.job))
    if not found.pods:
        found = replace(found, pods=await _pods(cluster, space, found))
    found = await _with_queue(cluster, found)
    about = {uid(each) for each in (item, found.job, found.group) if each is not None}
    events = [
        event
        for event in await cluster.events(space) or ()
        if (event.get("involvedObject") or {}).get("uid") in about
    ]
    return replace(found, events=sorted(events, key=last_seen))


async def _with_queue(cluster: Cluster, found: Findings) -> Findings:
    try:
        queue = await _find(cluster, QUEUES, Key("", found.queue_name))
    except errors.Forbidden:
        return replace(found, sees_queue=False)
    return replace(found, queue=queue)


async def _job(cluster: Cluster, resource: Resource, item: Object) -> Object | None:
    if resource is JOBS:
        return item
    owner = owner_of(item)
    if owner is None or owner.kind != JOBS.kind or owner.api_version != JOBS.api_version:
        return None
    return await _find(cluster, JOBS, Key(key_of(item).namespace, owner.name))


async def _group(
    cluster: Cluster, resource: Resource, item: Object, job: Object | None
) -> Object | None:
    if resource is POD_GROUPS:
        return item
    named = annotations(item).get(GROUP_ANNOTATION) or ""
    if not named and job is not None:
        named = f"{name(job)}-{uid(job)}"
    return await _find(cluster, POD_GROUPS, Key(key_of(item).namespace, named)) if named else None


async def _pods(cluster: Cluster, namespace: str, found: Findings) -> list[Object]:
    if found.job is not None:
        chosen = f"{JOB_LABEL}={name(found.job)}"
        return await cluster.list(PODS, namespace=namespace, labels=chosen)
    group = name(found.group or {})
    pods = await cluster.list(PODS, namespace=namespace)
    return [pod for pod in pods if annotations(pod).get(GROUP_ANNOTATION) == group]


async def _find(cluster: Cluster, resource: Resource, key: Key) -> Object | None:
    try:
        return await cluster.get(resource, key)
    except errors.NotFound:
        return None
