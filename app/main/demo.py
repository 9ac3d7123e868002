"""``pumice demo``: the first story on the sandbox, told as it happens.

Each chapter submits jobs and waits for what must come of it; an outcome that is not this ends the
demo with an error. What is printed is read from the API server and the extender, as a user would.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from app.kube import config
from app.kube.client import ApiClient
from app.main.sandbox import Running, SandboxOptions, running
from app.sandbox.documents import Document
from app.sandbox.nodes import NodeSpec
from app.sandbox.story import expand

PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
NODES = NodeSpec(count=4, cpu="4", memory="16Gi")
LOOK_EVERY_S = 0.2
CHAPTER_S = 60.0
"""No chapter takes longer when all is well."""


class Failed(Exception):
    """The story went another way."""


def run() -> int:
    """Tell the story; returns the exit code."""
    console = Console(highlight=False, width=132)
    try:
        asyncio.run(_demo(console))
    except Failed as error:
        console.print(f"[bold red]demo failed[/]: {error}")
        return 1
    console.print("[bold green]demo finished as it should[/]")
    return 0


async def _demo(console: Console) -> None:
    with tempfile.TemporaryDirectory(prefix="pumice-demo-") as folder:
        options = SandboxOptions(nodes=NODES, folder=Path(folder))
        async with running(options) as cluster:
            console.print(f"sandbox: {NODES.count} nodes with {NODES.cpu} cpu, {cluster.api_url}")
            async with ApiClient(config.load(cluster.kubeconfig)) as client:
                await Story(client, cluster, console).tell()


class Story:
    """The chapters, over one client."""

    def __init__(self, client: ApiClient, cluster: Running, console: Console) -> None:
        self._client = client
        self._cluster = cluster
        self._console = console
        text = files("app.sandbox.story").joinpath("jobs.yaml").read_text()
        self._documents = expand.story(text)
        self._last: list[tuple[str, ...]] = []
        """Name, phase and reason of each group in the table printed last."""
        self._creating: list[asyncio.Task[None]] = []

    async def tell(self) -> None:
        """All chapters in their order."""
        await self._queue_with_a_limit()
        await self._distributed_job()
        await self._two_trainings()

    async def _queue_with_a_limit(self) -> None:
        self._chapter("a queue with capability cpu 2: job-1 takes 1, job-2 asks 2 and waits")
        await self._client.create(QUEUES, self._documents["Queue/test"])
        await self._submit("job-1")
        await self._until("job-1 runs", lambda: self._runs("job-1", 1))
        await self._submit("job-2")
        await self._until("job-2 waits, with numbers", lambda: self._waits("job-2"))
        await self._delete("job-1")
        await self._until("job-2 runs when job-1 is gone", lambda: self._runs("job-2", 1))
        await self._delete("job-2")

    async def _distributed_job(self) -> None:
        self._chapter("a TensorFlow job (1 ps, 2 workers) and an elastic job (6 pods, 3 suffice)")
        await self._submit("tensorflow-benchmark")
        await self._submit("test-job")
        await self._until(
            "the TensorFlow job runs whole", lambda: self._runs("tensorflow-benchmark", 3)
        )
        await self._until("the elastic job runs with all six", lambda: self._runs("test-job", 6))
        await self._delete("tensorflow-benchmark")
        await self._delete("test-job")

    async def _two_trainings(self) -> None:
        self._chapter("two trainings of 10 cpu each on 16 cpu, submitted together")
        await asyncio.gather(self._submit("training-a"), self._submit("training-b"))
        first, second = await self._one_runs_one_waits("training-a", "training-b")
        self._console.print(f"  {first} runs whole, {second} waits whole:")
        await self._until(f"{second} waits, with numbers", lambda: self._waits(second))
        await self._until(f"{second} follows", lambda: self._runs(second, 10), watch=second)

    async def _one_runs_one_waits(self, one: str, other: str) -> tuple[str, str]:
        await self._until(
            "one of them runs whole",
            lambda: self._either(self._runs(one, 10), self._runs(other, 10)),
        )
        runs = one if await self._runs(one, 10) else other
        waits = other if runs == one else one
        if await self._bound(waits):
            raise Failed(f"{waits} has pods on nodes while {runs} has the room")
        return runs, waits

    # --- what happens ----------------------------------------------------------------------------

    async def _submit(self, name: str) -> None:
        """The PodGroup first; pods only once it is let in, as the job controller does it."""
        job = self._documents[f"Job/{name}"]
        await self._client.create(GROUPS, expand.pod_group(job))
        self._console.print(f"  submitted {name} to queue {job['spec'].get('queue', 'default')}")
        self._creating.append(asyncio.create_task(self._create_pods(job)))

    async def _create_pods(self, job: Document) -> None:
        name = job["metadata"]["name"]
        while True:
            if await self._phase(name) not in ("", "Pending"):
                break
            await asyncio.sleep(LOOK_EVERY_S)
        for pod in expand.pods(job):
            await self._client.create(PODS, pod)

    async def _delete(self, name: str) -> None:
        await self._client.delete(f"{GROUPS}/{name}")
        for pod in await self._pods(name):
            await self._client.delete(f"{PODS}/{pod['metadata']['name']}")
        self._console.print(f"  deleted {name}")

    # --- what must come of it --------------------------------------------------------------------

    async def _runs(self, name: str, count: int) -> bool:
        pods = await self._pods(name)
        running = [p for p in pods if p["status"].get("phase") in ("Running", "Succeeded")]
        return len(running) == count and (await self._phase(name)) in ("Running", "Completed")

    async def _waits(self, name: str) -> bool:
        if await self._bound(name):
            raise Failed(f"{name} must wait whole, but has pods on nodes")
        condition = _condition(await self._group(name), "Reserved")
        if condition is None or condition["status"] != "False":
            return False
        self._console.print(f"  [yellow]{name} waits[/]: {condition['message']}")
        return any(char.isdigit() for char in condition["message"])

    @staticmethod
    async def _either(*tests: Any) -> bool:
        return any(await asyncio.gather(*tests))

    async def _until(self, what: str, test: Callable[[], Any], *, watch: str | None = None) -> None:
        deadline = asyncio.get_running_loop().time() + CHAPTER_S
        while not await test():
            if asyncio.get_running_loop().time() > deadline:
                raise Failed(f"not within {CHAPTER_S:g} s: {what}")
            if watch is not None and 0 < len(await self._bound(watch)) < 10:
                await asyncio.sleep(1.0)
                if 0 < len(await self._bound(watch)) < 10:
                    raise Failed(f"{watch} is bound in part")
            await self._show()
            await asyncio.sleep(LOOK_EVERY_S)
        await self._show()
        self._console.print(f"  [green]ok[/] {what}")

    # --- reading and printing --------------------------------------------------------------------

    async def _items(self, path: str) -> list[Document]:
        items: list[Document] = json.loads(await self._client.get(path))["items"]
        return items

    async def _pods(self, name: str) -> list[Document]:
        pods = await self._items(PODS)
        return [p for p in pods if p["metadata"]["labels"].get("volcano.sh/job-name") == name]

    async def _bound(self, name: str) -> list[Document]:
        return [pod for pod in await self._pods(name) if pod["spec"].get("nodeName")]

    async def _group(self, name: str) -> Document:
        found = [g for g in await self._items(GROUPS) if g["metadata"]["name"] == name]
        if not found:
            raise Failed(f"PodGroup {name} is gone")
        return found[0]

    async def _phase(self, name: str) -> str:
        phase: str = (await self._group(name)).get("status", {}).get("phase", "")
        return phase

    def _chapter(self, title: str) -> None:
        self._console.rule(f"[bold]{title}", align="left")

    async def _show(self) -> None:
        """The table of groups, when it changed."""
        rows = [await self._row(group) for group in await self._items(GROUPS)]
        news: list[tuple[str, ...]] = [(row[0], row[2], row[7]) for row in rows]
        if news == self._last or not rows:
            return
        self._last = news
        table = Table("PodGroup", "Queue", "Phase", "Min", "Pods", "On nodes", "Running", "Why")
        for row in rows:
            table.add_row(*row)
        self._console.print(table)

    async def _row(self, group: Document) -> tuple[str, ...]:
        name, status = group["metadata"]["name"], group.get("status", {})
        pods = await self._pods(name)
        why = _condition(group, "Reserved")
        return (
            name,
            group["spec"].get("queue", "default"),
            status.get("phase", ""),
            str(group["spec"]["minMember"]),
            str(len(pods)),
            str(sum(bool(p["spec"].get("nodeName")) for p in pods)),
            str(sum(p["status"].get("phase") == "Running" for p in pods)),
            why.get("message", "") if why and why["status"] == "False" else "",
        )


def _condition(group: Document, kind: str) -> Document | None:
    conditions: list[Document] = group.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == kind), None)
