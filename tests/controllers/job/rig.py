"""The job controller on the tests' API server; user, scheduler and kubelet are played by hand."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from app.controllers.job.controller import INDEXES, JobController, JobOptions
from app.controllers.job.slots import Slots
from app.controllers.runtime import Runtime
from app.controllers.store import Store
from app.jobplugins import catalogue
from app.jobplugins.catalogue import JobPlugins
from app.jobplugins.keys import KeyPair
from app.kit.workqueue import Backoff
from app.wire import times
from app.wire.kinds import COMMANDS, JOBS, POD_GROUPS, PODS, QUEUES, Resource
from app.wire.unstructured import Key, Object, key_of, name, uid
from tests.controllers.fake_api import FakeApi, FakeEvents, Request, Watch
from tests.service import virtual_time

NAMESPACE = "ns"

_ENDLESS = 2000
"""Requests after which a controller would never rest."""


class FakeSlots:
    """Gives what the test says; None: nobody answers."""

    def __init__(self) -> None:
        self.slots: Slots | None = None
        self.asked: list[tuple[str, str]] = []

    async def get(self, namespace: str, podgroup: str) -> Slots | None:
        """The slots."""
        self.asked.append((namespace, podgroup))
        return self.slots


def plugins(job: Object) -> JobPlugins:
    """The real ones, with keys that cost nothing."""
    return catalogue.parse(job, make_keys=lambda kind: KeyPair(f"{kind} private", f"{kind} public"))


class Rig:
    """One cluster, and a controller that can be killed."""

    def __init__(self, **options: Any) -> None:
        self.api = FakeApi(virtual_time.clock)
        self.events = FakeEvents()
        self.slots = FakeSlots()
        self.phases: list[str] = []
        self.statuses: list[Object] = []
        self.admits = True
        self._options = JobOptions(**options)
        self._task: asyncio.Task[None] | None = None
        self._watch: Watch | None = None
        self._runtime: Runtime | None = None
        self._only: _Only | None = None
        self.api.watch(self)
        self.api.put(QUEUES, {"metadata": {"name": "default"}, "spec": {}})

    def put(self, resource: object, item: Object) -> None:
        """Notes what clients that watch jobs see."""
        if resource is JOBS and item.get("status"):
            self.statuses.append(item["status"])
            phase = item["status"].get("state", {}).get("phase", "")
            if not self.phases or self.phases[-1] != phase:
                self.phases.append(phase)

    def drop(self, resource: object, key: Key) -> None:
        """Nothing to note."""

    def start(self) -> None:
        """Start a controller that knows only what the API server has."""
        stores = {kind: Store(indexes) for kind, indexes in INDEXES.items()}
        controller = JobController(
            stores,
            api=self.api,
            events=self.events,
            slots=self.slots,
            clock=virtual_time.clock,
            options=self._options,
            read_plugins=plugins,
        )
        self._runtime = Runtime(stores, {controller: 2}, backoff=Backoff())
        self._only = _Only(self._runtime, stores)
        self._watch = self.api.watch(self._only)
        self._task = asyncio.create_task(self._runtime.run())

    def hide(self, resource: Resource) -> None:
        """Break the watch of one kind."""
        assert self._only is not None
        self._only.hidden.add(resource)

    async def kill(self) -> None:
        """End it in the middle of whatever it does."""
        assert self._task is not None
        assert self._watch is not None
        self.api.unwatch(self._watch)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    async def settle(self) -> None:
        """Until nobody has anything to do now; a controller caught in a trap is replaced."""
        quiet = 0
        most = len(self.api.requests) + _ENDLESS
        while quiet < 4:
            assert len(self.api.requests) < most, self.api.requests[-20:]
            moved = self.api.deliver()
            moved = self._admit() or moved
            moved = await self._worked() or moved
            for _ in range(3):
                await asyncio.sleep(0)
            quiet = 0 if moved else quiet + 1

    async def see_next(self, resource: Resource) -> None:
        """Settle on the next thing that the watches have to tell; of that kind nothing follows.

        They go on when the kind no longer lags.
        """
        self.api.lagging.discard(resource)
        self.api.deliver(1)
        self.api.lagging.add(resource)
        await self.settle()

    async def _worked(self) -> bool:
        """Let the controller work; whether it had to be replaced."""
        assert self._runtime is not None
        settled = asyncio.ensure_future(self._runtime.settled())
        trap = self.api.trap
        if trap is None:
            await settled
            return False
        sprung = asyncio.ensure_future(trap.sprung.wait())
        await asyncio.wait({settled, sprung}, return_when=asyncio.FIRST_COMPLETED)
        caught = sprung.done()
        for waiting in (settled, sprung):
            waiting.cancel()
        await asyncio.gather(settled, sprung, return_exceptions=True)
        if caught:
            self.api.trap = None
            await self.kill()
            self.start()
        return caught

    async def later(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)
        await self.settle()

    def submit(self, spec: Mapping[str, Any], *, job: str = "job", **metadata: Any) -> Object:
        """Create a job."""
        return self.api.put(
            JOBS,
            {
                "apiVersion": JOBS.api_version,
                "kind": "Job",
                "metadata": {"name": job, "namespace": NAMESPACE, **metadata},
                "spec": dict(spec),
            },
        )

    def command(self, action: str, *, job: str = "job", name: str = "command") -> None:
        """Create a Command for a job."""
        self.api.put(
            COMMANDS,
            {
                "metadata": {"name": name, "namespace": NAMESPACE},
                "action": action,
                "target": {
                    "apiVersion": JOBS.api_version,
                    "kind": "Job",
                    "name": job,
                    "uid": uid(self.job(job)),
                },
            },
        )

    def job(self, job: str = "job") -> Object:
        """A job as stored."""
        found = self.api.find(JOBS, Key(NAMESPACE, job))
        assert found is not None
        return found

    def edit_job(self, change: Mapping[str, Any], job: str = "job") -> None:
        """Change a job as a user would."""
        self.api.edit(JOBS, Key(NAMESPACE, job), change)

    def status(self, job: str = "job") -> Object:
        """Its status."""
        found: Object = self.job(job).get("status") or {}
        return found

    def phase(self, job: str = "job") -> str:
        """Its phase."""
        return str(self.status(job).get("state", {}).get("phase", ""))

    def group(self) -> Object:
        """The one PodGroup."""
        (found,) = self.api.all(POD_GROUPS)
        return found

    def pods(self) -> list[str]:
        """The names of all pods."""
        return sorted(name(pod) for pod in self.api.all(PODS))

    def pod(self, pod: str) -> Object:
        """A pod as stored."""
        found = self.api.find(PODS, Key(NAMESPACE, pod))
        assert found is not None
        return found

    def admit(self, phase: str = "Inqueue") -> None:
        """Put every PodGroup in a phase."""
        for group in self.api.all(POD_GROUPS):
            self.api.edit(POD_GROUPS, key_of(group), {"status": {"phase": phase}})

    def change(self, pod: str, change: Mapping[str, Any]) -> None:
        """Change a pod as somebody else would."""
        self.api.edit(PODS, Key(NAMESPACE, pod), change)

    def change_group(self, change: Mapping[str, Any]) -> None:
        """Change the one PodGroup as the scheduler would."""
        self.api.edit(POD_GROUPS, key_of(self.group()), change)

    def run(self, *pods: str, restarts: int = 0, ready: bool = True) -> None:
        """Let pods run; all by default."""
        for pod in pods or self.pods():
            container = {"name": "c", "restartCount": restarts, "ready": ready}
            self.change(
                pod,
                {
                    "spec": {"nodeName": "node"},
                    "status": {"phase": "Running", "containerStatuses": [container]},
                },
            )

    def succeed(self, *pods: str) -> None:
        """Let pods end well."""
        self._end("Succeeded", 0, pods)

    def fail(self, *pods: str, code: int = 1) -> None:
        """Let pods end badly."""
        self._end("Failed", code, pods)

    def evict(self, *pods: str) -> None:
        """Delete pods as somebody else would, with a grace period."""
        for pod in pods:
            at = virtual_time.clock() + 30
            self.change(
                pod,
                {"metadata": {"deletionTimestamp": _time(at), "deletionGracePeriodSeconds": 30}},
            )

    def expire(self, *pods: str) -> None:
        """Begin to take away what is being deleted, as a kubelet that is done with it."""
        for pod in pods:
            self.change(pod, {"metadata": {"deletionGracePeriodSeconds": 0}})

    def force(self, *pods: str) -> None:
        """Begin to take pods away without grace, as somebody else would."""
        self.evict(*pods)
        self.expire(*pods)

    def vanish(self, *pods: str) -> None:
        """Take pods away at once."""
        for pod in pods:
            self.api.remove(PODS, Key(NAMESPACE, pod))

    def bury(self) -> bool:
        """Let the kubelet end everything that is being deleted."""
        going = [p for p in self.api.all(PODS) if p["metadata"].get("deletionTimestamp")]
        for pod in going:
            self.api.remove(PODS, key_of(pod))
        return bool(going)

    async def drain(self) -> None:
        """Settle until nothing is being deleted."""
        await self.settle()
        while self.bury():
            await self.settle()

    async def started(self, spec: Mapping[str, Any], **metadata: Any) -> None:
        """A job whose pods all run."""
        self.start()
        self.submit(spec, **metadata)
        await self.settle()
        self.run()
        await self.settle()

    def _end(self, phase: str, code: int, pods: Sequence[str]) -> None:
        for pod in pods or self.pods():
            ended = {"exitCode": code, "finishedAt": _time(virtual_time.clock())}
            container = {"name": "c", "state": {"terminated": ended}}
            self.change(
                pod,
                {
                    "spec": {"nodeName": "node"},
                    "status": {"phase": phase, "containerStatuses": [container]},
                },
            )

    def _admit(self) -> bool:
        if not self.admits:
            return False
        waiting = [g for g in self.api.all(POD_GROUPS) if not g.get("status", {}).get("phase")]
        for group in waiting:
            self.api.edit(POD_GROUPS, key_of(group), {"status": {"phase": "Inqueue"}})
        return bool(waiting)


class _Only:
    """Passes on the kinds that somebody follows, but for those whose watch is broken."""

    def __init__(self, runtime: Runtime, stores: Mapping[Any, Store]) -> None:
        self._runtime = runtime
        self._stores = stores
        self.hidden: set[Resource] = set()

    def put(self, resource: Any, item: Object) -> None:
        """Added or modified."""
        if resource in self._stores.keys() - self.hidden:
            self._runtime.put(resource, item)

    def drop(self, resource: Any, key: Key) -> None:
        """Gone."""
        if resource in self._stores.keys() - self.hidden:
            self._runtime.drop(resource, key)


def play(scenario: Callable[[Rig], Awaitable[None]], **options: Any) -> Rig:
    """Play a scenario in virtual time."""

    async def whole() -> Rig:
        rig = Rig(**options)
        await scenario(rig)
        return rig

    return virtual_time.run(whole())


def task(
    task: str = "main", replicas: int = 2, *, spec: Mapping[str, Any] | None = None, **more: Any
) -> Object:
    """A task of a job."""
    pod = {"containers": [{"name": "c", "image": "i"}], **(spec or {})}
    return {"name": task, "replicas": replicas, "template": {"spec": pod}, **more}


def policy(event: str | Sequence[str], action: str, **more: Any) -> Object:
    """A lifecycle policy."""
    which = {"event": event} if isinstance(event, str) else {"events": list(event)}
    return {**which, "action": action, **more}


def _time(at: float) -> str:
    return times.seconds(at)


def creates_pod(request: Request) -> bool:
    """Whether it is the creation of a pod."""
    return (request.verb, request.resource) == ("create", PODS)


def creates_group(request: Request) -> bool:
    """Whether it is the creation of a PodGroup."""
    return (request.verb, request.resource) == ("create", POD_GROUPS)
