"""vcjobs, as far as the scheduler is concerned: the shapes of the pods they will make.

Room can then be kept for tasks that have no pod yet with each task's own request, instead of an
average of the group's.
"""

from msgspec import Raw, Struct

from app.model.job import JobTemplate
from app.model.shape import PodShape
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import meta
from app.wire.objects.meta import ABSENT, MetaJson
from app.wire.objects.shapes import SpecJson, shape


class _TemplateMetaJson(Struct, gc=False):
    labels: Raw = ABSENT


class _TemplateJson(Struct, gc=False):
    spec: SpecJson | None = None
    metadata: _TemplateMetaJson | None = None


class _TaskJson(Struct, gc=False):
    name: str | None = None
    template: _TemplateJson | None = None


class _SpecJson(Struct, gc=False):
    tasks: list[_TaskJson] | None = None


class _JobJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None


_read: Reader[_JobJson] = Reader(_JobJson)


def decode_job(text: Bytes) -> JobTemplate:
    """A vcjob's task shapes; raises `DecodeError`. A task without a usable template has none."""
    json = _read(text)
    namespace = json.metadata.namespace or ""
    shapes: dict[str, PodShape] = {}
    for index, task in enumerate((json.spec.tasks if json.spec else None) or ()):
        made = _shape(task, namespace=namespace, at=f"spec.tasks[{index}].template.spec")
        if made is not None:
            shapes[task.name or f"default{index}"] = made
    return JobTemplate(
        uid=meta.identified(json.metadata),
        namespace=namespace,
        name=meta.named(json.metadata),
        role_shapes=shapes,
    )


def _shape(task: _TaskJson, *, namespace: str, at: str) -> PodShape | None:
    template = task.template
    if template is None or template.spec is None:
        return None
    labels = meta.labels(template.metadata.labels) if template.metadata else {}
    try:
        made, _ = shape(template.spec, namespace=namespace, pod_labels=labels, gates=())
    except DecodeError as error:
        raise DecodeError(f"{at}.{error.path}", error.message) from error
    return made
