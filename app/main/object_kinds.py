"""The sources that controllers follow: what is listed and watched of each kind."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from app.main.informers import WatchedKind
from app.wire.kinds import CONFIG_MAPS, PODS, Resource
from app.wire.objects.followed_pods import read_followed_pod
from app.wire.unstructured import Key, Object

JOB_NAME = "volcano.sh/job-name"

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def sources_of(
    resource: Resource, schedulers: Iterable[str], config_map: Key
) -> tuple[WatchedKind, ...]:
    """The sources of ``resource``: one, but for pods: pods of jobs, and pods of ``schedulers``.

    Of ConfigMaps there is only ``config_map``.
    """
    decode = decoder_for(resource)
    if resource == CONFIG_MAPS:
        path = resource.path(namespace=config_map.namespace)
        one = f"metadata.name={config_map.name}"
        return (WatchedKind(str(resource), path, decode, fields=one, optional=True),)
    if resource != PODS:
        return (WatchedKind(str(resource), resource.path(), decode),)
    ours = (
        WatchedKind(
            f"{resource}/{name}",
            resource.path(),
            decode,
            fields=f"spec.schedulerName={name}",
            labels=f"!{JOB_NAME}",
        )
        for name in sorted(schedulers)
    )
    return (WatchedKind(f"{resource}/*", resource.path(), decode, labels=JOB_NAME), *ours)


def decoder_for(resource: Resource) -> Callable[[msgspec.Raw], Object]:
    """Objects of ``resource`` that say what they are, without the bookkeeping of their fields.

    ``managedFields`` are half of an object's size, and no controller reads them. Of a pod there is
    only what is read.
    """
    read = read_followed_pod if resource == PODS else _decode

    def decode(raw: msgspec.Raw) -> Object:
        item = read(raw)
        item.setdefault("apiVersion", resource.api_version)
        item.setdefault("kind", resource.kind)
        metadata = item.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise ValueError("metadata.name: is missing")
        metadata.pop("managedFields", None)
        return item

    return decode
