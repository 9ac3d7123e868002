"""The scheduler's side wired as in the process, over an API server that a test can look into.

A test says what the API server holds (``node``, ``gang``, ``pod``: each goes to the cache as a
watch event would), lets cycles run, and calls as kube-scheduler does.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from app.cache.gangs.members import Member
from app.main.wiring import Parts, assemble
from app.model.ids import GroupKey, NodeName, PodUid, QueueName, group_key
from app.model.pod import GATE, GROUP_ANNOTATION, TERMINAL, Owner, Pod
from app.model.reason import Refusal
from app.model.workload import GroupPhase, Namespace, PodGroup, Queue
from app.service.activity import Activity
from app.service.calls.binding import BindCall
from app.service.calls.filtering import Answer, Question
from app.service.calls.preemption import Candidate, Strike
from app.service.limits import Limits
from app.service.ports import Clock, EventType, Reaction, WriteError
from tests.builders import make_node, make_pod, make_queue
from tests.service.virtual_time import clock

GONE = WriteError(Reaction.GONE, "404: not found")
CONFLICT = WriteError(Reaction.CONFLICT, "409: conflict")
REFUSED = WriteError(Reaction.REFUSED, "422: invalid")
FAILING = WriteError(Reaction.RETRY, "500: internal error")


@dataclass(frozen=True)
class Write:
    """One accepted write: what was done to what."""

    verb: str
    target: str
    body: Any


@dataclass(frozen=True)
class Told:
    """One event."""

    about: str
    event_type: str
    reason: str
    message: str


@dataclass(eq=False)
class FakeApi:
    """Keeps pods, takes writes down.

    ``fails[verb]`` are the next errors of that verb, in order, and ``fails["verb namespace/name"]``
    those of one target.
    """

    pods: dict[str, Pod] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    events: list[Told] = field(default_factory=list)
    fails: dict[str, list[WriteError]] = field(default_factory=lambda: defaultdict(list))
    tries: list[tuple[str, str]] = field(default_factory=list)
    owners: dict[str, int] = field(default_factory=dict)
    """How many pods an owner of that name wants together, if more than one."""
    intents: dict[str, str] = field(default_factory=dict)
    """The texts of the intents of evictions, by name."""
    slow: asyncio.Event | None = None
    """While it is not set, Bindings are under way, and creations of queues."""
    loses: int = 0
    """So many of the next Bindings arrive without an answer."""
    told: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By the name of a pod: the annotations that it was bound with."""
    node_annotations: dict[tuple[str, str], str] = field(default_factory=dict)
    """By node and key."""
    slow_status: asyncio.Event | None = None
    """The same for writes of a pod's status."""

    def _attempt(self, verb: str, target: str) -> None:
        self.tries.append((verb, target))
        for failing in (f"{verb} {target}", verb):
            if self.fails[failing]:
                raise self.fails[failing].pop(0)

    def _done(self, verb: str, target: str, body: Any) -> None:
        self._attempt(verb, target)
        self.writes.append(Write(verb, target, body))

    def _change_pod(
        self, verb: str, key: str, uid: object, body: Any, *, other: WriteError = GONE
    ) -> None:
        """``other`` is the answer when the pod of that name is another one."""
        self._attempt(verb, key)
        pod = self.pods.get(key)
        if pod is None:
            raise GONE
        if pod.uid != uid:
            raise other
        self.writes.append(Write(verb, key, body))

    def of(self, verb: str) -> list[Write]:
        """The accepted writes of that verb."""
        return [write for write in self.writes if write.verb == verb]

    def bound(self) -> dict[str, str]:
        """Pod name -> node of what was bound through us."""
        return {write.target.partition("/")[2]: write.body for write in self.of("bind")}

    async def bind(
        self, namespace: str, name: str, *, uid: str, node: str, annotations: Mapping[str, str]
    ) -> None:
        key = f"{namespace}/{name}"
        self._attempt("bind", key)
        if self.slow is not None:
            await self.slow.wait()
        pod = self.pods.get(key)
        if pod is None:
            raise GONE
        if pod.uid != uid or pod.node:
            raise CONFLICT
        self.pods[key] = replace(pod, node=NodeName(node))
        self.told[pod.name] = annotations
        self.writes.append(Write("bind", key, node))
        if self.loses:
            self.loses -= 1
            raise FAILING

    async def read_node_annotation(self, node: str, key: str) -> tuple[str, str | None]:
        self._attempt("read-node", node)
        return "1", self.node_annotations.get((node, key))

    async def annotate_node(
        self, node: str, annotations: Mapping[str, str | None], *, version: str
    ) -> None:
        self._done("annotate-node", node, dict(annotations))
        for key, text in annotations.items():
            self.node_annotations.pop((node, key), None)
            if text is not None:
                self.node_annotations[node, key] = text

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        self._attempt("read", f"{namespace}/{name}")
        return self.pods.get(f"{namespace}/{name}")

    async def read_least_members(self, owner: Owner, *, namespace: str) -> int:
        self._attempt("owner", f"{namespace}/{owner.name}")
        return self.owners.get(owner.name, 1)

    async def list_pods(self) -> Sequence[Pod]:
        self._attempt("list", "pods")
        return list(self.pods.values())

    async def patch_pod(
        self, namespace: str, name: str, json_patch: Sequence[Mapping[str, object]]
    ) -> None:
        [uid] = [step["value"] for step in json_patch if step["path"] == "/metadata/uid"]
        self._change_pod("patch", f"{namespace}/{name}", uid, list(json_patch), other=REFUSED)

    async def patch_pod_status(
        self, namespace: str, name: str, merge: Mapping[str, object], *, uid: str
    ) -> None:
        if self.slow_status is not None:
            await self.slow_status.wait()
        self._change_pod("pod-status", f"{namespace}/{name}", uid, merge)

    async def wake_pod(
        self, namespace: str, name: str, *, uid: str, token: str, by_label: bool = False
    ) -> None:
        verb = "wake by label" if by_label else "wake"
        self._change_pod(verb, f"{namespace}/{name}", uid, token)

    async def mark_evicted(self, namespace: str, name: str, *, uid: str, text: str) -> None:
        self._change_pod("mark-evicted", f"{namespace}/{name}", uid, text)

    async def evict(self, namespace: str, name: str, *, uid: str) -> None:
        self._change_pod("evict", f"{namespace}/{name}", uid, None, other=GONE)

    async def create_intent(self, name: str, text: str) -> None:
        self._attempt("create-intent", name)
        if name in self.intents:
            raise CONFLICT
        self.intents[name] = text
        self.writes.append(Write("create-intent", name, text))

    async def delete_intent(self, name: str) -> None:
        self._attempt("delete-intent", name)
        if self.intents.pop(name, None) is None:
            raise GONE
        self.writes.append(Write("delete-intent", name, None))

    async def list_intents(self) -> Mapping[str, str]:
        self._attempt("list", "intents")
        return dict(self.intents)

    async def patch_pod_group(self, namespace: str, name: str, merge: Mapping[str, object]) -> None:
        self._done("group-status", f"{namespace}/{name}", merge)

    async def create_queue(self, body: Mapping[str, object]) -> None:
        if self.slow is not None:
            await self.slow.wait()
        metadata: Any = body["metadata"]
        self._done("create-queue", metadata["name"], body)

    async def patch_queue_status(self, name: str, merge: Mapping[str, object]) -> None:
        self._done("queue-status", name, merge)

    async def record_event(
        self,
        *,
        kind: str,
        api_version: str,
        namespace: str,
        name: str,
        uid: str,
        event_type: EventType,
        reason: str,
        message: str,
    ) -> None:
        self._attempt("event", f"{namespace}/{name}")
        self.events.append(Told(f"{kind} {namespace}/{name}", event_type, reason, message))


def always_active(by: Clock = clock) -> Activity:
    """Nothing to elect."""
    return Activity(clock=by, elected=False, namespace="", name="", identity="")


class Rig:
    """Parts over a FakeApi, with the two queues and the namespace ``default`` in being."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        activity: Activity | None = None,
        default_queue: str = "default",
        by: Clock = clock,
    ) -> None:
        """``by`` is the clock; that of the running loop unless told."""
        self.api = FakeApi()
        # Bindings leave at once: what a call comes to does not depend on when.
        self.limits = replace(limits or Limits(), burst_s=0.0)
        self.parts: Parts = assemble(
            ports=self.api,
            clock=by,
            limits=self.limits,
            schedulers=frozenset({"volcano"}),
            activity=activity or always_active(by),
            default_queue=QueueName(default_queue),
        )
        self.cache = self.parts.cache
        self.planning = self.parts.planning
        self.clock = by
        self.planning.evictions.take_up({}, now=0.0)
        for name in ("root", "default"):
            self.queue(make_queue(name))
        self.see("namespaces", Namespace("default", {}, {}))

    # --- what the API server holds ---------------------------------------------------------------

    def see(self, kind: str, *values: Any) -> None:
        """A batch of watch events: added or modified."""
        for value in values:
            self.parts.feed.upsert(kind, value)
        self.parts.feed.batch_done()

    def unsee(self, kind: str, *values: Any) -> None:
        """A batch of watch events: deleted."""
        for value in values:
            self.parts.feed.remove(kind, value)
        self.parts.feed.batch_done()

    def node(self, *names: str, **fields: Any) -> None:
        """Ready nodes."""
        self.see("nodes", *(make_node(name, **fields) for name in names))

    def queue(self, queue: Queue) -> None:
        """A queue."""
        self.see("queues", queue)

    def group(self, name: str, *, minimum: int, **fields: Any) -> PodGroup:
        """A PodGroup, let in already unless ``phase`` says otherwise."""
        defaults: dict[str, Any] = {
            "uid": f"uid-{name}",
            "resource_version": "1",
            "created": 0.0,
            "phase": GroupPhase.INQUEUE,
        }
        group = PodGroup("default", name, min_member=minimum, **(defaults | fields))
        self.see("podgroups", group)
        return group

    def pod(self, name: str, *, group: str = "", **fields: Any) -> Pod:
        """A pod of ours."""
        annotations = {GROUP_ANNOTATION: group} if group else {}
        annotations |= fields.pop("annotations", {})
        pod = make_pod(name, annotations=annotations, **fields)
        self.store(pod)
        return pod

    def store(self, *pods: Pod) -> None:
        """Pods change, and the watches show it."""
        before = [self.api.pods[pod.key] for pod in pods if pod.key in self.api.pods]
        self.api.pods |= {pod.key: pod for pod in pods}
        for source in ("pods", "nominated", "waiting"):
            shown = [pod for pod in pods if self._shows(source, pod)]
            uids = {pod.uid for pod in shown}
            gone = [p for p in before if self._shows(source, p) and p.uid not in uids]
            if gone:
                self.unsee(source, *gone)
            if shown:
                self.see(source, *shown)

    def delete(self, *names: str) -> None:
        """Pods go, and the watches show it."""
        gone = [self.api.pods.pop(f"default/{name}") for name in names]
        for source in ("pods", "nominated", "waiting"):
            self.unsee(source, *(pod for pod in gone if self._shows(source, pod)))

    def _shows(self, source: str, pod: Pod) -> bool:
        """As the selectors of the informers have it."""
        if self.cache.pods.ours(pod):
            return source == "pods"
        if source == "pods":
            return bool(pod.node) and pod.status not in TERMINAL
        if pod.node or pod.status in TERMINAL:
            return False
        return bool(pod.nominated) is (source == "nominated")

    def gang(
        self,
        name: str,
        *,
        size: int,
        minimum: int | None = None,
        gated: bool = False,
        **fields: Any,
    ) -> list[str]:
        """A PodGroup with pods ``<name>-0`` and so on; their names."""
        self.group(name, minimum=size if minimum is None else minimum)
        names = [f"{name}-{i}" for i in range(size)]
        gates = (GATE,) if gated else ()
        for pod in names:
            self.pod(pod, group=name, gates=gates, **fields)
        return names

    def nominate(self, name: str, node: str) -> None:
        """kube-scheduler found no node for a pod, and evicts others from that one for it."""
        says, pod = "0/1 nodes are available: 1 Insufficient cpu.", self.api.pods[f"default/{name}"]
        self.store(replace(pod, nominated=NodeName(node), complaint=says, gates=()))

    def make_anew(self, *names: str) -> None:
        """Others have taken the places of these pods, and the watch is late to show it."""
        for name in names:
            key = f"default/{name}"
            self.api.pods[key] = replace(self.api.pods[key], uid=PodUid(f"uid-another-{name}"))

    def land(self, name: str) -> None:
        """The Binding of a pod arrives, and its answer is lost."""
        key = f"default/{name}"
        self.api.pods[key] = replace(self.api.pods[key], node=NodeName(self.place(name)))

    def show_bindings(self) -> None:
        """The watch catches up with what was bound."""
        self.see("pods", *(pod for pod in self.api.pods.values() if pod.node))

    # --- what it believes ------------------------------------------------------------------------

    def member(self, name: str) -> Member:
        """The member of that pod name."""
        return self.cache.members[PodUid(f"uid-{name}")]

    @property
    def refusals(self) -> Mapping[GroupKey, Refusal]:
        """Why groups wait."""
        return self.planning.last_plan.refusals

    def place(self, name: str) -> str:
        """The reserved node, empty without one."""
        return self.member(name).node

    def has_reservations(self) -> int:
        """How many charges stand for pods that are not bound."""
        return sum(charge.reserved for charge in self.cache.node_usage.charges.values())

    # --- calls -----------------------------------------------------------------------------------

    async def cycle(self) -> None:
        """One planning cycle."""
        await self.planning.cycle.run()

    def filter(self, name: str, nodes: Iterable[str] | None = None) -> Answer:
        """What Filter answers for a stored pod; offered all nodes unless told."""
        pod = self.api.pods[f"default/{name}"]
        names = self.cache.node_usage.nodes if nodes is None else nodes
        return self.parts.filtering.answer(
            Question(pod.uid, lambda: pod, [NodeName(node) for node in names])
        )

    def preempt(self, name: str, **victims: Iterable[str]) -> Strike | None:
        """Why a stored pod may not evict ``victims`` of the only node given; None: it may."""
        [(node, names)] = victims.items()
        candidate = Candidate(tuple(PodUid(f"uid-{each}") for each in names))
        pod = self.api.pods[f"default/{name}"]
        verdict = self.parts.preemption.guard(pod, {NodeName(node): candidate})
        return verdict.struck.get(NodeName(node))

    def bind(self, name: str, node: str | None = None) -> "Call":
        """A Bind call as kube-scheduler sends it, to the planned node unless told."""
        pod = self.api.pods[f"default/{name}"]
        target = self.place(name) if node is None else node
        return Call(self, BindCall(pod.uid, pod.namespace, name, NodeName(target)))

    def key(self, name: str) -> GroupKey:
        """Key of the PodGroup of that name."""
        return group_key("default", name)


class Call:
    """A Bind call under way, with a client that can hang up."""

    def __init__(self, rig: Rig, call: BindCall) -> None:
        self.uid, self.node = call.uid, call.node
        self._hung_up = asyncio.Event()
        self.task = asyncio.create_task(rig.parts.binding.bind(call, gone=self._gone))

    async def _gone(self) -> None:
        await self._hung_up.wait()

    def hang_up(self) -> None:
        """kube-scheduler closes the connection."""
        self._hung_up.set()

    @property
    def done(self) -> bool:
        """Whether it was answered."""
        return self.task.done()

    @property
    def answer(self) -> str:
        """The error text, empty for success."""
        return self.task.result()


@contextmanager
def running(*work: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Work goes on while the block runs."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


def working(rig: Rig) -> AbstractContextManager[None]:
    """Cycles run, owners are asked and effects are carried out."""
    parts = rig.parts
    return running(
        parts.planning.loop.run(),
        parts.actuator.run(),
        parts.evicting.run(),
        parts.owners.run(1),
    )
