"""What questions cost on a big cluster: ``python -m tests.bench.questions``.

`[--nodes 5000] [--pods 50000] [--repeats 20]`. Pods of gangs run on all nodes and say for how long;
of what is left no pod of the gangs that wait has room. The application is asked in this process, as
over HTTP, and what is printed are milliseconds of the processor: what a client waits who has a core
of its own for the answer. Its clock is that of the processor too, so a busy machine cuts no search
short.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from rich.console import Console

from app.model.ids import NodeName
from app.model.pod import GROUP_ANNOTATION
from tests.api.stand import Stand, job, stand
from tests.builders import make_node, make_pod, make_shape
from tests.service.rig import Rig

RUNNING, WAITING = 50, 100
"""Members of a gang."""
GANGS = 20
"""Gangs that wait."""
LONGEST_S = 36_000


@dataclass
class Times:
    """Milliseconds of each answer, by question."""

    by_question: dict[str, list[float]] = field(default_factory=dict)

    async def take(self, question: str, ask: Awaitable[Any]) -> Any:
        """The answer, and what it cost."""
        began = time.process_time()
        answer = await ask
        self.note(question, 1000 * (time.process_time() - began))
        return answer

    def note(self, question: str, ms: float) -> None:
        self.by_question.setdefault(question, []).append(ms)

    def tell(self, say: Callable[[str], None]) -> None:
        """A line for each question: the median, the 99th percentile, the count."""
        say(f"{'question':38} {'p50':>9} {'p99':>9}   answers")
        for question, each in self.by_question.items():
            last = quantiles(each, n=100, method="inclusive")[98] if len(each) > 1 else each[0]
            say(f"{question:38} {median(each):6.0f} ms {last:6.0f} ms   {len(each)}")


def cluster(nodes: int, pods: int) -> Rig:
    """A full cluster with gangs that wait: ten pods of 6 cores are on each node of 64."""
    rig = Rig(by=time.process_time)
    rig.see("nodes", *(make_node(f"n{at}", cpu=64_000, memory=1 << 38) for at in range(nodes)))
    shape, running = make_shape(cpu=64_000 * nodes // pods - 400), []
    for number in range(pods // RUNNING):
        seconds = 60 + number * 7_919 % LONGEST_S
        said = {"pumice.sh/run-time": f"{seconds}s"}
        rig.group(f"runs-{number}", minimum=RUNNING, annotations=said)
    for number in range(pods):
        running.append(
            make_pod(
                f"pod-{number}",
                annotations={GROUP_ANNOTATION: f"runs-{number // RUNNING}"},
                node=NodeName(f"n{number % nodes}"),
                phase="Running",
                shape=shape,
            )
        )
    rig.store(*running)
    for number in range(GANGS):
        rig.gang(f"waits-{number}", size=WAITING, shape=make_shape(cpu=8_000))
    return rig


async def ask(at: Stand, times: Times, number: int) -> None:
    """Each question once, about one of the gangs that wait or about a job that does not exist."""
    gang = f"default/waits-{number % GANGS}"
    await times.take("explain", at.get(f"/explain/{gang}"))
    simulating = {
        "simulate, a job that runs": job("small", replicas=WAITING, cpu="2"),
        "simulate, a job that waits, and ETA": job("large", replicas=WAITING, cpu="8"),
    }
    for question, manifest in simulating.items():
        await times.take(question, at.post("/simulate", {"manifests": [manifest]}))
    await times.take("ETA of one gang", at.get(f"/eta/{gang}"))
    began = time.process_time()
    answer = await times.take("advice, all changes", at.get(f"/advice/{gang}"))
    tried = json.loads(answer.content)["tried"]
    times.note("advice, a change", 1000 * (time.process_time() - began) / max(tried, 1))


async def measure(rig: Rig, repeats: int) -> Times:
    """Ask everything so many times, after once that does not count."""
    await rig.cycle()
    times = Times()
    async with stand(rig) as at:
        await ask(at, Times(), GANGS - 1)
        for number in range(repeats):
            await ask(at, times, number)
    return times


def main() -> None:
    """Print what questions cost."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.questions", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    say = Console().print
    say(f"{given.nodes} nodes, {given.pods} pods that run, {GANGS} gangs of {WAITING} that wait")
    began = time.process_time()
    rig = cluster(given.nodes, given.pods)
    say(f"made in {time.process_time() - began:.0f} s")
    asyncio.run(measure(rig, given.repeats)).tell(say)


if __name__ == "__main__":
    main()
