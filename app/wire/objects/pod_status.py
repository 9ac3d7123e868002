"""``status`` of a pod, as far as it is read."""

from collections.abc import Sequence

from msgspec import Raw, Struct

from app.wire.errors import Reader
from app.wire.objects.meta import ABSENT
from app.wire.times import Moment


class ConditionJson(Struct, gc=False):
    """An entry of ``conditions``."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None


class HeldJson(Struct, rename="camel", gc=False):
    """What a container or the pod as a whole has, and what the kubelet has accepted."""

    resources: Raw = ABSENT
    allocated_resources: Raw = ABSENT


class ContainerStatusJson(HeldJson, rename="camel", gc=False):
    """An entry of ``containerStatuses`` or ``initContainerStatuses``; states are read on demand."""

    name: str | None = None
    state: Raw = ABSENT
    last_state: Raw = ABSENT
    restart_count: int = 0


class StatusJson(HeldJson, rename="camel", gc=False):
    """The whole status; conditions are read on demand, as of most pods they are not needed."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: Raw = ABSENT
    nominated_node_name: str | None = None
    start_time: Moment | None = None
    container_statuses: list[ContainerStatusJson] | None = None
    init_container_statuses: list[ContainerStatusJson] | None = None


_read_conditions: Reader[list[ConditionJson] | None] = Reader(list[ConditionJson] | None)


def conditions_of(status: StatusJson) -> Sequence[ConditionJson]:
    """The conditions of ``status``; raises `DecodeError`."""
    if not status.conditions:
        return ()
    return _read_conditions(status.conditions, "status.conditions") or ()
