"""The extender's verbs on the wire: what the stock scheduler posts and how it reads the answers.

Keys are PascalCase; pods travel without ``apiVersion`` and ``kind``; the extender is node-cache
capable (names, not nodes). Only status 200 with a JSON body is an answer, everything else is an
error of the call, and so is an answer that takes longer than ``timeout_s`` (``httpTimeout``): the
connection is then closed. Preemption sends and receives UIDs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from app.sandbox.clock import Clock
from app.sandbox.ports import ExtenderClient, ExtenderUnreachable
from app.wire.documents import Document, name_of, uid_of

_TOO_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class ExtenderError(Exception):
    """The call failed or the answer carries an ``Error``; the text is what the pod will show."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """Nodes that passed, and why others did not."""

    passed: list[str]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods to evict from one node, most important first."""

    uids: tuple[str, ...]
    pdb_violations: int


class Extender:
    """One HTTP extender with the verbs filter, prioritize, preempt and bind."""

    def __init__(self, client: ExtenderClient, *, clock: Clock, timeout_s: float) -> None:
        self._client = client
        self._clock = clock
        self._timeout_s = timeout_s

    async def filter(self, pod: Document, names: Sequence[str]) -> Filtered:
        """The nodes that passed, and reasons for the others; ExtenderError where the call fails."""
        answer = await self._post("filter", _args(pod, names))
        if answer.get("Error"):
            raise ExtenderError(str(answer["Error"]))
        passed = _passed(answer)
        for unknown in set(passed) - set(names):
            raise ExtenderError(
                f'extender claims a filtered node "{unknown}" which is not found in the input node'
                " list"
            )
        return Filtered(
            passed,
            answer.get("FailedNodes") or {},
            answer.get("FailedAndUnresolvableNodes") or {},
        )

    async def prioritize(self, pod: Document, names: Sequence[str]) -> dict[str, int]:
        """Scores by node; an error counts as no opinion."""
        try:
            answer = await self._post("prioritize", _args(pod, names))
        except ExtenderError:
            return {}
        return {one["Host"]: int(one["Score"]) for one in answer or []}

    async def bind(self, pod: Document, node: str) -> None:
        """Have the extender bind the pod to ``node``; ExtenderError where the call fails."""
        name = name_of(pod)
        answer = await self._post(
            "bind",
            {
                "PodName": name.name,
                "PodNamespace": name.namespace,
                "PodUID": uid_of(pod),
                "Node": node,
            },
        )
        if answer.get("Error"):
            raise ExtenderError(str(answer["Error"]))

    async def preempt(self, pod: Document, victims: Mapping[str, Victims]) -> dict[str, Victims]:
        """The victims that the extender accepts, by node; ExtenderError where the call fails."""
        meta = {
            node: {
                "Pods": [{"UID": uid} for uid in one.uids],
                "NumPDBViolations": one.pdb_violations,
            }
            for node, one in victims.items()
        }
        args = {"Pod": _bare(pod), "NodeNameToVictims": None, "NodeNameToMetaVictims": meta}
        answer = await self._post("preempt", args)
        return {
            node: Victims(
                tuple(pod["UID"] for pod in one.get("Pods") or []),
                int(one.get("NumPDBViolations") or 0),
            )
            for node, one in (answer.get("NodeNameToMetaVictims") or {}).items()
        }

    async def _post(self, verb: str, args: Document) -> Any:
        try:
            code, body = await self._in_time(verb, msgspec.json.encode(args))
        except ExtenderUnreachable as error:
            raise ExtenderError(f'Post "{self._client.url}/{verb}": {error}') from error
        if code != 200:
            url = f"{self._client.url}/{verb}"
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {code}")
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise ExtenderError(f"failed {verb} with extender: {error}") from error

    async def _in_time(self, verb: str, body: bytes) -> tuple[int, bytes]:
        call = asyncio.ensure_future(self._client.post(verb, body))
        timer = asyncio.ensure_future(self._clock.sleep(self._timeout_s))
        try:
            await asyncio.wait({call, timer}, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return call.result()
            raise ExtenderUnreachable(_TOO_LATE)
        finally:
            call.cancel()
            timer.cancel()


def _args(pod: Document, names: Sequence[str]) -> Document:
    return {"Pod": _bare(pod), "Nodes": None, "NodeNames": list(names)}


def _bare(pod: Document) -> Document:
    return {key: value for key, value in pod.items() if key not in {"apiVersion", "kind"}}


def _passed(answer: Document) -> list[str]:
    """Names where they are given, else the names of the nodes given, else none."""
    if answer.get("NodeNames") is not None:
        return list(answer["NodeNames"])
    nodes = answer.get("Nodes") or {}
    return [node["metadata"]["name"] for node in nodes.get("items") or []]
