"""A scripted extender and a cluster in virtual time to try the scheduling loop on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from app.sandbox.apiserver.errors import ApiError
from app.sandbox.assembly import Form, Sandbox, build_sandbox
from app.sandbox.clock import SimClock
from app.sandbox.nodes import NodeSpec
from app.sandbox.ports import ExtenderUnreachable
from app.sandbox.scheduler.loop import LoopConfig
from app.wire.documents import Document, condition, section
from tests.sandbox.documents import at, bind_pod, stored_pod

Answer: TypeAlias = Callable[[Document], Document]


def pass_all(args: Document) -> Document:
    return {"NodeNames": args["NodeNames"]}


def refuse(text: str = "waiting for gang") -> Answer:
    def answer(args: Document) -> Document:
        return {
            "NodeNames": [],
            "FailedAndUnresolvableNodes": dict.fromkeys(args["NodeNames"], text),
        }

    return answer


def error(text: str) -> Answer:
    return lambda _: {"Error": text}


@dataclass
class ScriptedExtender:
    """Answers as told, remembers every call with its time."""

    clock: SimClock
    filter: Answer = pass_all
    prioritize: Callable[[Document], list[Document]] = lambda _: []
    preempt: Answer = lambda args: {"NodeNameToMetaVictims": args["NodeNameToMetaVictims"]}
    bind_error: str = ""
    unreachable: str = ""
    holds: asyncio.Event | None = None
    """Bind calls wait for it."""
    filter_holds: asyncio.Event | None = None
    url: str = "http://extender"
    sandbox: Sandbox | None = None
    calls: list[tuple[str, float, Document]] = field(default_factory=list)

    async def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        args = json.loads(body)
        self.calls.append((verb, self.clock.now(), args))
        if self.unreachable:
            raise ExtenderUnreachable(self.unreachable)
        match verb:
            case "filter":
                if self.filter_holds is not None:
                    await self.filter_holds.wait()
                answer: object = self.filter(args)
            case "prioritize":
                answer = self.prioritize(args)
            case "preempt":
                answer = self.preempt(args)
            case _:
                answer = await self._bind(args)
        return 200, json.dumps(answer).encode()

    async def _bind(self, args: Document) -> Document:
        if self.holds is not None:
            await self.holds.wait()
        if self.bind_error:
            return {"Error": self.bind_error}
        assert self.sandbox is not None
        server = self.sandbox.server
        try:
            bind_pod(server, args["PodName"], args["Node"], uid=args["PodUID"])
        except ApiError as refusal:
            return {"Error": refusal.message}
        return {"Error": ""}

    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.calls]

    def times(self, verb: str) -> list[float]:
        """When the verb was called, in seconds since the first call of any."""
        start = self.calls[0][1]
        return [round(when - start, 3) for called, when, _ in self.calls if called == verb]

    def filtered(self, name: str) -> list[list[str]]:
        """The node names of every Filter call for a pod."""
        return [
            args["NodeNames"]
            for verb, _, args in self.calls
            if verb == "filter" and args["Pod"]["metadata"]["name"] == name
        ]


@dataclass(frozen=True)
class Stage:
    """What a scenario plays on."""

    sandbox: Sandbox
    clock: SimClock
    extender: ScriptedExtender

    def create(self, *documents: Document) -> None:
        for document in documents:
            self.sandbox.server.create(document)

    def patch(self, name: str, patch: Document, *, subresource: str = "") -> None:
        self.sandbox.server.patch("/pods", at(name), patch, subresource=subresource)

    def node_of(self, name: str) -> str:
        return str(section(stored_pod(self.sandbox.server, name), "spec").get("nodeName") or "")

    def pod(self, name: str) -> Document:
        return stored_pod(self.sandbox.server, name)

    def told(self, name: str) -> tuple[str, str]:
        """Reason and message of the scheduling condition."""
        found = condition(self.pod(name), "PodScheduled") or {}
        return found.get("reason", ""), found.get("message", "")

    def events(self, reason: str) -> list[Document]:
        return [
            event for event in self.sandbox.store.ordered("/events") if event["reason"] == reason
        ]


Scenario: TypeAlias = Callable[[Stage], Awaitable[None]]


def play(
    scenario: Scenario,
    *,
    nodes: NodeSpec | None = None,
    form: Form = Form.SECOND_SCHEDULER,
    tuning: LoopConfig | None = None,
) -> None:
    async def main() -> None:
        clock = SimClock()
        extender = ScriptedExtender(clock)
        sandbox = build_sandbox(
            clock=clock,
            nodes=nodes or NodeSpec(count=3),
            extender=extender,
            form=form,
            tuning=tuning,
            seed=1,
        )
        extender.sandbox = sandbox
        running = asyncio.create_task(sandbox.run())
        await clock.settle()
        try:
            await scenario(Stage(sandbox, clock, extender))
            assert not running.done(), running.exception()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())
