"""An API server in memory, as controllers see one.

It keeps what matters to them: UIDs, resource versions that requests must match, generations, the
status subresource, grace periods, finalizers, owners whose dependents go with them, and watches
that lag until :meth:`FakeApi.deliver`. Every request is noted; any can be made to fail, before or
after it is done.
"""

import asyncio
import copy
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from app.controllers.ports import ApiError, Clock, EventType, Failure, Patch
from app.wire import times
from app.wire.kinds import JOBS, PODS, Resource
from app.wire.objects.followed_pods import read_followed_pod
from app.wire.unstructured import (
    Key,
    Object,
    has_no_time_left,
    is_deleting,
    key_of,
    namespace,
    owner_of,
    uid,
    version,
)

Verb = Literal["create", "get", "patch", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request that came, done or not."""

    verb: Verb
    resource: Resource
    key: Key
    subresource: str = ""
    propagation: str = ""


class Watcher(Protocol):
    """Who is told of changes; a :class:`app.controllers.runtime.Runtime` is one."""

    def put(self, resource: Resource, item: Object) -> None:
        """An object was added or modified."""

    def drop(self, resource: Resource, key: Key) -> None:
        """An object is gone."""


@dataclass(slots=True)
class Fault:
    """Makes requests fail: ``after``: they are done all the same."""

    matches: Callable[[Request], bool]
    error: ApiError
    times: int = 1
    after: bool = False


@dataclass(slots=True)
class Trap:
    """Holds whoever sends the request of that number for ever; ``after``: once it is done."""

    number: int
    after: bool
    sprung: asyncio.Event = field(default_factory=asyncio.Event)

    async def hold(self) -> None:
        """Never return."""
        self.sprung.set()
        await asyncio.get_running_loop().create_future()


Pending = tuple[Resource, Key, Object | None]


@dataclass(slots=True)
class Watch:
    """What one watcher has not been told yet."""

    watcher: Watcher
    pending: deque[Pending] = field(default_factory=deque)


class FakeApi:
    """Implements :class:`app.controllers.ports.Api`."""

    def __init__(self, clock: Clock, *, with_status: Iterable[Resource] = (JOBS,)) -> None:
        """``with_status``: kinds whose status is changed by its subresource only."""
        self.clock = clock
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.trap: Trap | None = None
        self.observers: list[Callable[[Request], None]] = []
        """Called with each request before it is done."""
        self.lagging: set[Resource] = set()
        """Kinds of which the watches show nothing for now."""
        self.slow: dict[Resource, float] = {}
        """How long a creation takes, in seconds."""
        self.created: dict[tuple[Resource, str], int] = {}
        self._with_status = frozenset(with_status)
        self._items: dict[Resource, dict[Key, Object]] = {}
        self._revision = 0
        self._watches: list[Watch] = []

    def watch(self, watcher: Watcher) -> Watch:
        """Tell ``watcher`` what is there, and from now on (by :meth:`deliver`) what changes."""
        for resource, items in self._items.items():
            for item in items.values():
                watcher.put(resource, copy.deepcopy(item))
        watch = Watch(watcher)
        self._watches.append(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """It wants to know no more."""
        self._watches.remove(watch)

    def deliver(self, number: int | None = None) -> bool:
        """Tell of the next changes, all of them by default; whether there were any."""
        told = False
        for watch in list(self._watches):
            late, left = deque[Pending](), len(watch.pending) if number is None else number
            while watch.pending and left:
                change = watch.pending.popleft()
                if change[0] in self.lagging:
                    late.append(change)
                    continue
                left, told = left - 1, True
                _show(watch.watcher, *change)
            watch.pending.extendleft(reversed(late))
        return told

    def fail(
        self,
        failure: Failure,
        matches: Callable[[Request], bool],
        *,
        times: int = 1,
        after: bool = False,
        message: str = "no",
    ) -> None:
        """Let the next requests that match fail."""
        self.faults.append(Fault(matches, ApiError(failure, message), times, after))

    def find(self, resource: Resource, key: Key) -> Object | None:
        """The object, for tests to look at."""
        return self._items.get(resource, {}).get(key)

    def all(self, resource: Resource) -> list[Object]:
        """Every object of a kind."""
        return list(self._items.get(resource, {}).values())

    def put(self, resource: Resource, item: Object) -> Object:
        """Create or replace in the name of somebody else."""
        key = key_of(item)
        old = self.find(resource, key)
        made = copy.deepcopy(item)
        metadata = made.setdefault("metadata", {})
        if old is None:
            metadata.setdefault("uid", f"uid-{self._revision + 1}")
            metadata.setdefault("creationTimestamp", times.seconds(self.clock()))
            metadata["generation"] = 1
        else:
            metadata["uid"] = uid(old)
            changed = old.get("spec") != made.get("spec")
            metadata["generation"] = old["metadata"]["generation"] + changed
        return self._store(resource, made)

    def edit(self, resource: Resource, key: Key, change: Mapping[str, Any]) -> Object:
        """Merge in the name of somebody else, status and all."""
        old = self.find(resource, key)
        assert old is not None, key
        return self.put(resource, _merged(old, change))

    def remove(self, resource: Resource, key: Key) -> None:
        """Take away at once, with all that it owns."""
        item = self._items[resource].pop(key)
        self._revision += 1
        self._tell(resource, key, None)
        for kind, items in list(self._items.items()):
            for owned in list(items.values()):
                owner = owner_of(owned)
                if owner is not None and owner.uid == uid(item):
                    self.remove(kind, key_of(owned))

    async def create(self, resource: Resource, item: Object) -> Object:
        """Create ``item``."""
        key = key_of(item)
        assert _says_what_it_is(resource, key, item)
        await asyncio.sleep(self.slow.get(resource, 0))
        async with _Call(self, Request("create", resource, key)):
            if self.find(resource, key) is not None:
                raise ApiError(Failure.EXISTS, f"{resource} {key} already exists")
            self.created[resource, key.name] = self.created.get((resource, key.name), 0) + 1
            fresh = copy.deepcopy(item)
            if resource in self._with_status:
                fresh.pop("status", None)
            if resource is PODS:
                fresh.setdefault("status", {"phase": "Pending"})
            return copy.deepcopy(self.put(resource, json.loads(json.dumps(fresh))))

    async def get(self, resource: Resource, key: Key) -> Object:
        """The object as stored now."""
        async with _Call(self, Request("get", resource, key)):
            return copy.deepcopy(self._existing(resource, key))

    async def patch(
        self,
        resource: Resource,
        key: Key,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        how: Patch = Patch.MERGE,
        subresource: str = "",
    ) -> Object:
        """Change the object."""
        async with _Call(self, Request("patch", resource, key, subresource)):
            assert isinstance(body, Mapping), "JSON patches are not played here"
            assert how is not Patch.APPLY or _says_what_it_is(resource, key, body)
            if how is Patch.APPLY and self.find(resource, key) is None:
                return copy.deepcopy(self.put(resource, dict(body)))
            old = self._existing(resource, key)
            _check(old, body.get("metadata") or {})
            assert not subresource or resource in self._with_status, "has no subresource"
            made = _merged(old, self._allowed(resource, body, subresource))
            if has_no_time_left(made):
                self.remove(resource, key)
                return made
            return copy.deepcopy(self.put(resource, made))

    async def update(self, resource: Resource, item: Object, *, subresource: str = "") -> Object:
        """Replace the object."""
        key = key_of(item)
        async with _Call(self, Request("update", resource, key, subresource)):
            old = self._existing(resource, key)
            _check(old, item["metadata"])
            if subresource:
                return copy.deepcopy(self.put(resource, {**old, "status": item.get("status")}))
            return copy.deepcopy(self.put(resource, item))

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        grace_s: int | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
    ) -> None:
        """Delete the object; a pod on a node stays for its grace period."""
        async with _Call(self, Request("delete", resource, key, propagation=propagation)):
            old = self._existing(resource, key)
            _check(old, {"uid": uid} if uid else {})
            if resource is PODS:
                grace = 0 if grace_s == 0 else _grace_s(old)
                if not is_deleting(old) or not grace:
                    going = {
                        "deletionTimestamp": times.seconds(self.clock() + grace),
                        "deletionGracePeriodSeconds": grace,
                    }
                    self.put(resource, _merged(old, {"metadata": going}))
                if grace:
                    return
            elif old["metadata"].get("finalizers"):
                going = {"deletionTimestamp": times.seconds(self.clock())}
                self.put(resource, _merged(old, {"metadata": going}))
                return
            self.remove(resource, key)

    async def evict(self, key: Key, *, uid: str) -> None:
        """Delete the pod as the Eviction API does."""
        async with _Call(self, Request("create", PODS, key, "eviction")):
            self._existing(PODS, key)
        await self.delete(PODS, key, uid=uid)

    def _allowed(self, resource: Resource, body: Mapping[str, Any], subresource: str) -> Object:
        if subresource:
            return {"status": body.get("status")}
        if resource in self._with_status:
            return {name: value for name, value in body.items() if name != "status"}
        return dict(body)

    def _existing(self, resource: Resource, key: Key) -> Object:
        found = self.find(resource, key)
        if found is None:
            raise ApiError(Failure.NOT_FOUND, f'{resource} "{key.name}" not found')
        return found

    def _store(self, resource: Resource, item: Object) -> Object:
        key = key_of(item)
        before = self.find(resource, key)
        if before is not None and _content(before) == _content(item):
            return before
        self._revision += 1
        item["metadata"]["resourceVersion"] = str(self._revision)
        self._items.setdefault(resource, {})[key] = item
        self._tell(resource, key, item)
        return item

    def _tell(self, resource: Resource, key: Key, item: Object | None) -> None:
        for watch in self._watches:
            watch.pending.append((resource, key, copy.deepcopy(item)))


class _Call:
    """Notes a request, gives others a turn, and lets it fail where a fault says so."""

    def __init__(self, api: FakeApi, request: Request) -> None:
        self._api = api
        self._request = request
        self._late: ApiError | None = None
        self._trap: Trap | None = None

    async def __aenter__(self) -> None:
        await asyncio.sleep(0)
        trap = self._api.trap
        self._api.requests.append(self._request)
        if trap is not None and len(self._api.requests) >= trap.number:
            if not trap.after:
                await trap.hold()
            self._trap = trap
        for observe in self._api.observers:
            observe(self._request)
        for fault in self._api.faults:
            if fault.times > 0 and fault.matches(self._request):
                fault.times -= 1
                if not fault.after:
                    raise fault.error
                self._late = fault.error

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if self._trap is not None:
            await self._trap.hold()
        if self._late is not None and error is None:
            raise self._late


class FakeEvents:
    """Keeps what users would be told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    async def record(self, about: Object, event_type: EventType, reason: str, message: str) -> None:
        """Tell what happened."""
        self.told.append((event_type, reason, message))

    def messages(self, reason: str) -> list[str]:
        """Those of a reason."""
        return [message for _, told, message in self.told if told == reason]


def _show(watcher: Watcher, resource: Resource, key: Key, item: Object | None) -> None:
    if item is None:
        watcher.drop(resource, key)
    else:
        watcher.put(resource, _as_followed(resource, item))


def _as_followed(resource: Resource, item: Object) -> Object:
    """As an informer brings it."""
    return read_followed_pod(json.dumps(item).encode()) if resource == PODS else item


def in_namespace(items: Iterable[Object], name: str) -> list[Object]:
    """Those of a namespace."""
    return [item for item in items if namespace(item) == name]


def _says_what_it_is(resource: Resource, key: Key, body: Mapping[str, Any]) -> bool:
    """Whether an API server would take it for a new object, or one to apply, at this place.

    What a pod is it knows without being told.
    """
    kind = resource is PODS or (body["apiVersion"], body["kind"]) == (
        resource.api_version,
        resource.kind,
    )
    return kind and body["metadata"].get("name") == key.name


def _grace_s(pod: Object) -> int:
    """Only a pod on a node that has not ended needs time to stop."""
    ended = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return 30 if pod["spec"].get("nodeName") and not ended else 0


def _check(old: Object, wanted: Mapping[str, Any]) -> None:
    said = wanted.get("resourceVersion")
    if (said and said != version(old)) or (wanted.get("uid") and wanted["uid"] != uid(old)):
        raise ApiError(Failure.CONFLICT, f"{key_of(old)} has been modified")


def _content(item: Object) -> Object:
    metadata = {k: v for k, v in item["metadata"].items() if k != "resourceVersion"}
    return {**item, "metadata": metadata}


def _merged(old: Mapping[str, Any], change: Mapping[str, Any]) -> Object:
    made = copy.deepcopy(dict(old))
    for key, value in change.items():
        before = made.get(key)
        if value is None:
            made.pop(key, None)
        elif isinstance(value, Mapping):
            made[key] = _merged(before if isinstance(before, Mapping) else {}, value)
        else:
            made[key] = copy.deepcopy(value)
    return made
