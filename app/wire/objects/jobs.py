"""vcjobs, as far as the scheduler is concerned: the shapes of the pods they will make.

Room can then be kept for tasks that have no pod yet with each task's own request, instead of an
average of the group's.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from app.model.ids import DEFAULT_QUEUE
from app.model.job import JobTemplate, Template, pod_labels
from app.model.numa import NUMA_POLICY
from app.model.pod import PREEMPTABLE, QUEUE_GATE, REVOCABLE_ZONE, bears_revocation
from app.model.topology import asked_by_pod
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import containers, meta
from app.wire.objects.meta import ABSENT, MetaJson
from app.wire.objects.shapes import SpecJson, shape


class _TemplateMetaJson(Struct, gc=False):
    labels: Raw = ABSENT
    annotations: Raw = ABSENT


class _TemplateJson(Struct, gc=False):
    spec: SpecJson | None = None
    metadata: _TemplateMetaJson | None = None


class _TaskJson(Struct, gc=False):
    name: str | None = None
    replicas: int | None = None
    topology_policy: str | None = field(default=None, name="topologyPolicy")
    template: _TemplateJson | None = None


class _VolumeJson(Struct, rename="camel", gc=False):
    volume_claim_name: str | None = None


class _SpecJson(Struct, rename="camel", gc=False):
    queue: str | None = None
    priority_class_name: str | None = None
    tasks: list[_TaskJson] | None = None
    volumes: list[_VolumeJson] | None = None


class _JobJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None


_read: Reader[_JobJson] = Reader(_JobJson)
_read_anything: Reader[Any] = Reader(Any)
_NO_SPEC = _SpecJson()


def decode_job(text: Bytes) -> JobTemplate:
    """A vcjob's templates; raises `DecodeError`. A task without a usable template has none.

    Templates have no schema, so null may stand anywhere in them (``limits: {cpu: null}``, from a
    chart without that value). The API server makes pods of them as if it did not.
    """
    try:
        return _decoded(text)
    except DecodeError:
        if b"null" not in bytes(text):
            raise
        return _decoded(_without_nulls(text))


def _without_nulls(text: Bytes) -> bytes:
    try:
        return msgspec.json.encode(_pruned(_read_anything(text)))
    except RecursionError as error:
        raise DecodeError("", f"not JSON: {error}") from error


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(inside) for key, inside in value.items() if inside is not None}
    if isinstance(value, list):
        return [_pruned(inside) for inside in value if inside is not None]
    return value


def _decoded(text: Bytes) -> JobTemplate:
    json = _read(text)
    namespace, job = json.metadata.namespace or "", meta.named(json.metadata)
    spec = json.spec or _NO_SPEC
    queue, priority_class = spec.queue or DEFAULT_QUEUE, spec.priority_class_name or ""
    roles: dict[str, Template] = {}
    own = meta.annotations(json.metadata.annotations)
    claims = [each.volume_claim_name for each in spec.volumes or () if each.volume_claim_name]
    of_job = {key: own[key] for key in (REVOCABLE_ZONE, PREEMPTABLE) if key in own}
    for index, task in enumerate(spec.tasks or ()):
        role = task.name or f"default{index}"
        given = pod_labels(job=job, namespace=namespace, queue=queue, task=role)
        where = f"spec.tasks[{index}].template"
        made = _made(task, given, of_job, claims=claims, namespace=namespace, at=where)
        if made is not None:
            named = made.priority_class or priority_class
            roles[role] = replace(made, priority_class=named)
    return JobTemplate(
        uid=meta.identified(json.metadata),
        namespace=namespace,
        name=job,
        roles=roles,
    )


def _made(
    task: _TaskJson,
    given: dict[str, str],
    of_job: dict[str, str],
    *,
    claims: Sequence[str],
    namespace: str,
    at: str,
) -> Template | None:
    """The template of a task; ``given`` are labels, ``of_job`` annotations that all pods get.

    ``claims`` are those of the job that its pods use.
    """
    template = task.template
    if template is None or template.spec is None:
        return None
    own = meta.labels(template.metadata.labels) if template.metadata else {}
    labels = {**own, **given}
    said = meta.annotations(template.metadata.annotations) if template.metadata else {}
    try:
        made, _ = shape(
            template.spec,
            namespace=namespace,
            pod_labels=labels,
            gates=(),
            numa_policy=task.topology_policy or said.get(NUMA_POLICY, ""),
            choosing=containers.choosing(said, labels),
            bears_revocation=bears_revocation({**said, **of_job}),
            claims=claims,
        )
    except DecodeError as error:
        raise DecodeError(f"{at}.{error.path}", error.message) from error
    return Template(
        made,
        labels,
        queue_first=said.get(QUEUE_GATE) == "true",
        replicas=task.replicas,
        priority_class=template.spec.priority_class_name or "",
        preempts=template.spec.preemption_policy != "Never",
        topology=asked_by_pod(said),
        deadline=float(template.spec.active_deadline_seconds or 0),
    )
