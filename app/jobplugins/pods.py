"""Additions to a pod that leave alone what its author has written."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from app.wire.unstructured import Object


def containers(pod: Object) -> list[Object]:
    """The containers that run side by side."""
    return pod["spec"].get("containers") or []


def init_containers(pod: Object) -> list[Object]:
    """The containers that run before those."""
    return pod["spec"].get("initContainers") or []


def all_containers(pod: Object) -> list[Object]:
    """Both."""
    return [*containers(pod), *init_containers(pod)]


def variable(name: str, value: str) -> Object:
    """A variable with a value."""
    return {"name": name, "value": value}


def add_variables(into: Iterable[Object], variables: Sequence[Object]) -> None:
    """Add those that a container has not."""
    for container in into:
        there = container.get("env") or []
        names = {entry.get("name") for entry in there}
        new = [dict(entry) for entry in variables if entry["name"] not in names]
        if new:
            container["env"] = [*there, *new]


def add_volume(pod: Object, volume: Object, mount: Mapping[str, Any]) -> None:
    """Add a volume, and mount it in each container that has nothing mounted there."""
    spec = pod["spec"]
    volumes = spec.get("volumes") or []
    if all(there.get("name") != volume["name"] for there in volumes):
        spec["volumes"] = [*volumes, volume]
    for container in all_containers(pod):
        mounts = container.get("volumeMounts") or []
        if all(_path(there) != _path(mount) for there in mounts):
            container["volumeMounts"] = [*mounts, dict(mount)]


def add_port(pod: Object, container: Object, *, name: str, number: int) -> None:
    """Declare a TCP port.

    On the host's network a port that any container declares is taken for all of them.
    """
    ports = container.get("ports") or []
    others: list[Object] = []
    if pod["spec"].get("hostNetwork"):
        others = [port for one in containers(pod) for port in one.get("ports") or ()]
    if any(_is_tcp(port, number) for port in chain(ports, others)):
        return
    port: Object = {"containerPort": number}
    if all(there.get("name") != name for there in ports):
        port = {"name": name, **port}
    container["ports"] = [*ports, port]


def _is_tcp(port: Mapping[str, Any], number: int) -> bool:
    return port.get("containerPort") == number and (port.get("protocol") or "TCP") == "TCP"


def _path(mount: Mapping[str, Any]) -> str:
    return str(mount.get("mountPath") or "").rstrip("/")
