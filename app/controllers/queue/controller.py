"""Keeps queues in the state they should be in.

A Command is carried out and then deleted: when one is carried out again, the queue is as it asks
already, and nothing changes. Those for one queue are carried out in their order, one being gone
before the next begins; one that opens a queue waits for an earlier one that opens its parent. A
command is not carried out when it was meant for another queue of the same name, or when it is being
deleted: a finalizer can keep such a command for ever. What a command does not say follows from the
queue, its groups and its parent, and is worked out again whenever one of them changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from app.controllers.ports import Api, ApiError, Events, Failure, Patch
from app.controllers.queue.machine import (
    Action,
    Mark,
    ParentShut,
    QueueFacts,
    State,
    Wanted,
    next_step,
)
from app.controllers.requests import GONE, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store
from app.kit.workqueue import Again
from app.wire.kinds import COMMANDS, POD_GROUPS, QUEUES, Resource
from app.wire.unstructured import (
    Key,
    Object,
    age,
    annotations,
    is_deleting,
    key_of,
    name,
    spec,
    status,
    uid,
)

ROOT: Final = "root"
DEFAULT: Final = "default"
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"


def queue_of(group: Object) -> str:
    """The queue of a PodGroup."""
    return str(spec(group).get("queue") or DEFAULT)


def parent_of(queue: Object) -> str:
    """The parent of a queue; empty for the root."""
    return "" if name(queue) == ROOT else str(spec(queue).get("parent") or ROOT)


def _target(command: Object) -> Mapping[str, object]:
    """What the command names."""
    return command.get("target") or {}


def target_queue(command: Object) -> str:
    """The queue that a command is for; empty: it is for something else."""
    found = _target(command)
    return str(found.get("name") or "") if found.get("kind") == QUEUES.kind else ""


INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {
    QUEUES: {"parent": parent_of},
    POD_GROUPS: {"queue": queue_of},
    COMMANDS: {"queue": target_queue},
}
"""How this controller finds objects in the stores."""


class QueueController:
    """See the module."""

    name = "queue-controller"
    kinds = (QUEUES, POD_GROUPS, COMMANDS)

    def __init__(self, stores: Mapping[Resource, Store], *, api: Api, events: Events) -> None:
        self._stores = stores
        self._api = api
        self._events = events

    def keys(self, change: ObjectChange) -> Iterator[Key]:
        """The queue concerned, and those below it."""
        for item in (change.old, change.new):
            if item is not None:
                yield from self._keys(change.resource, item)

    def _keys(self, resource: Resource, item: Object) -> Iterable[Key]:
        if resource is POD_GROUPS:
            return [Key("", queue_of(item))]
        if resource is COMMANDS:
            return [Key("", target)] if (target := target_queue(item)) else []
        below = self._stores[QUEUES].by("parent", name(item))
        return [key_of(item), *map(key_of, below)]

    async def reconcile(self, key: Key) -> None:
        """Carry out the commands for a queue, then bring its state in order."""
        for command in self._waiting(key.name):
            if await self._is_there(command):
                await self._carry_out(key, command)
                await self._delete(command)
            self._stores[COMMANDS].drop(key_of(command))
        queue = self._stores[QUEUES].get(key)
        if queue is not None and not is_deleting(queue):
            await self._adopt(queue)
            await self._follow(key, Action.SYNC)

    def _waiting(self, queue_name: str) -> list[Object]:
        """The commands for a queue that are still to be carried out, in their order."""
        found = self._stores[COMMANDS].by("queue", queue_name)
        return sorted((each for each in found if not is_deleting(each)), key=age)

    async def _is_there(self, command: Object) -> bool:
        """Whether ``command`` is still to be carried out; the watch may be late."""
        try:
            stored = await self._api.get(COMMANDS, key_of(command))
            return uid(stored) == uid(command) and not is_deleting(stored)
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                return False
            raise

    async def _carry_out(self, key: Key, command: Object) -> None:
        if command.get("action") not in (Action.OPEN.value, Action.CLOSE.value):
            return
        action = Action(command["action"])
        if await self._is_for_another(key, command):
            return
        if action is Action.OPEN and self._opens_later(key, command):
            raise Again("its parent is about to be opened")
        try:
            await self._follow(key, action)
        except ApiError as error:
            queue = self._stores[QUEUES].get(key)
            if error.failure is not Failure.REFUSED or queue is None:
                raise
            await self._warn(queue, action, str(error))

    async def _is_for_another(self, key: Key, command: Object) -> bool:
        """Whether the command gives a UID that no queue of the name has; the watch may be late."""
        queue = self._stores[QUEUES].get(key)
        wanted = str(_target(command).get("uid") or "")
        if queue is not None and wanted in {"", uid(queue)}:
            return False
        with unless(Failure.NOT_FOUND):
            stored = await self._api.get(QUEUES, key)
            if wanted in {"", uid(stored)} and not is_deleting(stored):
                raise Again("the watch has not shown the queue yet")
        if queue is not None:
            await self._events.record(
                queue,
                "Warning",
                "CommandIgnored",
                f"{command['action']} of command {name(command)} is not executed: it is for another"
                f" queue of this name, with the UID {wanted}",
            )
        return True

    def _opens_later(self, key: Key, command: Object) -> bool:
        """Whether an earlier command is still to open the parent."""
        queue = self._stores[QUEUES].get(key)
        above = self._waiting(parent_of(queue)) if queue is not None else ()
        return any(
            each.get("action") == Action.OPEN.value and age(each) < age(command) for each in above
        )

    async def _delete(self, command: Object) -> None:
        with unless(*GONE):
            await self._api.delete(COMMANDS, key_of(command), uid=uid(command))

    async def _follow(self, key: Key, action: Action) -> None:
        queue = self._stores[QUEUES].get(key)
        if queue is None or is_deleting(queue):
            return
        if key.name == ROOT and action is Action.CLOSE:
            await self._warn(queue, action, "the root queue cannot be closed")
            return
        try:
            wanted = next_step(self._facts(queue), action)
        except ParentShut:
            parent = parent_of(queue)
            await self._warn(
                queue,
                action,
                f"Failed to open queue {key.name} because its parent queue {parent} is closing or "
                "closed. Open the parent queue first.",
            )
            return
        await self._write(queue, wanted, action)

    async def _adopt(self, queue: Object) -> None:
        """Queues without a parent are the root's."""
        if name(queue) != ROOT and not spec(queue).get("parent"):
            await self._change(queue, {"spec": {"parent": ROOT}})

    def _facts(self, queue: Object) -> QueueFacts:
        parent = self._stores[QUEUES].get(Key("", parent_of(queue)))
        return QueueFacts(
            state=state_of(queue),
            has_groups=bool(self._stores[POD_GROUPS].by("queue", name(queue))),
            parent=None if parent is None else state_of(parent),
            mark=_mark(queue),
        )

    async def _write(self, queue: Object, wanted: Wanted, action: Action) -> None:
        if wanted.mark is not _mark(queue):
            marked = {"metadata": {"annotations": {CLOSED_BY_PARENT: wanted.mark.value}}}
            queue = await self._change(queue, marked)
        if status(queue).get("state") == wanted.state.value:
            return
        body = {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": name(queue)},
            "status": {"state": wanted.state.value},
        }
        stored = await self._api.patch(
            QUEUES, key_of(queue), body, how=Patch.APPLY, subresource="status"
        )
        self._seen(stored)
        if wanted.state.is_shut:
            await self._events.record(queue, "Normal", "CloseQueue", "Close queue succeed")
        elif action is Action.OPEN:
            await self._events.record(queue, "Normal", "OpenQueue", "Open queue succeed")

    async def _change(self, queue: Object, body: Object) -> Object:
        stored = await self._api.patch(QUEUES, key_of(queue), body)
        self._seen(stored)
        return stored

    def _seen(self, stored: Object) -> None:
        """Go on with what was just written, not with what the watch showed before."""
        self._stores[QUEUES].renew(stored)

    async def _warn(self, queue: Object, action: Action, message: str) -> None:
        await self._events.record(queue, "Warning", action.value, message)


def state_of(queue: Object) -> State:
    """The state of ``queue``; Open when it has none."""
    return State(status(queue).get("state") or State.OPEN.value)


def _mark(queue: Object) -> Mark:
    found = annotations(queue).get(CLOSED_BY_PARENT, "")
    return Mark(found) if found in ("true", "false") else Mark.NONE
