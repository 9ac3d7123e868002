"""``pumice demo``: the first story on the sandbox, told as it happens.

Each chapter submits jobs and waits for what must come of it; an outcome that is not this ends the
demo with the reason and exit code 1. What is printed is read from the API server, as a user would.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

from app.kube import config, errors
from app.kube.client import ApiClient, Body
from app.main.sandbox import SandboxFailed, SandboxOptions, ended, running
from app.main.signals import interruptible, until_signal
from app.sandbox.nodes import NodeSpec
from app.sandbox.story.board import GroupView, board
from app.sandbox.story.certificate import Certificate, explained
from app.sandbox.story.jobs import CONF, conf, manifests
from app.wire.documents import Document

PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
NODES = NodeSpec(count=4, cpu="4", memory="16Gi")
WIDEST = 100
LOOK_EVERY_S = 0.2
STEP_S = 60.0
"""No step takes longer when all is well."""
BINDING_S = 5.0
"""How long a gang's bindings may take, from the first to the last."""
INTERRUPTED = 130

Check = Callable[[Any], list[tuple[str, str]]]
"""What is wrong with a certificate: where, and what."""


class Failed(Exception):
    """The story went another way."""


class Client(Protocol):
    """Requests to the API server; answers are undecoded."""

    async def get(self, path: str) -> bytes:
        """The body of the object at ``path``, or of the list; raises KubeError."""

    async def create(self, path: str, body: Body) -> bytes:
        """POST ``body`` to the collection at ``path``; raises KubeError."""

    async def delete(self, path: str) -> bytes:
        """Delete the object at ``path``; raises KubeError."""


class Certificates(Protocol):
    """What the extender says of its decisions to evict."""

    async def __call__(self) -> list[Certificate]:
        """All certificates that the extender keeps."""


def run(
    *,
    check: Check,
    nodes: NodeSpec = NODES,
    step_s: float = STEP_S,
    console: Console | None = None,
) -> int:
    """Tell the story; returns the exit code. ``check`` verifies certificates independently."""
    console = console or Console(highlight=False)
    console.width = min(console.width, WIDEST)
    code = INTERRUPTED
    with interruptible():
        code = asyncio.run(_told(nodes, console, check, step_s=step_s))
    return code


async def _told(nodes: NodeSpec, console: Console, check: Check, *, step_s: float) -> int:
    code = INTERRUPTED
    async with until_signal():
        try:
            await _demo(nodes, console, check, step_s=step_s)
        except (Failed, SandboxFailed, errors.KubeError) as error:
            console.print(f"[bold red]demo failed:[/] {error}", soft_wrap=True)
            code = 1
        else:
            console.print("[bold green]demo finished as it should[/]")
            code = 0
    return code


async def _demo(nodes: NodeSpec, console: Console, check: Check, *, step_s: float) -> None:
    with tempfile.TemporaryDirectory(prefix="pumice-demo-") as name:
        folder = Path(name)
        (folder / CONF).write_text(conf())
        options = SandboxOptions(nodes=nodes, folder=folder, scheduler_conf=folder / CONF)
        async with running(options) as cluster:
            console.print(f"sandbox: {nodes.count} nodes with {nodes.cpu} cpu, {cluster.api_url}")
            async with ApiClient(config.load(cluster.kubeconfig)) as client:
                story = Story(client, console, step_s=step_s, parts=cluster.parts)
                await story.tell()
                await story.queue_takes_back_its_share(_asked(cluster.extender_url), check)


def _asked(extender_url: str) -> Certificates:
    """The certificates that the extender at that address has."""

    async def asked() -> list[Certificate]:
        url = f"{extender_url}/debug/certificates"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return [each["certificate"] for each in await answer.json()]

    return asked


class Story:
    """The chapters, over one client. ``parts`` must not end before the story does."""

    def __init__(
        self,
        client: Client,
        console: Console,
        *,
        step_s: float,
        parts: tuple[asyncio.Task[None], ...] = (),
    ) -> None:
        self._client = client
        self._console = console
        self._step_s = step_s
        self._parts = parts
        self._documents = manifests()
        self._shown: list[tuple[str, str, str]] = []
        """Name, phase and reason of each group in the table printed last."""
        self._seen: set[str] = set()
        """Groups that the job controller has made by now."""

    async def tell(self) -> None:
        """All chapters in their order."""
        await self.queue_with_a_limit()
        await self.distributed_job()
        await self.two_trainings()

    async def queue_with_a_limit(self) -> None:
        """The first chapter: a job waits for its queue's capability; raises Failed."""
        self._chapter("a queue with capability cpu 2: job-1 takes 1, job-2 asks 2 and waits")
        await self._client.create(QUEUES, self._documents["Queue/test"])
        await self._submit("job-1")
        await self._until("job-1 runs", lambda now: now["job-1"].runs(1))
        await self._submit("job-2")
        await self._until("job-2 waits, with numbers", lambda now: waits(now["job-2"]))
        await self._delete("job-1")
        await self._until("job-2 runs when job-1 is gone", lambda now: now["job-2"].runs(1))
        await self._delete("job-2")

    async def distributed_job(self) -> None:
        """The second chapter: a job of two tasks, and an elastic job; raises Failed."""
        self._chapter("a TensorFlow job (1 ps, 2 workers) and an elastic job (6 pods, 3 do)")
        await self._submit("tensorflow-benchmark")
        await self._client.create(STORAGE_CLASSES, self._documents["StorageClass/my-storage-class"])
        await self._client.create(PRIORITY_CLASSES, self._documents["PriorityClass/high-priority"])
        await self._submit("test-job")
        await self._until(
            "the TensorFlow job runs whole", lambda now: now["tensorflow-benchmark"].runs(3)
        )
        await self._until("the elastic job runs with all six", lambda now: now["test-job"].runs(6))
        await self._delete("tensorflow-benchmark")
        await self._delete("test-job")

    async def two_trainings(self) -> None:
        """The third chapter: of two gangs, one waits without any pod on a node; raises Failed."""
        self._chapter("two trainings of 10 cpu each on 16 cpu, submitted together")
        names = ("training-a", "training-b")
        await asyncio.gather(*(self._submit(name) for name in names))
        now = await self._until(
            "one of them runs whole", lambda now: any(now[name].runs(10) for name in names)
        )
        first, second = sorted(names, key=lambda name: not now[name].runs(10))
        if now[second].on_nodes:
            raise Failed(f"{second} has pods on nodes while {first} has the room")
        await self._until(f"{second} waits whole, with numbers", lambda now: waits(now[second]))
        await self._until(f"{second} follows", lambda now: now[second].runs(10))

    async def queue_takes_back_its_share(self, certificates: Certificates, check: Check) -> None:
        """The last chapter: the only one in which pods are evicted."""
        self._chapter("two queues of equal weight: batch has all 16 cpu, urgent wants its half")
        for queue in ("batch", "urgent"):
            await self._client.create(QUEUES, self._documents[f"Queue/{queue}"])
        await self._submit("crunching")
        await self._until("crunching has the cluster", lambda now: now["crunching"].runs(16))
        await self._submit("report")
        await self._until("report runs whole, in one go", lambda now: now["report"].runs(8))
        await self._until(
            "crunching keeps the other half", lambda now: now["crunching"].running == 8
        )
        self.explain(await certificates(), check)

    def explain(self, certificates: list[Certificate], check: Check) -> None:
        """Tell the certificate of the only decision to reclaim, in plain words."""
        found = [each for each in certificates if each["action"] == "reclaim"]
        if len(found) != 1:
            raise Failed(f"{len(found)} decisions evict for report, not one")
        self._console.print("  the certificate of this decision, in plain words:")
        for title, text in explained(found[0]):
            self._console.print(indented(f"[bold]{title}:[/] {text}"))
        wrong = check(found[0])
        if wrong:
            raise Failed(f"the certificate is rejected: {wrong[0][0]} {wrong[0][1]}")
        self._console.print("  [green]ok[/] pumice check-eviction accepts it")

    # --- what happens ----------------------------------------------------------------------------

    async def _submit(self, name: str) -> None:
        job = self._documents[f"Job/{name}"]
        await self._client.create(JOBS, job)
        self._console.print(f"  submitted {name} to queue {job['spec'].get('queue', 'default')}")

    async def _delete(self, name: str) -> None:
        await self._client.delete(f"{JOBS}/{name}")
        self._console.print(f"  deleted {name}")

    # --- what must come of it --------------------------------------------------------------------

    async def _until(
        self, what: str, test: Callable[[Mapping[str, GroupView]], bool]
    ) -> Mapping[str, GroupView]:
        """Look until the condition holds; returns what was seen then."""
        clock = asyncio.get_running_loop().time
        begun, partial_since = clock(), dict[str, float]()
        while True:
            now = await self._look()
            self._seen.update(now)
            self._show(now)
            self._check_parts()
            for view in now.values():
                since = partial_since.setdefault(view.name, clock())
                if not view.is_partial:
                    del partial_since[view.name]
                elif clock() - since > BINDING_S:
                    raise Failed(f"{view.name} stays bound in part")
            try:
                reached = test(now)
            except KeyError as error:
                if error.args[0] in self._seen:
                    raise Failed(f"the PodGroup of {error.args[0]} is gone") from error
                reached = False
            if reached:
                self._console.print(f"  [green]ok[/] {what}")
                return now
            if clock() - begun > self._step_s:
                raise Failed(f"not within {self._step_s:g} s: {what}")
            await asyncio.sleep(LOOK_EVERY_S)

    def _check_parts(self) -> None:
        for part in self._parts:
            if part.done():
                raise ended(part)

    # --- reading and printing --------------------------------------------------------------------

    async def _look(self) -> Mapping[str, GroupView]:
        groups, pods = await asyncio.gather(self._items(GROUPS), self._items(PODS))
        return board(groups, pods)

    async def _items(self, path: str) -> list[Document]:
        items: list[Document] = json.loads(await self._client.get(path))["items"]
        return items

    def _chapter(self, title: str) -> None:
        self._console.print(f"\n[bold]{title}[/]")

    def _show(self, now: Mapping[str, GroupView]) -> None:
        """The table of groups, when it changed and every group has got its first phase."""
        news = [(view.name, view.phase, view.waits_for) for view in now.values()]
        if news == self._shown or not all(view.phase for view in now.values()) or not news:
            return
        self._shown = news
        self._console.print(indented(table(now.values())))
        for view in now.values():
            if view.waits_for:
                self._console.print(indented(f"[yellow]{view.name} waits:[/] {view.waits_for}"))


def waits(view: GroupView) -> bool:
    """Whether the group waits with numbers; Failed when it does not wait whole."""
    if view.on_nodes:
        raise Failed(f"{view.name} must wait whole, but has {view.on_nodes} pods on nodes")
    return view.waits_with_numbers


def indented(what: RenderableType) -> Padding:
    """``what`` moved four columns to the right."""
    return Padding(what, (0, 0, 0, 4), expand=False)


def table(views: Iterable[GroupView]) -> Table:
    """One row a group; what they wait for is said below it, where there is room."""
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("PodGroup", "queue", "phase"):
        drawn.add_column(name)
    for name in ("min", "pods", "on nodes", "running"):
        drawn.add_column(name, justify="right")
    for view in views:
        counts = (view.minimum, view.pods, view.on_nodes, view.running)
        drawn.add_row(view.name, view.queue, view.phase, *map(str, counts))
    return drawn
