"""``pods/log``: what the simulated containers would have printed."""

from __future__ import annotations

from app.sandbox.apiserver import errors
from app.sandbox.commands import program_of
from app.wire.documents import Document, items, section


def log_text(pod: Document, *, container: str = "", tail: int | None = None) -> str:
    """The lines of one container; 400 where it has not started."""
    chosen = _container(pod, container)
    name = chosen["name"]
    if not section(pod, "spec").get("nodeName"):
        raise errors.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    state = _state(pod, name)
    if "running" not in state and "terminated" not in state:
        reason = section(state, "waiting").get("reason") or "ContainerCreating"
        raise errors.bad_request(
            f'container "{name}" in pod "{pod["metadata"]["name"]}" is waiting to start: {reason}'
        )
    lines = [*program_of(pod, chosen).output]
    ended = section(state, "terminated")
    if ended:
        lines.append(f"sandbox: exited with code {ended.get('exitCode', 0)}")
    else:
        lines.append(f"sandbox: running since {section(state, 'running').get('startedAt')}")
    if tail is not None:
        lines = lines[-tail:] if tail else []
    return "".join(f"{line}\n" for line in lines)


def _container(pod: Document, name: str) -> Document:
    containers: list[Document] = items(pod, "spec", "containers")
    if not name and len(containers) == 1:
        return containers[0]
    everything: list[Document] = [*containers, *items(pod, "spec", "initContainers")]
    for container in everything:
        if container["name"] == name:
            return container
    if name:
        raise errors.bad_request(f"container {name} is not valid for pod {pod['metadata']['name']}")
    choices = " ".join(container["name"] for container in containers)
    raise errors.bad_request(
        f"a container name must be specified for pod {pod['metadata']['name']},"
        f" choose one of: [{choices}]"
    )


def _state(pod: Document, name: str) -> Document:
    for field in ("containerStatuses", "initContainerStatuses"):
        for status in items(pod, "status", field):
            if status["name"] == name:
                return section(status, "state")
    return {}
