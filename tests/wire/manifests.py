"""Objects as the API server sends them, to be changed where a test is about something."""

from typing import Any

import msgspec

from app.model.pod import Pod
from app.wire.objects.pods import decode_pod

Json = dict[str, Any]


def encode(value: object) -> bytes:
    """Compact JSON text."""
    return msgspec.json.encode(value)


def metadata(name: str = "p", **fields: Any) -> Json:
    """``metadata`` of a stored object in namespace ``default``."""
    return {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-21T04:32:15Z",
        **fields,
    }


def container(*, cpu: object = None, **fields: Any) -> Json:
    """A container that requests ``cpu``; give ``resources`` for anything else."""
    base: Json = {"name": "c", "image": "nginx", "imagePullPolicy": "Always"}
    if cpu is not None:
        base["resources"] = {"requests": {"cpu": cpu}}
    return base | fields


def pod(*, meta: Json | None = None, status: Json | None = None, **spec: Any) -> Json:
    """A pending pod of the volcano scheduler with one container."""
    return {
        "metadata": metadata(**(meta or {})),
        "spec": {"schedulerName": "volcano", "containers": [container(cpu="1")]} | spec,
        "status": {"phase": "Pending"} | (status or {}),
    }


def decoded(*, meta: Json | None = None, status: Json | None = None, **spec: Any) -> Pod:
    """That pod, decoded."""
    return decode_pod(encode(pod(meta=meta, status=status, **spec)))
