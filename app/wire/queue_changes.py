"""Changes of queues as they are written on a command line: ``queue/a.capability.cpu`` is ``8``."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from app.model.amounts import amounts
from app.model.ids import QueueName
from app.model.workload import Queue
from app.wire.quantity import QuantityError, amount

_SET: Final = "write queue/NAME.capability.cpu=8, or deserved, guarantee, weight, priority, parent"
_PATH: Final = re.compile(
    r"queue/(?P<name>.+)\."
    r"(?:(?P<amounts>capability|deserved|guarantee)\.(?P<resource>.+)"
    r"|(?P<field>weight|priority|parent|reclaimable))"
)


class UnknownQueue(LookupError):
    """A queue that is to be otherwise is not known; the text says which."""


def changed_queues(
    said: Mapping[str, str], find: Callable[[QueueName], Queue | None]
) -> dict[QueueName, Queue]:
    """The queues as they would be. Raises ValueError, and UnknownQueue where ``find`` has none."""
    queues: dict[QueueName, Queue] = {}
    for path, value in said.items():
        name, field, resource = _path(path)
        before = queues.get(name) or find(name)
        if before is None:
            raise UnknownQueue(f"set {path}: no queue {name} is known")
        queues[name] = _with(before, field, resource, value, path=path)
    return queues


def _path(path: str) -> tuple[QueueName, str, str]:
    """Queue, field, and the resource of an amount (else empty); names of queues may have dots."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise ValueError(f"set {path}: {_SET}")
    return QueueName(found["name"]), found["amounts"] or found["field"], found["resource"] or ""


def _with(queue: Queue, field: str, resource: str, value: str, *, path: str) -> Queue:
    wrong = ValueError(f"set {path}={value}: {_SET}")
    if resource:
        try:
            changed = {**dict(getattr(queue, field)), resource: amount(resource, value)}
        except QuantityError as error:
            raise ValueError(f"set {path}={value}: {error}") from None
        if changed[resource] < 0:
            raise wrong
        limits: Any = {field: amounts(changed)}
        return replace(queue, **limits)
    if field == "parent" and value:
        return replace(queue, parent=QueueName(value))
    if field == "reclaimable" and value in ("true", "false"):
        return replace(queue, reclaimable=value == "true")
    try:
        number = int(value)
    except ValueError:
        raise wrong from None
    if field == "weight" and number > 0:
        return replace(queue, weight=number)
    if field == "priority":
        return replace(queue, priority=number)
    raise wrong
